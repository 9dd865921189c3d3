//! Every column type against SQLite's own reading of the file: what stands there is said here without the library, and
//! asked of plain SQLite and of the `sqlite3` shell. The seed is printed; `ANABRANCH_SEED` repeats it.

use std::{
    fmt::Debug,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::Path,
    process::Command,
    sync::Arc,
    time::Duration,
};

use anabranch::{prelude::*, query::Query};
use anabranch_tests::{outsider, random::Random};
use bigdecimal::BigDecimal;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use futures_util::TryStreamExt;
use jiff::{civil, tz::Offset};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use rusqlite::types::ValueRef;
use rust_decimal::Decimal;
use uuid::Uuid;

/// An entity of random values.
trait Sample: Entity<Key = i64> + Clone + PartialEq + Debug {
    fn any() -> BoxedStrategy<Self>;

    /// Class and content of each column but the key, as [`shown`] has them.
    fn expected(&self) -> Vec<String>;
}

/// An entity with two columns for each type: the type, and an `Option` of it.
macro_rules! sample {
    ($entity:ident { $($(#[$attribute:meta])* $field:ident, $maybe:ident: $type:ty = $any:expr => $expected:expr;)* }) => {
        #[derive(Debug, Clone, PartialEq, Entity)]
        struct $entity {
            #[entity(id)]
            id: i64,
            $($(#[$attribute])* $field: $type, $(#[$attribute])* $maybe: Option<$type>,)*
        }

        impl Sample for $entity {
            fn any() -> BoxedStrategy<Self> {
                ($(($any, option::of($any)),)*)
                    .prop_map(|($(($field, $maybe),)*)| Self { id: 0, $($field, $maybe,)* })
                    .boxed()
            }

            fn expected(&self) -> Vec<String> {
                let mut expected = Vec::new();
                $(
                    let show: fn(&$type) -> String = $expected;
                    expected.push(show(&self.$field));
                    expected.push(self.$maybe.as_ref().map_or_else(null, show));
                )*
                expected
            }
        }
    };
}

sample! { Number {
    tiny, maybe_tiny: i8 = any::<i8>() => |it| integer(*it);
    short, maybe_short: i16 = any::<i16>() => |it| integer(*it);
    int, maybe_int: i32 = any::<i32>() => |it| integer(*it);
    long, maybe_long: i64 = any_integer() => |it| integer(*it);
    byte, maybe_byte: u8 = any::<u8>() => |it| integer(*it);
    word, maybe_word: u16 = any::<u16>() => |it| integer(*it);
    wide, maybe_wide: u32 = any::<u32>() => |it| integer(*it);
    truth, maybe_truth: bool = any::<bool>() => |it| integer(u8::from(*it));
    single, maybe_single: f32 = any_single() => |it| real(f64::from(*it));
    double, maybe_double: f64 = any_double() => |it| real(*it);
}}

sample! { Written {
    text, maybe_text: String = any_text() => |it| text(it);
    boxed, maybe_boxed: Box<str> = any_text().prop_map(Into::into) => |it| text(it);
    shared, maybe_shared: Arc<str> = any_text().prop_map(Into::into) => |it| text(it);
    letter, maybe_letter: char = any_char() => |it| text(&String::from(*it));
    bytes, maybe_bytes: Vec<u8> = vec(any::<u8>(), 0..40) => |it| blob(it);
    uuid, maybe_uuid: Uuid = any::<u128>().prop_map(Uuid::from_u128) => |it| blob(&it.as_u128().to_be_bytes());
    v4, maybe_v4: Ipv4Addr = any::<u32>().prop_map(Ipv4Addr::from) => |it| text(&dotted(*it));
    v6, maybe_v6: Ipv6Addr = any::<u128>().prop_map(Ipv6Addr::from) => |it| text(&it.to_string());
    address, maybe_address: IpAddr = any::<u32>().prop_map(|it| Ipv4Addr::from(it).into()) => |it| text(&it.to_string());
}}

sample! { Large {
    #[entity(padded)]
    unsigned, maybe_unsigned: u64 = any_unsigned() => |it| text(&format!("{it:0>20}"));
    #[entity(padded)]
    larger, maybe_larger: u128 = any::<u128>() => |it| text(&format!("{it:0>39}"));
    #[entity(scale = 0)]
    whole, maybe_whole: Decimal = units(0).prop_map(|it| it.parse().unwrap()) => |it| unscaled(it, 0);
    #[entity(scale = 2)]
    price, maybe_price: Decimal = units(2).prop_map(|it| it.parse().unwrap()) => |it| unscaled(it, 2);
    #[entity(scale = 18)]
    fine, maybe_fine: Decimal = units(18).prop_map(|it| it.parse().unwrap()) => |it| unscaled(it, 18);
    #[entity(scale = 4)]
    big, maybe_big: BigDecimal = units(4).prop_map(|it| it.parse().unwrap()) => |it| unscaled(&it.with_scale(4).to_plain_string(), 4);
}}

sample! { Moment {
    instant, maybe_instant: DateTime<Utc> = any_moment().prop_map(|it| it.and_utc()) => |it| text(&it.format(MOMENT).to_string());
    local, maybe_local: NaiveDateTime = any_moment() => |it| text(&it.format(MOMENT).to_string());
    date, maybe_date: NaiveDate = any_moment().prop_map(|it| it.date()) => |it| text(&it.format("%Y-%m-%d").to_string());
    time, maybe_time: NaiveTime = any_moment().prop_map(|it| it.time()) => |it| text(&it.format("%H:%M:%S.%9f").to_string());
    delta, maybe_delta: TimeDelta = any_integer().prop_map(TimeDelta::nanoseconds) => |it| integer(it.num_nanoseconds().unwrap());
    wait, maybe_wait: Duration = (0..=i64::MAX).prop_map(|it| Duration::from_nanos(it.unsigned_abs())) => |it| integer(i64::try_from(it.as_nanos()).unwrap());
}}

sample! { OfTime {
    instant, maybe_instant: time::UtcDateTime = any_moment().prop_map(|it| of_time(it).as_utc()) => |it| text(&of_seconds(it.unix_timestamp(), it.nanosecond()));
    offset, maybe_offset: time::OffsetDateTime = any_moment().prop_map(|it| of_time(it).assume_utc()) => |it| text(&of_seconds(it.unix_timestamp(), it.nanosecond()));
    local, maybe_local: time::PrimitiveDateTime = any_moment().prop_map(of_time) => |it| text(&of_seconds(it.as_utc().unix_timestamp(), it.nanosecond()));
    date, maybe_date: time::Date = any_moment().prop_map(|it| of_time(it).date()) => |it| text(&it.to_string());
    clock, maybe_clock: time::Time = any_moment().prop_map(|it| of_time(it).time()) => |it| text(&of_seconds(it.duration_since(time::Time::MIDNIGHT).whole_seconds(), it.nanosecond())[11..]);
    delta, maybe_delta: time::Duration = any_integer().prop_map(time::Duration::nanoseconds) => |it| integer(i64::try_from(it.whole_nanoseconds()).unwrap());
}}

sample! { OfJiff {
    instant, maybe_instant: jiff::Timestamp = any_moment().prop_filter_map("beyond the last", |it| Offset::UTC.to_timestamp(of_jiff(it)).ok()) => |it| text(&of_nanoseconds(it.as_nanosecond()));
    local, maybe_local: civil::DateTime = any_moment().prop_map(of_jiff) => |it| text(&it.strftime(MOMENT).to_string());
    date, maybe_date: civil::Date = any_moment().prop_map(|it| of_jiff(it).date()) => |it| text(&it.to_string());
    clock, maybe_clock: civil::Time = any_moment().prop_map(|it| of_jiff(it).time()) => |it| text(&it.strftime("%H:%M:%S.%9f").to_string());
    delta, maybe_delta: jiff::SignedDuration = any_integer().prop_map(jiff::SignedDuration::from_nanos) => |it| integer(i64::try_from(it.as_nanos()).unwrap());
}}

sample! { Document {
    value, maybe_value: serde_json::Value = any_json() => |it| text(&json(it));
    #[entity(json)]
    list, maybe_list: Vec<Option<String>> = vec(option::of(any_text()), 0..5) => |it| text(&json(&serde_json::json!(it)));
    #[entity(json)]
    pair, maybe_pair: (u64, String) = (any_unsigned(), any_text()) => |it| text(&json(&serde_json::json!(it)));
}}

const MOMENT: &str = "%Y-%m-%d %H:%M:%S.%9f";

fn any_integer() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -3..=3_i64, Just(i64::MIN), Just(i64::MAX)]
}

fn any_unsigned() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..=3_u64, Just(u64::MAX), Just(1 << 63)]
}

fn any_single() -> impl Strategy<Value = f32> {
    use proptest::num::f32::{INFINITE, NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO | INFINITE
}

fn any_double() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{INFINITE, NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO | INFINITE
}

fn any_char() -> impl Strategy<Value = char> {
    any::<char>().prop_filter("NUL is refused", |it| *it != '\0')
}

fn any_text() -> impl Strategy<Value = String> {
    vec(any_char(), 0..20).prop_map(String::from_iter)
}

/// JSON without fractions, whose digits are the writer's choice.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any_integer().prop_map(Into::into),
        any_unsigned().prop_map(Into::into),
        "\\PC{0,8}|[\\x00-\\x7f]{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Into::into),
            vec((any_text(), inner), 0..4)
                .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// From 0000-01-01 to 9999-12-31, often with few digits of a second.
fn any_moment() -> impl Strategy<Value = NaiveDateTime> {
    let seconds = prop_oneof![
        -62_167_219_200..=253_402_300_799_i64,
        -2..=2_i64,
        Just(-62_167_219_200),
        Just(253_402_300_799),
    ];
    let nanoseconds = prop_oneof![
        0..=999_999_999_u32,
        Just(0),
        Just(500_000_000),
        Just(999_999_999)
    ];
    (seconds, nanoseconds).prop_map(|(seconds, nanoseconds)| at(seconds, nanoseconds).naive_utc())
}

fn at(seconds: i64, nanoseconds: u32) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, nanoseconds).unwrap()
}

fn of_seconds(seconds: i64, nanoseconds: u32) -> String {
    at(seconds, nanoseconds).format(MOMENT).to_string()
}

fn of_nanoseconds(nanoseconds: i128) -> String {
    const SECOND: i128 = 1_000_000_000;
    of_seconds(
        i64::try_from(nanoseconds.div_euclid(SECOND)).unwrap(),
        u32::try_from(nanoseconds.rem_euclid(SECOND)).unwrap(),
    )
}

fn of_time(moment: NaiveDateTime) -> time::PrimitiveDateTime {
    let moment = moment.and_utc();
    let whole = time::UtcDateTime::from_unix_timestamp(moment.timestamp()).unwrap();
    let nanoseconds = moment.timestamp_subsec_nanos().into();
    let moment = whole + time::Duration::nanoseconds(nanoseconds);
    time::PrimitiveDateTime::new(moment.date(), moment.time())
}

fn of_jiff(moment: NaiveDateTime) -> civil::DateTime {
    moment.to_string().parse().unwrap()
}

/// Decimal numbers with so many digits after the point, as people write them.
fn units(scale: usize) -> impl Strategy<Value = String> {
    any_integer().prop_map(move |units| {
        let digits = format!("{:0>width$}", units.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let sign = if units < 0 { "-" } else { "" };
        let point = if scale == 0 { "" } else { "." };
        format!("{sign}{whole}{point}{fraction}")
    })
}

fn unscaled(number: &impl ToString, scale: usize) -> String {
    let number = number.to_string();
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let units: i64 = format!("{whole}{fraction:0<scale$}").parse().unwrap();
    integer(units)
}

fn dotted(address: Ipv4Addr) -> String {
    address.octets().map(|octet| octet.to_string()).join(".")
}

/// JSON by the book, without a space.
fn json(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => {
            let items: Vec<_> = items.iter().map(json).collect();
            format!("[{}]", items.join(","))
        }
        serde_json::Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", quoted(name), json(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        serde_json::Value::String(text) => quoted(text),
        serde_json::Value::Number(number) => number.as_i128().unwrap().to_string(),
        serde_json::Value::Bool(truth) => truth.to_string(),
        serde_json::Value::Null => "null".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

fn null() -> String {
    "null:".to_owned()
}

fn integer(value: impl Into<i64>) -> String {
    format!("integer:{}", value.into())
}

/// The eight bytes of the number; a zero has lost its sign.
fn real(value: f64) -> String {
    let stored = if value == 0.0 { 0.0 } else { value };
    format!("real:{:016X}", stored.to_bits())
}

fn text(value: &str) -> String {
    format!("text:{}", hex(value.as_bytes()))
}

fn blob(value: &[u8]) -> String {
    format!("blob:{}", hex(value))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => null(),
        ValueRef::Integer(value) => integer(value),
        ValueRef::Real(value) => format!("real:{:016X}", value.to_bits()),
        ValueRef::Text(value) => format!("text:{}", hex(value)),
        ValueRef::Blob(value) => blob(value),
    }
}

/// The rows of the file as a connection of plain SQLite reads them, without the key.
fn read_by_sqlite<E: Entity>(file: &Path) -> Vec<Vec<String>> {
    let connection = outsider(file);
    let mut statement = connection
        .prepare(&format!("SELECT * FROM {} ORDER BY 1", E::TABLE.name))
        .unwrap();
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut read = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        read.push(
            (1..columns)
                .map(|column| shown(row.get_ref(column).unwrap()))
                .collect(),
        );
    }
    read
}

/// The same by the `sqlite3` shell, whose version is another. It may be missing, except where `ANABRANCH_SHELL` says so.
fn read_by_shell<E: Entity>(file: &Path) -> Option<Vec<Vec<String>>> {
    let columns: Vec<_> = E::TABLE.columns[1..]
        .iter()
        .map(|column| {
            let name = column.name;
            format!(
                "typeof({name}) || ':' || CASE typeof({name}) WHEN 'real' THEN hex(ieee754_to_blob({name})) \
                 WHEN 'integer' THEN {name} WHEN 'null' THEN '' ELSE hex({name}) END"
            )
        })
        .collect();
    let sql = format!(
        "SELECT {} FROM {} ORDER BY id",
        columns.join(", "),
        E::TABLE.name
    );
    let output = match Command::new("sqlite3")
        .arg("-list")
        .arg(file)
        .arg(sql)
        .output()
    {
        Ok(output) => output,
        Err(error) if std::env::var_os("ANABRANCH_SHELL").is_none() => {
            eprintln!("the sqlite3 shell was not asked: {error}");
            return None;
        }
        Err(error) => panic!("sqlite3: {error}"),
    };
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(
        lines
            .lines()
            .map(|line| line.split('|').map(str::to_owned).collect())
            .collect(),
    )
}

/// Saves the rows, and reads them back in every way.
async fn pass_through<E: Sample>(file: &Path, rows: Vec<E>) {
    let db = Database::open(file).await.unwrap();
    db.create_tables::<E>().await.unwrap();
    let mut ctx = db.context();
    let handles: Vec<_> = rows.into_iter().map(|row| ctx.add(row)).collect();
    ctx.save_changes().await.unwrap();
    let saved: Vec<E> = handles.iter().map(|row| ctx[*row].clone()).collect();

    let streamed: Vec<E> = Query::<E>::new().stream(&db).try_collect().await.unwrap();
    assert_eq!(streamed, saved);
    for row in &saved {
        let found = anabranch::query::find::<E>(&db, row.key()).await.unwrap();
        assert_eq!(found.as_ref(), Some(row));
    }
    // Nothing is taken for a change because it was read.
    let mut again = db.context();
    let loaded = Query::<E>::new().load(&mut again).await.unwrap();
    for row in loaded {
        again.get_mut(row).unwrap();
    }
    assert_eq!(again.save_changes().await.unwrap().updated, 0);
    db.close().await.unwrap();

    let expected: Vec<_> = saved.iter().map(E::expected).collect();
    assert_eq!(read_by_sqlite::<E>(file), expected);
    if let Some(read) = read_by_shell::<E>(file) {
        assert_eq!(read, expected);
    }
}

/// Some dozens of files with random rows.
fn every_row_passes<E: Sample>(test: &str) {
    let mut random = Random::seeded(test);
    let seed: Vec<u8> = (0..4).flat_map(|_| random.next().to_le_bytes()).collect();
    let config = Config {
        cases: 24,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    TestRunner::new_with_rng(config, rng)
        .run(&vec(E::any(), 1..12), |rows| {
            let folder = tempfile::tempdir().unwrap();
            runtime.block_on(pass_through(&folder.path().join("rows.db"), rows));
            Ok(())
        })
        .unwrap();
}

#[test]
fn numbers_are_in_the_file_as_they_are() {
    every_row_passes::<Number>("numbers_are_in_the_file_as_they_are");
}

#[test]
fn text_and_bytes_are_in_the_file_as_they_are() {
    every_row_passes::<Written>("text_and_bytes_are_in_the_file_as_they_are");
}

#[test]
fn large_and_decimal_numbers_are_in_the_file_as_they_are() {
    every_row_passes::<Large>("large_and_decimal_numbers_are_in_the_file_as_they_are");
}

#[test]
fn moments_are_in_the_file_in_one_form() {
    every_row_passes::<Moment>("moments_are_in_the_file_in_one_form");
}

#[test]
fn moments_of_time_are_in_the_file_in_that_form() {
    every_row_passes::<OfTime>("moments_of_time_are_in_the_file_in_that_form");
}

#[test]
fn moments_of_jiff_are_in_the_file_in_that_form() {
    every_row_passes::<OfJiff>("moments_of_jiff_are_in_the_file_in_that_form");
}

#[test]
fn json_is_in_the_file_as_it_is() {
    every_row_passes::<Document>("json_is_in_the_file_as_it_is");
}
