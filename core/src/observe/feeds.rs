//! What is told of feeds.

use std::time::Duration;

use crate::observe::{
    CounterHandle, Namespace,
    handles::GaugeHandle,
    instruments::{
        FEED_AGE, FEED_BATCHES, FEED_EVENTS, FEED_LAG, FEED_PARKED, FEED_RETRIES, FEED_SKIPPED,
    },
};

/// The counters of one feed.
#[derive(Debug, Default)]
pub(crate) struct FeedTold {
    batches: CounterHandle,
    events: CounterHandle,
    retries: CounterHandle,
    skipped: CounterHandle,
}

impl FeedTold {
    pub(crate) fn of(namespace: &str, name: &str) -> Self {
        let namespace = Namespace(namespace);
        let labels = [("anabranch.feed.name", name)];
        Self {
            batches: CounterHandle::of(&FEED_BATCHES, namespace, &labels),
            events: CounterHandle::of(&FEED_EVENTS, namespace, &labels),
            retries: CounterHandle::of(&FEED_RETRIES, namespace, &labels),
            skipped: CounterHandle::of(&FEED_SKIPPED, namespace, &labels),
        }
    }

    /// It read a batch of so many changes.
    pub(crate) fn read(&self, events: usize) {
        self.batches.add(1);
        self.events.add(events as u64);
    }

    pub(crate) fn retried(&self) {
        self.retries.add(1);
    }

    pub(crate) fn skipped(&self) {
        self.skipped.add(1);
    }
}

/// How far a consumer is behind, whether it runs or not.
#[derive(Debug)]
pub(crate) struct FeedGauges {
    lag: GaugeHandle,
    age: GaugeHandle,
    parked: GaugeHandle,
}

impl FeedGauges {
    pub(crate) fn of(namespace: Namespace<'_>, name: &str) -> Self {
        let labels = [("anabranch.feed.name", name)];
        Self {
            lag: GaugeHandle::of(&FEED_LAG, namespace, &labels),
            age: GaugeHandle::of(&FEED_AGE, namespace, &labels),
            parked: GaugeHandle::of(&FEED_PARKED, namespace, &labels),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "there are never so many")]
    pub(crate) fn set(&self, lag: u64, age: Duration, parked: u64) {
        self.lag.set(lag as f64);
        self.age.set(age.as_secs_f64());
        self.parked.set(parked as f64);
    }
}
