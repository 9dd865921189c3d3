//! Tables and indexes that are made, changed and dropped: in a session, and by others while it is open.

use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
};

use sqlx::Row as _;

use crate::sessions::{
    MODES, Result, conflict, found_number, found_text, number, run, session, text, with,
};
use anabranch::prelude::*;

#[tokio::test]
async fn tables_are_made_changed_and_dropped_in_a_session() -> Result {
    for mode in MODES {
        let db = with(mode, &["CREATE TABLE old (a)", "CREATE TABLE kept (a)"]).await;
        let mut s = session(&db).await;
        run(
            &mut *s,
            "CREATE TABLE fresh (id INTEGER PRIMARY KEY, a TEXT)",
        )
        .await?;
        run(&mut *s, "INSERT INTO fresh (id, a) VALUES (7, 'seven')").await?;
        run(&mut *s, "CREATE INDEX fresh_a ON fresh (a)").await?;
        run(&mut *s, "CREATE VIEW seen AS SELECT a FROM fresh").await?;
        run(&mut *s, "ALTER TABLE kept ADD COLUMN b TEXT DEFAULT 'b'").await?;
        run(&mut *s, "ALTER TABLE kept RENAME COLUMN a TO first").await?;
        run(&mut *s, "DROP TABLE old").await?;
        assert_eq!(text(&mut *s, "SELECT a FROM seen").await?, "seven");
        let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('fresh', 'old')";
        assert_eq!(found_number(&db, tables), 1, "nobody else sees it");
        s.commit().await?;
        assert_eq!(found_text(&db, "SELECT a FROM seen"), "seven");
        assert_eq!(found_text(&db, "PRAGMA integrity_check"), "ok");
        execute(&db, "INSERT INTO kept (first, b) VALUES (1, 'other')").await;
        assert_eq!(found_number(&db, tables), 1, "{mode:?}");
    }
    Ok(())
}

/// How many rows the statement before it changed is another number on the connection that merges.
#[tokio::test]
async fn what_counts_no_rows_may_be_the_first_statement_of_a_session() -> Result {
    let definitions = [
        "CREATE TABLE fresh (a)",
        "CREATE INDEX by_a ON fresh (a)",
        "ALTER TABLE fresh ADD COLUMN b",
        "ANALYZE fresh",
        "REINDEX fresh",
        "PRAGMA user_version = 7",
        "DROP TABLE fresh",
    ];
    for mode in MODES {
        let db = with(mode, &["CREATE TABLE kept (a)"]).await;
        for definition in definitions {
            let mut s = session(&db).await;
            let mut other = session(&db).await;
            run(&mut *other, "INSERT INTO kept VALUES (1), (2), (3)").await?;
            other.commit().await?;
            run(&mut *s, definition).await?;
            s.commit().await?;
        }
        assert_eq!(found_number(&db, "PRAGMA user_version"), 7, "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn tables_that_are_made_in_a_session_are_gone_with_it() -> Result {
    let db = with(Mode::Inline, &[]).await;
    let mut s = session(&db).await;
    run(&mut *s, "CREATE TABLE fresh (a)").await?;
    s.rollback().await?;
    let mut s = session(&db).await;
    run(&mut *s, "CREATE TABLE fresh (a, b)").await?;
    drop(s);
    let mut s = session(&db).await;
    assert!(run(&mut *s, "SELECT * FROM fresh").await.is_err());
    run(&mut *s, "CREATE TABLE fresh (a, b, c)").await?;
    s.commit().await?;
    assert_eq!(tables_named_fresh(&db), 1);
    Ok(())
}

fn tables_named_fresh(db: &Database) -> i64 {
    found_number(
        db,
        "SELECT count(*) FROM sqlite_schema WHERE name = 'fresh'",
    )
}

#[tokio::test]
async fn an_index_that_a_session_makes_has_what_others_inserted_meanwhile() -> Result {
    let db = notes(Mode::Inline).await;
    execute(&db, "INSERT INTO note (text) VALUES ('before')").await;
    let mut s = session(&db).await;
    run(&mut *s, "CREATE INDEX by_text ON note (text)").await?;
    execute(&db, "INSERT INTO note (text) VALUES ('meanwhile')").await;
    s.commit().await?;
    assert_eq!(found_text(&db, "PRAGMA integrity_check"), "ok");
    let by_index = "SELECT count(*) FROM note INDEXED BY by_text WHERE text > ''";
    assert_eq!(found_number(&db, by_index), 2);
    Ok(())
}

#[tokio::test]
async fn two_sessions_that_make_one_table_conflict_unless_it_may_exist() -> Result {
    let db = with(Mode::Inline, &[]).await;
    let (mut one, mut two) = (session(&db).await, session(&db).await);
    run(&mut *one, "CREATE TABLE fresh (a)").await?;
    run(&mut *two, "CREATE TABLE fresh (a)").await?;
    one.commit().await?;
    let error = conflict(two).await;
    assert_eq!(error.statement(), Some("CREATE TABLE fresh (a)"));

    let (mut one, mut two) = (session(&db).await, session(&db).await);
    run(&mut *one, "CREATE TABLE IF NOT EXISTS both (a)").await?;
    run(&mut *two, "CREATE TABLE IF NOT EXISTS both (a)").await?;
    one.commit().await?;
    two.commit().await?;
    Ok(())
}

#[tokio::test]
async fn what_others_change_of_a_table_is_a_conflict_if_the_session_saw_it() -> Result {
    let db = notes(Mode::Inline).await;
    execute(&db, "INSERT INTO note (text) VALUES ('a')").await;

    let mut s = session(&db).await;
    sqlx::query("SELECT * FROM note").fetch_all(&mut *s).await?;
    run(&mut *s, "INSERT INTO note (id, text) VALUES (100, 'b')").await?;
    execute(&db, "ALTER TABLE note ADD COLUMN extra TEXT").await;
    let error = conflict(s).await;
    assert_eq!(error.statement(), Some("SELECT * FROM note"));

    let mut s = session(&db).await;
    assert_eq!(number(&mut *s, "SELECT id FROM note").await?, 1);
    let mut ctx = s.context();
    ctx.add(note("typed"));
    ctx.save_changes().await?;
    drop(ctx);
    execute(&db, "ALTER TABLE note ADD COLUMN another TEXT").await;
    execute(&db, "CREATE INDEX by_text ON note (text)").await;
    s.commit().await?;
    assert_eq!(Note::query().count(&db).await?, 2);
    assert_eq!(found_text(&db, "PRAGMA integrity_check"), "ok");

    let mut s = session(&db).await;
    run(&mut *s, "INSERT INTO note (id, text) VALUES (200, 'c')").await?;
    execute(&db, "DROP TABLE note").await;
    let error = conflict(s).await;
    assert!(error.statement().unwrap().contains("VALUES (200"));
    Ok(())
}

/// The session still sees the table: its snapshot is of before.
#[tokio::test]
async fn a_session_works_on_with_a_table_that_others_have_changed() -> Result {
    let db = notes(Mode::Inline).await;
    execute(&db, "INSERT INTO note (text) VALUES ('a')").await;
    let mut s = session(&db).await;
    execute(&db, "ALTER TABLE note RENAME TO renamed").await;
    assert_eq!(Note::query().count(&mut *s).await?, 1);
    assert!(
        number(&mut *s, "SELECT count(*) FROM renamed")
            .await
            .is_err()
    );
    s.commit().await?;
    let mut s = session(&db).await;
    assert_eq!(number(&mut *s, "SELECT count(*) FROM renamed").await?, 1);
    s.rollback().await
}

#[tokio::test]
async fn triggers_run_in_the_session_and_again_where_it_is_merged() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        execute(
            &db,
            "CREATE TABLE audit (id INTEGER PRIMARY KEY, note_id INT, total INT)",
        )
        .await;
        execute(
            &db,
            "CREATE TRIGGER audited AFTER INSERT ON note BEGIN
                INSERT INTO audit (note_id, total) VALUES (new.id, (SELECT count(*) FROM note));
             END",
        )
        .await;
        let (mut one, mut two) = (session(&db).await, session(&db).await);
        for s in [&mut one, &mut two] {
            let mut ctx = s.context();
            ctx.add(note("by a session"));
            ctx.save_changes().await?;
        }
        let largest = "SELECT max(total) FROM audit";
        assert_eq!(number(&mut *two, largest).await?, 1);
        one.commit().await?;
        let error = conflict(two).await;
        assert_eq!(error.statement(), Some(largest));

        // Who did not look at what the trigger wrote has nothing to differ.
        let mut three = session(&db).await;
        let mut ctx = three.context();
        ctx.add(note("by a session"));
        ctx.save_changes().await?;
        drop(ctx);
        execute(&db, "INSERT INTO note (text) VALUES ('meanwhile')").await;
        three.commit().await?;
        let totals = "SELECT group_concat(total) FROM (SELECT total FROM audit ORDER BY id)";
        assert_eq!(found_text(&db, totals), "1,2,3", "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_trigger_that_others_made_meanwhile_runs_where_the_session_is_merged() -> Result {
    let db = notes(Mode::Inline).await;
    execute(&db, "CREATE TABLE audit (text)").await;
    let mut s = session(&db).await;
    run(&mut *s, "INSERT INTO note (id, text) VALUES (1, 'a')").await?;
    execute(
        &db,
        "CREATE TRIGGER audited AFTER INSERT ON note BEGIN INSERT INTO audit VALUES (new.text); END",
    )
    .await;
    s.commit().await?;
    assert_eq!(found_text(&db, "SELECT text FROM audit"), "a");
    Ok(())
}

/// A text that had nothing to do was remembered as one that only reads, and what it did later was not written.
#[tokio::test]
async fn a_definition_that_had_nothing_to_do_has_something_to_do_later() -> Result {
    for mode in MODES {
        let db = with(mode, &["CREATE TABLE t (a)", "CREATE INDEX i ON t (a)"]).await;
        let texts = [
            "CREATE TABLE IF NOT EXISTS t (a)",
            "CREATE INDEX IF NOT EXISTS i ON t (a)",
            "DROP TABLE IF EXISTS u",
        ];
        let mut s = session(&db).await;
        for sql in texts {
            run(&mut *s, sql).await?;
        }
        s.commit().await?;
        execute(&db, "DROP TABLE t").await;
        execute(&db, "CREATE TABLE u (a)").await;
        for sql in texts {
            let mut s = session(&db).await;
            run(&mut *s, sql).await?;
            s.commit().await?;
        }
        let names = "SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema ORDER BY name)";
        assert_eq!(found_text(&db, names), "i,t", "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_number_in_the_header_is_written_by_a_session() -> Result {
    for mode in MODES {
        let db = with(mode, &[]).await;
        let mut s = session(&db).await;
        run(&mut *s, "PRAGMA user_version = 7").await?;
        assert_eq!(number(&mut *s, "PRAGMA user_version").await?, 7);
        assert_eq!(found_number(&db, "PRAGMA user_version"), 0);
        s.commit().await?;
        assert_eq!(found_number(&db, "PRAGMA user_version"), 7, "{mode:?}");

        let mut s = session(&db).await;
        assert_eq!(number(&mut *s, "PRAGMA user_version").await?, 7);
        run(&mut *s, "CREATE TABLE t (a)").await?;
        execute(&db, "PRAGMA user_version = 8").await;
        let error = conflict(s).await;
        assert_eq!(error.statement(), Some("PRAGMA user_version"));
    }
    Ok(())
}

#[tokio::test]
async fn that_a_table_was_missing_was_seen_too() -> Result {
    for by_the_library in [false, true] {
        let db = with(Mode::Inline, &["CREATE TABLE log (a)"]).await;
        let mut s = session(&db).await;
        let error = run(&mut *s, "SELECT text FROM note").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Statement);
        let error = Note::query().count(&mut *s).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Statement);
        run(&mut *s, "INSERT INTO log VALUES ('there was no table')").await?;
        if by_the_library {
            db.create_tables::<Note>().await?;
        } else {
            execute(&db, "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)").await;
        }
        let error = conflict(s).await;
        assert_eq!(error.statement(), Some("SELECT text FROM note"));
    }
    Ok(())
}

/// What a statement touches was remembered from the replay of a session that dropped a trigger and conflicted: later, the
/// trigger's rows were not among what the statement had changed, and who had read them was not told.
#[tokio::test]
async fn a_definition_that_was_undone_is_not_believed_afterwards() -> Result {
    let insert = "INSERT INTO note (id, text) VALUES (next_id('note'), 'a')";
    let audited = "SELECT count(*) FROM audit";
    for undoes in ["by a conflict", "by a savepoint"] {
        let db = notes(Mode::Inline).await;
        execute(&db, "CREATE TABLE elsewhere (a)").await;
        execute(&db, "CREATE TABLE audit (text)").await;
        execute(
            &db,
            "CREATE TRIGGER audited AFTER INSERT ON note BEGIN INSERT INTO audit VALUES (new.text); END",
        )
        .await;
        let drops = async |s: &mut Session| {
            run(&mut *s, "DROP TRIGGER audited").await?;
            run(&mut *s, insert).await
        };
        let mut s = session(&db).await;
        if undoes == "by a savepoint" {
            s.savepoint(async |s| {
                drops(s).await?;
                Err::<(), _>(Error::application("undo"))
            })
            .await
            .unwrap_err();
            s.commit().await?;
        } else {
            drops(&mut s).await?;
            number(&mut *s, "SELECT count(*) FROM note").await?;
            execute(&db, "INSERT INTO note (id, text) VALUES (1000, 'b')").await;
            conflict(s).await;
        }

        let mut reads = session(&db).await;
        number(&mut *reads, audited).await?;
        run(&mut *reads, "INSERT INTO elsewhere VALUES (1)").await?;
        let mut inserts = session(&db).await;
        run(&mut *inserts, insert).await?;
        inserts.commit().await?;
        let error = conflict(reads).await;
        assert_eq!(error.statement(), Some(audited), "{undoes}");
    }
    Ok(())
}

#[tokio::test]
async fn full_text_tables_are_searched_and_written_in_sessions() -> Result {
    for mode in MODES {
        let db = with(mode, &["CREATE VIRTUAL TABLE docs USING fts5(body)"]).await;
        execute(
            &db,
            "INSERT INTO docs (rowid, body) VALUES (1, 'rivers and lakes')",
        )
        .await;
        let matching = "SELECT count(*) FROM docs WHERE docs MATCH 'rivers'";

        let (mut one, mut two) = (session(&db).await, session(&db).await);
        run(
            &mut *one,
            "INSERT INTO docs (rowid, body) VALUES (2, 'more rivers')",
        )
        .await?;
        run(
            &mut *two,
            "INSERT INTO docs (rowid, body) VALUES (3, 'no rivers')",
        )
        .await?;
        assert_eq!(number(&mut *one, matching).await?, 2, "it reads its own");
        one.commit().await?;
        two.commit().await?;
        assert_eq!(found_number(&db, matching), 3);

        let mut s = session(&db).await;
        assert_eq!(number(&mut *s, matching).await?, 3);
        run(&mut *s, "UPDATE docs SET body = 'lakes' WHERE rowid = 1").await?;
        execute(&db, "INSERT INTO docs (rowid, body) VALUES (4, 'rivers')").await;
        let error = conflict(s).await;
        assert_eq!(error.statement(), Some(matching));

        // Each would have the same key, and saw it.
        let (mut one, mut two) = (session(&db).await, session(&db).await);
        run(&mut *one, "INSERT INTO docs (body) VALUES ('a')").await?;
        run(&mut *two, "INSERT INTO docs (body) VALUES ('b')").await?;
        one.commit().await?;
        conflict(two).await;
        execute(&db, "INSERT INTO docs (docs) VALUES ('integrity-check')").await;
    }
    Ok(())
}

#[tokio::test]
async fn a_full_text_table_is_made_in_a_session() -> Result {
    let db = with(Mode::Inline, &[]).await;
    let mut s = session(&db).await;
    run(&mut *s, "CREATE VIRTUAL TABLE docs USING fts5(body)").await?;
    run(
        &mut *s,
        "INSERT INTO docs (rowid, body) VALUES (1, 'a river')",
    )
    .await?;
    s.commit().await?;
    let found = "SELECT count(*) FROM docs WHERE docs MATCH 'river'";
    assert_eq!(found_number(&db, found), 1);
    Ok(())
}

/// sqlx notes the columns of a statement when it prepares it, and its worker dies of another number of them.
#[tokio::test]
async fn a_raw_query_is_shown_the_columns_that_there_are() -> Result {
    const ALL: &str = "SELECT * FROM note";
    for mode in Mode::ALL {
        // One place: every session has the same connection.
        let builder = mode.set(Database::builder("")).sessions(1);
        let db = builder.open_temporary().await?;
        db.create_tables::<Note>().await?;
        execute(&db, "INSERT INTO note (text) VALUES ('a')").await;
        let columns = async || -> Result<usize> {
            let mut s = session(&db).await;
            Ok(sqlx::query(ALL).fetch_one(&mut *s).await?.len())
        };
        assert_eq!(columns().await?, 2);
        execute(&db, "ALTER TABLE note ADD COLUMN more TEXT").await;
        assert_eq!(columns().await?, 3, "{mode:?}: a transaction did it");

        let mut s = session(&db).await;
        assert_eq!(sqlx::query(ALL).fetch_one(&mut *s).await?.len(), 3);
        let undone = s
            .savepoint(async |s| {
                run(&mut *s, "ALTER TABLE note DROP COLUMN more").await?;
                let row = sqlx::query(ALL).fetch_one(&mut *s).await?;
                assert_eq!(row.len(), 2, "{mode:?}: the session itself did");
                Err::<(), _>(Error::application("changed its mind"))
            })
            .await;
        assert_eq!(undone.unwrap_err().kind(), ErrorKind::Application);
        assert_eq!(sqlx::query(ALL).fetch_one(&mut *s).await?.len(), 3);
        run(&mut *s, "ALTER TABLE note DROP COLUMN more").await?;
        assert_eq!(sqlx::query(ALL).fetch_one(&mut *s).await?.len(), 2);
        s.rollback().await?;
        assert_eq!(columns().await?, 3, "{mode:?}: and undid it");
    }
    Ok(())
}

/// The save found no keys in the session, and its statements were run without any where it was merged.
#[tokio::test]
async fn a_save_whose_table_was_missing_is_told_so_again_where_it_is_merged() -> Result {
    for mode in Mode::ALL {
        for is_made_meanwhile in [false, true] {
            let db = with(mode, &["CREATE TABLE other (a)"]).await;
            let mut s = session(&db).await;
            let mut ctx = s.context();
            ctx.add(note("a"));
            let error = ctx.save_changes().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Statement, "{error}");
            drop(ctx);
            run(&mut *s, "INSERT INTO other VALUES (1)").await?;
            if is_made_meanwhile {
                db.create_tables::<Note>().await?;
                conflict(s).await;
            } else {
                s.commit().await?;
            }
            execute(&db, "INSERT INTO other VALUES (2)").await;
            let others = i64::from(!is_made_meanwhile) + 1;
            assert_eq!(found_number(&db, "SELECT count(*) FROM other"), others);
        }
    }
    Ok(())
}

/// The statement was kept by the connection that merges, and fails only when it runs.
#[tokio::test]
async fn a_save_to_a_table_that_the_session_dropped_fails_the_same_way_where_it_is_merged() -> Result
{
    for mode in Mode::ALL {
        let db = notes(mode).await;
        db.concurrent(async |s| {
            let mut ctx = s.context();
            ctx.add(note("a"));
            ctx.save_changes().await.map(drop)
        })
        .await?;
        let mut s = session(&db).await;
        run(&mut *s, "DROP TABLE note").await?;
        let mut ctx = s.context();
        ctx.add(note("a"));
        ctx.save_changes().await.unwrap_err();
        drop(ctx);
        s.commit().await?;
        db.create_tables::<Note>().await?;
        assert_eq!(Note::query().count(&db).await?, 0, "{mode:?}");
    }
    Ok(())
}
