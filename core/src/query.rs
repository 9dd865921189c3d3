//! Typed queries: the methods of an entity's columns make conditions, a [`Query`] gathers them and runs.
//!
//! ```
//! use anabranch::{entity::{Column, Entity}, query::Query};
//!
//! fn cheap<E: Entity>(name: Column<E, String>, price: Column<E, i64>) -> Query<E> {
//!     Query::new()
//!         .filter(name.starts_with("tea").and(price.lt(500)))
//!         .order_by([price.desc(), name.asc()])
//!         .limit(20)
//! }
//! ```
//!
//! Values never become part of a statement's text: they are its arguments, so the text of a query depends on its
//! shape alone and is prepared once. That holds for lists too, whatever their length.

mod aggregates;
mod arithmetic;
mod case;
mod change;
mod columns;
mod compound;
mod condition;
mod dates;
mod derived;
mod exact_text;
mod fetch;
mod filters;
mod find;
mod fragment;
mod grouping;
mod including;
mod insert;
mod json_field;
mod json_list;
mod json_path;
mod named_row;
mod nullable;
mod operand;
mod order_by;
mod outer;
mod page;
mod part;
mod raw;
mod recursion;
mod relation;
mod route;
mod run;
mod selection;
mod step;
mod subquery;
mod table_sql;
mod text;
mod through;
mod upsert;
mod window;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use self::{
    aggregates::count,
    arithmetic::{Number, Summed},
    case::{Case, case},
    change::{Delete, Update},
    compound::Compound,
    condition::Condition,
    dates::{Dated, Timed, now},
    fetch::{Begun, Fetch, OfEach},
    find::find,
    fragment::{Argument, Arguments, List, fragment, list},
    insert::{Insert, Takes},
    json_field::{JsonField, JsonPart},
    json_list::JsonList,
    json_path::{JsonDocument, JsonScalar},
    named_row::by_names,
    nullable::Nullable,
    operand::Operand,
    order_by::{OrderBy, Orders},
    outer::outer,
    page::{Cursor, Page, Paged},
    part::{Computed, Expr, Part, value},
    raw::{FromRow, RawQuery, raw},
    recursion::ToItself,
    relation::{Narrowed, Reached, Related, Relation},
    selection::{Make, Projection, Selection, Whole, With, made, projected},
    subquery::exists,
    text::Text,
    through::{Through, Via},
    upsert::{Many, One, Upsert, Upserted, upsert, upsert_all},
    window::{Bound, Over, cume_dist, dense_rank, ntile, percent_rank, rank, row_number},
};
pub(crate) use self::{
    condition::Invalid,
    fetch::{Joined, most_keys},
    find::{by_key, found_by_key},
    including::Included,
    step::Step,
    table_sql::TableSql,
};
pub use anabranch_macros::{FromRow, JsonFields, Projection};

use std::{fmt, marker::PhantomData};

use crate::{
    entity::{Column, Entity},
    error::Error,
    query::{condition::Shape, filters::Lifted},
    sql::{OrderTerm, Predicate, Source, Term},
};

/// A query over the rows of entity `E`; a description that runs nothing until one of its ends is called, and may be
/// cloned to be run more than once.
///
/// `S` is what it reads of each row: the [`Whole`], until [`select`](Self::select), [`project`](Self::project) or
/// [`with`](Self::with) says otherwise.
#[must_use = "a query does nothing until it is run"]
pub struct Query<E, S = Whole> {
    selection: S,
    /// Or what is wrong with one of them, or with the order.
    conditions: Result<Vec<Predicate>, Invalid>,
    distinct: bool,
    group: Vec<Term>,
    having: Vec<Predicate>,
    order: Vec<OrderTerm>,
    limit: Option<u64>,
    offset: u64,
    lifted: Lifted,
    /// Rows that are read instead of the table's.
    source: Option<Source>,
    /// The deferred columns that the whole of a row is read with.
    included: Included,
    /// How deep the deepest part is, but for what is read.
    shape: Shape,
    entity: PhantomData<fn() -> E>,
}

impl<E: Entity> Query<E> {
    /// All rows of the table.
    pub const fn new() -> Self {
        Self {
            selection: Whole,
            conditions: Ok(Vec::new()),
            distinct: false,
            group: Vec::new(),
            having: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: 0,
            lifted: Lifted::None,
            included: Included::NONE,
            source: None,
            shape: Shape::FLAT,
            entity: PhantomData,
        }
    }

    /// The rows that SQL of the application selects, which have the names of the entity's columns, in any order and maybe
    /// with others beside them. It is a query like any other then: narrowed, sorted, with what relations lead to.
    ///
    /// The text is a part of the program. `{}` stands where each argument does, `{0}` or `{1}` for one by its position;
    /// `{{` is a brace.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// #[derive(Debug, Entity)]
    /// struct Folder {
    ///     #[entity(id)]
    ///     id: i64,
    ///     name: String,
    ///     #[entity(references = Folder, index)]
    ///     parent_id: Option<i64>,
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Folder>().await?;
    /// # let mut ctx = db.context();
    /// # let top = ctx.add(Folder { id: 0, name: "top".into(), parent_id: None });
    /// # ctx.add(Folder { id: 0, name: "below".into(), parent_id: Some(ctx[top].id) });
    /// # ctx.save_changes().await?;
    /// # let top = ctx[top].id;
    /// let below = Query::<Folder>::from_sql(
    ///     "WITH RECURSIVE below AS (
    ///          SELECT * FROM folder WHERE parent_id = {}
    ///          UNION ALL SELECT folder.* FROM folder JOIN below ON folder.parent_id = below.id)
    ///      SELECT * FROM below",
    ///     (top,),
    /// );
    /// let named = below.filter(Folder::NAME.starts_with("b")).all(&db).await?;
    /// assert_eq!(named.len(), 1);
    /// # Ok(()) }
    /// ```
    pub fn from_sql(sql: &'static str, args: impl Arguments<E>) -> Self {
        let mut query = Self::new();
        match fragment::source(sql, args) {
            Ok((pieces, shape)) => {
                query.source = Some(Source::Sql(pieces));
                query.shape = shape;
            }
            Err(invalid) => query.conditions = Err(invalid),
        }
        query
    }
}

/// # Building it
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # #[entity(filter(live = Note::live), filter(short = Note::short))]
/// # struct Note { #[entity(id)] id: i64, text: String, deleted: bool }
/// # impl Note {
/// #     fn live() -> Condition<Self> { Self::DELETED.eq(false) }
/// #     fn short() -> Condition<Self> { Self::TEXT.char_length().lt(9) }
/// # }
/// #[derive(Debug, PartialEq, Projection)]
/// #[projection(entity = Note)]
/// struct View {
///     text: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Note>().await?;
/// # let mut ctx = db.context();
/// # for (text, deleted) in [("a", false), ("b", false), ("b", true), ("a long note", false)] {
/// #     ctx.add(Note { id: 0, text: text.into(), deleted });
/// # }
/// # ctx.save_changes().await?;
/// let notes = || Note::query().order_by(Note::ID.asc());
/// assert_eq!(notes().offset(1).limit(5).project::<View>().all(&db).await?, [View { text: "b".into() }]);
/// assert_eq!(notes().without_filter("live").all(&db).await?.len(), 3);
/// let texts = Note::query().without_filters().select(Note::TEXT).distinct().all(&db).await?;
/// assert_eq!(texts.len(), 3);
/// # Ok(()) }
/// ```
impl<E: Entity, S> Query<E, S> {
    /// Only the rows that fulfil this condition too.
    pub fn filter(mut self, condition: Condition<E>) -> Self {
        self.deepen(condition.shape());
        if let Ok(conditions) = &mut self.conditions {
            match condition.into_predicate() {
                Ok(predicate) if predicate.aggregates() => {
                    self.conditions = Err(Invalid::Refused(
                        "a row cannot be filtered by an aggregate: use `having`",
                    ));
                }
                Ok(predicate) if predicate.looks_around() => {
                    self.conditions = Err(Invalid::Refused(
                        "a row cannot be filtered by what is computed `over` others: select it, or filter by it in `raw` SQL",
                    ));
                }
                Ok(predicate) => conditions.push(predicate),
                Err(invalid) => self.conditions = Err(invalid),
            }
        }
        self
    }

    /// Only the rows that fulfil this condition too, if there is one: for search forms of which most fields are empty.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64 }
    /// fn search(name: Option<&str>, most: Option<i64>) -> Query<Item> {
    ///     Item::query()
    ///         .filter_if(name.map(|name| Item::NAME.contains(name)))
    ///         .filter_if(most.map(|most| Item::PRICE.le(most)))
    /// }
    /// assert!(!search(None, Some(5)).sql().unwrap().to_string().contains("LIKE"));
    /// ```
    pub fn filter_if(self, condition: Option<Condition<E>>) -> Self {
        match condition {
            Some(condition) => self.filter(condition),
            None => self,
        }
    }

    /// Finds also what the entity's filter of this name leaves out. A name that is none fails the query with kind
    /// [`ErrorKind::Model`](crate::error::ErrorKind::Model).
    pub fn without_filter(mut self, name: &'static str) -> Self {
        self.lifted.add(name);
        self
    }

    /// Finds also what any of the entity's filters leaves out. What relations lead to keeps its own: those are lifted there,
    /// as in `.with(Order::LINES.without_filters())`.
    pub fn without_filters(mut self) -> Self {
        self.lifted = Lifted::All;
        self
    }

    /// Sorts by these columns where those given before are equal. Takes one, an array, or any other list.
    ///
    /// Without an order SQLite gives rows as it finds them, which may differ from one run to the next; so it may
    /// with rows that are equal in all columns of the order. End with the key where it matters.
    pub fn order_by(mut self, orders: impl Orders<E>) -> Self {
        for order in orders.orders() {
            let (term, shape) = order.into_parts();
            self.deepen(shape);
            match term {
                Ok(term) => self.order.push(term),
                Err(invalid) => self.conditions = self.conditions.and(Err(invalid)),
            }
        }
        self
    }

    /// No more than this many rows. A later limit replaces an earlier one.
    pub const fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Leaves out this many rows at the beginning. A later offset replaces an earlier one.
    pub const fn offset(mut self, rows: u64) -> Self {
        self.offset = rows;
        self
    }

    /// Rows that are equal in all that is read of them are one.
    pub const fn distinct(mut self) -> Self {
        self.distinct = true;
        self
    }

    /// Makes one row of all that are equal in this, and in what was given before. What is read of it then is what it is
    /// grouped by, and [aggregates](crate::query::count) of the rest.
    pub fn group_by<T, P: Part>(mut self, expression: Column<E, T, P>) -> Self {
        let node = expression.node();
        self.deepen(node.shape);
        match node.shape.check().and(node.term) {
            Ok(term) if term.aggregates() || term.looks_around() => {
                self.conditions = self.conditions.and(Err(Invalid::Refused(
                    "rows are grouped by what is known of each alone: neither aggregates nor windows are taken",
                )));
            }
            Ok(term) => self.group.push(term),
            Err(invalid) => self.conditions = self.conditions.and(Err(invalid)),
        }
        self
    }

    /// Only the groups that fulfil this condition too.
    pub fn having(mut self, condition: Condition<E>) -> Self {
        self.deepen(condition.shape());
        match condition.into_predicate() {
            Ok(predicate) if predicate.looks_around() => {
                self.conditions = self.conditions.and(Err(Invalid::Refused(
                    "a group cannot be filtered by what is computed `over` others: select it, or filter by it in `raw` SQL",
                )));
            }
            Ok(predicate) => self.having.push(predicate),
            Err(invalid) => self.conditions = self.conditions.and(Err(invalid)),
        }
        self
    }

    /// Reads this of each row, instead of what was to be read before.
    pub fn select<N: Selection<E>>(self, selection: N) -> Query<E, N> {
        self.replace(|_| selection)
    }

    /// The same query of what another selection is made to.
    pub(crate) fn try_select<N: Selection<E>>(
        self,
        make: impl FnOnce(S) -> Result<N, Error>,
    ) -> Result<Query<E, N>, Error>
    where
        S: Clone,
    {
        let selection = make(self.selection.clone())?;
        Ok(self.select(selection))
    }

    /// Reads each row as a struct that derives [`Projection`].
    pub fn project<P: Projection<Entity = E>>(self) -> Query<E, impl Selection<E, Output = P>> {
        self.select(P::selection())
    }

    /// Reads with each entity what a relation leads to: pairs, or tuples after several of these. However many rows there
    /// are, each to-many relation is one statement more, on the same snapshot; the others are joined.
    pub fn with<L>(self, load: L) -> Query<E, S::Both>
    where
        S: With<L>,
    {
        self.replace(|selection| selection.with(load))
    }

    const fn deepen(&mut self, shape: Shape) {
        self.shape = self.shape.and(shape);
    }

    /// How deep it is as a part of another query.
    fn shape(&self) -> Shape
    where
        S: Selection<E>,
    {
        self.shape.and(self.selection.shape())
    }

    fn replace<N>(self, selection: impl FnOnce(S) -> N) -> Query<E, N> {
        Query {
            selection: selection(self.selection),
            conditions: self.conditions,
            distinct: self.distinct,
            group: self.group,
            having: self.having,
            order: self.order,
            limit: self.limit,
            offset: self.offset,
            lifted: self.lifted,
            included: self.included,
            source: self.source,
            shape: self.shape,
            entity: PhantomData,
        }
    }
}

impl<E: Entity> Default for Query<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E, S: Clone> Clone for Query<E, S> {
    fn clone(&self) -> Self {
        Self {
            selection: self.selection.clone(),
            conditions: self.conditions.clone(),
            distinct: self.distinct,
            group: self.group.clone(),
            having: self.having.clone(),
            order: self.order.clone(),
            limit: self.limit,
            offset: self.offset,
            lifted: self.lifted.clone(),
            included: self.included,
            source: self.source.clone(),
            shape: self.shape,
            entity: PhantomData,
        }
    }
}

/// Shows the statement's text, or what is wrong with the query; no values.
impl<E: Entity, S: Selection<E>> fmt::Debug for Query<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sql() {
            Ok(statement) => write!(f, "Query({statement})"),
            Err(error) => write!(f, "Query({error:?})"),
        }
    }
}
