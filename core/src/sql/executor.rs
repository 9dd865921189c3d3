//! Where a query runs.

use std::{fmt, future::Future};

use futures_core::stream::BoxStream;

use crate::{error::Result, sql::Statement, value::Row};

/// How much a read may cost: decides whether it runs on the calling task or on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// A few rows by key or with a small limit, no large values: runs inline, under a budget.
    Small,
    /// Anything else: runs on a thread.
    Any,
}

/// A statement that only reads, and what to make of its rows.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{sql::{Cost, Executor, Read, Statement}, value::{ColumnType as _, Value}};
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
/// // Where the text is made while the program runs; else see `query::raw`.
/// let read = Read {
///     statement: Statement {
///         text: "SELECT price FROM item WHERE name = ?1".into(),
///         args: vec![Value::Text("tea".into())],
///     },
///     cost: Cost::Any,
///     entity: None,
///     decode: |row| i64::decode(row.value(0)).map_err(|error| Error::new(ErrorKind::Decode, error.to_string())),
/// };
/// assert_eq!(Executor::read(&db, read).await?, [3]);
/// # Ok(()) }
/// ```
pub struct Read<T> {
    /// The statement.
    pub statement: Statement,
    /// How much it may cost.
    pub cost: Cost,
    /// The table of an entity that is read by its key, which is what the arguments are then.
    pub entity: Option<&'static str>,
    /// Makes one item of a row. It may be called again for the same row: a read that outgrows its budget starts anew.
    pub decode: fn(&dyn Row) -> Result<T>,
}

impl<T> fmt::Debug for Read<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read")
            .field("statement", &self.statement)
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}

/// The items of a read as they arrive. Dropping it half-read stops the statement and frees its connection.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::sql::Rows;
/// use futures_util::TryStreamExt as _;
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
/// fn dear(db: &Database) -> Rows<'_, Item> {
///     Item::query().filter(Item::PRICE.gt(5)).stream(db)
/// }
/// let names: Vec<_> = dear(&db).map_ok(|item| item.name).try_collect().await?;
/// assert_eq!(names.len(), 2);
/// # Ok(()) }
/// ```
pub type Rows<'a, T> = BoxStream<'a, Result<T>>;

/// Runs statements one after the other, all on the same state of the database.
pub trait Reads {
    /// Runs a statement that only reads, and hands each row to `each`.
    ///
    /// # Errors
    ///
    /// Kind `Refused` for a text that is not one statement, or does more than read; what SQLite says of it otherwise,
    /// and what `each` says of a row.
    fn rows(
        &mut self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()>;
}

/// Work that reads, on what it is given, and makes something of it.
pub type ReadWork<T> = Box<dyn Fn(&mut dyn Reads) -> Result<T> + Send>;

/// Work that reads more than once: the later statements depend on what the earlier ones found.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{sql::{Cost, Executor, ReadTogether, ReadWork, Reads, Statement}, value::{Value, ValueRef}};
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
/// let work = |reads: &mut dyn Reads| {
///     let mut dearest = Value::Null;
///     let statement = Statement { text: "SELECT max(price) FROM item".into(), args: vec![] };
///     reads.rows(&statement, &mut |row| {
///         if let ValueRef::Integer(price) = row.value(0) {
///             dearest = Value::Integer(price);
///         }
///         Ok(())
///     })?;
///     let mut count = 0;
///     let statement = Statement { text: "SELECT id FROM item WHERE price = ?1".into(), args: vec![dearest] };
///     reads.rows(&statement, &mut |_| {
///         count += 1;
///         Ok(())
///     })?;
///     Ok(count)
/// };
/// let work: ReadWork<i64> = Box::new(work);
/// let together = ReadTogether { cost: Cost::Any, work };
/// assert_eq!(Executor::read_together(&db, together).await?, 2);
/// # Ok(()) }
/// ```
pub struct ReadTogether<T> {
    /// How much all of it may cost.
    pub cost: Cost,
    /// It may be run again from its start: work that outgrows its budget starts anew on a thread.
    pub work: ReadWork<T>,
}

impl<T> fmt::Debug for ReadTogether<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadTogether")
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}

/// Where a query can run: `&Database` (a read connection), `&mut *snapshot` (one state of the database), `&mut *tx`
/// (inside a transaction), or `&mut *s` (inside a session).
///
/// Each of its statements has to be a single one that only reads; others are refused before they run.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{error::Result, sql::Executor};
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
/// async fn cheapest<'c>(at: impl Executor<'c>) -> Result<Option<Item>> {
///     Item::query().order_by(Item::PRICE.asc()).first(at).await
/// }
/// assert_eq!(cheapest(&db).await?.map(|item| item.price), Some(3));
/// let inside = db.write(async |tx| cheapest(&mut *tx).await).await?;
/// assert_eq!(inside.map(|item| item.price), Some(3));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "a query cannot run on `{Self}`",
    label = "no place for a query to run",
    note = "write `&db` for a Database, `&mut *tx` for a transaction; into a context read with `query.load(&mut ctx)` and `ctx.find(key)`"
)]
pub trait Executor<'c>: Send + Sized {
    /// All items of a read.
    fn read<T: Send + 'static>(self, read: Read<T>) -> impl Future<Output = Result<Vec<T>>> + Send;

    /// Runs several reads that see one state of the database.
    fn read_together<T: Send + 'static>(
        self,
        reads: ReadTogether<T>,
    ) -> impl Future<Output = Result<T>> + Send;

    /// The items one after the other, without keeping them all in memory.
    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T>;
}
