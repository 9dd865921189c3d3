//! Sessions side by side: the story as a whole. What may happen inside of one is in `sessions`.

use anabranch::{engine::Isolation, prelude::*};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "accounts")]
struct Account {
    #[entity(id)]
    id: i64,
    owner: String,
    balance: i64,
}

fn account(owner: &str, balance: i64) -> Account {
    Account {
        id: 0,
        owner: owner.to_owned(),
        balance,
    }
}

async fn bank() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Account>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(account("ada", 10));
    ctx.add(account("bob", 20));
    ctx.save_changes().await.unwrap();
    db
}

#[tokio::test]
async fn two_sessions_write_side_by_side_and_both_commit() {
    let db = bank().await;
    let mut one = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let mut two = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    assert!(!one.is_exclusive() && !two.is_exclusive());
    let mut ctx = one.context();
    let eve = ctx.add(account("eve", 1));
    ctx.save_changes().await.unwrap();
    let first = ctx[eve].id;
    let mut ctx = two.context();
    let dan = ctx.add(account("dan", 2));
    ctx.save_changes().await.unwrap();
    assert_ne!(ctx[dan].id, first);
    // Nobody sees it yet, but each its own.
    assert_eq!(Account::query().count(&db).await.unwrap(), 2);
    assert_eq!(Account::query().count(&mut *two).await.unwrap(), 3);
    two.commit().await.unwrap();
    one.commit().await.unwrap();
    assert_eq!(Account::query().count(&db).await.unwrap(), 4);
    assert_eq!(db.statistics().session_alarms, 0);
}

#[tokio::test]
async fn a_row_that_was_read_and_changed_elsewhere_is_a_conflict() {
    let db = bank().await;
    let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let mut ctx = s.context();
    let ada = ctx.find::<Account>(1).await.unwrap().unwrap();
    ctx[ada].balance += 5;
    ctx.save_changes().await.unwrap();
    let mut other = db.context();
    let same = other.find::<Account>(1).await.unwrap().unwrap();
    other[same].balance = 100;
    other.save_changes().await.unwrap();
    let error = s.commit().await.unwrap_err();
    assert!(error.is_conflict() && error.is_retryable(), "{error}");
    assert_eq!(error.table(), Some("accounts"));
    assert_eq!(error.key(), [anabranch::value::Value::Integer(1)]);
    assert!(error.statement().is_some());
    let ada = anabranch::query::find::<Account>(&db, 1).await.unwrap();
    assert_eq!(ada.unwrap().balance, 100);
}

#[tokio::test]
async fn the_closure_is_run_again_until_it_fits() {
    let db = bank().await;
    let runs = std::cell::Cell::new(0);
    let balance = db
        .concurrent(async |s| {
            runs.set(runs.get() + 1);
            let mut ctx = s.context();
            let ada = ctx.find::<Account>(1).await?.unwrap();
            ctx[ada].balance += 5;
            ctx.save_changes().await?;
            let balance = ctx[ada].balance;
            if runs.get() < 3 {
                let connection = rusqlite::Connection::open(db.path()).unwrap();
                let bump = "UPDATE accounts SET balance = balance + 100 WHERE id = 1";
                connection.execute(bump, []).unwrap();
            }
            Ok(balance)
        })
        .await
        .unwrap();
    assert_eq!((runs.get(), balance), (3, 215));
}

#[tokio::test]
async fn raw_sql_and_entities_see_each_other_in_a_session() {
    let db = bank().await;
    let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    sqlx::query("UPDATE accounts SET balance = balance + ?2 WHERE id = ?1")
        .bind(1)
        .bind(7)
        .execute(&mut *s)
        .await
        .unwrap();
    let ada = anabranch::query::find::<Account>(&mut *s, 1).await.unwrap();
    assert_eq!(ada.unwrap().balance, 17);
    let sum: i64 = sqlx::query_scalar("SELECT sum(balance) FROM accounts")
        .fetch_one(&mut *s)
        .await
        .unwrap();
    assert_eq!(sum, 37);
    s.commit().await.unwrap();
    let ada = anabranch::query::find::<Account>(&db, 1).await.unwrap();
    assert_eq!(ada.unwrap().balance, 17);
}

/// The keys of an open transaction are not read for a session, and what is read for it is not taken for the largest.
#[tokio::test]
async fn keys_of_a_transaction_and_of_a_session_beside_it_differ() {
    let db = bank().await;
    let mut tx = db.begin().await.unwrap();
    let mut ctx = tx.context();
    ctx.add(account("eve", 1));
    ctx.add(account("dan", 2));
    ctx.save_changes().await.unwrap();
    drop(ctx);
    let undone = tx.savepoint(async |_| Err::<(), _>(Error::application("it is undone")));
    undone.await.unwrap_err();
    let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let mut ctx = s.context();
    ctx.add(account("fay", 3));
    ctx.save_changes().await.unwrap();
    drop(ctx);
    let mut ctx = tx.context();
    ctx.add(account("gus", 4));
    ctx.save_changes().await.unwrap();
    drop(ctx);
    tx.commit().await.unwrap();
    s.commit().await.unwrap();
    assert_eq!(Account::query().count(&db).await.unwrap(), 6);
}

#[tokio::test]
async fn a_refused_save_in_a_session_does_not_forget_the_keys_of_raw_inserts() {
    let db = bank().await;
    let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    sqlx::query("INSERT INTO accounts (owner, balance) VALUES ('eve', 1)")
        .execute(&mut *s)
        .await
        .unwrap();
    let mut ctx = s.context();
    ctx.add(Account {
        id: 1,
        ..account("ada", 1)
    });
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    ctx.clear();
    ctx.add(account("dan", 2));
    ctx.save_changes().await.unwrap();
    drop(ctx);
    s.commit().await.unwrap();
    assert_eq!(Account::query().count(&db).await.unwrap(), 4);
}

#[tokio::test]
async fn a_key_of_a_session_that_is_over_is_no_limit_for_the_next() {
    let db = bank().await;
    let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    sqlx::query("INSERT INTO accounts VALUES (9223372036854775807, 'eve', 1)")
        .execute(&mut *s)
        .await
        .unwrap();
    s.rollback().await.unwrap();
    let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let mut ctx = s.context();
    let dan = ctx.add(account("dan", 2));
    ctx.save_changes().await.unwrap();
    assert_eq!(ctx[dan].id, 3);
}

/// Another process committed rows of which the writer has not heard yet, and the session sees them.
#[tokio::test]
async fn keys_in_a_session_are_beyond_those_of_another_process() {
    let db = bank().await;
    let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let mut ctx = s.context();
    ctx.add(account("eve", 1));
    ctx.save_changes().await.unwrap();
    drop(ctx);
    s.commit().await.unwrap();
    let other = rusqlite::Connection::open(db.path()).unwrap();
    for key in ["NULL", "7"] {
        let sql = format!("INSERT INTO accounts VALUES ({key}, 'dan', 2)");
        other.execute(&sql, []).unwrap();
    }
    let mut s = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let mut ctx = s.context();
    let fay = ctx.add(account("fay", 3));
    ctx.save_changes().await.unwrap();
    assert_eq!(ctx[fay].id, 8);
    drop(ctx);
    other
        .execute("INSERT INTO accounts VALUES (9, 'gus', 4)", [])
        .unwrap();
    let next: i64 = sqlx::query_scalar("SELECT next_id('accounts')")
        .fetch_one(&mut *s)
        .await
        .unwrap();
    assert_eq!(next, 10);
    s.commit().await.unwrap();
}

#[tokio::test]
async fn what_an_exclusive_transaction_wrote_is_known_to_snapshot_sessions() {
    let db = bank().await;
    let sum = "SELECT sum(balance) FROM accounts";
    let write = "UPDATE accounts SET balance = balance + 1 WHERE id = ?";
    let add = async |id: i64| {
        db.write(async |tx| {
            sqlx::query(write).bind(id).execute(&mut *tx).await?;
            Ok(())
        })
        .await
        .unwrap();
    };
    // From now on it is noted what is written.
    let first = db.begin_concurrent(Isolation::Snapshot).await.unwrap();
    first.rollback().await.unwrap();
    for (id, conflicts) in [(1, false), (2, true)] {
        let mut s = db.begin_concurrent(Isolation::Snapshot).await.unwrap();
        let _: i64 = sqlx::query_scalar(sum).fetch_one(&mut *s).await.unwrap();
        sqlx::query(write).bind(2).execute(&mut *s).await.unwrap();
        add(id).await;
        let committed = s.commit().await;
        assert_eq!(
            committed.is_err_and(|error| error.is_conflict()),
            conflicts,
            "{id}"
        );
    }
    // All rows at once, of which SQLite's hook does not tell.
    db.write(async |tx| {
        sqlx::query("CREATE TABLE kept AS SELECT * FROM accounts")
            .execute(&mut *tx)
            .await?;
        Ok(())
    })
    .await
    .unwrap();
    let mut s = db.begin_concurrent(Isolation::Snapshot).await.unwrap();
    sqlx::query(write).bind(2).execute(&mut *s).await.unwrap();
    db.write(async |tx| {
        sqlx::query("DELETE FROM accounts")
            .execute(&mut *tx)
            .await?;
        Ok(())
    })
    .await
    .unwrap();
    assert!(s.commit().await.unwrap_err().is_conflict());
    assert_eq!(db.statistics().foreign_commits, 0);
}

#[tokio::test]
async fn a_spawned_closure_may_borrow_and_give_away() {
    async fn open(db: &Database, owner: &str, words: Vec<String>) -> Result<i64, Error> {
        db.concurrent(async |s| {
            let mut ctx = s.context();
            let new = ctx.add(account(owner, i64::try_from(words.len()).unwrap_or(0)));
            ctx.save_changes().await?;
            let id = ctx[new].id;
            drop(words);
            Ok(id)
        })
        .await
    }
    let db = bank().await;
    let task = tokio::spawn({
        let db = db.clone();
        async move { open(&db, "eve", vec!["a".to_owned()]).await }
    });
    assert_eq!(task.await.unwrap().unwrap(), 3);
}
