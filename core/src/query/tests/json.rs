//! What is asked of JSON, as text.

use expect_test::expect;

use crate::{
    entity::Column,
    error::ErrorKind,
    query::{
        Expr, Query,
        fixture::{Item, memory},
        tests::{check, ids},
    },
    value::Json,
};

/// Columns of the fixture, as if they held JSON.
const EXTRA: Column<Item, Option<serde_json::Value>> = Column::new(2);
const TAGS: Column<Item, Json<Vec<String>>> = Column::new(1);
const SIZES: Column<Item, Option<Json<Vec<i64>>>> = Column::new(2);
const WEIGHTS: Column<Item, Json<Vec<f64>>> = Column::new(1);

fn number(path: &str) -> Expr<Item, Option<i64>> {
    EXTRA.path(path)
}

fn text(path: &str) -> Expr<Item, Option<String>> {
    EXTRA.path(path)
}

#[test]
fn a_path_is_a_literal_and_values_are_arguments() {
    check(
        number("$.a").eq(1),
        &expect![[r#"json_extract("no""te", '$.a') = ?1 [Integer(1)]"#]],
    );
    check(
        text(r#"$."it's"[0]"#).ne("x"),
        &expect![[r#"json_extract("no""te", '$."it''s"[0]') IS DISTINCT FROM ?1 [Text("x")]"#]],
    );
    check(
        EXTRA.path::<bool>("$.a").eq(None),
        &expect![[r#"json_extract("no""te", '$.a') IS NULL []"#]],
    );
    check(
        number("$").is_not_null(),
        &expect![[r#"json_extract("no""te", '$') IS NOT NULL []"#]],
    );
    check(
        EXTRA.path::<f64>("$.a").between(0.5, 1.0),
        &expect![[r#"json_extract("no""te", '$.a') BETWEEN ?1 AND ?2 [Real(0.5), Real(1.0)]"#]],
    );
    check(
        number("$.a").not_in([Some(1), None]),
        &expect![[
            r#"(json_extract("no""te", '$.a') IN (?1) OR json_extract("no""te", '$.a') IS NULL) IS NOT TRUE [Integer(1)]"#
        ]],
    );
    let order = Query::new().order_by([number("$.a").desc(), text("$.b").asc()]);
    assert!(order.sql().unwrap().text.ends_with(
        r#" FROM "order" ORDER BY json_extract("no""te", '$.a') DESC, json_extract("no""te", '$.b') ASC"#
    ));
}

#[test]
fn a_comparison_is_kept_to_values_of_its_own_kind() {
    check(
        number("$.a").gt(1),
        &expect![[
            r#"(json_extract("no""te", '$.a') > ?1 AND json_extract("no""te", '$.a') < ?2) [Integer(1), Text("")]"#
        ]],
    );
    check(
        number("$.a").le(1),
        &expect![[r#"json_extract("no""te", '$.a') <= ?1 [Integer(1)]"#]],
    );
    check(
        text("$.a").lt("b"),
        &expect![[
            r#"(json_extract("no""te", '$.a') < ?1 AND json_extract("no""te", '$.a') >= ?2) [Text("b"), Text("")]"#
        ]],
    );
    check(
        text("$.a").ge("b"),
        &expect![[r#"json_extract("no""te", '$.a') >= ?1 [Text("b")]"#]],
    );
    check(
        text("$.a").starts_with("5%"),
        &expect![[
            r#"(json_extract("no""te", '$.a') LIKE ?1 ESCAPE '\' AND json_extract("no""te", '$.a') >= ?2) [Text("5\\%%"), Text("")]"#
        ]],
    );
    check(
        text("$.a").not_like("5"),
        &expect![[
            r#"(json_extract("no""te", '$.a') LIKE ?1 AND json_extract("no""te", '$.a') >= ?2) IS NOT TRUE [Text("5"), Text("")]"#
        ]],
    );
    check(number("$.a").lt(None), &expect![["FALSE []"]]);
}

#[test]
fn lists_are_asked_in_one_subquery() {
    check(
        TAGS.has("a"),
        &expect![[
            r#"EXISTS (SELECT 1 FROM json_each("order"."name") WHERE value IN (?1)) [Text("a")]"#
        ]],
    );
    check(
        SIZES.has_all([2, 1, 2]),
        &expect![[
            r#"(SELECT count(DISTINCT value) FROM json_each("order"."no""te") WHERE value IN (?1, ?2)) = ?3 [Integer(1), Integer(2), Integer(2)]"#
        ]],
    );
    check(
        WEIGHTS.has_all([0.0, -0.0]).not(),
        &expect![[
            r#"((SELECT count(DISTINCT value) FROM json_each("order"."name") WHERE value IN (?1)) = ?2) IS NOT TRUE [Real(0.0), Integer(1)]"#
        ]],
    );
    check(
        SIZES.has_any(1..=9),
        &expect![[
            r#"EXISTS (SELECT 1 FROM json_each("order"."no""te") WHERE value IN (SELECT value FROM json_each(?1))) [Text("[1,2,3,4,5,6,7,8,9]")]"#
        ]],
    );
    check(SIZES.has_any([0_i64; 0]), &expect![["FALSE []"]]);
    check(SIZES.has_all([0_i64; 0]), &expect![["TRUE []"]]);
    check(
        TAGS.length().ge(2).or(SIZES.length().is_null()),
        &expect![[
            r#"(json_array_length("name") >= ?1 OR json_array_length("no""te") IS NULL) [Integer(2)]"#
        ]],
    );
}

#[test]
fn a_bad_path_is_told_before_anything_is_asked() {
    for path in [
        "",
        "a",
        ".a",
        "$a",
        "$.",
        "$..a",
        "$.a.",
        "$.[0]",
        "$[]",
        "$[",
        "$[0",
        "$[-1]",
        "$[+1]",
        "$[ 0]",
        "$[x]",
        "$[#",
        "$[#-]",
        "$[#1]",
        "$[#-+1]",
        "$[4294967296]",
        "$[#-4294967296]",
        "$.\"a",
        "$.\"a\\\"",
        "$.\"a\"b",
        "$.a\0",
        "$\0",
        "$ ",
        " $",
    ] {
        let asked = Query::new().filter(!number(path).eq(1).or(Item::ID.eq(1)));
        let sorted = Query::new()
            .filter(Item::ID.eq(1))
            .order_by(text(path).asc());
        for query in [asked, sorted] {
            let error = query.sql().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Value, "{path}");
            assert_eq!(
                (error.table(), error.column()),
                (Some("order"), Some("no\"te"))
            );
        }
    }
    let error = Query::new()
        .filter(number("$.ä[0]b").is_null())
        .sql()
        .unwrap_err();
    expect![[r##"order.no"te: not a JSON path from its byte 7 on: steps are `.key`, `."any key"`, `[0]` and `[#-1]`"##]]
        .assert_eq(&error.to_string());
}

#[tokio::test]
async fn whatever_path_is_accepted_sqlite_takes_it() {
    let mut item = Item::new(1, "[]");
    let nested = r#"{"a":{"a":[[0],{"\"":1}],"":2,"\\":[3]},"\\\"":[[4]]}"#;
    item.note = Some(format!(r#"{{"a":[{nested},{nested}],"\"":{nested}}}"#));
    let memory = memory(&[item]);
    let pieces = [
        "$",
        ".",
        "\"",
        "a",
        "\\",
        "[",
        "]",
        "#",
        "-",
        "0",
        "1",
        ".a",
        "[0]",
        ".\"\\\"\"",
        "[#-1]",
        "'",
    ];
    let mut path = String::new();
    let (mut accepted, mut bits) = (0, 7_u64);
    for _ in 0..30_000 {
        path.clear();
        path.push('$');
        bits = bits
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        let mut left = bits >> 16;
        for _ in 0..left % 9 {
            left /= 9;
            path.push_str(pieces[usize::try_from(left).unwrap() % pieces.len()]);
            left /= 3;
        }
        let condition = text(&path).is_null();
        let query = Query::new().filter(condition.clone());
        if query.sql().is_ok() {
            accepted += 1;
            ids(&memory, condition).await;
        }
    }
    assert!(accepted > 3_000, "{accepted}");
}
