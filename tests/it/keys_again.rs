//! Keys that the writer gives, beside those that are or were of others: of a row that is gone, which SQLite gives again,
//! and of one that the same save inserts.

use anabranch::prelude::EntityState;
use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
    outsider,
};

/// The new row got the key of the one that was to be deleted, and was deleted in its place; the save told of success.
#[tokio::test]
async fn a_new_row_is_not_taken_for_one_that_the_same_save_deletes_or_changes() {
    for mode in Mode::ALL {
        for removes in [true, false] {
            let db = notes(mode).await;
            let mut ctx = db.context();
            let old = ctx.add(note("old"));
            ctx.save_changes().await.unwrap();
            execute(&db, "DELETE FROM note").await;
            let new = ctx.add(note("new"));
            if removes {
                ctx.remove(old);
            } else {
                ctx[old].text.push('!');
            }
            let error = ctx.save_changes().await.unwrap_err();
            assert_eq!(error.conflicts().len(), 1, "{mode:?}");
            assert_eq!(error.conflicts()[0].database, None);
            ctx.store_wins(&error).unwrap();
            ctx.save_changes().await.unwrap();
            assert_eq!(Note::query().all(&db).await.unwrap(), [ctx[new].clone()]);
        }
    }
}

/// Two entities had one key; a change of the old one went into the new row.
#[tokio::test]
async fn an_entity_whose_key_was_given_again_is_no_longer_tracked() {
    let db = notes(Mode::Inline).await;
    let mut ctx = db.context();
    let old = ctx.add(note("old"));
    ctx.save_changes().await.unwrap();
    execute(&db, "DELETE FROM note").await;
    let new = ctx.add(note("new"));
    ctx.save_changes().await.unwrap();
    assert_eq!(ctx[new].id, 1);
    assert_eq!(ctx.get(old), None);
    assert_eq!(ctx.len(), 1);
    assert_eq!(ctx.find::<Note>(1).await.unwrap(), Some(new));
}

/// Keys are given before the first row is inserted, so that the key of another one was given too: the save failed, and
/// failed again.
#[tokio::test]
async fn a_key_that_the_application_chose_is_not_given_in_the_same_save() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let mut ctx = db.context();
        let given = [ctx.add(note("first")), ctx.add(note("second"))];
        let chosen = [1, 2, 4].map(|id| {
            ctx.add(Note {
                id,
                ..note("chosen")
            })
        });
        ctx.save_changes().await.unwrap();
        assert_eq!(given.map(|it| ctx[it].id), [5, 6], "{mode:?}");
        assert_eq!(chosen.map(|it| ctx[it].id), [1, 2, 4]);
        assert_eq!(Note::query().count(&db).await.unwrap(), 5);
    }
}

/// The new entity was let go before its save was answered, and the old one stayed: changes of it reached the new row.
#[tokio::test]
async fn an_entity_whose_key_was_given_to_one_that_was_detached_is_gone_too() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let mut ctx = db.context();
        let stale = ctx.add(note("old"));
        ctx.save_changes().await.unwrap();
        outsider(db.path()).execute("DELETE FROM note", []).unwrap();
        let new = ctx.add(note("new"));
        let mut tx = db.begin().await.unwrap();
        ctx.save_changes_in(&mut tx).await.unwrap();
        ctx.detach(new);
        tx.commit().await.unwrap();
        ctx.settle().await.unwrap();
        assert_eq!(ctx.entry(stale).state(), EntityState::Detached, "{mode:?}");
        let row = Note::find(&db, 1).await.unwrap().unwrap();
        assert_eq!(
            row.text, "new",
            "the premise: its key is that of the old one"
        );
    }
}
