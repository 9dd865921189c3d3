//! Streams inside of transactions, snapshots and sessions.

use std::sync::atomic::{AtomicU64, Ordering};

use anabranch::{
    engine::{ReadSnapshot, Transaction},
    prelude::*,
    sql::{Cost, Executor, Read, Statement},
    value::{ColumnType as _, Row},
};
use anabranch_tests::Mode;
use futures_util::TryStreamExt as _;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Item {
    #[entity(id)]
    id: i64,
    name: String,
}

const COUNT: i64 = 300_000;

async fn items() -> Database {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Item>().await.unwrap();
    let mut ctx = db.context();
    for _ in 0..2_000 {
        ctx.add(Item {
            id: 0,
            name: "tea".to_owned(),
        });
    }
    ctx.save_changes().await.unwrap();
    db
}

fn number(row: &dyn Row) -> Result<i64, Error> {
    i64::decode(row.value(0)).map_err(|error| Error::new(ErrorKind::Decode, error.to_string()))
}

fn numbers(count: i64, decode: fn(&dyn Row) -> Result<i64, Error>) -> Read<i64> {
    let text = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?1) SELECT x FROM n";
    Read {
        statement: Statement {
            text: text.into(),
            args: vec![count.encode().unwrap()],
        },
        cost: Cost::Any,
        entity: None,
        decode,
    }
}

static DECODED: AtomicU64 = AtomicU64::new(0);

fn counted(row: &dyn Row) -> Result<i64, Error> {
    DECODED.fetch_add(1, Ordering::SeqCst);
    number(row)
}

/// Takes all rows, of which never more than some pages are there.
async fn is_flat<'c>(at: impl Executor<'c>) {
    let before = DECODED.load(Ordering::SeqCst);
    let mut rows = at.stream(numbers(COUNT, counted));
    let mut taken = 0;
    while let Some(number) = rows.try_next().await.unwrap() {
        taken += 1;
        assert_eq!(i64::try_from(taken).unwrap(), number);
        let decoded = DECODED.load(Ordering::SeqCst) - before;
        assert!(decoded - taken <= 2_000, "{decoded} rows for {taken}");
    }
    assert_eq!(taken, u64::try_from(COUNT).unwrap());
}

#[tokio::test]
async fn a_stream_never_holds_more_than_some_pages() {
    let db = items().await;
    db.write(async |tx| {
        is_flat(&mut *tx).await;
        Ok(())
    })
    .await
    .unwrap();
    db.read(async |snapshot| {
        is_flat(&mut *snapshot).await;
        Ok(())
    })
    .await
    .unwrap();
}

/// Drops a stream half-way, and one that was never asked.
async fn half(tx: &mut Transaction) {
    let mut rows = Executor::stream(&mut *tx, numbers(COUNT, number));
    assert_eq!(rows.try_next().await.unwrap(), Some(1));
    drop(rows);
    drop(Executor::stream(&mut *tx, numbers(COUNT, number)));
}

async fn half_of(snapshot: &mut ReadSnapshot) {
    let mut rows = Executor::stream(&mut *snapshot, numbers(COUNT, number));
    assert_eq!(rows.try_next().await.unwrap(), Some(1));
    drop(rows);
    drop(Executor::stream(&mut *snapshot, numbers(COUNT, number)));
}

#[tokio::test]
async fn a_transaction_goes_on_after_a_stream_that_was_dropped() {
    let db = items().await;
    db.write(async |tx| {
        half(tx).await;
        // A typed statement, a raw one, a savepoint, a write, another stream.
        assert_eq!(Item::query().count(&mut *tx).await?, 2_000);
        half(tx).await;
        sqlx::query("DELETE FROM item WHERE id = 1")
            .execute(&mut *tx)
            .await?;
        half(tx).await;
        let undone: Result<(), Error> = tx
            .savepoint(async |tx| {
                Item::query().delete().execute(&mut *tx).await?;
                half(tx).await;
                Err(Error::new(ErrorKind::Refused, "undo"))
            })
            .await;
        assert!(undone.is_err());
        half(tx).await;
        let all: Vec<Item> = Item::query().stream(&mut *tx).try_collect().await?;
        assert_eq!(all.len(), 1_999);
        half(tx).await;
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(Item::query().count(&db).await.unwrap(), 1_999);
}

#[tokio::test]
async fn a_transaction_is_rolled_back_after_a_stream_that_was_dropped() {
    let db = items().await;
    let mut tx = db.begin().await.unwrap();
    Item::query().delete().execute(&mut *tx).await.unwrap();
    half(&mut tx).await;
    tx.rollback().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    Item::query().delete().execute(&mut *tx).await.unwrap();
    half(&mut tx).await;
    drop(tx);
    // The slot is passed on once it is undone.
    db.write(async |tx| {
        assert_eq!(Item::query().count(&mut *tx).await?, 2_000);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_snapshot_stays_the_same_after_a_stream_that_was_dropped() {
    let db = items().await;
    db.read(async |snapshot| {
        assert_eq!(Item::query().count(&mut *snapshot).await?, 2_000);
        Item::query().delete().execute(&db).await?;
        half_of(snapshot).await;
        assert_eq!(Item::query().count(&mut *snapshot).await?, 2_000);
        half_of(snapshot).await;
        let all: Vec<Item> = Item::query().stream(&mut *snapshot).try_collect().await?;
        assert_eq!(all.len(), 2_000);
        half_of(snapshot).await;
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(Item::query().count(&db).await.unwrap(), 0);
}

fn fails_at_a_thousand(row: &dyn Row) -> Result<i64, Error> {
    match number(row)? {
        1_000 => Err(Error::new(ErrorKind::Decode, "it does not fit")),
        number => Ok(number),
    }
}

fn panics_at_a_thousand(row: &dyn Row) -> Result<i64, Error> {
    let number = number(row)?;
    assert_ne!(number, 1_000, "the test panics here");
    Ok(number)
}

/// What a stream gives before its one error, and what that is.
async fn until_error<'c>(
    at: impl Executor<'c>,
    decode: fn(&dyn Row) -> Result<i64, Error>,
) -> (u64, ErrorKind) {
    let mut rows = at.stream(numbers(COUNT, decode));
    let mut taken = 0;
    loop {
        match rows.try_next().await {
            Ok(Some(_)) => taken += 1,
            Ok(None) => panic!("no error"),
            Err(error) => {
                assert!(rows.try_next().await.unwrap().is_none());
                return (taken, error.kind());
            }
        }
    }
}

#[tokio::test]
async fn an_error_is_told_once_and_the_transaction_goes_on() {
    let db = items().await;
    db.write(async |tx| {
        Item::query()
            .filter(Item::ID.le(1))
            .delete()
            .execute(&mut *tx)
            .await?;
        let (taken, kind) = until_error(&mut *tx, fails_at_a_thousand).await;
        assert!(taken < 1_000);
        assert_eq!(kind, ErrorKind::Decode);
        assert_eq!(Item::query().count(&mut *tx).await?, 1_999);
        let (_, kind) = until_error(&mut *tx, panics_at_a_thousand).await;
        assert_eq!(kind, ErrorKind::Interrupted);
        assert_eq!(Item::query().count(&mut *tx).await?, 1_999);
        // What writes is refused.
        let mut read = numbers(1, number);
        read.statement.text = "DELETE FROM item RETURNING ?1".into();
        let refused = Executor::stream(&mut *tx, read).try_next().await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
        Ok(())
    })
    .await
    .unwrap();
    db.read(async |snapshot| {
        let (_, kind) = until_error(&mut *snapshot, fails_at_a_thousand).await;
        assert_eq!(kind, ErrorKind::Decode);
        assert_eq!(Item::query().count(&mut *snapshot).await?, 1_999);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn sessions_stream_what_they_see() {
    let db = items().await;
    let count = db
        .concurrent(async |s| {
            Item::query()
                .filter(Item::ID.le(10))
                .delete()
                .execute(&mut *s)
                .await?;
            let all: Vec<Item> = Item::query().stream(&mut *s).try_collect().await?;
            Ok(all.len())
        })
        .await
        .unwrap();
    assert_eq!(count, 1_990);
}
