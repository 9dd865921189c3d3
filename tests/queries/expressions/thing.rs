//! An entity with a column of every kind, and rows with ties, extremes and NULLs.

use anabranch::prelude::*;
use chrono::{DateTime, NaiveDate, TimeDelta, TimeZone as _, Utc};
use rust_decimal::Decimal;
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Entity)]
pub(in crate::expressions) struct Thing {
    #[entity(id)]
    pub id: i64,
    pub whole: i64,
    pub maybe: Option<i64>,
    pub small: i8,
    pub real: f64,
    pub maybe_real: Option<f64>,
    pub float: f32,
    pub name: String,
    pub other_name: Option<String>,
    #[entity(collate = "NOCASE")]
    pub label: Option<String>,
    pub flag: bool,
    pub maybe_flag: Option<bool>,
    pub at: DateTime<Utc>,
    pub day: Option<NaiveDate>,
    pub stamp: jiff::Timestamp,
    pub moment: time::PrimitiveDateTime,
    pub span: TimeDelta,
    pub bytes: Vec<u8>,
    #[entity(scale = 2)]
    pub price: Decimal,
    #[entity(scale = 2)]
    pub discount: Option<Decimal>,
    pub extra: serde_json::Value,
}

pub(in crate::expressions) fn thing(number: i64) -> Thing {
    let odd = number % 2 == 1;
    let names = ["tea", "Äpfel", "", "  spaced ", "100%_\\", "straße"];
    Thing {
        id: number,
        whole: number * 7 % 5 - 2,
        maybe: (number % 3 != 0).then_some(number % 4 - 1),
        small: i8::try_from(number % 100).unwrap(),
        #[allow(clippy::cast_precision_loss, reason = "small numbers")]
        real: number as f64 * 1.25 - 5.0,
        #[allow(clippy::cast_precision_loss, reason = "small numbers")]
        maybe_real: (number % 4 != 1).then_some((number % 3) as f64 / 2.0),
        float: 0.1,
        name: names[usize::try_from(number).unwrap() % names.len()].to_owned(),
        other_name: (number % 5 != 2)
            .then(|| names[usize::try_from(number * 3 + 1).unwrap() % names.len()].to_owned()),
        label: (number % 4 != 0).then(|| if odd { "Red" } else { "rED" }.to_owned()),
        flag: odd,
        maybe_flag: (number % 3 != 1).then_some(odd),
        at: Utc
            .timestamp_opt(number * 10_000_000 - 40_000_000, 5)
            .unwrap(),
        day: (number % 3 != 2).then(|| {
            NaiveDate::from_ymd_opt(2024, 2, 20 + u32::try_from(number).unwrap() % 10).unwrap()
        }),
        stamp: jiff::Timestamp::from_second(number * 31_000_000).unwrap(),
        moment: time::PrimitiveDateTime::new(
            time::Date::from_ordinal_date(2023, u16::try_from(number * 20).unwrap()).unwrap(),
            time::Time::from_hms(u8::try_from(number).unwrap(), 30, 15).unwrap(),
        ),
        span: TimeDelta::seconds(number * 90 - 200),
        bytes: vec![u8::try_from(number % 4).unwrap(); 2],
        price: Decimal::new(number * 125 % 900, 2),
        discount: (!odd).then(|| Decimal::new(number * 10, 2)),
        extra: match number % 5 {
            0 => json!({"n": number, "s": "five"}),
            1 => json!({"n": "text", "s": 5}),
            2 => json!({"n": null}),
            3 => json!({"n": 2.5, "s": "Five", "flag": true}),
            _ => json!([]),
        },
    }
}

/// The rows 1 to 12.
pub(in crate::expressions) async fn things() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Thing>().await.unwrap();
    let mut ctx = db.context();
    for number in 1..=12 {
        ctx.add(thing(number));
    }
    ctx.save_changes().await.unwrap();
    db
}
