//! Connections of one kind, for reads or for sessions: lent one at a time, in the order in which they were asked for.
//!
//! A connection that comes back lies idle, and the first who sleeps is *called*: woken, to fetch it when polled. It is
//! not handed over, since a future may be held and never polled again, such as one that lost a `select!`, and would
//! keep the connection for good. These hold:
//!
//! * For each idle connection somebody is called, or nobody sleeps. Whoever is called and goes away is replaced.
//! * While a call is fresh, no longer than [`GRACE`], its connection is kept from everybody else: whoever comes when
//!   called is overtaken by nobody, so nobody starves.
//! * Once the grace is over, whoever comes first takes it, and the timer calls the next who sleeps. Whoever comes
//!   too late sleeps again, in the old place.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    task::{Poll, Wake, Waker},
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};

use crate::{
    engine::{
        connection::execute,
        ffi::{PlainConnection, is_reading},
        hooks::{Authorizer, Progress},
        narrator::Voice,
        slot::Label,
        timer,
        wake::wake,
        wal_policy::{OldReaders, WalPolicy},
    },
    error::{Error, ErrorKind, Result},
    observe::{Counters, PoolState, PoolTold},
};

/// How long a connection is kept for who was called to fetch it.
const GRACE: Duration = Duration::from_millis(10);

/// A read connection: query-only, with a progress handler that can stop it.
#[derive(Debug)]
pub(in crate::engine) struct Reader {
    pub(in crate::engine) connection: PlainConnection,
    pub(in crate::engine) progress: Arc<Progress>,
    /// Judges what is read.
    pub(in crate::engine) authorizer: Arc<Authorizer>,
    /// Tells of its statements.
    pub(in crate::engine) voice: Voice,
}

impl Reader {
    /// Begins a read transaction; its first statement takes the snapshot.
    pub(in crate::engine) fn begin(&self) -> Result<()> {
        self.authorizer.ours(|| execute(&self.connection, "BEGIN"))
    }

    /// Ends the read transaction, if one is open.
    pub(in crate::engine) fn end(&self) {
        if self.connection.is_autocommit() {
            return;
        }
        // One that was stopped, or has used its budget, would stop this too.
        let _run = self.progress.begin(None);
        let ended = self
            .authorizer
            .ours(|| execute(&self.connection, "ROLLBACK"));
        if let Err(error) = ended {
            tracing::error!(error = %error.in_log(), "a read transaction could not be ended");
        }
    }
}

/// What a pool lends.
pub(in crate::engine) trait Pooled: Send + std::fmt::Debug + 'static {
    /// What it is called in errors.
    const NAME: &'static str;

    /// It is lent for this.
    fn lent_for(&mut self, _label: Label) {}

    /// Makes sure that it holds nothing of its last user, when it comes back; if that cannot be, it is closed.
    fn clean(&mut self) -> bool;
}

impl Pooled for Reader {
    const NAME: &'static str = "read connection";

    fn lent_for(&mut self, label: Label) {
        self.voice.label = label;
    }

    fn clean(&mut self) -> bool {
        self.end();
        // Statements reset themselves when dropped. One that did not would pin its snapshot, and the log with it.
        if is_reading(&self.connection) {
            tracing::error!(
                "a read connection came back with a snapshot; its statements are dropped"
            );
            self.connection.flush_prepared_statement_cache();
        }
        self.connection.is_autocommit()
    }
}

/// All connections of one kind of a file.
#[derive(Debug)]
pub(in crate::engine) struct Pool<C = Reader> {
    state: Mutex<State<C>>,
    /// Told when the last connection is closed, and when one comes back while that is awaited.
    empty: Condvar,
    timeout: Duration,
    told: PoolTold,
}

#[derive(Debug)]
struct State<C> {
    idle: Vec<C>,
    size: usize,
    /// Since when each lent connection is out, and for what.
    lent: Vec<Loan>,
    loans: u64,
    /// Who waits and was not called, in the order of arrival.
    sleeping: BTreeMap<u64, Waker>,
    /// Who was called, when, and did not come yet.
    called: BTreeMap<u64, Instant>,
    arrivals: u64,
    /// Whether the timer will look after those who were called.
    is_watched: bool,
    grace: Duration,
    closed: bool,
    /// Somebody waits for loans to end.
    is_awaited: bool,
}

#[derive(Debug)]
struct Loan {
    number: u64,
    label: Label,
    since: Instant,
    /// It was told of as too old.
    is_old: bool,
    hold: Option<Weak<dyn Endable>>,
}

/// What holds a connection, and can be made to give it back.
pub(in crate::engine) trait Endable: Send + Sync + std::fmt::Debug {
    /// Ends it; to be called again while it lasts, since a statement may have begun meanwhile. The pool is locked
    /// meanwhile: so the connection is still on this loan, and what is stopped on it is nobody else's.
    fn end(&self);

    /// Gives the connection back, if no statement runs on it.
    fn give_back(&self);
}

/// A connection on loan; it goes back when dropped.
#[derive(Debug)]
pub(in crate::engine) struct Lent<C: Pooled = Reader> {
    connection: Option<C>,
    number: u64,
    pub(in crate::engine) since: Instant,
    pool: Arc<Pool<C>>,
    /// Closed when it goes back: it was opened for this one loan.
    is_guest: bool,
}

impl<C: Pooled> Pool<C> {
    pub(in crate::engine) fn new(connections: Vec<C>, timeout: Duration, told: PoolTold) -> Self {
        Self {
            state: Mutex::new(State {
                size: connections.len(),
                idle: connections,
                lent: Vec::new(),
                loans: 0,
                sleeping: BTreeMap::new(),
                called: BTreeMap::new(),
                arrivals: 0,
                is_watched: false,
                grace: GRACE,
                closed: false,
                is_awaited: false,
            }),
            empty: Condvar::new(),
            timeout,
            told,
        }
    }

    /// Lends a connection. Cancel safe.
    pub(in crate::engine) async fn lend(self: &Arc<Self>, label: Label) -> Result<Lent<C>> {
        let at_once = {
            let mut state = self.lock();
            if state.closed {
                return Err(closed());
            }
            let connection = state.take();
            connection.map(|connection| self.loan(&mut state, connection, label))
        };
        match at_once {
            Some(lent) => {
                self.told.waited(Duration::ZERO);
                Ok(lent)
            }
            None => self.wait(label).await,
        }
    }

    async fn wait(self: &Arc<Self>, label: Label) -> Result<Lent<C>> {
        let began = Instant::now();
        let mut place = Place {
            pool: self,
            number: None,
        };
        let lent = poll_fn(|context| place.poll(context.waker(), label));
        let deadline = std::pin::pin!(timer::sleep_until(began + self.timeout));
        match select(lent, deadline).await {
            Either::Left((lent, _)) => {
                self.told.waited(began.elapsed());
                lent
            }
            Either::Right(_) => {
                self.told.timed_out();
                Err(self.timed_out(began.elapsed()))
            }
        }
    }

    fn loan(self: &Arc<Self>, state: &mut State<C>, mut connection: C, label: Label) -> Lent<C> {
        connection.lent_for(label);
        state.loans += 1;
        let number = state.loans;
        let since = Instant::now();
        state.lent.push(Loan {
            number,
            label,
            since,
            is_old: false,
            hold: None,
        });
        Lent {
            connection: Some(connection),
            number,
            since,
            pool: Arc::clone(self),
            is_guest: false,
        }
    }

    /// Lends a connection that was opened for this alone, which is closed when it comes back. So whoever waits until all
    /// connections are closed waits for it too.
    pub(in crate::engine) fn lend_guest(
        self: &Arc<Self>,
        connection: C,
        label: Label,
    ) -> Result<Lent<C>> {
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        state.size += 1;
        let mut lent = self.loan(&mut state, connection, label);
        lent.is_guest = true;
        Ok(lent)
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
                "no {} became free: {} in all, {} idle, {} waiting, the longest on loan: {longest}",
                C::NAME,
                state.size,
                state.idle.len(),
                state.sleeping.len() + state.called.len(),
            ),
        )
        .with_waited(waited)
    }

    /// How many connections there are, and who waits.
    pub(in crate::engine) fn state(&self) -> PoolState {
        let state = self.lock();
        PoolState {
            idle: state.idle.len(),
            used: state.lent.len(),
            pending: state.sleeping.len() + state.called.len(),
        }
    }

    /// What the connection that is on loan for longest was lent for, and since when.
    pub(in crate::engine) fn oldest(&self) -> Option<(Label, Instant)> {
        let state = self.lock();
        let longest = state.lent.iter().min_by_key(|loan| loan.since);
        longest.map(|loan| (loan.label, loan.since))
    }

    /// Waits until all that was lent before a moment is back, for no longer than until the deadline; whether it is.
    pub(in crate::engine) fn is_back_by(&self, before: Instant, deadline: Instant) -> bool {
        let rest = deadline.saturating_duration_since(Instant::now());
        let mut state = self.lock();
        state.is_awaited = true;
        let (mut state, timeout) = self
            .empty
            .wait_timeout_while(state, rest, |state| {
                state.lent.iter().any(|loan| loan.since < before)
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.is_awaited = false;
        !timeout.timed_out()
    }

    /// Tells, once, of each connection that is on loan for longer than a reader may be open, and ends it if asked to.
    pub(in crate::engine) fn end_old(&self, policy: &WalPolicy, counters: &Counters) {
        for hold in self.old(policy, counters) {
            hold.give_back();
        }
    }

    /// Those that were ended: they come back, which is not to meet the lock.
    fn old(&self, policy: &WalPolicy, counters: &Counters) -> Vec<Arc<dyn Endable>> {
        let mut ending = Vec::new();
        let mut state = self.lock();
        let old = |loan: &&mut Loan| loan.since.elapsed() > policy.reader_age;
        for loan in state.lent.iter_mut().filter(old) {
            let hold = match policy.old_readers {
                OldReaders::Warn => None,
                OldReaders::Interrupt => loan.hold.as_ref().and_then(Weak::upgrade),
            };
            if !std::mem::replace(&mut loan.is_old, true) {
                counters.old_readers.add(1);
                counters.interrupted_readers.add(hold.is_some().into());
                tracing::warn!(
                    reader = %loan.label,
                    age = ?loan.since.elapsed(),
                    is_ended = hold.is_some(),
                    "a reader is open for too long: the log cannot start anew"
                );
            }
            if let Some(hold) = hold {
                hold.end();
                ending.push(hold);
            }
        }
        ending
    }

    /// A connection comes back.
    fn take_back(self: &Arc<Self>, connection: C, is_clean: bool) {
        let mut state = self.lock();
        if state.closed || !is_clean {
            drop(state);
            drop(connection);
            self.forget(1);
            return;
        }
        state.idle.push(connection);
        self.call(state);
    }

    /// Wakes who is to fetch what lies idle.
    fn call(self: &Arc<Self>, mut state: MutexGuard<'_, State<C>>) {
        let wakers = state.call();
        self.watch(&mut state);
        drop(state);
        wakers.into_iter().for_each(wake);
    }

    /// Has the timer look again, if somebody sleeps while a connection waits for somebody else.
    fn watch(self: &Arc<Self>, state: &mut State<C>) {
        if state.is_watched || state.idle.is_empty() || state.sleeping.is_empty() {
            return;
        }
        state.is_watched = true;
        let watch = Arc::new(Watch(Arc::downgrade(self)));
        timer::wake_at(Instant::now() + state.grace, watch.into());
    }

    /// Lends no more, and closes what is idle; the rest is closed as it comes back.
    pub(in crate::engine) fn close(&self) {
        let (idle, sleeping) = {
            let mut state = self.lock();
            state.closed = true;
            let idle = std::mem::take(&mut state.idle);
            (idle, std::mem::take(&mut state.sleeping))
        };
        let closed = idle.len();
        drop(idle);
        self.forget(closed);
        sleeping.into_values().for_each(wake);
    }

    /// So many connections are closed.
    fn forget(&self, closed: usize) {
        let mut state = self.lock();
        state.size = state.size.saturating_sub(closed);
        if state.size == 0 {
            self.empty.notify_all();
        }
    }

    /// Whether all connections of a pool that was closed are closed; waits for them until the deadline.
    pub(in crate::engine) fn is_empty_by(&self, deadline: Instant) -> bool {
        let rest = deadline.saturating_duration_since(Instant::now());
        let (state, _) = self
            .empty
            .wait_timeout_while(self.lock(), rest, |state| state.size > 0)
            .unwrap_or_else(PoisonError::into_inner);
        state.size == 0
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> State<C> {
    /// An idle connection that is kept for nobody else.
    fn take(&mut self) -> Option<C> {
        if self.idle.len() > self.fresh_calls() {
            self.idle.pop()
        } else {
            None
        }
    }

    /// Calls the first who sleep, one for each idle connection that is kept for nobody.
    fn call(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while self.idle.len() > self.fresh_calls()
            && let Some((number, waker)) = self.sleeping.pop_first()
        {
            self.called.insert(number, Instant::now());
            wakers.push(waker);
        }
        wakers
    }

    fn fresh_calls(&self) -> usize {
        let is_fresh = |since: &&Instant| since.elapsed() < self.grace;
        self.called.values().filter(is_fresh).count()
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the database was closed")
}

/// Woken by the timer when a call has gone stale.
struct Watch<C>(Weak<Pool<C>>);

impl<C: Pooled> Wake for Watch<C> {
    fn wake(self: Arc<Self>) {
        if let Some(pool) = self.0.upgrade() {
            let mut state = pool.lock();
            state.is_watched = false;
            pool.call(state);
        }
    }
}

/// A place among those who wait, given up when dropped.
struct Place<'a, C: Pooled> {
    pool: &'a Arc<Pool<C>>,
    number: Option<u64>,
}

impl<C: Pooled> Place<'_, C> {
    fn poll(&mut self, waker: &Waker, label: Label) -> Poll<Result<Lent<C>>> {
        let waker = waker.clone();
        let mut state = self.pool.lock();
        if state.closed {
            return Poll::Ready(Err(closed()));
        }
        if let Some(number) = self.number {
            state.called.remove(&number);
        }
        if let Some(connection) = state.take() {
            return Poll::Ready(Ok(self.pool.loan(&mut state, connection, label)));
        }
        let number = *self.number.get_or_insert_with(|| {
            state.arrivals += 1;
            state.arrivals
        });
        let replaced = state.sleeping.insert(number, waker);
        self.pool.watch(&mut state);
        // A waker is somebody else's code, and not dropped under the lock.
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl<C: Pooled> Drop for Place<'_, C> {
    fn drop(&mut self) {
        let Some(number) = self.number else {
            return;
        };
        let mut state = self.pool.lock();
        let waker = state.sleeping.remove(&number);
        state.called.remove(&number);
        self.pool.call(state);
        drop(waker);
    }
}

impl<C: Pooled> Lent<C> {
    /// Says how its user can be made to give it back.
    pub(in crate::engine) fn can_be_ended(&self, hold: Weak<dyn Endable>) {
        let mut state = self.pool.lock();
        let mut loans = state.lent.iter_mut();
        if let Some(loan) = loans.find(|loan| loan.number == self.number) {
            loan.hold = Some(hold);
        }
    }
}

impl<C: Pooled> std::ops::Deref for Lent<C> {
    type Target = C;

    #[allow(clippy::expect_used, reason = "only drop takes it out")]
    fn deref(&self) -> &C {
        self.connection.as_ref().expect("taken out only by drop")
    }
}

impl<C: Pooled> std::ops::DerefMut for Lent<C> {
    #[allow(clippy::expect_used, reason = "only drop takes it out")]
    fn deref_mut(&mut self) -> &mut C {
        self.connection.as_mut().expect("taken out only by drop")
    }
}

impl<C: Pooled> Drop for Lent<C> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let is_clean = connection.clean() && !self.is_guest;
        {
            let mut state = self.pool.lock();
            let number = self.number;
            if let Some(place) = state.lent.iter().position(|loan| loan.number == number) {
                state.lent.swap_remove(place);
            }
            if state.is_awaited {
                self.pool.empty.notify_all();
            }
        }
        self.pool.take_back(connection, is_clean);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::{Pin, pin},
        sync::Arc,
        task::{Context, Poll, Waker},
        time::Duration,
    };

    use rusqlite::Connection;

    use crate::{
        engine::{
            ffi::{Hooks, PlainConnection},
            hooks::Progress,
            narrator::Voice,
            pool::{Endable, Lent, Pool, Reader},
            slot::Label,
            wal_policy::{OldReaders, WalPolicy},
        },
        error::{ErrorKind, Result},
        observe::{Counters, PoolTold},
    };

    const LONG: Duration = Duration::from_secs(60);

    fn pool(grace: Duration) -> Arc<Pool> {
        let connection = Connection::open_in_memory().unwrap();
        let reader = Reader {
            connection: PlainConnection::new(connection, Hooks::default()),
            progress: Arc::default(),
            authorizer: Arc::default(),
            voice: Voice {
                counters: Arc::default(),
                slow: LONG,
                label: Label::new("nobody"),
            },
        };
        let pool = Pool::new(vec![reader], LONG, PoolTold::default());
        pool.lock().grace = grace;
        Arc::new(pool)
    }

    /// One poll, of which nobody is told.
    fn poll(future: Pin<&mut impl Future<Output = Result<Lent>>>) -> Option<Lent> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(lent) => Some(lent.unwrap()),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn who_comes_when_called_is_overtaken_by_nobody() {
        let pool = pool(LONG);
        let lent = pool.lend(Label::new("one")).await.unwrap();
        let mut first = pin!(pool.lend(Label::new("first")));
        let mut second = pin!(pool.lend(Label::new("second")));
        assert!(poll(first.as_mut()).is_none());
        assert!(poll(second.as_mut()).is_none());
        drop(lent);
        assert!(poll(second.as_mut()).is_none());
        assert!(poll(pin!(pool.lend(Label::new("late")))).is_none());
        let lent = poll(first.as_mut()).unwrap();
        drop(lent);
        assert!(poll(second.as_mut()).is_some());
        assert!(pool.lock().sleeping.is_empty());
    }

    #[tokio::test]
    async fn who_was_called_and_is_held_is_overtaken_and_keeps_the_place() {
        let pool = pool(Duration::from_millis(1));
        let lent = pool.lend(Label::new("one")).await.unwrap();
        let mut held = pin!(pool.lend(Label::new("held")));
        assert!(poll(held.as_mut()).is_none());
        let other = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.lend(Label::new("other")).await.unwrap() }
        });
        while pool.lock().sleeping.len() < 2 {
            tokio::task::yield_now().await;
        }
        drop(lent);
        let lent = other.await.unwrap();
        assert!(poll(held.as_mut()).is_none());
        pool.lock().grace = LONG;
        drop(lent);
        assert!(poll(pin!(pool.lend(Label::new("late")))).is_none());
        assert!(poll(held.as_mut()).is_some());
    }

    #[tokio::test]
    async fn who_was_called_and_goes_away_is_replaced() {
        let pool = pool(LONG);
        let lent = pool.lend(Label::new("one")).await.unwrap();
        let mut first = Box::pin(pool.lend(Label::new("first")));
        assert!(poll(first.as_mut()).is_none());
        let second = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.lend(Label::new("second")).await.unwrap() }
        });
        while pool.lock().sleeping.len() < 2 {
            tokio::task::yield_now().await;
        }
        drop(lent);
        drop(first);
        second.await.unwrap();
        assert!(pool.lock().called.is_empty());
    }

    /// A hold that is ended by stopping what runs.
    #[derive(Debug)]
    struct Stops(Arc<Progress>);

    impl Endable for Stops {
        fn end(&self) {
            self.0.stop_present();
        }

        fn give_back(&self) {}
    }

    #[tokio::test]
    async fn who_has_the_connection_next_is_not_stopped() {
        let pool = pool(LONG);
        let lent = pool.lend(Label::new("old")).await.unwrap();
        let stops: Arc<dyn Endable> = Arc::new(Stops(Arc::clone(&lent.progress)));
        lent.can_be_ended(Arc::downgrade(&stops));
        let run = lent.progress.begin(None);
        let policy = WalPolicy::new()
            .reader_age(Duration::ZERO)
            .old_readers(OldReaders::Interrupt);
        let ending = pool.old(&policy, &Counters::default());
        assert!(run.is_stopped());
        drop(lent);
        let next = pool.lend(Label::new("next")).await.unwrap();
        let _run = next.progress.begin(None);
        ending.iter().for_each(|hold| hold.give_back());
        assert!(!next.progress.shall_stop());
    }

    #[tokio::test]
    async fn who_waits_is_told_that_the_pool_was_closed() {
        let pool = pool(LONG);
        let lent = pool.lend(Label::new("one")).await.unwrap();
        let mut waits = pin!(pool.lend(Label::new("waits")));
        assert!(poll(waits.as_mut()).is_none());
        pool.close();
        assert_eq!(waits.await.unwrap_err().kind(), ErrorKind::Closed);
        drop(lent);
        assert_eq!(pool.lock().size, 0);
    }
}
