//! How the file and its log are.

use std::{future::Future, panic::Location};

use crate::{
    database::Database,
    engine::ReadSnapshot,
    error::Result,
    observe::{Health, WalStatus},
};

impl Database {
    /// The state of the write-ahead log, and who is in its way. Nothing is moved or changed for it.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Note { #[entity(id)] id: i64, text: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Note>().await?;
    /// db.read_labelled("report", async |snapshot| {
    ///     Note::query().count(&mut *snapshot).await?;
    ///     let status = db.wal_status().await?;
    ///     assert!(status.oldest_reader.unwrap().label.starts_with("report at "));
    ///     Ok(())
    /// })
    /// .await?;
    /// assert_eq!(db.wal_status().await?.oldest_reader, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// `Busy` while another process recovers the log; `FileMoved` and `Closed`; what a read can meet.
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, nothing has happened.
    pub async fn wal_status(&self) -> Result<WalStatus> {
        self.engine.wal_status().await
    }

    /// Whether the database is well, for a health endpoint: who holds the writer, how many wait, the log and who is in its way,
    /// the file in its place, the last checkpoint. It writes nothing and does not wait for the writer.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// let tx = db.begin().await?;
    /// let health = db.health().await;
    /// assert!(health.is_healthy() && health.writer.is_some());
    /// # tx.rollback().await?;
    /// db.close().await?;
    /// assert!(!db.health().await.is_healthy());
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, nothing has happened.
    pub async fn health(&self) -> Health {
        self.engine.health().await
    }

    /// The same as [`Database::read`], with a label by which [`wal_status`](Database::wal_status) and events name the snapshot while it
    /// is open.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Note { #[entity(id)] id: i64, text: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Note>().await?;
    /// let report = async |snapshot: &mut ReadSnapshot| Note::query().count(&mut *snapshot).await;
    /// assert_eq!(db.read_labelled("report", report).await?, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Database::read`].
    ///
    /// # Panics
    ///
    /// When `body` does; the connection is given back.
    ///
    /// # Cancel safety
    ///
    /// As [`Database::read`].
    #[track_caller]
    pub fn read_labelled<T>(
        &self,
        label: &'static str,
        body: impl AsyncFnOnce(&mut ReadSnapshot) -> Result<T>,
    ) -> impl Future<Output = Result<T>> {
        self.engine.read_snapshot(label, Location::caller(), body)
    }
}
