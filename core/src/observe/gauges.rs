//! What is looked at every second, since keeping it up to date would cost each read and save something.

use std::time::Duration;

use crate::observe::{
    CounterHandle, Namespace,
    handles::GaugeHandle,
    instruments::{
        POOL_COUNT, POOL_PENDING, QUEUE_DEPTH, READER_AGE, SESSION_ALARMS, WAL_BYTES, WAL_FRAMES,
        WAL_UNMOVED,
    },
};

/// The gauges of one database.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) queue_depth: GaugeHandle,
    pub(crate) wal_frames: GaugeHandle,
    pub(crate) wal_unmoved: GaugeHandle,
    pub(crate) readers: PoolGauges,
    pub(crate) sessions: PoolGauges,
    reader_age: GaugeHandle,
    wal_bytes: GaugeHandle,
    alarms: CounterHandle,
}

/// Those of one pool.
#[derive(Debug, Default)]
pub(crate) struct PoolGauges {
    idle: GaugeHandle,
    used: GaugeHandle,
    pending: GaugeHandle,
}

/// How a pool is at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolState {
    pub(crate) idle: usize,
    pub(crate) used: usize,
    pub(crate) pending: usize,
}

impl Gauges {
    pub(crate) fn of(namespace: Namespace<'_>) -> Self {
        let gauge = |instrument| GaugeHandle::of(instrument, namespace, &[]);
        Self {
            queue_depth: gauge(&QUEUE_DEPTH),
            wal_frames: gauge(&WAL_FRAMES),
            wal_unmoved: gauge(&WAL_UNMOVED),
            readers: PoolGauges::of("readers", namespace),
            sessions: PoolGauges::of("sessions", namespace),
            reader_age: gauge(&READER_AGE),
            wal_bytes: gauge(&WAL_BYTES),
            alarms: CounterHandle::of(&SESSION_ALARMS, namespace, &[]),
        }
    }

    pub(crate) fn set_reader_age(&self, age: Duration) {
        self.reader_age.set(age.as_secs_f64());
    }

    #[allow(clippy::cast_precision_loss, reason = "no file is that large")]
    pub(crate) fn set_wal_bytes(&self, bytes: u64) {
        self.wal_bytes.set(bytes as f64);
    }

    pub(crate) fn set_alarms(&self, alarms: u64) {
        self.alarms.raise(alarms);
    }
}

impl PoolGauges {
    fn of(pool: &str, namespace: Namespace<'_>) -> Self {
        let pool = ("db.client.connection.pool.name", pool);
        let count = |state| {
            let labels = [pool, ("db.client.connection.state", state)];
            GaugeHandle::of(&POOL_COUNT, namespace, &labels)
        };
        Self {
            idle: count("idle"),
            used: count("used"),
            pending: GaugeHandle::of(&POOL_PENDING, namespace, &[pool]),
        }
    }

    pub(crate) fn set(&self, state: PoolState) {
        self.idle.set_count(state.idle);
        self.used.set_count(state.used);
        self.pending.set_count(state.pending);
    }
}
