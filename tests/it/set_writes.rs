//! Statements that write as many rows as they find, through the writer's queue and in transactions.

use std::pin::pin;

use anabranch::{
    entity::CommitSeq,
    prelude::*,
    sql::{Executor, Statement, Write, WriteExecutor, Written},
    value::Value,
};
use anabranch_tests::{Mode, ask, dropped_after, execute, start, statement, write_of};
use futures_util::{FutureExt, future::join_all};

type Result<T = ()> = anabranch::error::Result<T>;

#[derive(Debug, Entity, PartialEq)]
#[entity(table = "accounts")]
struct Account {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    owner: String,
    balance: i64,
    #[entity(commit_seq)]
    commit_seq: CommitSeq,
}

const DOUBLE: &str = "UPDATE accounts SET balance = balance * 2 WHERE balance > 10";

/// Accounts of 10, 20 and 30, in three commits.
async fn bank(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<Account>().await.unwrap();
    let mut ctx = db.context();
    for (owner, balance) in [("ada", 10), ("bob", 20), ("cy", 30)] {
        ctx.add(Account {
            id: 0,
            owner: owner.to_owned(),
            balance,
            commit_seq: CommitSeq(0),
        });
        ctx.save_changes().await.unwrap();
    }
    db
}

/// What one column of the accounts holds.
async fn all(db: &Database, column: &str) -> Vec<i64> {
    let found = ask(&format!("SELECT {column} FROM accounts ORDER BY id"));
    let found = Executor::read(db, found).await.unwrap();
    found
        .into_iter()
        .map(|value| match value {
            Value::Integer(value) => value,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn rows(written: &Written, statement: usize) -> Vec<Vec<Value>> {
    written.rows(statement).map(<[Value]>::to_vec).collect()
}

/// What a write tells, wherever it runs.
async fn tells<'c>(executor: impl WriteExecutor<'c>) {
    let write = write_of(&[
        DOUBLE,
        "UPDATE accounts SET balance = 0 WHERE balance > 1000",
        "SELECT balance FROM accounts ORDER BY id",
        "DELETE FROM accounts WHERE owner = 'ada' RETURNING balance, owner",
    ]);
    let written = executor.write(write).await.unwrap();
    assert_eq!(written.changed(), 3);
    let changed: Vec<u64> = (0..4).map(|step| written.changed_by(step)).collect();
    assert_eq!(changed, [2, 0, 0, 1]);
    let balances = [10, 40, 60].map(|balance| vec![Value::Integer(balance)]);
    assert_eq!(rows(&written, 2), balances);
    let gone = vec![Value::Integer(10), Value::Text("ada".to_owned())];
    assert_eq!(rows(&written, 3), [gone]);
    assert!(rows(&written, 0).is_empty());
}

#[tokio::test]
async fn it_tells_how_many_rows_changed_and_which_were_returned() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        tells(&db).await;
        assert_eq!(all(&db, "balance").await, [40, 60]);
        let db = bank(mode).await;
        let mut tx = db.begin().await.unwrap();
        tells(&mut *tx).await;
        tx.commit().await.unwrap();
        assert_eq!(all(&db, "balance").await, [40, 60]);
        let db = bank(mode).await;
        let mut session = db.begin_concurrent(Isolation::Serializable).await.unwrap();
        tells(&mut *session).await;
        session.commit().await.unwrap();
        assert_eq!(all(&db, "balance").await, [40, 60]);
    }
}

/// Changes something, and then fails.
fn fails(how: &str) -> Write {
    write_of(&["UPDATE accounts SET balance = 0", how])
}

#[tokio::test]
async fn one_that_fails_changes_nothing_and_keeps_its_kind() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        execute(
            &db,
            "CREATE TABLE orders (account INTEGER REFERENCES accounts, amount CHECK (amount > 0)); INSERT INTO orders VALUES (1, 1)",
        )
        .await;
        for (how, kind) in [
            ("UPDATE accounts SET owner = 'ada'", ErrorKind::Unique),
            ("DELETE FROM accounts", ErrorKind::ForeignKey),
            ("UPDATE orders SET amount = 0", ErrorKind::Check),
            ("UPDATE accounts SET owner = NULL", ErrorKind::NotNull),
            ("UPDATE nosuch SET a = 1", ErrorKind::Statement),
        ] {
            let error = WriteExecutor::write(&db, fails(how)).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{how}: {error}");
            assert_eq!(error.statement(), Some(how));
            let mut tx = db.begin().await.unwrap();
            tx.write(write_of(&["UPDATE accounts SET balance = balance + 1"]))
                .await
                .unwrap();
            let error = tx.write(fails(how)).await.unwrap_err();
            assert_eq!((error.kind(), error.statement()), (kind, Some(how)));
            tx.commit().await.unwrap();
        }
        // What the transactions did before stays.
        assert_eq!(all(&db, "balance").await, [15, 25, 35]);
    }
}

#[tokio::test]
async fn arguments_are_bound_and_counted() {
    let db = bank(Mode::Inline).await;
    let add = |args: Vec<Value>| {
        let add = statement("UPDATE accounts SET balance = balance + ?1", args);
        Write::statements(vec![add]).unwrap()
    };
    let written = WriteExecutor::write(&db, add(vec![Value::Integer(5)])).await;
    assert_eq!(written.unwrap().changed(), 3);
    let error = WriteExecutor::write(&db, add(Vec::new())).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("takes 1 argument, 0 were given"), "{error}");
    assert_eq!(all(&db, "balance").await, [15, 25, 35]);
}

#[tokio::test]
async fn what_is_no_single_statement_on_rows_is_refused() {
    for text in ["COMMIT", "PRAGMA user_version = 1", "DELETE FROM a; COMMIT"] {
        let refused = Write::statements(vec![Statement {
            text: text.into(),
            args: Vec::new(),
        }]);
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert_eq!(error.statement(), Some(text));
    }
}

/// One number for all rows that were written, whichever columns were; none for the others.
#[tokio::test]
async fn the_rows_that_it_writes_are_stamped() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        assert_eq!(all(&db, "commit_seq").await, [1, 2, 3]);
        WriteExecutor::write(&db, write_of(&[DOUBLE]))
            .await
            .unwrap();
        assert_eq!(all(&db, "commit_seq").await, [1, 4, 4]);
        let nothing = write_of(&["UPDATE accounts SET balance = 0 WHERE balance > 1000"]);
        WriteExecutor::write(&db, nothing).await.unwrap();
        let moved = write_of(&["UPDATE accounts SET id = 9 WHERE owner = 'cy'"]);
        WriteExecutor::write(&db, moved).await.unwrap();
        assert_eq!(all(&db, "commit_seq").await, [1, 4, 5]);
        let more = "INSERT INTO accounts (owner, balance, commit_seq)
                    SELECT owner || '2', balance, 0 FROM accounts WHERE balance > 10";
        WriteExecutor::write(&db, write_of(&[more])).await.unwrap();
        assert_eq!(all(&db, "commit_seq").await, [1, 4, 5, 6, 6]);
        // In a transaction there is one number for all of it.
        let mut tx = db.begin().await.unwrap();
        tx.write(write_of(&["UPDATE accounts SET balance = 1 WHERE id = 1"]))
            .await
            .unwrap();
        tx.write(write_of(&["UPDATE accounts SET balance = 1 WHERE id = 2"]))
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(all(&db, "commit_seq").await, [7, 7, 5, 6, 6]);
        let mut session = db.begin_concurrent(Isolation::Serializable).await.unwrap();
        session.write(write_of(&[DOUBLE])).await.unwrap();
        session.commit().await.unwrap();
        assert_eq!(all(&db, "commit_seq").await, [7, 7, 8, 8, 8]);
        // The next key is beyond those that were given so.
        let mut ctx = db.context();
        let last = ctx.add(Account {
            id: 0,
            owner: "last".to_owned(),
            balance: 0,
            commit_seq: CommitSeq(0),
        });
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx[last].id, 12);
    }
}

#[tokio::test]
async fn writes_that_wait_together_share_a_commit_and_count_as_saves() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        let before = db.statistics();
        let held = db.begin().await.unwrap();
        let writes = || (0..3).map(|_| WriteExecutor::write(&db, write_of(&[DOUBLE])));
        let mut writing = pin!(join_all(writes()));
        start(writing.as_mut());
        held.rollback().await.unwrap();
        for written in writing.await {
            assert_eq!(written.unwrap().changed(), 2);
        }
        let after = db.statistics();
        assert_eq!(after.saves, before.saves + 3, "{mode:?}");
        assert_eq!(after.groups, before.groups + 1);
        assert_eq!(after.refused, before.refused);
        assert_eq!(all(&db, "balance").await, [10, 160, 240]);
        let refused = WriteExecutor::write(&db, fails("UPDATE accounts SET owner = 'ada'")).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unique);
        assert_eq!(db.statistics().refused, before.refused + 1);
    }
}

#[tokio::test]
async fn one_that_is_dropped_while_it_waits_never_runs() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        let held = db.begin().await.unwrap();
        {
            let mut writing = pin!(WriteExecutor::write(&db, write_of(&[DOUBLE])));
            start(writing.as_mut());
        }
        held.rollback().await.unwrap();
        // It would have been before this one.
        WriteExecutor::write(
            &db,
            write_of(&["UPDATE accounts SET balance = balance + 1"]),
        )
        .await
        .unwrap();
        assert_eq!(all(&db, "balance").await, [11, 21, 31], "{mode:?}");
    }
}

#[tokio::test]
async fn dropped_at_any_moment_it_happens_as_a_whole_or_not() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        let mut last = 20;
        for polls in 0..6 {
            let both = write_of(&[
                "UPDATE accounts SET balance = balance + 1 WHERE owner = 'bob'",
                "UPDATE accounts SET balance = balance - 1 WHERE owner = 'ada'",
            ]);
            let written = dropped_after(polls, WriteExecutor::write(&db, both)).await;
            execute(&db, "UPDATE accounts SET balance = 30 WHERE owner = 'cy'").await;
            let found = all(&db, "balance").await;
            assert_eq!(found[0] + found[1], 30);
            if let Some(written) = written {
                assert_eq!(written.unwrap().changed(), 2);
                assert_eq!(found[1], last + 1);
            }
            last = found[1];
        }
    }
}

/// Its thread has the connection: the transaction is rolled back, and the writer goes on.
#[tokio::test]
async fn dropped_in_a_transaction_it_takes_that_along() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        let mut tx = db.begin().await.unwrap();
        tx.write(write_of(&[DOUBLE])).await.unwrap();
        let polled = {
            let mut writing = Box::pin(tx.write(write_of(&[DOUBLE])));
            writing.as_mut().now_or_never()
        };
        // A thread may be that fast.
        let expected = match polled {
            Some(written) => written.map(|_| [10, 80, 120]).unwrap(),
            None => [10, 20, 30],
        };
        let ended = tx.commit().await.map_err(|error| error.kind()).err();
        let is_over = expected[1] == 20;
        assert_eq!(ended, is_over.then_some(ErrorKind::TransactionEnded));
        assert_eq!(all(&db, "balance").await, expected, "{mode:?}");
        execute(&db, DOUBLE).await;
    }
}

#[tokio::test]
async fn inside_of_a_transaction_of_the_same_task_it_is_refused() {
    let db = bank(Mode::Inline).await;
    db.write(async |_| -> Result {
        let nested = WriteExecutor::write(&db, write_of(&[DOUBLE])).await;
        assert_eq!(nested.unwrap_err().kind(), ErrorKind::Nested);
        Ok(())
    })
    .await
    .unwrap();
}

/// A trigger may end the whole transaction: the neighbours in the group are run again.
#[tokio::test]
async fn one_that_ends_the_transaction_takes_no_neighbour_along() {
    for mode in Mode::ALL {
        let db = bank(mode).await;
        let held = db.begin().await.unwrap();
        let add = "UPDATE accounts SET balance = balance + 1";
        let ends = "UPDATE OR ROLLBACK accounts SET owner = 'ada'";
        let mut writing = pin!(join_all(
            [add, ends, add].map(|text| WriteExecutor::write(&db, write_of(&[text])))
        ));
        start(writing.as_mut());
        held.rollback().await.unwrap();
        let kinds: Vec<_> = writing
            .await
            .into_iter()
            .map(|written| written.map_err(|error| error.kind()).err())
            .collect();
        assert_eq!(kinds, [None, Some(ErrorKind::Unique), None]);
        assert_eq!(all(&db, "balance").await, [12, 22, 32]);
    }
}
