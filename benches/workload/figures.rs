//! Medians, quantiles, and how they are printed.

use std::time::Duration;

/// How long operations took.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    nanos: Vec<u64>,
}

impl Latencies {
    /// An empty list with room for so many.
    #[must_use]
    pub fn with_capacity(operations: usize) -> Self {
        Self {
            nanos: Vec::with_capacity(operations),
        }
    }

    /// One operation took this long.
    pub fn push(&mut self, duration: Duration) {
        self.nanos
            .push(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Takes over what another list holds.
    pub fn append(&mut self, mut other: Self) {
        self.nanos.append(&mut other.nanos);
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.nanos.len()
    }

    /// What these parts per thousand of the operations did not exceed, for each of them.
    #[must_use]
    pub fn per_mille<const N: usize>(&self, parts: [usize; N]) -> [Option<Duration>; N] {
        let mut sorted = self.nanos.clone();
        sorted.sort_unstable();
        parts.map(|part| {
            // The smallest value that is not exceeded by so many: nearest rank.
            let rank = (sorted.len() * part).div_ceil(1000).max(1);
            sorted.get(rank - 1).copied().map(Duration::from_nanos)
        })
    }
}

/// The middle one of some figures, or the mean of the two in the middle; NaN of none.
#[must_use]
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (Some(above), 0) => f64::midpoint(sorted[middle - 1], *above),
        (Some(figure), _) => *figure,
        (None, _) => f64::NAN,
    }
}

/// A number for people: three significant digits or whole, thousands set apart.
#[must_use]
pub fn quantity(number: f64) -> String {
    if number < 100.0 {
        let decimals = if number < 10.0 { 2 } else { 1 };
        return format!("{number:.decimals$}");
    }
    let digits = format!("{number:.0}");
    let mut apart = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let mut latencies = Latencies::default();
        for micros in (1..=1000).rev() {
            latencies.push(Duration::from_micros(micros));
        }
        let micros = |micros| Some(Duration::from_micros(micros));
        assert_eq!(
            latencies.per_mille([500, 990, 999, 1000]),
            [micros(500), micros(990), micros(999), micros(1000)]
        );
        assert_eq!(Latencies::default().per_mille([500]), [None]);
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "no rounding in these")]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
    }

    #[test]
    fn numbers_are_legible() {
        let printed = [1.234, 12.34, 123.4, 1_234.5, 1_234_567.0].map(quantity);
        assert_eq!(printed, ["1.23", "12.3", "123", "1,234", "1,234,567"]);
    }
}
