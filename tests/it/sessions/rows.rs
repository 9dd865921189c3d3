//! What a session saw of rows: by RETURNING, upserts, entities; and what a conflict says about it.

use anabranch::{prelude::*, value::Value};
use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
};

use crate::sessions::{
    LEVELS, MODES, Result, conflict, found_number, found_text, number, run, session, session_of,
    with,
};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Account {
    #[entity(id)]
    id: i64,
    owner: String,
    balance: i64,
    #[entity(version)]
    version: i64,
}

async fn accounts(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<Account>().await.unwrap();
    execute(
        &db,
        "INSERT INTO account (id, owner, balance, version) VALUES (1, 'Ada', 10, 1), (2, 'Bob', 20, 1)",
    )
    .await;
    db
}

#[tokio::test]
async fn a_session_reads_its_own_writes_and_nobody_else_does() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        run(&mut *s, "INSERT INTO note (id, text) VALUES (1, 'raw')").await?;
        let mut ctx = s.context();
        ctx.add(note("typed"));
        ctx.save_changes().await?;
        drop(ctx);
        assert_eq!(Note::query().count(&mut *s).await?, 2);
        assert_eq!(number(&mut *s, "SELECT count(*) FROM note").await?, 2);
        let mut other = session(&db).await;
        assert_eq!(Note::query().count(&mut *other).await?, 0);
        assert_eq!(Note::query().count(&db).await?, 0, "{mode:?}");
        s.commit().await?;
        assert_eq!(Note::query().count(&mut *other).await?, 0, "its snapshot");
        assert_eq!(Note::query().count(&db).await?, 2);
        other.rollback().await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_returning_shows_is_compared() -> Result {
    for isolation in LEVELS {
        let db = accounts(Mode::Inline).await;
        let update = "UPDATE account SET balance = balance + 1 WHERE id = 1 RETURNING balance";
        let mut s = session_of(&db, isolation).await;
        assert_eq!(number(&mut *s, update).await?, 11);
        s.commit().await?;
        assert_eq!(found_number(&db, "SELECT balance FROM account"), 11);

        let mut s = session_of(&db, isolation).await;
        assert_eq!(number(&mut *s, update).await?, 12);
        execute(&db, "UPDATE account SET balance = 100 WHERE id = 1").await;
        conflict(s).await;

        let mut s = session_of(&db, isolation).await;
        let delete = "DELETE FROM account WHERE id = 2 RETURNING owner";
        let gone: Vec<String> = sqlx::query_scalar(delete).fetch_all(&mut *s).await?;
        assert_eq!(gone, ["Bob"]);
        execute(&db, "DELETE FROM account WHERE id = 2").await;
        conflict(s).await;
    }
    Ok(())
}

#[tokio::test]
async fn upserts_that_nobody_looked_at_add_up() -> Result {
    let counters = "CREATE TABLE counters (name TEXT UNIQUE, hits INT)";
    let hit = "INSERT INTO counters (rowid, name, hits) VALUES (1, 'home', 1)
        ON CONFLICT (name) DO UPDATE SET hits = hits + 1";
    let db = with(Mode::Inline, &[counters]).await;
    let (mut one, mut two) = (session(&db).await, session(&db).await);
    run(&mut *one, hit).await?;
    run(&mut *two, hit).await?;
    one.commit().await?;
    // That it inserted the row is told by the last rowid.
    conflict(two).await;
    let (mut one, mut two) = (session(&db).await, session(&db).await);
    run(&mut *one, hit).await?;
    run(&mut *two, hit).await?;
    one.commit().await?;
    two.commit().await?;
    assert_eq!(found_number(&db, "SELECT hits FROM counters"), 3);

    // Under Snapshot both wrote the row.
    let (mut one, mut two) = (
        session_of(&db, Isolation::Snapshot).await,
        session_of(&db, Isolation::Snapshot).await,
    );
    run(&mut *one, hit).await?;
    run(&mut *two, hit).await?;
    one.commit().await?;
    let error = conflict(two).await;
    assert_eq!(error.table(), Some("counters"));
    assert_eq!(found_number(&db, "SELECT hits FROM counters"), 4);
    Ok(())
}

#[tokio::test]
async fn an_upsert_that_would_go_the_other_way_is_a_conflict_if_it_shows() -> Result {
    let db = with(
        Mode::Inline,
        &["CREATE TABLE counters (name TEXT PRIMARY KEY, hits INT) WITHOUT ROWID"],
    )
    .await;
    let mut s = session(&db).await;
    let hit = "INSERT INTO counters VALUES ('home', 1)
        ON CONFLICT (name) DO UPDATE SET hits = hits + 1 RETURNING hits";
    assert_eq!(number(&mut *s, hit).await?, 1);
    execute(&db, "INSERT INTO counters VALUES ('home', 5)").await;
    conflict(s).await;

    let mut s = session(&db).await;
    let add = "INSERT INTO counters VALUES ('about', 1) ON CONFLICT DO NOTHING";
    assert_eq!(run(&mut *s, add).await?, 1);
    execute(&db, "INSERT INTO counters VALUES ('about', 5)").await;
    let error = conflict(s).await;
    assert_eq!(error.statement(), Some(add));
    assert_eq!(found_number(&db, "SELECT sum(hits) FROM counters"), 10);
    Ok(())
}

/// The session changed a row that somebody else had changed by the time of its commit.
#[tokio::test]
async fn a_conflict_names_statement_table_and_key() -> Result {
    for mode in MODES {
        // Read by key.
        let db = accounts(mode).await;
        let mut s = session(&db).await;
        let mut ctx = s.context();
        let account = ctx.find::<Account>(2).await?.unwrap();
        let other = ctx.find::<Account>(1).await?.unwrap();
        ctx[other].balance += ctx[account].balance;
        ctx.save_changes().await?;
        drop(ctx);
        execute(
            &db,
            "UPDATE account SET balance = 21, version = 2 WHERE id = 2",
        )
        .await;
        let error = conflict(s).await;
        assert_eq!(error.table(), Some("account"), "{error}");
        assert_eq!(error.key(), [Value::Integer(2)], "{error}");
        let statement = error.statement().unwrap();
        assert!(statement.starts_with("SELECT"), "{statement}");
        assert!(!error.to_string().contains("Bob"), "no values: {error}");

        // Written without a look, and the row is another version by then.
        let mut s = session(&db).await;
        let mut ctx = s.context();
        let stale = Account {
            id: 1,
            owner: "Ada".to_owned(),
            balance: 5,
            version: 1,
        };
        ctx.update(stale)?;
        ctx.save_changes().await?;
        drop(ctx);
        execute(&db, "UPDATE account SET version = 7 WHERE id = 1").await;
        let error = conflict(s).await;
        assert_eq!(error.table(), Some("account"));
        assert_eq!(error.key(), [Value::Integer(1)]);
        assert!(error.statement().unwrap().starts_with("UPDATE"));

        // Raw SQL: the text as it was given.
        let mut s = session(&db).await;
        let sum = "SELECT sum(balance) FROM account";
        number(&mut *s, sum).await?;
        run(&mut *s, "UPDATE account SET owner = 'Eve' WHERE id = 1").await?;
        execute(&db, "DELETE FROM account WHERE id = 2").await;
        let error = conflict(s).await;
        assert_eq!(error.statement(), Some(sum), "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_snapshot_conflict_names_the_row_that_both_wrote() -> Result {
    for mode in MODES {
        let db = accounts(mode).await;
        let mut s = session_of(&db, Isolation::Snapshot).await;
        run(&mut *s, "UPDATE account SET balance = 0 WHERE id = 2").await?;
        let mut ctx = db.context();
        let account = ctx.find::<Account>(2).await?.unwrap();
        ctx[account].balance += 1;
        ctx.save_changes().await?;
        let error = conflict(s).await;
        assert_eq!(error.table(), Some("account"), "{error}");
        assert_eq!(error.key(), [Value::Integer(2)], "{error}");
        assert_eq!(found_number(&db, "SELECT sum(balance) FROM account"), 31);
    }
    Ok(())
}

/// Two columns of one row, by two: a save of the context writes only what changed, but under Snapshot it is the row
/// that counts.
#[tokio::test]
async fn blind_writes_of_different_columns_merge_when_serializable() -> Result {
    for (isolation, merges) in [
        (Isolation::Serializable, true),
        (Isolation::Snapshot, false),
    ] {
        let db = accounts(Mode::Inline).await;
        let (mut one, mut two) = (
            session_of(&db, isolation).await,
            session_of(&db, isolation).await,
        );
        run(&mut *one, "UPDATE account SET owner = 'Eve' WHERE id = 1").await?;
        run(&mut *two, "UPDATE account SET balance = 0 WHERE id = 1").await?;
        one.commit().await?;
        assert_eq!(two.commit().await.is_ok(), merges, "{isolation:?}");
        let row = found_text(&db, "SELECT owner || balance FROM account WHERE id = 1");
        assert_eq!(row, if merges { "Eve0" } else { "Eve10" });
    }
    Ok(())
}

#[tokio::test]
async fn a_row_that_is_as_it_was_is_no_conflict() -> Result {
    let db = accounts(Mode::Inline).await;
    let mut s = session(&db).await;
    assert_eq!(
        number(&mut *s, "SELECT balance FROM account WHERE id = 1").await?,
        10
    );
    run(&mut *s, "UPDATE account SET balance = 11 WHERE id = 1").await?;
    execute(&db, "UPDATE account SET balance = 99 WHERE id = 1").await;
    execute(&db, "UPDATE account SET balance = 10 WHERE id = 1").await;
    s.commit().await?;
    assert_eq!(found_number(&db, "SELECT balance FROM account"), 11);
    Ok(())
}

/// Rows that go without a word: SQLite tells of none of these changes. Under Snapshot nobody's update may get lost in
/// them.
#[tokio::test]
async fn rows_that_are_replaced_or_cleared_unseen_were_written_too() -> Result {
    let tables = &[
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT UNIQUE ON CONFLICT REPLACE, b INT)",
        "CREATE TABLE plain (id INTEGER PRIMARY KEY, a INT UNIQUE, b INT)",
        "CREATE TABLE orders (what TEXT)",
        "CREATE TRIGGER clears AFTER INSERT ON orders BEGIN DELETE FROM plain; END",
        "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
        "CREATE TABLE child (id INTEGER PRIMARY KEY,
            parent_id INT REFERENCES parent ON DELETE CASCADE, b INT)",
        "INSERT INTO t VALUES (1, 1, 0)",
        "INSERT INTO plain VALUES (1, 1, 0)",
        "INSERT INTO parent VALUES (1)",
        "INSERT INTO child VALUES (1, 1, 0)",
    ];
    for (mine, theirs) in [
        ("INSERT INTO t VALUES (2, 1, 0)", "UPDATE t SET b = 1"),
        (
            "INSERT OR REPLACE INTO plain VALUES (2, 1, 0)",
            "UPDATE plain SET b = 1",
        ),
        (
            "REPLACE INTO plain VALUES (2, 1, 0)",
            "UPDATE plain SET b = 1",
        ),
        (
            "UPDATE OR REPLACE plain SET a = 1 WHERE id = 3",
            "UPDATE plain SET b = 1 WHERE id = 1",
        ),
        ("DELETE FROM plain", "UPDATE plain SET b = 1"),
        (
            "INSERT INTO orders VALUES ('clear')",
            "UPDATE plain SET b = 1",
        ),
        ("DELETE FROM parent", "UPDATE child SET b = 1"),
        ("UPDATE plain SET b = 2", "UPDATE plain SET b = 1"),
    ] {
        let db = with(Mode::Inline, tables).await;
        if mine.contains("id = 3") {
            execute(&db, "INSERT INTO plain VALUES (3, 3, 0)").await;
        }
        let (mut one, mut two) = (
            session_of(&db, Isolation::Snapshot).await,
            session_of(&db, Isolation::Snapshot).await,
        );
        run(&mut *one, mine).await?;
        run(&mut *two, theirs).await?;
        two.commit().await?;
        let error = one.commit().await.expect_err(mine);
        assert_eq!(error.kind(), ErrorKind::Conflict, "{mine}: {error}");
    }
    Ok(())
}

/// 1 and 1.0 and '1' are equal to SQL; a client tells them apart.
#[tokio::test]
async fn a_value_of_another_type_is_another_value() -> Result {
    let db = with(
        Mode::Inline,
        &["CREATE TABLE t (a)", "INSERT INTO t VALUES (1)"],
    )
    .await;
    for other in [
        "UPDATE t SET a = 1.0",
        "UPDATE t SET a = '1'",
        "UPDATE t SET a = x'31'",
        "UPDATE t SET a = NULL",
    ] {
        let mut s = session(&db).await;
        sqlx::query("SELECT a FROM t").fetch_all(&mut *s).await?;
        run(
            &mut *s,
            "INSERT INTO t (rowid, a) SELECT 100 + count(*), 0 FROM t",
        )
        .await?;
        execute(&db, other).await;
        conflict(s).await;
    }
    Ok(())
}
