//! Keys of rows that sessions insert.

use anabranch::prelude::*;
use anabranch_tests::{
    Mode,
    note::{Note, note, notes},
};

use crate::sessions::{
    LEVELS, MODES, Result, conflict, found_number, number, run, session, session_of, with,
};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Remark {
    #[entity(id)]
    id: i64,
    #[entity(references = Note)]
    note_id: i64,
}

#[derive(Debug, Entity)]
struct Named {
    #[entity(id)]
    name: String,
}

#[tokio::test]
async fn sessions_that_add_entities_to_one_table_never_conflict() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = notes(mode).await;
            db.create_tables::<(Note, Remark)>().await?;
            let mut sessions = Vec::new();
            for _ in 0..4 {
                sessions.push(session_of(&db, isolation).await);
            }
            for round in 0..3 {
                for s in &mut sessions {
                    let mut ctx = s.context();
                    let added = ctx.add(note(format!("in round {round}")));
                    let note_id = ctx[added].id;
                    ctx.add(Remark { id: 0, note_id });
                    ctx.save_changes().await?;
                    assert!(ctx[added].id > 0, "it has its key at once");
                }
                let mut ctx = db.context();
                ctx.add(note("beside"));
                ctx.save_changes().await?;
            }
            for s in sessions {
                s.commit().await?;
            }
            assert_eq!(Note::query().count(&db).await?, 15, "{mode:?}");
            let remarks =
                "SELECT count(DISTINCT note_id) FROM remark JOIN note ON note.id = note_id";
            assert_eq!(found_number(&db, remarks), 12, "each has its own note");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_key_that_sqlite_chooses_is_fine_alone_and_a_conflict_once_it_is_taken() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let insert = "INSERT INTO note (text) VALUES ('raw')";
        let mut s = session(&db).await;
        let done = sqlx::query(insert).execute(&mut *s).await?;
        assert_eq!(done.last_insert_rowid(), 1);
        assert_eq!(number(&mut *s, "SELECT last_insert_rowid()").await?, 1);
        s.commit().await?;

        let (mut one, mut two) = (session(&db).await, session(&db).await);
        run(&mut *one, insert).await?;
        run(&mut *two, insert).await?;
        one.commit().await?;
        let error = conflict(two).await;
        assert_eq!(error.statement(), Some(insert));

        let mut s = session(&db).await;
        run(&mut *s, insert).await?;
        let mut ctx = db.context();
        ctx.add(note("saved"));
        ctx.save_changes().await?;
        conflict(s).await;
        assert_eq!(Note::query().count(&db).await?, 3, "{mode:?}");
    }
    Ok(())
}

/// What earlier users of the connection inserted is nothing that a session sees.
#[tokio::test]
async fn the_last_rowid_is_that_of_the_session() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        for round in 0..3 {
            let mut s = session(&db).await;
            let before = number(&mut *s, "SELECT last_insert_rowid()").await?;
            assert_eq!(before, 0, "of nobody else, in round {round}");
            run(&mut *s, "INSERT INTO note (text) VALUES ('raw')").await?;
            let after = number(&mut *s, "SELECT last_insert_rowid()").await?;
            assert_eq!(
                after,
                i64::try_from(Note::query().count(&mut *s).await?).unwrap()
            );
            s.commit().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn next_id_gives_keys_to_raw_sql_that_nobody_else_has() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = notes(mode).await;
            db.create_tables::<(Note, Remark)>().await?;
            let (mut one, mut two) = (
                session_of(&db, isolation).await,
                session_of(&db, isolation).await,
            );
            let mut keys = Vec::new();
            for s in [&mut one, &mut two] {
                for _ in 0..2 {
                    let id = s.next_id::<Note>().await?;
                    sqlx::query("INSERT INTO note (id, text) VALUES (?, 'raw')")
                        .bind(id)
                        .execute(&mut **s)
                        .await?;
                    sqlx::query("INSERT INTO remark (id, note_id) VALUES (next_id('remark'), ?)")
                        .bind(id)
                        .execute(&mut **s)
                        .await?;
                    keys.push(id);
                }
                let mut ctx = s.context();
                let added = ctx.add(note("typed, beside"));
                ctx.save_changes().await?;
                keys.push(ctx[added].id);
            }
            one.commit().await?;
            two.commit().await?;
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), 6, "{mode:?}, {isolation:?}");
            let stored = Note::query().order_by([Note::ID.asc()]).all(&db).await?;
            let stored: Vec<_> = stored.into_iter().map(|note| note.id).collect();
            assert_eq!(stored, keys);
            let pairs =
                "SELECT count(*) FROM remark JOIN note ON note.id = note_id WHERE text = 'raw'";
            assert_eq!(found_number(&db, pairs), 4);
        }
    }
    Ok(())
}

#[tokio::test]
async fn next_id_in_sql_is_recorded_and_given_again() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        let given: i64 = number(&mut *s, "SELECT next_id('note')").await?;
        let many = sqlx::query_scalar::<_, i64>(
            "INSERT INTO note (id, text) SELECT next_id('note'), value FROM json_each('[1, 2, 3]')
             RETURNING id",
        )
        .fetch_all(&mut *s)
        .await?;
        assert!(many.iter().all(|id| *id > given), "{many:?}");
        // Others are given keys meanwhile, on the head.
        for _ in 0..5 {
            let mut ctx = db.context();
            ctx.add(note("beside"));
            ctx.save_changes().await?;
        }
        s.commit().await?;
        for id in &many {
            assert!(Note::find(&db, *id).await?.is_some(), "{id} in {mode:?}");
        }
        assert_eq!(Note::query().count(&db).await?, 8);
    }
    Ok(())
}

#[tokio::test]
async fn next_id_of_what_has_no_such_key_is_an_error_and_the_session_goes_on() -> Result {
    let db = notes(Mode::Inline).await;
    db.create_tables::<Named>().await?;
    let mut s = session(&db).await;
    let error = s.next_id::<Named>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model, "{error}");
    for sql in [
        "SELECT next_id('no_such_table')",
        "SELECT next_id(NULL)",
        "SELECT next_id()",
    ] {
        let error = number(&mut *s, sql).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Statement, "{sql}: {error}");
    }
    run(
        &mut *s,
        "INSERT INTO note (id, text) VALUES (next_id('note'), 'a')",
    )
    .await?;
    s.commit().await?;
    assert_eq!(Note::query().count(&db).await?, 1);
    Ok(())
}

/// A key that the application chose is nobody's business but its own.
#[tokio::test]
async fn two_sessions_that_choose_one_key_conflict() -> Result {
    for isolation in LEVELS {
        let db = notes(Mode::Inline).await;
        let (mut one, mut two) = (
            session_of(&db, isolation).await,
            session_of(&db, isolation).await,
        );
        for s in [&mut one, &mut two] {
            let mut ctx = s.context();
            ctx.add(Note {
                id: 7,
                ..note("mine")
            });
            ctx.save_changes().await?;
        }
        one.commit().await?;
        conflict(two).await;
        assert_eq!(Note::query().count(&db).await?, 1);
    }
    Ok(())
}

#[tokio::test]
async fn a_table_without_rowids_is_written_in_sessions() -> Result {
    let db = with(
        Mode::Inline,
        &[
            "CREATE TABLE t (name TEXT PRIMARY KEY, a INT) WITHOUT ROWID",
            "INSERT INTO t VALUES ('one', 1), ('two', 2)",
        ],
    )
    .await;
    let update = |name: &'static str| match name {
        "one" => "UPDATE t SET a = a + 10 WHERE name = 'one'",
        _ => "UPDATE t SET a = a + 10 WHERE name = 'two'",
    };
    let (mut one, mut two) = (session(&db).await, session(&db).await);
    run(&mut *one, update("one")).await?;
    run(&mut *two, update("two")).await?;
    one.commit().await?;
    two.commit().await?;
    assert_eq!(found_number(&db, "SELECT sum(a) FROM t"), 23);

    // SQLite does not tell which of its rows changed: any two changes of the table collide.
    let (mut one, mut two) = (
        session_of(&db, Isolation::Snapshot).await,
        session_of(&db, Isolation::Snapshot).await,
    );
    run(&mut *one, update("one")).await?;
    run(&mut *two, update("two")).await?;
    one.commit().await?;
    let error = conflict(two).await;
    assert_eq!(error.table(), Some("t"));
    Ok(())
}
