//! Sessions whose futures are dropped, at any await.

use std::time::Duration;

use anabranch::prelude::*;
use anabranch_tests::{
    dropped_after,
    note::{Note, note, notes},
    outsider,
    random::is_long,
};

use crate::sessions::{LEVELS, MODES, Result, run};

/// The transaction of nobody is open: another program can write at once.
fn assert_unlocked(db: &Database) {
    let other = outsider(db.path());
    other.busy_timeout(Duration::ZERO).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
}

/// Few, mostly, and sometimes enough for all of it.
const fn polls(round: usize) -> usize {
    round % 61 + (1 << (round % 13))
}

fn rounds() -> usize {
    if is_long() { 5_000 } else { 300 }
}

#[tokio::test]
async fn a_session_whose_begin_is_dropped_anywhere_leaves_nothing() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        for round in 0..rounds() {
            let begun =
                dropped_after(round % 9, db.begin_concurrent(Isolation::Serializable)).await;
            drop(begun);
        }
        // All places are free.
        for _ in 0..20 {
            let mut s = db.begin_concurrent(Isolation::Serializable).await?;
            run(&mut *s, "INSERT INTO note (text) VALUES ('kept')").await?;
            s.commit().await?;
        }
        assert_eq!(Note::query().count(&db).await?, 20, "{mode:?}");
        assert_unlocked(&db);
        db.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_closure_that_is_dropped_anywhere_is_whole_or_not_there() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = notes(mode).await;
            let options = ConcurrentOptions::new().isolation(isolation);
            let mut answered = 0;
            for round in 0..rounds() {
                let work = db.concurrent_with(options, async |s| {
                    run(
                        &mut *s,
                        "INSERT INTO note (id, text) VALUES (next_id('note'), 'raw')",
                    )
                    .await?;
                    let mut ctx = s.context();
                    ctx.add(note("typed"));
                    ctx.save_changes().await?;
                    drop(ctx);
                    Note::query().count(&mut *s).await
                });
                if let Some(outcome) = dropped_after(polls(round), work).await {
                    outcome?;
                    answered += 1;
                }
                if round % 50 == 0 {
                    let mut ctx = db.context();
                    let beside = ctx.add(note("beside"));
                    ctx.save_changes().await?;
                    ctx.remove(beside);
                    ctx.save_changes().await?;
                }
            }
            let raw = Note::query()
                .filter(Note::TEXT.eq("raw"))
                .count(&db)
                .await?;
            let typed = Note::query()
                .filter(Note::TEXT.eq("typed"))
                .count(&db)
                .await?;
            assert_eq!(raw, typed, "{mode:?}, {isolation:?}");
            assert!(raw >= answered, "acknowledged, and gone");
            assert!(answered > 0, "some ended");
            assert_unlocked(&db);
            db.close().await?;
        }
    }
    Ok(())
}

/// A raw query that was dropped half-way, in a session that is then dropped, committed or rolled back.
#[tokio::test]
async fn a_raw_query_that_is_dropped_anywhere_harms_nobody() -> Result {
    let slow = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000)
        SELECT sum(i) FROM n";
    for mode in MODES {
        let db = notes(mode).await;
        for round in 0..rounds() / 3 {
            let mut s = db.begin_concurrent(Isolation::Serializable).await?;
            run(&mut *s, "INSERT INTO note (text) VALUES ('kept or not')").await?;
            let ended = dropped_after(round % 13, run(&mut *s, slow)).await;
            match round % 3 {
                0 => drop(s),
                1 => s.rollback().await?,
                _ => match (ended, s.commit().await) {
                    (Some(_), committed) => drop(committed?),
                    (None, Ok(_)) => {} // it had not begun
                    (None, Err(error)) => {
                        assert_eq!(error.kind(), ErrorKind::TransactionEnded, "{error}");
                    }
                },
            }
        }
        assert_unlocked(&db);
        db.close().await?;
    }
    Ok(())
}

/// Two tasks at once: one is aborted again and again while the other works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_are_aborted_in_a_session_harm_nobody() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        for round in 0..rounds() / 3 {
            let handle = db.clone();
            let task = tokio::spawn(async move {
                handle
                    .concurrent(async move |s| {
                        run(
                            &mut *s,
                            "INSERT INTO note (id, text) VALUES (next_id('note'), 'a')",
                        )
                        .await?;
                        run(
                            &mut *s,
                            "INSERT INTO note (id, text) VALUES (next_id('note'), 'b')",
                        )
                        .await
                    })
                    .await
            });
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            task.abort();
            db.concurrent(async |s| {
                let mut ctx = s.context();
                ctx.add(note("kept"));
                ctx.save_changes().await.map(drop)
            })
            .await?;
            if let Ok(outcome) = task.await {
                outcome?;
            }
        }
        let of =
            async |text: &'static str| Note::query().filter(Note::TEXT.eq(text)).count(&db).await;
        assert_eq!(of("a").await?, of("b").await?, "{mode:?}");
        assert_eq!(of("kept").await?, (rounds() / 3) as u64);
        assert_unlocked(&db);
        db.close().await?;
    }
    Ok(())
}
