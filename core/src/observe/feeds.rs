//! What a feed tells of itself.

use crate::observe::{
    CounterHandle, Namespace,
    handles::GaugeHandle,
    instruments::{FEED_BATCHES, FEED_EVENTS, FEED_LAG},
};

/// The instruments of one feed.
#[derive(Debug, Default)]
pub(crate) struct FeedTold {
    batches: CounterHandle,
    events: CounterHandle,
    lag: GaugeHandle,
}

impl FeedTold {
    pub(crate) fn of(namespace: &str, name: &str) -> Self {
        let namespace = Namespace(namespace);
        let labels = [("anabranch.feed.name", name)];
        Self {
            batches: CounterHandle::of(&FEED_BATCHES, namespace, &labels),
            events: CounterHandle::of(&FEED_EVENTS, namespace, &labels),
            lag: GaugeHandle::of(&FEED_LAG, namespace, &labels),
        }
    }

    /// It looked, and found so many changes; so many numbers were given since its place.
    #[allow(clippy::cast_precision_loss, reason = "there are never so many")]
    pub(crate) fn looked(&self, events: usize, behind: u64) {
        if events > 0 {
            self.batches.add(1);
            self.events.add(events as u64);
        }
        self.lag.set(behind as f64);
    }
}
