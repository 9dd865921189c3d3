//! Whether somebody else wrote the file.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// Both copies of the header of the log's index. They differ only while somebody writes them, or died doing so.
pub(in crate::engine) type Header = [u64; 12];

/// Knows the state that our connections left the file in, and counts how often another one was found.
///
/// All that changes the header of the log's index holds the lock WRITE meanwhile: a commit (`sqlite3WalFrames`), the
/// restart of a log (`walRestartHdr`, within a write and within a checkpoint), its recovery (`walIndexRecover`). So
/// from when WRITE is granted until it is given up the header is the holder's alone. Both copies are compared: who
/// died between writing the second and the first has committed, and the next one to recover the log finds it so.
///
/// A restart or a recovery by somebody else counts too, though nothing may have been committed: the header does not
/// tell them apart. Somebody else is every connection that is not opened through the same VFS, our readers too, which
/// may recover a log.
#[derive(Debug, Default)]
pub(in crate::engine) struct Head {
    foreign: AtomicU64,
    left: Mutex<Option<Header>>,
}

impl Head {
    /// How often the file was found changed by somebody else, the first look at it included. Exact for whoever holds
    /// the lock WRITE.
    pub(in crate::engine) fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Acquire)
    }

    /// One of our connections has got WRITE, and found this.
    pub(in crate::engine) fn found(&self, header: Header) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if *left != Some(header) {
            *left = Some(header);
            self.foreign.fetch_add(1, Ordering::Release);
        }
    }

    /// One of our connections is about to give WRITE up, and leaves this.
    pub(in crate::engine) fn left(&self, header: Header) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(header);
    }

    /// Nothing is known any more.
    pub(in crate::engine) fn forget(&self) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::hooks::Head;

    #[test]
    fn only_what_was_not_left_by_us_is_foreign() {
        let head = Head::default();
        head.found([1; 12]);
        assert_eq!(head.foreign(), 1, "nothing was known");
        head.left([2; 12]);
        head.found([2; 12]);
        assert_eq!(head.foreign(), 1);
        head.found([3; 12]);
        head.found([3; 12]);
        assert_eq!(head.foreign(), 2, "once is enough");
    }
}
