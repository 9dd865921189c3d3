//! One entity by its key.

use std::future::Future;

use crate::{
    entity::Entity,
    error::{Error, Result},
    query::{Included, Query, including, run, table_sql, table_sql::TableSql},
    sql::{Cost, Executor, Read, Statement},
    value::{PrimaryKey, Row},
};

/// Reads the entity with this primary key, if there is one.
///
/// # Errors
///
/// Kind [`ErrorKind::Value`](crate::error::ErrorKind::Value) for a key that the column could not store,
/// [`ErrorKind::Decode`](crate::error::ErrorKind::Decode) for a stored row that does not fit the entity, and
/// whatever keeps the executor from reading.
///
/// # Cancel safety
///
/// Nothing is changed; the answer is lost.
///
/// # Examples
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::find;
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
/// assert_eq!(find::<Item>(&db, 1).await?.map(|item| item.name).as_deref(), Some("tea"));
/// assert!(Item::find(&db, 99).await?.is_none()); // what the derive makes of it
/// # Ok(()) }
/// ```
#[allow(
    clippy::needless_pass_by_value,
    reason = "callers mostly have a key at hand, not a place to borrow it from"
)]
#[track_caller]
pub fn find<'c, E: Entity>(
    executor: impl Executor<'c>,
    key: E::Key,
) -> impl Future<Output = Result<Option<E>>> + Send {
    run::read(executor, found_by_key::<E>(&key), |rows| {
        Ok(rows.into_iter().next())
    })
}

/// The read behind [`find`].
pub(crate) fn found_by_key<E: Entity>(key: &E::Key) -> Result<Read<E>> {
    let read = by_key::<E>(key, Included::NONE)?;
    if E::TABLE.filters.is_empty() {
        return Ok(read);
    }
    let found = Query::<E>::new().equal(E::TABLE.key, read.statement.args);
    found.into_read()
}

/// Reads the row with this key, whatever filters the entity has.
pub(crate) fn by_key<E: Entity>(key: &E::Key, included: Included) -> Result<Read<E>> {
    let table = E::TABLE;
    let rendered = TableSql::of(table);
    let args = key.to_values().map_err(|(at, error)| {
        Error::value(table.name, table.columns[table.key[at]].name, &error)
    })?;
    let (text, cost) = if included == Included::NONE {
        (rendered.by_key.clone(), rendered.by_key_cost)
    } else {
        (table_sql::by_key(table, included.list(table)), Cost::Any)
    };
    Ok(Read {
        statement: Statement { text, args },
        cost,
        entity: Some(table.name),
        decode: decode_row::<E>,
    })
}

/// The whole of a row, as a [`Read`] takes it.
pub(in crate::query) fn decode_row<E: Entity>(row: &dyn Row) -> Result<E> {
    including::decode(row, 0)
}
