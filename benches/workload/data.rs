//! The rows of the benchmarks, the same in every run.

use chrono::{DateTime, NaiveDateTime};

/// 2024-01-01 in microseconds since 1970, and how many microseconds that year has.
const YEAR: (u64, u64) = (1_704_067_200_000_000, 366 * 86_400_000_000);

/// An order without a key: what an application has at hand when it saves one.
#[derive(Debug, Clone, PartialEq)]
pub struct NewOrder {
    /// Who saves it.
    pub writer: i64,
    /// A text of twenty characters.
    pub item: String,
    /// 0 to 99.
    pub quantity: i64,
    /// 0 to 9,999.99.
    pub price: f64,
    /// A moment of 2024, to the microsecond.
    pub placed_at: NaiveDateTime,
}

impl NewOrder {
    /// The order number `n` of a writer.
    #[must_use]
    pub fn nth(writer: u32, n: u32) -> Self {
        let mut random = Random::new((u64::from(writer) << 32) | u64::from(n));
        let micros = YEAR.0 + random.below(YEAR.1);
        Self {
            writer: writer.into(),
            item: format!("item-{:015x}", random.next() >> 4),
            quantity: small(random.below(100)).into(),
            price: f64::from(small(random.below(1_000_000))) / 100.0,
            placed_at: i64::try_from(micros)
                .ok()
                .and_then(DateTime::from_timestamp_micros)
                .unwrap_or_default()
                .naive_utc(),
        }
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A small generator of pseudo-random numbers (splitmix64), the same sequence for the same seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[allow(
        clippy::should_implement_trait,
        reason = "it never ends, and needs none of what iterators can do"
    )]
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// The next number, below a bound.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_the_same_each_time_and_unlike_its_neighbours() {
        assert_eq!(NewOrder::nth(3, 7), NewOrder::nth(3, 7));
        assert_ne!(NewOrder::nth(3, 7).item, NewOrder::nth(3, 8).item);
        assert_ne!(NewOrder::nth(3, 7).item, NewOrder::nth(4, 7).item);
        assert_eq!(NewOrder::nth(3, 7).item.len(), 20);
    }
}
