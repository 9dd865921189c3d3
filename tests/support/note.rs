//! The smallest entity, for tests that need some row to write.

use anabranch::prelude::*;

use crate::Mode;

/// Some row.
#[derive(Debug, Clone, PartialEq, Entity)]
pub struct Note {
    /// Given by the writer.
    #[entity(id)]
    pub id: i64,
    /// Anything.
    pub text: String,
}

/// A new note.
pub fn note(text: impl Into<String>) -> Note {
    Note {
        id: 0,
        text: text.into(),
    }
}

/// A database of its own with a table for notes.
pub async fn notes(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<Note>().await.unwrap();
    db
}
