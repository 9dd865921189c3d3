//! `rust_decimal::Decimal`.

use rust_decimal::Decimal;

use crate::value::{DecimalNumber, ValueError};

impl DecimalNumber for Decimal {
    fn to_units(&self, scale: u32) -> Result<i64, ValueError> {
        // Without trailing zeros: `1.50` fits where `1.5` does.
        let number = self.normalize();
        let Some(missing) = scale.checked_sub(number.scale()) else {
            return Err(Self::too_precise());
        };
        number
            .mantissa()
            .checked_mul(10_i128.pow(missing))
            .and_then(|units| i64::try_from(units).ok())
            .ok_or_else(Self::too_large)
    }

    fn from_units(units: i64, scale: u32) -> Self {
        Self::new(units, scale)
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::from_str_exact(text)
            .or_else(|_| Self::from_scientific(text))
            .ok()
    }
}
