//! Inserting a row, or changing the one that is there under the same unique key.

use std::{fmt, future::Future, marker::PhantomData, mem};

use chrono::Utc;
use futures_util::{FutureExt as _, future};

use crate::{
    entity::{self, Column, ColumnDef, Entity, IndexedBy, TableDef},
    error::{Error, ErrorKind, Result},
    query::{
        Operand,
        change::{self, Values},
        condition::Invalid,
        including, outer,
        table_sql::TableSql,
    },
    sql::{
        Arg, Batch, Comparison, Identifier, Insert, NewKey, Piece, Predicate, Select, Statement,
        Term, Write, WriteExecutor, Written,
    },
    value::{ColumnType, KeyOrigin, PrimaryKey as _, TEMPORARY_KEYS, Value, ValueRef},
};

/// An entity to be inserted, unless there is one under a unique key, made by [`upsert`]; or [`Many`] of them, made by
/// [`upsert_all`].
#[must_use = "an upsert does nothing until it is executed"]
pub struct Upsert<E, N = One> {
    entities: Vec<E>,
    number: PhantomData<fn() -> N>,
    on: Vec<usize>,
    /// The columns that become those of the entity; without it all that may.
    update: Option<Vec<usize>>,
    /// Those that become what an expression gives, or what is wrong with it.
    set: Vec<(usize, Result<Term, Invalid>)>,
}

/// An [`Upsert`] of one entity.
#[derive(Debug, Clone, Copy)]
pub struct One;

/// An [`Upsert`] of any number of entities.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{Many, Upsert, upsert_all};
///
/// # #[derive(Debug, Entity)]
/// # struct Word { #[entity(id)] id: i64, #[entity(unique)] text: String, count: i64 }
/// fn seen(words: Vec<Word>) -> Upsert<Word, Many> {
///     upsert_all(words).on(Word::TEXT).set(Word::COUNT, Word::COUNT + 1)
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Many;

/// The columns in which no two rows are equal.
struct UniqueKey {
    columns: &'static [usize],
    /// Of the rows for which this is true, as SQL.
    filter: Option<&'static str>,
}

impl UniqueKey {
    /// By what the row is found that is there.
    fn found(&self, table: &'static TableDef, values: &[Value]) -> Result<Vec<Predicate>> {
        if let Some(null) = self
            .columns
            .iter()
            .find(|column| values[**column].is_null())
        {
            return Err(Error::new(
                ErrorKind::Value,
                "a NULL equals nothing, so no row can be found by it: set the column that decides",
            )
            .with_table(table.name)
            .with_column(table.columns[*null].name));
        }
        let equal = self.columns.iter().map(|column| Predicate::Compare {
            term: Term::Column(table.columns[*column].name),
            comparison: Comparison::Equal,
            with: Term::Value(values[*column].clone()),
        });
        let filter = (self.filter)
            .map(|filter| Predicate::Term(Term::Fragment(vec![Piece::Sql(filter.into())])));
        Ok(equal.chain(filter).collect())
    }
}

/// What became of an [`Upsert`]: the row as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upserted<E> {
    /// There was none: it was inserted.
    Inserted(E),
    /// There was one, which was changed.
    Updated(E),
    /// There was one, in which nothing was to be changed.
    Existing(E),
}

impl<E> Upserted<E> {
    /// The row.
    #[must_use]
    pub fn into_inner(self) -> E {
        match self {
            Self::Inserted(row) | Self::Updated(row) | Self::Existing(row) => row,
        }
    }
}

/// Inserts an entity, or changes the row that is there under a unique key.
///
/// The row that is there keeps its primary key, and what refers to it: it is updated, never deleted and inserted again
/// as INSERT OR REPLACE would do. Which unique key is meant has to be said; a clash in another one is an error of kind
/// `Unique`. Filters that the entity declares do not apply: a row that they hide still has its key. A `version` is counted up if anything changes, `updated_at` set, `created_at` kept.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{Upserted, upsert};
///
/// # #[derive(Debug, Clone, PartialEq, Entity)]
/// # struct Customer { #[entity(id)] id: i64, #[entity(unique)] email: String, name: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Customer>().await?;
/// let ada = |name: &str| Customer { id: 0, email: "ada@example.org".into(), name: name.into() };
/// let first = upsert(ada("Ada")).on(Customer::EMAIL).execute(&db).await?;
/// assert!(matches!(first, Upserted::Inserted(_)));
/// let second = upsert(ada("Ada L.")).on(Customer::EMAIL).execute(&db).await?;
/// assert!(matches!(&second, Upserted::Updated(ada) if ada.name == "Ada L."));
/// let third = upsert(ada("A.")).on(Customer::EMAIL).keep().execute(&db).await?;
/// assert_eq!(third, Upserted::Existing(second.into_inner()));
/// # Ok(()) }
/// ```
pub fn upsert<E: Entity>(entity: E) -> Upsert<E> {
    Upsert::of(vec![entity])
}

/// The same of many entities: all or none of them, in their order, so that of two with one key the second finds the first.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::upsert_all;
///
/// # #[derive(Debug, Entity)]
/// # struct Word { #[entity(id)] id: i64, #[entity(unique)] text: String, count: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Word>().await?;
/// let words = "tea cake tea".split(' ').map(|text| Word { id: 0, text: text.into(), count: 1 });
/// let seen = upsert_all(words).on(Word::TEXT).set(Word::COUNT, Word::COUNT + 1).execute(&db).await?;
/// assert_eq!(seen.into_iter().map(|word| word.into_inner().count).collect::<Vec<_>>(), [1, 1, 2]);
/// # Ok(()) }
/// ```
pub fn upsert_all<E: Entity>(entities: impl IntoIterator<Item = E>) -> Upsert<E, Many> {
    Upsert::of(entities.into_iter().collect())
}

impl<E: Entity, N> Upsert<E, N> {
    pub(crate) const fn of(entities: Vec<E>) -> Self {
        Self {
            entities,
            number: PhantomData,
            on: Vec::new(),
            update: None,
            set: Vec::new(),
        }
    }

    /// The unique key that decides: a column that is unique, or, called again, another column of a unique index. Without
    /// it the primary key does.
    pub fn on<T>(mut self, column: Column<E, T>) -> Self {
        self.on.push(column.index());
        self
    }

    /// Of a row that is there this column becomes that of the entity; called again, another one too. Without it all do
    /// but the primary key, `created_at`, and what the library or the database keeps.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::{Upsert, Upserted, upsert};
    ///
    /// # #[derive(Debug, Entity)]
    /// # struct Page { #[entity(id)] id: i64, #[entity(unique)] address: String, title: String, note: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Page>().await?;
    /// fn seen(title: &str) -> Upsert<Page> {
    ///     let page = Page { id: 0, address: "/".into(), title: title.into(), note: String::new() };
    ///     upsert(page).on(Page::ADDRESS).update(Page::TITLE) // the note of a row that is there stays
    /// }
    /// seen("Home").execute(&db).await?;
    /// let again = seen("Welcome").execute(&db).await?;
    /// assert!(matches!(&again, Upserted::Updated(page) if page.title == "Welcome"));
    /// assert_eq!(again.into_inner().id, 1);
    /// # Ok(()) }
    /// ```
    pub fn update<T>(mut self, column: Column<E, T>) -> Self {
        self.update.get_or_insert_default().push(column.index());
        self
    }

    /// Of a row that is there this column becomes the value, or what an expression gives of that row, and no other column
    /// changes but those that are named.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::upsert;
    ///
    /// # #[derive(Debug, Entity)]
    /// # struct Word { #[entity(id)] id: i64, #[entity(unique)] text: String, count: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Word>().await?;
    /// let seen = || Word { id: 0, text: "tea".into(), count: 1 };
    /// for _ in 0..3 {
    ///     upsert(seen()).on(Word::TEXT).set(Word::COUNT, Word::COUNT + 1).execute(&db).await?;
    /// }
    /// assert_eq!(Word::query().one(&db).await?.count, 3);
    /// # Ok(()) }
    /// ```
    pub fn set<T: ColumnType>(mut self, column: Column<E, T>, value: impl Operand<E, T>) -> Self {
        let term = change::set_to(value).and_then(|term| {
            if term.aggregates() {
                return Err(Invalid::Refused(
                    "a column cannot be set to an aggregate of the rows: take a query `as_value`",
                ));
            }
            Ok(term)
        });
        self.set.push((column.index(), term));
        self.update.get_or_insert_default();
        self
    }

    /// Leaves a row that is there as it is.
    pub fn keep(mut self) -> Self {
        self.update = Some(Vec::new());
        self.set.clear();
        self
    }

    /// Two statements for each: read what is there, and insert or change it.
    fn into_write(mut self) -> Result<Write> {
        let on = self.unique_key()?;
        let updated = self.updated_columns(on.columns)?;
        let mut write = Write::from_batch(Batch::default());
        for entity in mem::take(&mut self.entities) {
            self.push(&mut write, entity, &on, &updated)?;
        }
        Ok(write)
    }

    fn push(
        &self,
        write: &mut Write,
        mut entity: E,
        on: &UniqueKey,
        updated: &[usize],
    ) -> Result<()> {
        let table = E::TABLE;
        let is_new_key = entity.key().is_unset() && table.shared_key().is_none();
        if is_new_key
            && table.key_origin == KeyOrigin::Context
            && let Some(key) = E::Key::generate()
        {
            entity.set_key(key);
        }
        let values = values(&entity)?;
        let all = Term::All(TableSql::of(table).columns.clone());
        let read = Select {
            conditions: on.found(table, &values)?,
            ..Select::of(table.name, all.clone())
        };
        let writer_key = table.writer_key().filter(|_| is_new_key);
        let position = write.batch.keys.len();
        write.batch.keys.extend(writer_key.map(|column| NewKey {
            table: table.name,
            column: table.columns[column].name,
            above: 0,
        }));
        let table_and_cost = (table.name, TableSql::of(table).row_cost);
        let read = read.into_rows();
        write.push(table_and_cost, read.text, arguments(read.args), true);
        let written: Vec<usize> = table.written_columns().collect();
        let given = |column: usize| Term::Value(values[column].clone());
        let insert = self.insert(on, updated, &written, given, Some(all))?;
        let insert = insert.into_statement(1);
        let given = written.iter().map(|column| {
            if writer_key == Some(*column) {
                Arg::Key(position)
            } else {
                Arg::Value(values[*column].clone())
            }
        });
        let rest = insert.args.into_iter().skip(written.len()).map(Arg::Value);
        write.push(
            table_and_cost,
            insert.text,
            given.chain(rest).collect(),
            true,
        );
        Ok(())
    }

    /// Inserts the row, or changes the one that is there if it differs.
    fn insert(
        &self,
        on: &UniqueKey,
        updated: &[usize],
        written: &[usize],
        given: impl Fn(usize) -> Term,
        returning: Option<Term>,
    ) -> Result<Insert> {
        let table = E::TABLE;
        let name = |column: &usize| table.columns[*column].name;
        let mut set = Vec::new();
        let mut differs = Vec::new();
        let given = updated.iter().map(|column| (*column, Ok(given(*column))));
        for (column, term) in given.chain(self.set.iter().cloned()) {
            let term = term?;
            outer::check(term.around(table.name))?;
            differs.push(Predicate::Compare {
                term: exact(&table.columns[column]),
                comparison: Comparison::Distinct,
                with: term.clone(),
            });
            set.push((column, term));
        }
        if !set.is_empty() {
            set.extend(change::kept::<E>(&set)?);
        }
        Ok(Insert {
            table: table.name,
            columns: written.iter().map(name).collect(),
            unique: on.columns.iter().map(name).collect(),
            filter: on.filter,
            set: (set.into_iter())
                .map(|(column, term)| (table.columns[column].name, term))
                .collect(),
            conditions: vec![Predicate::Any(differs)],
            returning,
        })
    }

    /// The statements that do it for each of these numbers of rows, whose values are their first arguments; and the columns
    /// that decide.
    pub(crate) fn into_statements<const COUNT: usize>(
        self,
        rows: [usize; COUNT],
    ) -> Result<([Statement; COUNT], &'static [usize])> {
        let table = E::TABLE;
        let on = self.unique_key()?;
        let updated = self.updated_columns(on.columns)?;
        let written: Vec<usize> = table.written_columns().collect();
        let given = |column: usize| {
            let name = Identifier(table.columns[column].name);
            Term::Fragment(vec![Piece::Sql(format!("excluded.{name}").into())])
        };
        let insert = self.insert(&on, &updated, &written, given, None)?;
        let statements = rows.map(|rows| insert.clone().into_statement(rows));
        Ok((statements, on.columns))
    }

    fn unique_key(&self) -> Result<UniqueKey> {
        let table = E::TABLE;
        let asked = if self.on.is_empty() {
            table.key
        } else {
            &self.on[..]
        };
        let is_same = |key: &[usize]| {
            key.len() == asked.len() && key.iter().all(|column| asked.contains(column))
        };
        // What the database computes is known only once the row is written.
        let is_computed = |column: &usize| table.columns[*column].generated.is_some();
        if let Some(columns) = table.unique_keys().find(|key| is_same(key))
            && !columns.iter().any(is_computed)
        {
            return Ok(UniqueKey {
                columns,
                filter: None,
            });
        }
        let partial = table.indexes.iter().find_map(|index| match index.on {
            IndexedBy::Columns(columns)
                if index.unique && is_same(columns) && !columns.iter().any(is_computed) =>
            {
                Some(UniqueKey {
                    columns,
                    filter: index.filter,
                })
            }
            _ => None,
        });
        partial.ok_or_else(|| {
            Error::new(
                ErrorKind::Model,
                "the columns of an upsert are no unique key that the application sets: name a column that is `unique`, all columns of a unique index, or the primary key",
            )
            .with_table(table.name)
        })
    }

    fn updated_columns(&self, on: &[usize]) -> Result<Vec<usize>> {
        let table = E::TABLE;
        let is_kept = |column: usize| {
            table.is_key(column)
                || table.version == Some(column)
                || table.commit_seq == Some(column)
                || table.columns[column].generated.is_some()
        };
        match &self.update {
            None => Ok((0..table.columns.len())
                .filter(|column| {
                    !is_kept(*column)
                        && !on.contains(column)
                        && table.created_at != Some(*column)
                        && table.updated_at != Some(*column)
                })
                .collect()),
            Some(asked) => {
                let set = self.set.iter().map(|(column, _)| column);
                match asked.iter().chain(set).find(|column| is_kept(**column)) {
                    None => Ok(asked.clone()),
                    Some(kept) => Err(Error::new(
                        ErrorKind::Model,
                        "an upsert cannot set this column: it is part of a key, or kept by the library or the database",
                    )
                    .with_table(table.name)
                    .with_column(table.columns[*kept].name)),
                }
            }
        }
    }
}

impl<E: Entity> Upsert<E> {
    /// Does it; on the database in a transaction of its own, committed when this returns.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::Model`] if the columns given to [`on`](Self::on) are no unique key of all rows, or one given to
    /// [`update`](Self::update) cannot be set; `Value` if a value cannot be stored, or the unique key has a NULL, which
    /// equals nothing; those of constraints; and those that writing has.
    ///
    /// # Cancel safety
    ///
    /// That of [`WriteExecutor::write`].
    pub fn execute<'c>(
        self,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<Upserted<E>>> + Send {
        match self.into_write() {
            Ok(write) => executor
                .write(write)
                .map(|written| upserted(&written?, 0))
                .left_future(),
            Err(error) => future::ready(Err(error)).right_future(),
        }
    }
}

impl<E: Entity> Upsert<E, Many> {
    /// Does it; on the database in one transaction, committed when this returns. What became of each, in their order.
    ///
    /// # Errors
    ///
    /// As [`Upsert::execute`] of one; then none was written.
    ///
    /// # Cancel safety
    ///
    /// That of [`WriteExecutor::write`].
    pub fn execute<'c>(
        self,
        executor: impl WriteExecutor<'c>,
    ) -> impl Future<Output = Result<Vec<Upserted<E>>>> + Send {
        let count = self.entities.len();
        match self.into_write() {
            Ok(_) if count == 0 => future::ready(Ok(Vec::new())).right_future(),
            Ok(write) => executor
                .write(write)
                .map(move |written| {
                    let written = written?;
                    (0..count)
                        .map(|number| upserted(&written, number))
                        .collect()
                })
                .left_future(),
            Err(error) => future::ready(Err(error)).right_future(),
        }
    }
}

/// The values to insert.
fn values<E: Entity>(entity: &E) -> Result<Vec<Value>> {
    let table = E::TABLE;
    let mut values = entity::encode(entity)?;
    if let Some(column) = table.version {
        values[column] = match values[column] {
            Value::Integer(version) if version > 0 => Value::Integer(version),
            _ => Value::Integer(1),
        };
    }
    if let Some(column) = table.commit_seq {
        values[column] = Value::Integer(0);
    }
    for column in [table.created_at, table.updated_at].into_iter().flatten() {
        if table.columns[column].is_unset_time(&values[column]) {
            values[column] = now::<E>(column)?;
        }
    }
    for (column, value) in values.iter().enumerate() {
        if let Value::Integer(integer) = value
            && TEMPORARY_KEYS.contains(integer)
            && table.key_source(column).is_some()
        {
            return Err(Error::new(
                ErrorKind::Value,
                "holds a temporary key: save the entity that it refers to first",
            )
            .with_table(table.name)
            .with_column(table.columns[column].name));
        }
    }
    Ok(values)
}

fn arguments(values: Vec<Value>) -> Vec<Arg> {
    values.into_iter().map(Arg::Value).collect()
}

pub(in crate::query) fn now<E: Entity>(column: usize) -> Result<Value> {
    let table = E::TABLE;
    (Utc::now().encode())
        .map_err(|error| Error::value(table.name, table.columns[column].name, &error))
}

/// The text of a column as it is: its collation may take others to be equal.
fn exact(column: &ColumnDef) -> Term {
    let term = Term::Column(column.name);
    if column.collate.is_none() {
        return term;
    }
    Term::Fragment(vec![
        Piece::Term(term),
        Piece::Sql(" COLLATE BINARY".into()),
    ])
}

fn upserted<E: Entity>(written: &Written, number: usize) -> Result<Upserted<E>> {
    let table = E::TABLE;
    let decoded = |row: Option<&[Value]>| -> Result<Option<E>> {
        row.map(|row| including::decode(&Values(row), 0))
            .transpose()
            .map_err(|error| change::unreadable::<E>(&error))
    };
    let found = decoded(written.rows(number * 2).next())?;
    let Some(mut row) = decoded(written.rows(number * 2 + 1).next())? else {
        return found.map(Upserted::Existing).ok_or_else(|| {
            Error::new(
                ErrorKind::Constraint,
                "the row was not inserted: a trigger (RAISE(IGNORE)) passed over it",
            )
            .with_table(table.name)
        });
    };
    // Stamped at the end of the transaction, after the row was told.
    if let (Some(column), Some(number)) = (table.commit_seq, written.receipt.commit_seq) {
        (row.assign(column, ValueRef::Integer(number)))
            .map_err(|error| Error::value(table.name, table.columns[column].name, &error))?;
    }
    let is_same = found.is_some_and(|found| found.key() == row.key());
    Ok(if is_same {
        Upserted::Updated(row)
    } else {
        Upserted::Inserted(row)
    })
}

impl<E, N> fmt::Debug for Upsert<E, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upsert")
            .field("on", &self.on)
            .field("update", &self.update)
            .finish_non_exhaustive()
    }
}
