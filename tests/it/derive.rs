//! What the derives promise: every field type survives the way to the database and back, whatever its name.
#![allow(
    clippy::unwrap_used,
    reason = "an entity that cannot be written or read must fail the test"
)]

use anabranch::{
    entity::{self, Column, CommitSeq, DefaultValue, Entity, EntityEnum, ForeignKeyAction},
    error::{ErrorKind, Result},
    sql::Executor,
    value::{ColumnType, Json, KeyOrigin, Storage, Value, ValueRef},
};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Everything {
    #[entity(id)]
    id: i64,
    i8: i8,
    i16: i16,
    i32: i32,
    u8: u8,
    u16: u16,
    u32: u32,
    bool: bool,
    f32: f32,
    f64: f64,
    text: String,
    bytes: Vec<u8>,
    uuid: Uuid,
    instant: DateTime<Utc>,
    date: NaiveDate,
    time: NaiveTime,
    date_time: NaiveDateTime,
    duration: TimeDelta,
    value: serde_json::Value,
    maybe_text: Option<String>,
    maybe_date: Option<NaiveDate>,
    maybe_value: Option<serde_json::Value>,
    #[entity(json)]
    extra: Extra,
    #[entity(json)]
    maybe_extra: Option<Extra>,
    status: Status,
    maybe_status: Option<Status>,
    level: Level,
    #[entity(version)]
    version: i64,
    #[entity(commit_seq)]
    commit_seq: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Extra {
    tags: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]
enum Status {
    New,
    #[entity(rename = "in transit – é")]
    InTransit,
    r#Final,
}

#[derive(Debug, Clone, PartialEq, Eq, EntityEnum)]
#[entity(integer)]
enum Level {
    Low = -1,
    High = 1 << 3,
}

fn everything() -> Everything {
    let date = NaiveDate::from_ymd_opt(2024, 2, 29).unwrap();
    let time = NaiveTime::from_hms_nano_opt(23, 59, 58, 123_456_789).unwrap();
    Everything {
        id: 7,
        i8: i8::MIN,
        i16: i16::MIN,
        i32: i32::MIN,
        u8: u8::MAX,
        u16: u16::MAX,
        u32: u32::MAX,
        bool: true,
        f32: f32::MIN_POSITIVE,
        f64: -0.1,
        text: "naïve \"text\"".to_owned(),
        bytes: vec![0, 255],
        uuid: Uuid::from_u128(u128::MAX / 3),
        instant: date.and_time(time).and_utc(),
        date,
        time,
        date_time: date.and_time(time),
        duration: TimeDelta::nanoseconds(i64::MIN),
        value: serde_json::json!({"a": [1, null]}),
        maybe_text: Some(String::new()),
        maybe_date: Some(date),
        maybe_value: Some(serde_json::json!("x")),
        extra: Extra {
            tags: vec!["a".to_owned()],
        },
        maybe_extra: Some(Extra { tags: Vec::new() }),
        status: Status::InTransit,
        maybe_status: Some(Status::Final),
        level: Level::High,
        version: 3,
        commit_seq: CommitSeq(12),
    }
}

fn reread<E: Entity>(entity: &E) -> E {
    entity::decode(&entity::encode(entity).unwrap()[..]).unwrap()
}

#[test]
fn every_field_type_survives_the_round_trip() {
    let written = everything();
    assert_eq!(reread(&written), written);
}

#[test]
fn none_is_null_and_comes_back_as_none() {
    let written = Everything {
        maybe_text: None,
        maybe_date: None,
        maybe_value: None,
        maybe_extra: None,
        maybe_status: None,
        ..everything()
    };
    let values = entity::encode(&written).unwrap();
    for column in [
        Everything::MAYBE_TEXT.index(),
        Everything::MAYBE_DATE.index(),
        Everything::MAYBE_VALUE.index(),
        Everything::MAYBE_EXTRA.index(),
        Everything::MAYBE_STATUS.index(),
    ] {
        assert_eq!(values[column], Value::Null);
    }
    assert_eq!(reread(&written), written);
}

#[test]
fn assigning_every_column_copies_the_entity() {
    let written = everything();
    let mut copy = Everything {
        id: 0,
        extra: Extra { tags: Vec::new() },
        maybe_extra: None,
        ..everything()
    };
    for (column, value) in entity::encode(&written).unwrap().iter().enumerate() {
        copy.assign(column, value.as_ref()).unwrap();
    }
    assert_eq!(copy, written);
}

#[test]
fn a_column_that_does_not_exist_is_an_error_not_a_panic() {
    let mut entity = everything();
    let beyond = Everything::TABLE.columns.len();
    assert!(entity.encode(beyond).is_err());
    assert!(entity.assign(beyond, ValueRef::Null).is_err());
}

#[test]
fn a_decode_error_names_table_column_and_key_but_no_value() {
    let mut row = entity::encode(&everything()).unwrap();
    row[Everything::STATUS.index()] = Value::Text("secret".to_owned());
    let error = entity::decode::<Everything, _>(&row[..]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert_eq!(
        (error.table(), error.column(), error.key()),
        (Some("everything"), Some("status"), &[Value::Integer(7)][..])
    );
    assert_eq!(
        error.to_string(),
        "everything.status: the stored value is no variant of Status"
    );
}

#[test]
fn an_enum_is_stored_by_name_or_by_discriminant() {
    assert_eq!(Status::New.encode(), Ok(Value::Text("New".to_owned())));
    assert_eq!(Status::Final.encode(), Ok(Value::Text("Final".to_owned())));
    assert_eq!(
        Status::InTransit.encode(),
        Ok(Value::Text("in transit – é".to_owned()))
    );
    assert_eq!(Level::Low.encode(), Ok(Value::Integer(-1)));
    assert_eq!(Level::decode(ValueRef::Integer(8)), Ok(Level::High));
    assert_eq!(
        (Status::STORAGE, Level::STORAGE),
        (Storage::Text, Storage::Integer)
    );
}

#[test]
fn an_unknown_stored_variant_is_refused() {
    let messages = [
        Status::decode(ValueRef::Text(b"new"))
            .unwrap_err()
            .to_string(),
        Status::decode(ValueRef::Integer(0))
            .unwrap_err()
            .to_string(),
        Level::decode(ValueRef::Integer(9)).unwrap_err().to_string(),
        Level::decode(ValueRef::Text(b"High"))
            .unwrap_err()
            .to_string(),
    ];
    assert_eq!(
        messages,
        [
            "the stored value is no variant of Status",
            "expected text, found integer",
            "the stored value is no variant of Level",
            "expected an integer, found text",
        ]
    );
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    table = "orders",
    strict = false,
    check = "paid <= total",
    check = "total >= 0"
)]
struct Order {
    #[entity(id)]
    id: Uuid,
    #[entity(references = Customer, on_delete = SetNull, on_update = Cascade, index)]
    customer: Option<String>,
    #[entity(references = Self)]
    replaces: Option<Uuid>,
    #[entity(column = "item_name", unique, check = "length(item_name) > 0")]
    item: String,
    #[entity(default = "0")]
    total: i64,
    paid: i64,
    #[entity(json)]
    extra: Option<Extra>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Customer {
    #[entity(id)]
    code: String,
    #[entity(references = Order)]
    last_order: Option<Uuid>,
}

#[test]
fn the_attributes_arrive_in_the_definition() {
    let table = Order::TABLE;
    assert_eq!((table.name, table.entity), ("orders", "Order"));
    assert!(!table.strict && Customer::TABLE.strict);
    assert_eq!(table.checks, ["paid <= total", "total >= 0"]);
    assert_eq!(table.key_origin, KeyOrigin::Context);
    assert_eq!(Customer::TABLE.key_origin, KeyOrigin::Application);
    assert_eq!(Customer::TABLE.name, "customer");

    let item = Order::ITEM.definition();
    assert_eq!(item.name, "item_name");
    assert!(item.unique && !item.index && !item.nullable);
    assert_eq!(item.check, Some("length(item_name) > 0"));
    assert!(matches!(
        Order::TOTAL.definition().default,
        Some(DefaultValue::Sql("0"))
    ));
    assert!(Order::EXTRA.definition().large);

    let customer = Order::CUSTOMER.definition();
    let reference = customer.references.unwrap();
    assert!(customer.index && customer.nullable);
    assert_eq!((reference.table)().name, "customer");
    assert_eq!(reference.on_delete, ForeignKeyAction::SetNull);
    assert_eq!(reference.on_update, ForeignKeyAction::Cascade);
    assert_eq!(
        (Order::REPLACES.definition().references.unwrap().table)().name,
        "orders"
    );

    let everything = Everything::TABLE;
    assert_eq!(everything.version, Some(Everything::VERSION.index()));
    assert_eq!(everything.commit_seq, Some(Everything::COMMIT_SEQ.index()));
    assert_eq!(everything.key_origin, KeyOrigin::Writer);
}

#[test]
fn columns_are_typed_as_their_fields() {
    let _: Column<Order, Option<String>> = Order::CUSTOMER;
    let _: Column<Order, Option<Json<Extra>>> = Order::EXTRA;
    let _: Column<Everything, Json<Extra>> = Everything::EXTRA;
    let _: Column<Everything, Status> = Everything::STATUS;
}

/// Compiled, not run: the future can be spawned, and the key is whatever converts into it.
#[allow(dead_code, reason = "the compiler is the test")]
fn find_is_send<'c>(
    executor: impl Executor<'c>,
) -> impl Future<Output = Result<Option<Customer>>> + Send {
    Customer::find(executor, "code")
}

#[test]
fn the_key_is_read_and_replaced() {
    let mut customer = Customer {
        code: "a".to_owned(),
        last_order: None,
    };
    customer.set_key("b".to_owned());
    assert_eq!(customer.key(), "b");
}

/// Nothing is imported here, every lint is on, and names are as bad as they come.
mod hostile {
    #![deny(missing_docs, warnings, clippy::all, clippy::pedantic, clippy::nursery)]
    #![deny(unused_qualifications, unreachable_pub, unnameable_types, deprecated)]

    #[derive(Debug, Clone, PartialEq, anabranch::entity::Entity)]
    #[entity(table = "a\"b")]
    pub(super) struct Names {
        #[entity(id)]
        pub(super) id: i64,
        new: i64,
        filter: i64,
        db: i64,
        row: i64,
        column: i64,
        key: i64,
        self_: i64,
        path: i64,
        value: i64,
        query: i64,
        find: i64,
        table: i64,
        error: i64,
        json: i64,
        executor: i64,
        encode: i64,
        decode: i64,
        assign: i64,
        set_key: i64,
        entity: i64,
        kind: i64,
        context: i64,
        state: i64,
        first: i64,
        assign_from: i64,
        r#type: i64,
        r#match: i64,
        r#async: Option<bool>,
        order: i64,
        group: i64,
        #[entity(column = "select")]
        _hidden: i64,
        größe: i64,
        #[deprecated]
        old: i64,
        own: Own,
        #[entity(json)]
        tree: Vec<Self>,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq, anabranch::entity::EntityEnum)]
    enum Own {
        Ok,
        Some,
        None,
    }

    impl serde::Serialize for Names {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.id.serialize(serializer)
        }
    }

    impl<'de> serde::Deserialize<'de> for Names {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            i64::deserialize(from).map(names)
        }
    }

    #[allow(deprecated, reason = "the field is there to be deprecated")]
    pub(super) const fn names(id: i64) -> Names {
        Names {
            id,
            new: 1,
            filter: 2,
            db: 3,
            row: 4,
            column: 5,
            key: 6,
            self_: 7,
            path: 8,
            value: 9,
            query: 10,
            find: 11,
            table: 12,
            error: 13,
            json: 14,
            executor: 15,
            encode: 16,
            decode: 17,
            assign: 18,
            set_key: 19,
            entity: 27,
            kind: 28,
            context: 29,
            state: 30,
            first: 31,
            assign_from: 32,
            r#type: 20,
            r#match: 21,
            r#async: Some(true),
            order: 22,
            group: 23,
            _hidden: 24,
            größe: 25,
            old: 26,
            own: [Own::Ok, Own::Some, Own::None][1],
            tree: Vec::new(),
        }
    }
}

#[test]
fn hostile_names_are_like_any_other() {
    use hostile::Names;

    let mut written = hostile::names(1);
    assert_eq!(reread(&written), written);
    written.set_key(5);
    assert_eq!(written.id, 5);
    assert_eq!(<Names as Entity>::TABLE.name, "a\"b");
    assert_eq!(Names::TYPE.definition().name, "type");
    assert_eq!(Names::TABLE.definition().name, "table");
    assert_eq!(Names::GRÖSSE.definition().name, "größe");
    assert_eq!(Names::_HIDDEN.definition().name, "select");
}

/// Types that have the names of the prelude must not get in the way.
mod shadows {
    #![allow(dead_code, reason = "the names are all that matters")]

    pub(super) struct Option;
    pub(super) struct Result;
    pub(super) struct String;
    pub(super) struct Vec;
    pub(super) struct Some;
    pub(super) struct Ok;
    pub(super) struct Err;
    pub(super) trait Clone {}
    pub(super) trait Into {}

    #[derive(anabranch::entity::Entity)]
    #[entity(crate = "::anabranch")]
    pub(super) struct Shadowed {
        #[entity(id)]
        pub(super) id: i64,
        #[entity(json)]
        pub(super) data: std::option::Option<u64>,
    }

    #[derive(anabranch::entity::EntityEnum)]
    pub(super) enum Variant {
        Some,
    }
}

#[test]
fn shadowed_prelude_names_do_no_harm() {
    let read = reread(&shadows::Shadowed {
        id: 1,
        data: Some(u64::MAX),
    });
    assert_eq!((read.id, read.data), (1, Some(u64::MAX)));
    assert!(shadows::Variant::Some.encode().is_ok());
}
