//! Decimal numbers as integers.

#[cfg(feature = "bigdecimal")]
mod bigdecimal;
#[cfg(feature = "rust_decimal")]
mod rust_decimal;

use crate::value::{
    ColumnType, JsonValue, Scalar, Storage, Value, ValueError, ValueRef, from_json::number,
};

/// A decimal number as an INTEGER of its smallest unit; the column type of a field with `#[entity(scale = 2)]`.
///
/// With a scale of 2, `12.5` is stored as 1250: exact, and ordered, compared and summed rightly in SQL, where the
/// numbers are such units. What has more digits after the point than the scale, or does not fit in 64 bits, is
/// refused and never rounded. A number comes back with the scale of its field: `12.5` as `12.50`, an equal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Scaled<T, const SCALE: u32>(pub T);

/// A number that can be [`Scaled`]: `rust_decimal::Decimal` with the feature `rust_decimal`, `BigDecimal` with
/// `bigdecimal`, or one of your own.
#[diagnostic::on_unimplemented(
    message = "`scale` is for decimal numbers, not for `{Self}`",
    label = "not a decimal number",
    note = "`rust_decimal::Decimal` needs the feature `rust_decimal` of anabranch, `bigdecimal::BigDecimal` the feature `bigdecimal`"
)]
pub trait DecimalNumber: Sized {
    /// This number times ten to the power of `scale`, which is 18 at most.
    ///
    /// # Errors
    ///
    /// When that is no whole number ([`too_precise`](Self::too_precise)), or beyond 64 bits
    /// ([`too_large`](Self::too_large)).
    fn to_units(&self, scale: u32) -> Result<i64, ValueError>;

    /// The number that is this many units.
    fn from_units(units: i64, scale: u32) -> Self;

    /// The number has more digits after the point than the scale.
    #[must_use]
    fn too_precise() -> ValueError {
        ValueError::new("the number has more digits after the point than the field's `scale`")
    }

    /// The number that a text says, in decimal digits.
    fn from_text(text: &str) -> Option<Self>;

    /// The number of units is beyond 64 bits.
    #[must_use]
    fn too_large() -> ValueError {
        ValueError::new("the number is too large for the field's `scale`: it is stored in 64 bits")
    }
}

impl<T: DecimalNumber, const SCALE: u32> Scaled<T, SCALE> {
    const IN_RANGE: () = assert!(SCALE <= 18, "a 64-bit integer has 18 digits to spare");

    /// The integer of a borrowed number.
    ///
    /// # Errors
    ///
    /// When the number has more digits after the point than the scale, or is beyond 64 bits.
    pub fn encode_ref(number: &T) -> Result<Value, ValueError> {
        let () = Self::IN_RANGE;
        number.to_units(SCALE).map(Value::Integer)
    }
}

impl<T: DecimalNumber, const SCALE: u32> Scalar for Scaled<T, SCALE> {}

impl<T: DecimalNumber, const SCALE: u32> ColumnType for Scaled<T, SCALE> {
    const STORAGE: Storage = Storage::Integer;

    fn encode(&self) -> Result<Value, ValueError> {
        Self::encode_ref(&self.0)
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        let () = Self::IN_RANGE;
        i64::decode(value).map(|units| Self(T::from_units(units, SCALE)))
    }

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        number(json, "a decimal number", T::from_text).map(Self)
    }
}
