//! One entity by its key.

use crate::{
    entity::{self, Entity},
    error::{Error, Result},
    query::entity_sql::EntitySql,
    sql::{Executor, Read, Statement},
    value::{ColumnType, Row},
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
#[allow(
    clippy::needless_pass_by_value,
    reason = "a future that owns its key can go anywhere, and keys are small"
)]
pub async fn find<'c, E: Entity>(executor: impl Executor<'c>, key: E::Key) -> Result<Option<E>> {
    let rendered = EntitySql::of::<E>();
    let table = E::TABLE;
    let key = key
        .encode()
        .map_err(|error| Error::value(table.name, table.key_column().name, error))?;
    let read = Read {
        statement: Statement {
            text: rendered.by_key.clone(),
            args: vec![key],
        },
        cost: rendered.row_cost,
        decode: decode_row::<E>,
    };
    Ok(executor.read(read).await?.pop())
}

/// [`entity::decode`], as a [`Read`] takes it.
pub(in crate::query) fn decode_row<E: Entity>(row: &dyn Row) -> Result<E> {
    entity::decode(row)
}
