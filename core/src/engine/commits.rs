//! Waiting for commits.

use std::{
    future::pending,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::{BoxFuture, select};
use tokio::sync::futures::OwnedNotified;

use crate::engine::{core::Core, timer};

/// Hears of the commits of this process, as long as it lives.
#[derive(Debug)]
pub(crate) struct Commits(Arc<Core>);

impl Commits {
    pub(in crate::engine) fn of(core: &Arc<Core>) -> Self {
        core.wal_size.bell.join();
        Self(Arc::clone(core))
    }

    /// To be called before one looks at what is committed, so that no commit falls between the look and the wait.
    pub(crate) fn next(&self) -> OwnedNotified {
        self.0.wal_size.bell.heard()
    }
}

impl Drop for Commits {
    fn drop(&mut self) {
        self.0.wal_size.bell.leave();
    }
}

/// Waits for so long, for ever if no clock goes that far. Cancel safe.
pub(crate) async fn pause(time: Duration) {
    match Instant::now().checked_add(time) {
        Some(moment) => timer::sleep_until(moment).await,
        None => pending().await,
    }
}

/// Waits for a commit, but for no longer than this: then it is time to look for those of other processes. Cancel safe.
pub(crate) fn commit_or(commit: OwnedNotified, time: Duration) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let _ = select(pin!(commit), pin!(pause(time))).await;
    })
}
