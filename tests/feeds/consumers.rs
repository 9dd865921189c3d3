//! The consumers, each in a process of its own.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process,
    str::FromStr,
    time::Duration,
};

use anabranch::{
    engine::Transaction,
    error::Result,
    feed::{Batch, Event, Feed, Start},
    prelude::*,
};
use anabranch_tests::load::plainly;
use futures_util::TryStreamExt as _;
use rusqlite::Connection;

use crate::Item;

/// What a consumer does with the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// It appends them to a file.
    Journal,
    /// It writes into the same database, with the acknowledgement.
    Effects,
    /// It keeps the rows in another database.
    Replica,
}

/// How it does so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Until it is killed.
    Run,
    /// Until nothing is left.
    Drain,
    /// In the wrong order, and it dies in the middle.
    Early,
}

/// What a process is to do.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) who: Who,
    pub(crate) way: Way,
    pub(crate) folder: PathBuf,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {}", self.who, self.way, self.folder.display())
    }
}

impl FromStr for Scene {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let [who, way, folder] =
            (text.splitn(3, ' ').collect::<Vec<_>>().try_into()).map_err(|_| text.to_owned())?;
        let named = |one: &Who| format!("{one:?}") == who;
        Ok(Self {
            who: Who::ALL.into_iter().find(named).ok_or(text)?,
            way: match way {
                "Run" => Way::Run,
                "Drain" => Way::Drain,
                "Early" => Way::Early,
                _ => return Err(text.to_owned()),
            },
            folder: folder.into(),
        })
    }
}

/// What those write that write into the same database.
pub(crate) const TABLES: [&str; 6] = [
    "CREATE TABLE effects (key INTEGER, seq INTEGER, is_deleted INTEGER, PRIMARY KEY (key, seq, is_deleted)) WITHOUT ROWID",
    "CREATE TABLE replica (id INTEGER PRIMARY KEY, value INTEGER, seq INTEGER)",
    "CREATE TABLE tally (events INTEGER)",
    "INSERT INTO tally VALUES (0)",
    // Deletions that the library was told to forget.
    "CREATE TABLE forgotten (id INTEGER PRIMARY KEY, seq INTEGER)",
    "CREATE TRIGGER remember AFTER DELETE ON anabranch_deleted_items BEGIN
       INSERT INTO forgotten VALUES (OLD.id, OLD.anabranch_seq) ON CONFLICT (id) DO UPDATE SET seq = excluded.seq;
     END",
];

impl Who {
    pub(crate) const ALL: [Self; 3] = [Self::Journal, Self::Effects, Self::Replica];

    pub(crate) fn feed(self, db: &Database) -> Feed<Item> {
        let feed = match self {
            Self::Journal => db.feed("journal").batch_rows(50),
            Self::Effects => db.feed("effects").batch_rows(7).split_commits(),
            Self::Replica => {
                (db.feed("replica").batch_rows(20).split_commits()).start(Start::Snapshot)
            }
        };
        feed.look_every(Duration::from_millis(5))
    }
}

/// Consumes as the scene says.
pub(crate) async fn run(scene: Scene) {
    let db = Database::open(scene.folder.join("items.db")).await.unwrap();
    let mut feed = scene.who.feed(&db);
    let mut journal = Journal::open(&scene.folder);
    let mut replica = replica(&scene.folder).unwrap();
    if (scene.who, scene.way) == (Who::Journal, Way::Run) {
        follow(&mut feed, &mut journal).await;
    }
    while let Some(batch) = next(&mut feed, scene.way).await {
        match (scene.who, scene.way) {
            (Who::Journal | Who::Replica, Way::Early) => {
                batch.ack().await.unwrap();
                process::abort();
            }
            (Who::Effects, Way::Early) => {
                db.write(async |tx| apply(tx, &batch).await).await.unwrap();
                process::abort();
            }
            (Who::Journal, _) => {
                journal.append(&batch);
                patiently(async || batch.ack().await).await;
                journal.line(&format!("acked {}", batch.position().seq));
            }
            (Who::Effects, _) => {
                patiently(async || {
                    db.write(async |tx| {
                        // First, so that the slower one of two consumers stops here.
                        batch.ack_in(&mut *tx).await?;
                        apply(tx, &batch).await
                    })
                    .await
                })
                .await;
            }
            (Who::Replica, _) => {
                keep(&mut replica, batch.events()).unwrap();
                patiently(async || batch.ack().await).await;
            }
        }
    }
    db.close().await.unwrap();
}

/// Each batch is acknowledged once the next one was read, until the process is killed.
async fn follow(feed: &mut Feed<Item>, journal: &mut Journal) {
    loop {
        let mut batches = feed.stream();
        let mut taken: Option<Batch<Item>> = None;
        loop {
            let next = match batches.try_next().await {
                Err(error) if error.is_retryable() => break,
                found => found.unwrap().unwrap(),
            };
            if let Some(batch) = taken.take() {
                patiently(async || batch.ack().await).await;
                journal.line(&format!("acked {}", batch.position().seq));
            }
            journal.append(&next);
            taken = Some(next);
        }
        // What was not acknowledged comes again.
        journal.line("run");
    }
}

async fn next(feed: &mut Feed<Item>, way: Way) -> Option<Batch<Item>> {
    loop {
        let found = match way {
            Way::Run => feed.next_batch().await.map(Some),
            Way::Drain | Way::Early => feed.try_next_batch().await,
        };
        match found {
            Err(error) if error.is_retryable() => {}
            found => return found.unwrap(),
        }
    }
}

/// Again where the file was busy. If another consumer of the name was faster, it is done.
async fn patiently(mut work: impl AsyncFnMut() -> Result<()>) {
    loop {
        match work().await {
            Err(error) if error.is_retryable() => {}
            Err(error) if error.kind() == ErrorKind::CursorMoved => return,
            done => return done.unwrap(),
        }
    }
}

/// Takes each event once: a second time its row is there already.
async fn apply(tx: &mut Transaction, batch: &Batch<Item>) -> Result<()> {
    for event in batch {
        sqlx::query("INSERT INTO effects VALUES (?, ?, ?)")
            .bind(event.key())
            .bind(event.seq)
            .bind(event.is_deleted())
            .execute(&mut *tx)
            .await?;
        sqlx::query("UPDATE tally SET events = events + 1")
            .execute(&mut *tx)
            .await?;
        sqlx::query("DELETE FROM replica WHERE id = ?")
            .bind(event.key())
            .execute(&mut *tx)
            .await?;
        if let Some(item) = event.row() {
            sqlx::query("INSERT INTO replica VALUES (?, ?, ?)")
                .bind(item.id)
                .bind(item.value)
                .bind(item.seq.0)
                .execute(&mut *tx)
                .await?;
        }
    }
    Ok(())
}

/// A file of its own, each line of which ends in a full stop: one that was torn does not.
struct Journal(File);

impl Journal {
    fn open(folder: &Path) -> Self {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true);
        let mut journal = Self(file.open(folder.join("journal")).unwrap());
        journal.line("");
        journal.line("run");
        journal
    }

    fn append(&mut self, batch: &Batch<Item>) {
        let mut text = String::new();
        for event in batch {
            let value = event.row().map(|item| item.value.to_string());
            let value = value.as_deref().unwrap_or("gone");
            text += &format!("saw {} {} {value} .\n", event.seq, event.key());
        }
        self.0.write_all(text.as_bytes()).unwrap();
        self.0.sync_data().unwrap();
    }

    fn line(&mut self, line: &str) {
        self.0.write_all(format!("{line} .\n").as_bytes()).unwrap();
    }
}

/// The other database.
pub(crate) fn replica(folder: &Path) -> rusqlite::Result<Connection> {
    let connection = plainly(&folder.join("replica.db"))?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS replica (id INTEGER PRIMARY KEY, value INTEGER, seq INTEGER)",
    )?;
    Ok(connection)
}

fn keep(connection: &mut Connection, events: &[Event<Item>]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for event in events {
        transaction.execute("DELETE FROM replica WHERE id = ?1", [event.key()])?;
        if let Some(item) = event.row() {
            transaction.execute(
                "INSERT INTO replica VALUES (?1, ?2, ?3)",
                (item.id, item.value, item.seq.0),
            )?;
        }
    }
    transaction.commit()
}
