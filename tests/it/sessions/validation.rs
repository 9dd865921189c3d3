//! What the validation of a session has to notice: statements that would fail otherwise, rowids, counters, header fields,
//! rows of which SQLite does not tell; and what it must not take for a difference.

use std::pin::pin;

use anabranch::{engine::SessionGuard, prelude::*};
use anabranch_tests::{
    Mode, dropped_after, execute,
    note::{Note, note, notes},
    start,
};
use futures_util::{
    StreamExt,
    future::{join, join_all},
};

use crate::sessions::{
    LEVELS, MODES, Result, conflict, found_number, found_text, number, run, session, session_of,
    with,
};

/// Runs an insert that has to fail, which the client takes as it comes, and says what it was told.
async fn caught(s: &mut Session, sql: &'static str) -> Result<String> {
    let error = run(&mut *s, sql).await.unwrap_err();
    let told = error.to_string();
    sqlx::query("INSERT INTO log (id, text) VALUES (1, ?)")
        .bind(&told)
        .execute(&mut *s)
        .await?;
    Ok(told)
}

/// The session conflicts, nothing of it is there, and the next save works.
async fn conflicts_and_leaves_nothing(db: &Database, s: SessionGuard) -> Result {
    conflict(s).await;
    assert_eq!(found_number(db, "SELECT count(*) FROM log"), 0);
    let mut ctx = db.context();
    ctx.add(note("next"));
    ctx.save_changes().await.map(drop)
}

const LOG: &str = "CREATE TABLE log (id INTEGER PRIMARY KEY, text TEXT)";

/// A statement that fails alone in the session, and takes everything along where it is merged: the tables, what the
/// session runs, what others do meanwhile.
const TAKES_ALL_ALONG: [(&[&str], &str, &[&str]); 2] = [
    (
        &[
            "CREATE TABLE t (a UNIQUE, b UNIQUE ON CONFLICT ROLLBACK)",
            "INSERT INTO t VALUES (1, 1)",
        ],
        "INSERT INTO t VALUES (1, 2)",
        &["DELETE FROM t", "INSERT INTO t VALUES (9, 2)"],
    ),
    (
        &[
            "CREATE TABLE t (a)",
            "CREATE TABLE setting (is_strict)",
            "INSERT INTO setting VALUES (FALSE)",
            "CREATE TRIGGER no_sevens BEFORE INSERT ON t WHEN new.a = 7 BEGIN
                SELECT CASE WHEN is_strict THEN RAISE(ROLLBACK, 'no sevens')
                    ELSE RAISE(ABORT, 'no sevens') END FROM setting;
             END",
        ],
        "INSERT INTO t VALUES (7)",
        &["UPDATE setting SET is_strict = TRUE"],
    ),
];

async fn with_log(mode: Mode, statements: &[&'static str]) -> Database {
    let db = notes(mode).await;
    execute(&db, LOG).await;
    for sql in statements {
        execute(&db, sql).await;
    }
    db
}

#[tokio::test]
async fn a_caught_failure_that_would_end_the_whole_transaction_by_now_is_a_conflict() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            for (tables, insert, meanwhile) in TAKES_ALL_ALONG {
                let db = with_log(mode, tables).await;
                let mut s = session_of(&db, isolation).await;
                caught(&mut s, insert).await?;
                for sql in meanwhile {
                    execute(&db, sql).await;
                }
                conflicts_and_leaves_nothing(&db, s).await?;
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_caught_failure_that_ends_the_transaction_of_a_group_harms_no_neighbour() -> Result {
    for mode in MODES {
        for (tables, insert, meanwhile) in TAKES_ALL_ALONG {
            let db = with_log(mode, tables).await;
            let mut s = session(&db).await;
            caught(&mut s, insert).await?;
            let mut neighbour = session(&db).await;
            run(&mut *neighbour, "INSERT INTO note VALUES (50, 'session')").await?;
            for sql in meanwhile {
                execute(&db, sql).await;
            }

            // They wait together, and are merged together.
            let mut contexts: Vec<_> = (0..4).map(|_| db.context()).collect();
            let held = db.begin().await?;
            let mut saves = contexts.iter_mut().map(|ctx| {
                ctx.add(note("beside"));
                ctx.save_changes()
            });
            let before = join_all(saves.by_ref().take(2));
            let after = join_all(saves);
            let sessions = join(s.commit(), neighbour.commit());
            let mut all = pin!(join(join(before, sessions), after));
            start(all.as_mut());
            held.rollback().await?;
            let ((before, (session, neighbour)), after) = all.await;
            for save in before.into_iter().chain(after) {
                save?;
            }
            neighbour?;
            let error = session.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{mode:?}: {error}");
            assert_eq!(Note::query().count(&db).await?, 5);
            assert_eq!(found_number(&db, "SELECT count(*) FROM log"), 0);
        }
    }
    Ok(())
}

/// The code is the same, and the client can tell the failures apart.
#[tokio::test]
async fn a_caught_failure_with_another_message_is_a_conflict() -> Result {
    let cases: [(&[&str], &str, &str, &[&str]); 2] = [
        (
            &[
                "CREATE TABLE t (a UNIQUE, b UNIQUE)",
                "INSERT INTO t VALUES (1, 1)",
            ],
            "INSERT INTO t VALUES (1, 2)",
            "t.a",
            &["DELETE FROM t", "INSERT INTO t VALUES (3, 2)"],
        ),
        (
            &[
                "CREATE TABLE t (a)",
                "CREATE TABLE setting (is_polite)",
                "INSERT INTO setting VALUES (FALSE)",
                "CREATE TRIGGER no_sevens BEFORE INSERT ON t WHEN new.a = 7 BEGIN
                    SELECT CASE WHEN is_polite THEN RAISE(ABORT, 'no sevens, please')
                        ELSE RAISE(ABORT, 'no sevens') END FROM setting;
                 END",
            ],
            "INSERT INTO t VALUES (7)",
            "no sevens",
            &["UPDATE setting SET is_polite = TRUE"],
        ),
    ];
    for mode in MODES {
        for isolation in LEVELS {
            for (tables, insert, message, meanwhile) in cases {
                let db = with_log(mode, tables).await;
                let mut s = session_of(&db, isolation).await;
                let told = caught(&mut s, insert).await?;
                assert!(told.contains(message), "{told}");
                for sql in meanwhile {
                    execute(&db, sql).await;
                }
                conflicts_and_leaves_nothing(&db, s).await?;

                // The same failure is no difference.
                let mut s = session_of(&db, isolation).await;
                caught(&mut s, insert).await?;
                s.commit().await?;
                assert_eq!(found_number(&db, "SELECT count(*) FROM log"), 1);
            }
        }
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Seat {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    number: i64,
    #[entity(unique)]
    guest: i64,
}

#[tokio::test]
async fn a_save_that_fails_for_another_column_is_a_conflict() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = with_log(mode, &[]).await;
            db.create_tables::<Seat>().await?;
            execute(&db, "INSERT INTO seat VALUES (1, 1, 1)").await;
            let save = async |s: &mut Session| -> Result {
                let mut ctx = s.context();
                ctx.add(Seat {
                    id: 0,
                    number: 1,
                    guest: 2,
                });
                let error = ctx.save_changes().await.unwrap_err();
                drop(ctx);
                sqlx::query("INSERT INTO log (id, text) VALUES (1, ?)")
                    .bind(error.column().map(str::to_owned))
                    .execute(&mut *s)
                    .await?;
                Ok(())
            };
            let mut s = session_of(&db, isolation).await;
            save(&mut s).await?;
            execute(&db, "DELETE FROM seat").await;
            execute(&db, "INSERT INTO seat VALUES (7, 3, 2)").await;
            conflicts_and_leaves_nothing(&db, s).await?;

            let mut s = session_of(&db, isolation).await;
            save(&mut s).await?;
            s.commit().await?;
            assert_eq!(found_text(&db, "SELECT text FROM log"), "guest");
        }
    }
    Ok(())
}

/// The first row of what RETURNING shows is not the end of the statement: what it left on the connection counts as well.
#[tokio::test]
async fn the_rowid_of_an_insert_of_which_the_first_row_was_fetched_is_compared() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            for is_beside in [true, false] {
                let db = with(
                    mode,
                    &[
                        "CREATE TABLE t (id INTEGER PRIMARY KEY, v)",
                        "CREATE TABLE link (id INTEGER PRIMARY KEY, t_id)",
                    ],
                )
                .await;
                let mut s = session_of(&db, isolation).await;
                let insert = "INSERT INTO t (v) VALUES (1) RETURNING v";
                assert_eq!(number(&mut *s, insert).await?, 1);
                let id = number(&mut *s, "SELECT last_insert_rowid()").await?;
                sqlx::query("INSERT INTO link VALUES (1, ?)")
                    .bind(id)
                    .execute(&mut *s)
                    .await?;
                if is_beside {
                    execute(&db, "INSERT INTO t (v) VALUES (2)").await;
                    conflict(s).await;
                    assert_eq!(found_number(&db, "SELECT count(*) FROM link"), 0);
                } else {
                    s.commit().await?;
                    let linked = "SELECT v FROM t JOIN link ON t.id = t_id";
                    assert_eq!(found_number(&db, linked), 1, "{mode:?}, {isolation:?}");
                }
            }
        }
    }
    Ok(())
}

/// A read of what the session itself wrote out of something else that others changed.
#[tokio::test]
async fn what_was_copied_from_counters_and_header_fields_is_compared() -> Result {
    let counted: &[&str] = &[
        "CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, text)",
        "INSERT INTO log (text) VALUES ('a')",
        "CREATE TABLE t (a)",
        "CREATE TRIGGER logged AFTER INSERT ON t BEGIN INSERT INTO log (text) VALUES ('t'); END",
        "CREATE TABLE x (a)",
    ];
    let cases = [
        (
            "INSERT INTO x (rowid, a) SELECT 1, seq FROM sqlite_sequence WHERE name = 'log'",
            "SELECT * FROM x",
            "INSERT INTO log (text) VALUES ('beside')",
        ),
        (
            "INSERT INTO t (rowid, a) VALUES (1, 1)",
            "SELECT max(id) FROM log",
            "UPDATE sqlite_sequence SET seq = 100 WHERE name = 'log'",
        ),
        (
            "INSERT INTO x (rowid, a) SELECT 1, user_version FROM pragma_user_version",
            "SELECT * FROM x",
            "PRAGMA user_version = 9",
        ),
    ];
    for mode in MODES {
        for (write, read, meanwhile) in cases {
            for by_session in [false, true] {
                let db = with(mode, counted).await;
                let mut s = session(&db).await;
                assert_eq!(run(&mut *s, write).await?, 1, "{write}");
                number(&mut *s, read).await?;
                if by_session {
                    let mut other = session(&db).await;
                    run(&mut *other, meanwhile).await?;
                    other.commit().await?;
                } else {
                    execute(&db, meanwhile).await;
                }
                let error = conflict(s).await;
                assert_eq!(error.statement(), Some(read), "{mode:?}: {write}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_write_that_found_nothing_is_no_conflict_by_itself() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = with(mode, &["CREATE TABLE t (id INTEGER PRIMARY KEY, v)"]).await;
            let runs = std::cell::Cell::new(0);
            let options = ConcurrentOptions::new().isolation(isolation);
            db.concurrent_with(options, async |s| {
                runs.set(runs.get() + 1);
                run(&mut *s, "INSERT INTO t VALUES (1, 0)").await?;
                let update = sqlx::query("UPDATE t SET v = 1 WHERE id = 99 RETURNING id");
                assert!(update.fetch_optional(&mut *s).await?.is_none());
                run(&mut *s, "INSERT INTO t VALUES (2, 0)").await?;
                Ok(())
            })
            .await?;
            assert_eq!(runs.get(), 1, "{mode:?}, {isolation:?}");
            assert_eq!(found_number(&db, "SELECT count(*) FROM t"), 2);
        }
    }
    Ok(())
}

/// There is one connection for sessions, on which the text was looked at when it had nothing to do.
#[tokio::test]
async fn a_definition_that_had_nothing_to_do_is_no_read_for_the_next_session() -> Result {
    for mode in MODES {
        let builder = mode.set(Database::builder("").sessions(1));
        let db = builder.open_temporary().await?;
        execute(&db, "CREATE TABLE t (a)").await;
        let texts = [
            "DROP TRIGGER IF EXISTS g",
            "  /* makes */ CREATE TABLE IF NOT EXISTS t (a)",
        ];
        for sql in texts {
            let mut s = session(&db).await;
            run(&mut *s, sql).await?;
            s.commit().await?;
        }
        execute(&db, "CREATE TABLE kept (a)").await;
        execute(
            &db,
            "CREATE TRIGGER g AFTER INSERT ON kept BEGIN SELECT 1; END",
        )
        .await;
        execute(&db, "DROP TABLE t").await;
        for sql in texts {
            let mut s = session(&db).await;
            run(&mut *s, sql).await?;
            s.commit().await?;
        }
        let names = "SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema ORDER BY name)";
        assert_eq!(found_text(&db, names), "kept,t", "{mode:?}");
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Stock {
    #[entity(id)]
    id: i64,
    amount: i64,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

async fn stocks(mode: Mode) -> Result<Database> {
    let db = notes(mode).await;
    db.create_tables::<Stock>().await?;
    execute(&db, "INSERT INTO stock VALUES (1, 10, 0), (2, 20, 0)").await;
    Ok(db)
}

/// The numbers come from one row for all, which is the library's own and nobody's write.
#[tokio::test]
async fn stamped_rows_are_compared_one_by_one_under_snapshot() -> Result {
    for mode in MODES {
        let db = stocks(mode).await?;
        for (second, conflicts) in [(2, false), (1, true)] {
            let (mut one, mut two) = (
                session_of(&db, Isolation::Snapshot).await,
                session_of(&db, Isolation::Snapshot).await,
            );
            for (s, id) in [(&mut one, 1), (&mut two, second)] {
                let mut ctx = s.context();
                let stock = ctx.find::<Stock>(id).await?.unwrap();
                ctx[stock].amount += 1;
                ctx.save_changes().await?;
            }
            let first = one.commit().await?;
            if conflicts {
                conflict(two).await;
            } else {
                assert!(two.commit().await? > first);
            }
        }
        assert_eq!(found_number(&db, "SELECT sum(amount) FROM stock"), 33);
    }
    Ok(())
}

/// Where the session is refused, what it read until then was read.
#[tokio::test]
async fn rows_that_came_before_a_refusal_are_compared() -> Result {
    for mode in MODES {
        let db = with(
            mode,
            &[
                "CREATE TABLE acct (id INTEGER PRIMARY KEY, v)",
                "INSERT INTO acct VALUES (1, 10), (2, 20)",
            ],
        )
        .await;
        for (meanwhile, conflicts) in [
            ("UPDATE acct SET v = v + 1 WHERE id = 2", false),
            ("UPDATE acct SET v = v + 1 WHERE id = 1", true),
        ] {
            let mut s = session(&db).await;
            let read = "SELECT v FROM acct WHERE id = 1 UNION ALL SELECT * FROM pragma_page_count";
            let mut rows = sqlx::query(read).fetch(&mut *s);
            assert!(rows.next().await.unwrap().is_ok());
            let error = Error::from(rows.next().await.unwrap().unwrap_err());
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            drop(rows);
            run(&mut *s, "INSERT OR REPLACE INTO acct VALUES (3, 30)").await?;
            execute(&db, meanwhile).await;
            if conflicts {
                let error = conflict(s).await;
                assert_eq!(error.statement(), Some(read), "{mode:?}");
            } else {
                s.commit().await?;
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_stamped_row_that_a_savepoint_gave_back_keeps_its_number() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = stocks(mode).await?;
            let seq = "SELECT seq FROM stock WHERE id = 1";
            let before = found_number(&db, seq);
            let mut s = session_of(&db, isolation).await;
            s.savepoint(async |s| {
                run(&mut *s, "UPDATE stock SET amount = 0 WHERE id = 1").await?;
                Err::<(), _>(Error::application("undo this"))
            })
            .await
            .unwrap_err();
            run(&mut *s, "INSERT INTO note VALUES (1, 'beside')").await?;
            assert_eq!(s.commit().await?, None, "{mode:?}, {isolation:?}");
            assert_eq!(found_number(&db, seq), before);

            // What the savepoint kept, and what came before it, has a number.
            let mut s = session_of(&db, isolation).await;
            run(&mut *s, "UPDATE stock SET amount = 5 WHERE id = 2").await?;
            s.savepoint(async |s| {
                run(&mut *s, "UPDATE stock SET amount = 0 WHERE id = 1").await?;
                Err::<(), _>(Error::application("undo this"))
            })
            .await
            .unwrap_err();
            let number = s.commit().await?.expect("a stamped row was touched");
            assert_eq!(found_number(&db, seq), before);
            let other = "SELECT seq FROM stock WHERE id = 2";
            assert_eq!(found_number(&db, other), number);
        }
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Owner {
    #[entity(id)]
    id: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Thing {
    #[entity(id)]
    id: i64,
    #[entity(references = Owner, on_delete = SetNull)]
    owner_id: Option<i64>,
    #[entity(version)]
    version: i64,
}

async fn things(mode: Mode) -> Result<Database> {
    let db = notes(mode).await;
    db.create_tables::<(Owner, Thing)>().await?;
    execute(&db, "INSERT INTO owner VALUES (1), (2)").await;
    execute(&db, "INSERT INTO thing VALUES (1, 1, 1)").await;
    Ok(db)
}

/// The pragma is of the session's transaction, and the group's goes on.
#[tokio::test]
async fn a_refused_session_leaves_the_foreign_keys_of_its_neighbours_immediate() -> Result {
    for mode in MODES {
        let db = things(mode).await?;
        let mut s = session(&db).await;
        run(&mut *s, "PRAGMA defer_foreign_keys = ON").await?;
        assert_eq!(number(&mut *s, "SELECT count(*) FROM owner").await?, 2);
        run(&mut *s, "INSERT INTO owner VALUES (10)").await?;
        execute(&db, "INSERT INTO owner VALUES (3)").await;

        let mut ctx = db.context();
        ctx.add(Thing {
            id: 0,
            owner_id: Some(99),
            version: 0,
        });
        let mut last = db.context();
        last.add(note("fine"));
        let held = db.begin().await?;
        let mut all = pin!(join(
            s.commit(),
            join(ctx.save_changes(), last.save_changes())
        ));
        start(all.as_mut());
        held.rollback().await?;
        let (session, (save, last)) = all.await;
        assert_eq!(session.unwrap_err().kind(), ErrorKind::Conflict);
        last?;
        let error = save.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ForeignKey, "{error}");
        assert_eq!(error.table(), Some("thing"), "{mode:?}: {error}");
    }
    Ok(())
}

/// The row was looked at after the batch itself had changed another column of it, which was undone by the time that the
/// client was told.
#[tokio::test]
async fn a_caught_mismatch_is_told_the_same_where_it_is_merged() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = things(mode).await?;
            execute(&db, "INSERT INTO thing VALUES (2, 1, 1)").await;
            execute(
                &db,
                "CREATE TRIGGER follows AFTER UPDATE ON thing WHEN new.id = 1 AND new.owner_id = 2
                 BEGIN UPDATE thing SET owner_id = NULL WHERE id = 2; END",
            )
            .await;
            let mut s = session_of(&db, isolation).await;
            let mut ctx = s.context();
            let first = ctx.find::<Thing>(1).await?.unwrap();
            let second = ctx.find::<Thing>(2).await?.unwrap();
            let inner = ctx.session().expect("it is bound to one");
            run(&mut *inner, "UPDATE thing SET version = 7 WHERE id = 2").await?;
            ctx[first].owner_id = Some(2);
            ctx[second].owner_id = Some(2);
            let error = ctx.save_changes().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            drop(ctx);
            run(&mut *s, "INSERT INTO note VALUES (1, 'caught')").await?;
            s.commit().await?;
            let state = "SELECT group_concat(version || ' ' || owner_id) FROM thing";
            assert_eq!(found_text(&db, state), "1 1,7 1", "{mode:?}, {isolation:?}");
        }
    }
    Ok(())
}

/// What a session did with its memory is no matter of the next one on the same connection.
#[tokio::test]
async fn a_session_that_outgrew_its_memory_unseen_leaves_no_limit_behind() -> Result {
    let large = "INSERT INTO note (id, text) WITH RECURSIVE n (i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
     SELECT 1000 + i, printf('%.1000c', 'x') FROM n";
    for mode in MODES {
        let builder = mode.set(Database::builder("").sessions(1));
        let builder = builder
            .cache_size(Bytes::kib(64))
            .session_memory(Bytes::mib(1));
        let db = builder.open_temporary().await?;
        db.create_tables::<Note>().await?;
        let mut dropped = 0;
        for polls in [1, 2, 3, 5, 8, 13, 21] {
            let mut s = session(&db).await;
            let ran = dropped_after(polls, run(&mut *s, large)).await;
            dropped += usize::from(ran.is_none());
            drop(s);
            let mut s = session(&db).await;
            run(&mut *s, "INSERT OR REPLACE INTO note VALUES (1, 'small')").await?;
            s.commit().await?;
        }
        assert!(dropped > 0, "{mode:?}: each was done before it was dropped");
        assert_eq!(Note::query().count(&db).await?, 1);
    }
    Ok(())
}

/// The update hook tells neither of rows that are replaced, nor of the rowid from which a row is moved.
#[tokio::test]
async fn a_row_that_goes_unheard_is_no_lost_update_under_snapshot() -> Result {
    let moves = "INSERT INTO t VALUES (5, 3, (SELECT 10))";
    let cases: [(&[&str], &str); 4] = [
        (
            &["CREATE TRIGGER g AFTER INSERT ON t WHEN new.u = 3
               BEGIN DELETE FROM t WHERE id = 1; END"],
            moves,
        ),
        (
            &["CREATE TRIGGER g AFTER INSERT ON t WHEN new.u = 3
               BEGIN REPLACE INTO t VALUES (6, 1, new.v); END"],
            moves,
        ),
        (&[], "UPDATE t SET id = 50 WHERE id = 1"),
        (&[], "UPDATE t SET rowid = 50 WHERE id = 1"),
    ];
    for mode in MODES {
        for (triggers, sql) in cases {
            let db = with(
                mode,
                &[
                    "CREATE TABLE t (id INTEGER PRIMARY KEY, u UNIQUE, v)",
                    "INSERT INTO t VALUES (1, 1, 10), (2, 2, 20)",
                ],
            )
            .await;
            for trigger in triggers {
                execute(&db, trigger).await;
            }
            let mut updates = session_of(&db, Isolation::Snapshot).await;
            let mut removes = session_of(&db, Isolation::Snapshot).await;
            run(&mut *updates, "UPDATE t SET v = v + 1 WHERE id = 1").await?;
            run(&mut *removes, sql).await?;
            updates.commit().await?;
            conflict(removes).await;
            let values = "SELECT group_concat(v) FROM (SELECT v FROM t ORDER BY id)";
            assert_eq!(found_text(&db, values), "11,20", "{mode:?}: {sql}");
        }
    }
    Ok(())
}

/// Nothing but the name of the column is another.
#[tokio::test]
async fn a_column_that_others_renamed_was_seen_by_its_name() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            for first_only in [false, true] {
                let db = with(
                    mode,
                    &[
                        "CREATE TABLE t (id INTEGER PRIMARY KEY, old)",
                        "INSERT INTO t VALUES (1, 'a')",
                        LOG,
                    ],
                )
                .await;
                let mut s = session_of(&db, isolation).await;
                let read = sqlx::query("SELECT * FROM t");
                if first_only {
                    read.fetch_one(&mut *s).await?;
                } else {
                    read.fetch_all(&mut *s).await?;
                }
                run(&mut *s, "INSERT INTO log VALUES (1, 'old')").await?;
                execute(&db, "ALTER TABLE t RENAME COLUMN old TO new").await;
                let error = conflict(s).await;
                assert_eq!(error.statement(), Some("SELECT * FROM t"), "{mode:?}");
            }
        }
    }
    Ok(())
}
