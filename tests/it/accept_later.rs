//! Saves of a context into a transaction that somebody else ends.

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, dropped_after, execute,
    note::{Note, note, notes},
};
use chrono::{DateTime, TimeZone, Utc};
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Stamped {
    #[entity(id)]
    id: i64,
    #[entity(references = Stamped)]
    other: Option<i64>,
    #[entity(version)]
    version: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

fn stamped(other: Option<i64>) -> Stamped {
    Stamped {
        id: 0,
        other,
        version: 0,
        seq: CommitSeq::default(),
    }
}

#[tokio::test]
async fn what_was_saved_is_accepted_once_the_transaction_is_committed() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<Stamped>().await.unwrap();
        let mut ctx = db.context();
        let one = ctx.add(stamped(None));
        let two = ctx.add(stamped(Some(ctx[one].id)));
        let mut tx = db.begin().await.unwrap();
        let saved = ctx.save_changes_in(&mut tx).await.unwrap();
        assert_eq!((saved.inserted, saved.commit_seq), (2, None));
        assert!(ctx[one].id < 0, "still temporary");
        assert_eq!(ctx.entry(one).state(), EntityState::Added);
        assert_eq!(
            ctx.find::<Stamped>(1).await.unwrap(),
            None,
            "reads go on, and see what was committed before"
        );
        let number = tx.commit().await.unwrap().unwrap();
        assert_eq!(ctx.find::<Stamped>(1).await.unwrap(), Some(one));
        assert_eq!(
            (ctx[one].id, ctx[one].version, ctx[one].seq),
            (1, 1, CommitSeq(number)),
            "{mode:?}"
        );
        assert_eq!(ctx[two].other, Some(1));
        assert!(!ctx.has_changes());
        ctx[two].other = None;
        assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
        assert_eq!(
            Stamped::find(&db, 2).await.unwrap().as_ref(),
            Some(&ctx[two])
        );
    }
}

#[tokio::test]
async fn what_was_rolled_back_dropped_or_undone_can_be_saved_again() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let mut ctx = db.context();
        let one = ctx.add(note("one"));

        let mut tx = db.begin().await.unwrap();
        ctx.save_changes_in(&mut tx).await.unwrap();
        tx.rollback().await.unwrap();
        assert_eq!(ctx.entry(one).state(), EntityState::Added);

        let mut tx = db.begin().await.unwrap();
        ctx.save_changes_in(&mut tx).await.unwrap();
        drop(tx);

        // Undone alone, the transaction around it is committed.
        let mut tx = db.begin().await.unwrap();
        tx.savepoint(async |tx| {
            ctx.save_changes_in(tx).await?;
            Err::<(), _>(Error::application("undo it"))
        })
        .await
        .unwrap_err();
        tx.commit().await.unwrap();
        assert!(ctx.find::<Note>(1).await.unwrap().is_none());

        // SQLite ends the transaction by itself.
        let mut tx = db.begin().await.unwrap();
        ctx.save_changes_in(&mut tx).await.unwrap();
        sqlx::raw_sql(
            "CREATE TRIGGER never BEFORE DELETE ON note BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        let deleted = sqlx::query("DELETE FROM note").execute(&mut *tx).await;
        assert!(deleted.is_err());
        assert_eq!(
            tx.commit().await.unwrap_err().kind(),
            ErrorKind::TransactionEnded
        );

        ctx[one].text.push('!');
        assert_eq!(ctx.save_changes().await.unwrap().inserted, 1);
        let all = Note::query().all(&db).await.unwrap();
        assert_eq!(all.len(), 1, "{mode:?}");
        assert_eq!(all[0], ctx[one]);
    }
}

#[tokio::test]
async fn a_second_save_is_refused_while_the_transaction_is_open() {
    let db = notes(Mode::Inline).await;
    let mut ctx = db.context();
    ctx.add(note("one"));
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    let two = ctx.add(note("two"));
    for error in [
        ctx.save_changes().await.unwrap_err(),
        ctx.save_changes_in(&mut tx).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("still open"), "{error}");
    }
    tx.commit().await.unwrap();
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 1);
    assert_eq!(ctx[two].id, 2);
}

#[tokio::test]
async fn it_works_within_write_and_what_was_changed_since_is_saved_next() {
    let db = notes(Mode::Inline).await;
    let mut ctx = db.context();
    let (one, two, three) = (
        ctx.add(note("one")),
        ctx.add(note("two")),
        ctx.add(note("three")),
    );
    db.write(async |tx| {
        ctx.save_changes_in(tx).await?;
        ctx[one].text = "changed since".to_owned();
        ctx.remove(two);
        ctx.detach(three);
        Ok(())
    })
    .await
    .unwrap();
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.inserted, saved.updated, saved.deleted), (0, 1, 1));
    let texts: Vec<_> = Note::query().all(&db).await.unwrap();
    let texts: Vec<_> = texts.iter().map(|note| &note.text[..]).collect();
    assert_eq!(texts, ["changed since", "three"]);
}

#[tokio::test]
async fn a_refused_save_leaves_the_transaction_as_it_was() {
    let db = notes(Mode::Inline).await;
    execute(&db, "CREATE UNIQUE INDEX texts ON note (text)").await;
    let mut ctx = db.context();
    ctx.add(note("fine"));
    let twice = ctx.add(note("fine"));
    let mut tx = db.begin().await.unwrap();
    sqlx::query("INSERT INTO note (text) VALUES ('raw')")
        .execute(&mut *tx)
        .await
        .unwrap();
    let error = ctx.save_changes_in(&mut tx).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    ctx[twice].text = "finer".to_owned();
    ctx.save_changes_in(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!ctx.has_changes() || ctx.save_changes().await.unwrap().inserted == 0);
    assert_eq!(Note::query().count(&db).await.unwrap(), 3);
}

#[tokio::test]
async fn a_commit_that_fails_leaves_the_context_as_it_was() {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Stamped>().await.unwrap();
    let mut ctx = db.context();
    let one = ctx.add(stamped(None));
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    sqlx::query("PRAGMA defer_foreign_keys = ON")
        .execute(&mut *tx)
        .await
        .unwrap();
    sqlx::query("INSERT INTO stamped (other, version, seq) VALUES (99, 1, 0)")
        .execute(&mut *tx)
        .await
        .unwrap();
    let error = tx.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignKey);
    assert!(ctx.find::<Stamped>(1).await.unwrap().is_none());
    assert_eq!(ctx.entry(one).state(), EntityState::Added);
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 1);
}

#[tokio::test]
async fn bound_contexts_and_other_databases_are_refused() {
    let (db, other) = (notes(Mode::Inline).await, notes(Mode::Inline).await);
    let (mut tx, mut foreign) = (db.begin().await.unwrap(), other.begin().await.unwrap());
    let mut ctx = db.context();
    ctx.add(note("one"));
    let error = ctx.save_changes_in(&mut foreign).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let mut bound = tx.context();
    bound.add(note("two"));
    let error = bound.save_changes_in(&mut foreign).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("bound"), "{error}");
}

/// A transaction that is committed by another task, while this one reads: one row is one entity, whatever is seen when.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_become_visible_while_they_are_read_are_the_entities_that_were_saved() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        for round in 0..100 {
            let mut ctx = db.context();
            let one = ctx.add(note("one"));
            let mut tx = db.begin().await.unwrap();
            ctx.save_changes_in(&mut tx).await.unwrap();
            let commit = tokio::spawn(tx.commit());
            let found = loop {
                let newest = Note::query().order_by(Note::ID.desc()).limit(1);
                let found = newest.filter(Note::ID.gt(round)).load(&mut ctx).await;
                if let [found] = found.unwrap()[..] {
                    break found;
                }
            };
            assert_eq!(found, one, "{mode:?}");
            assert_eq!(ctx.len(), 1);
            commit.await.unwrap().unwrap();
        }
    }
}

/// The guard is gone, so nobody could have ended what the error said was open.
#[tokio::test]
async fn a_dropped_commit_is_waited_for() {
    for mode in Mode::ALL {
        for polls in 0..4 {
            let db = notes(mode).await;
            let mut ctx = db.context();
            ctx.add(note("once"));
            let mut tx = db.begin().await.unwrap();
            ctx.save_changes_in(&mut tx).await.unwrap();
            drop(dropped_after(polls, tx.commit()).await);
            ctx.save_changes().await.unwrap();
            assert_eq!(
                Note::query().count(&db).await.unwrap(),
                1,
                "{mode:?} {polls}"
            );
        }
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Item {
    #[entity(id)]
    id: i64,
    name: String,
    #[entity(created_at)]
    made: DateTime<Utc>,
    #[entity(updated_at)]
    changed: DateTime<Utc>,
    #[entity(version)]
    version: i64,
}

fn item(name: &str) -> Item {
    Item {
        id: 0,
        name: name.to_owned(),
        made: DateTime::default(),
        changed: DateTime::default(),
        version: 0,
    }
}

async fn shop() -> (Database, Context<'static>, Tracked<Item>) {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Item>().await.unwrap();
    let mut ctx = db.context();
    let tea = ctx.add(item("tea"));
    ctx.save_changes().await.unwrap();
    (db, ctx, tea)
}

/// What it read would be older than what is about to be committed.
#[tokio::test]
async fn what_is_in_an_open_transaction_is_not_reloaded() {
    let (db, mut ctx, tea) = shop().await;
    ctx[tea].name = "coffee".to_owned();
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    let error = ctx.reload(tea).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("end its transaction"), "{error}");
    assert_eq!(ctx[tea].name, "coffee");
    tx.commit().await.unwrap();
    assert!(ctx.reload(tea).await.unwrap());
    assert_eq!(ctx[tea].name, "coffee");
    assert_eq!(ctx[tea], Item::find(&db, 1).await.unwrap().unwrap());
}

#[tokio::test]
async fn a_removal_in_an_open_transaction_is_not_reloaded() {
    let (db, mut ctx, tea) = shop().await;
    ctx.remove(tea);
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    let error = ctx.reload(tea).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(ctx.entry(tea).state(), EntityState::Deleted);
    tx.rollback().await.unwrap();
    assert!(ctx.reload(tea).await.unwrap());
    assert_eq!(ctx.entry(tea).state(), EntityState::Unchanged);
}

#[tokio::test]
async fn times_that_were_set_since_are_saved_next() {
    let (db, mut ctx, tea) = shop().await;
    let new = ctx.add(item("new"));
    ctx[tea].name.push('!');
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    let time = Utc.with_ymd_and_hms(2013, 1, 2, 3, 4, 5).unwrap();
    (ctx[new].made, ctx[new].changed) = (time, time);
    ctx[tea].changed = time;
    tx.commit().await.unwrap();
    assert_eq!(ctx.find::<Item>(2).await.unwrap(), Some(new));
    assert_eq!((ctx[new].made, ctx[tea].changed), (time, time));
    assert_eq!(ctx.entry(new).modified_columns(), ["made", "changed"]);
    assert_eq!(ctx.entry(tea).modified_columns(), ["changed"]);
    assert_eq!(ctx.save_changes().await.unwrap().updated, 2);
    assert_eq!(Item::find(&db, 2).await.unwrap().unwrap().made, time);
}

#[tokio::test]
async fn values_and_marks_that_were_set_since_are_saved_next() {
    for committed in [true, false] {
        let (db, mut ctx, tea) = shop().await;
        let new = ctx.add(item("new"));
        ctx[tea].name = "coffee".to_owned();
        let mut tx = db.begin().await.unwrap();
        ctx.save_changes_in(&mut tx).await.unwrap();

        let error = ctx.set_values(tea, &json!({ "version": 1 })).unwrap_err();
        assert_eq!(
            (error.kind(), error.column()),
            (ErrorKind::Refused, Some("version"))
        );
        let double = Item {
            id: 1,
            ..item("double")
        };
        let error = ctx.update(double).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyTracked);
        ctx.set_values(tea, &json!({ "name": "cocoa" })).unwrap();
        assert!(ctx.mark_modified(new, Item::NAME));
        if committed {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }

        let saved = ctx.save_changes().await.unwrap();
        let expected = if committed { (0, 2) } else { (1, 1) };
        assert_eq!((saved.inserted, saved.updated), expected);
        let rows = Item::query().order_by(Item::ID.asc()).all(&db).await;
        assert_eq!(rows.unwrap(), [ctx[tea].clone(), ctx[new].clone()]);
        assert_eq!(ctx[tea].name, "cocoa");
    }
}

/// A row was replaced, and the replacement removed as well: only the second of them is gone by the rollback.
#[tokio::test]
async fn a_row_that_is_to_be_deleted_is_not_found_though_its_key_was_removed_twice() {
    let (db, mut ctx, tea) = shop().await;
    ctx.remove(tea);
    let again = ctx.add(Item {
        id: 1,
        ..item("again")
    });
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    ctx.remove(again);
    tx.rollback().await.unwrap();
    assert_eq!(ctx.find::<Item>(1).await.unwrap(), None);
    assert_eq!(ctx.entry(again).state(), EntityState::Detached);
    assert_eq!(ctx.len(), 1);
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.deleted, saved.inserted), (1, 0));
    assert_eq!(ctx.len(), 0);
}
