//! Structs that are read from raw SQL by the names of columns.

use anabranch::{
    prelude::*,
    query::{FromRow, raw},
};
use chrono::NaiveDate;
use futures_util::TryStreamExt as _;
use rust_decimal::Decimal;

use crate::expressions::{
    places::everywhere,
    thing::{Thing, things},
};

#[derive(Debug, Clone, Copy, PartialEq, EntityEnum)]
#[entity(rename_all = "snake_case")]
enum Colour {
    DarkRed,
    Blue,
}

#[derive(Debug, Clone, PartialEq, EntityNewtype)]
struct Code(String);

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Address {
    street: Option<String>,
    #[entity(column = "town")]
    city: String,
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
enum Payment {
    Cash,
    Card { number: i64 },
}

#[derive(Debug, Clone, PartialEq, FromRow)]
#[row(rename_all = "camelCase")]
struct Everything {
    whole_number: i64,
    maybe: Option<f64>,
    r#type: Colour,
    #[row(column = "the \"code\"")]
    code: Code,
    #[row(scale = 2)]
    price: Decimal,
    #[row(scale = 2)]
    discount: Option<Decimal>,
    #[row(padded)]
    large: u64,
    #[row(json)]
    tags: Vec<String>,
    #[row(json)]
    more: Option<Vec<i64>>,
    day: Option<NaiveDate>,
    #[row(embed)]
    home: Address,
    #[row(embed, prefix = "w_")]
    work: Option<Address>,
    #[row(embed)]
    payment: Payment,
    #[row(skip)]
    note: String,
}

#[derive(Debug, Clone, PartialEq, FromRow)]
struct Pair {
    first: i64,
    second: Option<String>,
}

#[tokio::test]
async fn a_struct_of_every_kind_of_field_is_read_by_names() {
    let db = things().await;
    let query = raw::<Everything>(
        "SELECT 'Main' AS home_street, 1 AS extra, 'Bern' AS home_town, NULL AS w_street, NULL AS w_town,
             -5 AS wholeNumber, 'dark_red' AS type, {} AS \"the \"\"code\"\"\", 1250 AS price, NULL AS discount,
             '00000000000000000007' AS large, '[\"a\"]' AS tags, NULL AS more, '2024-02-29' AS day,
             'Card' AS payment_kind, 4711 AS payment_card_number, 2 AS EXTRA, 0.5 AS MAYBE",
        ("x",),
    );
    let expected = Everything {
        whole_number: -5,
        maybe: Some(0.5),
        r#type: Colour::DarkRed,
        code: Code("x".into()),
        price: Decimal::new(1250, 2),
        discount: None,
        large: 7,
        tags: vec!["a".into()],
        more: None,
        day: NaiveDate::from_ymd_opt(2024, 2, 29),
        home: Address {
            street: Some("Main".into()),
            city: "Bern".into(),
        },
        work: None,
        payment: Payment::Card { number: 4711 },
        note: String::new(),
    };
    assert_eq!(everywhere(&db, &query).await, Ok(vec![expected]));
}

#[tokio::test]
async fn every_end_of_a_raw_query_reads_structs() {
    let db = things().await;
    let pairs = || {
        raw::<Pair>(
            "SELECT other_name AS second, name, id AS first FROM thing WHERE id <= {} ORDER BY id",
            (3,),
        )
    };
    let things: Vec<Thing> = Thing::query()
        .order_by(Thing::ID.asc())
        .all(&db)
        .await
        .unwrap();
    let expected: Vec<_> = (things.iter().take(3))
        .map(|thing| Pair {
            first: thing.id,
            second: thing.other_name.clone(),
        })
        .collect();
    assert_eq!(everywhere(&db, &pairs()).await.as_ref(), Ok(&expected));
    assert_eq!(pairs().first(&db).await.unwrap().as_ref(), expected.first());
    let streamed: Vec<_> = pairs().stream(&db).try_collect().await.unwrap();
    assert_eq!(streamed, expected);
    let many = pairs().one(&db).await.unwrap_err();
    assert_eq!(many.kind(), ErrorKind::MoreThanOne);
    let one = raw::<Pair>("SELECT 1 AS first, NULL AS second", ());
    assert_eq!(one.clone().one(&db).await.unwrap().first, 1);
    assert_eq!(one.optional(&db).await.unwrap().unwrap().second, None);
    // The same text as another type, and in another order of the columns.
    let text = "SELECT 'a' AS second, 1 AS first";
    let by_position: (String, i64) = raw(text, ()).one(&db).await.unwrap();
    let by_name: Pair = raw(text, ()).one(&db).await.unwrap();
    assert_eq!(by_position, ("a".to_owned(), 1));
    assert_eq!((by_name.second.as_deref(), by_name.first), (Some("a"), 1));
}

#[tokio::test]
async fn a_column_that_is_missing_or_there_twice_is_named() {
    let db = things().await;
    let told = async |sql: &'static str| {
        let query = raw::<Pair>(sql, ());
        assert_eq!(
            everywhere(&db, &query).await,
            Err(ErrorKind::Decode),
            "{sql}"
        );
        let streamed = query.clone().stream(&db).try_next().await.unwrap_err();
        let error = query.all(&db).await.unwrap_err();
        assert_eq!(streamed.to_string(), error.to_string());
        error.to_string()
    };
    assert_eq!(
        told("SELECT 1 AS first, 2 AS secnd").await,
        "the statement gives no column `second`, only `first`, `secnd`: name it so with AS"
    );
    assert_eq!(
        told("SELECT 1 AS first, 'a' AS second, 2 AS FIRST").await,
        "the statement gives several columns `first`: name those apart with AS"
    );
    assert_eq!(
        told("SELECT 'a' AS second, 'b' AS first").await,
        "column `first` of the result: expected an integer, found text"
    );
    // What only a transaction or a session sees is read there by name too.
    let sum = db.write(async |tx| {
        let pair = raw::<Pair>("SELECT count(*) AS first, NULL AS second FROM thing", ());
        pair.one(&mut *tx).await
    });
    assert_eq!(sum.await.unwrap().first, 12);
}
