//! Pages by the key of their last row, not by its number.

use std::{fmt, future::Future, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    entity::Entity,
    error::{Error, ErrorKind, Result},
    query::{Query, Selection, condition::Invalid, table_sql::TableSql},
    sql::{Comparison, Direction, Executor, OrderTerm, Predicate, Reads, Select, Term},
    value::{Row, Value},
};

/// A query of which one page is read; made by [`Query::page`].
#[must_use = "a page does nothing until it is read"]
#[derive(Debug)]
pub struct Paged<E: Entity, S: Selection<E>> {
    query: Query<E, S>,
    cursor: Option<Cursor>,
    size: u64,
}

/// Some rows of a query, and where the others begin.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{Cursor, Page, Paged};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
/// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
/// # }
/// # ctx.save_changes().await?;
/// let names = || Item::query().order_by(Item::NAME.asc()).select(Item::NAME);
/// let paged: Paged<Item, _> = names().page(None, 2);
/// let first: Page<String> = paged.read(&db).await?;
/// let second = names().page(first.next.clone(), 2).read(&db).await?;
/// assert_eq!((second.items.len(), second.next), (1, None));
/// let back = names().page(second.previous, 2).read(&db).await?;
/// assert_eq!(back.items, first.items);
/// assert!("made up".parse::<Cursor>().is_err());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The rows, in the query's order.
    pub items: Vec<T>,
    /// Where the next page begins; `None` if this is the last.
    pub next: Option<Cursor>,
    /// Where the page before begins, going backwards; `None` if this is the first.
    pub previous: Option<Cursor>,
}

/// A place between two rows of a query: what it is sorted by in the row before, or after. Its text form is one word that
/// is safe in an address; it is not encrypted.
#[derive(Clone, PartialEq)]
pub struct Cursor {
    backwards: bool,
    /// Of the table and the order that it was made for.
    fingerprint: u64,
    values: Vec<Value>,
}

/// # Pages
impl<E: Entity, S: Selection<E>> Query<E, S> {
    /// Reads one page of at most so many rows: the first, or the one that a cursor of another page leads to.
    ///
    /// The primary key is added to the order as its last part, so that no row is skipped or read twice because others
    /// are equal to it, or because rows were inserted or deleted before it. NULLs have their place in the order as
    /// [`asc`](crate::entity::Column::asc) and [`desc`](crate::entity::Column::desc) say.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, rating: Option<i64> }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # for rating in [Some(1), None, Some(1), Some(2)] {
    /// #     ctx.add(Item { id: 0, rating });
    /// # }
    /// # ctx.save_changes().await?;
    /// let best = Item::query().order_by(Item::RATING.desc());
    /// let first = best.clone().page(None, 3).read(&db).await?;
    /// let address = first.next.expect("there are four").to_string();
    /// let second = best.page(Some(address.parse()?), 3).read(&db).await?;
    /// assert_eq!((second.items.len(), second.items[0].rating), (1, None));
    /// # Ok(()) }
    /// ```
    pub fn page(self, cursor: impl Into<Option<Cursor>>, size: u64) -> Paged<E, S> {
        Paged {
            query: self,
            cursor: cursor.into(),
            size,
        }
    }
}

impl<E: Entity, S: Selection<E>> Paged<E, S> {
    /// The same page of what another selection is made to.
    pub(crate) fn try_select<N: Selection<E>>(
        self,
        make: impl FnOnce(S) -> Result<N>,
    ) -> Result<Paged<E, N>> {
        Ok(Paged {
            query: self.query.try_select(make)?,
            cursor: self.cursor,
            size: self.size,
        })
    }

    /// Reads the page.
    ///
    /// # Errors
    ///
    /// Those of [`Query::all`]; kind [`ErrorKind::Refused`] if the cursor is one of a query over another table or with
    /// another order, if the query has a limit, an offset, or groups, or if the size is 0.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn read<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Page<S::Output>>> + Send {
        let Self {
            mut query,
            cursor,
            size,
        } = self;
        let (backwards, had_cursor) = (
            cursor.as_ref().is_some_and(|it| it.backwards),
            cursor.is_some(),
        );
        let shape = query.keyset(cursor.as_ref(), size);
        let (fingerprint, width) = shape.as_ref().map_or((0, 0), |it| *it);
        if let Err(invalid) = shape {
            query.conditions = query.conditions.and(Err(invalid));
        }
        let terms = query.order.iter().map(|order| order.term.clone()).collect();
        let keyed = query.replace(|selection| Keyed { selection, terms });
        keyed.run(executor, move |mut rows| {
            let wanted = usize::try_from(size).unwrap_or(usize::MAX);
            let has_more = rows.len() > wanted;
            rows.truncate(wanted);
            if backwards {
                rows.reverse();
            }
            let at = |row: Option<&(S::Output, Vec<Value>)>, backwards| {
                row.filter(|(_, values)| values.len() == width)
                    .map(|(_, values)| Cursor {
                        backwards,
                        fingerprint,
                        values: values.clone(),
                    })
            };
            let (has_next, has_previous) = if backwards {
                (had_cursor, has_more)
            } else {
                (has_more, had_cursor)
            };
            // Where all rows are gone meanwhile the way back is the one that led here.
            let back = (cursor.filter(|_| rows.is_empty())).map(|cursor| Cursor {
                backwards: !cursor.backwards,
                ..cursor
            });
            let (back_next, back_previous) = if backwards {
                (back, None)
            } else {
                (None, back)
            };
            Ok(Page {
                next: has_next
                    .then(|| at(rows.last(), false))
                    .flatten()
                    .or(back_next),
                previous: (has_previous.then(|| at(rows.first(), true)).flatten())
                    .or(back_previous),
                items: rows.into_iter().map(|(item, _)| item).collect(),
            })
        })
    }
}

impl<E: Entity, S: Selection<E>> Query<E, S> {
    /// Completes the order, and begins where the cursor is; gives the fingerprint, and how many values it is sorted by.
    fn keyset(&mut self, cursor: Option<&Cursor>, size: u64) -> Result<(u64, usize), Invalid> {
        if self.limit.is_some() || self.offset > 0 || size == 0 {
            return Err(Invalid::Refused(
                "a page has a size of one row or more, and its query neither `limit` nor `offset`",
            ));
        }
        if self.distinct || !self.group.is_empty() {
            return Err(Invalid::Refused(
                "pages are of rows, each of which has a key: `distinct` and `group_by` are not taken",
            ));
        }
        let mut read = Vec::new();
        self.selection.terms(&mut read)?;
        let is_of_many = |order: &OrderTerm| order.term.aggregates() || order.term.looks_around();
        if !self.having.is_empty()
            || self.order.iter().any(is_of_many)
            || read
                .iter()
                .any(|term| term.aggregates() || term.looks_around())
        {
            return Err(Invalid::Refused(
                "pages are of rows, and sorted by what is known of each row alone: neither aggregates nor windows are taken",
            ));
        }
        // In the direction of the last part an index that ends with the key serves all.
        let direction = (self.order.last()).map_or(Direction::Ascending, |last| last.direction);
        for key in E::TABLE.key_columns() {
            let term = Term::Column(key.name);
            if !self.order.iter().any(|order| order.term == term) {
                self.order.push(OrderTerm { term, direction });
            }
        }
        let fingerprint = fingerprint::<E>(&self.order);
        self.limit = Some(size.saturating_add(1));
        if let Some(cursor) = cursor {
            if cursor.fingerprint != fingerprint || cursor.values.len() != self.order.len() {
                return Err(Invalid::Refused(
                    "the cursor is one of a query over another table, or with another order",
                ));
            }
            if cursor.backwards {
                for order in &mut self.order {
                    order.direction = order.direction.reversed();
                }
            }
            let after = after::<E>(&self.order, &cursor.values);
            if let Ok(conditions) = &mut self.conditions {
                conditions.push(after);
            }
        }
        Ok((fingerprint, self.order.len()))
    }
}

/// That a row comes after one with these values.
fn after<E: Entity>(order: &[OrderTerm], values: &[Value]) -> Predicate {
    let mut any = Vec::new();
    for (position, (term, value)) in order.iter().zip(values).enumerate() {
        let mut all: Vec<_> = (order.iter().zip(values).take(position))
            .map(|(term, value)| same(term, value))
            .collect();
        let Some(beyond) = beyond(term, value, is_required::<E>(term)) else {
            continue;
        };
        all.push(beyond);
        any.push(Predicate::All(all));
    }
    let after = Predicate::Any(any);
    // By the first part alone an index knows where to begin.
    match (order.first(), values.first()) {
        (Some(first), Some(value)) => match not_before(first, value, is_required::<E>(first)) {
            Some(bound) => bound.and(after),
            None => after,
        },
        _ => after,
    }
}

fn same(order: &OrderTerm, value: &Value) -> Predicate {
    match value {
        Value::Null => is_null(order, false),
        value => compare(order, Comparison::Equal, value),
    }
}

/// NULL is less than everything.
fn beyond(order: &OrderTerm, value: &Value, is_required: bool) -> Option<Predicate> {
    match (order.direction, value) {
        (Direction::Ascending, Value::Null) => Some(is_null(order, true)),
        (Direction::Ascending, value) => Some(compare(order, Comparison::Greater, value)),
        (Direction::Descending, Value::Null) => None,
        (Direction::Descending, value) if is_required => {
            Some(compare(order, Comparison::Less, value))
        }
        (Direction::Descending, value) => {
            Some(compare(order, Comparison::Less, value).or(is_null(order, false)))
        }
    }
}

fn not_before(order: &OrderTerm, value: &Value, is_required: bool) -> Option<Predicate> {
    match (order.direction, value) {
        (Direction::Ascending, Value::Null) => None,
        (Direction::Ascending, value) => Some(compare(order, Comparison::GreaterOrEqual, value)),
        (Direction::Descending, Value::Null) => Some(is_null(order, false)),
        (Direction::Descending, value) if is_required => {
            Some(compare(order, Comparison::LessOrEqual, value))
        }
        // NULLs come after it, and would be left out.
        (Direction::Descending, _) => None,
    }
}

/// Whether it is a column that is never NULL.
fn is_required<E: Entity>(order: &OrderTerm) -> bool {
    let mut columns = E::TABLE.columns.iter();
    matches!(order.term, Term::Column(name) if columns.any(|column| column.name == name && !column.nullable))
}

fn compare(order: &OrderTerm, comparison: Comparison, value: &Value) -> Predicate {
    Predicate::Compare {
        term: order.term.clone(),
        comparison,
        with: Term::Value(value.clone()),
    }
}

fn is_null(order: &OrderTerm, negated: bool) -> Predicate {
    Predicate::Null {
        term: order.term.clone(),
        negated,
    }
}

/// A number for the table and the order, the same in every process (FNV-1a of its text).
fn fingerprint<E: Entity>(order: &[OrderTerm]) -> u64 {
    let select = Select {
        order: order.to_vec(),
        ..Select::of(
            E::TABLE.name,
            Term::All(TableSql::of(E::TABLE).columns.clone()),
        )
    };
    let statement = select.into_rows();
    let ordered = statement.text.find(" ORDER BY ").unwrap_or_default();
    let shape = E::TABLE
        .name
        .bytes()
        .chain(statement.text[ordered..].bytes());
    let args = format!("{:?}", statement.args);
    (shape.chain(args.bytes())).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A selection, and with each row what it is sorted by.
#[derive(Debug, Clone)]
struct Keyed<S> {
    selection: S,
    terms: Vec<Term>,
}

/// How many columns a keyset may have at most is not known to the type: it stands at the end, and its length is what the
/// row has beyond the rest.
const MOST_TERMS: usize = 64;

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, S: Selection<E>> Selection<E> for Keyed<S> {
    type Output = (S::Output, Vec<Value>);
    type Partial = (S::Partial, Vec<Value>);
    type Prepared = Keyed<S::Prepared>;
    const FLAT: bool = S::FLAT;

    fn prepare(self) -> Result<Self::Prepared, Invalid> {
        Ok(Keyed {
            selection: self.selection.prepare()?,
            terms: self.terms,
        })
    }

    fn width() -> usize {
        S::width() + 1 + MOST_TERMS
    }

    fn terms(&self, terms: &mut Vec<Term>) -> Result<(), Invalid> {
        if self.terms.len() > MOST_TERMS {
            return Err(Invalid::Refused(
                "a page is sorted by 64 expressions at most",
            ));
        }
        self.selection.terms(terms)?;
        let count = i64::try_from(self.terms.len()).unwrap_or(0);
        terms.push(Term::Value(Value::Integer(count)));
        terms.extend(self.terms.iter().cloned());
        Ok(())
    }

    fn decode(row: &dyn Row, at: usize) -> Result<Self::Partial> {
        let partial = S::decode(row, at)?;
        let first = at + S::width();
        let unreadable = |error: crate::value::ValueError| {
            Error::new(
                ErrorKind::Decode,
                format!("what the page is sorted by: {error}"),
            )
            .with_table(E::TABLE.name)
        };
        let count = match row.value(first).to_value().map_err(unreadable)? {
            Value::Integer(count) => usize::try_from(count).unwrap_or(0),
            _ => 0,
        };
        let values = (1..=count).map(|number| row.value(first + number).to_value());
        let values = values.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
        Ok((partial, values))
    }

    fn finish_one((partial, values): Self::Partial) -> Result<Self::Output> {
        Ok((S::finish_one(partial)?, values))
    }

    fn finish(
        &self,
        partials: Vec<Self::Partial>,
        reads: &mut dyn Reads,
    ) -> Result<Vec<Self::Output>> {
        let (partials, values): (Vec<_>, Vec<_>) = partials.into_iter().unzip();
        let outputs = self.selection.finish(partials, reads)?;
        Ok(outputs.into_iter().zip(values).collect())
    }
}

/// Says which form the rest has; another one would have another number.
const VERSION: u8 = 1;

/// Shows no values.
impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("backwards", &self.backwards)
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![VERSION, u8::from(self.backwards)];
        bytes.extend(self.fingerprint.to_be_bytes());
        for value in &self.values {
            let (class, content) = match value {
                Value::Null => (0, Vec::new()),
                Value::Integer(integer) => (1, integer.to_be_bytes().to_vec()),
                Value::Real(real) => (2, real.to_bits().to_be_bytes().to_vec()),
                Value::Text(text) => (3, text.clone().into_bytes()),
                Value::Blob(blob) => (4, blob.clone()),
                Value::Unread => return Err(fmt::Error),
            };
            bytes.push(class);
            if class > 2 {
                let length = u32::try_from(content.len()).map_err(|_| fmt::Error)?;
                bytes.extend(length.to_be_bytes());
            }
            bytes.extend(content);
        }
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// # Errors
///
/// Kind [`ErrorKind::Value`] for text that is no cursor, or one of another version of the library.
impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        URL_SAFE_NO_PAD
            .decode(text)
            .ok()
            .and_then(|bytes| Self::from_bytes(&bytes))
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Value,
                    "the text is no cursor of a page, or one of another version: begin with the first page",
                )
            })
    }
}

impl Cursor {
    /// A place by the key alone.
    pub(crate) const fn of_key(values: Vec<Value>) -> Self {
        Self {
            backwards: false,
            fingerprint: 0,
            values,
        }
    }

    /// What it is sorted by there.
    pub(crate) fn into_values(self) -> Vec<Value> {
        self.values
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[version, backwards], rest) = bytes.split_first_chunk::<2>()?;
        let (fingerprint, mut rest) = rest.split_first_chunk::<8>()?;
        if version != VERSION || backwards > 1 {
            return None;
        }
        let mut values = Vec::new();
        while let Some((class, content)) = rest.split_first() {
            let (value, after) = value(*class, content)?;
            values.push(value);
            rest = after;
        }
        Some(Self {
            backwards: backwards == 1,
            fingerprint: u64::from_be_bytes(*fingerprint),
            values,
        })
    }
}

fn value(class: u8, content: &[u8]) -> Option<(Value, &[u8])> {
    match class {
        0 => Some((Value::Null, content)),
        1 => {
            let (integer, rest) = content.split_first_chunk::<8>()?;
            Some((Value::Integer(i64::from_be_bytes(*integer)), rest))
        }
        2 => {
            let (bits, rest) = content.split_first_chunk::<8>()?;
            let real = f64::from_bits(u64::from_be_bytes(*bits));
            (!real.is_nan()).then_some((Value::Real(real), rest))
        }
        3 | 4 => {
            let (length, rest) = content.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            let (bytes, rest) = rest.split_at_checked(length)?;
            if class == 4 {
                return Some((Value::Blob(bytes.to_vec()), rest));
            }
            let text = String::from_utf8(bytes.to_vec()).ok()?;
            (!text.contains('\0')).then_some((Value::Text(text), rest))
        }
        _ => None,
    }
}
