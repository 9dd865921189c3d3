//! Two sessions that commit in another order than they took their keys, and a feed beside them.

use std::fmt;

use anabranch::prelude::*;
use anyhow::{Result, ensure};

use crate::{feed::Feed, order};

/// How many orders are committed.
pub(crate) const ORDERS: i64 = 2;

/// What the feed saw.
#[derive(Debug)]
pub(crate) struct Late {
    feed: Feed,
    /// The key that was taken first, and committed last.
    late: i64,
    /// The key that was taken last, and committed first.
    early: i64,
    /// What the feed found new between the two commits, and after them.
    between: Vec<i64>,
    after: Vec<i64>,
}

pub(crate) async fn run(db: &Database, mut feed: Feed) -> Result<Late> {
    let mut a = db.begin_concurrent(Isolation::Serializable).await?;
    let late = order::insert(&mut a, "committed late").await?;
    let mut b = db.begin_concurrent(Isolation::Serializable).await?;
    let early = order::insert(&mut b, "committed early").await?;
    b.commit().await?;
    let between = feed.poll(db).await?;
    a.commit().await?;
    let after = feed.poll(db).await?;
    let story = Late {
        feed,
        late,
        early,
        between,
        after,
    };
    story.check()?;
    Ok(story)
}

impl Late {
    fn check(&self) -> Result<()> {
        let (late, early) = (self.late, self.early);
        ensure!(late < early, "the keys {late}, {early} are not in order");
        ensure!(self.between == [early], "only {early} is new: {self:?}");
        match self.feed {
            Feed::ByKey(_) => ensure!(self.after.is_empty(), "{late} is not lost: {self:?}"),
            Feed::ByCommit(_) => ensure!(self.after == [late], "{late} is lost: {self:?}"),
        }
        Ok(())
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { late, early, .. } = self;
        match self.feed {
            Feed::ByKey(_) => writeln!(f, "2. A feed that asks WHERE id > last")?,
            Feed::ByCommit(_) => writeln!(f, "3. The same with WHERE commit_seq > last")?,
        }
        writeln!(f)?;
        writeln!(f, "    session A inserts order {late}")?;
        writeln!(f, "    session B inserts order {early}, and commits")?;
        writeln!(f, "    the feed asks: new is {}", list(&self.between))?;
        writeln!(f, "    session A commits")?;
        writeln!(f, "    the feed asks: new is {}", list(&self.after))?;
        writeln!(f)?;
        match self.feed {
            Feed::ByKey(_) => writeln!(
                f,
                "  Order {late} is lost to this feed for good: it has seen {early}, and never asks for less again. Keys are given when\n  \
                 rows are inserted, not when they are committed. So it is in every database whose transactions overlap."
            ),
            Feed::ByCommit(_) => writeln!(
                f,
                "  The writer stamps commit_seq as it merges a session, in the order of commits: order {late} has the larger number,\n  \
                 for it came later. Nothing is lost."
            ),
        }
    }
}

fn list(keys: &[i64]) -> String {
    if keys.is_empty() {
        return "nothing".to_owned();
    }
    let keys: Vec<_> = keys.iter().map(i64::to_string).collect();
    keys.join(", ")
}
