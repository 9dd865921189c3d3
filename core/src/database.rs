//! One SQLite file: opening, transactions, shutdown.

mod backup;
mod builder;
mod feeds;
mod health;

pub use self::{backup::Backup, builder::DatabaseBuilder};

use std::{
    future::Future,
    panic::Location,
    path::{Path, PathBuf},
};

use crate::{
    bulk::{Bulk, BulkError, BulkReport, Deleting, Inserting, Updating, Upserting},
    context::{Context, SaveToken, SavedAt},
    engine::{
        AskedAt, Checkpoint, ConcurrentOptions, Engine, ExpectedColumn, Integrity, Isolation,
        ReadSnapshot, Session, SessionGuard, Transaction, TransactionGuard, VacuumReport,
    },
    entity::{CommitSeq, Entity, EntityTypes, TableDef, tombstones_of},
    error::Result,
    observe::{Holder, Statistics},
    query::{Many, Upsert, upsert_all},
    schema::{self, TOMBSTONE_SEQ},
    sql::{Executor, Read, ReadTogether, Rows, Write, WriteExecutor, Written},
};

/// One SQLite file, open for reading and writing from as many tasks as you like; a cheap clone.
///
/// All writing of the process goes through one writer, in the order in which it was asked for; reads run beside it
/// on connections of their own. A file is opened once in a process: opening it again, however its path is spelled,
/// gives a handle to the same.
///
/// ```
/// use anabranch::prelude::*;
///
/// #[derive(Debug, Entity)]
/// struct Customer {
///     #[entity(id)]
///     id: i64,
///     name: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// let db = Database::temporary().await?;
/// db.create_tables::<Customer>().await?;
/// let mut ctx = db.context();
/// ctx.add(Customer { id: 0, name: "Ada".into() });
/// ctx.save_changes().await?;
/// assert_eq!(Customer::query().count(&db).await?, 1);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Database {
    engine: Engine,
}

impl Database {
    /// Opens a file with the default options, and makes it if it does not exist.
    ///
    /// # Errors
    ///
    /// Kind `CannotOpen` when a folder is missing (the message shows which), the path leads to none that can be a
    /// file, it is on a network file system, or the log of a file that was replaced lies beside it; `NotADatabase`, `Corrupt`, `ReadOnly` for what the file is; `Busy` when another process holds it for
    /// longer than the busy timeout; `Options` for a path to memory.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, the file may have been made.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self> {
        Self::builder(path).open().await
    }

    /// Chooses how a file is opened.
    pub fn builder(path: impl Into<PathBuf>) -> DatabaseBuilder {
        DatabaseBuilder::new(path.into())
    }

    /// Opens a file of its own in a temporary folder, removed when the last handle is dropped: for tests.
    ///
    /// # Errors
    ///
    /// As [`Database::open`].
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, nothing stays.
    pub async fn temporary() -> Result<Self> {
        Self::builder("").open_temporary().await
    }

    pub(crate) const fn new(engine: Engine) -> Self {
        Self { engine }
    }

    /// Makes the tables and indexes of these entities, in the order that their references need, in one transaction.
    /// What exists already stays as it is.
    ///
    /// # Errors
    ///
    /// Kind `Model` when the entities do not go together, or a table that exists already cannot be given the commit
    /// numbers that its entity asks for; `Statement` when SQLite does not accept a CHECK or
    /// DEFAULT; what a write can meet otherwise.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, all tables are made or none.
    pub async fn create_tables<T: EntityTypes>(&self) -> Result<()> {
        let mut tables = Vec::new();
        T::collect(&mut tables);
        self.engine
            .define(
                schema::create_tables(&tables)?,
                expected(&tables),
                stamped(&tables),
            )
            .await
    }

    /// Makes triggers that stamp the `commit_seq` columns of these entities when programs without this library write
    /// their rows. Without them such rows keep the number they had; with them every write costs two statements more.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Order { #[entity(id)] id: i64, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// db.create_tables::<Order>().await?;
    /// db.stamp_foreign_writes::<Order>().await?;
    /// // What any other program does, such as the shell of SQLite.
    /// let other = rusqlite::Connection::open(db.path()).unwrap();
    /// other.execute("INSERT INTO \"order\" DEFAULT VALUES", []).unwrap();
    /// let batch = db.feed::<Order>("mailer").next_batch().await?;
    /// assert_eq!(batch.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What a write can meet.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, all triggers are made or none.
    pub async fn stamp_foreign_writes<T: EntityTypes>(&self) -> Result<()> {
        let mut tables = Vec::new();
        T::collect(&mut tables);
        self.engine.stamp_foreign_writes(stamped(&tables)).await
    }

    /// A new, empty unit of work. Make one for each piece of work, and drop it afterwards.
    #[must_use]
    #[track_caller]
    pub fn context(&self) -> Context<'static> {
        Context::new(self.engine.clone(), Location::caller())
    }

    /// Inserts any number of entities, 1,000 in each transaction: the fastest way in. See [`bulk`](crate::bulk).
    ///
    /// # Errors
    ///
    /// A [`BulkError`], with the row and what is committed.
    ///
    /// # Cancel safety
    ///
    /// As [`Bulk::run`].
    #[track_caller]
    pub fn bulk_insert_optimized<E: Entity>(
        &self,
        entities: impl IntoIterator<Item = E, IntoIter: Send>,
    ) -> impl Future<Output = Result<BulkReport, BulkError>> {
        self.bulk_insert().run(entities)
    }

    /// Describes how entities are inserted; [`run`](Bulk::run) takes them.
    #[track_caller]
    pub fn bulk_insert<'p, E: Entity>(&self) -> Bulk<'p, Inserting<E>> {
        Bulk::new(self.engine.clone(), Location::caller(), Inserting::new())
    }

    /// Describes how entities are inserted, or change the rows that are there: as an [`Upsert`] of them, without its
    /// reading back.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Word { #[entity(id)] id: i64, #[entity(unique)] text: String, count: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Word>().await?;
    /// let words = || "tea cake tea".split(' ').map(|text| Word { id: 0, text: text.into(), count: 1 });
    /// let count = |upsert: Upsert<Word, _>| upsert.on(Word::TEXT).set(Word::COUNT, Word::COUNT + 1);
    /// # use anabranch::query::Upsert;
    /// db.bulk_upsert(count).run(words()).await?;
    /// db.bulk_upsert(count).run(words()).await?;
    /// assert_eq!(Word::query().filter(Word::TEXT.eq("tea")).one(&db).await?.count, 4);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn bulk_upsert<'p, E: Entity>(
        &self,
        how: impl FnOnce(Upsert<E, Many>) -> Upsert<E, Many>,
    ) -> Bulk<'p, Upserting<E>> {
        let upsert = how(upsert_all([]));
        Bulk::new(
            self.engine.clone(),
            Location::caller(),
            Upserting::new(upsert),
        )
    }

    /// Describes how the rows with the keys of entities get their values: all but the key, or those that
    /// [`set`](Bulk::set) names. A `version` is checked and counted up.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # db.bulk_insert_optimized((0..3).map(|_| Item { id: 0, name: "tea".into(), price: 3 })).await?;
    /// let dearer = (1..=4).map(|id| Item { id, name: String::new(), price: 5 });
    /// let report = db.bulk_update().set(Item::PRICE).skip_missing().run(dearer).await?;
    /// assert_eq!((report.written, report.passed_over), (3, 1));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn bulk_update<'p, E: Entity>(&self) -> Bulk<'p, Updating<E>> {
        Bulk::new(self.engine.clone(), Location::caller(), Updating::new())
    }

    /// Describes how the rows with keys are deleted. Keys that no row has are passed over; a row that is still there, since a
    /// trigger keeps it, is an error of the kind `Constraint`.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let items = |count: i64| (0..count).map(|n| Item { id: 0, name: n.to_string() });
    /// db.bulk_insert_optimized(items(3)).await?;
    /// let report = db.bulk_delete::<Item>().run([1, 2, 9]).await?;
    /// assert_eq!((report.written, report.passed_over), (2, 1));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn bulk_delete<'p, E: Entity>(&self) -> Bulk<'p, Deleting<E>> {
        Bulk::new(self.engine.clone(), Location::caller(), Deleting::new())
    }

    /// When a save with this token was committed, by [`Context::save_changes_with`], of any process; `None` if none was,
    /// or so long ago that [the token was forgotten](DatabaseBuilder::save_token_retention).
    ///
    /// The question takes its turn in the writer's queue, so that everything of this process that was queued before it
    /// is decided: a save that was dropped and found to be not there will not be there later. Of another process that
    /// is still at it, this says only what it has committed so far; ask again once its saves have ended, or save with
    /// the same token, which only one of them can.
    ///
    /// # Errors
    ///
    /// `Nested` inside of `write`; `QueueTimeout` when the turn did not come; what a read can meet otherwise.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, nothing has happened.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Note { #[entity(id)] id: i64, text: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Note>().await?;
    /// use std::time::Duration;
    /// use tokio::time::timeout;
    ///
    /// let token = SaveToken::new();
    /// let mut ctx = db.context();
    /// ctx.add(Note { id: 0, text: "hello".into() });
    /// if timeout(Duration::from_millis(1), ctx.save_changes_with(&token)).await.is_err() {
    ///     // Too late to be acknowledged; was it written? From now on the answer stays the same.
    ///     let rows = u64::from(db.was_saved(&token).await?.is_some());
    ///     assert_eq!(Note::query().count(&db).await?, rows);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn was_saved(&self, token: &SaveToken) -> Result<Option<SavedAt>> {
        let record = self.engine.save_record(token.shared()).await?;
        Ok(record.map(|record| SavedAt {
            time: record.saved_at,
            commit_seq: record.commit_seq.map(CommitSeq),
        }))
    }

    /// Runs `body` on one state of the database, that of this call: its queries agree with each other, whatever is
    /// committed meanwhile.
    ///
    /// The snapshot only reads, and nobody waits for it. It has one of the read connections, and while it is open the
    /// log cannot start anew: keep it short. The error of `body` is returned as it is.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// # #[derive(Debug, Entity)]
    /// # #[entity(table = "orders")]
    /// # struct Order { #[entity(id)] id: i64, item: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// let (count, orders) = db
    ///     .read(async |snapshot| {
    ///         let count = Order::query().count(&mut *snapshot).await?;
    ///         let mut ctx = db.context();
    ///         ctx.add(Order { id: 0, item: "tea".into() });
    ///         ctx.save_changes().await?; // not in the snapshot
    ///         Ok((count, Order::query().all(&mut *snapshot).await?))
    ///     })
    ///     .await?;
    /// assert_eq!((count, orders.len()), (0, 0));
    /// assert_eq!(Order::query().count(&db).await?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The body's error; `PoolTimeout` when no read connection became free; what a read can meet.
    ///
    /// # Panics
    ///
    /// When `body` does; the connection is given back.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, the snapshot ends. A query of it that is dropped while it runs on a thread ends it too, and
    /// those after it fail with `TransactionEnded`.
    #[track_caller]
    pub fn read<T>(
        &self,
        body: impl AsyncFnOnce(&mut ReadSnapshot) -> Result<T>,
    ) -> impl Future<Output = Result<T>> {
        self.engine
            .read_snapshot("db.read", Location::caller(), body)
    }

    /// Runs `body` in an exclusive write transaction: committed when it returns `Ok`, rolled back otherwise.
    ///
    /// The transaction waits for its turn in the writer's queue, and no other write runs until it has ended: keep it
    /// short, and await nothing slow in it. Reads on the database itself see what was committed before; those on
    /// `&mut *tx` see what the transaction did. The error of `body` is returned as it is; wrap one of your own in
    /// [`Error::application`](crate::error::Error::application).
    ///
    /// # Errors
    ///
    /// The body's error; `Nested` inside of another write of the same task; `QueueTimeout` or `Busy` when the turn
    /// did not come; what [`TransactionGuard::commit`] can meet.
    ///
    /// # Panics
    ///
    /// When `body` does; the transaction is rolled back, and the writer goes on.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the commit began, nothing is written. Dropped during the commit, it commits or it does not.
    #[track_caller]
    pub fn write<T>(
        &self,
        body: impl AsyncFnOnce(&mut Transaction) -> Result<T>,
    ) -> impl Future<Output = Result<T>> {
        self.engine.write(Location::caller(), body)
    }

    /// Begins an exclusive write transaction as a guard, which is rolled back when dropped.
    ///
    /// Other writes of this process wait until it has ended. A write on the database itself while this task holds
    /// the guard waits for it in vain, and fails with `QueueTimeout`, which names where the guard was begun.
    ///
    /// # Errors
    ///
    /// `QueueTimeout` or `Busy` when the turn did not come; `Nested` inside of `write`.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, the place in the queue is given up.
    #[track_caller]
    pub fn begin(&self) -> impl Future<Output = Result<TransactionGuard>> {
        let at = Location::caller();
        async move {
            self.engine
                .begin("db.begin", at)
                .await
                .map(TransactionGuard::new)
        }
    }

    /// Runs `body` in a session: a write transaction that runs beside others, however long it waits inside, and is
    /// validated when it commits. If something that it saw is not so any more, it is run again, on what is there by
    /// then. After five attempts it is run once more as an exclusive transaction, which cannot conflict: so it always
    /// ends.
    ///
    /// The body may run several times. What it does outside of the database, it does each time.
    /// Each run gets a clone of it, and [`Session::attempt`] tells which run it is.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// # #[derive(Debug, Entity)]
    /// # #[entity(table = "accounts")]
    /// # struct Account { #[entity(id)] id: i64, balance: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Account>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Account { id: 0, balance: 10 });
    /// # ctx.save_changes().await?;
    /// let balance = db
    ///     .concurrent(async |s| {
    ///         let mut ctx = s.context();
    ///         let Some(account) = ctx.find::<Account>(1).await? else { return Ok(0) };
    ///         ctx[account].balance += 5; // nobody can have changed it when this is committed
    ///         ctx.save_changes().await?;
    ///         Ok(ctx[account].balance)
    ///     })
    ///     .await?;
    /// assert_eq!(balance, 15);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The body's own error, with everything undone: for errors of the application see
    /// [`Error::application`](crate::error::Error::application). `PoolTimeout` or `QueueTimeout` when the turn did not come,
    /// `SessionLimit` for a session that outgrew an option, `Nested` inside of another closure, and what a commit can meet.
    /// That the session itself was in conflict, or its validation took too long, is no error: it is run again.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the commit began, nothing is written. Dropped during the commit, it commits or it does not.
    #[track_caller]
    pub fn concurrent<T>(
        &self,
        body: impl AsyncFnOnce(&mut Session) -> Result<T> + Clone,
    ) -> impl Future<Output = Result<T>> {
        self.concurrent_with(ConcurrentOptions::new(), body)
    }

    /// The same with another isolation, or another number of attempts.
    ///
    /// # Errors
    ///
    /// As [`Database::concurrent`].
    ///
    /// # Cancel safety
    ///
    /// As [`Database::concurrent`].
    #[track_caller]
    pub fn concurrent_with<T>(
        &self,
        options: ConcurrentOptions,
        body: impl AsyncFnOnce(&mut Session) -> Result<T> + Clone,
    ) -> impl Future<Output = Result<T>> {
        self.engine.concurrent(options, Location::caller(), body)
    }

    /// Begins a session as a guard, which is rolled back when dropped. Its `commit` tells of a conflict, and then the work
    /// is to be run again from its start; [`Database::concurrent`] does that by itself.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// # #[derive(Debug, Entity)]
    /// # #[entity(table = "accounts")]
    /// # struct Account { #[entity(id)] id: i64, balance: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Account>().await?;
    /// let mut s = db.begin_concurrent(Isolation::Serializable).await?;
    /// let count = Account::query().count(&mut *s).await?;
    /// sqlx::query("INSERT INTO accounts (balance) VALUES (?)").bind(10).execute(&mut *s).await?;
    /// s.commit().await?; // nobody added an account meanwhile
    /// assert_eq!(count, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// `PoolTimeout` when all sessions are in use; `Nested` inside of `write` or `concurrent`.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, the place in the queue is given up.
    #[track_caller]
    pub fn begin_concurrent(
        &self,
        isolation: Isolation,
    ) -> impl Future<Output = Result<SessionGuard>> {
        let at = Location::caller();
        async move {
            self.engine
                .begin_session(isolation, at)
                .await
                .map(SessionGuard::new)
        }
    }

    /// Copies the database to another file while others write: the state of one moment, checked before it gets its name.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Note { #[entity(id)] id: i64, text: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Note>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Note { id: 0, text: "hello".into() });
    /// # ctx.save_changes().await?;
    /// # let path = db.path().with_file_name("backup.db");
    /// let report = db.backup_to(&path).await?;
    /// assert_eq!((report.tables, report.rows), (1, 1));
    /// let copy = Database::open(&path).await?;
    /// assert_eq!(Note::query().count(&copy).await?, 1);
    /// # copy.close().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// It is written beside its place, under a name that ends in `.partial`, read back, compared with the number of rows of
    /// each table, checked with SQLite's `integrity_check`, brought to the disk, and then renamed. It is one file in
    /// rollback mode, without a log: it can be copied anywhere, and read where nobody may write. Opened as a
    /// [`Database`] it gets a log like any other, and its commit numbers go on.
    ///
    /// Nobody waits for it: it has a connection and a thread of its own. While it copies, it holds a snapshot, and the log
    /// cannot start anew.
    ///
    /// # Errors
    ///
    /// `Refused` for what must not be overwritten: a file that is there, unless [`replace`](Backup::replace) is asked for; the
    /// database itself, by any name, or its log; a database that is open in this process, or beside which a log lies; the
    /// name of another one's log. `Full`
    /// when there is no room, which is looked at first; `CannotOpen` for a folder that is missing; `ReadOnly` for one that
    /// cannot be written; `Corrupt` when the database is damaged; `Interrupted` when it is stopped by its callback; `Options` for a path to memory; `Io`; `Closed`; `FileMoved`.
    ///
    /// # Panics
    ///
    /// When the callback of [`on_progress`](Backup::on_progress) does; nothing of the backup stays.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, the thread stops at the next step, and removes what it wrote. Only a process that is killed leaves its
    /// `.partial` file.
    #[track_caller]
    pub fn backup_to<'p>(&self, path: impl Into<PathBuf>) -> Backup<'p> {
        Backup::new(self.engine.clone(), Location::caller(), path.into())
    }

    /// Checks the whole file: its pages, indexes and constraints (`integrity_check`), and its references (`foreign_key_check`).
    ///
    /// It reads everything, on a connection and a thread of its own: nobody waits for it. While it runs, the log cannot start
    /// anew.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// let found = db.integrity().await?;
    /// assert!(found.is_ok(), "{:?} {:?}", found.messages, found.broken_references);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What a read can meet. Damage is no error: it is what was found.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, it stops.
    #[track_caller]
    pub fn integrity(&self) -> impl Future<Output = Result<Integrity>> {
        self.engine.integrity(Location::caller())
    }

    /// Moves the whole log into the database file and truncates it, if no reader is in the way.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let items = |count: i64| (0..count).map(|n| Item { id: 0, name: n.to_string() });
    /// db.bulk_insert_optimized(items(250)).await?;
    /// assert!(db.checkpoint().await?.is_complete());
    /// assert_eq!(db.wal_status().await?.bytes, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What a write can meet.
    ///
    /// # Cancel safety
    ///
    /// Dropped once its turn has come, it goes on to its end, with the writer held.
    pub async fn checkpoint(&self) -> Result<Checkpoint> {
        self.engine.checkpoint().await
    }

    /// Rebuilds the file without its free pages, and truncates the log. Nobody writes meanwhile.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Note { #[entity(id)] id: i64, text: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Note>().await?;
    /// # let notes = (0..1_000).map(|_| Note { id: 0, text: "hello".repeat(100) });
    /// # db.bulk_insert_optimized(notes).await?;
    /// Note::query().delete().execute(&db).await?;
    /// let report = db.vacuum().await?;
    /// assert!(report.bytes_after < report.bytes_before);
    /// # Ok(()) }
    /// ```
    ///
    /// It needs room for the log, which is as long as the rebuilt database until it is truncated, and for a temporary file of the same size
    /// unless [`temp_store`](DatabaseBuilder::temp_store) is memory. Both are looked at first.
    ///
    /// # Errors
    ///
    /// Kind `Full` when there is no room; the message says how much is missing, and nothing was written. `Refused` for a table
    /// whose definition was edited by hand, and which SQLite would lose. What a write can meet otherwise.
    ///
    /// # Cancel safety
    ///
    /// Dropped once its turn has come, it goes on to its end, with the writer held.
    pub async fn vacuum(&self) -> Result<VacuumReport> {
        self.engine.vacuum().await
    }

    /// Waits until all that was queued is written, closes the file for every handle, and truncates its log.
    ///
    /// What comes later through any handle is refused with kind `Closed`. Reads under way are finished, and their
    /// connections closed as they come back.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// let other = db.clone();
    /// assert!(db.close().await?.is_complete());
    /// assert_eq!(other.checkpoint().await.unwrap_err().kind(), ErrorKind::Closed);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// `Closed` if it was closed before; `QueueTimeout` if a transaction does not end. A file that has moved is closed
    /// without an error, and its log left as it is.
    ///
    /// # Cancel safety
    ///
    /// Dropped once its turn has come, it goes on to its end, with the writer held.
    pub async fn close(&self) -> Result<Checkpoint> {
        self.engine.close().await
    }

    /// What was done since the file was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    /// Who holds the writer at the moment, and for how long: what a health check should look at.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// assert_eq!(db.writer_holder(), None);
    /// let tx = db.begin().await?;
    /// assert!(db.writer_holder().unwrap().label.starts_with("db.begin at "));
    /// tx.rollback().await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn writer_holder(&self) -> Option<Holder> {
        self.engine.held_by()
    }

    /// How many frames (pages) the write-ahead log had after the last commit of this process.
    #[must_use]
    pub fn wal_frames(&self) -> u32 {
        self.engine.wal_frames()
    }

    /// The file, as an absolute path with links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.engine.path()
    }
}

/// What has to be in the file for these.
fn expected(tables: &[&'static TableDef]) -> Vec<ExpectedColumn> {
    let columns = |table: &'static TableDef| {
        table
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| ExpectedColumn {
                table: table.name,
                name: column.name,
                refers_to: (table.foreign_keys())
                    .find(move |foreign_key| foreign_key.columns.contains(&index))
                    .map(|foreign_key| (foreign_key.reference.table)().name),
            })
    };
    tables.iter().flat_map(|table| columns(table)).collect()
}

/// The stamped tables among these, with those of their tombstones, and their columns.
fn stamped(tables: &[&'static TableDef]) -> Vec<(String, &'static str)> {
    let columns = |table: &&'static TableDef| {
        let column = table.commit_seq?;
        let rows = (table.name.to_owned(), table.columns[column].name);
        let deleted = (table.tombstones).then(|| (tombstones_of(table.name), TOMBSTONE_SEQ));
        Some(std::iter::once(rows).chain(deleted))
    };
    tables.iter().filter_map(columns).flatten().collect()
}

impl Database {
    #[track_caller]
    fn asked(&self) -> AskedAt<'_> {
        self.engine.asked_at("a query", Location::caller())
    }
}

impl<'c> Executor<'c> for &'c Database {
    #[track_caller]
    fn read<T: Send + 'static>(self, read: Read<T>) -> impl Future<Output = Result<Vec<T>>> + Send {
        self.asked().read(read)
    }

    #[track_caller]
    fn read_together<T: Send + 'static>(
        self,
        reads: ReadTogether<T>,
    ) -> impl Future<Output = Result<T>> + Send {
        self.asked().read_together(reads)
    }

    #[track_caller]
    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        self.asked().stream(read)
    }
}

impl<'c> WriteExecutor<'c> for &'c Database {
    #[track_caller]
    fn write(self, write: Write) -> impl Future<Output = Result<Written>> + Send {
        self.asked().write(write)
    }
}
