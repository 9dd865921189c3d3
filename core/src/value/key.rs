//! What can be a primary key, and where its values come from.

use std::{fmt::Debug, hash::Hash, ops::Range};

use uuid::Uuid;

use crate::value::Scalar;

/// Temporary keys are given from this range, from its start on: by a context at `add`, replaced at save. The lowest
/// integer is left out: programs like it as a sentinel.
pub const TEMPORARY_KEYS: Range<i64> = i64::MIN + 1..i64::MIN + (1 << 48);

/// Who gives a new entity its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrigin {
    /// The writer, at save; until then the entity holds a temporary key.
    Writer,
    /// The context, at `add`.
    Context,
    /// The application, always.
    Application,
}

/// A type that can be a primary key: `i64`, `Uuid` or `String`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a primary key",
    label = "not a key type",
    note = "a key is an i64 (given by the database), a Uuid (version 7, made at `add`) or a String (given by you)"
)]
pub trait PrimaryKey: Scalar + Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// Where new keys come from.
    const ORIGIN: KeyOrigin;

    /// Whether this is the value that asks for a new key: 0, or the nil UUID.
    fn is_unset(&self) -> bool;

    /// A new key, if the context makes them.
    #[must_use]
    fn generate() -> Option<Self> {
        None
    }

    /// The key with this integer, if the writer makes them.
    #[must_use]
    fn from_integer(_key: i64) -> Option<Self> {
        None
    }
}

impl PrimaryKey for i64 {
    const ORIGIN: KeyOrigin = KeyOrigin::Writer;

    fn is_unset(&self) -> bool {
        *self == 0
    }

    fn from_integer(key: i64) -> Option<Self> {
        Some(key)
    }
}

impl PrimaryKey for Uuid {
    const ORIGIN: KeyOrigin = KeyOrigin::Context;

    fn is_unset(&self) -> bool {
        self.is_nil()
    }

    fn generate() -> Option<Self> {
        Some(Self::now_v7())
    }
}

impl PrimaryKey for String {
    const ORIGIN: KeyOrigin = KeyOrigin::Application;

    fn is_unset(&self) -> bool {
        false
    }
}
