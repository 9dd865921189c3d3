//! The files: made alike for all contenders, fresh for each run, and checked afterwards.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use anabranch::prelude::Database;
use rusqlite::{Connection, params};
use tempfile::TempDir;
use workload::{NewOrder, Result};

use crate::{
    contenders::Order,
    shop::{self, Product, Sale, Shop},
};

/// What a file holds before a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Content {
    pub(crate) rows: u32,
    /// Whether all quantities are 0, so that their sum counts increments.
    pub(crate) counts: bool,
    /// Whether there are shops, sales and products.
    pub(crate) shop: bool,
}

/// What a file holds, as found in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) rows: i64,
    pub(crate) quantity: i64,
    pub(crate) versions: i64,
    /// Of shops, sales and products.
    pub(crate) of_shop: i64,
}

/// A folder of files that is removed in the end.
#[derive(Debug)]
pub(crate) struct Files {
    dir: TempDir,
    definition: String,
    templates: HashMap<Content, PathBuf>,
    made: u32,
}

impl Files {
    /// A folder in `parent`, or among the system's temporary files.
    pub(crate) async fn new(parent: Option<&Path>) -> Result<Self> {
        let dir = match parent {
            Some(parent) => TempDir::new_in(parent)?,
            None => TempDir::new()?,
        };
        Ok(Self {
            dir,
            definition: definition().await?,
            templates: HashMap::new(),
            made: 0,
        })
    }

    /// A file of its own with this content, in WAL mode, closed.
    pub(crate) fn fresh(&mut self, content: Content) -> Result<PathBuf> {
        self.made += 1;
        let path = self.dir.path().join(format!("{}.db", self.made));
        let template = match self.templates.get(&content) {
            Some(template) => template,
            None => {
                let made = self.template(content)?;
                self.templates.entry(content).or_insert(made)
            }
        };
        fs::copy(template, &path)?;
        Ok(path)
    }

    /// A path at which there is no file yet.
    pub(crate) fn empty(&mut self) -> PathBuf {
        self.made += 1;
        self.dir.path().join(format!("{}.db", self.made))
    }

    fn template(&self, content: Content) -> Result<PathBuf> {
        let Content { rows, counts, shop } = content;
        let path = self
            .dir
            .path()
            .join(format!("of-{rows}-{counts}-{shop}.db"));
        let mut connection = Connection::open(&path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let tx = connection.transaction()?;
        tx.execute_batch(&self.definition)?;
        let mut insert = tx.prepare(
            "INSERT INTO orders (writer, item, quantity, price, placed_at, version) \
             VALUES (?1, ?2, ?3, ?4, ?5, 1)",
        )?;
        for n in 0..rows {
            let order = NewOrder::nth(0, n);
            let quantity = if counts { 0 } else { order.quantity };
            insert.execute(params![
                order.writer,
                order.item,
                quantity,
                order.price,
                order.placed_at
            ])?;
        }
        drop(insert);
        if shop {
            shop::fill(&tx)?;
        }
        tx.commit()?;
        connection.close().map_err(|(_, error)| error)?;
        Ok(path)
    }

    /// Checks a closed file, and removes it.
    pub(crate) fn check(&self, path: &Path) -> Result<Sums> {
        let connection = Connection::open(path)?;
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        if sound != "ok" {
            return Err(format!("integrity_check says: {sound}").into());
        }
        let sums = connection.query_row(
            "SELECT count(*), coalesce(sum(quantity), 0), coalesce(sum(version), 0), \
             (SELECT count(*) FROM shops) + (SELECT count(*) FROM sales) + (SELECT count(*) FROM products) \
             FROM orders",
            [],
            |row| {
                Ok(Sums {
                    rows: row.get(0)?,
                    quantity: row.get(1)?,
                    versions: row.get(2)?,
                    of_shop: row.get(3)?,
                })
            },
        )?;
        connection.close().map_err(|(_, error)| error)?;
        fs::remove_file(path)?;
        Ok(sums)
    }
}

/// The tables as this library defines them.
async fn definition() -> Result<String> {
    let db = Database::temporary().await?;
    db.create_tables::<(Order, Shop, Sale, Product)>().await?;
    let definition = db
        .write(async |tx| {
            let sql = "SELECT group_concat(sql, ';') FROM sqlite_schema WHERE sql IS NOT NULL";
            Ok(sqlx::query_scalar(sql).fetch_one(&mut *tx).await?)
        })
        .await?;
    db.close().await?;
    Ok(definition)
}
