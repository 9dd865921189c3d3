//! What a peer does in sessions.

use std::{io::BufRead, path::Path, time::Instant};

use anabranch::{
    engine::{Isolation, Session},
    prelude::*,
};
use anabranch_tests::{
    load::{GIVEN_UP, Order, SESSION_LINES, write_in_session},
    random::Random,
};

use crate::{Outcome, TASKS, say};

/// An order that nobody need get in the way of; its key.
pub(crate) async fn beside(db: &Database, task: i64, serial: i64) -> Outcome<i64> {
    Ok(db
        .concurrent(async |s| write_in_session(s, task, serial).await)
        .await?)
}

/// One that rests on how many there are: it is run again if one was added meanwhile.
pub(crate) async fn contended(db: &Database, task: i64, serial: i64) -> Outcome<i64> {
    let written = db.concurrent(async |s| {
        sqlx::query_scalar::<_, i64>("SELECT count(*) FROM orders")
            .fetch_one(&mut *s)
            .await?;
        tokio::task::yield_now().await;
        write_in_session(s, task, serial).await
    });
    Ok(written.await?)
}

/// One that must never be found: it is rolled back, dropped, or its closure fails.
pub(crate) async fn given_up(db: &Database, task: i64, serial: i64) -> Outcome {
    let write = async |s: &mut Session| write_in_session(s, GIVEN_UP + task, serial).await;
    if serial % 3 == 0 {
        let failed = db.concurrent(async |s| {
            write(s).await?;
            Err::<(), _>(Error::application("it was not meant"))
        });
        return match failed.await {
            Err(error) if error.kind() == ErrorKind::Application => Ok(()),
            other => Err(format!("the closure failed, and it ended with {other:?}").into()),
        };
    }
    let mut s = db.begin_concurrent(Isolation::Serializable).await?;
    write(&mut s).await?;
    if serial % 3 == 1 {
        s.rollback().await?;
    }
    Ok(())
}

/// Has a session open, idle and with all of it written, but for moments; every other one is committed.
pub(crate) async fn linger(db: &Database, first: i64, mut random: Random) -> Outcome {
    for serial in first.. {
        let is_kept = serial % 2 == 0;
        let task = if is_kept { TASKS } else { GIVEN_UP + TASKS };
        let mut s = db.begin_concurrent(Isolation::Serializable).await?;
        let id = write_in_session(&mut s, task, serial).await?;
        tokio::time::sleep(random.micros(5_000)).await;
        if is_kept {
            match s.commit().await {
                Ok(_) => say(&format!("{id} {SESSION_LINES} session"))?,
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Has a session open, with all of it written, until its pipe is closed.
pub(crate) async fn hold(file: &Path) -> Outcome {
    let db = Database::open(file).await?;
    let mut s = db.begin_concurrent(Isolation::Serializable).await?;
    Order::query().count(&mut *s).await?;
    write_in_session(&mut s, GIVEN_UP, 0).await?;
    say("open")?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(s.rollback().await?)
}

/// Writes in sessions until then, some of which count what there is; how many it wrote. They are run again by hand, so that
/// none goes to the queue.
pub(crate) async fn write_until(db: &Database, end: Instant, task: i64) -> Outcome<u64> {
    let mut written = 0;
    while Instant::now() < end {
        let mut s = db.begin_concurrent(Isolation::Serializable).await?;
        if written % 4 == 3 {
            Order::query().count(&mut *s).await?;
        }
        write_in_session(&mut s, task, i64::try_from(written)?).await?;
        match s.commit().await {
            Ok(_) => written += 1,
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}
