//! The tables, and what is put into them: the same for all peers.

use chrono::{DateTime, NaiveDateTime};

/// The table of every workload but `bulkwide`.
pub const ORDERS_DDL: &str = "CREATE TABLE orders (\
id INTEGER PRIMARY KEY, writer INTEGER NOT NULL, item TEXT NOT NULL, \
quantity INTEGER NOT NULL, price REAL NOT NULL, placed_at TEXT NOT NULL)";

/// The 20-column table of `bulkwide`.
pub const WIDE_DDL: &str = "CREATE TABLE wide (\
id INTEGER PRIMARY KEY, \
i1 INTEGER NOT NULL, i2 INTEGER NOT NULL, i3 INTEGER NOT NULL, i4 INTEGER NOT NULL, \
i5 INTEGER NOT NULL, i6 INTEGER NOT NULL, i7 INTEGER NOT NULL, \
r1 REAL NOT NULL, r2 REAL NOT NULL, r3 REAL NOT NULL, r4 REAL NOT NULL, r5 REAL NOT NULL, \
t1 TEXT NOT NULL, t2 TEXT NOT NULL, t3 TEXT NOT NULL, t4 TEXT NOT NULL, \
t5 TEXT NOT NULL, t6 TEXT NOT NULL, placed_at TEXT NOT NULL)";

pub const INSERT_ORDER: &str =
    "INSERT INTO orders (writer, item, quantity, price, placed_at) VALUES (?1, ?2, ?3, ?4, ?5)";
pub const WIDE_COLUMNS: &str =
    "i1, i2, i3, i4, i5, i6, i7, r1, r2, r3, r4, r5, t1, t2, t3, t4, t5, t6, placed_at";

/// An order that has no id yet: what the application hands to the library.
#[derive(Clone, Debug)]
pub struct NewOrder {
    pub writer: i64,
    pub item: String,
    pub quantity: i64,
    pub price: f64,
    pub placed_at: NaiveDateTime,
}

/// A row of the 20-column table, without its id.
#[derive(Clone, Debug)]
pub struct NewWide {
    pub i: [i64; 7],
    pub r: [f64; 5],
    pub t: [String; 6],
    pub placed_at: NaiveDateTime,
}

impl NewOrder {
    /// Row number `n` of writer `writer`; deterministic.
    pub fn nth(writer: i64, n: u64) -> Self {
        let mut rng = Rng::new((writer as u64) << 32 ^ n);
        Self {
            writer,
            item: format!("item-{:015x}", rng.next() >> 4),
            quantity: (rng.next() % 100) as i64,
            price: (rng.next() % 1_000_000) as f64 / 100.0,
            placed_at: moment(rng.next()),
        }
    }
}

impl NewWide {
    pub fn nth(n: u64) -> Self {
        let mut rng = Rng::new(n);
        Self {
            i: std::array::from_fn(|_| (rng.next() % 1_000_000) as i64),
            r: std::array::from_fn(|_| (rng.next() % 1_000_000) as f64 / 100.0),
            t: std::array::from_fn(|_| format!("text-{:011x}", rng.next() >> 20)),
            placed_at: moment(rng.next()),
        }
    }
}

/// A moment of 2024 with microseconds.
fn moment(random: u64) -> NaiveDateTime {
    let micros = 1_704_067_200_000_000 + (random % 31_000_000_000_000) as i64;
    DateTime::from_timestamp_micros(micros).unwrap().naive_utc()
}

/// A small deterministic generator (splitmix64).
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
