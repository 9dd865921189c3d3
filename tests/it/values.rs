//! Values at the edge: each is kept exactly, or refused with the names of table, column and key.

use std::{net::IpAddr, path::Path, time::Duration};

use anabranch::{prelude::*, sql::Executor, value::Value};
use anabranch_tests::{Mode, ask, outsider};
use bigdecimal::BigDecimal;
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use futures_util::StreamExt;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "parcels")]
struct Parcel {
    #[entity(id)]
    code: String,
    weight: f64,
    ratio: Option<f32>,
    note: Option<String>,
    letter: char,
    bytes: Vec<u8>,
    #[entity(json)]
    extra: Option<Extra>,
    data: serde_json::Value,
    day: NaiveDate,
    time: NaiveTime,
    sent: DateTime<Utc>,
    of_time: time::OffsetDateTime,
    of_jiff: jiff::civil::Date,
    wait: Duration,
    delta: TimeDelta,
    #[entity(scale = 2)]
    price: Decimal,
    #[entity(scale = 2)]
    total: Option<BigDecimal>,
    #[entity(padded)]
    size: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Extra {
    factor: Option<f64>,
    texts: Vec<String>,
}

fn parcel(code: &str) -> Parcel {
    let sent = DateTime::UNIX_EPOCH;
    Parcel {
        code: code.to_owned(),
        weight: 1.5,
        ratio: None,
        note: None,
        letter: 'ß',
        bytes: Vec::new(),
        extra: None,
        data: serde_json::Value::Null,
        day: sent.date_naive(),
        time: NaiveTime::MIN,
        sent,
        of_time: time::OffsetDateTime::UNIX_EPOCH,
        of_jiff: jiff::civil::date(1970, 1, 1),
        wait: Duration::ZERO,
        delta: TimeDelta::zero(),
        price: Decimal::ONE,
        total: None,
        size: u64::MAX,
    }
}

fn extra(factor: f64) -> Option<Extra> {
    Some(Extra {
        factor: Some(factor),
        texts: Vec::new(),
    })
}

/// Lists in lists.
fn nested(depth: usize) -> serde_json::Value {
    (1..depth).fold(serde_json::json!([]), |inner, _| serde_json::json!([inner]))
}

type Spoil = fn(&mut Parcel);

/// What no column can keep, and the column.
const REFUSED: &[(&str, Spoil)] = &[
    ("weight", |it| it.weight = f64::NAN),
    ("ratio", |it| it.ratio = Some(f32::NAN)),
    ("note", |it| it.note = Some("a\0b".to_owned())),
    ("letter", |it| it.letter = '\0'),
    ("extra", |it| it.extra = extra(f64::NAN)),
    ("extra", |it| it.extra = extra(f64::NEG_INFINITY)),
    ("data", |it| it.data = nested(128)),
    ("data", |it| it.data = nested(1000)),
    ("day", |it| it.day = NaiveDate::MIN),
    ("day", |it| {
        it.day = NaiveDate::from_ymd_opt(-1, 12, 31).unwrap()
    }),
    ("day", |it| {
        it.day = NaiveDate::from_ymd_opt(10_000, 1, 1).unwrap()
    }),
    ("time", |it| {
        it.time = NaiveTime::from_hms_nano_opt(23, 59, 59, 1_000_000_000).unwrap()
    }),
    ("sent", |it| it.sent = DateTime::<Utc>::MAX_UTC),
    ("sent", |it| {
        it.sent = "2016-12-31T23:59:60Z".parse().unwrap()
    }),
    ("of_time", |it| {
        let offset = time::UtcOffset::from_hms(5, 0, 0).unwrap();
        it.of_time = time::Date::from_calendar_date(0, time::Month::January, 1)
            .unwrap()
            .midnight()
            .assume_offset(offset);
    }),
    ("of_jiff", |it| it.of_jiff = jiff::civil::date(-1, 1, 1)),
    ("wait", |it| it.wait = Duration::MAX),
    ("wait", |it| it.wait = Duration::from_nanos(1 << 63)),
    ("delta", |it| it.delta = TimeDelta::MAX),
    ("price", |it| it.price = Decimal::new(1001, 3)),
    ("price", |it| it.price = Decimal::MAX),
    ("price", |it| it.price = Decimal::new(i64::MAX, 1)),
    ("total", |it| it.total = Some("0.001".parse().unwrap())),
    ("total", |it| {
        it.total = Some("1e1000000000".parse().unwrap())
    }),
    ("total", |it| {
        it.total = Some("-1e-1000000000".parse().unwrap())
    }),
    ("total", |it| {
        it.total = Some("92233720368547758.08".parse().unwrap())
    }),
];

fn assert_names(error: &Error, kind: ErrorKind, table: &str, column: &str, key: &Value) {
    assert_eq!(error.kind(), kind, "{table}.{column}: {error}");
    assert_eq!(error.table(), Some(table), "{column}: {error}");
    assert_eq!(error.column(), Some(column), "{error}");
    assert_eq!(error.key(), std::slice::from_ref(key), "{column}: {error}");
}

/// Cases 70, 72, 73: NaN became NULL, text was cut at a NUL, large numbers wrapped.
#[tokio::test]
async fn what_cannot_be_kept_is_refused_with_table_column_and_key() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let db = mode.temporary().await;
        db.create_tables::<Parcel>().await.unwrap();
        let mut ctx = db.context();
        let stored = ctx.add(parcel("stored"));
        ctx.save_changes().await.unwrap();
        for (column, spoil) in REFUSED {
            let mut adding = db.context();
            let new = adding.add(parcel("new"));
            adding.add(parcel("innocent"));
            spoil(&mut adding[new]);
            let error = adding.save_changes().await.unwrap_err();
            let key = Value::Text("new".to_owned());
            assert_names(&error, ErrorKind::Value, "parcels", column, &key);

            spoil(&mut ctx[stored]);
            let error = ctx.save_changes().await.unwrap_err();
            let key = Value::Text("stored".to_owned());
            assert_names(&error, ErrorKind::Value, "parcels", column, &key);
            ctx[stored] = parcel("stored");
            assert_eq!(ctx.save_changes().await.unwrap().updated, 0);
        }
        let rows = Parcel::query().all(&db).await.unwrap();
        assert_eq!(rows, [parcel("stored")]);
    }
}

#[tokio::test]
async fn what_cannot_be_kept_cannot_be_asked_for_either() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Parcel>().await.unwrap();
    let conditions = [
        ("weight", Parcel::WEIGHT.gt(f64::NAN)),
        ("code", Parcel::CODE.eq("a\0b")),
        ("note", Parcel::NOTE.contains("a\0b")),
        ("day", Parcel::DAY.lt(NaiveDate::MAX)),
        ("price", Parcel::PRICE.ne(Decimal::new(1, 3))),
        ("total", Parcel::TOTAL.is_in([BigDecimal::new(1.into(), 3)])),
        ("wait", Parcel::WAIT.le(Duration::MAX)),
    ];
    for (column, condition) in conditions {
        let error = Parcel::query()
            .filter(condition)
            .all(&db)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{column}");
        assert_eq!(
            (error.table(), error.column()),
            (Some("parcels"), Some(column))
        );
    }
}

async fn reread(db: &Database, written: Parcel) -> Parcel {
    let code = written.code.clone();
    let mut ctx = db.context();
    ctx.add(written);
    ctx.save_changes().await.unwrap();
    Parcel::find(db, code).await.unwrap().unwrap()
}

#[tokio::test]
async fn numbers_at_the_edge_are_kept() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Parcel>().await.unwrap();
    let doubles = [
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
    ];
    for (number, weight) in doubles.into_iter().enumerate() {
        let code = format!("double {number}");
        let read = reread(
            &db,
            Parcel {
                weight,
                ..parcel(&code)
            },
        )
        .await;
        assert_eq!(read.weight.to_bits(), weight.to_bits());
    }
    let singles = [f32::INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-45, 0.1];
    for (number, ratio) in singles.into_iter().enumerate() {
        let code = format!("single {number}");
        let read = reread(
            &db,
            Parcel {
                ratio: Some(ratio),
                ..parcel(&code)
            },
        )
        .await;
        assert_eq!(read.ratio.map(f32::to_bits), Some(ratio.to_bits()));
    }
    let price = Decimal::new(i64::MIN, 2);
    let wait = Duration::from_nanos(i64::MAX.unsigned_abs());
    let read = reread(
        &db,
        Parcel {
            price,
            wait,
            ..parcel("rest")
        },
    )
    .await;
    assert_eq!((read.price, read.wait, read.size), (price, wait, u64::MAX));
}

#[tokio::test]
async fn a_negative_zero_comes_back_as_zero_and_is_no_change() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Parcel>().await.unwrap();
    let read = reread(
        &db,
        Parcel {
            weight: -0.0,
            ..parcel("a")
        },
    )
    .await;
    assert!(read.weight == 0.0 && read.weight.is_sign_positive());
    let mut ctx = db.context();
    let row = ctx.attach(read).unwrap();
    ctx[row].weight = -0.0;
    assert_eq!(ctx.save_changes().await.unwrap().updated, 0);
}

#[tokio::test]
async fn empty_text_and_empty_bytes_are_not_null() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Parcel>().await.unwrap();
    let empty = Parcel {
        note: Some(String::new()),
        ..parcel("")
    };
    assert_eq!(reread(&db, empty.clone()).await, empty);
    let none = parcel("none");
    assert_eq!(reread(&db, none.clone()).await, none);
    let classes = "SELECT group_concat(typeof(note) || ' ' || typeof(bytes), ', ') FROM parcels";
    let classes = Executor::read(&db, ask(classes)).await.unwrap();
    assert_eq!(classes, [Value::Text("text blob, null blob".to_owned())]);
    let found = Parcel::query()
        .filter(Parcel::NOTE.eq(""))
        .all(&db)
        .await
        .unwrap();
    assert_eq!(found, [empty]);
}

/// Cases 73, 74: bytes keep what text may not, and JSON escapes it.
#[tokio::test]
async fn nul_is_kept_in_bytes_and_in_json() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Parcel>().await.unwrap();
    let written = Parcel {
        bytes: b"a\0b".to_vec(),
        extra: Some(Extra {
            factor: None,
            texts: vec!["a\0b".to_owned()],
        }),
        data: serde_json::json!({"\0": "\0"}),
        ..parcel("nul")
    };
    assert_eq!(reread(&db, written.clone()).await, written);
    let nul = Executor::read(
        &db,
        ask("SELECT instr(CAST(data AS BLOB), x'00') FROM parcels"),
    );
    assert_eq!(nul.await.unwrap(), [Value::Integer(0)]);
}

#[tokio::test]
async fn json_at_the_edge_is_kept() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Parcel>().await.unwrap();
    let numbers = [
        0.1,
        5e-324,
        f64::MAX,
        -0.0,
        1.0e23,
        9_007_199_254_740_993.0,
        0.000_123_456_789_012_345_67,
    ];
    for (number, factor) in numbers.into_iter().enumerate() {
        let code = format!("{number}");
        let data = serde_json::json!([factor, u64::MAX, i64::MIN]);
        let read = reread(
            &db,
            Parcel {
                extra: extra(factor),
                data: data.clone(),
                ..parcel(&code)
            },
        )
        .await;
        assert_eq!(read.data, data);
        let read = read.extra.unwrap().factor.unwrap();
        assert_eq!(read.to_bits(), factor.to_bits());
    }
    let deep = Parcel {
        data: nested(127),
        ..parcel("deep")
    };
    assert_eq!(reread(&db, deep.clone()).await, deep);
}

/// SQLite takes 1,000,000,000 bytes in one value, and in one row.
#[tokio::test]
async fn a_value_larger_than_sqlite_takes_is_too_big() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Parcel>().await.unwrap();
    let mut ctx = db.context();
    let row = ctx.add(Parcel {
        bytes: vec![0; 1_000_000_001],
        ..parcel("big")
    });
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooBig, "{error}");
    assert_eq!(error.table(), Some("parcels"));
    assert_eq!(error.key(), [Value::Text("big".to_owned())]);
    ctx[row].bytes = Vec::new();
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 1);
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "loose", strict = false)]
struct Loose {
    #[entity(id)]
    id: i64,
    small: i8,
    long: i64,
    unsigned: u32,
    truth: bool,
    double: f64,
    single: f32,
    text: Option<String>,
    bytes: Vec<u8>,
    uuid: Uuid,
    day: NaiveDate,
    time: NaiveTime,
    moment: DateTime<Utc>,
    of_time: time::Date,
    of_jiff: jiff::Timestamp,
    wait: Duration,
    address: IpAddr,
    letter: char,
    #[entity(padded)]
    size: u64,
    #[entity(scale = 2)]
    price: Decimal,
    #[entity(json)]
    extra: Vec<u8>,
    status: Status,
    #[entity(version)]
    version: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]
enum Status {
    New,
}

/// What other programs put into columns without a type, and the column.
const WRONG: &[(&str, &[&str])] = &[
    (
        "small",
        &["300", "-129", "'secret'", "1.5", "NULL", "x'01'"],
    ),
    (
        "long",
        &[
            "1.5",
            "9223372036854775808",
            "'12'",
            "NULL",
            "CAST(x'ff' AS TEXT)",
        ],
    ),
    ("unsigned", &["-1", "4294967296"]),
    ("truth", &["2", "-1", "'true'", "1.0"]),
    ("double", &["'secret'", "9007199254740993", "x'00'", "NULL"]),
    ("single", &["1e39", "'secret'"]),
    ("text", &["CAST(x'ff' AS TEXT)", "x'616263'", "12", "1.5"]),
    ("bytes", &["'secret'", "12", "NULL"]),
    ("uuid", &["x'00'", "'67e55044-10b1-426f-9247-bb680e5fe0c8'"]),
    (
        "day",
        &[
            "'2023-02-29'",
            "'2023-1-1'",
            "'10000-01-01'",
            "'-001-01-01'",
            "20230101",
            "''",
        ],
    ),
    (
        "time",
        &[
            "'23:59:60'",
            "'24:00:00'",
            "'1:00:00'",
            "'10:00:00.'",
            "'10:00:00.1234567890'",
        ],
    ),
    (
        "moment",
        &[
            "'yesterday'",
            "'2016-12-31 23:59:60'",
            "'2023-01-01'",
            "'2023-01-01 10:00:00 UTC'",
            "'2023-01-01 10:00:00+24:00'",
            "'2023-01-01 10:00:00+05:60'",
            "1672567200",
            "2459945.5",
            "''",
            "'2023-01-01€10:00:00'",
        ],
    ),
    ("of_time", &["'2023-02-29'", "'2023-00-10'"]),
    (
        "of_jiff",
        &["'2023-02-29 10:00:00'", "'9999-12-31 23:59:59.999999999'"],
    ),
    ("wait", &["-1", "1.5"]),
    ("address", &["'1.2.3'", "'localhost'", "1"]),
    ("letter", &["''", "'ab'", "1"]),
    (
        "size",
        &[
            "'1'",
            "'99999999999999999999'",
            "'+0000000000000000001'",
            "1",
        ],
    ),
    ("price", &["1.5", "'1.50'"]),
    ("extra", &["'{'", "'[256]'", "'secret'", "x'5b5d'", "NULL"]),
    ("status", &["'new'", "0", "NULL"]),
];

const GOOD: &str = "DELETE FROM loose; INSERT INTO loose VALUES (7, 1, 1, 1, 1, 1, 1, 'text', x'', zeroblob(16), \
    '2024-02-29', '10:00', '2024-02-29T10:00Z', '2024-02-29', '2024-02-29 10:00:00', 1, '::1', 'x', \
    '00000000000000000001', 150, '[1]', 'New', 1)";

fn loose_table(file: &Path) -> rusqlite::Connection {
    let other = outsider(file);
    let columns: Vec<_> = Loose::TABLE.columns.iter().map(|it| it.name).collect();
    let rest = columns[1..].join(", ");
    other
        .execute_batch(&format!(
            "CREATE TABLE loose (id INTEGER PRIMARY KEY, {rest}); {GOOD}"
        ))
        .unwrap();
    other
}

/// Case 86, and every other class that a column without a type may hold.
#[tokio::test]
async fn what_does_not_fit_its_field_is_told_however_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loose.db");
    let db = Database::open(&file).await.unwrap();
    let other = loose_table(&file);
    let key = Value::Integer(7);
    for (column, literals) in WRONG {
        for literal in *literals {
            let mut before = db.context();
            let tracked = before.find::<Loose>(7).await.unwrap().unwrap();
            other
                .execute_batch(&format!(
                    "UPDATE loose SET {column} = {literal}, version = 2"
                ))
                .unwrap();
            let mut ctx = db.context();
            let errors = [
                Loose::find(&db, 7).await.unwrap_err(),
                Loose::query().all(&db).await.unwrap_err(),
                Loose::query()
                    .stream(&db)
                    .next()
                    .await
                    .unwrap()
                    .unwrap_err(),
                ctx.find::<Loose>(7).await.unwrap_err(),
                Loose::query().load(&mut ctx).await.unwrap_err(),
                told_by_a_conflict(&mut before, tracked).await,
            ];
            for error in errors {
                assert_names(&error, ErrorKind::Decode, "loose", column, &key);
                assert!(!error.to_string().contains("secret"), "{error}");
            }
            assert!(ctx.is_empty(), "nothing is tracked that was not read");
            other.execute_batch(GOOD).unwrap();
        }
    }
    db.close().await.unwrap();
}

/// The row was changed meanwhile: what the database holds is in the conflict, or cannot be.
async fn told_by_a_conflict(ctx: &mut Context<'_>, tracked: Tracked<Loose>) -> Error {
    ctx[tracked].long += 1;
    let error = ctx.save_changes().await.unwrap_err();
    match error.conflicts() {
        [] => error,
        conflicts => conflicts[0].database_as::<Loose>().unwrap_err(),
    }
}

#[tokio::test]
async fn what_fits_its_field_is_read_in_the_forms_of_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loose.db");
    let db = Database::open(&file).await.unwrap();
    let other = loose_table(&file);
    let read = Loose::find(&db, 7).await.unwrap().unwrap();
    assert_eq!((read.double, read.single), (1.0, 1.0), "whole numbers");
    assert_eq!(read.price, Decimal::new(150, 2));
    for (literal, seconds) in [
        ("'1970-01-01 00:00'", 0.0),
        ("'1970-01-01 00:00:01'", 1.0),
        ("'1970-01-01T00:00:01.5Z'", 1.5),
        ("'1970-01-01 07:00:01.250-05:00'", 43201.25),
        ("'1970-01-01T02:00:00+02:00'", 0.0),
        // Case 81: fractions before 1970.
        ("'1969-12-31 23:59:59.5'", -0.5),
    ] {
        let update = format!("UPDATE loose SET moment = {literal}, of_jiff = {literal}");
        other.execute_batch(&update).unwrap();
        let read = Loose::find(&db, 7).await.unwrap().unwrap();
        let millis = f64::from(i32::try_from(read.moment.timestamp_millis()).unwrap());
        assert_eq!(millis / 1000.0, seconds, "{literal}");
        assert_eq!(
            read.of_jiff.as_nanosecond(),
            i128::from(read.moment.timestamp_nanos_opt().unwrap())
        );
    }
    db.close().await.unwrap();
}

/// An `f32` field asks for the nearest; the file keeps what it has.
#[tokio::test]
async fn a_number_that_is_no_f32_is_read_as_the_nearest_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loose.db");
    let db = Database::open(&file).await.unwrap();
    let other = loose_table(&file);
    other
        .execute_batch("UPDATE loose SET single = 0.1")
        .unwrap();
    let mut ctx = db.context();
    let row = ctx.find::<Loose>(7).await.unwrap().unwrap();
    assert_eq!(ctx[row].single, 0.1);
    ctx[row].long = 12;
    assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
    let stored = Executor::read(&db, ask("SELECT single FROM loose"))
        .await
        .unwrap();
    assert_eq!(stored, [Value::Real(0.1)]);
    db.close().await.unwrap();
}
