//! The read connections: lent one at a time, in the order in which they were asked for.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};

use crate::{
    engine::{
        ffi::{PlainConnection, is_reading},
        hooks::Progress,
        timer,
        wake::wake,
    },
    error::{Error, ErrorKind, Result},
};

/// A read connection: query-only, with a progress handler that can stop it.
#[derive(Debug)]
pub(in crate::engine) struct Reader {
    pub(in crate::engine) connection: PlainConnection,
    pub(in crate::engine) progress: Arc<Progress>,
}

/// All read connections of a file.
#[derive(Debug)]
pub(in crate::engine) struct Pool {
    state: Mutex<State>,
    timeout: Duration,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Reader>,
    size: usize,
    /// Since when each lent connection is out, and for what.
    lent: Vec<Loan>,
    loans: u64,
    waiters: VecDeque<Arc<Waiter>>,
    closed: bool,
}

#[derive(Debug)]
struct Loan {
    number: u64,
    label: &'static str,
    since: Instant,
}

#[derive(Debug)]
struct Waiter {
    place: Mutex<(Option<Reader>, Option<Waker>)>,
}

/// A read connection on loan; it goes back when dropped.
#[derive(Debug)]
pub(in crate::engine) struct Lent {
    reader: Option<Reader>,
    number: u64,
    pool: Arc<Pool>,
}

impl Pool {
    pub(in crate::engine) fn new(readers: Vec<Reader>, timeout: Duration) -> Self {
        Self {
            state: Mutex::new(State {
                size: readers.len(),
                idle: readers,
                ..State::default()
            }),
            timeout,
        }
    }

    /// Lends a connection. Cancel safe.
    pub(in crate::engine) async fn lend(self: &Arc<Self>, label: &'static str) -> Result<Lent> {
        let waiter = {
            let mut state = self.lock();
            if state.closed {
                return Err(Error::new(ErrorKind::Closed, "the database was closed"));
            }
            if state.waiters.is_empty()
                && let Some(reader) = state.idle.pop()
            {
                return Ok(self.loan(&mut state, reader, label));
            }
            let waiter = Arc::new(Waiter {
                place: Mutex::new((None, None)),
            });
            state.waiters.push_back(Arc::clone(&waiter));
            waiter
        };
        self.wait(waiter, label).await
    }

    async fn wait(self: &Arc<Self>, waiter: Arc<Waiter>, label: &'static str) -> Result<Lent> {
        let began = Instant::now();
        let waiting = Waiting {
            pool: self,
            waiter: &waiter,
        };
        let handed = poll_fn(|context| {
            {
                let mut place = waiter.place.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(reader) = place.0.take() {
                    return Poll::Ready(Some(reader));
                }
                place.1 = Some(context.waker().clone());
            }
            // After the waker is in place, and not under its lock: the pool's lock is taken before a waiter's.
            if self.lock().closed {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        });
        let deadline = std::pin::pin!(timer::sleep_until(began + self.timeout));
        let reader = match select(handed, deadline).await {
            Either::Left((Some(reader), _)) => reader,
            Either::Left((None, _)) => {
                return Err(Error::new(ErrorKind::Closed, "the database was closed"));
            }
            Either::Right(_) => return Err(self.timed_out(began.elapsed())),
        };
        drop(waiting);
        Ok(self.loan(&mut self.lock(), reader, label))
    }

    fn loan(self: &Arc<Self>, state: &mut State, reader: Reader, label: &'static str) -> Lent {
        state.loans += 1;
        let number = state.loans;
        state.lent.push(Loan {
            number,
            label,
            since: Instant::now(),
        });
        Lent {
            reader: Some(reader),
            number,
            pool: Arc::clone(self),
        }
    }

    fn timed_out(&self, waited: Duration) -> Error {
        let state = self.lock();
        let longest = state.lent.iter().min_by_key(|loan| loan.since);
        let longest = longest.map_or_else(
            || "none is lent".to_owned(),
            |loan| format!("{} for {:.1?}", loan.label, loan.since.elapsed()),
        );
        Error::new(
            ErrorKind::PoolTimeout,
            format!(
                "no read connection became free: {} in all, {} idle, {} waiting, the longest on loan: {longest}",
                state.size,
                state.idle.len(),
                state.waiters.len(),
            ),
        )
        .with_waited(waited)
    }

    /// A connection comes back: to whoever waits longest, or to the idle ones.
    fn take_back(&self, reader: Reader) {
        let mut state = self.lock();
        if state.closed {
            state.size = state.size.saturating_sub(1);
            drop(state);
            drop(reader);
            return;
        }
        match state.waiters.pop_front() {
            Some(waiter) => {
                let waker = {
                    let mut place = waiter.place.lock().unwrap_or_else(PoisonError::into_inner);
                    place.0 = Some(reader);
                    place.1.take()
                };
                drop(state);
                if let Some(waker) = waker {
                    wake(waker);
                }
            }
            None => state.idle.push(reader),
        }
    }

    /// Lends no more, and closes what is idle; the rest is closed as it comes back.
    pub(in crate::engine) fn close(&self) {
        let (idle, waiters) = {
            let mut state = self.lock();
            state.closed = true;
            let idle = std::mem::take(&mut state.idle);
            state.size -= idle.len();
            (idle, std::mem::take(&mut state.waiters))
        };
        drop(idle);
        for waiter in waiters {
            let waker = {
                let mut place = waiter.place.lock().unwrap_or_else(PoisonError::into_inner);
                place.1.take()
            };
            if let Some(waker) = waker {
                wake(waker);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among the waiters, given up when dropped; a connection that had just been handed over goes on.
struct Waiting<'a> {
    pool: &'a Pool,
    waiter: &'a Arc<Waiter>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pool
            .lock()
            .waiters
            .retain(|other| !Arc::ptr_eq(other, self.waiter));
        let handed = self
            .waiter
            .place
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .take();
        if let Some(reader) = handed {
            self.pool.take_back(reader);
        }
    }
}

impl std::ops::Deref for Lent {
    type Target = Reader;

    #[allow(clippy::expect_used, reason = "only drop takes it out")]
    fn deref(&self) -> &Reader {
        self.reader.as_ref().expect("taken out only by drop")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(reader) = self.reader.take() else {
            return;
        };
        // Statements reset themselves when dropped. One that did not would pin its snapshot, and the log with it.
        if is_reading(&reader.connection) {
            tracing::error!(
                "a read connection came back with a snapshot; its statements are dropped"
            );
            reader.connection.flush_prepared_statement_cache();
        }
        {
            let mut state = self.pool.lock();
            let number = self.number;
            if let Some(place) = state.lent.iter().position(|loan| loan.number == number) {
                state.lent.swap_remove(place);
            }
        }
        self.pool.take_back(reader);
    }
}
