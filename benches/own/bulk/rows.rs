//! The rows that are imported, of 6 and of 20 columns.

use anabranch::prelude::*;
use chrono::NaiveDateTime;
use rusqlite::ToSql;
use sqlx::{QueryBuilder, Sqlite, query::Query, sqlite::SqliteArguments};
use workload::NewOrder;

/// A row as each contender writes it.
pub(in crate::bulk) trait Row: Entity + Clone {
    /// The columns but for the key.
    const COLUMNS: &'static [&'static str];
    /// Two that may have an index.
    const INDEXED: [&'static str; 2];

    /// The row number `n`.
    fn nth(n: u32) -> Self;

    /// The values for rusqlite.
    fn values(&self) -> Vec<&dyn ToSql>;

    /// The values for a statement of sqlx.
    fn bind<'q>(
        self,
        query: Query<'q, Sqlite, SqliteArguments>,
    ) -> Query<'q, Sqlite, SqliteArguments>;

    /// The values for a statement of sqlx that inserts many rows.
    fn push(self, row: &mut sqlx::query_builder::Separated<'_, Sqlite, &'static str>);
}

macro_rules! row {
    ($name:ident, [$($indexed:literal),*], $($field:ident: $type:ty = $value:expr),*) => {
        #[derive(Debug, Clone, Entity)]
        pub(in crate::bulk) struct $name {
            #[entity(id)]
            id: i64,
            $($field: $type),*
        }

        impl Row for $name {
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),*];
            const INDEXED: [&'static str; 2] = [$($indexed),*];

            fn nth(n: u32) -> Self {
                let order = NewOrder::nth(n % 50, n);
                Self { id: 0, $($field: $value(&order)),* }
            }

            fn values(&self) -> Vec<&dyn ToSql> {
                vec![$(&self.$field),*]
            }

            fn bind<'q>(
                self,
                query: Query<'q, Sqlite, SqliteArguments>,
            ) -> Query<'q, Sqlite, SqliteArguments> {
                query$(.bind(self.$field))*
            }

            fn push(self, row: &mut sqlx::query_builder::Separated<'_, Sqlite, &'static str>) {
                row$(.push_bind(self.$field))*;
            }
        }
    };
}

row!(
    Narrow, ["writer", "item"],
    writer: i64 = |order: &NewOrder| order.writer,
    item: String = |order: &NewOrder| order.item.clone(),
    quantity: i64 = |order: &NewOrder| order.quantity,
    price: f64 = |order: &NewOrder| order.price,
    placed_at: NaiveDateTime = |order: &NewOrder| order.placed_at
);

row!(
    Wide, ["writer", "item"],
    writer: i64 = |order: &NewOrder| order.writer,
    item: String = |order: &NewOrder| order.item.clone(),
    quantity: i64 = |order: &NewOrder| order.quantity,
    price: f64 = |order: &NewOrder| order.price,
    placed_at: NaiveDateTime = |order: &NewOrder| order.placed_at,
    street: String = |order: &NewOrder| format!("street {}", order.quantity),
    city: String = |order: &NewOrder| format!("city {}", order.writer),
    country: Option<String> = |order: &NewOrder| (order.quantity > 50).then(|| "NO".to_owned()),
    note: Option<String> = |_: &NewOrder| None,
    is_paid: bool = |order: &NewOrder| order.quantity % 2 == 0,
    is_sent: bool = |order: &NewOrder| order.quantity % 3 == 0,
    weight: f64 = |order: &NewOrder| order.price / 7.0,
    discount: f64 = |order: &NewOrder| order.price / 9.0,
    parcels: i64 = |order: &NewOrder| order.quantity % 5,
    points: i64 = |order: &NewOrder| order.quantity * 3,
    channel: i64 = |order: &NewOrder| order.writer % 4,
    sent_at: Option<NaiveDateTime> = |order: &NewOrder| Some(order.placed_at),
    paid_at: Option<NaiveDateTime> = |_: &NewOrder| None,
    code: String = |order: &NewOrder| order.item[5..].to_owned()
);

/// A statement of sqlx that inserts rows, without them.
pub(in crate::bulk) fn builder<R: Row>() -> QueryBuilder<Sqlite> {
    let columns = R::COLUMNS.join(", ");
    QueryBuilder::new(format!("INSERT INTO {} ({columns}) ", R::TABLE.name))
}

/// A statement that inserts so many rows.
pub(in crate::bulk) fn insert<R: Row>(rows: usize) -> String {
    let width = R::COLUMNS.len();
    let row = |row: usize| {
        let values: Vec<_> = (1..=width)
            .map(|column| format!("?{}", row * width + column))
            .collect();
        format!("({})", values.join(", "))
    };
    let values: Vec<_> = (0..rows).map(row).collect();
    let columns = R::COLUMNS.join(", ");
    let table = R::TABLE.name;
    format!(
        "INSERT INTO {table} ({columns}) VALUES {}",
        values.join(", ")
    )
}
