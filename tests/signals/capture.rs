//! Keeps all that is told, of all levels and targets, and all that is recorded.

use std::{
    collections::BTreeMap,
    fmt,
    path::Path,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use anabranch::{database::DatabaseBuilder, prelude::*};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

/// A span or an event.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) target: &'static str,
    pub(crate) level: Level,
    pub(crate) is_span: bool,
    /// Of a span, and whose it is of an event.
    pub(crate) span: Option<u64>,
    pub(crate) parent: Option<u64>,
    pub(crate) fields: BTreeMap<&'static str, String>,
}

impl Line {
    pub(crate) fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }

    pub(crate) fn is_of(&self, database: &str) -> bool {
        self.get("db.namespace") == database
    }
}

/// A value of an instrument, with its labels.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) unit: Option<metrics::Unit>,
    pub(crate) description: Option<String>,
    pub(crate) value: Told,
}

/// What it is.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Counter(u64),
    Gauge(f64),
    Histogram(Vec<f64>),
}

static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());
static VALUES: Mutex<Vec<Value>> = Mutex::new(Vec::new());
static RECORDED: OnceLock<Snapshotter> = OnceLock::new();

/// Captures from now on. To be called before a database is opened.
pub(crate) fn start() {
    RECORDED.get_or_init(|| {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        metrics::set_global_recorder(recorder).unwrap();
        let subscriber = tracing_subscriber::registry().with(Keeper);
        tracing::subscriber::set_global_default(subscriber).unwrap();
        snapshotter
    });
}

/// A database of this name.
pub(crate) async fn open(
    folder: &Path,
    name: &str,
    set: impl FnOnce(DatabaseBuilder) -> DatabaseBuilder,
) -> Database {
    start();
    let builder = Database::builder(folder.join(name));
    set(builder).open().await.unwrap()
}

/// What was told so far.
pub(crate) fn lines() -> Vec<Line> {
    lock().clone()
}

/// The spans of a database of this name.
pub(crate) fn spans(database: &str, name: &str) -> Vec<Line> {
    let all = lines().into_iter();
    all.filter(|line| line.is_span && line.name == name && line.is_of(database))
        .collect()
}

/// The events with this text.
pub(crate) fn events(message: &str) -> Vec<Line> {
    let all = lines().into_iter();
    all.filter(|line| !line.is_span && line.get("message") == message)
        .collect()
}

/// What was recorded so far; of a counter what each look found that was new, of a gauge what was set since, or 0.
pub(crate) fn recorded() -> Vec<Value> {
    let mut values = VALUES.lock().unwrap_or_else(PoisonError::into_inner);
    // It empties all.
    let snapshot = RECORDED.get().unwrap().snapshot();
    values.extend(
        (snapshot.into_vec().into_iter()).map(|(key, unit, description, value)| {
            let key = key.key();
            Value {
                name: key.name().to_owned(),
                labels: (key.labels())
                    .map(|label| (label.key().to_owned(), label.value().to_owned()))
                    .collect(),
                unit,
                description: description.map(|text| text.to_string()),
                value: match value {
                    DebugValue::Counter(count) => Told::Counter(count),
                    DebugValue::Gauge(value) => Told::Gauge(value.0),
                    DebugValue::Histogram(samples) => {
                        Told::Histogram(samples.iter().map(|sample| sample.0).collect())
                    }
                },
            }
        }),
    );
    values.clone()
}

fn lock() -> MutexGuard<'static, Vec<Line>> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps everything.
struct Keeper;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Keeper {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let meta = attributes.metadata();
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let parent = context.span(id).and_then(|span| Some(span.parent()?.id()));
        lock().push(Line {
            name: meta.name(),
            target: meta.target(),
            level: *meta.level(),
            is_span: true,
            span: Some(id.into_u64()),
            parent: parent.map(|id| id.into_u64()),
            fields: fields.0,
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        let mut lines = lock();
        let mut spans = lines.iter_mut().rev().filter(|line| line.is_span);
        if let Some(span) = spans.find(|line| line.span == Some(id.into_u64())) {
            span.fields.extend(fields.0);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let meta = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        lock().push(Line {
            name: meta.name(),
            target: meta.target(),
            level: *meta.level(),
            is_span: false,
            span: context.event_span(event).map(|span| span.id().into_u64()),
            parent: None,
            fields: fields.0,
        });
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
