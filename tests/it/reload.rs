//! Entities against their rows: read again, looked at, reset, written whole.

use std::pin::pin;

use anabranch::prelude::*;
use anabranch_tests::{Mode, execute, outsider, until};
use futures_util::FutureExt;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Item {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    name: String,
    price: i64,
    #[entity(version)]
    version: i64,
    #[entity(commit_seq)]
    commit_seq: CommitSeq,
}

fn item(name: &str) -> Item {
    Item {
        id: 0,
        name: name.to_owned(),
        price: 1,
        version: 0,
        commit_seq: CommitSeq(0),
    }
}

async fn shop(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<Item>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(item("pot"));
    ctx.add(item("lid"));
    ctx.save_changes().await.unwrap();
    db
}

async fn stored(db: &Database, id: i64) -> Item {
    Item::find(db, id).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_reload_takes_the_row_and_drops_local_changes_and_removal() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        let mut ctx = db.context();
        let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
        ctx[pot].name = "kettle".to_owned();
        ctx.mark_modified(pot, Item::PRICE);
        ctx.remove(pot);
        execute(&db, "UPDATE item SET price = 9, version = 5 WHERE id = 1").await;
        assert!(ctx.reload(pot).await.unwrap());
        assert_eq!(ctx.entry(pot).state(), EntityState::Unchanged);
        assert_eq!(ctx[pot], stored(&db, 1).await);
        assert_eq!(ctx.save_changes().await.unwrap().updated, 0);
        ctx[pot].price = 10;
        assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
        assert_eq!(stored(&db, 1).await.version, 6);
    }
}

#[tokio::test]
async fn a_reload_without_a_row_detaches_what_was_stored_and_keeps_what_is_added() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
    let lid = ctx.find::<Item>(2).await.unwrap().unwrap();
    let new = ctx.add(item("new"));
    ctx.remove(lid);
    execute(&db, "DELETE FROM item").await;
    for handle in [pot, lid, new] {
        assert!(!ctx.reload(handle).await.unwrap());
    }
    assert_eq!(ctx.entry(pot).state(), EntityState::Detached);
    assert_eq!(ctx.entry(lid).state(), EntityState::Detached);
    assert_eq!(ctx.entry(new).state(), EntityState::Added);
    assert!(!ctx.reload(pot).await.unwrap(), "a stale handle");
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 1);
}

#[tokio::test]
async fn an_added_entity_becomes_the_row_that_has_its_key() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let pot = ctx.add(Item {
        id: 1,
        ..item("mine")
    });
    assert!(ctx.reload(pot).await.unwrap());
    assert_eq!(ctx.entry(pot).state(), EntityState::Unchanged);
    assert_eq!(ctx[pot].name, "pot");
    assert_eq!(ctx.find::<Item>(1).await.unwrap(), Some(pot));
    let lid = ctx.find::<Item>(2).await.unwrap().unwrap();
    let twin = ctx.add(Item { id: 2, ..item("x") });
    let error = ctx.reload(twin).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyTracked);
    assert_eq!(ctx[twin].name, "x");
    ctx.detach(twin);
    ctx[lid].price = 3;
    assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
}

#[tokio::test]
async fn database_values_change_nothing_in_the_context() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
    ctx[pot].price = 3;
    execute(&db, "UPDATE item SET price = 9 WHERE id = 1").await;
    let there = ctx.database_values(pot).await.unwrap().unwrap();
    assert_eq!((there.price, ctx[pot].price), (9, 3));
    assert_eq!(ctx.entry(pot).original_value(Item::PRICE), Some(1));
    let new = ctx.add(item("new"));
    assert_eq!(ctx.database_values(new).await.unwrap(), None);
    ctx.detach(pot);
    assert_eq!(ctx.database_values(pot).await.unwrap(), None);
}

#[tokio::test]
async fn a_context_of_a_transaction_reads_what_the_transaction_wrote() {
    let db = shop(Mode::Inline).await;
    db.write(async |tx| {
        let mut ctx = tx.context();
        let pot = ctx.find::<Item>(1).await?.unwrap();
        ctx[pot].name = "kettle".to_owned();
        let raw = sqlx::query("UPDATE item SET price = 9 WHERE id = 1");
        raw.execute(ctx.transaction().unwrap()).await?;
        assert_eq!(ctx.database_values(pot).await?.unwrap().price, 9);
        assert!(ctx.reload(pot).await?);
        assert_eq!((ctx[pot].name.as_str(), ctx[pot].price), ("pot", 9));
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_detached_entity_is_written_whole_if_its_version_is_the_rows() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        let mut read = stored(&db, 1).await;
        read.name = "kettle".to_owned();
        let mut ctx = db.context();
        let pot = ctx.update(read.clone()).unwrap();
        assert_eq!(ctx.entry(pot).state(), EntityState::Modified);
        execute(&db, "UPDATE item SET price = 9 WHERE id = 1").await;
        assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
        assert_eq!(ctx[pot], stored(&db, 1).await);
        assert_eq!((ctx[pot].price, ctx[pot].version), (1, 2), "all columns");
        assert!(!ctx.has_changes());

        let mut stale = db.context();
        stale.update(read).unwrap();
        assert!(stale.save_changes().await.unwrap_err().is_conflict());
    }
}

#[tokio::test]
async fn what_is_updated_without_a_key_is_added() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let new = ctx.update(item("new")).unwrap();
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 1);
    assert_eq!(ctx[new].id, 3);
    let error = ctx.update(stored(&db, 3).await).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyTracked);
}

#[tokio::test]
async fn a_marked_column_is_written_though_it_is_equal() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
    assert!(!ctx.mark_modified(pot, Item::ID) && !ctx.mark_modified(pot, Item::COMMIT_SEQ));
    assert!(ctx.mark_modified(pot, Item::NAME));
    assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
    assert_eq!(stored(&db, 1).await.version, 2);
    assert_eq!(ctx.save_changes().await.unwrap().updated, 0, "once");
}

#[tokio::test]
async fn a_reset_entity_is_not_saved() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
    let lid = ctx.find::<Item>(2).await.unwrap().unwrap();
    ctx[pot].name = "kettle".to_owned();
    ctx[pot].price = 5;
    ctx.remove(lid);
    assert!(ctx.reset_column(pot, Item::NAME) && ctx.reset(lid));
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.updated, saved.deleted), (1, 0));
    assert_eq!((ctx[pot].name.as_str(), ctx[pot].price), ("pot", 5));
}

/// The save is dropped after it was committed and before it was answered: calls that do not wait know by then.
#[tokio::test]
async fn a_dropped_save_that_was_committed_is_settled_before_anything_else() {
    let db = shop(Mode::Threaded).await;
    let mut ctx = db.context();
    let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
    let lid = ctx.find::<Item>(2).await.unwrap().unwrap();
    ctx[pot].name = "kettle".to_owned();
    ctx.remove(lid);
    let other = outsider(db.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    {
        let mut save = pin!(ctx.save_changes());
        assert!(save.as_mut().now_or_never().is_none());
        other.execute_batch("ROLLBACK").unwrap();
        until("the save is committed", async || {
            Item::query().count(&db).await.unwrap() == 1
        })
        .await;
    }
    assert!(!ctx.reload(lid).await.unwrap());
    assert_eq!(ctx.entry(lid).state(), EntityState::Detached);
    assert!(ctx.reset(pot), "to what was saved");
    assert_eq!((ctx[pot].name.as_str(), ctx[pot].version), ("kettle", 2));
    assert!(!ctx.has_changes());
}

/// A save that was dropped while it waited in the queue is known to be withdrawn.
#[tokio::test]
async fn a_removal_whose_save_was_withdrawn_is_reset() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
    ctx.remove(pot);
    let held = db.begin().await.unwrap();
    assert!(ctx.save_changes().now_or_never().is_none());
    assert!(ctx.reset(pot));
    held.rollback().await.unwrap();
    assert_eq!(ctx.save_changes().await.unwrap().deleted, 0);
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Folder {
    #[entity(id)]
    id: i64,
    #[entity(references = Folder)]
    parent: Option<i64>,
}

/// What was given to `update` has no original: its own reference says what is deleted first.
#[tokio::test]
async fn detached_entities_are_removed_in_either_order() {
    for order in [[0, 1], [1, 0]] {
        let db = Mode::Inline.temporary().await;
        db.create_tables::<Folder>().await.unwrap();
        let mut ctx = db.context();
        let folders = [(1, None), (2, Some(1))].map(|(id, parent)| Folder { id, parent });
        for folder in &folders {
            ctx.add(folder.clone());
        }
        ctx.save_changes().await.unwrap();
        ctx.clear();
        for index in order {
            let folder = ctx.update(folders[index].clone()).unwrap();
            ctx.remove(folder);
        }
        assert_eq!(ctx.save_changes().await.unwrap().deleted, 2);
    }
}

/// Both were the row then, the removed one and the new one, and no save could succeed.
#[tokio::test]
async fn a_new_entity_is_not_reloaded_as_the_row_of_a_removed_one() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
    ctx.remove(pot);
    let new = ctx.add(Item {
        id: 1,
        ..item("new")
    });
    let error = ctx.reload(new).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyTracked);
    ctx.save_changes().await.unwrap();
    assert_eq!(stored(&db, 1).await, ctx[new]);
}
