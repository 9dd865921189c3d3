//! Both feeds beside many sessions.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anabranch::prelude::*;
use anyhow::{Result, ensure};

use crate::{feed::Feed, order};

const TASKS: u32 = 8;
const EACH: u32 = 40;
pub(crate) const ALL: u32 = TASKS * EACH;

/// What was committed, and what the feeds saw of it.
#[derive(Debug)]
pub(crate) struct Crowd {
    committed: BTreeSet<i64>,
    by_key: Vec<i64>,
    by_commit: Vec<i64>,
}

pub(crate) async fn run(db: &Database) -> Result<Crowd> {
    let done = Arc::new(AtomicBool::new(false));
    let follow = |feed| tokio::spawn(follow(db.clone(), feed, Arc::clone(&done)));
    let by_key = follow(Feed::by_key(db).await?);
    let by_commit = follow(Feed::by_commit(db).await?);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(work(db.clone(), task)))
        .collect();
    let mut committed = BTreeSet::new();
    for task in tasks {
        committed.extend(task.await??);
    }
    done.store(true, Ordering::Release);
    let crowd = Crowd {
        committed,
        by_key: by_key.await??,
        by_commit: by_commit.await??,
    };
    crowd.check()?;
    Ok(crowd)
}

/// Sessions that stay open for different times; returns the keys of what they committed.
async fn work(db: Database, task: u32) -> anabranch::error::Result<Vec<i64>> {
    let mut keys = Vec::new();
    for n in 0..EACH {
        let wait = Duration::from_millis(u64::from((task + n) % 4));
        let key = db
            .concurrent(async move |s| {
                let key = order::insert(s, "one of many").await?;
                tokio::time::sleep(wait).await;
                Ok(key)
            })
            .await?;
        keys.push(key);
    }
    Ok(keys)
}

/// Asks a feed until all is committed, and once more; returns what it saw.
async fn follow(db: Database, mut feed: Feed, done: Arc<AtomicBool>) -> Result<Vec<i64>> {
    let mut seen = Vec::new();
    loop {
        let was_done = done.load(Ordering::Acquire);
        seen.extend(feed.poll(&db).await?);
        if was_done {
            return Ok(seen);
        }
        tokio::task::yield_now().await;
    }
}

impl Crowd {
    fn check(&self) -> Result<()> {
        ensure!(
            self.committed.len() == ALL as usize,
            "{} of {ALL} sessions committed an order of their own",
            self.committed.len()
        );
        let seen: BTreeSet<_> = self.by_commit.iter().copied().collect();
        ensure!(
            seen == self.committed && seen.len() == self.by_commit.len(),
            "the feed by commit_seq saw {} orders, {} of them once, of {ALL}",
            self.by_commit.len(),
            seen.len()
        );
        Ok(())
    }
}

impl fmt::Display for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missed = self.committed.len() - self.by_key.len();
        writeln!(
            f,
            "4. Both feeds beside {TASKS} tasks, {EACH} sessions each"
        )?;
        writeln!(f)?;
        writeln!(
            f,
            "    by id          saw {:>3} of {ALL} orders, and missed {missed}",
            self.by_key.len()
        )?;
        writeln!(
            f,
            "    by commit_seq  saw {:>3} of {ALL} orders, each once",
            self.by_commit.len()
        )?;
        writeln!(f)?;
        writeln!(
            f,
            "  What happened by plan above happens here by chance: how much is missed differs from run to run."
        )
    }
}
