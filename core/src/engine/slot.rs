//! The writer's slot: who may write now, and who is next.
//!
//! # Protocol
//!
//! One [`Slot`] per database file. Its queue is first in, first out, and holds two kinds of entries:
//!
//! * a **unit**: the work of one save, which anybody who leads can run;
//! * a **turn**: somebody who wants the slot for himself (an exclusive transaction, a checkpoint, a chunk of a bulk
//!   operation, which is too long for a task to run by the way).
//!
//! A [`Lease`] is the right to write; there is at most one, and dropping it passes the slot on. A unit's owner is
//! a task that polls; whoever polls while the slot is free becomes the *leader*: it takes the units at the front,
//! applies them together, and answers each. So a unit is run by whoever comes first, not by its owner.
//!
//! | field | written by | under |
//! |---|---|---|
//! | `State::holder` | whoever grants, takes or drops a lease | the slot's lock |
//! | `State::queue` | submitters, the leader, withdrawal, expiry | the slot's lock |
//! | `Place::answer` | the leader, once | the ticket's lock |
//! | `Place::waker` | the owner's polls | the ticket's lock |
//!
//! The slot's lock is taken before a ticket's, never after. No wake-up is lost: an owner stores its waker *before*
//! it looks at the slot, and whoever grants or answers does so *before* it takes the waker. Wakers are called when the
//! slot's lock is free again.
//!
//! When a lease ends, the slot goes to the front of the queue: a turn is granted; a unit's owner is granted the
//! lead (`holder` names it, not yet `taken`), or the writer's thread is rung if units run there. A granted owner
//! that is dropped passes the grant on; one that is not polled any more (it sits in a `select!` that looks
//! elsewhere) is overruled by the thread after [`PATIENCE`]: a unit the thread may run itself; the grant of a turn is
//! revoked. Its owner is *absent* then: it keeps its place, and is passed over until it polls again. Each time that
//! happens to an entry it is given twice as long, so that a busy runtime does not lose its turn for ever.
//!
//! While another process holds SQLite's write lock the slot *pauses*: units stay queued, and can still be
//! withdrawn; the thread ends the pause.
//!
//! Shutdown: [`Slot::end`] answers everything that is queued, and refuses what comes after. The database closes by
//! taking a turn first, so that all that was queued before it is written.

mod label;
mod lease;
mod state;
mod ticket;

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    ops::{Deref, DerefMut},
    sync::{Arc, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

#[cfg(test)]
use shuttle::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(test))]
use std::sync::{Condvar, Mutex, MutexGuard};

use self::state::{Entry, State, Thread};
pub(in crate::engine) use self::{
    label::{End, HeldBy, Label, Unserved},
    lease::{Lease, Running},
    ticket::Ticket,
};
use crate::engine::wake::wake;

/// How long a granted owner may take to come before the thread runs its unit.
const PATIENCE: Duration = Duration::from_millis(20);
/// How often the thread looks around while anything is queued.
const TICK: Duration = Duration::from_millis(20);
/// Whoever holds the slot for longer, while others wait, is worth a warning.
const LONG: Duration = Duration::from_secs(5);
/// After so many ticks without anything queued the thread sleeps until it is rung. Soon in tests, so that they meet
/// the sleeping thread.
const IDLE_TICKS: u32 = if cfg!(test) { 1 } else { 10 };

/// See the module's documentation.
#[derive(Debug)]
pub(in crate::engine) struct Slot<U, A> {
    state: Mutex<State<U, A>>,
    bell: Condvar,
    /// All units run on the thread.
    threaded: bool,
    patience: Duration,
    queue_timeout: Duration,
}

/// What a unit's owner is told when it polls.
#[derive(Debug)]
pub(in crate::engine) enum Turned<U, A> {
    /// The answer.
    Answered(Result<A, Unserved>),
    /// The slot is yours: lead.
    Lead(Lease<U, A>),
}

impl<U, A> Slot<U, A> {
    pub(in crate::engine) fn new(threaded: bool, queue_timeout: Duration) -> Self {
        Self {
            state: Mutex::new(State {
                holder: None,
                queue: VecDeque::new(),
                paused_until: None,
                ended: None,
                thread: Thread::Awake,
                tickets: 0,
                to_wake: Vec::new(),
            }),
            bell: Condvar::new(),
            threaded,
            patience: PATIENCE,
            queue_timeout,
        }
    }

    /// Whether all units run on the thread.
    pub(in crate::engine) fn is_threaded(&self) -> bool {
        self.threaded
    }

    /// Queues a unit. `on_thread`: it is too long to run on a task.
    pub(in crate::engine) fn push(
        &self,
        unit: U,
        on_thread: bool,
    ) -> Result<Arc<Ticket<U, A>>, End> {
        self.enqueue(Some(unit), Label::SAVE, on_thread || self.threaded)
    }

    /// Queues for a turn.
    pub(in crate::engine) fn request_turn(&self, label: Label) -> Result<Arc<Ticket<U, A>>, End> {
        self.enqueue(None, label, false)
    }

    fn enqueue(
        &self,
        unit: Option<U>,
        label: Label,
        on_thread: bool,
    ) -> Result<Arc<Ticket<U, A>>, End> {
        let mut state = self.lock();
        if let Some(end) = state.ended {
            return Err(end);
        }
        state.tickets += 1;
        let ticket = Arc::new(Ticket::new(state.tickets));
        state.queue.push_back(Entry {
            ticket: Arc::clone(&ticket),
            unit,
            label,
            on_thread,
            queued: Instant::now(),
            busy_since: None,
            absent: false,
            revoked: 0,
        });
        if on_thread {
            self.ring(&mut state);
        }
        Ok(ticket)
    }

    /// What became of a unit, or the lead if the slot is free.
    pub(in crate::engine) fn poll_unit(
        self: &Arc<Self>,
        ticket: &Arc<Ticket<U, A>>,
        context: &mut Context<'_>,
    ) -> Poll<Turned<U, A>> {
        if let Some(answer) = ticket.answer_or_wait(context) {
            return Poll::Ready(Turned::Answered(answer));
        }
        let mut state = self.lock();
        if state.take_grant(ticket.number) {
            return Poll::Ready(Turned::Lead(self.lease(false)));
        }
        let front_runs_here = state
            .next()
            .is_some_and(|entry| entry.unit.is_some() && !entry.on_thread);
        if front_runs_here && state.is_free() {
            state.hold(ticket.number, Label::SAVE, true, true);
            return Poll::Ready(Turned::Lead(self.lease(false)));
        }
        self.ring(&mut state);
        Poll::Pending
    }

    /// The lease, once it is this ticket's turn.
    pub(in crate::engine) fn poll_turn(
        self: &Arc<Self>,
        ticket: &Arc<Ticket<U, A>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Lease<U, A>, Unserved>> {
        if let Some(Err(unserved)) = ticket.answer_or_wait(context) {
            return Poll::Ready(Err(unserved));
        }
        let mut state = self.lock();
        if !state.take_grant(ticket.number) {
            if let Some(entry) = state.entry(ticket.number) {
                entry.absent = false;
            }
            self.pass_on(&mut state);
            if !state.take_grant(ticket.number) {
                self.ring(&mut state);
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(self.lease(false)))
    }

    /// Takes an entry out of the queue, if nobody runs it yet, and returns its unit.
    pub(in crate::engine) fn withdraw(&self, ticket: &Arc<Ticket<U, A>>) -> Option<U> {
        let mut state = self.lock();
        let place = state
            .queue
            .iter()
            .position(|entry| entry.ticket.number == ticket.number);
        let entry = place.and_then(|place| state.queue.remove(place));
        let was_granted = state
            .holder
            .as_ref()
            .is_some_and(|holder| holder.ticket == ticket.number && !holder.taken);
        if was_granted {
            state.holder = None;
        }
        self.pass_on(&mut state);
        entry.and_then(|entry| entry.unit)
    }

    /// Takes no more work, and answers what is queued.
    pub(in crate::engine) fn end(&self, end: End) {
        let mut state = self.lock();
        state.ended.get_or_insert(end);
        let queue = std::mem::take(&mut state.queue);
        self.bell.notify_all();
        drop(state);
        for entry in queue {
            entry.ticket.answer(Err(Unserved::Ended(end)));
        }
    }

    /// Whether no more work is taken.
    pub(in crate::engine) fn has_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// How many units and turns wait.
    pub(in crate::engine) fn queued(&self) -> usize {
        self.lock().queue.len()
    }

    /// Who holds the slot.
    pub(in crate::engine) fn held_by(&self) -> Option<HeldBy> {
        self.lock().held_by()
    }

    /// The thread's loop: waits until there is something to lead; `None` once the slot has ended.
    pub(in crate::engine) fn next_on_thread(self: &Arc<Self>) -> Option<ThreadTask<U, A>> {
        let mut state = self.lock();
        let mut idle = 0;
        loop {
            if state.ended.is_some() {
                return None;
            }
            let now = Instant::now();
            if state.paused_until.is_some_and(|until| until <= now) {
                state.paused_until = None;
                self.pass_on(&mut state);
            }
            self.expire(&mut state, now);
            if state.revoke(now, self.patience) {
                self.pass_on(&mut state);
            }
            Self::warn(&mut state, now);
            if let Some(taken_over) = state.thread_leads(now, self.patience) {
                return Some(ThreadTask {
                    lease: self.lease(true),
                    taken_over,
                });
            }
            if state.queue.is_empty() {
                idle += 1;
            } else {
                idle = 0;
            }
            state.thread = if idle > IDLE_TICKS {
                Thread::Asleep
            } else {
                Thread::Awake
            };
            let until_pause_ends = state
                .paused_until
                .map_or(TICK, |until| until.saturating_duration_since(now));
            let sleeps = state.thread == Thread::Asleep;
            if sleeps {
                idle = 0;
            }
            let tick = (!sleeps).then_some(until_pause_ends.min(TICK));
            state = self.wait(state, tick);
            state.thread = Thread::Awake;
        }
    }

    fn lease(self: &Arc<Self>, on_thread: bool) -> Lease<U, A> {
        Lease {
            slot: Arc::clone(self),
            on_thread,
        }
    }

    fn ring(&self, state: &mut State<U, A>) {
        let units_wait_for_thread = state.is_free()
            && state
                .next()
                .is_some_and(|entry| entry.unit.is_some() && entry.on_thread);
        if state.thread == Thread::Asleep || units_wait_for_thread {
            self.bell.notify_one();
        }
    }

    /// Gives a free slot to the front of the queue.
    fn pass_on(&self, state: &mut State<U, A>) {
        if !state.is_free() {
            return;
        }
        let Some(front) = state.next() else {
            return;
        };
        if front.unit.is_some() && front.on_thread {
            self.ring(state);
            return;
        }
        let (ticket, label) = (Arc::clone(&front.ticket), front.label);
        let is_unit = front.unit.is_some();
        state.hold(ticket.number, label, false, is_unit);
        let waker = ticket.take_waker();
        state.to_wake.extend(waker);
    }

    /// Says so, once, when somebody holds the slot for long while others wait.
    fn warn(state: &mut State<U, A>, now: Instant) {
        if state.queue.is_empty() {
            return;
        }
        let waiting = state.queue.len();
        if let Some(holder) = &mut state.holder
            && !holder.warned
            && now.saturating_duration_since(holder.since) > LONG
        {
            holder.warned = true;
            tracing::warn!(holder = %holder.label, waiting, "the writer is held for more than five seconds");
        }
    }

    /// Answers what has waited too long, at the front of the queue or anywhere in it.
    fn expire(&self, state: &mut State<U, A>, now: Instant) {
        let timeout = self.queue_timeout;
        if state
            .queue
            .front()
            .is_none_or(|front| now.saturating_duration_since(front.queued) <= timeout)
        {
            return;
        }
        let held_by = state.held_by();
        // A granted front is about to run.
        let granted = state.holder.as_ref().map_or(0, |holder| holder.ticket);
        let mut kept = VecDeque::with_capacity(state.queue.len());
        let mut wakers = Vec::new();
        for entry in state.queue.drain(..) {
            let waited = now.saturating_duration_since(entry.queued);
            // What waits for another process has that wait's own timeout.
            if waited > timeout && entry.busy_since.is_none() && entry.ticket.number != granted {
                let unserved = Unserved::TimedOut {
                    waited,
                    held_by: held_by.clone(),
                };
                wakers.extend(entry.ticket.put_answer(Err(unserved)));
            } else {
                kept.push_back(entry);
            }
        }
        state.queue = kept;
        state.to_wake.append(&mut wakers);
        self.pass_on(state);
    }

    /// Waits for the bell, or for a tick. Who is to be woken is woken first, and then there may be more to do.
    fn wait<'a>(
        &'a self,
        mut locked: Locked<'a, U, A>,
        tick: Option<Duration>,
    ) -> Locked<'a, U, A> {
        if !locked.to_wake.is_empty() {
            drop(locked);
            return self.lock();
        }
        let Some(guard) = locked.guard.take() else {
            return self.lock();
        };
        let guard = match tick {
            None => (self.bell.wait(guard)).unwrap_or_else(PoisonError::into_inner),
            Some(tick) => {
                let waited = self.bell.wait_timeout(guard, tick);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        Locked { guard: Some(guard) }
    }

    fn lock(&self) -> Locked<'_, U, A> {
        let guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { guard: Some(guard) }
    }
}

/// The state, locked. Wakers are called only after the lock is released: a waker may run anything, the drop of a
/// future that waits here included.
#[derive(Debug)]
struct Locked<'a, U, A> {
    guard: Option<MutexGuard<'a, State<U, A>>>,
}

impl<U, A> Deref for Locked<'_, U, A> {
    type Target = State<U, A>;

    #[allow(clippy::expect_used, reason = "taken out only by what consumes it")]
    fn deref(&self) -> &State<U, A> {
        self.guard.as_ref().expect("locked until dropped")
    }
}

impl<U, A> DerefMut for Locked<'_, U, A> {
    #[allow(clippy::expect_used, reason = "taken out only by what consumes it")]
    fn deref_mut(&mut self) -> &mut State<U, A> {
        self.guard.as_mut().expect("locked until dropped")
    }
}

impl<U, A> Drop for Locked<'_, U, A> {
    fn drop(&mut self) {
        let Some(mut guard) = self.guard.take() else {
            return;
        };
        let wakers = std::mem::take(&mut guard.to_wake);
        drop(guard);
        wakers.into_iter().for_each(wake);
    }
}

/// What the thread is to do.
#[derive(Debug)]
pub(in crate::engine) struct ThreadTask<U, A> {
    pub(in crate::engine) lease: Lease<U, A>,
    /// Units that a task should have run, which did not come.
    pub(in crate::engine) taken_over: bool,
}
