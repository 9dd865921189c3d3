//! Savepoints in sessions: what is undone is not written, but it was seen.

use anabranch::prelude::*;
use anabranch_tests::{
    Mode, dropped_after, execute,
    note::{Note, note, notes},
};

use crate::sessions::{
    LEVELS, MODES, Result, conflict, is_only_rolled_back, number, run, session, session_of,
};

const COUNT: &str = "SELECT count(*) FROM note";

async fn texts(db: &Database) -> Result<Vec<String>> {
    let notes = Note::query().order_by([Note::ID.asc()]).all(db).await?;
    Ok(notes.into_iter().map(|note| note.text).collect())
}

fn undo() -> Error {
    Error::application("undo this")
}

#[tokio::test]
async fn savepoints_nest_and_undo_only_what_is_theirs() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = notes(mode).await;
            let mut s = session_of(&db, isolation).await;
            run(&mut *s, "INSERT INTO note (id, text) VALUES (1, 'outer')").await?;
            s.savepoint(async |s| {
                run(&mut *s, "INSERT INTO note (id, text) VALUES (2, 'kept')").await?;
                let undone = s
                    .savepoint(async |s| {
                        run(&mut *s, "INSERT INTO note (id, text) VALUES (3, 'undone')").await?;
                        run(&mut *s, "UPDATE note SET text = 'undone'").await?;
                        let mut ctx = s.context();
                        ctx.add(note("undone"));
                        ctx.save_changes().await?;
                        Err::<(), _>(undo())
                    })
                    .await;
                assert_eq!(undone.unwrap_err().kind(), ErrorKind::Application);
                run(&mut *s, "INSERT INTO note (id, text) VALUES (3, 'again')").await?;
                Ok(())
            })
            .await?;
            let mut ctx = s.context();
            ctx.add(note("last"));
            ctx.save_changes().await?;
            drop(ctx);
            s.commit().await?;
            let stored = texts(&db).await?;
            assert_eq!(stored, ["outer", "kept", "again", "last"], "{mode:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_was_read_before_it_was_undone_is_still_compared() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        let mut seen = 0;
        let undone = s
            .savepoint(async |s| {
                seen = number(&mut *s, COUNT).await?;
                Err::<(), _>(undo())
            })
            .await;
        undone.unwrap_err();
        run(
            &mut *s,
            "INSERT INTO note (id, text) VALUES (100, 'there were none')",
        )
        .await?;
        assert_eq!(seen, 0);
        execute(&db, "INSERT INTO note (text) VALUES ('meanwhile')").await;
        let error = conflict(s).await;
        assert_eq!(error.statement(), Some(COUNT), "{mode:?}");
    }
    Ok(())
}

/// In it, the session saw its own rows, which are undone by the time of the commit: they are there again for the
/// comparison, and then not.
#[tokio::test]
async fn what_was_read_of_undone_rows_is_compared_with_them() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        s.savepoint(async |s| {
            run(&mut *s, "INSERT INTO note (id, text) VALUES (1, 'undone')").await?;
            assert_eq!(number(&mut *s, COUNT).await?, 1);
            Err::<(), _>(undo())
        })
        .await
        .unwrap_err();
        assert_eq!(number(&mut *s, COUNT).await?, 0);
        run(&mut *s, "INSERT INTO note (id, text) VALUES (2, 'kept')").await?;
        s.commit().await?;
        assert_eq!(texts(&db).await?, ["kept"], "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_failed_save_in_a_savepoint_undoes_all_of_it() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        execute(&db, "CREATE UNIQUE INDEX texts ON note (text)").await;
        let mut s = session(&db).await;
        let failed = s
            .savepoint(async |s| {
                let mut ctx = s.context();
                ctx.add(note("one"));
                ctx.save_changes().await?;
                ctx.add(note("one"));
                ctx.save_changes().await
            })
            .await;
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Unique);
        run(&mut *s, "INSERT INTO note (id, text) VALUES (50, 'two')").await?;
        s.commit().await?;
        assert_eq!(texts(&db).await?, ["two"], "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_savepoint_that_is_dropped_leaves_only_the_roll_back() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        let savepoint = s.savepoint(async |s| {
            run(&mut *s, "INSERT INTO note (id, text) VALUES (1, 'a')").await?;
            std::future::pending::<()>().await;
            Ok(())
        });
        assert!(dropped_after(200, savepoint).await.is_none());
        let error = s.commit().await.unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::TransactionEnded,
            "{mode:?}: {error}"
        );
        assert_eq!(texts(&db).await?, [""; 0]);
    }
    Ok(())
}

#[tokio::test]
async fn a_roll_back_of_everything_in_a_savepoint_ends_the_session() -> Result {
    let db = notes(MODES[0]).await;
    execute(&db, "INSERT INTO note (text) VALUES ('a')").await;
    let mut s = session(&db).await;
    let failed = s
        .savepoint(async |s| run(&mut *s, "INSERT OR ROLLBACK INTO note VALUES (1, 'b')").await)
        .await;
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Unique);
    is_only_rolled_back(&db, s).await;
    assert_eq!(texts(&db).await?, ["a"]);
    Ok(())
}

/// What was done of it is not told apart from what the savepoint around it did.
#[tokio::test]
async fn a_savepoint_that_is_dropped_inside_of_another_is_not_kept_with_it() -> Result {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        let outer = s.savepoint(async |s| {
            let inner = s.savepoint(async |s| {
                run(&mut *s, "INSERT INTO note (id, text) VALUES (1, 'half')").await?;
                std::future::pending::<()>().await;
                Ok(())
            });
            assert!(dropped_after(200, inner).await.is_none());
            Ok(())
        });
        let error = outer.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransactionEnded, "{mode:?}");
        let error = s.commit().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransactionEnded, "{mode:?}");
        assert_eq!(texts(&db).await?, [""; 0]);
    }
    Ok(())
}
