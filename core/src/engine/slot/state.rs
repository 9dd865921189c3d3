//! The queue, who holds the slot, and who is next: what the slot's lock guards.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::Waker,
    time::{Duration, Instant},
};

use crate::engine::slot::{
    label::{End, HeldBy, Label},
    ticket::Ticket,
};

/// How often a turn loses its grant at most.
const MOST_REVOKED: u32 = 8;

#[derive(Debug)]
pub(super) struct State<U, A> {
    pub(super) holder: Option<Holder>,
    pub(super) queue: VecDeque<Entry<U, A>>,
    pub(super) paused_until: Option<Instant>,
    pub(super) ended: Option<End>,
    pub(super) thread: Thread,
    pub(super) tickets: u64,
    /// Called when the lock is released.
    pub(super) to_wake: Vec<Waker>,
}

#[derive(Debug)]
pub(super) struct Holder {
    pub(super) ticket: u64,
    pub(super) label: Label,
    pub(super) since: Instant,
    pub(super) taken: bool,
    pub(super) is_unit: bool,
    pub(super) warned: bool,
}

#[derive(Debug)]
pub(super) struct Entry<U, A> {
    pub(super) ticket: Arc<Ticket<U, A>>,
    /// `None` for a turn.
    pub(super) unit: Option<U>,
    pub(super) label: Label,
    pub(super) on_thread: bool,
    pub(super) queued: Instant,
    /// Since when it waits for another process.
    pub(super) busy_since: Option<Instant>,
    /// A turn whose owner did not come when it was granted, and has not polled since.
    pub(super) absent: bool,
    /// How often that happened.
    pub(super) revoked: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thread {
    /// It looks around by itself soon.
    Awake,
    /// It sleeps until it is rung.
    Asleep,
}

impl<U, A> State<U, A> {
    pub(super) fn is_free(&self) -> bool {
        self.holder.is_none() && self.paused_until.is_none()
    }

    pub(super) fn hold(&mut self, ticket: u64, label: Label, taken: bool, is_unit: bool) {
        self.holder = Some(Holder {
            ticket,
            label,
            since: Instant::now(),
            taken,
            is_unit,
            warned: false,
        });
    }

    pub(super) fn held_by(&self) -> Option<HeldBy> {
        self.holder.as_ref().map(|holder| HeldBy {
            label: holder.label,
            age: holder.since.elapsed(),
        })
    }

    /// The first entry whose owner is not absent.
    pub(super) fn next(&self) -> Option<&Entry<U, A>> {
        self.queue.iter().find(|entry| !entry.absent)
    }

    pub(super) fn entry(&mut self, ticket: u64) -> Option<&mut Entry<U, A>> {
        self.queue
            .iter_mut()
            .find(|entry| entry.ticket.number == ticket)
    }

    /// Takes the lease if it was granted to this ticket. A turn leaves the queue with that.
    pub(super) fn take_grant(&mut self, ticket: u64) -> bool {
        let Some(holder) = &mut self.holder else {
            return false;
        };
        if holder.ticket != ticket || holder.taken {
            return false;
        }
        holder.taken = true;
        let mut entries = self.queue.iter();
        if !holder.is_unit
            && let Some(at) = entries.position(|entry| entry.ticket.number == ticket)
        {
            self.queue.remove(at);
        }
        true
    }

    /// Takes a turn's grant back if its owner does not come for it, and somebody else waits.
    pub(super) fn revoke(&mut self, now: Instant, patience: Duration) -> bool {
        let Some(holder) = &self.holder else {
            return false;
        };
        if holder.taken || holder.is_unit || self.queue.len() < 2 {
            return false;
        }
        let (ticket, age) = (holder.ticket, now.saturating_duration_since(holder.since));
        let Some(entry) = self.entry(ticket) else {
            return false;
        };
        // A turn that comes late again and again is not one that nobody comes for.
        if entry.revoked == MOST_REVOKED || age <= patience * 2_u32.pow(entry.revoked) {
            return false;
        }
        entry.absent = true;
        entry.revoked += 1;
        self.holder = None;
        true
    }

    /// Whether the thread leads now: what belongs to it, or what nobody else came for.
    pub(super) fn thread_leads(&mut self, now: Instant, patience: Duration) -> Option<bool> {
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
        let front = self.next()?;
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
