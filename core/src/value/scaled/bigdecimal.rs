//! `bigdecimal::BigDecimal`.

use bigdecimal::BigDecimal;

use crate::value::{DecimalNumber, ValueError};

/// Beyond this no number fits, but for zero and such as end in millions of zeros; the crate's arithmetic overflows.
const FURTHEST: u64 = 1 << 32;

impl DecimalNumber for BigDecimal {
    fn to_units(&self, scale: u32) -> Result<i64, ValueError> {
        // Without trailing zeros; what has tens of zeros before the point has a negative scale then.
        let (_, exponent) = self.as_bigint_and_exponent();
        if exponent.unsigned_abs() > FURTHEST {
            return Err(if exponent < 0 {
                Self::too_large()
            } else {
                Self::too_precise()
            });
        }
        let (mantissa, digits) = self.normalized().into_bigint_and_exponent();
        let Ok(missing) = u32::try_from(i64::from(scale).saturating_sub(digits)) else {
            return Err(if digits > i64::from(scale) {
                Self::too_precise()
            } else {
                Self::too_large()
            });
        };
        i64::try_from(mantissa)
            .ok()
            .zip(10_i64.checked_pow(missing))
            .and_then(|(mantissa, factor)| mantissa.checked_mul(factor))
            .ok_or_else(Self::too_large)
    }

    fn from_units(units: i64, scale: u32) -> Self {
        Self::new(units.into(), i64::from(scale))
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}
