//! A save or a query that was polled and is then left alone, held but not dropped, stops nobody.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use anabranch::prelude::*;
use anabranch_tests::{
    Mode,
    load::{Line, Order, add_order, write_order},
};
use futures_util::StreamExt;

use crate::poll_once;

async fn database(mode: Mode) -> Database {
    let db = mode
        .set(Database::builder(""))
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<(Order, Line)>().await.unwrap();
    db
}

async fn others_go_on(db: &Database, serial: i64) {
    let soon = Duration::from_secs(10);
    let save = async {
        let mut ctx = db.context();
        add_order(&mut ctx, 1, serial, 1);
        ctx.save_changes().await
    };
    let saved = tokio::time::timeout(soon, save).await;
    saved.expect("a save is stopped").unwrap();
    let written = tokio::time::timeout(soon, write_order(db, 2, serial)).await;
    written.expect("a transaction is stopped").unwrap();
}

#[tokio::test]
async fn a_save_that_is_polled_once_and_held_stops_nobody() {
    for mode in Mode::ALL {
        for polls in 1..4 {
            let db = database(mode).await;
            let mut ctx = db.context();
            add_order(&mut ctx, 0, 0, 3);
            // The queue is held, so that the save waits in it whatever the mode.
            let guard = db.begin().await.unwrap();
            {
                let mut held = pin!(ctx.save_changes());
                let nobody = &mut Context::from_waker(Waker::noop());
                for _ in 0..polls {
                    assert!(held.as_mut().poll(nobody).is_pending());
                }
                guard.commit().await.unwrap();
                for serial in 0..3 {
                    others_go_on(&db, serial).await;
                }
                assert_eq!(held.await.unwrap().inserted, 4);
            }
            assert!(!ctx.has_changes());
            assert_eq!(Order::query().count(&db).await.unwrap(), 7);
            db.close().await.unwrap();
        }
    }
}

/// Only the thread can run it: its owner was granted the lead, and sleeps on it.
#[tokio::test]
async fn the_thread_takes_over_what_its_owner_leaves_lying() {
    let db = database(Mode::Inline).await;
    let mut ctx = db.context();
    add_order(&mut ctx, 0, 0, 1);
    let guard = db.begin().await.unwrap();
    let mut held = pin!(ctx.save_changes());
    let nobody = &mut Context::from_waker(Waker::noop());
    for _ in 0..2 {
        assert!(held.as_mut().poll(nobody).is_pending());
    }
    guard.rollback().await.unwrap();
    write_order(&db, 1, 0).await.unwrap();
    assert_eq!(db.statistics().taken_over, 1);
    assert_eq!(Order::query().count(&db).await.unwrap(), 2);
    assert_eq!(held.await.unwrap().inserted, 2);
}

/// Nobody else can run a turn, so it loses its grant, keeps its place, and comes when it is polled again.
#[tokio::test]
async fn a_turn_that_is_polled_once_and_held_stops_nobody() {
    for mode in Mode::ALL {
        let db = database(mode).await;
        let guard = db.begin().await.unwrap();
        let mut held = pin!(db.begin());
        let nobody = &mut Context::from_waker(Waker::noop());
        assert!(held.as_mut().poll(nobody).is_pending());
        guard.commit().await.unwrap();
        for serial in 0..3 {
            others_go_on(&db, serial).await;
        }
        held.await.unwrap().commit().await.unwrap();
        others_go_on(&db, 3).await;
        db.close().await.unwrap();
    }
}

/// A query that lost a `select!` and is kept: the connection that it waited for is there for the next one.
#[tokio::test]
async fn a_query_that_is_polled_once_and_held_stops_nobody() {
    for mode in Mode::ALL {
        let db = mode
            .set(Database::builder(""))
            .readers(1)
            .open_temporary()
            .await
            .unwrap();
        db.create_tables::<(Order, Line)>().await.unwrap();
        // More rows than a stream reads ahead, so that it keeps the connection.
        let mut ctx = db.context();
        for serial in 0..2000 {
            add_order(&mut ctx, 0, serial, 0);
        }
        ctx.save_changes().await.unwrap();
        let mut stream = Order::query().stream(&db);
        assert!(stream.next().await.unwrap().is_ok());
        let mut held = pin!(Order::query().count(&db));
        let mut next = pin!(Order::query().count(&db));
        assert!(poll_once(held.as_mut()).await.is_pending());
        assert!(poll_once(next.as_mut()).await.is_pending());
        drop(stream);
        for query in [next.as_mut(), pin!(Order::query().count(&db))] {
            let counted = tokio::time::timeout(Duration::from_secs(10), query).await;
            assert_eq!(counted.expect("a query is stopped").unwrap(), 2000);
        }
        assert_eq!(held.await.unwrap(), 2000);
        db.close().await.unwrap();
    }
}
