//! Handles to tracked entities.

use std::{
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
};

use crate::entity::Entity;

/// A handle to an entity that a context tracks: a small `Copy` value, to index the context with.
///
/// It stays valid when the entity is saved and gets its real key. It is stale once the context has forgotten the
/// entity (deleted and saved, removed before it was saved, detached, cleared), and it is of no use to another context.
pub struct Tracked<E> {
    pub(crate) context: u64,
    pub(crate) place: Place,
    of: PhantomData<fn() -> E>,
}

/// Where a tracker keeps an entity; the serial number is the entity's own, so a place never names another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) set: u32,
    pub(crate) index: u32,
    pub(crate) serial: u64,
}

impl Place {
    pub(crate) const fn set(self) -> usize {
        self.set as usize
    }

    pub(crate) const fn index(self) -> usize {
        self.index as usize
    }
}

/// An index as a handle keeps it.
pub(crate) fn position(index: usize) -> u32 {
    u32::try_from(index).expect("a context tracks at most 4,294,967,296 entities of a type")
}

impl<E> Tracked<E> {
    pub(crate) const fn new(context: u64, place: Place) -> Self {
        Self {
            context,
            place,
            of: PhantomData,
        }
    }
}

impl<E> Clone for Tracked<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Tracked<E> {}

impl<E> PartialEq for Tracked<E> {
    fn eq(&self, other: &Self) -> bool {
        self.context == other.context && self.place == other.place
    }
}

impl<E> Eq for Tracked<E> {}

impl<E> Hash for Tracked<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.context.hash(state);
        self.place.hash(state);
    }
}

impl<E: Entity> fmt::Debug for Tracked<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", E::TABLE.entity, self.place.serial)
    }
}
