//! Feeds of tables, keys and writes that are not the plain ones.

use anabranch::{
    feed::{Change, Feed, Start},
    prelude::*,
    query::{Condition, upsert},
};
use anabranch_tests::{Mode, execute, outsider};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    table = "the \"orders\" of 'all'",
    tombstones,
    filter(open = Quoted::open)
)]
struct Quoted {
    #[entity(id, column = "the key", collate = "NOCASE")]
    name: String,
    done: bool,
    #[entity(commit_seq, index, column = "the number")]
    seq: CommitSeq,
}

impl Quoted {
    fn open() -> Condition<Self> {
        Self::DONE.eq(false)
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
struct Parent {
    #[entity(id)]
    id: Uuid,
    #[entity(unique)]
    name: String,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(tombstones)]
struct Child {
    #[entity(id)]
    id: i64,
    #[entity(references = Parent, on_delete = Cascade)]
    parent_id: Uuid,
    note: Deferred<String>,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

async fn all<E: Entity>(feed: &mut Feed<E>) -> Vec<(bool, E::Key)> {
    let mut all = Vec::new();
    while let Some(batch) = feed.try_next_batch().await.unwrap() {
        for event in &batch {
            all.push((matches!(event.change, Change::Deleted(_)), event.key()));
        }
        batch.ack().await.unwrap();
    }
    all
}

#[tokio::test]
async fn names_that_need_quotes_and_keys_of_a_collation() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<Quoted>().await.unwrap();
        let mut ctx = db.context();
        for (name, done) in [("Ada", false), ("Bo", true)] {
            ctx.add(Quoted {
                name: name.into(),
                done,
                seq: CommitSeq(0),
            });
        }
        ctx.save_changes().await.unwrap();
        let mut feed = db
            .feed::<Quoted>("a 'name'; -- \u{e9}")
            .batch_rows(1)
            .split_commits();
        // Also what the entity's own filter would leave out.
        assert_eq!(
            all(&mut feed).await,
            [(false, "Ada".into()), (false, "Bo".into())]
        );
        Quoted::query()
            .without_filters()
            .delete()
            .execute(&db)
            .await
            .unwrap();
        assert_eq!(
            all(&mut feed).await,
            [(true, "Ada".into()), (true, "Bo".into())]
        );
        // The same key to the table in another spelling, and another one to who keeps the rows.
        for name in ["ADA", "ada"] {
            let mut ctx = db.context();
            let row = ctx.add(Quoted {
                name: name.into(),
                done: false,
                seq: CommitSeq(0),
            });
            ctx.save_changes().await.unwrap();
            ctx.remove(row);
            ctx.save_changes().await.unwrap();
        }
        assert_eq!(
            all(&mut feed).await,
            [(true, "ADA".into()), (true, "ada".into())]
        );
    }
}

#[tokio::test]
#[allow(clippy::too_many_lines, reason = "one story, told once")]
async fn cascades_replacements_and_bulk_operations_are_told() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<(Parent, Child)>().await.unwrap();
        let mut ctx = db.context();
        let parents: Vec<_> = ["a", "b", "c"]
            .map(|name| {
                ctx.add(Parent {
                    id: Uuid::nil(),
                    name: name.into(),
                    seq: CommitSeq(0),
                })
            })
            .into();
        ctx.save_changes().await.unwrap();
        let ids: Vec<_> = parents.iter().map(|parent| ctx[*parent].id).collect();
        let children = ids.iter().flat_map(|id| [*id; 2]);
        let children = children.map(|parent_id| Child {
            id: 0,
            parent_id,
            note: "x".to_owned().into(),
            seq: CommitSeq(0),
        });
        db.bulk_insert_optimized(children).await.unwrap();
        let mut of_parents = db.feed::<Parent>("parents");
        let mut of_children = db.feed::<Child>("children");
        assert_eq!(all(&mut of_parents).await.len(), 3);
        assert_eq!(all(&mut of_children).await.len(), 6);

        // A cascade.
        Parent::query()
            .filter(Parent::NAME.eq("a"))
            .delete()
            .execute(&db)
            .await
            .unwrap();
        assert_eq!(all(&mut of_parents).await, [(true, ids[0])]);
        assert_eq!(all(&mut of_children).await, [(true, 1), (true, 2)]);

        // A savepoint that is undone leaves nothing.
        db.write(async |tx| {
            sqlx::query("SAVEPOINT a").execute(&mut *tx).await.err();
            let undone: anabranch::error::Result<()> = tx
                .savepoint(async |tx| {
                    sqlx::query("DELETE FROM child").execute(&mut *tx).await?;
                    Err(Error::application("no"))
                })
                .await;
            undone.unwrap_err();
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(all(&mut of_children).await, []);

        // All of a table, for which SQLite has a short way without triggers.
        db.bulk_delete::<Child>().run([3]).await.unwrap();
        assert_eq!(all(&mut of_children).await, [(true, 3)]);
        execute(&db, "DELETE FROM child").await;
        assert_eq!(
            all(&mut of_children).await,
            [(true, 4), (true, 5), (true, 6)]
        );

        // An upsert keeps the key; a replacement too.
        let again = Parent {
            id: ids[1],
            name: "B".into(),
            seq: CommitSeq(0),
        };
        upsert(again).on(Parent::ID).execute(&db).await.unwrap();
        execute(
            &db,
            "REPLACE INTO parent (id, name, seq) SELECT id, 'C', 0 FROM parent WHERE name = 'c'",
        )
        .await;
        assert_eq!(
            all(&mut of_parents).await,
            [(false, ids[1]), (false, ids[2])]
        );
    }
}

/// A table that was there before its entity had them.
#[tokio::test]
async fn a_table_that_was_there_is_given_tombstones() {
    let db = Mode::Inline.temporary().await;
    execute(
        &db,
        "CREATE TABLE parent (id BLOB PRIMARY KEY NOT NULL, name TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL DEFAULT 0) STRICT",
    )
    .await;
    outsider(db.path())
        .execute(
            "INSERT INTO parent (id, name) VALUES (randomblob(16), 'a'), (randomblob(16), 'b')",
            [],
        )
        .unwrap();
    db.create_tables::<Parent>().await.unwrap();
    let mut feed = db
        .feed::<Parent>("all")
        .start(Start::Snapshot)
        .batch_rows(1);
    assert_eq!(all(&mut feed).await.len(), 2);
    execute(&db, "DELETE FROM parent WHERE name = 'a'").await;
    assert_eq!(all(&mut feed).await.len(), 1);
    assert!(db.integrity().await.unwrap().is_ok());
}
