//! Constraints that a session meets: at the statement, at its end, or only where it is merged.

use std::pin::pin;

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
    start,
};
use futures_util::future::{join, join_all};

use crate::sessions::{
    LEVELS, MODES, Result, conflict, found_number, is_only_rolled_back, number, run, session,
    session_of, with,
};

const FAMILY: &[&str] = &[
    "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
    "CREATE TABLE child (id INTEGER PRIMARY KEY, parent_id INT NOT NULL REFERENCES parent)",
    "CREATE TABLE later (id INTEGER PRIMARY KEY,
        parent_id INT NOT NULL REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
    "INSERT INTO parent VALUES (1)",
];

#[tokio::test]
async fn a_reference_to_nothing_is_refused_at_once_and_the_session_goes_on() -> Result {
    for mode in MODES {
        let db = with(mode, FAMILY).await;
        let mut s = session(&db).await;
        let error = run(&mut *s, "INSERT INTO child VALUES (1, 99)").await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::ForeignKey);
        let error = run(&mut *s, "DELETE FROM parent WHERE id = 2 OR id = 99").await;
        assert_eq!(error?, 0);
        run(&mut *s, "INSERT INTO child VALUES (1, 1)").await?;
        s.commit().await?;
        assert_eq!(found_number(&db, "SELECT parent_id FROM child"), 1);
    }
    Ok(())
}

#[tokio::test]
async fn a_deferred_reference_to_nothing_is_refused_at_the_end() -> Result {
    for mode in MODES {
        let db = with(mode, FAMILY).await;
        let mut s = session(&db).await;
        run(&mut *s, "INSERT INTO later VALUES (1, 2)").await?;
        let error = s.commit().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ForeignKey, "{error}");
        assert_eq!(found_number(&db, "SELECT count(*) FROM later"), 0);

        let mut s = session(&db).await;
        run(&mut *s, "INSERT INTO later VALUES (1, 2)").await?;
        run(&mut *s, "INSERT INTO parent VALUES (2)").await?;
        s.commit().await?;
        assert_eq!(found_number(&db, "SELECT parent_id FROM later"), 2);
    }
    Ok(())
}

#[tokio::test]
async fn references_are_deferred_by_a_pragma_for_one_session() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = with(mode, FAMILY).await;
            let mut s = session_of(&db, isolation).await;
            run(&mut *s, "PRAGMA defer_foreign_keys = ON").await?;
            run(&mut *s, "INSERT INTO child VALUES (1, 3)").await?;
            run(&mut *s, "INSERT INTO parent VALUES (3)").await?;
            s.commit().await?;
            assert_eq!(found_number(&db, "SELECT parent_id FROM child"), 3);
            let mut s = session_of(&db, isolation).await;
            let error = run(&mut *s, "INSERT INTO child VALUES (2, 99)").await;
            assert_eq!(error.unwrap_err().kind(), ErrorKind::ForeignKey, "{mode:?}");
        }
    }
    Ok(())
}

/// The session did nothing wrong: what it saw is not so any more.
#[tokio::test]
async fn a_parent_that_somebody_deleted_meanwhile_is_a_conflict() -> Result {
    for insert in [
        "INSERT INTO child VALUES (1, 1)",
        "INSERT INTO later VALUES (1, 1)",
    ] {
        let db = with(Mode::Inline, FAMILY).await;
        let mut s = session(&db).await;
        run(&mut *s, insert).await?;
        execute(&db, "DELETE FROM parent").await;
        conflict(s).await;
        assert_eq!(found_number(&db, "SELECT count(*) FROM child"), 0);
        assert_eq!(found_number(&db, "SELECT count(*) FROM later"), 0);
    }
    Ok(())
}

#[tokio::test]
async fn the_rerun_after_a_deleted_parent_meets_the_error_itself() -> Result {
    let db = with(Mode::Inline, FAMILY).await;
    let outsider = anabranch_tests::outsider(db.path());
    let runs = std::cell::Cell::new(0);
    let outcome = db
        .concurrent(async |s| {
            runs.set(runs.get() + 1);
            run(&mut *s, "INSERT INTO child VALUES (1, 1)").await?;
            outsider.execute("DELETE FROM parent", []).unwrap();
            Ok(())
        })
        .await;
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ForeignKey);
    assert_eq!(runs.get(), 2);
    Ok(())
}

/// A parent with a child of a session that is not committed may be deleted; then the child is what conflicts. The other
/// way round, the deletion is.
#[tokio::test]
async fn a_parent_is_deleted_or_has_a_child_but_not_both() -> Result {
    let db = with(Mode::Inline, FAMILY).await;
    let (mut deletes, mut adds) = (session(&db).await, session(&db).await);
    assert_eq!(run(&mut *deletes, "DELETE FROM parent").await?, 1);
    run(&mut *adds, "INSERT INTO child VALUES (1, 1)").await?;
    adds.commit().await?;
    let error = conflict(deletes).await;
    assert_eq!(error.statement(), Some("DELETE FROM parent"));
    Ok(())
}

#[tokio::test]
async fn an_error_that_is_caught_in_a_session_is_part_of_it() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        execute(&db, "CREATE UNIQUE INDEX texts ON note (text)").await;
        execute(&db, "INSERT INTO note (text) VALUES ('taken')").await;

        let mut s = session(&db).await;
        let insert = "INSERT INTO note (text) VALUES ('taken')";
        let error = run(&mut *s, insert).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unique);
        run(
            &mut *s,
            "INSERT INTO note (id, text) VALUES (10, 'instead')",
        )
        .await?;
        s.commit().await?;
        assert_eq!(Note::query().count(&db).await?, 2);

        // It is seen like anything else: once the row is gone, the insert would go through.
        let mut s = session(&db).await;
        run(&mut *s, insert).await.unwrap_err();
        run(&mut *s, "INSERT INTO note (id, text) VALUES (11, 'again')").await?;
        execute(&db, "DELETE FROM note WHERE text = 'taken'").await;
        let error = conflict(s).await;
        assert_eq!(error.statement(), Some(insert), "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_save_that_fails_in_a_session_can_be_put_right() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        execute(&db, "CREATE UNIQUE INDEX texts ON note (text)").await;
        execute(&db, "INSERT INTO note (text) VALUES ('taken')").await;
        let mut s = session(&db).await;
        let mut ctx = s.context();
        ctx.add(note("fine"));
        let second = ctx.add(note("taken"));
        let error = ctx.save_changes().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unique);
        ctx[second].text = "free".to_owned();
        ctx.save_changes().await?;
        drop(ctx);
        s.commit().await?;
        assert_eq!(Note::query().count(&db).await?, 3, "{mode:?}");
    }
    Ok(())
}

/// `CHECK`, `NOT NULL` and a trigger's `RAISE(ABORT)`: typed, and the session goes on.
#[tokio::test]
async fn each_constraint_has_its_kind_in_a_session() -> Result {
    let db = with(
        Mode::Inline,
        &[
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT NOT NULL CHECK (a < 10))",
            "CREATE TRIGGER no_sevens BEFORE INSERT ON t WHEN new.a = 7
             BEGIN SELECT RAISE(ABORT, 'no sevens'); END",
        ],
    )
    .await;
    let mut s = session(&db).await;
    for (sql, kind) in [
        ("INSERT INTO t VALUES (1, NULL)", ErrorKind::NotNull),
        ("INSERT INTO t VALUES (1, 11)", ErrorKind::Check),
        ("INSERT INTO t VALUES (1, 7)", ErrorKind::Constraint),
        ("INSERT INTO u VALUES (1, 7)", ErrorKind::Statement),
    ] {
        let error = run(&mut *s, sql).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{sql}: {error}");
    }
    run(&mut *s, "INSERT INTO t VALUES (1, 1)").await?;
    s.commit().await?;
    assert_eq!(found_number(&db, "SELECT count(*) FROM t"), 1);
    Ok(())
}

const ROLLS_BACK: &[&str] = &[
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT UNIQUE ON CONFLICT ROLLBACK)",
    "CREATE TRIGGER no_sevens BEFORE INSERT ON t WHEN new.a = 7
     BEGIN SELECT RAISE(ROLLBACK, 'no sevens'); END",
    "INSERT INTO t VALUES (1, 1)",
];

#[tokio::test]
async fn a_statement_that_rolls_everything_back_ends_the_session_and_nothing_else() -> Result {
    for mode in MODES {
        for (sql, kind) in [
            ("INSERT INTO t VALUES (2, 1)", ErrorKind::Unique),
            ("INSERT OR ROLLBACK INTO t VALUES (1, 2)", ErrorKind::Unique),
            ("INSERT INTO t VALUES (2, 7)", ErrorKind::Constraint),
        ] {
            let db = with(mode, ROLLS_BACK).await;
            let (mut s, mut other) = (session(&db).await, session(&db).await);
            run(&mut *s, "INSERT INTO t VALUES (10, 10)").await?;
            run(&mut *other, "INSERT INTO t VALUES (20, 20)").await?;
            let error = run(&mut *s, sql).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{sql}: {error}");
            is_only_rolled_back(&db, s).await;
            other.commit().await?;
            let ids = found_number(&db, "SELECT sum(id) FROM t");
            assert_eq!(ids, 21, "{mode:?}: {sql}");
        }
    }
    Ok(())
}

/// Where it is merged, the statement ends the transaction of all who are merged with it.
#[tokio::test]
async fn a_statement_that_rolls_everything_back_only_where_it_is_merged_harms_no_neighbour()
-> Result {
    for (mine, theirs) in [
        ("INSERT INTO t VALUES (2, 5)", "INSERT INTO t VALUES (3, 5)"),
        (
            "INSERT INTO t VALUES (2, 6)",
            "CREATE TRIGGER no_sixes BEFORE INSERT ON t WHEN new.a = 6
             BEGIN SELECT RAISE(ROLLBACK, 'no sixes'); END",
        ),
    ] {
        let db = notes(Mode::Inline).await;
        for sql in ROLLS_BACK {
            execute(&db, sql).await;
        }
        let mut s = session(&db).await;
        run(&mut *s, mine).await?;
        let mut neighbour = session(&db).await;
        run(
            &mut *neighbour,
            "INSERT INTO note (id, text) VALUES (50, 'session')",
        )
        .await?;
        execute(&db, theirs).await;

        // They wait together, and are merged together.
        let mut contexts: Vec<_> = (0..4).map(|_| db.context()).collect();
        let held = db.begin().await?;
        let saves = contexts.iter_mut().map(|ctx| {
            ctx.add(note("beside"));
            ctx.save_changes()
        });
        let sessions = join(s.commit(), neighbour.commit());
        let mut all = pin!(join(join_all(saves), sessions));
        start(all.as_mut());
        held.rollback().await?;
        let (saves, (session, neighbour)) = all.await;
        for save in saves {
            save?;
        }
        neighbour?;
        let error = session.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert_eq!(error.statement(), Some(mine));
        assert_eq!(Note::query().count(&db).await?, 5);
    }
    Ok(())
}

#[tokio::test]
async fn ignored_and_replaced_rows_are_compared_too() -> Result {
    let db = with(
        Mode::Inline,
        &["CREATE TABLE t (id INTEGER PRIMARY KEY, a INT UNIQUE)"],
    )
    .await;
    let mut s = session(&db).await;
    assert_eq!(
        run(&mut *s, "INSERT OR IGNORE INTO t VALUES (1, 1)").await?,
        1
    );
    execute(&db, "INSERT INTO t VALUES (2, 1)").await;
    conflict(s).await;

    // The row that is replaced is another by then; the session could not see which.
    let mut s = session(&db).await;
    run(&mut *s, "REPLACE INTO t VALUES (3, 1)").await?;
    execute(&db, "UPDATE t SET id = 4").await;
    s.commit().await?;
    let mut s = session(&db).await;
    assert_eq!(number(&mut *s, "SELECT id FROM t").await?, 3);
    s.rollback().await
}
