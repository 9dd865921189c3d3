//! What the slot is held for, and why somebody did not get it.

use std::{fmt, panic::Location, time::Duration};

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
    pub(super) const SAVE: Self = Self::new("a save");
    /// Nobody writes, so that the log grows no more.
    pub(in crate::engine) const LOG: Self =
        Self::new("a log near its limit, for a reader in the way");

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

    /// Whether the application asked for it, not the library for work of its own.
    pub(in crate::engine) const fn is_of_application(&self) -> bool {
        self.at.is_some()
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
