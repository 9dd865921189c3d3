//! Whether an image is as it must be.

use std::fmt;

use anabranch::{engine::Synchronous, recording::File};
use rusqlite::Connection;

use crate::images::{
    disk::{Image, synced},
    work::{History, Name, Times},
};

/// How many transactions are in a sound image, and how many had to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sound {
    pub(super) survived: usize,
    pub(super) promised: usize,
}

/// What is wrong with an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Broken {
    /// SQLite does not find the file sound, or cannot read it.
    File(String),
    /// References point at no row.
    References,
    /// A transaction is there in part.
    Half,
    /// What is there are not the first so many transactions.
    Order,
    /// Less is there than was promised.
    Lost { survived: usize, promised: usize },
    /// More is there than was asked for.
    Unasked,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(why) => {
                let first = why.lines().find(|line| !line.starts_with("***"));
                write!(f, "the file is damaged: {}", first.unwrap_or(why))
            }
            Self::References => f.write_str("references that point at no row"),
            Self::Half => f.write_str("a transaction is there in part"),
            Self::Order => f.write_str("a transaction is missing before one that is there"),
            Self::Lost { survived, promised } => {
                write!(
                    f,
                    "{survived} transactions are there, {promised} were promised"
                )
            }
            Self::Unasked => f.write_str("a transaction is there that nobody had asked for"),
        }
    }
}

impl From<rusqlite::Error> for Broken {
    fn from(error: rusqlite::Error) -> Self {
        Self::File(error.to_string())
    }
}

/// Opens an image with plain SQLite, and looks at it.
pub(super) fn check(history: &History, image: &Image) -> Result<Sound, Broken> {
    let connection = Connection::open(image.path())?;
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if sound != "ok" {
        return Err(Broken::File(sound));
    }
    let mut violations = connection.prepare("PRAGMA foreign_key_check")?;
    if violations.exists([])? {
        return Err(Broken::References);
    }
    let survived = names(&connection)?;
    let is_prefix = survived.len() <= history.transactions.len()
        && survived
            .iter()
            .zip(&history.transactions)
            .all(|(name, (known, _))| name == known);
    if !is_prefix {
        return Err(Broken::Order);
    }
    if connection.prepare(HALVES)?.exists([])? {
        return Err(Broken::Half);
    }
    let there = &history.transactions[..survived.len()];
    if there.iter().any(|(_, times)| times.issued > image.cut) {
        return Err(Broken::Unasked);
    }
    let promised = promised(history, image.cut);
    if survived.len() < promised {
        return Err(Broken::Lost {
            survived: survived.len(),
            promised,
        });
    }
    Ok(Sound {
        survived: survived.len(),
        promised,
    })
}

/// Orders whose lines are not those that their last transaction left, and orders without a transaction.
const HALVES: &str = "
    SELECT 1 FROM orders
    WHERE lines IS NOT (SELECT steps.lines FROM steps WHERE order_id = orders.id ORDER BY seq DESC LIMIT 1)
       OR lines <> (SELECT count(*) FROM lines WHERE order_id = orders.id)
       OR lines <> (SELECT count(DISTINCT position) FROM lines WHERE order_id = orders.id)";

fn names(connection: &Connection) -> rusqlite::Result<Vec<Name>> {
    connection
        .prepare("SELECT task, serial FROM steps ORDER BY seq")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// How many transactions must be there after a power cut: the rule on top of `images.rs`.
fn promised(history: &History, cut: usize) -> usize {
    let by = match history.synchronous {
        Synchronous::Full => cut,
        _ => synced(&history.entries[..cut], File::Log),
    };
    let kept = |(_, times): &(Name, Times)| times.acknowledged <= by;
    history
        .transactions
        .iter()
        .rposition(kept)
        .map_or(0, |last| last + 1)
}
