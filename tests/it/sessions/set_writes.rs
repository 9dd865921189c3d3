//! Set-based writes in a session: what they told is compared, and what they wrote is not.

use anabranch::{prelude::*, sql::WriteExecutor, value::Value};
use anabranch_tests::write_of;

use crate::sessions::{
    LEVELS, MODES, conflict, elsewhere, found_number, session, session_of, with,
};

const TABLE: [&str; 1] = [
    "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER);
     INSERT INTO account VALUES (1, 10), (2, 20), (3, 30)",
];
const RAISE: &str = "UPDATE account SET balance = balance + 1 WHERE balance >= 20";

#[tokio::test]
async fn another_number_of_rows_by_now_is_a_conflict() {
    for mode in MODES {
        let db = with(mode, &TABLE).await;
        let mut session = session(&db).await;
        let written = session.write(write_of(&[RAISE])).await.unwrap();
        assert_eq!(written.changed(), 2);
        anabranch_tests::execute(&db, "INSERT INTO account VALUES (4, 40)").await;
        let error = conflict(session).await;
        assert_eq!(error.statement(), Some(RAISE));
        assert_eq!(found_number(&db, "SELECT sum(balance) FROM account"), 100);
    }
}

#[tokio::test]
async fn where_it_tells_the_same_it_adds_to_what_others_wrote() {
    for mode in MODES {
        let db = with(mode, &TABLE).await;
        let mut session = session(&db).await;
        session.write(write_of(&[RAISE])).await.unwrap();
        anabranch_tests::execute(&db, "UPDATE account SET balance = balance * 2 WHERE id > 1")
            .await;
        session.commit().await.unwrap();
        assert_eq!(found_number(&db, "SELECT sum(balance) FROM account"), 112);
    }
}

#[tokio::test]
async fn other_rows_returned_by_now_are_a_conflict() {
    const RETURNING: &str =
        "UPDATE account SET balance = balance + 1 WHERE id = 2 RETURNING balance";
    const SELECT: &str = "SELECT balance FROM account WHERE id = 2";
    for mode in MODES {
        for text in [RETURNING, SELECT] {
            let db = with(mode, &TABLE).await;
            let mut session = session(&db).await;
            let statements = ["UPDATE account SET balance = 0 WHERE id = 1", text];
            let written = session.write(write_of(&statements)).await.unwrap();
            let told = if text == RETURNING { 21 } else { 20 };
            assert_eq!(
                written.rows(1).collect::<Vec<_>>(),
                [[Value::Integer(told)]]
            );
            anabranch_tests::execute(&db, "UPDATE account SET balance = 5 WHERE id = 2").await;
            let error = conflict(session).await;
            assert_eq!(error.statement(), Some(text));
            assert_eq!(
                found_number(&db, "SELECT balance FROM account WHERE id = 1"),
                10
            );
        }
    }
}

/// One that was refused told of the reason: where that is gone, the session would have gone on otherwise.
#[tokio::test]
async fn one_that_was_refused_and_would_not_be_by_now_is_a_conflict() {
    for mode in MODES {
        let db = with(mode, &TABLE).await;
        anabranch_tests::execute(&db, "CREATE UNIQUE INDEX once ON account (balance)").await;
        let mut session = session(&db).await;
        let twice = write_of(&["UPDATE account SET balance = 10 WHERE id = 2"]);
        let error = session.write(twice).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unique);
        session
            .write(write_of(&["UPDATE account SET balance = 7 WHERE id = 3"]))
            .await
            .unwrap();
        anabranch_tests::execute(&db, "DELETE FROM account WHERE id = 1").await;
        conflict(session).await;
    }
}

/// All rows at once are deleted without a word to the update hook.
#[tokio::test]
async fn a_delete_of_all_rows_conflicts_with_a_change_of_one() {
    for mode in MODES {
        for isolation in LEVELS {
            let db = with(mode, &TABLE).await;
            let mut deletes = session_of(&db, isolation).await;
            deletes
                .write(write_of(&["DELETE FROM account"]))
                .await
                .unwrap();
            let mut changes = session_of(&db, isolation).await;
            changes
                .write(write_of(&["UPDATE account SET balance = 5 WHERE id = 2"]))
                .await
                .unwrap();
            deletes.commit().await.unwrap();
            conflict(changes).await;
            assert_eq!(found_number(&db, "SELECT count(*) FROM account"), 0);
        }
    }
}

/// Under `Snapshot` the first who writes a row wins, also where what is told is the same.
#[tokio::test]
async fn under_snapshot_the_same_row_written_twice_is_a_conflict() {
    for mode in MODES {
        for (isolation, conflicts) in LEVELS.into_iter().zip([false, true]) {
            let db = with(mode, &TABLE).await;
            let mut session = session_of(&db, isolation).await;
            session.write(write_of(&[RAISE])).await.unwrap();
            let other = write_of(&["UPDATE account SET balance = balance + 5 WHERE id = 3"]);
            WriteExecutor::write(&db, other).await.unwrap();
            if conflicts {
                conflict(session).await;
            } else {
                session.commit().await.unwrap();
                assert_eq!(found_number(&db, "SELECT sum(balance) FROM account"), 67);
            }
        }
    }
}

#[tokio::test]
async fn a_closure_runs_again_until_what_it_was_told_holds() {
    for mode in MODES {
        let db = with(mode, &TABLE).await;
        let changed = db
            .concurrent(async |s| {
                let first = s.attempt() == 1;
                let written = s.write(write_of(&[RAISE])).await?;
                if first {
                    elsewhere(&db, "INSERT INTO account VALUES (4, 40)").await;
                }
                Ok((written.changed(), s.attempt()))
            })
            .await
            .unwrap();
        assert_eq!(changed, (3, 2));
    }
}

#[tokio::test]
async fn what_a_savepoint_undid_is_not_written_but_was_told() {
    for mode in MODES {
        let db = with(mode, &TABLE).await;
        let mut session = session(&db).await;
        let undone = session
            .savepoint(async |s| {
                let written = s.write(write_of(&[RAISE])).await?;
                assert_eq!(written.changed(), 2);
                Err::<(), _>(Error::new(ErrorKind::NotFound, "undo it"))
            })
            .await;
        assert_eq!(undone.unwrap_err().kind(), ErrorKind::NotFound);
        let one = write_of(&["UPDATE account SET balance = 11 WHERE id = 1"]);
        session.write(one).await.unwrap();
        anabranch_tests::execute(&db, "DELETE FROM account WHERE id = 3").await;
        conflict(session).await;
    }
}
