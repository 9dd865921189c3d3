//! Types that mean more than their storage class: decimals, padded numbers, instants, text.

use std::sync::Arc;

use anabranch::{prelude::*, query::Query, sql::Executor, value::Value};
use anabranch_tests::{ask, execute};
use bigdecimal::BigDecimal;
use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use rust_decimal::Decimal;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "items")]
struct Item {
    #[entity(id)]
    id: i64,
    #[entity(scale = 2)]
    price: Decimal,
    #[entity(scale = 3)]
    discount: Option<BigDecimal>,
    #[entity(padded)]
    size: Option<u64>,
    #[entity(padded)]
    serial: u128,
}

fn item(price: &str) -> Item {
    Item {
        id: 0,
        price: price.parse().unwrap(),
        discount: None,
        size: None,
        serial: 0,
    }
}

async fn shop(items: impl IntoIterator<Item = Item>) -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Item>().await.unwrap();
    let mut ctx = db.context();
    for item in items {
        ctx.add(item);
    }
    ctx.save_changes().await.unwrap();
    db
}

async fn prices(db: &Database, query: Query<Item>) -> Vec<String> {
    let found = query.order_by([Item::PRICE.asc()]).all(db).await.unwrap();
    found.iter().map(|item| item.price.to_string()).collect()
}

/// Case 76: decimals kept as text sort 10 before 9, and their sum is a REAL.
#[tokio::test]
async fn decimals_are_ordered_compared_and_summed_in_sql() {
    let db = shop(["10", "9", "0.1", "0.20", "-3.50"].map(item)).await;
    assert_eq!(
        prices(&db, Item::query()).await,
        ["-3.50", "0.10", "0.20", "9.00", "10.00"]
    );
    let dear = Item::query().filter(Item::PRICE.gt(Decimal::new(95, 1)));
    assert_eq!(prices(&db, dear).await, ["10.00"]);
    let some = Item::query().filter(Item::PRICE.is_in([Decimal::new(90, 1), Decimal::new(2, 1)]));
    assert_eq!(prices(&db, some).await, ["0.20", "9.00"]);
    let between = Item::query().filter(Item::PRICE.between(Decimal::ZERO, Decimal::ONE));
    assert_eq!(prices(&db, between).await, ["0.10", "0.20"]);
    let sum = Executor::read(&db, ask("SELECT sum(price) FROM items"))
        .await
        .unwrap();
    assert_eq!(sum, [Value::Integer(1580)], "in hundredths");
}

#[tokio::test]
async fn a_sum_of_decimals_beyond_64_bits_is_an_error() {
    let db = shop([i64::MAX, 1].map(|units| Item {
        price: Decimal::new(units, 2),
        ..item("0")
    }))
    .await;
    let error = Executor::read(&db, ask("SELECT sum(price) FROM items"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Statement);
    assert!(error.to_string().contains("integer overflow"), "{error}");
}

#[tokio::test]
async fn a_decimal_comes_back_with_the_scale_of_its_field_and_is_no_change() {
    let db = shop([Item {
        discount: Some("1.5".parse().unwrap()),
        ..item("1.500")
    }])
    .await;
    let mut ctx = db.context();
    let row = ctx.find::<Item>(1).await.unwrap().unwrap();
    assert_eq!(ctx[row].price.to_string(), "1.50");
    assert_eq!(ctx[row].discount.as_ref().unwrap().to_string(), "1.500");
    ctx[row].price = Decimal::new(15, 1);
    ctx[row].discount = Some(BigDecimal::new(15000.into(), 4));
    assert_eq!(ctx.save_changes().await.unwrap().updated, 0);
    let found = Item::query().filter(Item::DISCOUNT.eq(BigDecimal::new(15.into(), 1)));
    assert_eq!(found.count(&db).await.unwrap(), 1);
    let none = Item::query().filter(Item::DISCOUNT.ne(None::<BigDecimal>));
    assert_eq!(none.count(&db).await.unwrap(), 1);
}

/// Cases 69, 70: u64 was stored as i64, wrapped or refused depending on its value.
#[tokio::test]
async fn padded_numbers_are_ordered_and_compared_as_numbers() {
    let sizes = [10, 9, u64::MAX, 1 << 63, 0];
    let db = shop(sizes.map(|size| Item {
        size: Some(size),
        serial: u128::from(size) << 64,
        ..item("1")
    }))
    .await;
    let ascending = [0, 9, 10, 1 << 63, u64::MAX];
    let by_size = Item::query()
        .order_by([Item::SIZE.asc()])
        .all(&db)
        .await
        .unwrap();
    assert_eq!(
        by_size
            .iter()
            .filter_map(|item| item.size)
            .collect::<Vec<_>>(),
        ascending
    );
    let by_serial = Item::query()
        .order_by([Item::SERIAL.asc()])
        .all(&db)
        .await
        .unwrap();
    assert_eq!(by_serial, by_size);
    let large = Item::query().filter(Item::SIZE.gt(10_u64));
    assert_eq!(large.count(&db).await.unwrap(), 2);
    let some = Item::query().filter(Item::SIZE.is_in([Some(9_u64), Some(11), None]));
    assert_eq!(some.count(&db).await.unwrap(), 1);
    let serial = Item::query().filter(Item::SERIAL.eq(9_u128 << 64));
    assert_eq!(serial.count(&db).await.unwrap(), 1);
}

macro_rules! event {
    ($($entity:ident: $type:ty;)*) => {$(
        #[derive(Debug, Clone, PartialEq, Entity)]
        #[entity(table = "events")]
        struct $entity {
            #[entity(id)]
            id: i64,
            #[entity(default = "CURRENT_TIMESTAMP")]
            at: $type,
        }
    )*};
}

event! {
    OfChrono: DateTime<Utc>;
    WithOffset: DateTime<FixedOffset>;
    OfTime: time::UtcDateTime;
    OfTimeWithOffset: time::OffsetDateTime;
    OfJiff: jiff::Timestamp;
}

async fn save<E: Entity>(db: &Database, entity: E) {
    let mut ctx = db.context();
    ctx.add(entity);
    ctx.save_changes().await.unwrap();
}

const WRITTEN: &str = "2024-01-01T07:00:00.5-05:00";

fn of_chrono() -> DateTime<FixedOffset> {
    WRITTEN.parse().unwrap()
}

fn of_jiff() -> jiff::Timestamp {
    WRITTEN.parse().unwrap()
}

fn of_time() -> time::OffsetDateTime {
    let offset = time::UtcOffset::from_hms(14, 0, 0).unwrap();
    time::OffsetDateTime::from_unix_timestamp_nanos(of_jiff().as_nanosecond())
        .unwrap()
        .to_offset(offset)
}

/// The same instant five times.
async fn calendar() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<OfChrono>().await.unwrap();
    let (chrono, jiff, time) = (of_chrono(), of_jiff(), of_time());
    save(&db, WithOffset { id: 0, at: chrono }).await;
    save(
        &db,
        OfChrono {
            id: 0,
            at: chrono.to_utc(),
        },
    )
    .await;
    save(&db, OfJiff { id: 0, at: jiff }).await;
    save(&db, OfTimeWithOffset { id: 0, at: time }).await;
    save(
        &db,
        OfTime {
            id: 0,
            at: time.to_utc(),
        },
    )
    .await;
    db
}

/// Cases 78, 80: chrono wrote `+00:00`, time `Z`, and each the offset and as many digits as it had.
#[tokio::test]
async fn equal_instants_are_equal_text_through_whichever_crate() {
    let db = calendar().await;
    let stored = ask("SELECT DISTINCT at FROM events");
    let expected = Value::Text("2024-01-01 12:00:00.500000000".to_owned());
    assert_eq!(Executor::read(&db, stored).await.unwrap(), [expected]);
    for read in WithOffset::query().all(&db).await.unwrap() {
        assert_eq!(read.at, of_chrono(), "the same instant");
    }
    for read in OfTimeWithOffset::query().all(&db).await.unwrap() {
        assert_eq!(read.at, of_time());
    }
}

#[tokio::test]
async fn an_instant_is_found_through_whichever_crate() {
    let db = calendar().await;
    let with_offset = WithOffset::query().filter(WithOffset::AT.eq(of_chrono()));
    assert_eq!(with_offset.count(&db).await.unwrap(), 5);
    let of_jiff = OfJiff::query().filter(OfJiff::AT.eq(of_jiff()));
    assert_eq!(of_jiff.count(&db).await.unwrap(), 5);
    let of_time = OfTime::query().filter(OfTime::AT.eq(of_time().to_utc()));
    assert_eq!(of_time.count(&db).await.unwrap(), 5);
}

/// Case 77: `T` sorts after the space of CURRENT_TIMESTAMP, so that no comparison with it was right.
#[tokio::test]
async fn instants_compare_with_those_that_sqlite_made() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<OfChrono>().await.unwrap();
    let second = TimeDelta::seconds(1);
    let before = Utc::now() - second;
    execute(&db, "INSERT INTO events (id) VALUES (1)").await;
    let after = Utc::now() + second;
    let between = OfChrono::query().filter(OfChrono::AT.between(before, after));
    assert_eq!(between.count(&db).await.unwrap(), 1);
    save(&db, OfChrono { id: 2, at: after }).await;
    save(
        &db,
        OfChrono {
            id: 3,
            at: before - second,
        },
    )
    .await;
    let sorted = OfChrono::query()
        .order_by([OfChrono::AT.asc()])
        .all(&db)
        .await
        .unwrap();
    assert_eq!(
        sorted.iter().map(|event| event.id).collect::<Vec<_>>(),
        [3, 1, 2]
    );
    let later = ask("SELECT count(*) FROM events WHERE at > datetime('now', '-1 hour')");
    assert_eq!(
        Executor::read(&db, later).await.unwrap(),
        [Value::Integer(3)]
    );
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "labels", strict = false)]
struct Label {
    #[entity(id)]
    id: i64,
    text: Box<str>,
    shared: Option<Arc<str>>,
}

fn label(text: &str) -> Label {
    Label {
        id: 0,
        text: text.into(),
        shared: Some(text.into()),
    }
}

/// Case 82: a column declared STRING made 7 of 007.
#[tokio::test]
async fn text_of_digits_stays_text() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Label>().await.unwrap();
    save(&db, label("007")).await;
    let found = Label::query()
        .filter(Label::TEXT.eq("007"))
        .one(&db)
        .await
        .unwrap();
    assert_eq!(
        (&*found.text, found.shared.as_deref()),
        ("007", Some("007"))
    );
}

/// Cases 84, 85: case is that of ASCII alone, and nothing is folded that would make a wildcard.
#[tokio::test]
async fn a_search_for_a_full_width_percent_finds_that_alone() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Label>().await.unwrap();
    for text in ["100％", "100%", "100", "ÄRGER", "ärger"] {
        save(&db, label(text)).await;
    }
    for (text, expected) in [("％", 1), ("%", 1), ("100", 3), ("RGER", 2), ("Ä", 1)] {
        let found = Label::query()
            .filter(Label::TEXT.contains(text))
            .count(&db)
            .await;
        assert_eq!(found.unwrap(), expected, "{text}");
        let found = Label::query()
            .filter(Label::SHARED.contains(text))
            .count(&db)
            .await;
        assert_eq!(found.unwrap(), expected, "{text}");
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "findings")]
struct Finding {
    #[entity(id)]
    id: i64,
    value: Value,
    other: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "loose", strict = false)]
struct Loose {
    #[entity(id)]
    id: i64,
    value: Value,
}

#[tokio::test]
async fn a_value_of_any_class_is_kept_in_its_class() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Finding, Loose)>().await.unwrap();
    let values = [
        Value::Integer(12),
        Value::Real(12.0),
        Value::Text("12".into()),
        Value::Blob(b"12".to_vec()),
    ];
    let mut ctx = db.context();
    for value in &values {
        let other = Some(value.clone());
        let value = value.clone();
        ctx.add(Loose {
            id: 0,
            value: value.clone(),
        });
        ctx.add(Finding {
            id: 0,
            value,
            other,
        });
    }
    ctx.add(Finding {
        id: 0,
        value: Value::Integer(0),
        other: None,
    });
    ctx.save_changes().await.unwrap();
    let loose = Loose::query().all(&db).await.unwrap();
    let found: Vec<_> = loose.into_iter().map(|row| row.value).collect();
    assert_eq!(found, values);
    let found = Finding::query().filter(Finding::OTHER.is_not_null());
    let found = found.order_by([Finding::ID.asc()]).all(&db).await.unwrap();
    let others: Vec<_> = found.into_iter().filter_map(|row| row.other).collect();
    assert_eq!(others, values);
    let text = Finding::query().filter(Finding::VALUE.eq(Value::Text("12".into())));
    assert_eq!(text.one(&db).await.unwrap().id, 3);
    let null = ctx.add(Loose {
        id: 0,
        value: Value::Null,
    });
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert_eq!(ctx[null].value, Value::Null);
}
