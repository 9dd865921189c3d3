//! What is done with each row.

use std::{fmt, marker::PhantomData, mem, sync::Arc};

use crate::{
    bulk::encode::{NewRows, check, push_columns, time},
    entity::{Column, Entity, TableDef},
    error::{Error, ErrorKind, Result},
    query::{Many, Upsert},
    sql::{self, Chunk, Statement, Unchanged, dml},
    value::{PrimaryKey as _, Value},
};

/// What a [`Bulk`](super::Bulk) does with each item: there is one for each of its four ends.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{Bulk, BulkError, BulkOperation, BulkReport};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String }
/// async fn in_small_steps<O: BulkOperation>(bulk: Bulk<'_, O>, rows: Vec<O::Item>) -> Result<BulkReport, BulkError> {
///     bulk.chunk_rows(100).run(rows).await
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// let items = (0..250).map(|n| Item { id: 0, name: n.to_string() }).collect();
/// assert_eq!(in_small_steps(db.bulk_insert::<Item>(), items).await?.transactions, 3);
/// assert_eq!(in_small_steps(db.bulk_delete::<Item>(), (1..=250).collect()).await?.written, 250);
/// # Ok(()) }
/// ```
#[allow(private_interfaces, reason = "so that nobody else implements it")]
pub trait BulkOperation: Send {
    /// What it takes: entities, or keys.
    type Item: Send;

    /// What the statement is.
    #[doc(hidden)]
    fn prepare(&mut self) -> Result<Prepared>;

    /// Adds the values of a row.
    #[doc(hidden)]
    fn push(&mut self, item: Self::Item, values: &mut Vec<Value>) -> Result<()>;

    /// Completes a chunk with what it gathered of its rows.
    #[doc(hidden)]
    fn complete(&mut self, _chunk: &mut Chunk) {}
}

/// The statement of an operation.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(in crate::bulk) text: Arc<str>,
    pub(in crate::bulk) several: Option<sql::Several>,
    pub(in crate::bulk) table: &'static TableDef,
    pub(in crate::bulk) width: usize,
    pub(in crate::bulk) shared: Vec<Value>,
    pub(in crate::bulk) unchanged: Unchanged,
}

/// How many rows of so many values one statement inserts. Of 6 values 100 rows at a time were twice as fast as single
/// ones; beyond a thousand values it is the same.
const fn rows_at_once(width: usize) -> usize {
    const MOST: usize = 100;
    const MOST_VALUES: usize = 1_000;
    let rows = MOST_VALUES / width;
    if rows > MOST {
        MOST
    } else if rows == 0 {
        1
    } else {
        rows
    }
}

/// Inserts entities.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{Bulk, Inserting};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let items = |count: i64| (0..count).map(|n| Item { id: 0, name: n.to_string() });
/// let insert: Bulk<'_, Inserting<Item>> = db.bulk_insert();
/// assert_eq!(insert.run(items(3)).await?.written, 3);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Inserting<E> {
    rows: NewRows,
    skips_conflicts: bool,
    of: PhantomData<fn(E)>,
}

/// Inserts entities, or changes the rows that are there.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{Bulk, Upserting};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let items = |count: i64| (0..count).map(|n| Item { id: 0, name: n.to_string() });
/// let upsert: Bulk<'_, Upserting<Item>> = db.bulk_upsert(|upsert| upsert.on(Item::ID));
/// assert_eq!(upsert.run(items(3)).await?.written, 3);
/// # Ok(()) }
/// ```
pub struct Upserting<E> {
    upsert: Option<Upsert<E, Many>>,
    rows: NewRows,
    /// The columns of the unique key.
    on: &'static [usize],
}

/// Changes the rows with the keys of entities.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{Bulk, Updating};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let items = |count: i64| (0..count).map(|n| Item { id: 0, name: n.to_string() });
/// let update: Bulk<'_, Updating<Item>> = db.bulk_update();
/// assert_eq!(update.skip_missing().run(items(3)).await?.passed_over, 3);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Updating<E> {
    columns: Vec<usize>,
    /// The values of a row: the columns, the time, the key, the version.
    written: Vec<usize>,
    skips_missing: bool,
    now: Option<Value>,
    of: PhantomData<fn(E)>,
}

/// Deletes the rows with these keys.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::bulk::{Bulk, Deleting};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let items = |count: i64| (0..count).map(|n| Item { id: 0, name: n.to_string() });
/// # db.bulk_insert_optimized(items(3)).await?;
/// let delete: Bulk<'_, Deleting<Item>> = db.bulk_delete();
/// assert_eq!(delete.run([1, 2, 9]).await?.written, 2);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Deleting<E> {
    of: PhantomData<fn(E)>,
}

impl<E: Entity> Inserting<E> {
    pub(crate) fn new() -> Self {
        Self {
            rows: NewRows::of(E::TABLE),
            skips_conflicts: false,
            of: PhantomData,
        }
    }

    pub(in crate::bulk) const fn skip_conflicts(&mut self) {
        self.skips_conflicts = true;
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity> BulkOperation for Inserting<E> {
    type Item = E;

    fn prepare(&mut self) -> Result<Prepared> {
        let table = E::TABLE;
        let columns = &self.rows.columns;
        let names: Vec<_> = (columns.iter())
            .map(|column| table.columns[*column].name)
            .collect();
        let text = |rows| dml::insert_rows(table.name, &names, rows, self.skips_conflicts);
        let rows = rows_at_once(columns.len());
        Ok(Prepared {
            text: text(1),
            several: Some(sql::Several {
                rows,
                text: text(rows),
            }),
            table,
            width: columns.len(),
            shared: Vec::new(),
            unchanged: if self.skips_conflicts {
                Unchanged::Skipped
            } else {
                Unchanged::NotInserted
            },
        })
    }

    fn push(&mut self, entity: E, values: &mut Vec<Value>) -> Result<()> {
        self.rows.push(entity, values)
    }

    fn complete(&mut self, chunk: &mut Chunk) {
        chunk.key = self.rows.finish(E::TABLE);
    }
}

impl<E> fmt::Debug for Upserting<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upserting").finish_non_exhaustive()
    }
}

impl<E: Entity> Upserting<E> {
    pub(crate) fn new(upsert: Upsert<E, Many>) -> Self {
        Self {
            upsert: Some(upsert),
            rows: NewRows::of(E::TABLE),
            on: &[],
        }
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity> BulkOperation for Upserting<E> {
    type Item = E;

    fn prepare(&mut self) -> Result<Prepared> {
        let upsert = self
            .upsert
            .take()
            .ok_or_else(|| Error::new(ErrorKind::Refused, "a bulk operation runs once"))?;
        let width = self.rows.columns.len();
        let rows = rows_at_once(width);
        let ([Statement { text, args }, many], on) = upsert.into_statements([1, rows])?;
        self.on = on;
        Ok(Prepared {
            text,
            several: Some(sql::Several {
                rows,
                text: many.text,
            }),
            table: E::TABLE,
            width,
            shared: args.into_iter().skip(width).collect(),
            unchanged: Unchanged::Skipped,
        })
    }

    fn push(&mut self, entity: E, values: &mut Vec<Value>) -> Result<()> {
        let first = values.len();
        self.rows.push(entity, values)?;
        let table = E::TABLE;
        let row = self.rows.columns.iter().zip(&values[first..]);
        let is_null = |(column, value): &(&usize, &Value)| {
            value.is_null() && self.on.contains(column) && table.writer_key() != Some(**column)
        };
        match row.into_iter().find(is_null) {
            None => Ok(()),
            Some((column, _)) => Err(Error::new(
                ErrorKind::Value,
                "a NULL equals nothing, so no row can be found by it: set the column that decides",
            )
            .with_table(table.name)
            .with_column(table.columns[*column].name)),
        }
    }

    fn complete(&mut self, chunk: &mut Chunk) {
        chunk.key = self.rows.finish(E::TABLE);
    }
}

impl<E: Entity> Updating<E> {
    pub(crate) const fn new() -> Self {
        Self {
            columns: Vec::new(),
            written: Vec::new(),
            skips_missing: false,
            now: None,
            of: PhantomData,
        }
    }

    pub(in crate::bulk) fn set<T>(&mut self, column: Column<E, T>) {
        self.columns.push(column.index());
    }

    pub(in crate::bulk) const fn skip_missing(&mut self) {
        self.skips_missing = true;
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity> BulkOperation for Updating<E> {
    type Item = E;

    fn prepare(&mut self) -> Result<Prepared> {
        let table = E::TABLE;
        let mut columns = mem::take(&mut self.columns);
        if let Some(kept) = columns.iter().find(|column| table.keeps(**column)) {
            return Err(Error::new(
                ErrorKind::Model,
                "a bulk update cannot set this column: it is part of the key, or kept by the library or the database",
            )
            .with_table(table.name)
            .with_column(table.columns[*kept].name));
        }
        if columns.is_empty() {
            let changes =
                |column: &usize| !table.keeps(*column) && table.created_at != Some(*column);
            columns = (0..table.columns.len()).filter(changes).collect();
        }
        columns.retain(|column| table.updated_at != Some(*column));
        columns.extend(table.updated_at);
        if columns.is_empty() {
            return Err(Error::new(
                ErrorKind::Model,
                "a bulk update has nothing to set: all columns are those of the key",
            )
            .with_table(table.name));
        }
        let set: Vec<_> = (columns.iter().copied())
            .chain(table.version)
            .map(|column| table.columns[column].name)
            .collect();
        let found: Vec<_> = (table.key.iter().copied())
            .chain(table.version)
            .map(|column| table.columns[column].name)
            .collect();
        let text = dml::update(table.name, &set, &found, &[]);
        let key = columns.len() + usize::from(table.version.is_some());
        let width = key + table.key.len() + usize::from(table.version.is_some());
        self.written = columns;
        Ok(Prepared {
            text,
            several: None,
            table,
            width,
            shared: Vec::new(),
            unchanged: Unchanged::Missing {
                entity: table.entity,
                key,
                columns: table.key.len(),
                probe: dml::exists(table.name, &found),
                is_skipped: self.skips_missing,
            },
        })
    }

    fn push(&mut self, entity: E, values: &mut Vec<Value>) -> Result<()> {
        let table = E::TABLE;
        let first = values.len();
        push_columns(&entity, &self.written, values)?;
        if table.updated_at.is_some() {
            values[first + self.written.len() - 1] = time(&mut self.now)?;
        }
        let mut version = Vec::new();
        if let Some(column) = table.version {
            push_columns(&entity, &[column], &mut version)?;
        }
        if let [Value::Integer(read)] = version[..] {
            values.push(Value::Integer(read.wrapping_add(1)));
        }
        push_columns(&entity, table.key, values)?;
        values.append(&mut version);
        Ok(())
    }

    fn complete(&mut self, _chunk: &mut Chunk) {
        self.now = None;
    }
}

impl<E: Entity> Deleting<E> {
    pub(crate) const fn new() -> Self {
        Self { of: PhantomData }
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity> BulkOperation for Deleting<E> {
    type Item = E::Key;

    fn prepare(&mut self) -> Result<Prepared> {
        let table = E::TABLE;
        let key: Vec<_> = (table.key.iter())
            .map(|column| table.columns[*column].name)
            .collect();
        Ok(Prepared {
            text: dml::delete(table.name, &key),
            several: None,
            table,
            width: key.len(),
            shared: Vec::new(),
            unchanged: Unchanged::Missing {
                entity: table.entity,
                key: 0,
                columns: key.len(),
                probe: dml::exists(table.name, &key),
                is_skipped: true,
            },
        })
    }

    fn push(&mut self, key: E::Key, values: &mut Vec<Value>) -> Result<()> {
        let table = E::TABLE;
        let key = key.to_values().map_err(|(at, error)| {
            Error::value(table.name, table.columns[table.key[at]].name, &error)
        })?;
        for (column, value) in table.key.iter().zip(&key) {
            check(table, *column, value)?;
        }
        values.extend(key);
        Ok(())
    }
}
