//! Queries as text, and what they find in a database.

mod json;
mod trees;

use std::{collections::BTreeSet, sync::Arc};

use expect_test::{Expect, expect};
use futures_util::StreamExt as _;
use uuid::Uuid;

use crate::{
    error::ErrorKind,
    query::{
        Condition, Query, find,
        fixture::{Item, Photo, memory},
    },
    sql::{Cost, fixture::Memory},
    value::Value,
};

pub(in crate::query) fn check(condition: Condition<Item>, expected: &Expect) {
    let statement = Query::new().filter(condition).sql().unwrap();
    let (_, condition) = statement.text.split_once(" WHERE ").unwrap();
    expected.assert_eq(&format!("{condition} {:?}", statement.args));
}

pub(in crate::query) async fn ids(memory: &Memory, condition: Condition<Item>) -> Vec<i64> {
    let items = Query::new()
        .filter(condition)
        .order_by(Item::ID.asc())
        .all(memory)
        .await
        .unwrap();
    items.into_iter().map(|item| item.id).collect()
}

/// Ratings 1, 2, 3 and NULL; notes on the first two.
fn rated() -> Vec<Item> {
    let mut items: Vec<_> = (1..=4).map(|id| Item::new(id, "tea")).collect();
    for (item, rating) in items.iter_mut().zip([Some(1), Some(2), Some(3), None]) {
        item.rating = rating;
    }
    items[0].note = Some("hot".into());
    items[1].note = Some("cold".into());
    items
}

fn named(names: &[&str]) -> Vec<Item> {
    (1..)
        .zip(names)
        .map(|(id, name)| Item::new(id, name))
        .collect()
}

#[test]
fn a_whole_query_has_its_parameters_in_order() {
    let query = Query::new()
        .filter(Item::NAME.eq("tea").and(Item::RATING.ge(3)))
        .filter(Item::NOTE.is_null().or(Item::NOTE.contains("50%")))
        .order_by([Item::RATING.desc(), Item::NAME.asc()])
        .order_by(Item::ID.asc())
        .limit(20)
        .offset(40);
    let statement = query.sql().unwrap();
    expect![[r#"SELECT "id", "name", "no""te", "rating", "weight", "tag" FROM "order" WHERE ("name" = ?1 AND "rating" >= ?2) AND ("no""te" IS NULL OR "no""te" LIKE ?3 ESCAPE '\') ORDER BY "rating" DESC, "name" ASC, "id" ASC LIMIT 20 OFFSET ?4"#]]
    .assert_eq(&statement.to_string());
    expect![[r#"[Text("tea"), Integer(3), Text("%50\\%%"), Integer(40)]"#]]
        .assert_eq(&format!("{:?}", statement.args));
    assert_eq!(format!("{query:?}"), format!("Query({statement})"));
}

#[test]
fn comparisons() {
    check(Item::ID.eq(1), &expect![[r#""id" = ?1 [Integer(1)]"#]]);
    let note = Some("a".to_owned());
    check(Item::ID.ne(1), &expect![[r#""id" <> ?1 [Integer(1)]"#]]);
    check(
        Item::RATING.eq(1),
        &expect![[r#""rating" = ?1 [Integer(1)]"#]],
    );
    check(
        Item::RATING.eq(Some(1)),
        &expect![[r#""rating" = ?1 [Integer(1)]"#]],
    );
    check(Item::RATING.eq(None), &expect![[r#""rating" IS NULL []"#]]);
    check(
        Item::RATING.ne(1),
        &expect![[r#""rating" IS DISTINCT FROM ?1 [Integer(1)]"#]],
    );
    check(
        Item::RATING.ne(None),
        &expect![[r#""rating" IS NOT NULL []"#]],
    );
    check(Item::RATING.lt(None), &expect!["FALSE []"]);
    check(
        Item::WEIGHT.between(0.5, 2.0),
        &expect![[r#""weight" BETWEEN ?1 AND ?2 [Real(0.5), Real(2.0)]"#]],
    );
    check(Item::WEIGHT.between(None, 2.0), &expect!["FALSE []"]);
    check(
        Item::NOTE.gt("a").and(Item::NOTE.le("b".to_owned())),
        &expect![[r#"("no""te" > ?1 AND "no""te" <= ?2) [Text("a"), Text("b")]"#]],
    );
    check(
        Item::NOTE.eq(&note),
        &expect![[r#""no""te" = ?1 [Text("a")]"#]],
    );
    check(Item::NOTE.eq(None), &expect![[r#""no""te" IS NULL []"#]]);
    check(
        !Item::RATING.lt(2),
        &expect![[r#"("rating" < ?1) IS NOT TRUE [Integer(2)]"#]],
    );
    check(
        !!Item::RATING.lt(2),
        &expect![[r#""rating" < ?1 [Integer(2)]"#]],
    );
    check(
        Item::RATING.is_null().not(),
        &expect![[r#""rating" IS NOT NULL []"#]],
    );
}

#[test]
fn short_lists_are_parameters_and_longer_ones_are_one() {
    check(
        Item::ID.is_in([1, 2]),
        &expect![[r#""id" IN (?1, ?2) [Integer(1), Integer(2)]"#]],
    );
    check(Item::ID.is_in(Vec::<i64>::new()), &expect!["FALSE []"]);
    check(Item::ID.not_in(Vec::<i64>::new()), &expect!["TRUE []"]);
    check(
        Item::ID.not_in([1]),
        &expect![[r#""id" NOT IN (?1) [Integer(1)]"#]],
    );
    check(
        Item::RATING.not_in([1]),
        &expect![[r#"("rating" IN (?1)) IS NOT TRUE [Integer(1)]"#]],
    );
    check(
        Item::RATING.is_in([Some(1), None]),
        &expect![[r#"("rating" IN (?1) OR "rating" IS NULL) [Integer(1)]"#]],
    );
    check(
        Item::RATING.not_in([Some(1), None]),
        &expect![[r#"("rating" IN (?1) OR "rating" IS NULL) IS NOT TRUE [Integer(1)]"#]],
    );
    check(
        Item::RATING.not_in([None::<i64>]),
        &expect![[r#""rating" IS NOT NULL []"#]],
    );
    check(
        Item::ID.is_in(1..=9),
        &expect![[r#""id" IN (SELECT value FROM json_each(?1)) [Text("[1,2,3,4,5,6,7,8,9]")]"#]],
    );
    check(
        Item::NAME.not_in(["\"", "b", "c", "d", "e", "f", "g", "h", "\\"]),
        &expect![[
            r#""name" NOT IN (SELECT value FROM json_each(?1)) [Text("[\"\\\"\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"\\\\\"]")]"#
        ]],
    );
    check(
        Item::TAG.is_in((0..9).map(Uuid::from_u128)),
        &expect![[
            r#""tag" IN (SELECT unhex(value) FROM json_each(?1)) [Text("[\"00000000000000000000000000000000\",\"00000000000000000000000000000001\",\"00000000000000000000000000000002\",\"00000000000000000000000000000003\",\"00000000000000000000000000000004\",\"00000000000000000000000000000005\",\"00000000000000000000000000000006\",\"00000000000000000000000000000007\",\"00000000000000000000000000000008\"]")]"#
        ]],
    );
    check(
        Item::WEIGHT.is_in([0.0, 1.0, 0.5, -3.0, 1e300, 5e-324, 0.1, 2.0, f64::INFINITY]),
        &expect![[
            r#""weight" IN (WITH RECURSIVE scale (exponent, power) AS (SELECT -1074, ?1 UNION ALL SELECT exponent + 1, power * 2.0 FROM scale WHERE exponent < 1024) SELECT (value ->> 0) * power FROM json_each(?2) JOIN scale ON exponent = value ->> 1) [Real(5e-324), Text("[[0,-1074],[4503599627370496,-52],[4503599627370496,-53],[-6755399441055744,-51],[6724873095247260,944],[1,-1074],[7205759403792794,-56],[4503599627370496,-51],[1,1024]]")]"#
        ]],
    );
}

#[test]
fn text_searches() {
    check(
        Item::NAME.contains("a_b"),
        &expect![[r#""name" LIKE ?1 ESCAPE '\' [Text("%a\\_b%")]"#]],
    );
    check(
        Item::NAME.starts_with(String::from("é")),
        &expect![[r#""name" LIKE ?1 ESCAPE '\' [Text("é%")]"#]],
    );
    check(
        Item::NOTE.ends_with(r"\"),
        &expect![[r#""no""te" LIKE ?1 ESCAPE '\' [Text("%\\\\")]"#]],
    );
    check(
        Item::NAME.like("a%"),
        &expect![[r#""name" LIKE ?1 [Text("a%")]"#]],
    );
    check(
        Item::NAME.not_like("a%"),
        &expect![[r#""name" NOT LIKE ?1 [Text("a%")]"#]],
    );
    check(
        Item::NOTE.not_like("a%"),
        &expect![[r#"("no""te" LIKE ?1) IS NOT TRUE [Text("a%")]"#]],
    );
}

#[tokio::test]
async fn a_condition_and_its_opposite_select_every_row_once() {
    let memory = memory(&rated());
    let conditions = [
        Item::RATING.eq(2),
        Item::RATING.eq(None),
        Item::RATING.ne(2),
        Item::RATING.lt(2),
        Item::RATING.ge(2),
        Item::RATING.lt(None),
        Item::RATING.between(1, 2),
        Item::RATING.between(1, None),
        Item::RATING.is_in([2, 3]),
        Item::RATING.is_in([Some(2), None]),
        Item::RATING.is_in([None::<i64>]),
        Item::RATING.is_in(Vec::<i64>::new()),
        Item::RATING.is_in(2..30),
        Item::RATING.not_in(2..30),
        Item::RATING.not_in([Some(2), None]),
        Item::NOTE.contains("o"),
        Item::NOTE.not_like("h%"),
        Item::RATING.lt(2).and(Item::NOTE.eq("hot")),
        Item::RATING.lt(2).or(Item::NOTE.eq("cold")),
        !Item::RATING.lt(2).or(Item::NOTE.eq("cold")),
    ];
    for condition in conditions {
        let mut all = ids(&memory, condition.clone()).await;
        all.extend(ids(&memory, !condition.clone()).await);
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4], "{condition:?}");
    }
}

#[tokio::test]
async fn null_is_a_value_like_any_other_to_equality() {
    let memory = memory(&rated());
    assert_eq!(ids(&memory, Item::RATING.ne(2)).await, [1, 3, 4]);
    assert_eq!(ids(&memory, Item::RATING.ne(None)).await, [1, 2, 3]);
    assert_eq!(ids(&memory, Item::RATING.eq(None)).await, [4]);
    // Reported: NOT IN with a NULL in the list gave no rows.
    assert_eq!(
        ids(&memory, Item::RATING.not_in([Some(2), None])).await,
        [1, 3]
    );
    assert_eq!(ids(&memory, Item::RATING.not_in([2])).await, [1, 3, 4]);
    assert_eq!(
        ids(&memory, Item::RATING.is_in([Some(2), None])).await,
        [2, 4]
    );
    assert_eq!(ids(&memory, !Item::RATING.ge(2)).await, [1, 4]);
    assert_eq!(ids(&memory, Item::NOTE.not_like("h%")).await, [2, 3, 4]);
    // Reported: an empty list was a syntax error.
    assert_eq!(
        ids(&memory, Item::ID.is_in(Vec::<i64>::new())).await,
        [0_i64; 0]
    );
    assert_eq!(
        ids(&memory, Item::ID.not_in(Vec::<i64>::new())).await,
        [1, 2, 3, 4]
    );
}

#[tokio::test]
async fn wildcards_in_searched_text_stand_for_themselves() {
    let memory = memory(&named(&["100%", "100 ％", "a_b", "axb", r"a\b", "A\"b'"]));
    assert_eq!(ids(&memory, Item::NAME.contains("%")).await, [1]);
    // Reported: a search for the full-width per cent sign matched everything.
    assert_eq!(ids(&memory, Item::NAME.contains("％")).await, [2]);
    assert_eq!(ids(&memory, Item::NAME.starts_with("a_")).await, [3]);
    assert_eq!(ids(&memory, Item::NAME.contains(r"\")).await, [5]);
    assert_eq!(ids(&memory, Item::NAME.ends_with("\"b'")).await, [6]);
    assert_eq!(ids(&memory, Item::NAME.like("a_b")).await, [3, 4, 5]);
    assert_eq!(
        ids(&memory, Item::NAME.contains("")).await,
        [1, 2, 3, 4, 5, 6]
    );
}

#[tokio::test]
async fn searches_fold_the_case_of_ascii_letters_only() {
    let memory = memory(&named(&["Tea", "tea", "Ähre", "ähre"]));
    assert_eq!(ids(&memory, Item::NAME.starts_with("TE")).await, [1, 2]);
    assert_eq!(ids(&memory, Item::NAME.starts_with("Ä")).await, [3]);
    assert_eq!(ids(&memory, Item::NAME.eq("tea")).await, [2]);
}

#[tokio::test]
async fn long_lists_find_exactly_their_values() {
    let mut items: Vec<_> = (0..1_000)
        .map(|id| Item::new(id, &format!("n{id}")))
        .collect();
    for item in &mut items {
        item.weight = Some(f64::from(i32::try_from(item.id).unwrap()) / 7.0);
    }
    let memory = memory(&items);
    let even = || (0..200_000).step_by(2);
    let expected: Vec<i64> = (0..1_000).step_by(2).collect();
    let lists = [
        Item::ID.is_in(even()),
        Item::NAME.is_in(even().map(|id: i64| format!("n{id}"))),
        Item::TAG.is_in(even().map(|id| Uuid::from_u128(u128::try_from(id).unwrap()))),
        Item::WEIGHT.is_in(even().map(|id| f64::from(i32::try_from(id).unwrap()) / 7.0)),
    ];
    for list in lists {
        assert_eq!(ids(&memory, list.clone()).await, expected);
        assert_eq!(ids(&memory, !list).await.len(), 500);
    }
    assert_eq!(
        ids(&memory, Item::WEIGHT.not_in((0..2_000).map(f64::from)))
            .await
            .len(),
        857
    );
}

#[tokio::test]
async fn a_long_list_uses_the_index() {
    let memory = memory(&[]);
    let mut statement = Query::new().filter(Item::ID.is_in(0..100)).sql().unwrap();
    statement.text = format!("EXPLAIN QUERY PLAN {statement}").into();
    let plan = memory.run(&statement).unwrap();
    let Value::Text(step) = &plan[0][3] else {
        panic!("{plan:?}")
    };
    assert_eq!(step, "SEARCH order USING INTEGER PRIMARY KEY (rowid=?)");
}

#[tokio::test]
async fn any_text_survives_a_long_list() {
    let odd: Vec<String> = (1..=0x10_FFFF)
        .step_by(7)
        .filter_map(char::from_u32)
        .chain((1..0x3000).filter_map(char::from_u32))
        .map(|ch| format!("{ch}\"{ch}\\u0041"))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let texts: Vec<&str> = odd.iter().map(String::as_str).collect();
    let memory = memory(&named(&texts));
    assert_eq!(ids(&memory, Item::NAME.is_in(&odd)).await.len(), odd.len());
    assert!(ids(&memory, Item::NAME.not_in(&odd)).await.is_empty());
}

#[tokio::test]
async fn conditions_may_be_thousands() {
    let memory = memory(&named(&["a", "b", "c"]));
    let many = (2..5_000).map(|id| Item::ID.eq(id));
    let any = many.clone().reduce(Condition::or).unwrap();
    assert_eq!(ids(&memory, any).await, [2, 3]);
    let none = many
        .map(|condition| !condition)
        .reduce(Condition::and)
        .unwrap();
    assert_eq!(ids(&memory, none).await, [1]);
}

#[tokio::test]
async fn conditions_that_alternate_are_asked_up_to_a_depth_and_refused_beyond() {
    let memory = memory(&named(&["a", "b", "c"]));
    let alternating = |levels: i64| {
        (2..levels).fold(Item::ID.eq(1), |condition, id| {
            if id % 2 == 0 {
                condition.and(Item::ID.ne(id))
            } else {
                condition.or(Item::ID.eq(id + 1_000))
            }
        })
    };
    assert_eq!(ids(&memory, alternating(250)).await, [1]);
    let error = Query::<Item>::new()
        .filter(alternating(20_000))
        .count(&memory)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooBig);
}

#[tokio::test]
async fn a_window_without_a_limit_is_valid() {
    let memory = memory(&named(&["a", "b", "c", "d"]));
    let query = Query::<Item>::new().order_by(Item::ID.desc()).offset(3);
    assert_eq!(
        query.clone().all(&memory).await.unwrap(),
        [Item::new(1, "a")]
    );
    assert_eq!(query.clone().count(&memory).await.unwrap(), 1);
    assert!(query.clone().exists(&memory).await.unwrap());
    assert!(!query.clone().offset(4).exists(&memory).await.unwrap());
    assert_eq!(
        query
            .clone()
            .limit(u64::MAX)
            .offset(u64::MAX)
            .count(&memory)
            .await
            .unwrap(),
        0
    );
    assert_eq!(query.offset(0).limit(3).count(&memory).await.unwrap(), 3);
    let texts: Vec<_> = memory.reads().into_iter().map(|(text, _)| text).collect();
    expect![[r#"
        SELECT "id", "name", "no""te", "rating", "weight", "tag" FROM "order" ORDER BY "id" DESC LIMIT -1 OFFSET ?1
        SELECT count(*) FROM (SELECT 1 FROM "order" LIMIT -1 OFFSET ?1)
        SELECT EXISTS (SELECT 1 FROM "order" LIMIT -1 OFFSET ?1)
        SELECT EXISTS (SELECT 1 FROM "order" LIMIT -1 OFFSET ?1)
        SELECT count(*) FROM (SELECT 1 FROM "order" LIMIT 9223372036854775807 OFFSET ?1)
        SELECT count(*) FROM (SELECT 1 FROM "order" LIMIT 3)"#]].assert_eq(&texts.join("\n"));
}

#[tokio::test]
async fn one_wants_exactly_one() {
    let memory = memory(&rated());
    let rated = |rating| Query::new().filter(Item::RATING.eq(rating));
    assert_eq!(rated(1).one(&memory).await.unwrap().id, 1);
    assert_eq!(rated(1).optional(&memory).await.unwrap().unwrap().id, 1);
    assert_eq!(rated(9).optional(&memory).await.unwrap(), None);
    let none = rated(9).one(&memory).await.unwrap_err();
    assert_eq!(
        (none.kind(), none.table()),
        (ErrorKind::NotFound, Some("order"))
    );
    expect![[r#"order: no row fulfils the conditions in: SELECT "id", "name", "no""te", "rating", "weight", "tag" FROM "order" WHERE "rating" = ?1 LIMIT 2"#]].assert_eq(&none.to_string());
    let several = Query::<Item>::new();
    let more = several.clone().one(&memory).await.unwrap_err();
    assert_eq!(more.kind(), ErrorKind::MoreThanOne);
    expect![[r#"order: more than one row fulfils the conditions in: SELECT "id", "name", "no""te", "rating", "weight", "tag" FROM "order" LIMIT 2"#]].assert_eq(&more.to_string());
    let more = several.clone().optional(&memory).await.unwrap_err();
    assert_eq!(more.kind(), ErrorKind::MoreThanOne);
    assert_eq!(several.clone().limit(1).one(&memory).await.unwrap().id, 1);
    assert_eq!(
        several
            .clone()
            .order_by(Item::ID.desc())
            .first(&memory)
            .await
            .unwrap()
            .unwrap()
            .id,
        4
    );
    assert_eq!(several.limit(0).first(&memory).await.unwrap(), None);
}

#[tokio::test]
async fn rows_can_be_streamed() {
    let memory = memory(&rated());
    let items: Vec<_> = Query::<Item>::new()
        .order_by(Some(Item::ID.asc()))
        .stream(&memory)
        .map(Result::unwrap)
        .collect()
        .await;
    assert_eq!(items, rated());
    let invalid = Query::new()
        .filter(Item::WEIGHT.eq(f64::NAN))
        .stream(&memory);
    let errors: Vec<_> = invalid.map(|row| row.unwrap_err().kind()).collect().await;
    assert_eq!(errors, [ErrorKind::Value]);
}

#[tokio::test]
async fn queries_run_in_spawned_tasks() {
    let memory = Arc::new(memory(&rated()));
    let task = tokio::spawn(async move {
        let memory = &*memory;
        let query = Query::<Item>::new().order_by(Item::ID.asc());
        let all = query.clone().all(memory).await?;
        assert_eq!(query.clone().first(memory).await?.as_ref(), all.first());
        assert_eq!(find::<Item>(memory, 1).await?.as_ref(), all.first());
        assert_eq!(query.clone().limit(1).one(memory).await?, all[0]);
        assert!(query.clone().limit(0).optional(memory).await?.is_none());
        assert!(query.clone().exists(memory).await?);
        assert_eq!(query.clone().stream(memory).count().await, all.len());
        query.count(memory).await
    });
    assert_eq!(task.await.unwrap().unwrap(), 4);
}

#[tokio::test]
async fn entities_are_found_by_key() {
    let memory = memory(&rated());
    assert_eq!(find::<Item>(&memory, 3).await.unwrap().unwrap(), rated()[2]);
    assert_eq!(find::<Item>(&memory, 9).await.unwrap(), None);
    memory.insert(
        "INSERT INTO photo VALUES (?1, ?2)",
        vec![Value::Text("a".into()), Value::Blob(vec![1])],
    );
    let photo = find::<Photo>(&memory, "a".into()).await.unwrap().unwrap();
    assert_eq!(photo.image, [1]);
    let error = find::<Photo>(&memory, "a\0".into()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Value, Some("id"))
    );
    expect![[r#"
        [
            (
                "SELECT \"id\", \"name\", \"no\"\"te\", \"rating\", \"weight\", \"tag\" FROM \"order\" WHERE \"id\" = ?1",
                Small,
            ),
            (
                "SELECT \"id\", \"name\", \"no\"\"te\", \"rating\", \"weight\", \"tag\" FROM \"order\" WHERE \"id\" = ?1",
                Small,
            ),
            (
                "SELECT \"id\", \"image\" FROM \"photo\" WHERE \"id\" = ?1",
                Any,
            ),
        ]
    "#]].assert_debug_eq(&memory.reads());
}

#[tokio::test]
async fn values_that_no_column_could_hold_are_errors() {
    let memory = memory(&[]);
    let invalid = [
        Item::WEIGHT.lt(f64::NAN),
        Item::WEIGHT.is_in([1.0, f64::NAN]),
        Item::WEIGHT.between(1.0, f64::NAN),
        Item::ID.eq(1).and(Item::WEIGHT.eq(Some(f64::NAN))),
        !Item::WEIGHT.ne(f64::NAN).or(Item::ID.eq(1)),
    ];
    for condition in invalid {
        let query = Query::new().filter(condition).filter(Item::ID.eq(1));
        let error = query.sql().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value);
        assert_eq!(
            (error.table(), error.column()),
            (Some("order"), Some("weight"))
        );
        assert_eq!(
            query.count(&memory).await.unwrap_err().kind(),
            ErrorKind::Value
        );
    }
    for condition in [
        Item::NAME.eq("a\0"),
        Item::NAME.contains("\0"),
        Item::NAME.not_like("\0"),
    ] {
        let error = Query::new()
            .filter(condition)
            .all(&memory)
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.column()),
            (ErrorKind::Value, Some("name"))
        );
    }
}

#[test]
fn reads_of_few_small_rows_are_small() {
    let item = |query: Query<Item>| query.into_read().unwrap().cost;
    assert_eq!(item(Query::new()), Cost::Any);
    assert_eq!(item(Query::new().limit(100)), Cost::Small);
    assert_eq!(item(Query::new().limit(101)), Cost::Any);
    assert_eq!(item(Query::new().filter(Item::ID.eq(1))), Cost::Small);
    assert_eq!(
        item(Query::new().filter(Item::NAME.eq("a").and(Item::ID.eq(1)))),
        Cost::Small
    );
    assert_eq!(
        item(Query::new().filter(Item::NAME.eq("a").or(Item::ID.eq(1)))),
        Cost::Any
    );
    let photo = |query: Query<Photo>| query.into_read().unwrap().cost;
    assert_eq!(photo(Query::new().limit(1)), Cost::Any);
    assert_eq!(photo(Query::new().filter(Photo::ID.eq("a"))), Cost::Any);
    assert_eq!(
        photo(Query::new().filter(Photo::IMAGE.eq(b"a").or(Photo::IMAGE.eq(vec![1])))),
        Cost::Any
    );
}
