//! Inserting what a query reads, without reading it.

use std::{fmt, future::Future, marker::PhantomData, mem};

use futures_util::{FutureExt as _, future};

use crate::{
    entity::{Column, ColumnDef, Entity},
    error::{Error, ErrorKind, Result},
    query::{
        Compound, Query, Selection,
        change::{one_step_of, returned, told, within},
        compound::part,
        condition::Invalid,
        outer,
        run::cost_of,
        upsert::now,
    },
    sql::{Batch, Cost, InsertSelected, Selected, Statement, Term, Write, WriteExecutor},
    value::{ColumnType, KeyOrigin, Scalar, Storage, TEMPORARY_KEYS, Value},
};

/// An INSERT of the rows that a query reads; made by [`Query::insert_into`] and [`Compound::insert_into`].
#[must_use = "an insert does nothing until it is executed"]
pub struct Insert<E, S = ()> {
    columns: Vec<Target>,
    rows: Result<Selected, Invalid>,
    cost: Cost,
    returning: S,
    entity: PhantomData<fn() -> E>,
}

/// A column that is written.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    column: usize,
    /// What is computed has to go through this, so that the row can be read again.
    within: fn(Term) -> Term,
}

/// Columns of `E` that take what a query reads of each row, which is a `V`: a column takes its own type, one that may be
/// NULL also what never is; a tuple of columns takes a tuple.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{Insert, Takes};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// # #[derive(Debug, Entity)]
/// # struct Price { #[entity(id)] id: i64, amount: Option<i64> }
/// fn prices_into<E: Entity>(columns: impl Takes<E, (i64, i64)>) -> Insert<E> {
///     Item::query().select((Item::ID, Item::PRICE)).insert_into(columns)
/// }
/// let prices = prices_into((Price::ID, Price::AMOUNT));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not take a `{V}`",
    label = "not the columns for what the query reads",
    note = "give a column for what is selected, or a tuple of columns for a tuple, each of the type of its value; one that may be NULL also takes what never is"
)]
pub trait Takes<E: Entity, V> {
    /// Adds the columns.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "so that nobody else implements it")]
    fn targets(self, targets: &mut Vec<Target>);
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, T: ColumnType> Takes<E, T> for Column<E, T> {
    fn targets(self, targets: &mut Vec<Target>) {
        targets.push(Target {
            column: self.index(),
            within: within::<T>,
        });
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, T: Scalar> Takes<E, T> for Column<E, Option<T>> {
    fn targets(self, targets: &mut Vec<Target>) {
        targets.push(Target {
            column: self.index(),
            within: within::<T>,
        });
    }
}

macro_rules! tuple {
    ($($name:ident $value:ident $index:tt),*) => {
        #[allow(private_interfaces, reason = "as in the trait")]
        impl<E: Entity, $($name: Takes<E, $value>, $value),*> Takes<E, ($($value,)*)> for ($($name,)*) {
            fn targets(self, targets: &mut Vec<Target>) {
                $(self.$index.targets(targets);)*
            }
        }
    };
}

tuple!(A VA 0);
tuple!(A VA 0, B VB 1);
tuple!(A VA 0, B VB 1, C VC 2);
tuple!(A VA 0, B VB 1, C VC 2, D VD 3);
tuple!(A VA 0, B VB 1, C VC 2, D VD 3, F VF 4);
tuple!(A VA 0, B VB 1, C VC 2, D VD 3, F VF 4, G VG 5);
tuple!(A VA 0, B VB 1, C VC 2, D VD 3, F VF 4, G VG 5, H VH 6);
tuple!(A VA 0, B VB 1, C VC 2, D VD 3, F VF 4, G VG 5, H VH 6, I VI 7);

/// # Inserting what it reads
impl<E: Entity, S: Selection<E>> Query<E, S> {
    /// Inserts a row into the table of `T` for each row that the query reads, in its order: what is selected goes into
    /// these columns, one for each value and of its type. The rows stay in the database; the table may be the one that is
    /// read.
    ///
    /// Of the other columns `created_at` and `updated_at` get the time, `version` and `commit_seq` what a new row has, an
    /// integer key the next one, and what may be NULL or has a DEFAULT that. A key of UUIDs, and whatever else a row cannot
    /// be without, has to be among the columns. Contexts know nothing of the rows.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::value;
    ///
    /// #[derive(Debug, Entity)]
    /// #[entity(table = "orders")]
    /// struct Order {
    ///     #[entity(id)]
    ///     id: i64,
    ///     year: i64,
    ///     total: i64,
    /// }
    ///
    /// #[derive(Debug, Entity)]
    /// struct Archived {
    ///     #[entity(id)]
    ///     id: i64,
    ///     order_id: i64,
    ///     total: Option<i64>,
    ///     reason: String,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Order, Archived)>().await?;
    /// # let mut ctx = db.context();
    /// # for (year, total) in [(2024, 3), (2025, 5), (2026, 8)] {
    /// #     ctx.add(Order { id: 0, year, total });
    /// # }
    /// # ctx.save_changes().await?;
    /// let old = Order::query().filter(Order::YEAR.lt(2026));
    /// let rows = db
    ///     .write(async |tx| {
    ///         let rows = old
    ///             .clone()
    ///             .select((Order::ID, Order::TOTAL, value::<_, String>("old")))
    ///             .insert_into((Archived::ORDER_ID, Archived::TOTAL, Archived::REASON))
    ///             .execute(&mut *tx)
    ///             .await?;
    ///         old.delete().execute(&mut *tx).await?;
    ///         Ok(rows)
    ///     })
    ///     .await?;
    /// assert_eq!(rows, 2);
    /// assert_eq!(Archived::query().sum(Archived::ORDER_ID, &db).await?, Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// The compiler refuses a value of another type:
    ///
    /// ```compile_fail,E0277
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64 }
    /// Item::query().select(Item::NAME).insert_into(Item::PRICE);
    /// ```
    pub fn insert_into<T: Entity>(self, columns: impl Takes<T, S::Output>) -> Insert<T> {
        let select = part(self);
        let cost = match &select {
            Ok(select) => cost_of::<E>(&select.conditions, select.limit),
            Err(_) => Cost::Any,
        };
        Insert::new(columns, select.map(Selected::One), cost)
    }
}

/// # Inserting what it reads
impl<E: Entity, S: Selection<E>> Compound<E, S> {
    /// Inserts a row into the table of `T` for each row that it reads, as [`Query::insert_into`].
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Customer { #[entity(id)] id: i64, city: String }
    /// # #[derive(Debug, Entity)]
    /// # struct Supplier { #[entity(id)] id: i64, city: String }
    /// # #[derive(Debug, Entity)]
    /// # struct City { #[entity(id)] id: i64, #[entity(unique)] name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Customer, Supplier, City)>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Customer { id: 0, city: "Rome".into() });
    /// # ctx.add(Supplier { id: 0, city: "Rome".into() });
    /// # ctx.add(Supplier { id: 0, city: "Bern".into() });
    /// # ctx.save_changes().await?;
    /// let cities = Customer::query()
    ///     .select(Customer::CITY)
    ///     .union(Supplier::query().select(Supplier::CITY))
    ///     .order_by_position(0)
    ///     .insert_into(City::NAME)
    ///     .returning((City::ID, City::NAME))
    ///     .all(&db)
    ///     .await?;
    /// assert_eq!(cities, [(1, "Bern".to_owned()), (2, "Rome".to_owned())]);
    /// # Ok(()) }
    /// ```
    pub fn insert_into<T: Entity>(self, columns: impl Takes<T, S::Output>) -> Insert<T> {
        Insert::new(columns, self.into_tree().map(Selected::Several), Cost::Any)
    }
}

impl<E: Entity> Insert<E> {
    fn new<V>(columns: impl Takes<E, V>, rows: Result<Selected, Invalid>, cost: Cost) -> Self {
        let mut targets = Vec::new();
        columns.targets(&mut targets);
        Self {
            columns: targets,
            rows,
            cost,
            returning: (),
            entity: PhantomData,
        }
    }

    /// Tells of each row that it inserted, in no certain order; but for `commit_seq`, which is stamped at the end of the
    /// transaction.
    pub fn returning<S: Selection<E>>(self, selection: S) -> Insert<E, S> {
        Insert {
            columns: self.columns,
            rows: self.rows,
            cost: self.cost,
            returning: selection,
            entity: PhantomData,
        }
    }

    /// The statement; displaying it shows its text.
    ///
    /// # Errors
    ///
    /// When the query or a column is invalid, as [`execute`](Self::execute).
    pub fn sql(&self) -> Result<Statement> {
        Ok(self.clone().into_tree(None)?.into_statement())
    }

    /// Inserts the rows, and says how many there were: by the database in a transaction of its own, committed when this
    /// returns.
    ///
    /// # Errors
    ///
    /// When the query is invalid; kind [`ErrorKind::Model`] for a column that is named twice, is kept by the library or the
    /// database, or is not named while a row cannot be without it, as the key of a table that another program made with
    /// `INT PRIMARY KEY` or `BIGINT PRIMARY KEY`, to which SQLite would give NULL; `Statement` if what is computed is no integer of a
    /// field's type; those of constraints; and those that writing has.
    ///
    /// # Cancel safety
    ///
    /// That of [`WriteExecutor::write`].
    pub fn execute<'c>(
        self,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<u64>> + Send {
        match self.into_write(None) {
            Ok(write) => executor
                .write(write)
                .map(|written| Ok(written?.changed()))
                .left_future(),
            Err(error) => future::ready(Err(error)).right_future(),
        }
    }
}

impl<E: Entity, S: Selection<E>> Insert<E, S> {
    /// Inserts the rows, and tells of each.
    ///
    /// # Errors
    ///
    /// As [`Insert::execute`]; kind `Refused` for what one row does not tell of itself.
    ///
    /// # Cancel safety
    ///
    /// That of [`WriteExecutor::write`].
    pub fn all<'c>(
        self,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<Vec<S::Output>>> + Send {
        let returning = returned(&self.returning).map_err(Error::from);
        match returning.and_then(|returning| self.into_write(Some(returning))) {
            Ok(write) => executor
                .write(write)
                .map(|written| told::<E, S>(&written?))
                .left_future(),
            Err(error) => future::ready(Err(error)).right_future(),
        }
    }
}

impl<E: Entity, S> Insert<E, S> {
    fn into_write(self, returning: Option<Term>) -> Result<Write> {
        let (cost, returns) = (self.cost, returning.is_some());
        let batch = Batch {
            unkeyed: unkeyed::<E>(&self.columns),
            ..Batch::default()
        };
        let statement = self.into_tree(returning)?.into_statement();
        Ok(one_step_of::<E>(batch, cost, statement, returns))
    }

    fn into_tree(self, returning: Option<Term>) -> Result<InsertSelected> {
        let mut rows = self.rows?;
        outer::check(rows.around())?;
        check::<E>(&self.columns)?;
        let given = given::<E>(&self.columns)?;
        for select in rows.selects_mut() {
            let is_raw = select.source.is_some();
            let mut terms = match mem::replace(&mut select.columns, Term::Number(0)) {
                Term::Several(terms) => terms,
                term => vec![term],
            };
            if terms.len() != self.columns.len() {
                return Err(Invalid::Refused(
                    "what is inserted is a value for each column: neither entities nor what relations lead to are taken",
                )
                .into());
            }
            for (term, target) in terms.iter_mut().zip(&self.columns) {
                check_value::<E>(target.column, term)?;
                // What SQL of the application calls a column may be anything.
                let fits =
                    matches!(term, Term::Value(_)) || (!is_raw && matches!(term, Term::Column(_)));
                if !fits {
                    *term = (target.within)(mem::replace(term, Term::Number(0)));
                }
            }
            terms.extend(given.iter().map(|(_, term)| term.clone()));
            select.columns = Term::Several(terms);
        }
        let columns = self.columns.iter().map(|target| target.column);
        let columns = columns.chain(given.iter().map(|(column, _)| *column));
        Ok(InsertSelected {
            table: E::TABLE.name,
            columns: columns.map(|at| E::TABLE.columns[at].name).collect(),
            rows,
            returning,
        })
    }
}

/// What the library writes into a new row, where nothing else is said.
fn given<E: Entity>(columns: &[Target]) -> Result<Vec<(usize, Term)>> {
    let table = E::TABLE;
    let mut given = Vec::new();
    given.extend(table.version.map(|column| (column, Term::Number(1))));
    given.extend(table.commit_seq.map(|column| (column, Term::Number(0))));
    let times = [table.created_at, table.updated_at].into_iter().flatten();
    let times: Vec<_> = times.filter(|at| !is_named(columns, *at)).collect();
    if let Some(first) = times.first() {
        let now = now::<E>(*first)?;
        let times = times.into_iter();
        given.extend(times.map(|column| (column, Term::Value(now.clone()))));
    }
    Ok(given)
}

/// Refuses columns that cannot be written, and rows that would lack one.
fn check<E: Entity>(columns: &[Target]) -> Result<()> {
    let table = E::TABLE;
    for (at, Target { column, .. }) in columns.iter().enumerate() {
        if table.version == Some(*column) || table.is_given(*column) {
            return Err(refused::<E>(
                *column,
                "the column is kept by the library or the database, and cannot be inserted into",
            ));
        }
        if is_named(&columns[..at], *column) {
            return Err(refused::<E>(
                *column,
                "the column is named twice: each takes one of the values that are selected",
            ));
        }
    }
    for (at, column) in table.columns.iter().enumerate() {
        if !is_named(columns, at) && !comes_by_itself::<E>(at, column) {
            return Err(refused::<E>(
                at,
                "a row cannot be without this column, and SQL has no value for it: select one, and name the column",
            ));
        }
    }
    Ok(())
}

/// The table and its key, if rows come without it and SQLite is to give it. Whether it does is known where the table is: one
/// that another program made may have a key that is no rowid.
fn unkeyed<E: Entity>(columns: &[Target]) -> Option<(&'static str, &'static str)> {
    let table = E::TABLE;
    let key = table.writer_key()?;
    let column = &table.columns[key];
    let is_asked = is_rowid::<E>(key, column) && column.default.is_none();
    (is_asked && !is_named(columns, key)).then_some((table.name, column.name))
}

/// Whether the column is a key that is the rowid, as the library makes tables.
fn is_rowid<E: Entity>(at: usize, column: &ColumnDef) -> bool {
    let table = E::TABLE;
    table.writer_key() == Some(at)
        && table.key_origin == KeyOrigin::Writer
        && column.storage == Storage::Integer
        && !table.without_rowid
}

/// Whether a row that is inserted without the column is complete.
fn comes_by_itself<E: Entity>(at: usize, column: &ColumnDef) -> bool {
    let table = E::TABLE;
    let is_kept = [
        table.version,
        table.commit_seq,
        table.created_at,
        table.updated_at,
    ]
    .contains(&Some(at));
    is_rowid::<E>(at, column)
        || is_kept
        || column.nullable
        || column.default.is_some()
        || column.generated.is_some()
}

fn check_value<E: Entity>(column: usize, term: &Term) -> Result<()> {
    if let Term::Value(Value::Integer(key)) = term
        && TEMPORARY_KEYS.contains(key)
        && E::TABLE.key_source(column).is_some()
    {
        return Err(Error::new(
            ErrorKind::Value,
            "holds a temporary key: save the entity that it is of first",
        )
        .with_table(E::TABLE.name)
        .with_column(E::TABLE.columns[column].name));
    }
    Ok(())
}

fn is_named(columns: &[Target], column: usize) -> bool {
    columns.iter().any(|target| target.column == column)
}

fn refused<E: Entity>(column: usize, message: &'static str) -> Error {
    Error::new(ErrorKind::Model, message)
        .with_table(E::TABLE.name)
        .with_column(E::TABLE.columns[column].name)
}

impl<E, S: Clone> Clone for Insert<E, S> {
    fn clone(&self) -> Self {
        Self {
            columns: self.columns.clone(),
            rows: self.rows.clone(),
            cost: self.cost,
            returning: self.returning.clone(),
            entity: PhantomData,
        }
    }
}

impl<E: Entity, S: Clone> fmt::Debug for Insert<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clone().into_tree(None) {
            Ok(tree) => write!(f, "Insert({})", tree.into_statement()),
            Err(error) => write!(f, "Insert({error:?})"),
        }
    }
}
