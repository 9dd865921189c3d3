//! Whether a database is well, for a health endpoint.

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use crate::observe::{Holder, WalStatus};

/// Whether a database is well; [`Database::health`](crate::database::Database::health) asks.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// let health = db.health().await;
/// assert!(health.is_healthy(), "{:?}", health.problems);
/// let json = serde_json::to_value(&health).unwrap();
/// assert_eq!((&json["healthy"], &json["problems"]), (&true.into(), &serde_json::json!([])));
/// assert!(json["wal"]["seconds_since_complete"].is_number());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// What is not well, in words; nothing if all is.
    pub problems: Vec<String>,
    /// Who holds the writer.
    pub writer: Option<Holder>,
    /// How many writes wait for it.
    pub queued: usize,
    /// The state of the log, if it could be read.
    pub wal: Option<WalStatus>,
    /// Whether the file is still where it was opened.
    pub is_in_place: bool,
    /// Why the last checkpoint failed, if it did.
    pub checkpoint_error: Option<String>,
}

impl Health {
    /// Whether nothing is wrong.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// assert!(db.health().await.is_healthy());
    /// db.close().await?;
    /// assert!(!db.health().await.is_healthy());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Its fields, and whether it is `healthy`.
impl Serialize for Health {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut told = serializer.serialize_struct("Health", 7)?;
        told.serialize_field("healthy", &self.is_healthy())?;
        told.serialize_field("problems", &self.problems)?;
        told.serialize_field("writer", &self.writer)?;
        told.serialize_field("queued", &self.queued)?;
        told.serialize_field("wal", &self.wal)?;
        told.serialize_field("is_in_place", &self.is_in_place)?;
        told.serialize_field("checkpoint_error", &self.checkpoint_error)?;
        told.end()
    }
}
