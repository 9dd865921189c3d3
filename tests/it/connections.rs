//! Pools and connections: section C of docs/cases.md.

use std::{path::Path, time::Duration};

use anabranch::prelude::*;
use anabranch::sql::Executor;
use anabranch_tests::{Mode, ask, execute, outsider, try_execute};
use futures_util::{StreamExt, future::join_all};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Author {
    #[entity(id)]
    id: i64,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Book {
    #[entity(id)]
    id: i64,
    #[entity(references = Author)]
    author_id: i64,
}

const IMPATIENT: Duration = Duration::from_millis(250);

/// More rows than cross from a stream's thread before anybody asks for them.
const MANY_AUTHORS: &str = "
    INSERT INTO author (name)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000) SELECT 'author' FROM n";

/// Cases 32, 33 and 34: tables in memory vanished with the pool's idle connections, with their lifetime, or were
/// another connection's; so a database in memory is refused, and `temporary` takes its place.
#[tokio::test]
async fn a_database_in_memory_is_refused() {
    for path in [
        "",
        ":memory:",
        "file::memory:?cache=shared",
        "file:app.db?mode=memory&cache=shared",
        "file:/tmp/app.db",
    ] {
        let error = Database::open(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Options, "{path}");
        assert!(
            error.to_string().contains("Database::temporary()"),
            "{error}"
        );
    }
}

/// Case 33: with more than one connection in memory each saw an empty database of its own.
#[tokio::test]
async fn all_connections_of_a_temporary_database_see_the_same() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Author>().await.unwrap();
    execute(&db, MANY_AUTHORS).await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut rows = Author::query().stream(&db);
        assert!(rows.next().await.unwrap().is_ok());
        streams.push(rows);
    }
    let rest = join_all(streams.into_iter().map(StreamExt::count)).await;
    assert!(rest.into_iter().all(|rows| rows == 1999));
}

/// Case 36: one leaked connection stopped a node for days, and nobody could say who held it.
#[tokio::test]
async fn whoever_waits_for_the_writer_in_vain_is_told_who_holds_it() {
    for mode in Mode::ALL {
        let db = mode
            .set(Database::builder("").queue_timeout(IMPATIENT))
            .open_temporary()
            .await
            .unwrap();
        db.create_tables::<Author>().await.unwrap();
        assert!(db.writer_holder().is_none());
        let leaked = db.begin().await.unwrap();
        let here = format!("db.begin at {}:{}:", file!(), line!() - 1);
        let holder = db.writer_holder().unwrap();
        assert!(holder.label.starts_with(&here), "{holder:?}");

        let mut ctx = db.context();
        ctx.add(Author {
            id: 0,
            name: "waits".to_owned(),
        });
        let errors = [
            ctx.save_changes().await.unwrap_err(),
            db.begin().await.map(drop).unwrap_err(),
            try_execute(&db, "DELETE FROM author").await.unwrap_err(),
            db.checkpoint().await.unwrap_err(),
            db.close().await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::QueueTimeout, "{mode:?}");
            let text = error.to_string();
            assert!(text.contains(&here) && text.contains(" so far"), "{text}");
            assert!(error.waited().unwrap() >= IMPATIENT, "{text}");
        }
        leaked.rollback().await.unwrap();
        ctx.save_changes().await.unwrap();

        // The same for a closure that does not come to its end.
        let (reached, line) = (tokio::sync::Notify::new(), line!() + 1);
        let endless = db.write(async |_| {
            reached.notify_one();
            std::future::pending::<Result<(), Error>>().await
        });
        let waits = async {
            reached.notified().await;
            db.begin().await.map(drop).unwrap_err()
        };
        let error = tokio::select! {
            _ = endless => unreachable!("it never ends"),
            error = waits => error,
        };
        let here = format!("db.write at {}:{line}:", file!());
        assert!(error.to_string().contains(&here), "{error}");
    }
}

/// Case 37: the pool timed out, and nobody knew why.
/// Case 38: a query inside of a stream's loop waited for the one connection that the stream had.
#[tokio::test]
async fn whoever_waits_for_a_read_connection_in_vain_is_told_what_the_pool_is_at() {
    let db = Database::builder("")
        .readers(2)
        .queue_timeout(IMPATIENT)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Author>().await.unwrap();
    execute(&db, MANY_AUTHORS).await;
    let mut first = Author::query().stream(&db);
    let mut second = Author::query().stream(&db);
    first.next().await.unwrap().unwrap();
    second.next().await.unwrap().unwrap();

    let error = Author::query().count(&db).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PoolTimeout);
    assert!(error.is_retryable() && error.waited().unwrap() >= IMPATIENT);
    let text = error.to_string();
    for part in ["2 in all", "0 idle", "1 waiting", "a stream at "] {
        assert!(text.contains(part), "{text}");
    }
    // Writing needs none of them, and they come back.
    execute(&db, "INSERT INTO author (name) VALUES ('new')").await;
    drop(second);
    assert_eq!(Author::query().count(&db).await.unwrap(), 2001);
    assert_eq!(first.count().await, 1999);
}

/// Case 38: a stream of few rows has let go of its connection before its loop runs.
#[tokio::test]
async fn a_short_stream_needs_no_connection_while_its_rows_are_looked_at() {
    let db = Database::builder("")
        .readers(1)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Author>().await.unwrap();
    execute(&db, "INSERT INTO author (name) VALUES ('a'), ('b'), ('c')").await;
    let mut rows = Author::query().stream(&db);
    let mut seen = 0;
    while let Some(row) = rows.next().await {
        let id = row.unwrap().id;
        assert!(Author::find(&db, id).await.unwrap().is_some());
        seen += 1;
    }
    assert_eq!(seen, 3);
}

/// Case 40: foreign keys were not enforced on connections that came later.
#[tokio::test]
async fn foreign_keys_are_enforced_on_every_connection() {
    for mode in Mode::ALL {
        let db = mode
            .set(Database::builder("").readers(10))
            .open_temporary()
            .await
            .unwrap();
        db.create_tables::<(Author, Book)>().await.unwrap();
        execute(&db, "INSERT INTO author VALUES (1, 'ada')").await;
        execute(&db, "INSERT INTO book VALUES (1, 1)").await;

        // The connection of saves.
        let mut ctx = db.context();
        let author = ctx.find::<Author>(1).await.unwrap().unwrap();
        ctx.remove(author);
        let error = ctx.save_changes().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ForeignKey, "{mode:?}");
        let mut ctx = db.context();
        ctx.add(Book {
            id: 0,
            author_id: 99,
        });
        let error = ctx.save_changes().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ForeignKey, "{mode:?}");

        // That of exclusive transactions, typed and raw.
        for sql in [
            "DELETE FROM author",
            "INSERT INTO book (author_id) VALUES (99)",
            "UPDATE book SET author_id = 99",
        ] {
            let error = try_execute(&db, sql).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ForeignKey, "{mode:?}: {sql}");
        }
        // Ten readers at once, each on a connection of its own.
        let on = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000)
                  SELECT foreign_keys FROM n, pragma_foreign_keys";
        let mut held = Vec::new();
        for _ in 0..10 {
            let mut rows = db.stream(ask(on));
            let found = rows.next().await.unwrap().unwrap();
            assert_eq!(found, anabranch::value::Value::Integer(1));
            held.push(rows);
        }
    }
}

/// Case 41: two crates asked for different versions of the SQLite binding, and the build could not be resolved.
/// Case 42: two builds of SQLite in one process do not see each other's locks. This binary links rusqlite and sqlx
/// beside the library, and there is one SQLite.
#[test]
fn one_sqlite_serves_rusqlite_sqlx_and_the_library() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    let lock = std::fs::read_to_string(lock).unwrap();
    assert_eq!(lock.matches("name = \"libsqlite3-sys\"").count(), 1);
}

/// Case 42: a connection that the application opens by itself sees the library's locks, and the library sees its.
#[tokio::test]
async fn connections_of_the_application_itself_see_our_locks_and_we_theirs() {
    let db = Database::builder("")
        .busy_timeout(IMPATIENT)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Author>().await.unwrap();
    let other = outsider(db.path());
    other.busy_timeout(Duration::ZERO).unwrap();
    let insert = "INSERT INTO author (name) VALUES ('theirs')";

    let held = db.begin().await.unwrap();
    let told = other.execute(insert, []).unwrap_err();
    assert_eq!(
        told.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy)
    );
    held.rollback().await.unwrap();

    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other.execute(insert, []).unwrap();
    let error = try_execute(&db, insert).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    other.execute_batch("COMMIT").unwrap();

    // Closing it takes neither the log nor anybody's locks along.
    drop(other);
    execute(&db, insert).await;
    assert_eq!(Author::query().count(&db).await.unwrap(), 2);
}
