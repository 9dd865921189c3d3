//! Tests only: taking a rule out, to see what it is for.

use std::ffi::c_int;

use libsqlite3_sys as sqlite;

use crate::engine::ffi::session_vfs::shm::{Real, Request, Shm};

/// What can be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Rule {
    /// Nothing is refreshed once it was mapped.
    B = 1,
    /// Nothing is refreshed after the lock on a read slot.
    BAtLock = 2,
    /// Read marks are not published.
    C = 4,
    /// Read marks are not taken over.
    CMarks = 8,
    /// The write lock is granted also to who holds no read lock.
    D = 16,
    /// The write lock is taken for real.
    DFake = 32,
    /// Ranges of slots are refused with BUSY.
    E = 64,
    /// Ranges of slots are granted, without being taken.
    EGrant = 128,
}

/// The rules that a VFS does without.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Without(u8);

impl Without {
    pub(super) fn rules(rules: &[Rule]) -> Self {
        Self(rules.iter().fold(0, |all, rule| all | *rule as u8))
    }

    pub(super) fn has(self, rule: Rule) -> bool {
        self.0 & rule as u8 != 0
    }

    pub(super) fn skips_sleep(self) -> bool {
        self.has(Rule::E) || self.has(Rule::EGrant)
    }
}

impl Shm {
    pub(super) fn without(without: Without) -> Self {
        let mut shm = Self::default();
        shm.without = without;
        shm
    }

    /// What an exclusive lock is answered where the rules about it are out.
    pub(super) fn lock_exclusive_without(
        &mut self,
        request: Request,
        real: Real<'_>,
    ) -> Option<c_int> {
        let is_write = request.first == 0 && request.count == 1;
        let is_range = request.count > 1;
        if is_write && self.without.has(Rule::DFake) {
            return Some(self.pass(request, real));
        }
        if is_write && self.without.has(Rule::D) {
            self.is_writing = true;
            return Some(sqlite::SQLITE_OK);
        }
        if is_range && self.without.has(Rule::E) {
            return Some(sqlite::SQLITE_BUSY);
        }
        if is_range && self.without.has(Rule::EGrant) {
            return Some(sqlite::SQLITE_OK);
        }
        None
    }
}

/// What tests look at, and do to the real wal-index.
impl Shm {
    /// The last frame of the snapshot.
    pub(super) fn snapshot(&self) -> u32 {
        self.regions().unwrap().0.first_header()[4]
    }

    /// Up to which frame the log was moved.
    pub(super) fn backfilled(&self) -> u32 {
        self.regions().unwrap().1.backfilled()
    }

    /// Makes the two copies of the real header differ.
    pub(super) fn tear(&self, difference: u32) {
        self.regions().unwrap().1.tear(difference);
    }

    /// Whether the read lock on this slot is held.
    pub(super) fn reads_slot(&self, slot: u16) -> bool {
        self.held & 1 << (3 + slot) != 0
    }
}
