//! What is told to a recorder beside the counters: how things are distributed.

use std::{fmt, sync::Arc, time::Duration};

use crate::observe::{
    CounterHandle, Gauges, HistogramHandle, Namespace, Operation,
    instruments::{
        GROUP_DURATION, GROUP_SIZE, MERGE_DURATION, OPERATION_DURATION, PASS_DURATION, PASSES,
        POOL_TIMEOUTS, POOL_WAIT, QUEUE_WAIT,
    },
};

/// The histograms of one database, and what has more labels than its name.
#[derive(Debug, Default)]
pub(crate) struct Told {
    namespace: Arc<str>,
    operations: [HistogramHandle; Operation::ALL.len()],
    queue_wait: HistogramHandle,
    group_size: HistogramHandle,
    group_duration: HistogramHandle,
    merge_duration: HistogramHandle,
    passes: [PassTold; PassEnd::ALL.len()],
    pub(crate) readers: PoolTold,
    pub(crate) sessions: PoolTold,
    pub(crate) gauges: Gauges,
}

#[derive(Debug, Default)]
struct PassTold {
    count: CounterHandle,
    duration: HistogramHandle,
}

/// How a pass over the log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassEnd {
    Complete,
    PartlyMoved,
    MovedNotReset,
    OtherCheckpointer,
    Failed,
}

/// What is told of a pool.
#[derive(Debug, Clone, Default)]
pub(crate) struct PoolTold {
    wait: HistogramHandle,
    timeouts: CounterHandle,
}

impl Told {
    pub(crate) fn of(namespace: Namespace<'_>) -> Self {
        let histogram = |instrument| HistogramHandle::of(instrument, namespace, &[]);
        Self {
            namespace: namespace.0.into(),
            operations: Operation::ALL.map(|operation| {
                let labels = [
                    ("db.system.name", "sqlite"),
                    ("db.operation.name", operation.name()),
                ];
                HistogramHandle::of(&OPERATION_DURATION, namespace, &labels)
            }),
            queue_wait: histogram(&QUEUE_WAIT),
            group_size: histogram(&GROUP_SIZE),
            group_duration: histogram(&GROUP_DURATION),
            merge_duration: histogram(&MERGE_DURATION),
            passes: PassEnd::ALL.map(|end| {
                let labels = [("outcome", end.name())];
                PassTold {
                    count: CounterHandle::of(&PASSES, namespace, &labels),
                    duration: HistogramHandle::of(&PASS_DURATION, namespace, &labels),
                }
            }),
            readers: PoolTold::of("readers", namespace),
            sessions: PoolTold::of("sessions", namespace),
            gauges: Gauges::of(namespace),
        }
    }

    /// The database's name, as spans and labels have it.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A statement, or a save, went well.
    pub(crate) fn operation(&self, operation: Operation, time: Duration) {
        self.operations[operation as usize].record(time.as_secs_f64());
    }

    /// It failed. Rare, so that its instrument is looked up.
    pub(crate) fn failed_operation(
        &self,
        operation: Operation,
        error: impl fmt::Debug,
        time: Duration,
    ) {
        if !cfg!(feature = "metrics") {
            return;
        }
        let error = format!("{error:?}");
        let labels = [
            ("db.system.name", "sqlite"),
            ("db.operation.name", operation.name()),
            ("error.type", &*error),
        ];
        let namespace = Namespace(&self.namespace);
        HistogramHandle::of(&OPERATION_DURATION, namespace, &labels).record(time.as_secs_f64());
    }

    pub(crate) fn queued(&self, wait: Duration) {
        self.queue_wait.record(wait.as_secs_f64());
    }

    #[allow(clippy::cast_precision_loss, reason = "no group is that large")]
    pub(crate) fn group(&self, units: u64) {
        self.group_size.record(units as f64);
    }

    pub(crate) fn committed(&self, time: Duration) {
        self.group_duration.record(time.as_secs_f64());
    }

    pub(crate) fn merge(&self, time: Duration) {
        self.merge_duration.record(time.as_secs_f64());
    }

    pub(crate) fn pass(&self, end: PassEnd, time: Option<Duration>) {
        let told = &self.passes[end as usize];
        told.count.add(1);
        if let Some(time) = time {
            told.duration.record(time.as_secs_f64());
        }
    }
}

impl PassEnd {
    const ALL: [Self; 5] = [
        Self::Complete,
        Self::PartlyMoved,
        Self::MovedNotReset,
        Self::OtherCheckpointer,
        Self::Failed,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::PartlyMoved => "partly_moved",
            Self::MovedNotReset => "moved_not_reset",
            Self::OtherCheckpointer => "other_checkpointer",
            Self::Failed => "failed",
        }
    }
}

impl PoolTold {
    fn of(pool: &str, namespace: Namespace<'_>) -> Self {
        let labels = [("db.client.connection.pool.name", pool)];
        Self {
            wait: HistogramHandle::of(&POOL_WAIT, namespace, &labels),
            timeouts: CounterHandle::of(&POOL_TIMEOUTS, namespace, &labels),
        }
    }

    pub(crate) fn waited(&self, wait: Duration) {
        self.wait.record(wait.as_secs_f64());
    }

    pub(crate) fn timed_out(&self) {
        self.timeouts.add(1);
    }
}
