//! Keys that change, cascade, collate and have odd names, and whatever else deletes rows.

use std::{collections::BTreeMap, time::Duration};

use anabranch::{
    engine::Transaction,
    feed::{Retention, Start},
    prelude::*,
    query::{Condition, upsert},
    value::Value,
};
use anabranch_tests::{execute, outsider};
use uuid::Uuid;

use crate::feed_attack::{Note, add, follow, rows};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
pub(super) struct Word {
    #[entity(id, collate = "NOCASE")]
    word: String,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    tombstones,
    table = "odd \"table\" of 'x'",
    filter(positive = Odd::positive)
)]
struct Odd {
    #[entity(id, column = "the \"key\"")]
    first: String,
    #[entity(id, column = "and '2'")]
    second: i64,
    body: Deferred<String>,
    #[entity(commit_seq, index, column = "its no.")]
    seq: CommitSeq,
}

impl Odd {
    fn positive() -> Condition<Self> {
        Self::SECOND.gt(0)
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
struct Child {
    #[entity(id)]
    id: i64,
    #[entity(references = Word, on_delete = Cascade, on_update = Cascade, index)]
    word: String,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

/// Its key is that of another.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
struct Extra {
    #[entity(id, references = Word, on_delete = Cascade, on_update = Cascade)]
    word: String,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

async fn opened() -> Database {
    let db = crate::feed_attack::opened().await;
    db.create_tables::<(Word, Child, Extra, Odd)>()
        .await
        .unwrap();
    db
}

#[tokio::test]
async fn rows_of_a_commit_come_by_their_keys() {
    let db = opened().await;
    db.write(async |tx| {
        for word in ["c", "a", "d", "b"] {
            sqlx::query("INSERT INTO word (word) VALUES (?)")
                .bind(word)
                .execute(&mut *tx)
                .await?;
        }
        Ok(())
    })
    .await
    .unwrap();
    for rows in [2, 100] {
        let mut feed = db.feed::<Word>(rows.to_string()).batch_rows(rows);
        let batch = feed.next_batch().await.unwrap();
        let keys: Vec<_> = batch.events().iter().map(|event| event.key()).collect();
        assert_eq!(keys, ["a", "b", "c", "d"]);
    }
}

#[tokio::test]
async fn keys_that_differ_in_their_case_are_told_apart() {
    let db = opened().await;
    let mut feed = db.feed::<Word>("words");
    let mut copy = BTreeMap::new();
    for sql in [
        "INSERT INTO word (word) VALUES ('Tea')",
        "UPDATE word SET word = 'TEA'",
        "INSERT INTO word (word) VALUES ('Jam')",
    ] {
        execute(&db, sql).await;
        follow(&mut feed, &mut copy).await;
        assert_eq!(copy, rows::<Word>(&db).await, "{sql}");
    }
    // Gone, there again, and gone again, before the consumer looks.
    execute(&db, "DELETE FROM word WHERE word = 'Jam'").await;
    execute(&db, "INSERT INTO word (word) VALUES ('jam')").await;
    execute(&db, "DELETE FROM word WHERE word = 'jam'").await;
    follow(&mut feed, &mut copy).await;
    assert_eq!(copy, rows::<Word>(&db).await);
}

#[tokio::test]
async fn cascades_and_triggers_of_the_application_are_told() {
    let db = opened().await;
    let (mut children, mut extras) = (db.feed::<Child>("children"), db.feed::<Extra>("extras"));
    let (mut copy, mut extra) = (BTreeMap::new(), BTreeMap::new());
    execute(&db, "INSERT INTO word (word) VALUES ('a'), ('b'), ('c')").await;
    execute(
        &db,
        "INSERT INTO child (word) VALUES ('a'), ('b'), ('b'), ('c')",
    )
    .await;
    execute(&db, "INSERT INTO extra (word) VALUES ('a'), ('b'), ('c')").await;
    outsider(db.path())
        .execute_batch(
            "CREATE TRIGGER kept BEFORE DELETE ON child WHEN OLD.id = 4 BEGIN SELECT RAISE(IGNORE); END;
             CREATE TRIGGER also AFTER UPDATE OF word ON word BEGIN DELETE FROM child WHERE word = 'a'; END;",
        )
        .unwrap();
    for sql in [
        "UPDATE word SET word = 'z' WHERE word = 'b'",
        "DELETE FROM child WHERE id = 4",
        "DELETE FROM word WHERE word = 'z'",
        "DELETE FROM extra",
        "DELETE FROM child",
    ] {
        follow(&mut children, &mut copy).await;
        follow(&mut extras, &mut extra).await;
        assert_eq!(copy, rows::<Child>(&db).await, "before {sql}");
        assert_eq!(extra, rows::<Extra>(&db).await, "before {sql}");
        execute(&db, sql).await;
    }
    follow(&mut children, &mut copy).await;
    follow(&mut extras, &mut extra).await;
    assert_eq!(copy, rows::<Child>(&db).await);
    assert_eq!((copy.len(), extra.len()), (1, 0));
}

#[tokio::test]
async fn savepoints_bulk_writes_and_replaced_rows_are_told_as_they_end() {
    let db = opened().await;
    add(&db, 0..100).await;
    let mut feed = db.feed::<Note>("many").batch_rows(7).split_commits();
    let mut copy = BTreeMap::new();
    follow(&mut feed, &mut copy).await;
    let all_of_them = async |tx: &mut Transaction, statements: &[&'static str]| {
        for sql in statements {
            sqlx::query(*sql).execute(&mut *tx).await?;
        }
        anabranch::error::Result::Ok(())
    };
    db.write(async |tx| {
        all_of_them(tx, &["DELETE FROM note WHERE id = 1"]).await?;
        let undone = tx.savepoint(async |tx| {
            all_of_them(tx, &["DELETE FROM note WHERE id <= 50"]).await?;
            anabranch::error::Result::<()>::Err(Error::application("no"))
        });
        undone.await.unwrap_err();
        all_of_them(
            tx,
            &[
                "UPDATE OR IGNORE note SET id = id - 1 WHERE id > 90",
                "INSERT OR REPLACE INTO note (id, text) VALUES (60, 'replaced')",
                "INSERT INTO note (id, text) VALUES (61, 'upsert') ON CONFLICT DO UPDATE SET text = excluded.text",
            ],
        )
        .await
    })
    .await
    .unwrap();
    assert!(!rows::<Note>(&db).await.contains_key(&1));
    upsert(Note {
        id: 62,
        text: "typed".into(),
        seq: CommitSeq(0),
    })
    .on(Note::ID)
    .execute(&db)
    .await
    .unwrap();
    follow(&mut feed, &mut copy).await;
    assert_eq!(copy, rows::<Note>(&db).await);
    db.bulk_delete::<Note>().run(10..=30).await.unwrap();
    let changed: Vec<_> = rows::<Note>(&db).await.into_values().take(20).collect();
    let changed = changed.into_iter().map(|note| Note {
        text: format!("changed {}", note.text),
        ..note
    });
    db.bulk_update().set(Note::TEXT).run(changed).await.unwrap();
    follow(&mut feed, &mut copy).await;
    assert_eq!(copy, rows::<Note>(&db).await);
    assert!(copy.values().any(|note| note.text.starts_with("changed")));
    execute(&db, "DELETE FROM note").await;
    follow(&mut feed, &mut copy).await;
    assert!(copy.is_empty());
}

/// Nor does a feed leave out what the entity's own filters do.
#[tokio::test]
async fn tables_and_keys_may_have_any_names_and_columns_may_be_deferred() {
    let db = opened().await;
    let mut ctx = db.context();
    for (first, second) in [("", i64::MIN), ("a'", -1), ("a\"b", 0), ("ä", i64::MAX)] {
        ctx.add(Odd {
            first: first.into(),
            second,
            body: Deferred::new("long".into()),
            seq: CommitSeq(0),
        });
    }
    ctx.save_changes().await.unwrap();
    for start in [Start::Beginning, Start::Snapshot] {
        let mut feed = db.feed::<Odd>("odd").batch_rows(1).split_commits();
        feed.rewind(start).await.unwrap();
        let mut copy = BTreeMap::new();
        follow(&mut feed, &mut copy).await;
        assert_eq!(copy, rows::<Odd>(&db).await);
    }
    db.stamp_foreign_writes::<(Odd,)>().await.unwrap();
    let mut feed = db.feed::<Odd>("odd").batch_rows(2).split_commits();
    let mut copy = BTreeMap::new();
    follow(&mut feed, &mut copy).await;
    outsider(db.path())
        .execute_batch("DELETE FROM \"odd \"\"table\"\" of 'x'\"")
        .unwrap();
    let mut keys = Vec::new();
    while let Some(batch) = feed.try_next_batch().await.unwrap() {
        keys.extend(batch.events().iter().map(|event| event.key().1));
        batch.ack().await.unwrap();
    }
    keys.sort_unstable();
    assert_eq!(keys, [i64::MIN, -1, 0, i64::MAX]);
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones, table = "x")]
struct X {
    #[entity(id)]
    id: i64,
    #[entity(commit_seq, index(name = "x_by_seq"))]
    seq: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones, table = "x_seq")]
struct XSeq {
    #[entity(id)]
    id: i64,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[tokio::test]
async fn the_names_of_what_belongs_to_two_tables_do_not_clash() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(X, XSeq)>().await.unwrap();
    execute(&db, "INSERT INTO x_seq (id) VALUES (1)").await;
    execute(&db, "DELETE FROM x_seq").await;
    let batch = db.feed::<XSeq>("x").next_batch().await.unwrap();
    assert!(batch.events()[0].is_deleted());
    assert!(db.feed::<X>("y").try_next_batch().await.unwrap().is_none());
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
struct Token {
    #[entity(id)]
    id: Uuid,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[tokio::test]
async fn a_deleted_key_that_does_not_fit_is_told_with_what_to_do() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Token>().await.unwrap();
    execute(
        &db,
        "INSERT INTO token (id) VALUES (x'01'), (x'018f0000000070008000000000000002')",
    )
    .await;
    let mut feed = db.feed::<Token>("tokens");
    assert!(feed.next_batch().await.is_err(), "the row does not fit");
    execute(&db, "DELETE FROM token WHERE id = x'01'").await;
    for _ in 0..2 {
        let error = feed.next_batch().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert_eq!(error.key(), [Value::Blob(vec![1])]);
        assert!(error.to_string().contains("prune_tombstones"), "{error}");
    }
    let all = Retention::new(Duration::ZERO).at_most(Duration::ZERO);
    assert_eq!(db.prune_tombstones::<Token>(all).await.unwrap(), 1);
    let error = feed.next_batch().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CursorExpired);
    feed.rewind(Start::Snapshot).await.unwrap();
    assert_eq!(feed.next_batch().await.unwrap().len(), 1);
}

/// A table that was there before its entity had them.
#[tokio::test]
async fn a_table_that_was_there_is_given_tombstones() {
    let db = Database::temporary().await.unwrap();
    execute(
        &db,
        "CREATE TABLE word (word TEXT PRIMARY KEY NOT NULL COLLATE NOCASE, seq INTEGER NOT NULL DEFAULT 0) STRICT",
    )
    .await;
    outsider(db.path())
        .execute("INSERT INTO word (word) VALUES ('a'), ('b')", [])
        .unwrap();
    db.create_tables::<Word>().await.unwrap();
    let mut feed = db.feed::<Word>("all").start(Start::Snapshot).batch_rows(1);
    let mut copy = BTreeMap::new();
    follow(&mut feed, &mut copy).await;
    assert_eq!(copy.len(), 2);
    execute(&db, "DELETE FROM word WHERE word = 'a'").await;
    follow(&mut feed, &mut copy).await;
    assert_eq!(copy, rows::<Word>(&db).await);
    assert!(db.integrity().await.unwrap().is_ok());
}
