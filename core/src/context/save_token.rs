//! Tokens by which a save is found again.

use std::{fmt, sync::Arc};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    entity::CommitSeq,
    error::{Error, ErrorKind, Result},
};

/// The name of one save, chosen by the application before it saves: a UUID, or a text that comes from outside, such as
/// the idempotency key of a request. See [`Context::save_changes_with`](crate::context::Context::save_changes_with).
///
/// It is a text in the database, in the table `anabranch_saves`; a UUID is the text with hyphens in lower case.
///
/// ```
/// use anabranch::context::SaveToken;
///
/// let fresh = SaveToken::new();
/// let again = SaveToken::from_text(&fresh.to_string())?; // as it was kept elsewhere
/// assert_eq!(fresh, again);
/// # Ok::<(), anabranch::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SaveToken(Arc<str>);

/// The most bytes of a token.
const MOST_BYTES: usize = 255;

impl SaveToken {
    /// A token that no other save has: a version 7 UUID.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "each is another one: there is no default"
    )]
    pub fn new() -> Self {
        Self::from(Uuid::now_v7())
    }

    /// A token from a text, which is taken as it is: case and spaces count.
    ///
    /// # Errors
    ///
    /// Kind `Value` if it is empty, has more than 255 bytes, or contains a NUL.
    pub fn from_text(text: &str) -> Result<Self> {
        if text.is_empty() || text.len() > MOST_BYTES || text.contains('\0') {
            return Err(Error::new(
                ErrorKind::Value,
                "the token of a save is a text of 1 to 255 bytes without a NUL: take a hash of what is longer",
            ));
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl From<Uuid> for SaveToken {
    fn from(id: Uuid) -> Self {
        Self(id.hyphenated().to_string().into())
    }
}

impl fmt::Display for SaveToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// When a save with a token was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedAt {
    /// When the writer ran it, by the clock of the system.
    pub time: DateTime<Utc>,
    /// The commit number, if a table with such a column was written.
    pub commit_seq: Option<CommitSeq>,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use crate::{context::SaveToken, error::ErrorKind};

    #[test]
    fn a_token_is_a_text_of_1_to_255_bytes() {
        for text in ["a", " ", "Ω", &"é".repeat(127), &"x".repeat(255)] {
            assert_eq!(SaveToken::from_text(text).unwrap().as_str(), text);
        }
        for text in ["", "a\0b", "\0", &"x".repeat(256), &"é".repeat(128)] {
            let error = SaveToken::from_text(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Value, "{text:?}");
        }
    }

    #[test]
    fn a_uuid_and_its_text_are_one_token() {
        let id = Uuid::from_u128(0x8e03_978e_40d5_43e8_bc93_6894_a57f_9324);
        let text = "8e03978e-40d5-43e8-bc93-6894a57f9324";
        assert_eq!(SaveToken::from(id), SaveToken::from_text(text).unwrap());
        assert_ne!(SaveToken::new(), SaveToken::new());
    }
}
