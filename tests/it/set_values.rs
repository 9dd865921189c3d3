//! Fields set from structs and JSON objects.

use anabranch::prelude::*;
use anabranch_tests::{Mode, execute};
use chrono::{DateTime, NaiveDate, TimeZone, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Extra {
    tags: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, EntityEnum)]
enum Status {
    New,
    Paid,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "orders")]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(column = "item_name")]
    item: String,
    price: f64,
    count: Option<u8>,
    paid: bool,
    status: Status,
    day: NaiveDate,
    placed_at: DateTime<Utc>,
    token: Uuid,
    receipt: Vec<u8>,
    #[entity(json)]
    extra: Option<Extra>,
    note: serde_json::Value,
    r#type: String,
    #[entity(version)]
    version: i64,
}

fn order() -> Order {
    Order {
        id: 0,
        item: "tea".to_owned(),
        price: 1.5,
        count: Some(1),
        paid: false,
        status: Status::New,
        day: NaiveDate::from_ymd_opt(2013, 1, 2).unwrap(),
        placed_at: Utc.with_ymd_and_hms(2013, 1, 2, 3, 4, 5).unwrap(),
        token: Uuid::from_u128(1),
        receipt: vec![1, 2],
        extra: None,
        note: json!(null),
        r#type: "hot".to_owned(),
        version: 0,
    }
}

async fn shop() -> (Database, Context<'static>, Tracked<Order>) {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Order>().await.unwrap();
    let mut ctx = db.context();
    let tea = ctx.add(order());
    ctx.save_changes().await.unwrap();
    (db, ctx, tea)
}

#[tokio::test]
async fn a_struct_of_all_types_sets_what_it_has() {
    #[derive(Serialize)]
    struct Form {
        item: &'static str,
        price: f32,
        count: Option<u8>,
        paid: bool,
        status: Status,
        day: &'static str,
        placed_at: &'static str,
        token: String,
        receipt: [u8; 3],
        extra: Extra,
        note: Vec<i32>,
        r#type: char,
    }
    let (db, mut ctx, tea) = shop().await;
    let extra = Extra {
        tags: vec!["x".to_owned()],
    };
    let form = Form {
        item: "cake",
        price: 0.1,
        count: None,
        paid: true,
        status: Status::Paid,
        day: "2014-01-02",
        placed_at: "2013-01-02T05:04:05.5+02:00",
        token: Uuid::from_u128(2).to_string(),
        receipt: [0, 127, 255],
        extra: extra.clone(),
        note: vec![1, 2],
        r#type: 'c',
    };
    ctx.set_values(tea, &form).unwrap();
    assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
    let expected = Order {
        id: ctx[tea].id,
        item: "cake".to_owned(),
        price: 0.1_f32.into(),
        count: None,
        paid: true,
        status: Status::Paid,
        day: NaiveDate::from_ymd_opt(2014, 1, 2).unwrap(),
        placed_at: Utc.timestamp_opt(1_357_095_845, 500_000_000).unwrap(),
        token: Uuid::from_u128(2),
        receipt: vec![0, 127, 255],
        extra: Some(extra),
        note: json!([1, 2]),
        r#type: "c".to_owned(),
        version: 2,
    };
    assert_eq!(ctx[tea], expected);
    assert_eq!(Order::query().all(&db).await.unwrap(), [expected]);
}

/// A form may well be the entity's own type, sent back.
#[tokio::test]
async fn an_entity_of_the_same_type_sets_all_of_another() {
    #[derive(Debug, Clone, PartialEq, Serialize, Entity)]
    struct Item {
        #[entity(id)]
        id: i64,
        name: String,
        price: Option<f32>,
        #[entity(version)]
        version: i64,
    }
    let db = Mode::Inline.temporary().await;
    let mut ctx = db.context();
    let item = Item {
        id: 7,
        name: "pot".to_owned(),
        price: Some(0.1),
        version: 3,
    };
    let pot = ctx.attach(item.clone()).unwrap();
    let sent = Item {
        price: None,
        ..item
    };
    ctx.set_values(pot, &sent).unwrap();
    assert_eq!(ctx.entry(pot).modified_columns(), ["price"]);
    assert_eq!(ctx[pot], sent);
}

#[tokio::test]
async fn the_column_name_will_do_and_what_is_not_mentioned_stays() {
    let (_db, mut ctx, tea) = shop().await;
    ctx.set_values(tea, &json!({ "item_name": "cake" }))
        .unwrap();
    assert_eq!(ctx.entry(tea).modified_columns(), ["item_name"]);
    assert_eq!(ctx[tea].item, "cake");
    let both = ctx.set_values(tea, &json!({ "item_name": "a", "item": "b" }));
    assert_eq!(both.unwrap_err().column(), Some("item_name"));
    assert_eq!(ctx[tea].item, "cake");
}

#[tokio::test]
async fn what_does_not_fit_is_named_and_nothing_is_set() {
    let (_db, mut ctx, tea) = shop().await;
    let before = ctx[tea].clone();
    for (values, message) in [
        (
            json!({ "count": 2, "colour": 1 }),
            "orders.colour: no field or column has this name",
        ),
        (
            json!({ "count": 256 }),
            "orders.count: the integer given is out of range for u8",
        ),
        (
            json!({ "count": 2, "paid": "secret" }),
            "orders.paid: expected a bool, found a string",
        ),
        (
            json!({ "count": 2, "price": null }),
            "orders.price: expected a number, found null",
        ),
        (
            json!({ "status": "secret" }),
            "orders.status: the value given is no variant of Status",
        ),
        (
            json!({ "extra": { "secret": 1 } }),
            "orders.extra: the JSON given is not of this type",
        ),
        (
            json!({ "token": "secret" }),
            "orders.token: the text given is not a UUID",
        ),
        (
            json!({ "day": "2013-02-30" }),
            "orders.day: the text given is no date (YYYY-MM-DD)",
        ),
        (
            json!("secret"),
            "orders: values are set from a struct or a JSON object, which names the fields",
        ),
    ] {
        let error = ctx.set_values(tea, &values).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Value, message)
        );
        assert_eq!(ctx[tea], before);
    }
    let error = ctx.set_values(tea, &json!({ "item": "a\0b" })).unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Value, Some("item_name"))
    );
    assert!(!ctx.has_changes());
}

/// JSON has no such numbers, and serde_json writes `null` for them: a nullable column would have become NULL.
#[tokio::test]
async fn a_number_that_is_not_finite_does_not_become_null() {
    #[derive(Serialize)]
    struct Form {
        count: f64,
    }
    let (_db, mut ctx, tea) = shop().await;
    for count in [f64::NAN, f64::INFINITY] {
        let error = ctx.set_values(tea, &Form { count }).unwrap_err();
        assert_eq!(
            (error.kind(), error.table()),
            (ErrorKind::Value, Some("orders"))
        );
        assert_eq!(ctx[tea].count, Some(1));
    }
}

#[tokio::test]
async fn the_key_may_be_mentioned_but_not_changed() {
    let (_db, mut ctx, tea) = shop().await;
    let id = ctx[tea].id;
    ctx.set_values(tea, &json!({ "id": id, "count": 2 }))
        .unwrap();
    let error = ctx
        .set_values(tea, &json!({ "id": id + 1, "count": 3 }))
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Refused, Some("id"))
    );
    assert_eq!((ctx[tea].id, ctx[tea].count), (id, Some(2)));
}

#[tokio::test]
async fn a_form_with_a_stale_version_meets_a_conflict() {
    let (db, ctx, tea) = shop().await;
    let id = ctx[tea].id;
    let shown = ctx[tea].version;
    execute(&db, "UPDATE orders SET price = 9, version = version + 1").await;

    let mut ctx = db.context();
    let tea = ctx.find::<Order>(id).await.unwrap().unwrap();
    let form = json!({ "item": "cake", "version": shown });
    ctx.set_values(tea, &form).unwrap();
    let error = ctx.save_changes().await.unwrap_err();
    assert!(error.is_conflict());
    ctx.merge_with(&error, |clash| {
        assert!(clash.is(Order::ITEM));
        Winner::Client
    })
    .unwrap();
    ctx.save_changes().await.unwrap();
    let row = Order::find(&db, id).await.unwrap().unwrap();
    assert_eq!(
        (row.item.as_str(), row.price, row.version),
        ("cake", 9.0, 3)
    );
}

#[tokio::test]
async fn an_added_entity_is_set_and_one_that_is_removed_or_gone_is_not() {
    let (db, mut ctx, tea) = shop().await;
    let new = ctx.add(order());
    ctx.set_values(new, &json!({ "item": "new", "version": 5 }))
        .unwrap();
    ctx.save_changes().await.unwrap();
    assert_eq!((ctx[new].item.as_str(), ctx[new].version), ("new", 5));
    ctx.remove(tea);
    let removed = ctx.set_values(tea, &json!({ "item": "x" })).unwrap_err();
    ctx.detach(tea);
    let gone = ctx.set_values(tea, &json!({ "item": "x" })).unwrap_err();
    let foreign = db
        .context()
        .set_values(new, &json!({ "item": "x" }))
        .unwrap_err();
    for error in [removed, gone, foreign] {
        assert_eq!(
            (error.kind(), error.table()),
            (ErrorKind::Refused, Some("orders"))
        );
    }
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Address {
    street: Option<String>,
    city: String,
    #[entity(embed)]
    point: Option<Point>,
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Point {
    latitude: f64,
    longitude: f64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Person {
    #[entity(id)]
    id: i64,
    alias: String,
    score: f64,
    #[entity(embed)]
    home: Option<Address>,
    #[entity(skip)]
    cached: Option<String>,
}

fn person() -> Person {
    Person {
        id: 7,
        alias: "ada".to_owned(),
        score: f64::NAN,
        home: None,
        cached: Some("kept".to_owned()),
    }
}

#[tokio::test]
async fn an_embedded_struct_that_is_absent_is_filled_in_and_emptied() {
    let db = Mode::Inline.temporary().await;
    let mut ctx = db.context();
    let ada = ctx.attach(person()).unwrap();
    let point = json!({ "latitude": 52.0, "longitude": 4.4 });
    let form = json!({ "alias": "Ada", "home": { "city": "Delft", "point": point } });
    ctx.set_values(ada, &form).unwrap();
    let expected = Address {
        street: None,
        city: "Delft".to_owned(),
        point: Some(Point {
            latitude: 52.0,
            longitude: 4.4,
        }),
    };
    assert_eq!(ctx[ada].home.as_ref(), Some(&expected));
    assert_eq!(ctx[ada].cached.as_deref(), Some("kept"));
    assert_eq!(ctx[ada].alias, "Ada");
    ctx.set_values(ada, &json!({ "home": { "point": null } }))
        .unwrap();
    let home = ctx[ada].home.as_ref().unwrap();
    assert_eq!((home.city.as_str(), &home.point), ("Delft", &None));
    ctx.set_values(ada, &json!({ "home": null })).unwrap();
    assert_eq!(ctx[ada].home, None);
}

#[tokio::test]
async fn half_an_embedded_struct_names_what_is_missing_and_nothing_is_set() {
    let db = Mode::Inline.temporary().await;
    let mut ctx = db.context();
    let ada = ctx.attach(person()).unwrap();
    for (form, column) in [
        (json!({ "street": "Oude Delft" }), "home_city"),
        (
            json!({ "city": "Delft", "point": { "latitude": 52 } }),
            "home_point_longitude",
        ),
    ] {
        let form = json!({ "alias": "changed", "score": 1, "home": form });
        let error = ctx.set_values(ada, &form).unwrap_err();
        assert_eq!(
            (error.kind(), error.column()),
            (ErrorKind::Value, Some(column))
        );
        let Person {
            alias, score, home, ..
        } = &ctx[ada];
        assert_eq!((alias.as_str(), home), ("ada", &None));
        assert!(score.is_nan(), "a value that cannot be stored stays, too");
    }
}

#[tokio::test]
async fn a_reset_brings_an_embedded_struct_back_or_takes_it_away() {
    let db = Mode::Inline.temporary().await;
    let mut ctx = db.context();
    let home = Address {
        street: None,
        city: "Delft".to_owned(),
        point: None,
    };
    for (before, since) in [(None, Some(&home)), (Some(&home), None)] {
        let read = Person {
            score: 1.0,
            home: before.cloned(),
            ..person()
        };
        let ada = ctx.attach(read).unwrap();
        ctx[ada].home = since.cloned();
        assert!(ctx.reset(ada));
        assert_eq!(ctx[ada].home.as_ref(), before);
        assert_eq!(ctx.entry(ada).state(), EntityState::Unchanged);
        ctx.detach(ada);
    }
}

#[tokio::test]
async fn the_version_of_a_form_goes_with_a_reset() {
    for form in [
        json!({ "item": "cake", "version": 1 }),
        json!({ "item": "tea", "version": 1 }),
    ] {
        let (_db, mut ctx, tea) = shop().await;
        ctx[tea].paid = true;
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx[tea].version, 2);
        ctx.set_values(tea, &form).unwrap();
        assert!(ctx.reset(tea));
        assert_eq!(ctx[tea].version, 2);
        ctx[tea].price = 2.0;
        assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
    }
}

/// Nothing is to be written, so nothing is to be checked, then or later.
#[tokio::test]
async fn the_version_of_a_form_that_changes_nothing_is_forgotten_by_the_save() {
    let (_db, mut ctx, tea) = shop().await;
    ctx[tea].paid = true;
    ctx.save_changes().await.unwrap();
    ctx.set_values(tea, &json!({ "item": "tea", "version": 1 }))
        .unwrap();
    assert_eq!(ctx.save_changes().await.unwrap().updated, 0);
    ctx[tea].price = 2.0;
    assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
    assert_eq!(ctx[tea].version, 3);
}

#[tokio::test]
async fn a_stale_version_is_checked_by_a_removal_and_again_after_a_conflict() {
    let (_db, mut ctx, tea) = shop().await;
    ctx[tea].paid = true;
    ctx.save_changes().await.unwrap();
    ctx.set_values(tea, &json!({ "item": "cake", "version": 1 }))
        .unwrap();
    for _ in 0..2 {
        assert!(ctx.save_changes().await.unwrap_err().is_conflict());
    }
    ctx.remove(tea);
    let error = ctx.save_changes().await.unwrap_err();
    assert!(error.is_conflict());
    ctx.client_wins(&error).unwrap();
    assert_eq!(ctx.save_changes().await.unwrap().deleted, 1);
}
