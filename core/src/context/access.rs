//! Entities in and out of a context: all that needs no database.

use std::ops::{Index, IndexMut};

use crate::{
    context::{AnyEntry, Context, Entry, Tracked},
    entity::Entity,
    error::Result,
};

impl Context<'_> {
    /// Tracks a new entity, to be inserted by the next save.
    ///
    /// An entity whose key is unset gets one at once: a version 7 UUID, or a temporary integer that the save
    /// replaces by the real one, in the entity and wherever a declared reference of this context holds it. A key
    /// that is set stays. If another entity with that key is tracked here, the save says so, with kind
    /// `AlreadyTracked`.
    pub fn add<E: Entity>(&mut self, entity: E) -> Tracked<E> {
        self.settle_if_answered();
        let handle = self.tracker.add(entity);
        self.tell_tracked(handle);
        handle
    }

    /// Tracks an entity that is a row already, as it is: state `Unchanged`. With a version that was read earlier
    /// (by another request, say), the save checks that the row still has it.
    ///
    /// # Errors
    ///
    /// Kind `AlreadyTracked` if an entity with this key is tracked, or was removed and not yet saved; kind `Value`
    /// if the key is unset, or the key or a reference is a temporary key.
    pub fn attach<E: Entity>(&mut self, entity: E) -> Result<Tracked<E>> {
        self.settle_if_answered();
        let handle = self.tracker.attach(entity)?;
        self.tell_tracked(handle);
        Ok(handle)
    }

    /// Removes an entity: the next save deletes its row. One that was only added is forgotten. Whether the handle
    /// was tracked.
    pub fn remove<E: Entity>(&mut self, handle: Tracked<E>) -> bool {
        self.settle_if_answered();
        self.tracker.remove(handle)
    }

    /// Stops to track an entity, and gives it back; `None` if the handle is stale. Its changes are not saved.
    pub fn detach<E: Entity>(&mut self, handle: Tracked<E>) -> Option<E> {
        self.settle_if_answered();
        self.tracker.detach(handle)
    }

    /// Stops to track all entities; changes that were not saved are gone. A [concurrent](Context::concurrent) context takes
    /// another snapshot with its next call.
    pub fn clear(&mut self) {
        self.settle_if_answered();
        self.tracker.clear();
        self.forget_session();
    }

    /// The entity; `None` if the handle is stale or of another context.
    #[must_use]
    pub fn get<E: Entity>(&self, handle: Tracked<E>) -> Option<&E> {
        self.tracker.get(handle)
    }

    /// The entity, to be changed; `None` if the handle is stale or of another context.
    pub fn get_mut<E: Entity>(&mut self, handle: Tracked<E>) -> Option<&mut E> {
        self.settle_if_answered();
        self.tracker.get_mut(handle)
    }

    /// Several entities at once, to be changed; `None` if a handle is stale, of another context, or there twice.
    pub fn get_disjoint_mut<E: Entity, const N: usize>(
        &mut self,
        handles: [Tracked<E>; N],
    ) -> Option<[&mut E; N]> {
        self.settle_if_answered();
        self.tracker.get_disjoint_mut(handles)
    }

    /// What the context knows of an entity: its state, its values as they were read, what differs.
    #[must_use]
    pub fn entry<E: Entity>(&self, handle: Tracked<E>) -> Entry<'_, E> {
        Entry::new(self.tracker.record(handle))
    }

    /// What the context knows of all its entities, whatever their type, in the order in which they came to be
    /// tracked; those included that were removed and not yet saved.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// let mut ctx = db.context();
    /// let tea = ctx.attach(Item { id: 7, name: "tea".into() })?;
    /// ctx[tea].name = "coffee".into();
    /// for entry in ctx.entries() {
    ///     for column in entry.modified_columns() {
    ///         println!("{entry:?}: {} was {:?}", column.name, column.original);
    ///     }
    ///     assert_eq!(entry.handle::<Item>(), Some(tea));
    /// }
    /// # Ok(()) }
    /// ```
    pub fn entries(&self) -> impl Iterator<Item = AnyEntry<'_>> {
        self.tracker.entries().into_iter()
    }

    /// What the context knows of its entities of a type; unlike [`iter`](Self::iter) it has those too that were
    /// removed and not yet saved.
    pub fn entries_of<E: Entity>(&self) -> impl Iterator<Item = (Tracked<E>, Entry<'_, E>)> {
        let records = self.tracker.records();
        records.map(|(handle, record)| (handle, Entry::new(Some(record))))
    }

    /// Whether the next save has something to write. Only entities that were touched are looked at.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.tracker.has_changes()
    }

    /// The entities of a type, with their handles; those that were removed are left out.
    pub fn iter<E: Entity>(&self) -> impl Iterator<Item = (Tracked<E>, &E)> {
        self.tracker.iter()
    }

    /// How many entities are tracked, of all types; those included that were removed and not yet saved.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    /// Whether no entity is tracked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<E: Entity> Index<Tracked<E>> for Context<'_> {
    type Output = E;

    /// # Panics
    ///
    /// If the handle is stale or of another context.
    #[track_caller]
    fn index(&self, handle: Tracked<E>) -> &E {
        match self.get(handle) {
            Some(entity) => entity,
            None => not_tracked(handle),
        }
    }
}

impl<E: Entity> IndexMut<Tracked<E>> for Context<'_> {
    /// # Panics
    ///
    /// If the handle is stale or of another context.
    #[track_caller]
    fn index_mut(&mut self, handle: Tracked<E>) -> &mut E {
        match self.get_mut(handle) {
            Some(entity) => entity,
            None => not_tracked(handle),
        }
    }
}

#[cold]
#[track_caller]
fn not_tracked<E: Entity>(handle: Tracked<E>) -> ! {
    panic!(
        "{handle:?} is not tracked by this context: the {} was deleted and saved, removed before it was saved, \
         detached or cleared, or the handle belongs to another context; use `get` where that may be",
        E::TABLE.entity
    )
}
