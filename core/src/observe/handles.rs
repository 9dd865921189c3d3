//! Where values are told: to the recorder of the `metrics` crate that is installed when a database is opened, or to nobody.
//!
//! A handle is resolved once, so that telling costs a test of a pointer without a recorder, and nothing without the feature.

#[cfg(feature = "metrics")]
use metrics::{Label, SharedString, Unit};

use crate::observe::{Instrument, InstrumentKind};

/// What the labels of one database's instruments begin with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Namespace<'a>(pub(crate) &'a str);

/// Labels beside the namespace.
type Labels<'a> = &'a [(&'static str, &'a str)];

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $register:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub(crate) struct $name {
            #[cfg(feature = "metrics")]
            handle: metrics::$kind,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    #[cfg(feature = "metrics")]
                    handle: metrics::$kind::noop(),
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }

        impl $name {
            #[cfg(feature = "metrics")]
            pub(crate) fn of(instrument: &Instrument, namespace: Namespace<'_>, labels: Labels<'_>) -> Self {
                debug_assert_eq!(instrument.kind, InstrumentKind::$kind);
                describe(instrument);
                let labels = labels_of(namespace, labels);
                Self { handle: metrics::$register!(instrument.name, labels) }
            }

            #[cfg(not(feature = "metrics"))]
            pub(crate) fn of(instrument: &Instrument, _: Namespace<'_>, _: Labels<'_>) -> Self {
                debug_assert_eq!(instrument.kind, InstrumentKind::$kind);
                Self {}
            }
        }
    };
}

handle!(
    /// Of what adds up.
    CounterHandle, Counter, counter
);
handle!(
    /// Of what is as it is now.
    GaugeHandle, Gauge, gauge
);
handle!(
    /// Of what is distributed.
    HistogramHandle, Histogram, histogram
);

#[cfg_attr(
    not(feature = "metrics"),
    allow(clippy::unused_self, reason = "there is nobody to tell")
)]
impl CounterHandle {
    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "as above"))]
    pub(crate) fn add(&self, count: u64) {
        #[cfg(feature = "metrics")]
        self.handle.increment(count);
    }

    /// Makes it what was counted elsewhere.
    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "as above"))]
    pub(crate) fn raise(&self, to: u64) {
        #[cfg(feature = "metrics")]
        self.handle.absolute(to);
    }
}

#[cfg_attr(
    not(feature = "metrics"),
    allow(clippy::unused_self, reason = "there is nobody to tell")
)]
impl GaugeHandle {
    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "as above"))]
    pub(crate) fn set(&self, value: f64) {
        #[cfg(feature = "metrics")]
        self.handle.set(value);
    }

    #[allow(clippy::cast_precision_loss, reason = "there are never so many")]
    pub(crate) fn set_count(&self, count: usize) {
        self.set(count as f64);
    }
}

#[cfg_attr(
    not(feature = "metrics"),
    allow(clippy::unused_self, reason = "there is nobody to tell")
)]
impl HistogramHandle {
    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "as above"))]
    pub(crate) fn record(&self, value: f64) {
        #[cfg(feature = "metrics")]
        self.handle.record(value);
    }
}

#[cfg(feature = "metrics")]
fn labels_of(namespace: Namespace<'_>, labels: Labels<'_>) -> Vec<Label> {
    let own = Label::new("db.namespace", namespace.0.to_owned());
    let more = labels
        .iter()
        .map(|(name, value)| Label::new(*name, (*value).to_owned()));
    std::iter::once(own).chain(more).collect()
}

#[cfg(feature = "metrics")]
fn describe(instrument: &Instrument) {
    let unit = match instrument.unit {
        "s" => Unit::Seconds,
        "By" => Unit::Bytes,
        _ => Unit::Count,
    };
    let shows = SharedString::const_str(instrument.shows);
    match instrument.kind {
        InstrumentKind::Counter => metrics::describe_counter!(instrument.name, unit, shows),
        InstrumentKind::Gauge => metrics::describe_gauge!(instrument.name, unit, shows),
        InstrumentKind::Histogram => metrics::describe_histogram!(instrument.name, unit, shows),
    }
}
