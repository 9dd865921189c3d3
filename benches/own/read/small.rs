//! What a small query costs before it runs: building its tree and rendering it, and what part of the whole that is.

use std::{fmt, hint::black_box, time::Instant};

use anabranch::{prelude::*, value::Value};
use chrono::DateTime;
use rusqlite::{Connection, params_from_iter, types};
use workload::{Floor, Latencies, Result};

use crate::{
    contenders::{Library, Way, product},
    files::{Content, Files},
    shop::Product,
};

/// Building and rendering a query of ten conditions should take no longer, in nanoseconds.
const MOST: f64 = 5_000.0;
/// How many are timed together: a look at the clock costs as much as to build one. They are what an application does that
/// is busy; one query after a pause takes twice as long, wherever it runs.
const BATCH: u32 = 50;

/// What was measured.
#[derive(Debug)]
pub(in crate::read) struct Small {
    queries: Vec<Costs>,
}

/// What one query costs, in nanoseconds.
#[derive(Debug)]
struct Costs {
    name: &'static str,
    building: f64,
    /// With it a copy of the query, since whoever shows a statement keeps the query.
    rendering: f64,
    whole: f64,
    rusqlite: f64,
}

/// Measures queries by key, with one condition and with ten.
pub(in crate::read) async fn run(files: &mut Files, times: u32) -> Result<Small> {
    let path = files.fresh(Content {
        shop: true,
        ..Content::default()
    })?;
    let library = Library::open(
        &path,
        Synchronous::Normal,
        Execution::Inline,
        Way::Optimistic,
    )
    .await?;
    let db = library.database();
    let theirs = Connection::open(&path)?;
    let queries = vec![
        costs("1 condition", by_key, db, &theirs, times).await?,
        costs("10 conditions", by_ten, db, &theirs, times).await?,
    ];
    theirs.close().map_err(|(_, error)| error)?;
    db.close().await?;
    files.check(&path)?;
    Ok(Small { queries })
}

fn by_key(id: i64) -> Query<Product> {
    Product::query().filter(Product::ID.eq(id))
}

/// Ten conditions that this row fulfils, as a form with many fields gives them.
fn by_ten(id: i64) -> Query<Product> {
    by_key(id)
        .filter(Product::SKU.ge("sku-"))
        .filter(Product::NAME.ne("tea"))
        .filter(Product::CATEGORY.between(0, 50))
        .filter(Product::MAKER.is_in([0, 1, 2, 3, 4, 5, 6]))
        .filter(Product::PRICE.lt(10_000))
        .filter(Product::STOCK.ge(0))
        .filter(Product::WEIGHT.le(1e6))
        .filter(Product::RATING.is_null().or(Product::RATING.gt(-1)))
        .filter(Product::ADDED_AT.ge(DateTime::UNIX_EPOCH.naive_utc()))
}

async fn costs(
    name: &'static str,
    query: fn(i64) -> Query<Product>,
    db: &Database,
    theirs: &Connection,
    times: u32,
) -> Result<Costs> {
    let mut building = Latencies::default();
    let mut rendering = Latencies::default();
    let mut whole = Latencies::default();
    let mut rusqlite = Latencies::default();
    let text = query(1).limit(1).sql()?.text;
    for n in 0..times {
        // In turn, so that what else the machine does meets all of them.
        let ids = (1..=i64::from(BATCH)).map(|id| i64::from(n) + id * 17);
        let began = Instant::now();
        for id in ids.clone() {
            drop(black_box(query(id)));
        }
        building.push(began.elapsed() / BATCH);

        let built = query(1).limit(1);
        let began = Instant::now();
        for _ in 0..BATCH {
            black_box(black_box(&built).sql()?);
        }
        rendering.push(began.elapsed() / BATCH);

        let began = Instant::now();
        for id in ids.clone() {
            let found = query(id).first(db).await?;
            if found.map(|product| product.id) != Some(id) {
                return Err(format!("a query with {name} did not find product {id}").into());
            }
        }
        whole.push(began.elapsed() / BATCH);

        let mut arguments: Vec<_> = built.sql()?.args.into_iter().map(owned).collect();
        let began = Instant::now();
        for id in ids {
            let mut statement = theirs.prepare_cached(&text)?;
            arguments[0] = types::Value::Integer(id);
            let found = statement.query_row(params_from_iter(&arguments), product)?;
            if found.id != id {
                return Err(format!("the text of {name} did not find product {id}").into());
            }
        }
        rusqlite.push(began.elapsed() / BATCH);
    }
    Ok(Costs {
        name,
        building: nanos(&building),
        rendering: nanos(&rendering),
        whole: nanos(&whole),
        rusqlite: nanos(&rusqlite),
    })
}

fn owned(value: Value) -> types::Value {
    match value {
        Value::Null => types::Value::Null,
        Value::Integer(integer) => types::Value::Integer(integer),
        Value::Real(real) => types::Value::Real(real),
        Value::Text(text) => types::Value::Text(text),
        Value::Blob(bytes) => types::Value::Blob(bytes),
        Value::Unread => unreachable!("no argument is one"),
    }
}

fn nanos(latencies: &Latencies) -> f64 {
    let [median] = latencies.per_mille([500]);
    median.map_or(f64::NAN, |median| median.as_secs_f64() * 1e9)
}

impl Costs {
    fn before_running(&self) -> f64 {
        self.building + self.rendering
    }
}

impl Small {
    /// How far below the most it stayed.
    pub(in crate::read) fn ratio(&self) -> (Floor, f64) {
        let floor = Floor {
            key: "render10_within_5us",
            least: Some(1.0),
        };
        let ratio = (self.queries.last()).map_or(f64::NAN, |ten| MOST / ten.before_running());
        (floor, ratio)
    }
}

impl fmt::Display for Small {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for costs in &self.queries {
            writeln!(
                f,
                "a query by key with {}: built in {:.0} ns, rendered in {:.0} ns (with a copy of it), {:.1} us in all; \
                 before it runs {:.0} %; its text and values by rusqlite: {:.1} us",
                costs.name,
                costs.building,
                costs.rendering,
                costs.whole / 1e3,
                100.0 * costs.before_running() / costs.whole,
                costs.rusqlite / 1e3,
            )?;
        }
        Ok(())
    }
}
