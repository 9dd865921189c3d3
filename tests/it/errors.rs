//! Every kind of error, met as an application meets it.

use anabranch::{
    prelude::*,
    query::raw,
    sql::{Cost, Executor, Read, Statement},
    value::{Row, Value},
};
use anabranch_tests::{Mode, ask, ask_with, execute, outsider, try_execute};
use futures_util::StreamExt;
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(check = "price < 1000")]
struct Item {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    name: String,
    price: i64,
    weight: f64,
    #[entity(references = Item)]
    part_of: Option<i64>,
    #[entity(version)]
    version: i64,
}

fn item(name: &str) -> Item {
    Item {
        id: 0,
        name: name.to_owned(),
        price: 1,
        weight: 1.0,
        part_of: None,
        version: 0,
    }
}

async fn shop(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<Item>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(item("pot"));
    ctx.add(item("lid"));
    ctx.save_changes().await.unwrap();
    db
}

async fn refused(db: &Database, wrong: Item) -> Error {
    let mut ctx = db.context();
    let row = ctx.add(wrong.clone());
    let error = ctx.save_changes().await.unwrap_err();
    let again = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), again.kind(), "the context is as before");
    assert_eq!(ctx[row].name, wrong.name);
    error
}

#[tokio::test]
async fn a_constraint_that_refuses_a_save_has_its_kind_and_its_names() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        let error = refused(&db, item("pot")).await;
        assert_eq!(error.kind(), ErrorKind::Unique);
        assert_eq!(
            (error.table(), error.column()),
            (Some("item"), Some("name"))
        );
        let error = refused(&db, Item { id: 1, ..item("a") }).await;
        assert_eq!(error.kind(), ErrorKind::Unique);
        assert_eq!(error.column(), Some("id"));
        let part_of = Some(4711);
        let error = refused(
            &db,
            Item {
                part_of,
                ..item("b")
            },
        )
        .await;
        assert_eq!(error.kind(), ErrorKind::ForeignKey);
        assert_eq!(error.table(), Some("item"));
        let price = 4711;
        let error = refused(&db, Item { price, ..item("c") }).await;
        assert_eq!(error.kind(), ErrorKind::Check);
        assert!(error.is_constraint());
        assert!(!error.to_string().contains("4711"), "{error}");
        assert_eq!(Item::query().count(&db).await.unwrap(), 2);
    }
}

#[tokio::test]
async fn a_constraint_that_refuses_raw_sql_has_its_kind() {
    let db = shop(Mode::Inline).await;
    for (sql, kind) in [
        (
            "INSERT INTO item VALUES (9, 'pot', 1, 1, NULL, 1)",
            ErrorKind::Unique,
        ),
        (
            "INSERT INTO item VALUES (9, 'a', 1, 1, 4711, 1)",
            ErrorKind::ForeignKey,
        ),
        (
            "INSERT INTO item VALUES (9, NULL, 1, 1, NULL, 1)",
            ErrorKind::NotNull,
        ),
        (
            "INSERT INTO item VALUES (9, 'a', 4711, 1, NULL, 1)",
            ErrorKind::Check,
        ),
        (
            "INSERT INTO item VALUES (9, 'a', 'one', 1, NULL, 1)",
            ErrorKind::Constraint,
        ),
        ("INSERT INTO nosuch VALUES (1)", ErrorKind::Statement),
        ("INSERT INTO item (nosuch) VALUES (1)", ErrorKind::Statement),
        ("SELECT \"nosuch\" FROM item", ErrorKind::Statement),
        ("this is no SQL", ErrorKind::Statement),
        ("SELECT zeroblob(1000000001)", ErrorKind::TooBig),
        ("PRAGMA synchronous = OFF", ErrorKind::Refused),
    ] {
        let error = try_execute(&db, sql).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{sql}: {error:?}");
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_kept_is_refused_before_anything_is_written() {
    let db = shop(Mode::Inline).await;
    let error = refused(
        &db,
        Item {
            weight: f64::NAN,
            ..item("a")
        },
    )
    .await;
    assert_eq!(error.kind(), ErrorKind::Value);
    assert_eq!(
        (error.table(), error.column()),
        (Some("item"), Some("weight"))
    );
    let error = refused(&db, item("a\0b")).await;
    assert_eq!(error.kind(), ErrorKind::Value);
    assert_eq!(error.column(), Some("name"));
    let error = Item::query()
        .filter(Item::WEIGHT.gt(f64::NAN))
        .all(&db)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert_eq!(Item::query().count(&db).await.unwrap(), 2);
}

#[tokio::test]
async fn a_stored_value_that_does_not_fit_names_table_column_and_key() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        execute(
            &db,
            "CREATE TABLE item (id INTEGER PRIMARY KEY, name, price, weight, part_of, version);
             INSERT INTO item VALUES (7, 'fine', 'not a number', 1, NULL, 1)",
        )
        .await;
        let mut ctx = db.context();
        let errors = [
            Item::find(&db, 7).await.unwrap_err(),
            Item::query().all(&db).await.unwrap_err(),
            Item::query().stream(&db).next().await.unwrap().unwrap_err(),
            ctx.find::<Item>(7).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Decode, "{mode:?}");
            assert_eq!(
                (error.table(), error.column()),
                (Some("item"), Some("price"))
            );
            assert_eq!(error.key(), [Value::Integer(7)]);
            assert!(!error.to_string().contains("not a number"), "{error}");
        }
        // The connections are as good as before.
        assert_eq!(Item::query().count(&db).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_query_for_one_row_tells_none_from_many() {
    let db = shop(Mode::Inline).await;
    let none = || Item::query().filter(Item::NAME.eq("none"));
    let error = none().one(&db).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(none().optional(&db).await.unwrap(), None);
    for error in [
        Item::query().one(&db).await.unwrap_err(),
        Item::query().optional(&db).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::MoreThanOne);
        assert_eq!(error.table(), Some("item"));
    }
}

#[tokio::test]
async fn a_conflict_carries_original_current_and_database_values() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        let mut mine = db.context();
        let changed = mine.find::<Item>(1).await.unwrap().unwrap();
        let gone = mine.find::<Item>(2).await.unwrap().unwrap();
        let mut theirs = db.context();
        let row = theirs.find::<Item>(1).await.unwrap().unwrap();
        theirs[row].price = 20;
        let row = theirs.find::<Item>(2).await.unwrap().unwrap();
        theirs.remove(row);
        theirs.save_changes().await.unwrap();

        mine[changed].price = 30;
        mine[changed].name = "kettle".to_owned();
        mine[gone].price = 40;
        mine.add(item("innocent"));
        let error = mine.save_changes().await.unwrap_err();
        assert!(error.is_conflict() && error.kind() == ErrorKind::Conflict);
        assert!(!error.is_retryable(), "as it is it would fail again");
        let mut conflicts = error.conflicts().to_vec();
        conflicts.sort_by_key(|conflict| conflict.key == [Value::Integer(2)]);
        let [changed, gone] = &conflicts[..] else {
            panic!("two entities lost: {conflicts:?}");
        };
        assert_eq!((changed.entity, changed.table), ("Item", "item"));
        assert_eq!(changed.key, [Value::Integer(1)]);
        let price = Item::PRICE.index();
        assert_eq!(changed.columns[price], "price");
        assert_eq!(changed.original[price], Value::Integer(1));
        assert_eq!(changed.current[price], Value::Integer(30));
        let database = changed.database.as_ref().unwrap();
        assert_eq!(database[price], Value::Integer(20));
        let name = Item::NAME.index();
        assert_eq!(changed.original[name], Value::Text("pot".to_owned()));
        assert_eq!(changed.current[name], Value::Text("kettle".to_owned()));
        assert_eq!(database[name], Value::Text("pot".to_owned()));
        assert_eq!(
            (&gone.key[..], &gone.database),
            (&[Value::Integer(2)][..], &None)
        );
        assert_eq!(Item::query().count(&db).await.unwrap(), 1, "all or nothing");
    }
}

#[tokio::test]
async fn stale_version_is_refused() {
    let db = shop(Mode::Inline).await;
    let read = Item::find(&db, 1).await.unwrap().unwrap();
    execute(&db, "UPDATE item SET version = version + 1 WHERE id = 1").await;
    let mut ctx = db.context();
    let row = ctx.attach(read).unwrap();
    ctx[row].price = 2;
    assert!(ctx.save_changes().await.unwrap_err().is_conflict());
}

#[tokio::test]
async fn two_entities_with_one_key_are_refused_by_the_context() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let stored = Item::find(&db, 1).await.unwrap().unwrap();
    ctx.attach(stored.clone()).unwrap();
    let error = ctx.attach(stored.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyTracked);
    ctx.add(stored);
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyTracked);
}

#[tokio::test]
async fn a_changed_version_or_key_is_refused() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let row = ctx.find::<Item>(1).await.unwrap().unwrap();
    ctx[row].version += 1;
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    ctx[row].version -= 1;
    ctx[row].id = 77;
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "item")]
struct Rival {
    #[entity(id)]
    id: i64,
}

#[tokio::test]
async fn two_entities_for_one_table_do_not_go_together() {
    let db = Database::temporary().await.unwrap();
    let error = db.create_tables::<(Item, Rival)>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
}

#[tokio::test]
async fn the_error_of_the_application_comes_back_as_it_was() {
    #[derive(Debug, PartialEq)]
    struct SoldOut;
    impl std::fmt::Display for SoldOut {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("sold out")
        }
    }
    impl std::error::Error for SoldOut {}

    let db = shop(Mode::Inline).await;
    let error = db
        .write(async |tx| {
            sqlx::query("DELETE FROM item").execute(&mut *tx).await?;
            Err::<(), _>(Error::application(SoldOut))
        })
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Application);
    assert!(error.to_string().contains("sold out"));
    assert_eq!(error.into_application::<SoldOut>().unwrap(), SoldOut);
    assert_eq!(Item::query().count(&db).await.unwrap(), 2);
}

#[tokio::test]
async fn other_placeholders_than_arguments_are_counted_and_shown() {
    let db = shop(Mode::Inline).await;
    for (sql, expected) in [
        (
            "SELECT {}, {}",
            "placeholders for 2 arguments, 1 were given: ",
        ),
        ("SELECT 1", "placeholders for 0 arguments, 1 were given: "),
        ("SELECT {a}", "a placeholder of the SQL cannot be read: "),
    ] {
        let error = raw::<i64>(sql, (1,)).one(&db).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert_eq!(error.statement(), Some(sql));
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn what_a_query_is_asked_in_place_of_a_table_is_told() {
    #[derive(Debug, Entity)]
    struct Ranked {
        #[entity(id)]
        id: i64,
    }
    let db = shop(Mode::Inline).await;
    let error = Ranked::query().count(&db).await.unwrap_err().to_string();
    assert!(error.contains("no such table: ranked"), "{error}");
    assert!(error.contains("as_table"), "{error}");
}

/// An entity whose key was not read has 0 there.
#[tokio::test]
async fn an_update_without_a_key_says_so_and_another_has_the_key() {
    let db = shop(Mode::Inline).await;
    for (id, expected) in [(0, "its key is not set"), (999, "no row has its key")] {
        let item = Item {
            id,
            ..Item::find(&db, 1).await.unwrap().unwrap()
        };
        let failed = db.bulk_update().run([item]).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Conflict);
        assert_eq!(failed.error().key(), [Value::Integer(id)]);
        assert!(failed.to_string().contains(expected), "{failed}");
    }
}

/// Case 68: an argument that was forgotten became NULL without a word.
#[tokio::test]
async fn a_forgotten_argument_is_an_error() {
    let db = shop(Mode::Inline).await;
    for args in [Vec::new(), vec![Value::Integer(1); 3]] {
        let read = ask_with("SELECT ?1 + ?2", args.clone());
        let error = Executor::read(&db, read).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Statement);
        assert!(error.to_string().contains("takes 2 arguments"), "{error}");
        let mut tx = db.begin().await.unwrap();
        let error = tx.read(ask_with("SELECT ?1 + ?2", args)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Statement);
    }
}

#[tokio::test]
async fn a_reader_cannot_write() {
    let db = shop(Mode::Inline).await;
    let error = Executor::read(&db, ask("DELETE FROM item RETURNING id"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let error = db
        .stream(ask("DELETE FROM item RETURNING id"))
        .next()
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(Item::query().count(&db).await.unwrap(), 2);
}

fn panics(_: &dyn Row) -> Result<(), Error> {
    panic!("a row that cannot be read")
}

/// A panic while a row is decoded is the application's: on its task it is its own, on a thread it is told.
#[tokio::test]
async fn a_panic_while_decoding_harms_no_connection() {
    let db = Database::builder("")
        .readers(1)
        .open_temporary()
        .await
        .unwrap();
    for _ in 0..3 {
        let read = || Read {
            statement: Statement {
                text: "SELECT 1".into(),
                args: Vec::new(),
            },
            cost: Cost::Any,
            entity: None,
            decode: panics,
        };
        let error = Executor::read(&db, read()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        let error = db.stream(read()).next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        let inline = Read {
            cost: Cost::Small,
            ..read()
        };
        let task = tokio::spawn({
            let db = db.clone();
            async move { Executor::read(&db, inline).await }
        });
        assert!(task.await.unwrap_err().is_panic());
        assert_eq!(
            Executor::read(&db, ask("SELECT 1")).await.unwrap(),
            [Value::Integer(1)]
        );
    }
}

/// Cases 2, 4 and 13: 517 of a transaction that the application runs on a connection of its own.
#[tokio::test]
async fn a_stale_snapshot_has_a_kind_of_its_own() {
    let db = shop(Mode::Inline).await;
    let mut own = SqliteConnectOptions::new()
        .filename(db.path())
        .connect()
        .await
        .unwrap();
    sqlx::query("BEGIN; SELECT * FROM item")
        .execute(&mut own)
        .await
        .unwrap();
    execute(&db, "UPDATE item SET price = 2").await;
    let error = sqlx::query("UPDATE item SET price = 3")
        .execute(&mut own)
        .await
        .unwrap_err();
    let error = Error::from(error);
    assert_eq!(error.kind(), ErrorKind::BusySnapshot);
    assert_eq!(error.sqlite_code(), Some(517));
    assert!(error.is_retryable());
}

/// Case 13: what `?` makes of the other errors of sqlx.
#[tokio::test]
async fn errors_of_sqlx_are_classified() {
    let db = shop(Mode::Inline).await;
    let mut tx = db.begin().await.unwrap();
    let missing = sqlx::query("SELECT 1 WHERE 0")
        .fetch_one(&mut *tx)
        .await
        .unwrap_err();
    assert_eq!(Error::from(missing).kind(), ErrorKind::NotFound);
    let misread = sqlx::query_scalar::<_, i64>("SELECT 'text'")
        .fetch_one(&mut *tx)
        .await
        .unwrap_err();
    assert_eq!(Error::from(misread).kind(), ErrorKind::Decode);
    let crashed = sqlx::Error::WorkerCrashed;
    assert_eq!(Error::from(crashed).kind(), ErrorKind::Poisoned);
    let failed = sqlx::Error::Io(std::io::Error::other("the disk went away"));
    assert_eq!(Error::from(failed).kind(), ErrorKind::Io);
    tx.commit().await.unwrap();
}

/// Case 13: BUSY arrived as an unknown error, so that nobody could match on it.
#[tokio::test]
async fn a_busy_error_of_raw_sqlx_can_be_matched() {
    let db = shop(Mode::Inline).await;
    let mut own = SqliteConnectOptions::new()
        .filename(db.path())
        .busy_timeout(std::time::Duration::ZERO)
        .connect()
        .await
        .unwrap();
    let other = outsider(db.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = sqlx::query("DELETE FROM item")
        .execute(&mut own)
        .await
        .unwrap_err();
    let error = Error::from(error);
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(error.sqlite_code(), Some(5));
}

/// A table whose largest key is taken gets no further one.
#[tokio::test]
async fn a_table_without_keys_left_is_full() {
    let db = shop(Mode::Inline).await;
    execute(
        &db,
        "INSERT INTO item VALUES (9223372036854775807, 'last', 1, 1, NULL, 1)",
    )
    .await;
    let error = refused(&db, item("one more")).await;
    assert_eq!(error.kind(), ErrorKind::Full);
    assert_eq!(error.table(), Some("item"));
}
