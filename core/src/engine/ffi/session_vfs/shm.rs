//! A session's view of the wal-index: the private region, and which locks are taken, faked or refused.

use std::{ffi::c_int, ptr::NonNull};

use libsqlite3_sys as sqlite;

#[cfg(test)]
use crate::engine::ffi::session_vfs::ablation::{Rule, Without};
use crate::engine::ffi::session_vfs::region::{Header, Region, VERSION};

/// The slots of `xShmLock`: one for writing, one for checkpoints, one for recovery, and one a read mark.
const WRITE: c_int = 0;
const FIRST_READ: c_int = 3;
const READ_SLOTS: u16 = 0b1_1111 << FIRST_READ;

/// At this miss within one BEGIN SQLite is not let try again: it would begin to sleep, up to ten seconds in all.
const MOST_MISSES: u32 = 5;

/// What became of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Refreshed {
    /// The present headers were taken over: the next BEGIN sees every commit that was answered before.
    Ok,
    /// Nothing is mapped yet: the first read maps it, and takes the present over.
    NotYetMapped,
    /// Somebody is writing the header, or died in it. The connection may try again.
    Torn,
    /// Nothing was done, for a transaction is open.
    Reading,
}

/// A call of `xShmLock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) first: c_int,
    pub(super) count: c_int,
    pub(super) flags: c_int,
}

impl Request {
    fn is_lock(self) -> bool {
        self.flags & sqlite::SQLITE_SHM_LOCK != 0
    }

    fn is_exclusive(self) -> bool {
        self.flags & sqlite::SQLITE_SHM_EXCLUSIVE != 0
    }

    /// The slots that are meant, as bits.
    fn slots(self) -> u16 {
        (0..8)
            .filter(|slot| (self.first..self.first.saturating_add(self.count)).contains(slot))
            .fold(0, |slots, slot| slots | 1 << slot)
    }

    /// The read mark that belongs to the slot, if it is one slot that has one.
    fn read_slot(self) -> Option<usize> {
        let slot = usize::try_from(self.first.checked_sub(FIRST_READ)?).ok()?;
        (self.count == 1 && slot < 5).then_some(slot)
    }

    fn unlock(self) -> Self {
        Self {
            flags: self.flags & !sqlite::SQLITE_SHM_LOCK | sqlite::SQLITE_SHM_UNLOCK,
            ..self
        }
    }
}

/// `xShmLock` of the real file.
pub(super) type Real<'a> = &'a mut dyn FnMut(Request) -> c_int;

/// The wal-index of one session's database file.
#[derive(Debug, Default)]
pub(super) struct Shm {
    /// What SQLite takes for region 0: a copy of it as of the snapshot (rule A).
    private: Option<Private>,
    /// Region 0 as everybody has it.
    real: Option<RealRegion>,
    /// The locks that the real file gave, a bit a slot.
    pub(super) held: u16,
    /// SQLite believes to hold the write lock (rule D).
    pub(super) is_writing: bool,
    /// How often in this BEGIN the present had moved on between SQLite's look and its lock.
    misses: u32,
    #[cfg(test)]
    pub(super) without: Without,
}

// SAFETY: invariants 10 and 11: neither region belongs to a thread, and both are reached as atomics.
unsafe impl Send for Shm {}

/// The real region 0. It is used from `xShmMap` to `xShmUnmap`.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealRegion(NonNull<Region>);

impl RealRegion {
    /// # Safety
    ///
    /// `region` was mapped by the real file, which is not unmapped while this is used (invariant 10).
    pub(super) unsafe fn new(region: NonNull<Region>) -> Self {
        Self(region)
    }

    fn get(&self) -> &Region {
        // SAFETY: invariant 10, as the contract of `new` says.
        unsafe { self.0.as_ref() }
    }
}

/// The private region, of which SQLite keeps the address.
#[derive(Debug)]
struct Private(NonNull<Region>);

impl Private {
    fn new() -> Self {
        Self(NonNull::from(Box::leak(Region::zeroed())))
    }

    fn get(&self) -> &Region {
        // SAFETY: invariant 11: allocated in `new`, and not freed before `Drop`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // SAFETY: invariant 11: made of a box in `new`; the file was closed, so SQLite has forgotten the address.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Shm {
    /// Rule A: region 0 was mapped; what SQLite is to have instead, the same each time.
    pub(super) fn mapped(&mut self, real: RealRegion) -> NonNull<Region> {
        self.real = Some(real);
        let private = self.private.get_or_insert_with(Private::new).0;
        self.take_headers();
        private
    }

    /// Rule A: there is no region 0 yet, and a session does not make one.
    pub(super) fn missing(&mut self) -> c_int {
        self.miss()
    }

    /// The real region is about to go.
    pub(super) fn unmapped(&mut self) {
        self.real = None;
    }

    /// Rule B, before a BEGIN.
    pub(super) fn refresh(&mut self) -> Refreshed {
        self.misses = 0;
        if self.held & READ_SLOTS != 0 {
            return Refreshed::Reading;
        }
        if self.real.is_none() {
            return Refreshed::NotYetMapped;
        }
        #[cfg(test)]
        if self.without.has(Rule::B) {
            return Refreshed::Ok;
        }
        if self.take_headers() {
            Refreshed::Ok
        } else {
            Refreshed::Torn
        }
    }

    /// The version of the wal-index, if one is mapped and initialised: that of the header that was taken over last, for
    /// in the real one somebody may be half-way through a commit for as long as the machine likes.
    pub(super) fn version(&self) -> Option<u32> {
        let header = self.regions()?.0.first_header();
        (header != [0; 12]).then_some(header[0])
    }

    /// `xShmLock`.
    pub(super) fn lock(&mut self, request: Request, real: Real<'_>) -> c_int {
        match (request.is_lock(), request.is_exclusive()) {
            (true, true) => self.lock_exclusive(request, real),
            (true, false) => self.lock_shared(request, real),
            (false, _) => self.unlock(request, real),
        }
    }

    fn lock_exclusive(&mut self, request: Request, real: Real<'_>) -> c_int {
        #[cfg(test)]
        if let Some(result) = self.lock_exclusive_without(request, real) {
            return result;
        }
        // Rule E. After BUSY `walRestartLog` would let go of its read lock, and look for another one.
        if request.count != 1 {
            return sqlite::SQLITE_READONLY;
        }
        match request.read_slot() {
            // Rule F: outside of a private transaction, to set a read mark.
            Some(_) if !self.is_writing => self.pass(request, real),
            None if request.first == WRITE => self.lock_write(),
            // Rule F: checkpoints and recovery, and marks within a private transaction.
            Some(_) | None => sqlite::SQLITE_BUSY,
        }
    }

    /// Rule D: the lock is not taken. The private header stays that of the snapshot, so SQLite finds no change.
    fn lock_write(&mut self) -> c_int {
        if self.held & READ_SLOTS == 0 {
            // SQLite wants to know whether the header is as bad as it looks, and would recover it.
            self.take_headers();
            return self.miss();
        }
        self.is_writing = true;
        sqlite::SQLITE_OK
    }

    fn lock_shared(&mut self, request: Request, real: Real<'_>) -> c_int {
        let result = self.pass(request, real);
        let Some(slot) = request.read_slot().filter(|_| result == sqlite::SQLITE_OK) else {
            return result;
        };
        #[cfg(test)]
        if self.without.has(Rule::B) || self.without.has(Rule::BAtLock) {
            return result;
        }
        // Rule B. SQLite compares once more after the lock, and tries again by itself if something changed.
        let seen = self.seen(slot);
        let is_whole = self.take_headers();
        if is_whole && self.seen(slot) == seen {
            self.take_index(slot);
            self.misses = 0;
            return sqlite::SQLITE_OK;
        }
        let answer = self.miss();
        if is_whole && answer == sqlite::SQLITE_BUSY {
            return sqlite::SQLITE_OK;
        }
        self.unlock(request.unlock(), real);
        answer
    }

    fn unlock(&mut self, request: Request, real: Real<'_>) -> c_int {
        if request.slots() & 1 << WRITE != 0 {
            self.is_writing = false;
        }
        // Rules D and E: unix clears all slots of an unlock, whoever has them.
        if self.held & request.slots() != request.slots() {
            return sqlite::SQLITE_OK;
        }
        if request.is_exclusive() {
            self.publish(request);
        }
        let result = real(request);
        if result == sqlite::SQLITE_OK {
            self.held &= !request.slots();
        }
        result
    }

    /// Rule C: the mark that SQLite has set has to be seen by whoever moves the log, before the lock on it goes.
    fn publish(&self, request: Request) {
        #[cfg(test)]
        if self.without.has(Rule::C) {
            return;
        }
        if let (Some(slot @ 1..), Some((private, real))) = (request.read_slot(), self.regions()) {
            real.set_mark(slot, private.mark(slot));
        }
    }

    /// Asks the real file for a lock.
    pub(super) fn pass(&mut self, request: Request, real: Real<'_>) -> c_int {
        let result = real(request);
        if result == sqlite::SQLITE_OK {
            self.held |= request.slots();
        }
        result
    }

    /// Rule B: SQLite may try again, but not for ever.
    fn miss(&mut self) -> c_int {
        self.misses += 1;
        if self.misses < MOST_MISSES {
            return sqlite::SQLITE_BUSY;
        }
        self.misses = 0;
        sqlite::SQLITE_PROTOCOL
    }

    pub(super) fn regions(&self) -> Option<(&Region, &Region)> {
        Some((self.private.as_ref()?.get(), self.real.as_ref()?.get()))
    }

    /// What SQLite compares before and after the lock on a read slot.
    fn seen(&self, slot: usize) -> Option<(Header, u32)> {
        let private = self.private.as_ref()?.get();
        // Slot 0 has no mark: who holds it reads nothing from the log.
        let mark = if slot == 0 { 0 } else { private.mark(slot) };
        Some((private.first_header(), mark))
    }

    /// Takes over the index of the frames, if a snapshot on this slot looks at it. What it says of the snapshot's frames
    /// does not change any more: the lock is held, and the header was still the present one after it.
    fn take_index(&self, slot: usize) {
        if let (1.., Some((private, real))) = (slot, self.regions()) {
            private.take_index(real);
        }
    }

    /// Takes over the marks, and then the header, which is the order that SQLite relies on: whoever moved frames had
    /// not seen a later header. Whether the header was whole; if not, the private one is as it was.
    fn take_headers(&self) -> bool {
        let Some((private, real)) = self.regions() else {
            return false;
        };
        #[cfg(test)]
        if self.without.has(Rule::B) || self.without.has(Rule::BAtLock) {
            private.take_index(real);
        }
        self.take_marks(private, real);
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let Some(header) = real.header() else {
            return false;
        };
        private.set_header(&header);
        true
    }

    fn take_marks(&self, private: &Region, real: &Region) {
        #[cfg(test)]
        if self.without.has(Rule::CMarks) {
            return;
        }
        private.take_marks(real);
    }
}

/// Why there can be no sessions on a file with this version of the wal-index.
pub(super) fn unsupported(version: Option<u32>) -> Option<String> {
    match version {
        Some(VERSION) => None,
        Some(version) => Some(format!(
            "its wal-index has version {version}, and sessions know only {VERSION}"
        )),
        None => Some(
            "it has no wal-index in shared memory, or nothing was read through the connection yet"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests;
