//! What sessions do to a database while it is recorded.

use anabranch::{
    engine::{Isolation, Session, SessionGuard},
    error::Result,
    prelude::*,
};
use anabranch_tests::{
    load::{Order, add_line, add_lines_in_session, add_order},
    random::Random,
};

use crate::images::work::{Name, step};

/// An order in several statements, typed and raw, and savepoints of which one is undone.
async fn order(s: &mut Session, name: Name) -> Result<i64> {
    let mut ctx = s.context();
    let first = add_order(&mut ctx, name.0, name.1, 1);
    let order_id = ctx[first].id;
    ctx.add(step(name, order_id, 3));
    ctx.save_changes().await?;
    let id = ctx[first].id;
    drop(ctx);
    add_lines_in_session(s, id).await?;
    Ok(id)
}

/// A session that nobody need get in the way of.
pub(super) async fn beside(db: &Database, name: Name) -> Result<i64> {
    db.concurrent(async |s| order(s, name).await).await
}

/// One that whoever commits meanwhile gets in the way of: it is run again, and at last in the queue.
pub(super) async fn contended(db: &Database, name: Name) -> Result<i64> {
    db.concurrent(async |s| {
        count_steps(s).await?;
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        order(s, name).await
    })
    .await
}

/// One that is complete but for its commit, and rests on what it read.
pub(super) async fn about_to_commit(db: &Database, name: Name) -> Result<SessionGuard> {
    let mut s = db.begin_concurrent(Isolation::Serializable).await?;
    count_steps(&mut s).await?;
    order(&mut s, name).await?;
    Ok(s)
}

async fn count_steps(s: &mut Session) -> Result<i64> {
    let count = sqlx::query_scalar("SELECT count(*) FROM steps");
    Ok(count.fetch_one(&mut *s).await?)
}

/// What was written in sessions and must never be found: one is rolled back, dropped, or fails.
pub(super) async fn given_up(db: &Database, name: Name, random: &mut Random) -> Result<()> {
    match random.below(3) {
        0 => about_to_commit(db, name).await?.rollback().await,
        1 => about_to_commit(db, name).await.map(drop),
        _ => {
            let failed = db.concurrent(async |s| {
                order(s, name).await?;
                Err::<(), _>(Error::application("it was not meant"))
            });
            let error = failed.await.expect_err("the closure fails");
            assert_eq!(error.kind(), ErrorKind::Application, "{error:?}");
            Ok(())
        }
    }
}

/// One more line of an order, by a context whose save commits as a session.
pub(super) async fn extend(db: &Database, name: Name, id: i64) -> Result<i64> {
    let mut ctx = db.context().concurrent();
    loop {
        let order = ctx.find::<Order>(id).await?.expect("it was acknowledged");
        add_line(&mut ctx, order);
        let lines = ctx[order].lines;
        ctx.add(step(name, id, lines));
        match ctx.save_changes().await {
            Err(error) if error.is_conflict() => ctx.clear(),
            saved => return saved.map(|_| id),
        }
    }
}
