//! `db.context().concurrent()`: a context whose save commits as a session.

use anabranch::{engine::Isolation, prelude::*};
use anabranch_tests::{Mode, dropped_after};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "accounts")]
struct Account {
    #[entity(id)]
    id: i64,
    balance: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

fn account(balance: i64) -> Account {
    Account {
        id: 0,
        balance,
        seq: CommitSeq::default(),
    }
}

async fn bank(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<Account>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(account(10));
    ctx.add(account(20));
    ctx.save_changes().await.unwrap();
    db
}

async fn set(db: &Database, id: i64, balance: i64) {
    let mut ctx = db.context();
    let account = ctx.find::<Account>(id).await.unwrap().unwrap();
    ctx[account].balance = balance;
    ctx.save_changes().await.unwrap();
}

#[tokio::test]
async fn its_reads_see_one_snapshot_and_its_save_validates_them() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        let mut ctx = db.context().concurrent();
        let first = ctx.find::<Account>(1).await.unwrap().unwrap();
        set(&db, 2, 99).await;
        let second = ctx.find::<Account>(2).await.unwrap().unwrap();
        assert_eq!(ctx[second].balance, 20, "as it was when the first was read");
        ctx[first].balance = 11;
        let error = ctx.save_changes().await.unwrap_err();
        assert!(
            error.is_conflict() && error.conflicts().is_empty(),
            "{error}"
        );
        let refused = ctx.save_changes().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        ctx.clear();
        let second = ctx.find::<Account>(2).await.unwrap().unwrap();
        assert_eq!(ctx[second].balance, 99);
        ctx[second].balance = 100;
        let saved = ctx.save_changes().await.unwrap();
        assert_eq!(saved.updated, 1);
        assert_eq!(saved.commit_seq, Some(ctx[second].seq));
        db.close().await.unwrap();
    }
}

#[tokio::test]
async fn entities_get_their_keys_and_later_saves_their_own_snapshot() {
    let db = bank(Mode::Inline).await;
    let mut ctx = db.context().concurrent();
    let new = ctx.add(account(1));
    let other = ctx.add(account(2));
    ctx.save_changes().await.unwrap();
    assert_eq!((ctx[new].id, ctx[other].id), (3, 4));
    set(&db, 1, 50).await;
    let first = ctx.find::<Account>(1).await.unwrap().unwrap();
    assert_eq!(ctx[first].balance, 50);
    ctx[new].balance = 3;
    assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
}

#[tokio::test]
async fn a_save_that_is_refused_in_the_session_can_be_mended_and_saved() {
    let db = bank(Mode::Inline).await;
    let mut ctx = db.context().concurrent();
    let mut taken = account(1);
    taken.id = 2;
    let wrong = ctx.add(taken);
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    ctx.detach(wrong);
    ctx.add(account(1));
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 1);
}

#[tokio::test]
async fn under_snapshot_a_row_that_was_only_read_may_change() {
    let db = bank(Mode::Inline).await;
    let mut ctx = db.context().concurrent_with(Isolation::Snapshot);
    let first = ctx.find::<Account>(1).await.unwrap().unwrap();
    ctx.find::<Account>(2).await.unwrap();
    set(&db, 2, 99).await;
    ctx[first].balance = 11;
    ctx.save_changes().await.unwrap();
}

#[tokio::test]
async fn a_save_that_is_dropped_is_written_once_or_not_at_all() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        for polls in 0..12 {
            let before = Account::query().count(&db).await.unwrap();
            let mut ctx = db.context().concurrent();
            ctx.add(account(polls));
            dropped_after(usize::try_from(polls).unwrap(), ctx.save_changes()).await;
            let written = match ctx.settle().await {
                Ok(()) => !ctx.has_changes(),
                Err(error) => panic!("{error}"),
            };
            let after = Account::query().count(&db).await.unwrap();
            assert_eq!(
                after - before,
                u64::from(written),
                "dropped after {polls} polls"
            );
            if !written {
                ctx.clear();
                ctx.add(account(polls));
                ctx.save_changes().await.unwrap();
            }
        }
        db.close().await.unwrap();
    }
}
