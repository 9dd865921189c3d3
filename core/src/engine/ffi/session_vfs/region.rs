//! Region 0 of a wal-index, as it lies in memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// How many bytes a region has.
pub(super) const BYTES: usize = 32 * 1024;
/// The version of the wal-index whose layout this is; the same from SQLite 3.45 to 3.54 at least.
pub(super) const VERSION: u32 = 3_007_000;
/// How many read marks there are, with that of slot 0, which is not used.
const MARKS: usize = 5;
/// How often the header is read again while somebody writes it.
const TRIES: usize = 1000;

/// The header's words: a commit is visible once both copies have it.
pub(super) type Header = [u32; 12];

/// Region 0: the header twice, what checkpoints need to know, and the index of the first 4062 frames.
#[derive(Debug)]
#[repr(C, align(8))]
pub(super) struct Region {
    headers: [[AtomicU32; 12]; 2],
    backfilled: AtomicU32,
    marks: [AtomicU32; MARKS],
    /// The bytes on which processes take their locks; nobody reads or writes them.
    locks: [AtomicU32; 2],
    attempted: AtomicU32,
    unused: AtomicU32,
    index: [AtomicU64; 4079],
}

const _: () = assert!(size_of::<Region>() == BYTES);

impl Region {
    /// A region of zeros: to SQLite its header is not valid.
    pub(super) fn zeroed() -> Box<Self> {
        Box::new(Self {
            headers: [const { [const { AtomicU32::new(0) }; 12] }; 2],
            backfilled: AtomicU32::new(0),
            marks: [const { AtomicU32::new(0) }; MARKS],
            locks: [const { AtomicU32::new(0) }; 2],
            attempted: AtomicU32::new(0),
            unused: AtomicU32::new(0),
            index: [const { AtomicU64::new(0) }; 4079],
        })
    }

    /// The first copy of the header, which is the one that SQLite compares with.
    pub(super) fn first_header(&self) -> Header {
        self.headers[0].each_ref().map(load)
    }

    /// The header, once both copies are equal. SQLite writes the second one first, so the first is read first.
    pub(super) fn header(&self) -> Option<Header> {
        (0..TRIES).find_map(|_| {
            let first = self.first_header();
            fence(Ordering::SeqCst);
            let second = self.headers[1].each_ref().map(load);
            if first != second {
                std::hint::spin_loop();
            }
            (first == second).then_some(first)
        })
    }

    /// Writes both copies of the header.
    pub(super) fn set_header(&self, header: &Header) {
        for copy in &self.headers {
            for (word, value) in copy.iter().zip(header) {
                word.store(*value, Ordering::Relaxed);
            }
        }
    }

    /// Takes over what checkpoints and readers tell each other: the moved frames, and the read marks.
    pub(super) fn take_marks(&self, from: &Self) {
        take(&self.backfilled, &from.backfilled);
        take(&self.attempted, &from.attempted);
        for (mark, from) in self.marks.iter().zip(&from.marks) {
            take(mark, from);
        }
    }

    /// Takes the index of the frames over.
    pub(super) fn take_index(&self, from: &Self) {
        for (word, from) in self.index.iter().zip(&from.index) {
            word.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The read mark of a slot.
    pub(super) fn mark(&self, slot: usize) -> u32 {
        load(&self.marks[slot])
    }

    /// Sets the read mark of a slot.
    pub(super) fn set_mark(&self, slot: usize, frame: u32) {
        self.marks[slot].store(frame, Ordering::SeqCst);
    }
}

fn load(word: &AtomicU32) -> u32 {
    word.load(Ordering::SeqCst)
}

fn take(word: &AtomicU32, from: &AtomicU32) {
    word.store(load(from), Ordering::Relaxed);
}

#[cfg(test)]
impl Region {
    /// Up to which frame the log was moved into the file.
    pub(super) fn backfilled(&self) -> u32 {
        load(&self.backfilled)
    }

    /// Writes only the second copy of the header, as a commit does that was stopped half way.
    pub(super) fn tear(&self, difference: u32) {
        let word = &self.headers[1][2];
        word.store(load(word).wrapping_add(difference), Ordering::SeqCst);
    }

    /// Gives the index a value by which it is known.
    pub(super) fn set_index(&self, value: u64) {
        self.index[0].store(value, Ordering::SeqCst);
    }

    /// That value.
    pub(super) fn index(&self) -> u64 {
        self.index[0].load(Ordering::SeqCst)
    }
}
