//! Unsigned numbers that are larger than SQLite's integers.

use std::{fmt::Display, str::FromStr};

use crate::value::{
    ColumnType, JsonValue, Scalar, Storage, Value, ValueError, ValueRef, from_json::number,
    scalar::decode_str,
};

/// A `u64` or `u128` as decimal text with leading zeros, of one width, so that it sorts and compares as the number;
/// the column type of a field with `#[entity(padded)]`. It is no number to SQL: `sum` makes a REAL of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Padded<T>(pub T);

/// A number that can be [`Padded`]: `u64` or `u128`.
#[diagnostic::on_unimplemented(
    message = "`padded` is for `u64` and `u128`, not for `{Self}`",
    label = "remove `padded`"
)]
pub trait PaddedNumber: Display + FromStr {
    /// How many digits the largest has.
    const WIDTH: usize;
}

impl PaddedNumber for u64 {
    const WIDTH: usize = 20;
}

impl PaddedNumber for u128 {
    const WIDTH: usize = 39;
}

impl<T: PaddedNumber> Padded<T> {
    /// The text of a borrowed number.
    ///
    /// # Errors
    ///
    /// Never; the signature is that of the other column types.
    pub fn encode_ref(number: &T) -> Result<Value, ValueError> {
        Ok(Value::Text(format!("{number:0width$}", width = T::WIDTH)))
    }
}

impl<T: PaddedNumber> Scalar for Padded<T> {}

impl<T: PaddedNumber> ColumnType for Padded<T> {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        Self::encode_ref(&self.0)
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        let text = decode_str(value)?;
        let digits = text.len() == T::WIDTH && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(Self(number)),
            _ => Err(ValueError::new(format!(
                "the stored text is no padded number: {} digits, within the range of the field",
                T::WIDTH
            ))),
        }
    }

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        number(
            json,
            "a whole number within the range of the field",
            |text| text.parse().ok(),
        )
        .map(Self)
    }
}
