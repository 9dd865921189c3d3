//! What can be a primary key, and where its values come from.

use std::{fmt::Debug, hash::Hash, ops::Range};

use uuid::Uuid;

use crate::value::{Scalar, Value, ValueError};

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

/// A type that one column of a primary key can have: `i64`, `Uuid`, `String`, or a newtype of one of them; and [`Value`],
/// for tables of other programs whose keys are a mixture.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a primary key",
    label = "not a key type",
    note = "a key is an i64 (given by the database), a Uuid (version 7, made at `add`) or a String (given by you)",
    note = "for a newtype of one of these derive `EntityNewtype` and write #[entity(key)] on it"
)]
pub trait KeyColumn: Scalar + Clone + Eq + Hash + Debug + Send + Sync + 'static {
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

impl KeyColumn for i64 {
    const ORIGIN: KeyOrigin = KeyOrigin::Writer;

    fn is_unset(&self) -> bool {
        *self == 0
    }

    fn from_integer(key: i64) -> Option<Self> {
        Some(key)
    }
}

impl KeyColumn for Uuid {
    const ORIGIN: KeyOrigin = KeyOrigin::Context;

    fn is_unset(&self) -> bool {
        self.is_nil()
    }

    fn generate() -> Option<Self> {
        Some(Self::now_v7())
    }
}

impl KeyColumn for String {
    const ORIGIN: KeyOrigin = KeyOrigin::Application;

    fn is_unset(&self) -> bool {
        false
    }
}

/// A primary key: a [`KeyColumn`], or a tuple of two to twelve of them, which the application always gives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a primary key",
    label = "not a key type",
    note = "a key is an i64 (given by the database), a Uuid (version 7, made at `add`) or a String (given by you)",
    note = "for a newtype of one of these derive `EntityNewtype` and write #[entity(key)] on it"
)]
pub trait PrimaryKey: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// Where new keys come from.
    const ORIGIN: KeyOrigin;

    /// Whether this is the value that asks for a new key. A key of several columns never does.
    fn is_unset(&self) -> bool;

    /// A new key, if the context makes them.
    #[must_use]
    fn generate() -> Option<Self>;

    /// The key with this integer, if the writer makes them.
    #[must_use]
    fn from_integer(key: i64) -> Option<Self>;

    /// The values to store, one for each column of the key.
    ///
    /// # Errors
    ///
    /// The index, within the key, of a column that could not keep its value exactly, and why.
    fn to_values(&self) -> Result<Vec<Value>, (usize, ValueError)>;

    /// The key with these values; `None` if they are not those of such a key.
    #[must_use]
    fn from_values(values: &[Value]) -> Option<Self>;
}

#[diagnostic::do_not_recommend]
impl<K: KeyColumn> PrimaryKey for K {
    const ORIGIN: KeyOrigin = K::ORIGIN;

    fn is_unset(&self) -> bool {
        KeyColumn::is_unset(self)
    }

    fn generate() -> Option<Self> {
        <K as KeyColumn>::generate()
    }

    fn from_integer(key: i64) -> Option<Self> {
        <K as KeyColumn>::from_integer(key)
    }

    fn to_values(&self) -> Result<Vec<Value>, (usize, ValueError)> {
        match self.encode() {
            Ok(value) => Ok(vec![value]),
            Err(error) => Err((0, error)),
        }
    }

    fn from_values(values: &[Value]) -> Option<Self> {
        match values {
            [value] => K::decode(value.as_ref()).ok(),
            _ => None,
        }
    }
}

macro_rules! composite {
    ($($part:ident $index:tt),*) => {
        #[diagnostic::do_not_recommend]
        impl<$($part: KeyColumn),*> PrimaryKey for ($($part,)*) {
            const ORIGIN: KeyOrigin = KeyOrigin::Application;

            fn is_unset(&self) -> bool {
                false
            }

            fn generate() -> Option<Self> {
                None
            }

            fn from_integer(_key: i64) -> Option<Self> {
                None
            }

            fn to_values(&self) -> Result<Vec<Value>, (usize, ValueError)> {
                Ok(vec![$(self.$index.encode().map_err(|error| ($index, error))?),*])
            }

            fn from_values(values: &[Value]) -> Option<Self> {
                let parts = [$($index),*].len();
                if values.len() != parts {
                    return None;
                }
                Some(($($part::decode(values[$index].as_ref()).ok()?,)*))
            }
        }
    };
}

composite!(A 0, B 1);
composite!(A 0, B 1, C 2);
composite!(A 0, B 1, C 2, D 3);
composite!(A 0, B 1, C 2, D 3, E 4);
composite!(A 0, B 1, C 2, D 3, E 4, F 5);
composite!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
composite!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
composite!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
composite!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
composite!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
composite!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
