//! What can stand on the other side of a column.

use std::{borrow::Cow, sync::Arc};

use crate::value::{
    ColumnType, DecimalNumber, Padded, PaddedNumber, Scalar, Scaled, Value, ValueError, check_text,
};

/// A value that can be compared with a column of type `T`.
///
/// A column takes its own type and references to it; a column that may be NULL takes values with and without
/// `Some`, and `None`; a text column takes `&str`; a column of bytes takes slices; a column with a `scale`, or
/// `padded`, takes plain numbers.
#[diagnostic::on_unimplemented(
    message = "a column of type `{T}` cannot be compared with `{Self}`",
    label = "does not fit the column",
    note = "use the field's own type; for a column that may be NULL, with or without `Some`"
)]
pub trait Operand<T> {
    /// The value as the column would store it.
    ///
    /// # Errors
    ///
    /// When the column could not store it.
    fn encode(self) -> Result<Value, ValueError>;
}

impl<T: Scalar> Operand<T> for T {
    fn encode(self) -> Result<Value, ValueError> {
        ColumnType::encode(&self)
    }
}

impl<T: Scalar> Operand<T> for &T {
    fn encode(self) -> Result<Value, ValueError> {
        ColumnType::encode(self)
    }
}

impl<T: Scalar> Operand<Option<T>> for T {
    fn encode(self) -> Result<Value, ValueError> {
        ColumnType::encode(&self)
    }
}

impl<T: Scalar> Operand<Option<T>> for &T {
    fn encode(self) -> Result<Value, ValueError> {
        ColumnType::encode(self)
    }
}

impl<T: Scalar> Operand<Self> for Option<T> {
    fn encode(self) -> Result<Value, ValueError> {
        ColumnType::encode(&self)
    }
}

impl<T: Scalar> Operand<Option<T>> for &Option<T> {
    fn encode(self) -> Result<Value, ValueError> {
        ColumnType::encode(self)
    }
}

macro_rules! borrowed {
    ($([$($generics:tt)*] $borrowed:ty => $owned:ty, $encode:expr;)*) => {$(
        impl<$($generics)*> Operand<$owned> for $borrowed {
            fn encode(self) -> Result<Value, ValueError> {
                $encode(self)
            }
        }

        impl<$($generics)*> Operand<Option<$owned>> for $borrowed {
            fn encode(self) -> Result<Value, ValueError> {
                $encode(self)
            }
        }
    )*};
}

borrowed! {
    [] &str => String, encode_str;
    [] &str => Box<str>, encode_str;
    [] &str => Arc<str>, encode_str;
    [] &str => Cow<'static, str>, encode_str;
    [] &[u8] => Vec<u8>, encode_bytes;
    [const N: usize] &[u8; N] => Vec<u8>, encode_bytes;
}

fn encode_str(text: &str) -> Result<Value, ValueError> {
    check_text(text)?;
    Ok(Value::Text(text.to_owned()))
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "stands beside others that can fail"
)]
fn encode_bytes(bytes: &[u8]) -> Result<Value, ValueError> {
    Ok(Value::Blob(bytes.to_vec()))
}

macro_rules! wrapped {
    ($([$($generics:tt)*] $wrapped:ident => $column:ty;)*) => {$(
        impl<$($generics)*> Operand<$column> for $wrapped {
            fn encode(self) -> Result<Value, ValueError> {
                <$column>::encode_ref(&self)
            }
        }

        impl<$($generics)*> Operand<$column> for &$wrapped {
            fn encode(self) -> Result<Value, ValueError> {
                <$column>::encode_ref(self)
            }
        }

        impl<$($generics)*> Operand<Option<$column>> for $wrapped {
            fn encode(self) -> Result<Value, ValueError> {
                <$column>::encode_ref(&self)
            }
        }

        impl<$($generics)*> Operand<Option<$column>> for &$wrapped {
            fn encode(self) -> Result<Value, ValueError> {
                <$column>::encode_ref(self)
            }
        }

        impl<$($generics)*> Operand<Option<$column>> for Option<$wrapped> {
            fn encode(self) -> Result<Value, ValueError> {
                Operand::<Option<$column>>::encode(&self)
            }
        }

        impl<$($generics)*> Operand<Option<$column>> for &Option<$wrapped> {
            fn encode(self) -> Result<Value, ValueError> {
                self.as_ref().map_or(Ok(Value::Null), <$column>::encode_ref)
            }
        }
    )*};
}

wrapped! {
    [T: DecimalNumber, const SCALE: u32] T => Scaled<T, SCALE>;
    [T: PaddedNumber] T => Padded<T>;
}
