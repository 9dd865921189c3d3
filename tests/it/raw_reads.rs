//! Texts that applications write are run as queries only if they read, and nothing else.

use anabranch::{
    prelude::*,
    sql::{Cost, Executor, Read},
    value::Value,
};
use anabranch_tests::{Mode, ask, ask_with, execute};

/// What is refused before it runs.
const REFUSED: [&str; 16] = [
    "",
    "-- nothing",
    "INSERT INTO item VALUES (9) RETURNING id",
    "UPDATE item SET id = 9",
    "WITH n AS (SELECT 9) INSERT INTO item SELECT * FROM n",
    "CREATE TABLE other (id)",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT mine",
    "RELEASE anabranch_save",
    "ATTACH ':memory:' AS other",
    "PRAGMA foreign_keys = OFF",
    "SELECT id FROM item; SELECT id FROM item",
    "SELECT id FROM item; PRAGMA query_only = OFF",
    "SELECT id FROM item\0 WHERE id = 2",
];

async fn items(mode: Mode) -> Database {
    let db = mode.temporary().await;
    execute(
        &db,
        "CREATE TABLE item (id INTEGER PRIMARY KEY); INSERT INTO item VALUES (1)",
    )
    .await;
    db
}

fn reads(text: &str) -> [Read<Value>; 2] {
    [Cost::Small, Cost::Any].map(|cost| Read { cost, ..ask(text) })
}

fn is_refusal(read: Result<Vec<Value>, Error>, text: &str) {
    let error = read.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{text}: {error}");
    assert_eq!(error.statement(), Some(text));
}

#[tokio::test]
async fn what_is_not_one_statement_that_reads_is_refused_everywhere() {
    let all = "SELECT id FROM item; -- that is all";
    let one = [Value::Integer(1)];
    for mode in [Mode::Inline, Mode::Threaded] {
        let db = items(mode).await;
        let mut tx = db.begin().await.unwrap();
        for text in REFUSED {
            for read in reads(text) {
                is_refusal(Executor::read(&db, read).await, text);
            }
            for read in reads(text) {
                is_refusal(tx.read(read).await, text);
            }
        }
        assert_eq!(tx.read(ask(all)).await.unwrap(), one);
        tx.commit().await.unwrap();
        let mut session = db.begin_concurrent(Isolation::Serializable).await.unwrap();
        for text in REFUSED {
            for read in reads(text) {
                is_refusal(session.read(read).await, text);
            }
        }
        assert_eq!(session.read(ask(all)).await.unwrap(), one);
        // What was refused is not run where the session is merged.
        sqlx::query("INSERT INTO item VALUES (2)")
            .execute(&mut *session)
            .await
            .unwrap();
        session.commit().await.unwrap();
        let sum = Executor::read(&db, ask("SELECT sum(id) FROM item")).await;
        assert_eq!(sum.unwrap(), [Value::Integer(3)]);
    }
}

/// The pragmas that were refused are as they were: some are set as soon as they are prepared.
#[tokio::test]
async fn a_refused_pragma_was_not_set() {
    let db = Database::builder("")
        .readers(1)
        .open_temporary()
        .await
        .unwrap();
    for text in [
        "PRAGMA query_only = OFF",
        "EXPLAIN PRAGMA query_only = OFF",
        "SELECT 1; PRAGMA query_only = OFF",
    ] {
        for read in reads(text) {
            is_refusal(Executor::read(&db, read).await, text);
        }
        let is_on = Executor::read(&db, ask("PRAGMA query_only")).await;
        assert_eq!(is_on.unwrap(), [Value::Integer(1)], "{text}");
    }
}

#[tokio::test]
async fn arguments_that_are_too_many_or_too_few_are_counted() {
    let db = items(Mode::Inline).await;
    let three = || ask_with("SELECT ?1 + ?2", vec![Value::Integer(1); 3]);
    let mut session = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    for error in [
        Executor::read(&db, three()).await.unwrap_err(),
        session.read(three()).await.unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.contains("takes 2 arguments, 3 were given"), "{text}");
        assert_eq!(error.statement(), Some("SELECT ?1 + ?2"));
    }
}
