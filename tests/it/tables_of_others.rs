//! Tables that other programs made: other spellings, other keys, triggers, views.
#![allow(
    clippy::unwrap_used,
    reason = "what does not work here must fail the test"
)]

use anabranch::{error::Result, prelude::*};
use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
};
use rusqlite::Connection;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "items")]
struct Item {
    #[entity(id)]
    id: i64,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "stamps")]
struct Stamp {
    #[entity(id)]
    id: i64,
    name: String,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

fn item(id: i64, name: &str) -> Item {
    Item {
        id,
        name: name.to_owned(),
    }
}

async fn with(schema: &str) -> Database {
    let db = Database::temporary().await.unwrap();
    Connection::open(db.path())
        .unwrap()
        .execute_batch(schema)
        .unwrap();
    db
}

async fn add(db: &Database, item: Item) -> Result<i64> {
    let mut ctx = db.context();
    let handle = ctx.add(item);
    ctx.save_changes().await?;
    Ok(ctx[handle].id)
}

#[tokio::test]
async fn keys_follow_those_of_a_table_that_is_spelled_in_capitals() {
    let db = with("CREATE TABLE ITEMS (id INTEGER PRIMARY KEY, name TEXT NOT NULL)").await;
    assert_eq!(add(&db, item(0, "a")).await.unwrap(), 1);
    assert_eq!(add(&db, item(2, "b")).await.unwrap(), 2);
    assert_eq!(add(&db, item(0, "c")).await.unwrap(), 3);
}

#[tokio::test]
async fn a_stamped_table_that_is_spelled_in_capitals_is_stamped() {
    let db = with(
        "CREATE TABLE STAMPS (id INTEGER PRIMARY KEY, name TEXT NOT NULL, seq INTEGER NOT NULL)",
    )
    .await;
    db.create_tables::<Stamp>().await.unwrap();
    let mut ctx = db.context();
    let row = ctx.add(Stamp {
        id: 0,
        name: "a".into(),
        seq: CommitSeq::default(),
    });
    let saved = ctx.save_changes().await.unwrap();
    assert!(saved.commit_seq.is_some());
    let stored = Stamp::find(&db, ctx[row].id).await.unwrap().unwrap();
    assert_eq!(Some(stored.seq), saved.commit_seq);
}

#[tokio::test]
async fn keys_that_are_no_rowid_are_followed() {
    for key in ["BIGINT PRIMARY KEY", "INT PRIMARY KEY"] {
        let db = with(&format!(
            "CREATE TABLE items (id {key}, name TEXT NOT NULL);
             INSERT INTO items VALUES (5, 'e'), (2, 'b'), (4, 'd')"
        ))
        .await;
        assert_eq!(add(&db, item(0, "x")).await.unwrap(), 6, "{key}");
        assert_eq!(add(&db, item(7, "y")).await.unwrap(), 7, "{key}");
        let mut ctx = db.context();
        let more = [ctx.add(item(0, "v")), ctx.add(item(0, "w"))];
        ctx.save_changes().await.unwrap();
        assert_eq!(more.map(|row| ctx[row].id), [8, 9], "{key}");
    }
}

#[tokio::test]
async fn a_table_without_rowids_takes_rows() {
    let db =
        with("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID").await;
    assert_eq!(add(&db, item(0, "a")).await.unwrap(), 1);
    assert_eq!(add(&db, item(2, "b")).await.unwrap(), 2);
    assert_eq!(add(&db, item(0, "c")).await.unwrap(), 3);
}

#[tokio::test]
async fn a_table_with_autoincrement_gives_no_key_twice() {
    let db = with(
        "CREATE TABLE Items (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL);
         INSERT INTO items VALUES (10, 'x'); DELETE FROM items;",
    )
    .await;
    assert_eq!(add(&db, item(0, "a")).await.unwrap(), 11);
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "words")]
struct Word {
    #[entity(id)]
    rowid: i64,
    body: String,
}

#[tokio::test]
async fn a_virtual_table_takes_rows() {
    let db = with("CREATE VIRTUAL TABLE words USING fts5 (body)").await;
    for expected in [1, 3] {
        let mut ctx = db.context();
        let row = ctx.add(Word {
            rowid: 0,
            body: "tea".into(),
        });
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx[row].rowid, expected);
        ctx[row].body = "coffee".into();
        ctx.save_changes().await.unwrap();
        db.write(async |tx| {
            sqlx::query("INSERT INTO words (body) VALUES ('milk')")
                .execute(&mut *tx)
                .await?;
            Ok(())
        })
        .await
        .unwrap();
    }
    let raw = async |tx: &mut Transaction| {
        sqlx::query("INSERT INTO words (body) VALUES ('milk')")
            .execute(&mut *tx)
            .await?;
        let mut ctx = tx.context();
        let row = ctx.add(Word {
            rowid: 0,
            body: "tea".into(),
        });
        ctx.save_changes().await?;
        Ok(ctx[row].rowid)
    };
    assert_eq!(db.write(raw).await.unwrap(), 6);
    db.write(async |tx| {
        assert_eq!(raw(tx).await?, 8);
        assert_eq!(raw(tx).await?, 10);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_view_takes_rows_through_its_triggers() {
    let db = with(
        "CREATE TABLE kept (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
         CREATE VIEW items AS SELECT id, name FROM kept;
         CREATE TRIGGER into_kept INSTEAD OF INSERT ON items BEGIN
             INSERT INTO kept VALUES (new.id, new.name); END;",
    )
    .await;
    assert_eq!(add(&db, item(0, "a")).await.unwrap(), 1);
    assert_eq!(add(&db, item(0, "b")).await.unwrap(), 2);
    assert_eq!(Item::query().count(&db).await.unwrap(), 2);
}

#[tokio::test]
async fn a_row_that_a_trigger_ignored_was_not_saved() {
    for schema in [
        "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
         CREATE TRIGGER no_insert BEFORE INSERT ON items WHEN new.name = 'no' BEGIN
             SELECT RAISE(IGNORE); END;",
        "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE ON CONFLICT IGNORE);
         INSERT INTO items VALUES (1, 'no');",
    ] {
        let db = with(schema).await;
        let mut ctx = db.context();
        let row = ctx.add(item(0, "no"));
        let saved = ctx.save_changes().await;
        let error = saved.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Constraint, "{error}");
        assert_eq!(error.table(), Some("items"));
        ctx[row].name = "yes".into();
        ctx.save_changes().await.unwrap();
        let id = ctx[row].id;
        assert_eq!(Item::find(&db, id).await.unwrap(), Some(item(id, "yes")));
    }
}

#[tokio::test]
async fn the_largest_key_is_forgotten_when_its_row_is_undone() {
    let db = with("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)").await;
    let mut ctx = db.context();
    ctx.add(item(i64::MAX, "a"));
    ctx.add(item(1, "a"));
    ctx.save_changes().await.unwrap_err();
    assert_eq!(add(&db, item(0, "b")).await.unwrap(), 1);
    // A row that is deleted again.
    let mut ctx = db.context();
    let last = ctx.add(item(i64::MAX, "c"));
    ctx.save_changes().await.unwrap();
    assert_eq!(
        add(&db, item(0, "d")).await.unwrap_err().kind(),
        ErrorKind::Full
    );
    ctx.remove(last);
    ctx.save_changes().await.unwrap();
    assert_eq!(add(&db, item(0, "d")).await.unwrap(), 2);
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "shadows")]
struct Shadow {
    #[entity(id)]
    id: i64,
    rowid: i64,
    oid: i64,
    #[entity(column = "_rowid_")]
    third: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "half_shadows")]
struct HalfShadow {
    #[entity(id)]
    id: String,
    rowid: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

#[tokio::test]
async fn columns_may_be_named_as_sqlite_names_the_rowid() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Shadow, HalfShadow)>().await.unwrap();
    let mut ctx = db.context();
    let rows: Vec<_> = (0..3)
        .map(|number| {
            ctx.add(Shadow {
                id: 0,
                rowid: 100 - number,
                oid: 2,
                third: 2,
                seq: CommitSeq::default(),
            })
        })
        .collect();
    let half = ctx.add(HalfShadow {
        id: "a".into(),
        rowid: 7,
        seq: CommitSeq::default(),
    });
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!(
        rows.iter().map(|row| ctx[*row].id).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    for stored in Shadow::query().all(&db).await.unwrap() {
        assert_eq!(Some(stored.seq), saved.commit_seq);
    }
    let stored = HalfShadow::find(&db, "a").await.unwrap().unwrap();
    assert_eq!(
        (Some(stored.seq), stored),
        (saved.commit_seq, ctx[half].clone())
    );
}

#[tokio::test]
async fn a_table_that_cannot_be_stamped_is_told_and_can_be_written_by_others() {
    for schema in [
        "CREATE TABLE stamps (id INTEGER PRIMARY KEY, name TEXT)",
        "CREATE TABLE stamps (id INTEGER PRIMARY KEY, name TEXT, seq INTEGER) WITHOUT ROWID",
    ] {
        let db = with(schema).await;
        let error = db.create_tables::<Stamp>().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Model);
        assert_eq!(
            (error.table(), error.column()),
            (Some("stamps"), Some("seq"))
        );
        insert_raw(&db).await.unwrap();
    }
}

#[tokio::test]
async fn a_stamped_table_that_was_made_anew_in_another_way_can_be_written() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Stamp>().await.unwrap();
    let other = Connection::open(db.path()).unwrap();
    other
        .execute_batch("DROP TABLE stamps; CREATE TABLE stamps (id INTEGER PRIMARY KEY, name TEXT)")
        .unwrap();
    insert_raw(&db).await.unwrap();
    other
        .execute_batch("ALTER TABLE stamps ADD COLUMN seq INTEGER NOT NULL DEFAULT 0")
        .unwrap();
    insert_raw(&db).await.unwrap();
    let seqs: Vec<i64> = Stamp::query()
        .order_by(Stamp::ID.asc())
        .all(&db)
        .await
        .unwrap()
        .iter()
        .map(|row| row.seq.0)
        .collect();
    assert_eq!(seqs, [0, 1]);
}

async fn insert_raw(db: &Database) -> Result<()> {
    db.write(async |tx| {
        sqlx::query(
            "INSERT INTO stamps (id, name) SELECT coalesce(max(id), 0) + 1, 'x' FROM stamps",
        )
        .execute(&mut *tx)
        .await?;
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "owners")]
struct Owner {
    #[entity(id)]
    id: i64,
    #[entity(references = Owner)]
    boss: Option<i64>,
    hash: i64,
}

/// SQLite forgets what it has yet to look at when deferring is switched off.
#[tokio::test]
async fn a_save_does_not_hide_what_raw_sql_left_to_be_mended() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Owner>().await.unwrap();
    let owner = |boss| Owner {
        id: 0,
        boss,
        hash: 0,
    };
    let wrote = db
        .write(async |tx| {
            sqlx::raw_sql(
                "PRAGMA defer_foreign_keys = ON; INSERT INTO owners (id, boss, hash) VALUES (7, 99, 0)",
            )
            .execute(&mut *tx)
            .await?;
            let mut ctx = tx.context();
            let one = ctx.add(owner(None));
            let other = ctx.add(owner(Some(ctx[one].id)));
            ctx[one].boss = Some(ctx[other].id);
            ctx.save_changes().await
        })
        .await;
    assert_eq!(wrote.unwrap_err().kind(), ErrorKind::ForeignKey);
    assert_eq!(Owner::query().count(&db).await.unwrap(), 0);
}

#[tokio::test]
async fn a_number_that_looks_like_a_temporary_key_is_stored() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Owner>().await.unwrap();
    for hash in [i64::MIN, i64::MIN + (1 << 47), i64::MAX] {
        let mut ctx = db.context();
        let row = ctx.add(Owner {
            id: 0,
            boss: None,
            hash,
        });
        ctx.save_changes().await.unwrap();
        let stored = Owner::find(&db, ctx[row].id).await.unwrap().unwrap();
        assert_eq!(stored.hash, hash);
    }
}

#[tokio::test]
async fn a_schema_that_changes_under_prepared_statements_is_followed() {
    let db = with("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL)").await;
    let other = Connection::open(db.path()).unwrap();
    let id = add(&db, item(0, "a")).await.unwrap();
    let change = async |name: &str| -> Result<String> {
        let mut ctx = db.context();
        let row = ctx.find::<Item>(id).await?.unwrap();
        ctx[row].name = name.into();
        ctx.save_changes().await?;
        Ok(Item::find(&db, id).await?.unwrap().name)
    };
    assert_eq!(change("b").await.unwrap(), "b");
    other
        .execute_batch("ALTER TABLE items ADD COLUMN more TEXT DEFAULT 'm'")
        .unwrap();
    assert_eq!(change("c").await.unwrap(), "c");
    other
        .execute_batch("ALTER TABLE items RENAME COLUMN name TO nom")
        .unwrap();
    assert_eq!(change("d").await.unwrap_err().kind(), ErrorKind::Statement);
    assert_eq!(
        add(&db, item(0, "x")).await.unwrap_err().kind(),
        ErrorKind::Statement
    );
    other
        .execute_batch("ALTER TABLE items RENAME COLUMN nom TO name")
        .unwrap();
    assert_eq!(change("e").await.unwrap(), "e");
    other
        .execute_batch(
            "BEGIN; ALTER TABLE items RENAME TO old;
             CREATE TABLE items (more TEXT, name TEXT, id INTEGER PRIMARY KEY);
             INSERT INTO items SELECT more, name, id FROM old; DROP TABLE old; COMMIT",
        )
        .unwrap();
    assert_eq!(change("f").await.unwrap(), "f");
    other.execute_batch("DROP TABLE items").unwrap();
    assert_eq!(change("g").await.unwrap_err().kind(), ErrorKind::Statement);
}

/// `IF NOT EXISTS` passed over it, and the first query failed with a hint about string literals.
#[tokio::test]
async fn a_table_that_lacks_a_column_is_told_when_tables_are_made() {
    let db = with("CREATE TABLE items (id INTEGER PRIMARY KEY)").await;
    let error = db.create_tables::<Item>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
    assert_eq!(
        (error.table(), error.column()),
        (Some("items"), Some("name"))
    );
}

#[derive(Debug, Entity)]
#[entity(table = "parts")]
struct Part {
    #[entity(id)]
    id: i64,
    #[entity(references = Item)]
    item: i64,
}

#[tokio::test]
async fn a_reference_to_a_table_that_is_missing_is_told_when_tables_are_made() {
    let db = Database::temporary().await.unwrap();
    let error = db.create_tables::<Part>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
    assert!(error.to_string().contains("items"), "{error}");
    db.create_tables::<(Part, Item)>().await.unwrap();
    db.create_tables::<Part>().await.unwrap();
}

#[tokio::test]
async fn other_programs_stamp_through_triggers() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Stamp>().await.unwrap();
    db.stamp_foreign_writes::<Stamp>().await.unwrap();
    db.stamp_foreign_writes::<Stamp>().await.unwrap();
    let ours = |name: &str| Stamp {
        id: 0,
        name: name.to_owned(),
        seq: CommitSeq::default(),
    };
    let mut ctx = db.context();
    let first = ctx.add(ours("first"));
    ctx.save_changes().await.unwrap();
    let foreign = Connection::open(db.path()).unwrap();
    foreign
        .execute_batch("INSERT INTO stamps (name, seq) VALUES ('foreign', 0)")
        .unwrap();
    foreign
        .execute_batch("UPDATE stamps SET name = 'changed' WHERE name = 'first'")
        .unwrap();
    let last = ctx.add(ours("last"));
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!(saved.commit_seq, Some(ctx[last].seq));
    let rows = Stamp::query()
        .order_by(Stamp::SEQ.asc())
        .all(&db)
        .await
        .unwrap();
    let names: Vec<_> = rows.iter().map(|row| &*row.name).collect();
    assert_eq!(names, ["foreign", "changed", "last"]);
    assert!(rows.is_sorted_by(|one, next| one.seq < next.seq));
    assert!(rows[0].seq > ctx[first].seq);
}

/// A conflict was told of what nobody had changed, and resolving it led to the same one again, without end.
#[tokio::test]
async fn what_a_trigger_ignores_is_a_constraint_and_no_conflict() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let mut ctx = db.context();
        let kept = ctx.add(note("old"));
        ctx.save_changes().await.unwrap();
        for (event, trigger) in [
            (
                "UPDATE",
                "CREATE TRIGGER no_update BEFORE UPDATE ON note BEGIN SELECT RAISE(IGNORE); END",
            ),
            (
                "DELETE",
                "CREATE TRIGGER no_delete BEFORE DELETE ON note BEGIN SELECT RAISE(IGNORE); END",
            ),
        ] {
            execute(&db, trigger).await;
            if event == "UPDATE" {
                ctx[kept].text = "new".to_owned();
            } else {
                ctx.reset(kept);
                ctx.remove(kept);
            }
            let error = ctx.save_changes().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Constraint, "{mode:?} {event}");
            assert_eq!(error.table(), Some("note"));
            assert!(error.to_string().contains("RAISE(IGNORE)"), "{error}");
        }
    }
}

/// SQLite does not count what the triggers of a view change: the save was told as a conflict with what it had written
/// itself, and was undone.
#[tokio::test]
async fn rows_of_a_view_are_updated_and_deleted_by_its_triggers() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        for statement in [
            "CREATE TABLE kept (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
            "CREATE VIEW note AS SELECT id, text FROM kept",
            "CREATE TRIGGER changes INSTEAD OF UPDATE ON note BEGIN
                 UPDATE kept SET text = NEW.text WHERE id = NEW.id;
             END",
            "CREATE TRIGGER deletes INSTEAD OF DELETE ON note BEGIN
                 DELETE FROM kept WHERE id = OLD.id;
             END",
            "INSERT INTO kept VALUES (1, 'old'), (2, 'gone')",
        ] {
            execute(&db, statement).await;
        }
        let mut ctx = db.context();
        let changed = ctx.find::<Note>(1).await.unwrap().unwrap();
        let removed = ctx.find::<Note>(2).await.unwrap().unwrap();
        ctx[changed].text = "new".to_owned();
        ctx.remove(removed);
        ctx.save_changes().await.unwrap();
        let rows = Note::query().all(&db).await.unwrap();
        assert_eq!(rows.len(), 1, "{mode:?}");
        assert_eq!(rows[0].text, "new");
    }
}
