//! All the places where a query runs.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anabranch::{
    error::Result,
    prelude::*,
    query::Selection,
    sql::{Executor, Read, ReadTogether, Reads, Rows, Statement},
    value::Row,
};

use crate::world::shop;

/// Runs a query in every place that reads, and looks at what it gives each time.
macro_rules! everywhere {
    ($db:expr, $query:expr, $look:expr) => {{
        let query = $query;
        let look = crate::relations::places::looking(&query, $look);
        let db: &anabranch::database::Database = &$db;
        look(query.clone().all(db).await);
        db.write(async |tx| {
            look(query.clone().all(&mut *tx).await);
            Ok(())
        })
        .await
        .unwrap();
        db.concurrent(async |s| {
            look(query.clone().all(&mut *s).await);
            Ok(())
        })
        .await
        .unwrap();
        db.read(async |snapshot| {
            look(query.clone().all(&mut *snapshot).await);
            Ok(())
        })
        .await
        .unwrap();
    }};
}

/// Runs a query in every place that reads: it gives this.
macro_rules! gives {
    ($db:expr, $query:expr, $expected:expr) => {
        everywhere!($db, $query, |found| assert_eq!(found.unwrap(), $expected))
    };
}

/// Runs a query in every place that reads: it fails with this kind, and with this in its message.
macro_rules! fails {
    ($db:expr, $query:expr, $kind:ident, $message:expr) => {
        everywhere!($db, $query, |found| {
            let error = found.map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::$kind, "{error}");
            assert!(error.to_string().contains($message), "{error}");
        })
    };
}

/// So that the compiler knows what a closure is given.
pub(super) fn looking<E: Entity, S: Selection<E>, F: Fn(Result<Vec<S::Output>>)>(
    _: &Query<E, S>,
    look: F,
) -> F {
    look
}

/// Works in every kind of context, each on a shop of its own; `after` looks at what was committed.
pub(super) async fn in_contexts(
    work: impl AsyncFn(&mut Context<'_>) -> Result<()>,
    after: impl AsyncFn(&Database) -> Result<()>,
) {
    let db = shop().await;
    work(&mut db.context()).await.unwrap();
    after(&db).await.unwrap();

    let db = shop().await;
    db.write(async |tx| work(&mut tx.context()).await)
        .await
        .unwrap();
    after(&db).await.unwrap();

    let db = shop().await;
    db.concurrent(async |s| work(&mut s.context()).await)
        .await
        .unwrap();
    after(&db).await.unwrap();

    let db = shop().await;
    work(&mut db.context().concurrent()).await.unwrap();
    after(&db).await.unwrap();
}

/// A database that counts the statements that queries run on it.
#[derive(Clone)]
pub(super) struct Counting<'d> {
    db: &'d Database,
    statements: Arc<AtomicUsize>,
}

impl<'d> Counting<'d> {
    pub(super) fn new(db: &'d Database) -> Self {
        Self {
            db,
            statements: Arc::default(),
        }
    }

    /// How many there were since it was asked last.
    pub(super) fn take(&self) -> usize {
        self.statements.swap(0, Ordering::Relaxed)
    }
}

struct CountingReads<'a> {
    reads: &'a mut dyn Reads,
    statements: &'a AtomicUsize,
}

impl Reads for CountingReads<'_> {
    fn rows(
        &mut self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        self.reads.rows(statement, each)
    }
}

impl<'c, 'd: 'c> Executor<'c> for &'c Counting<'d> {
    async fn read<T: Send + 'static>(self, read: Read<T>) -> Result<Vec<T>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        Executor::read(self.db, read).await
    }

    async fn read_together<T: Send + 'static>(self, together: ReadTogether<T>) -> Result<T> {
        let statements = Arc::clone(&self.statements);
        let ReadTogether { cost, work } = together;
        let before = statements.load(Ordering::Relaxed);
        let work = Box::new(move |reads: &mut dyn Reads| {
            // It may run again from its start.
            statements.store(before, Ordering::Relaxed);
            work(&mut CountingReads {
                reads,
                statements: &statements,
            })
        });
        self.db.read_together(ReadTogether { cost, work }).await
    }

    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        Executor::stream(self.db, read)
    }
}
