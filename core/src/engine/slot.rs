//! The writer's slot: who may write now, and who is next.
//!
//! # Protocol
//!
//! One [`Slot`] per database file. Its queue is first in, first out, and holds two kinds of entries:
//!
//! * a **unit**: the work of one save, which anybody who leads can run;
//! * a **turn**: somebody who wants the slot for himself (an exclusive transaction, a checkpoint).
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
//! it looks at the slot, and whoever grants or answers does so *before* it takes the waker. Nobody is woken under the
//! slot's lock ([`Locked`]): some executors poll a task, or drop it, right there.
//!
//! When a lease ends, the slot goes to the front of the queue: a turn is granted; a unit's owner is granted the
//! lead (`holder` names it, not yet `taken`), or the writer's thread is rung if units run there. A granted owner
//! that is dropped passes the grant on; one that is not polled any more (it sits in a `select!` that looks
//! elsewhere) is overruled by the thread after [`PATIENCE`]: the thread may run any unit. A turn that was granted
//! cannot be run by anybody else, so it can only be dropped.
//!
//! While another process holds SQLite's write lock the slot *pauses*: units stay queued, and can still be
//! withdrawn; the thread ends the pause.
//!
//! Shutdown: [`Slot::end`] answers everything that is queued, and refuses what comes after. The database closes by
//! taking a turn first, so that all that was queued before it is written.

use std::{
    collections::VecDeque,
    fmt,
    ops::{Deref, DerefMut},
    panic::Location,
    sync::{Arc, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

#[cfg(test)]
use shuttle::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(test))]
use std::sync::{Condvar, Mutex, MutexGuard};

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

#[derive(Debug)]
struct State<U, A> {
    holder: Option<Holder>,
    queue: VecDeque<Entry<U, A>>,
    paused_until: Option<Instant>,
    ended: Option<End>,
    thread: Thread,
    tickets: u64,
    /// To be woken once the lock is let go.
    wakers: Vec<Waker>,
}

/// The state, locked; whoever is to be woken is woken after that.
struct Locked<'a, U, A>(Option<MutexGuard<'a, State<U, A>>>);

#[derive(Debug)]
struct Holder {
    ticket: u64,
    label: Label,
    since: Instant,
    taken: bool,
    is_unit: bool,
    warned: bool,
}

#[derive(Debug)]
struct Entry<U, A> {
    ticket: Arc<Ticket<U, A>>,
    /// `None` for a turn.
    unit: Option<U>,
    label: Label,
    on_thread: bool,
    queued: Instant,
    /// Since when it waits for another process.
    busy_since: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    /// It looks around by itself soon.
    Awake,
    /// It sleeps until it is rung.
    Asleep,
}

/// Why the slot takes no more work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum End {
    /// The database was closed.
    Closed,
    /// The library failed while it held the slot.
    Poisoned,
}

/// What somebody holds the slot for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Label {
    what: &'static str,
    at: Option<&'static Location<'static>>,
}

impl Label {
    const SAVE: Self = Self::new("a save");

    pub(in crate::engine) const fn new(what: &'static str) -> Self {
        Self { what, at: None }
    }

    /// With the place in the application's source.
    pub(in crate::engine) const fn at(
        what: &'static str,
        location: &'static Location<'static>,
    ) -> Self {
        Self {
            what,
            at: Some(location),
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        match self.at {
            Some(at) => write!(f, " at {at}"),
            None => Ok(()),
        }
    }
}

/// Who holds the slot, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct HeldBy {
    pub(in crate::engine) label: Label,
    pub(in crate::engine) age: Duration,
}

/// Why the wait for the slot ended without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) enum Unserved {
    /// The wait outlasted its timeout.
    TimedOut {
        waited: Duration,
        held_by: Option<HeldBy>,
    },
    /// No more work is taken.
    Ended(End),
}

/// An owner's place in the queue, and later its answer.
#[derive(Debug)]
pub(in crate::engine) struct Ticket<U, A> {
    number: u64,
    place: Mutex<Place<A>>,
    of: std::marker::PhantomData<fn() -> U>,
}

#[derive(Debug)]
struct Place<A> {
    answer: Option<Result<A, Unserved>>,
    waker: Option<Waker>,
}

/// The right to write. Dropping it passes the slot on.
#[derive(Debug)]
pub(in crate::engine) struct Lease<U, A> {
    slot: Arc<Slot<U, A>>,
    on_thread: bool,
}

/// A unit that is being applied; its owner can no longer withdraw it.
#[derive(Debug)]
pub(in crate::engine) struct Running<U, A> {
    unit: Option<U>,
    ticket: Arc<Ticket<U, A>>,
    queued: Instant,
    busy_since: Option<Instant>,
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
                wakers: Vec::new(),
            }),
            bell: Condvar::new(),
            threaded,
            patience: PATIENCE,
            queue_timeout,
        }
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
        let ticket = Arc::new(Ticket {
            number: state.tickets,
            place: Mutex::new(Place {
                answer: None,
                waker: None,
            }),
            of: std::marker::PhantomData,
        });
        state.queue.push_back(Entry {
            ticket: Arc::clone(&ticket),
            unit,
            label,
            on_thread,
            queued: Instant::now(),
            busy_since: None,
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
            .queue
            .front()
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
            Self::warn(&mut state, now);
            if !state.wakers.is_empty() {
                drop(state);
                state = self.lock();
                continue;
            }
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
            state = if idle > IDLE_TICKS {
                idle = 0;
                state.wait(|guard| {
                    self.bell
                        .wait(guard)
                        .unwrap_or_else(PoisonError::into_inner)
                })
            } else {
                let until_pause_ends = state
                    .paused_until
                    .map_or(TICK, |until| until.saturating_duration_since(now));
                state.wait(|guard| {
                    self.bell
                        .wait_timeout(guard, until_pause_ends.min(TICK))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                })
            };
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
                .queue
                .front()
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
        let Some(front) = state.queue.front() else {
            return;
        };
        if front.unit.is_some() && front.on_thread {
            self.ring(state);
            return;
        }
        let (ticket, label) = (Arc::clone(&front.ticket), front.label);
        let is_unit = front.unit.is_some();
        if !is_unit {
            state.queue.pop_front();
        }
        state.hold(ticket.number, label, false, is_unit);
        state.wakers.extend(ticket.take_waker());
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
        for entry in std::mem::take(&mut state.queue) {
            let waited = now.saturating_duration_since(entry.queued);
            // What waits for another process has that wait's own timeout.
            if waited > timeout && entry.busy_since.is_none() && entry.ticket.number != granted {
                let unserved = Unserved::TimedOut {
                    waited,
                    held_by: held_by.clone(),
                };
                state.wakers.extend(entry.ticket.keep(Err(unserved)));
            } else {
                kept.push_back(entry);
            }
        }
        state.queue = kept;
        self.pass_on(state);
    }

    fn lock(&self) -> Locked<'_, U, A> {
        Locked(Some(
            self.state.lock().unwrap_or_else(PoisonError::into_inner),
        ))
    }
}

impl<'a, U, A> Locked<'a, U, A> {
    /// Lets go of the lock while `wait` does.
    fn wait(
        mut self,
        wait: impl FnOnce(MutexGuard<'a, State<U, A>>) -> MutexGuard<'a, State<U, A>>,
    ) -> Self {
        Self(self.0.take().map(wait))
    }
}

impl<U, A> Deref for Locked<'_, U, A> {
    type Target = State<U, A>;

    #[allow(clippy::expect_used, reason = "only `wait` and drop take it out")]
    fn deref(&self) -> &State<U, A> {
        self.0.as_deref().expect("taken out only at the end")
    }
}

impl<U, A> DerefMut for Locked<'_, U, A> {
    #[allow(clippy::expect_used, reason = "only `wait` and drop take it out")]
    fn deref_mut(&mut self) -> &mut State<U, A> {
        self.0.as_deref_mut().expect("taken out only at the end")
    }
}

impl<U, A> Drop for Locked<'_, U, A> {
    fn drop(&mut self) {
        let Some(mut state) = self.0.take() else {
            return;
        };
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
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

impl<U, A> State<U, A> {
    fn is_free(&self) -> bool {
        self.holder.is_none() && self.paused_until.is_none()
    }

    fn hold(&mut self, ticket: u64, label: Label, taken: bool, is_unit: bool) {
        self.holder = Some(Holder {
            ticket,
            label,
            since: Instant::now(),
            taken,
            is_unit,
            warned: false,
        });
    }

    fn held_by(&self) -> Option<HeldBy> {
        self.holder.as_ref().map(|holder| HeldBy {
            label: holder.label,
            age: holder.since.elapsed(),
        })
    }

    /// Takes the lease if it was granted to this ticket.
    fn take_grant(&mut self, ticket: u64) -> bool {
        match &mut self.holder {
            Some(holder) if holder.ticket == ticket && !holder.taken => {
                holder.taken = true;
                true
            }
            _ => false,
        }
    }

    /// Whether the thread leads now: what belongs to it, or what nobody else came for.
    fn thread_leads(&mut self, now: Instant, patience: Duration) -> Option<bool> {
        let granted_for = match &self.holder {
            Some(holder) if !holder.taken && holder.is_unit => {
                Some(now.saturating_duration_since(holder.since))
            }
            Some(_) => return None,
            None => None,
        };
        if self.paused_until.is_some() && granted_for.is_none() {
            return None;
        }
        let front = self.queue.front()?;
        front.unit.as_ref()?;
        let overdue = match granted_for {
            Some(age) => age > patience,
            None => now.saturating_duration_since(front.queued) > patience,
        };
        let is_its_own = front.on_thread && granted_for.is_none();
        if !overdue && !is_its_own {
            return None;
        }
        self.hold(0, Label::SAVE, true, true);
        Some(!is_its_own)
    }
}

impl<U, A> Ticket<U, A> {
    fn answer_or_wait(&self, context: &mut Context<'_>) -> Option<Result<A, Unserved>> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = place.answer.take() {
            return Some(answer);
        }
        match &mut place.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        None
    }

    /// The answer, if it is there.
    pub(in crate::engine) fn try_answer(&self) -> Option<Result<A, Unserved>> {
        self.place
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .answer
            .take()
    }

    fn answer(&self, answer: Result<A, Unserved>) {
        self.keep(answer).map(wake).unwrap_or_default();
    }

    /// Keeps the answer for the owner, who is then to be woken.
    fn keep(&self, answer: Result<A, Unserved>) -> Option<Waker> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.answer = Some(answer);
        place.waker.take()
    }

    fn take_waker(&self) -> Option<Waker> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.waker.take()
    }
}

impl<U, A> Lease<U, A> {
    /// Takes units from the front of the queue, up to the first turn.
    pub(in crate::engine) fn take_units(&self, most: usize) -> Vec<Running<U, A>> {
        let mut state = self.slot.lock();
        let mut taken = Vec::with_capacity(state.queue.len().min(most));
        while taken.len() < most
            && let Some(front) = state.queue.front()
            && front.unit.is_some()
            && (self.on_thread || !front.on_thread)
            && let Some(Entry {
                ticket,
                unit: Some(unit),
                queued,
                busy_since,
                ..
            }) = state.queue.pop_front()
        {
            taken.push(Running {
                unit: Some(unit),
                ticket,
                queued,
                busy_since,
            });
        }
        taken
    }

    /// Puts units back, since another process holds SQLite's lock, and pauses the slot. The units can be
    /// withdrawn again. Those that have waited for longer than `timeout` are returned.
    pub(in crate::engine) fn put_back(
        self,
        units: Vec<Running<U, A>>,
        pause: Duration,
        timeout: Duration,
    ) -> Vec<(Running<U, A>, Duration)> {
        let now = Instant::now();
        let mut late = Vec::new();
        let mut state = self.slot.lock();
        if state.ended.is_some() {
            // Nobody would run them any more: their drop says so to their owners.
            drop(state);
            drop(units);
            return late;
        }
        for mut running in units.into_iter().rev() {
            let busy_since = running.busy_since.unwrap_or(now);
            let waited = now.saturating_duration_since(busy_since);
            if waited > timeout {
                late.push((running, waited));
                continue;
            }
            state.queue.push_front(Entry {
                ticket: Arc::clone(&running.ticket),
                unit: running.unit.take(),
                label: Label::SAVE,
                on_thread: true,
                queued: running.queued,
                busy_since: Some(busy_since),
            });
        }
        state.paused_until = Some(now + pause);
        self.slot.bell.notify_one();
        drop(state);
        late
    }

    /// Keeps everybody off the slot for a moment after this lease, so that another process gets its turn.
    pub(in crate::engine) fn pause(self, pause: Duration) {
        self.slot.lock().paused_until = Some(Instant::now() + pause);
        self.slot.bell.notify_one();
    }

    /// Changes what messages say about the holder.
    pub(in crate::engine) fn relabel(&self, label: Label) {
        if let Some(holder) = &mut self.slot.lock().holder {
            holder.label = label;
        }
    }
}

impl<U, A> Drop for Lease<U, A> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        state.holder = None;
        self.slot.pass_on(&mut state);
    }
}

impl<U, A> Running<U, A> {
    /// The unit to apply.
    pub(in crate::engine) fn unit(&self) -> Option<&U> {
        self.unit.as_ref()
    }

    /// How long the owner has waited.
    pub(in crate::engine) fn waited(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.queued)
    }

    /// Answers the owner.
    pub(in crate::engine) fn answer(mut self, answer: A) {
        self.unit = None;
        self.ticket.answer(Ok(answer));
    }
}

impl<U, A> Drop for Running<U, A> {
    /// A unit that is let go of without an answer was in the hands of a leader that panicked: its owner must not
    /// wait for ever.
    fn drop(&mut self) {
        if self.unit.is_some() {
            self.ticket.answer(Err(Unserved::Ended(End::Poisoned)));
        }
    }
}

#[cfg(test)]
mod tests;
