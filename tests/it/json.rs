//! Queries into JSON columns find what the same questions find in Rust.

use std::cmp::Ordering;

use anabranch::{
    database::Database,
    entity::Entity,
    error::ErrorKind,
    query::{Condition, Expr, OrderBy},
    value::Value as Stored,
};
use anabranch_tests::{ask, execute, random::Random};
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Article {
    #[entity(id)]
    id: i64,
    extra: Option<Value>,
    // A column named as those of json_each.
    #[entity(json)]
    value: Vec<String>,
    #[entity(json)]
    key: Option<Vec<i64>>,
    #[entity(json)]
    weights: Vec<f64>,
    #[entity(json)]
    flags: Vec<bool>,
}

fn article(extra: Option<Value>) -> Article {
    Article {
        id: 0,
        extra,
        value: Vec::new(),
        key: None,
        weights: Vec::new(),
        flags: Vec::new(),
    }
}

async fn database(articles: impl IntoIterator<Item = Article>) -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Article>().await.unwrap();
    let mut ctx = db.context();
    for article in articles {
        ctx.add(article);
    }
    ctx.save_changes().await.unwrap();
    db
}

async fn ids(db: &Database, condition: Condition<Article>) -> Vec<i64> {
    let query = Article::query().filter(condition);
    let found = query.order_by(Article::ID.asc()).all(db).await.unwrap();
    found.into_iter().map(|article| article.id).collect()
}

async fn sorted(db: &Database, order: OrderBy<Article>) -> Vec<i64> {
    let query = Article::query().order_by([order, Article::ID.asc()]);
    let found = query.all(db).await.unwrap();
    found.into_iter().map(|article| article.id).collect()
}

fn text(path: &str) -> Expr<Article, Option<String>> {
    Article::EXTRA.path(path)
}

fn number(path: &str) -> Expr<Article, Option<i64>> {
    Article::EXTRA.path(path)
}

fn real(path: &str) -> Expr<Article, Option<f64>> {
    Article::EXTRA.path(path)
}

fn flag(path: &str) -> Expr<Article, Option<bool>> {
    Article::EXTRA.path(path)
}

/// One of each that may stand at `$.a`; 1 is NULL, 2 and 3 are as good as.
async fn each_kind() -> Database {
    let found = [
        json!({}),
        json!({"a": null}),
        json!({"a": 5}),
        json!({"a": "5"}),
        json!({"a": 5.0}),
        json!({"a": true}),
        json!({"a": [1, "x"]}),
        json!({"a": "tea"}),
        json!({"a": -7.25}),
    ];
    let found = found.into_iter().map(|extra| article(Some(extra)));
    database([article(None)].into_iter().chain(found)).await
}

#[tokio::test]
async fn a_value_at_a_path_equals_values_of_its_own_kind() {
    let db = each_kind().await;
    assert_eq!(ids(&db, number("$.a").eq(5)).await, [4, 6]);
    assert_eq!(ids(&db, real("$.a").eq(5.0)).await, [4, 6]);
    assert_eq!(ids(&db, text("$.a").eq("5")).await, [5]);
    assert_eq!(ids(&db, flag("$.a").eq(true)).await, [7]);
    assert_eq!(
        ids(&db, flag("$.a").ne(true)).await,
        [1, 2, 3, 4, 5, 6, 8, 9, 10]
    );
    assert_eq!(ids(&db, number("$.a").is_in([5, 1])).await, [4, 6, 7]);
    assert_eq!(ids(&db, number("$.a").is_in(4..40)).await, [4, 6]);
    assert_eq!(ids(&db, number("$.a").is_null()).await, [1, 2, 3]);
    assert_eq!(ids(&db, text("$.a").eq(r#"[1,"x"]"#)).await, [8]);
    assert_eq!(ids(&db, text("$.a[1]").eq("x")).await, [8]);
    assert_eq!(ids(&db, number("$.a[#-2]").eq(1)).await, [8]);
}

#[tokio::test]
async fn numbers_are_not_ordered_among_texts_nor_matched_by_patterns() {
    let db = each_kind().await;
    assert_eq!(ids(&db, number("$.a").gt(1)).await, [4, 6]);
    assert_eq!(ids(&db, number("$.a").ge(1)).await, [4, 6, 7]);
    assert_eq!(ids(&db, real("$.a").lt(1.5)).await, [7, 10]);
    assert_eq!(ids(&db, text("$.a").le("tea")).await, [5, 8, 9]);
    assert_eq!(ids(&db, text("$.a").gt("5")).await, [8, 9]);
    assert_eq!(ids(&db, text("$.a").like("%5%")).await, [5]);
    assert_eq!(ids(&db, text("$.a").contains("E")).await, [9]);
    assert_eq!(
        ids(&db, text("$.a").not_like("%5%")).await,
        [1, 2, 3, 4, 6, 7, 8, 9, 10]
    );
    assert_eq!(
        sorted(&db, text("$.a").asc()).await,
        [1, 2, 3, 10, 7, 4, 6, 5, 8, 9]
    );
    assert_eq!(
        sorted(&db, number("$.a").desc()).await,
        [9, 8, 5, 4, 6, 7, 10, 1, 2, 3]
    );
}

#[tokio::test]
async fn any_key_can_be_written_as_a_path() {
    let keys = json!({
        "a b": 1, "it's": 2, "q\"x": 3, "back\\slash": 4, "ähre": 5, "": 6, "a.b": 7, "[0]": 8, "%": 9, "😀": 10,
    });
    let db = database([article(Some(keys))]).await;
    for (path, value) in [
        ("$.a b", 1),
        (r#"$."a b""#, 1),
        ("$.it's", 2),
        (r#"$."q\"x""#, 3),
        (r#"$.q"x"#, 3),
        (r#"$."back\\slash""#, 4),
        ("$.ähre", 5),
        (r#"$."ähre""#, 5),
        (r#"$."""#, 6),
        (r#"$."a.b""#, 7),
        (r#"$."[0]""#, 8),
        ("$.%", 9),
        ("$.😀", 10),
    ] {
        assert_eq!(ids(&db, number(path).eq(value)).await, [1], "{path}");
    }
}

#[tokio::test]
async fn integers_are_exact_up_to_64_bits() {
    let numbers = [i64::MIN, i64::MAX, (1 << 53) + 1].map(|number| article(Some(json!([number]))));
    let db = database(
        numbers
            .into_iter()
            .chain([article(Some(json!([1_u64 << 63])))]),
    )
    .await;
    assert_eq!(ids(&db, number("$[0]").eq(i64::MIN)).await, [1]);
    assert_eq!(ids(&db, number("$[0]").eq(i64::MAX)).await, [2]);
    assert_eq!(ids(&db, number("$[0]").eq((1 << 53) + 1)).await, [3]);
    assert_eq!(ids(&db, number("$[0]").eq(1 << 53)).await, [0; 0]);
    assert_eq!(ids(&db, number("$[0]").gt(i64::MAX)).await, [4]);
}

#[tokio::test]
async fn ordinary_reals_are_exact() {
    let mut random = Random::new(11);
    let reals: Vec<f64> = (0..2_000)
        .map(|_| {
            let digits = u32::try_from(random.below(1 << 32)).unwrap();
            f64::from(digits) / f64::from(u32::try_from(1 + random.below(100_000)).unwrap())
        })
        .collect();
    let db = database(reals.iter().map(|real| article(Some(json!({ "a": real }))))).await;
    for (index, value) in reals.iter().enumerate().step_by(40) {
        let found = ids(&db, real("$.a").eq(*value)).await;
        assert!(
            found.contains(&i64::try_from(index + 1).unwrap()),
            "{value}"
        );
    }
    assert_eq!(ids(&db, real("$.a").is_in(&reals)).await.len(), reals.len());
}

#[tokio::test]
async fn an_index_on_the_expression_serves_a_path() {
    let db = each_kind().await;
    execute(
        &db,
        "CREATE INDEX article_a ON article (json_extract(extra, '$.\"it''s\"'))",
    )
    .await;
    let path = || text(r#"$."it's""#);
    for (query, used) in [
        (
            Article::query().filter(path().eq("x")),
            "SEARCH article USING INDEX article_a (<expr>=?)",
        ),
        (
            Article::query().filter(path().is_in(["x", "y"])),
            "SEARCH article USING INDEX article_a (<expr>=?)",
        ),
        (
            Article::query().filter(path().lt("x")),
            "SEARCH article USING INDEX article_a (<expr>>? AND <expr><?)",
        ),
        (
            Article::query().filter(Article::EXTRA.path::<i64>(r#"$."it's""#).gt(1)),
            "SEARCH article USING INDEX article_a (<expr>>? AND <expr><?)",
        ),
        (
            Article::query().filter(path().is_null()),
            "SEARCH article USING INDEX article_a (<expr>=?)",
        ),
        (
            Article::query().order_by(path().asc()),
            "SCAN article USING INDEX article_a",
        ),
    ] {
        let statement = query.sql().unwrap();
        let plan = plan(&db, &statement.text, statement.args).await;
        assert_eq!(plan, used, "{}", statement.text);
    }
}

/// The first step of a statement's plan.
async fn plan(db: &Database, text: &str, args: Vec<Stored>) -> String {
    use anabranch::sql::Executor;
    // `ask` reads the first value of a row; the step's text is the fourth.
    let mut read = anabranch_tests::ask_with(&format!("EXPLAIN QUERY PLAN {text}"), args);
    read.decode = |row| {
        row.value(3)
            .to_value()
            .map_err(|_| unreachable!("a plan is UTF-8"))
    };
    match Executor::read(db, read).await.unwrap().swap_remove(0) {
        Stored::Text(step) => step,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn text_that_is_not_json_is_a_typed_error() {
    let db = each_kind().await;
    execute(&db, "UPDATE article SET extra = 'nonsense' WHERE id = 4").await;
    let query = || Article::query().filter(number("$.a").eq(1));
    for error in [
        query().all(&db).await.unwrap_err(),
        query().count(&db).await.unwrap_err(),
        query().exists(&db).await.unwrap_err(),
        Article::query()
            .order_by(number("$.a").asc())
            .all(&db)
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Decode);
        let message = error.to_string();
        assert!(message.contains("not JSON"), "{message}");
        assert!(
            message.contains(r#"FROM "article""#) && message.contains(r#"json_extract("extra""#),
            "{message}"
        );
        assert!(!message.contains("nonsense"), "{message}");
    }
    execute(&db, "UPDATE article SET value = '{' WHERE id = 4").await;
    let error = Article::query()
        .filter(Article::VALUE.has("a"))
        .count(&db)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    let advice = ask("SELECT id FROM article WHERE NOT json_valid(extra)");
    assert_eq!(
        anabranch::sql::Executor::read(&db, advice).await.unwrap(),
        [Stored::Integer(4)]
    );
}

#[tokio::test]
async fn what_other_programs_store_in_a_list_column_is_asked_too() {
    let db = database([article(None), article(None), article(None)]).await;
    execute(
        &db,
        "UPDATE article SET value = '[\"a\", null, 1, [\"b\"]]' WHERE id = 1",
    )
    .await;
    execute(&db, "UPDATE article SET value = 'null' WHERE id = 2").await;
    let count = async |condition| Article::query().filter(condition).count(&db).await.unwrap();
    assert_eq!(count(Article::VALUE.has("a")).await, 1);
    assert_eq!(count(!Article::VALUE.has("a")).await, 2);
    assert_eq!(count(Article::VALUE.has("1")).await, 0);
    assert_eq!(count(Article::VALUE.has("b")).await, 0);
    assert_eq!(count(Article::VALUE.length().eq(4)).await, 1);
    assert_eq!(count(Article::VALUE.length().eq(0)).await, 2);
}

#[tokio::test]
async fn a_value_that_json_cannot_hold_is_refused_with_its_column() {
    let db = database([]).await;
    for (condition, column) in [
        (Article::WEIGHTS.has(f64::NAN), "weights"),
        (Article::WEIGHTS.has_all([1.0, f64::NAN]), "weights"),
        (Article::VALUE.has_any(["a\0"]), "value"),
        (text("$.a").contains("\0"), "extra"),
        (real("$.a").gt(f64::NAN), "extra"),
        (real("$.a[x]").gt(1.0), "extra"),
    ] {
        let error = Article::query()
            .filter(condition)
            .all(&db)
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.column()),
            (ErrorKind::Value, Some(column))
        );
    }
}

/// A scalar as SQLite sees it: NULL, a number, a text.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Null,
    Number(f64),
    Text(String),
}

fn see(value: Option<&Value>) -> Seen {
    match value {
        None | Some(Value::Null) => Seen::Null,
        Some(Value::Bool(value)) => Seen::Number(f64::from(u8::from(*value))),
        Some(Value::Number(value)) => Seen::Number(value.as_f64().unwrap()),
        Some(Value::String(text)) => Seen::Text(text.clone()),
        Some(nested) => Seen::Text(nested.to_string()),
    }
}

fn compare(first: &Seen, second: &Seen) -> Ordering {
    let rank = |seen: &Seen| match seen {
        Seen::Null => 0,
        Seen::Number(_) => 1,
        Seen::Text(_) => 2,
    };
    match (first, second) {
        (Seen::Number(first), Seen::Number(second)) => first.partial_cmp(second).unwrap(),
        (Seen::Text(first), Seen::Text(second)) => first.cmp(second),
        _ => rank(first).cmp(&rank(second)),
    }
}

const TEXTS: [&str; 8] = ["", "5", "true", "null", "é", "É", "it's \"x\"", "[1,2]"];

fn scalar(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::Null,
        1 => json!(random.once_in(2)),
        2 => json!(i64::try_from(random.below(7)).unwrap() - 2),
        3 => json!(f64::from(u32::try_from(random.below(12)).unwrap()) / 4.0),
        _ => json!(TEXTS[usize::try_from(random.below(8)).unwrap()]),
    }
}

fn document(random: &mut Random, depth: u32) -> Value {
    match random.below(if depth == 0 { 1 } else { 4 }) {
        0 => scalar(random),
        1 => (0..random.below(4))
            .map(|_| document(random, depth - 1))
            .collect(),
        _ => {
            let mut object = serde_json::Map::new();
            for key in ["a", "b c", "ü", "q\"x"] {
                if !random.once_in(3) {
                    object.insert(key.to_owned(), document(random, depth - 1));
                }
            }
            object.into()
        }
    }
}

fn random_article(random: &mut Random) -> Article {
    let some = |random: &mut Random| !random.once_in(6);
    let integers = |random: &mut Random| -> Vec<i64> {
        (0..random.below(5))
            .map(|_| i64::try_from(random.below(6)).unwrap())
            .collect()
    };
    Article {
        id: 0,
        extra: some(random).then(|| document(random, 3)),
        value: integers(random)
            .into_iter()
            .map(|at| TEXTS[usize::try_from(at).unwrap()].to_owned())
            .collect(),
        key: some(random).then(|| integers(random)),
        weights: integers(random)
            .into_iter()
            .map(|at| f64::from(i32::try_from(at).unwrap()) / 3.0)
            .collect(),
        flags: integers(random).into_iter().map(|at| at > 2).collect(),
    }
}

/// Two spellings of one way: SQLite's path, and serde's pointer.
const PATHS: [(&str, &str); 9] = [
    ("$", ""),
    ("$.a", "/a"),
    ("$.b c", "/b c"),
    ("$.\"b c\".\"ü\"", "/b c/ü"),
    ("$.ü[1]", "/ü/1"),
    ("$.\"q\\\"x\"", "/q\"x"),
    ("$.a.a", "/a/a"),
    ("$[0]", "/0"),
    ("$[0].a[0]", "/0/a/0"),
];

type Asked = (Condition<Article>, Box<dyn Fn(&Article) -> bool>);

fn at_path(random: &mut Random) -> Asked {
    let (path, pointer) = PATHS[usize::try_from(random.below(9)).unwrap()];
    let seen = move |article: &Article| {
        see(article
            .extra
            .as_ref()
            .and_then(|extra| extra.pointer(pointer)))
    };
    let operand = scalar(random);
    let wanted = see(Some(&operand));
    let is = |ordering: fn(Ordering) -> bool, wanted: Seen| -> Box<dyn Fn(&Article) -> bool> {
        Box::new(move |article| {
            let seen = seen(article);
            let alike = std::mem::discriminant(&seen) == std::mem::discriminant(&wanted);
            alike && ordering(compare(&seen, &wanted))
        })
    };
    macro_rules! asked {
        ($column:expr, $value:expr) => {
            match random.below(7) {
                0 => ($column.eq($value), is(Ordering::is_eq, wanted)),
                1 => ($column.ne($value), {
                    let equal = is(Ordering::is_eq, wanted);
                    Box::new(move |article: &Article| !equal(article))
                }),
                2 => ($column.lt($value), is(Ordering::is_lt, wanted)),
                3 => ($column.le($value), is(Ordering::is_le, wanted)),
                4 => ($column.gt($value), is(Ordering::is_gt, wanted)),
                5 => ($column.ge($value), is(Ordering::is_ge, wanted)),
                _ => ($column.is_in([$value]), is(Ordering::is_eq, wanted)),
            }
        };
    }
    match operand {
        Value::Null => (
            text(path).is_null(),
            Box::new(move |article| seen(article) == Seen::Null),
        ),
        Value::Bool(value) => asked!(flag(path), value),
        Value::Number(value) if value.is_i64() => asked!(number(path), value.as_i64().unwrap()),
        Value::Number(value) => asked!(real(path), value.as_f64().unwrap()),
        Value::String(value) if random.once_in(3) => (
            text(path).starts_with(&value),
            Box::new(move |article| match seen(article) {
                Seen::Text(text) => text
                    .to_ascii_lowercase()
                    .starts_with(&value.to_ascii_lowercase()),
                _ => false,
            }),
        ),
        Value::String(value) => asked!(text(path), &value),
        Value::Array(_) | Value::Object(_) => unreachable!("it is a scalar"),
    }
}

fn of_lists(random: &mut Random) -> Asked {
    let wanted = random_article(random);
    let all = random.once_in(2);
    macro_rules! asked {
        ($column:expr, $values:expr, $list:expr) => {{
            let values = $values;
            let condition = if all {
                $column.has_all(&values)
            } else {
                $column.has_any(&values)
            };
            (
                condition,
                Box::new(move |article: &Article| {
                    let list = $list(article);
                    if all {
                        values.iter().all(|value| list.contains(value))
                    } else {
                        values.iter().any(|value| list.contains(value))
                    }
                }),
            )
        }};
    }
    match random.below(5) {
        0 => asked!(Article::VALUE, wanted.value, |article: &Article| article
            .value
            .clone()),
        1 => asked!(
            Article::KEY,
            wanted.key.unwrap_or_default(),
            |article: &Article| { article.key.clone().unwrap_or_default() }
        ),
        2 => asked!(Article::WEIGHTS, wanted.weights, |article: &Article| {
            article.weights.clone()
        }),
        3 => asked!(Article::FLAGS, wanted.flags, |article: &Article| article
            .flags
            .clone()),
        _ => {
            let length = usize::try_from(random.below(5)).unwrap();
            (
                Article::KEY.length().gt(i64::try_from(length).unwrap()),
                Box::new(move |article| article.key.as_ref().is_some_and(|key| key.len() > length)),
            )
        }
    }
}

#[tokio::test]
async fn random_questions_to_random_documents_find_what_rust_finds() {
    let mut random = Random::seeded("json");
    let db = database((0..300).map(|_| random_article(&mut random))).await;
    let stored = Article::query()
        .order_by(Article::ID.asc())
        .all(&db)
        .await
        .unwrap();
    for round in 0..400 {
        let (condition, is_so) = if random.once_in(3) {
            of_lists(&mut random)
        } else {
            at_path(&mut random)
        };
        let (yes, no): (Vec<_>, Vec<_>) = stored.iter().partition(|article| is_so(article));
        let keys = |articles: Vec<&Article>| {
            articles
                .into_iter()
                .map(|article| article.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            ids(&db, condition.clone()).await,
            keys(yes),
            "{round}: {condition:?}"
        );
        assert_eq!(
            ids(&db, !condition.clone()).await,
            keys(no),
            "{round}: not {condition:?}"
        );
    }
    for (path, pointer) in PATHS {
        let mut expected = stored.clone();
        let seen = |article: &Article| {
            see(article
                .extra
                .as_ref()
                .and_then(|extra| extra.pointer(pointer)))
        };
        expected.sort_by(|first, second| compare(&seen(first), &seen(second)));
        let expected: Vec<_> = expected.into_iter().map(|article| article.id).collect();
        assert_eq!(sorted(&db, text(path).asc()).await, expected, "{path}");
    }
}
