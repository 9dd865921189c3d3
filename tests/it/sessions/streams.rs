//! Rows that were read in part: what was not seen is not compared.

use anabranch::prelude::*;
use anabranch_tests::{
    execute,
    note::{Note, notes},
};
use futures_util::{StreamExt, TryStreamExt};

use crate::sessions::{MODES, Result, conflict, is_only_rolled_back, run, session};

const ALL: &str = "SELECT id, text FROM note ORDER BY id";

async fn three(mode: anabranch_tests::Mode) -> Database {
    let db = notes(mode).await;
    execute(&db, "INSERT INTO note (text) VALUES ('a'), ('b'), ('c')").await;
    db
}

async fn write(s: &mut Session) -> Result {
    run(
        s,
        "INSERT INTO note (id, text) VALUES (100000, 'from the session')",
    )
    .await
    .map(drop)
}

#[tokio::test]
async fn a_first_row_is_all_that_was_seen() -> Result {
    for mode in MODES {
        let db = three(mode).await;
        let mut s = session(&db).await;
        sqlx::query(ALL).fetch_one(&mut *s).await?;
        sqlx::query(ALL).fetch_optional(&mut *s).await?;
        write(&mut s).await?;
        execute(&db, "UPDATE note SET text = 'changed' WHERE id = 2").await;
        s.commit().await?;

        let mut s = session(&db).await;
        sqlx::query(ALL).fetch_one(&mut *s).await?;
        run(&mut *s, "DELETE FROM note WHERE id = 100000").await?;
        execute(&db, "UPDATE note SET text = 'changed' WHERE id = 1").await;
        let error = conflict(s).await;
        assert_eq!(error.statement(), Some(ALL), "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn that_there_was_no_row_was_seen_too() -> Result {
    let db = three(MODES[0]).await;
    let mut s = session(&db).await;
    let missing = "SELECT id FROM note WHERE text = 'missing'";
    assert!(
        sqlx::query(missing)
            .fetch_optional(&mut *s)
            .await?
            .is_none()
    );
    assert!(sqlx::query(missing).fetch_one(&mut *s).await.is_err());
    write(&mut s).await?;
    execute(&db, "INSERT INTO note (text) VALUES ('missing')").await;
    let error = conflict(s).await;
    assert_eq!(error.statement(), Some(missing));
    Ok(())
}

#[tokio::test]
async fn a_stream_that_was_read_to_its_end_saw_the_end() -> Result {
    for mode in MODES {
        let db = three(mode).await;
        let mut s = session(&db).await;
        let rows: Vec<_> = sqlx::query(ALL).fetch(&mut *s).try_collect().await?;
        assert_eq!(rows.len(), 3);
        write(&mut s).await?;
        execute(&db, "INSERT INTO note (text) VALUES ('d')").await;
        let error = conflict(s).await;
        assert_eq!(error.statement(), Some(ALL), "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn of_a_raw_stream_that_is_dropped_half_way_the_rows_that_came_count() -> Result {
    for mode in MODES {
        for (changed, conflicts) in [(1, true), (2, false)] {
            let db = three(mode).await;
            let mut s = session(&db).await;
            write(&mut s).await?;
            let mut rows = sqlx::query(ALL).fetch(&mut *s);
            assert!(rows.next().await.unwrap().is_ok());
            drop(rows);
            run(&mut *s, "UPDATE note SET text = 'mine' WHERE id = 3").await?;
            let mut ctx = db.context();
            let note = ctx.find::<Note>(changed).await?.unwrap();
            ctx[note].text = "changed".to_owned();
            ctx.save_changes().await?;
            assert_eq!(s.commit().await.is_err(), conflicts, "{mode:?}, {changed}");
        }
    }
    Ok(())
}

/// What it did by then is not known.
#[tokio::test]
async fn a_raw_stream_that_writes_and_is_dropped_half_way_leaves_only_the_roll_back() -> Result {
    for mode in MODES {
        let db = three(mode).await;
        let mut s = session(&db).await;
        let mut rows = sqlx::query("UPDATE note SET text = 'x' RETURNING id").fetch(&mut *s);
        assert!(rows.next().await.is_some());
        drop(rows);
        is_only_rolled_back(&db, s).await;
        let changed = Note::query().filter(Note::TEXT.eq("x"));
        assert_eq!(changed.count(&db).await?, 0, "{mode:?}");
    }
    Ok(())
}

/// Typed streams of a session read all at first.
#[tokio::test]
async fn a_typed_stream_may_be_dropped_half_way() -> Result {
    for mode in MODES {
        let db = three(mode).await;
        let mut s = session(&db).await;
        let mut rows = Note::query().stream(&mut *s);
        assert!(rows.next().await.is_some());
        drop(rows);
        write(&mut s).await?;
        s.commit().await?;
        assert_eq!(Note::query().count(&db).await?, 4, "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn many_rows_are_read_and_compared() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        execute(
            &db,
            "INSERT INTO note (text) WITH RECURSIVE n (i) AS
                (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
             SELECT 'note ' || i FROM n",
        )
        .await;
        let mut s = session(&db).await;
        assert_eq!(sqlx::query(ALL).fetch_all(&mut *s).await?.len(), 20_000);
        assert_eq!(Note::query().all(&mut *s).await?.len(), 20_000);
        write(&mut s).await?;
        execute(&db, "CREATE TABLE elsewhere (a)").await;
        s.commit().await?;

        let mut s = session(&db).await;
        assert_eq!(sqlx::query(ALL).fetch_all(&mut *s).await?.len(), 20_001);
        run(&mut *s, "DELETE FROM note WHERE id = 100000").await?;
        execute(&db, "UPDATE note SET text = 'other' WHERE id = 19999").await;
        let error = conflict(s).await;
        assert_eq!(error.statement(), Some(ALL), "{mode:?}");
    }
    Ok(())
}
