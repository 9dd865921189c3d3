//! Searching text that tells upper from lower case, beside what Rust finds.

use anabranch::{
    entity::Column,
    prelude::*,
    query::{Part, Query, Text, fragment},
    sql::Executor,
    value::Value,
};
use anabranch_tests::{ask_with, execute};

use crate::expressions::{
    places::everywhere,
    thing::{Thing, things},
};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(index(on = "json_extract(extra, '$.name')", name = "by_name_within"))]
struct Word {
    #[entity(id)]
    id: i64,
    #[entity(index)]
    text: String,
    #[entity(index)]
    maybe: Option<String>,
    #[entity(collate = "NOCASE", index)]
    label: String,
    #[entity(references = Word, index)]
    other_id: Option<i64>,
    extra: serde_json::Value,
}

/// Either side of the edges of UTF-8 and of the surrogates, what LIKE and GLOB take for patterns, and both cases.
const WORDS: [&str; 26] = [
    "",
    "a",
    "A",
    "ab",
    "aB",
    "AB",
    "b",
    "a%",
    "a_",
    "a*",
    "a[b]",
    "a\\",
    "ä",
    "Ä",
    "a\u{308}",
    "\u{7f}",
    "\u{80}",
    "\u{7ff}",
    "\u{800}",
    "\u{d7ff}",
    "\u{d7ff}z",
    "\u{e000}",
    "\u{ffff}",
    "\u{10000}",
    "\u{10ffff}",
    "\u{10ffff}\u{10ffff}",
];

async fn words() -> (Database, Vec<Word>) {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Word>().await.unwrap();
    let both = WORDS.into_iter().flat_map(|first| {
        let longer = ["", "a", "A", "\u{d7ff}", "\u{10ffff}"];
        longer.map(|second| format!("{first}{second}"))
    });
    let words: Vec<_> = (1..)
        .zip(both)
        .map(|(id, text)| Word {
            id,
            maybe: (id % 3 != 0).then(|| text.clone()),
            label: text.clone(),
            other_id: (id > 1).then(|| id - 1),
            extra: match id % 4 {
                0 => serde_json::json!({}),
                1 => serde_json::json!({"name": id}),
                _ => serde_json::json!({"name": text}),
            },
            text,
        })
        .collect();
    let mut ctx = db.context();
    for word in &words {
        ctx.add(word.clone());
    }
    ctx.save_changes().await.unwrap();
    (db, words)
}

/// The same question in Rust.
type Is = fn(&str, &str) -> bool;

/// That the three conditions about an expression select the words of whose text they are so, and their opposites all others.
async fn selects<T: Text, P: Part>(
    db: &Database,
    words: &[Word],
    expression: Column<Word, T, P>,
    value: impl Fn(&Word) -> Option<String>,
    text: &str,
) {
    let (first, second) = (expression.clone(), expression.clone());
    let searches: [(Condition<Word>, Is); 3] = [
        (first.starts_with_exact(text), |it, text| {
            it.starts_with(text)
        }),
        (second.contains_exact(text), |it, text| it.contains(text)),
        (expression.ends_with_exact(text), |it, text| {
            it.ends_with(text)
        }),
    ];
    for (condition, is) in searches {
        let found = async |condition: &Condition<Word>| {
            let query = Word::query().filter(condition.clone());
            let query = query.order_by(Word::ID.asc()).select(Word::ID);
            query.all(db).await.unwrap()
        };
        let (those, others): (Vec<_>, Vec<_>) =
            (words.iter()).partition(|word| value(word).is_some_and(|value| is(&value, text)));
        let ids = |words: Vec<&Word>| words.iter().map(|word| word.id).collect::<Vec<_>>();
        assert_eq!(found(&condition).await, ids(those), "{condition:?}");
        assert_eq!(
            found(&!condition.clone()).await,
            ids(others),
            "not {condition:?}"
        );
    }
}

#[tokio::test]
async fn exact_text_is_found_as_rust_finds_it() {
    let (db, words) = words().await;
    let wanted = WORDS.into_iter().chain(["ba", "aA", "Aa", "no such"]);
    for text in wanted {
        let (db, words) = (&db, &words[..]);
        let own = |word: &Word| Some(word.text.clone());
        selects(db, words, Word::TEXT, own, text).await;
        selects(db, words, Word::LABEL, own, text).await;
        selects(db, words, Word::MAYBE, |word| word.maybe.clone(), text).await;
        let doubled = |word: &Word| Some(format!("{0}{0}", word.text));
        selects(db, words, Word::LABEL.concat(Word::TEXT), doubled, text).await;
        // Beside numbers, of which none is a text.
        let name = |word: &Word| word.extra["name"].as_str().map(str::to_owned);
        selects(db, words, Word::EXTRA.path::<String>("$.name"), name, text).await;
        let other = |word: &Word| {
            let other = words.iter().find(|other| Some(other.id) == word.other_id)?;
            Some(other.label.clone())
        };
        selects(db, words, Word::OTHER.get(Word::LABEL), other, text).await;
        // An expression that collates by itself.
        let nocase = fragment::<Word, String>("{} COLLATE NOCASE", (Word::TEXT,));
        selects(db, words, nocase, own, text).await;
    }
}

async fn plan(db: &Database, query: Query<Word>) -> String {
    let statement = query.sql().unwrap();
    let mut read = ask_with(&format!("EXPLAIN QUERY PLAN {statement}"), statement.args);
    read.decode = |row| Ok(row.value(3).to_value().unwrap_or(Value::Null));
    match Executor::read(db, read).await.unwrap().swap_remove(0) {
        Value::Text(step) => step,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_exact_prefix_is_found_by_index() {
    let (db, _) = words().await;
    for (condition, step) in [
        (
            Word::TEXT.starts_with_exact("ab"),
            "SEARCH word USING INDEX word_text (text>? AND text<?)",
        ),
        // What has no end of its own too.
        (
            Word::TEXT.starts_with_exact("\u{10ffff}"),
            "SEARCH word USING INDEX word_text (text>? AND text<?)",
        ),
        (
            Word::MAYBE.starts_with_exact("ab"),
            "SEARCH word USING INDEX word_maybe (maybe>? AND maybe<?)",
        ),
        (
            (Word::EXTRA.path::<String>("$.name")).starts_with_exact("ab"),
            "SEARCH word USING INDEX by_name_within (<expr>>? AND <expr><?)",
        ),
        // An index that collates otherwise has them in another order.
        (Word::LABEL.starts_with_exact("ab"), "SCAN word"),
    ] {
        assert_eq!(plan(&db, Word::query().filter(condition)).await, step);
    }
    let (db, _) = words().await;
    execute(&db, "CREATE INDEX exact ON word (label COLLATE BINARY)").await;
    let labelled = Word::query().filter(Word::LABEL.starts_with_exact("ab"));
    assert_eq!(
        plan(&db, labelled).await,
        "SEARCH word USING INDEX exact (label>? AND label<?)"
    );
}

#[tokio::test]
async fn exact_searches_are_asked_like_others() {
    let db = things().await;
    for condition in [
        Thing::NAME.starts_with_exact("a\0"),
        Thing::NAME.contains_exact("a\0"),
        Thing::NAME.ends_with_exact("a\0"),
    ] {
        let query = Thing::query().filter(condition);
        assert_eq!(everywhere(&db, &query).await, Err(ErrorKind::Value));
    }
    let red = Thing::query()
        .filter(Thing::LABEL.starts_with_exact("R"))
        .order_by(Thing::ID.asc())
        .select(Thing::ID);
    assert_eq!(everywhere(&db, &red).await, Ok(vec![1, 3, 5, 7, 9, 11]));
    // A column that no group has by itself is refused inside of them, too.
    let grouped = Thing::query()
        .group_by(Thing::FLAG)
        .having(Thing::NAME.starts_with_exact("t"))
        .select(Thing::FLAG);
    assert_eq!(everywhere(&db, &grouped).await, Err(ErrorKind::Model));
}
