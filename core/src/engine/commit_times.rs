//! When commit numbers were given, as far as this process has seen: commits themselves have no time.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// So many looks are remembered; then every second one is forgotten.
const MOST: usize = 4096;

/// The last number at some moments, each with a larger one than before.
#[derive(Debug, Default)]
pub(in crate::engine) struct CommitTimes(Mutex<VecDeque<(i64, Instant)>>);

impl CommitTimes {
    /// This is the last number now.
    pub(in crate::engine) fn note(&self, last: i64, now: Instant) {
        let mut seen = self.lock();
        if seen.back().is_some_and(|(known, _)| *known >= last) {
            return;
        }
        if seen.len() == MOST {
            let mut stays = false;
            seen.retain(|_| {
                stays = !stays;
                stays
            });
        }
        seen.push_back((last, now));
    }

    /// For how long, at least, there has been a number after this one; nothing if none is known.
    pub(in crate::engine) fn age_after(&self, seq: i64, now: Instant) -> Option<Duration> {
        let seen = self.lock();
        let first = seen.partition_point(|(last, _)| *last <= seq);
        let (_, since) = seen.get(first)?;
        Some(now.saturating_duration_since(*since))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(i64, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::engine::commit_times::{CommitTimes, MOST};

    #[test]
    fn a_number_is_as_old_as_the_first_look_that_saw_a_later_one() {
        let times = CommitTimes::default();
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(times.age_after(0, began), None);
        times.note(5, after(0));
        times.note(5, after(1));
        times.note(9, after(2));
        let ages = [0, 4, 5, 8, 9].map(|seq| times.age_after(seq, after(10)));
        let seconds = [Some(10), Some(10), Some(8), Some(8), None];
        assert_eq!(ages, seconds.map(|age| age.map(Duration::from_secs)));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_makes_nothing_older() {
        let times = CommitTimes::default();
        let began = Instant::now();
        for seq in 0..20_000 {
            times.note(seq, began + Duration::from_secs(seq.unsigned_abs()));
        }
        assert!(times.lock().len() <= MOST);
        for seq in [0_i64, 1, 5_000, 19_000, 19_998] {
            let given = Duration::from_secs(seq.unsigned_abs() + 1);
            let age = times.age_after(seq, began + Duration::from_secs(20_000));
            assert!(age.unwrap() <= Duration::from_secs(20_000) - given, "{seq}");
        }
    }
}
