//! The right to write, and the units that its holder applies.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::engine::slot::{
    Slot,
    label::{End, Label, Unserved},
    state::Entry,
    ticket::Ticket,
};

/// The right to write. Dropping it passes the slot on.
#[derive(Debug)]
pub(in crate::engine) struct Lease<U, A> {
    pub(super) slot: Arc<Slot<U, A>>,
    pub(super) on_thread: bool,
}

/// A unit that is being applied; its owner can no longer withdraw it.
#[derive(Debug)]
pub(in crate::engine) struct Running<U, A> {
    pub(super) unit: Option<U>,
    pub(super) ticket: Arc<Ticket<U, A>>,
    pub(super) queued: Instant,
    pub(super) busy_since: Option<Instant>,
}

impl<U, A> Lease<U, A> {
    /// Takes units from the front of the queue, up to the first turn; past turns whose owners are absent. `fits` is
    /// asked for each unit, and only the first is taken that does not.
    pub(in crate::engine) fn take_units(
        &self,
        mut fits: impl FnMut(&U) -> bool,
    ) -> Vec<Running<U, A>> {
        let mut state = self.slot.lock();
        let mut taken = Vec::with_capacity(state.queue.len());
        let mut at = 0;
        while let Some(front) = state.queue.get(at) {
            if front.absent {
                at += 1;
                continue;
            }
            let Some(unit) = &front.unit else { break };
            let is_for_thread = front.on_thread && !self.on_thread;
            if is_for_thread || (!fits(unit) && !taken.is_empty()) {
                break;
            }
            let Some(Entry {
                ticket,
                unit: Some(unit),
                queued,
                busy_since,
                ..
            }) = state.queue.remove(at)
            else {
                break;
            };
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
                absent: false,
                revoked: 0,
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
