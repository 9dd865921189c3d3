//! What is made once for each table, and then only looked up.

use std::{
    collections::BTreeMap,
    ptr,
    sync::{PoisonError, RwLock},
};

use crate::entity::TableDef;

/// Something of every table that was asked for. Tables are as many as a program declares, so the entries stay for good.
#[derive(Debug)]
pub(crate) struct PerTable<T: 'static>(RwLock<BTreeMap<usize, &'static T>>);

impl<T> PerTable<T> {
    pub(crate) const fn new() -> Self {
        Self(RwLock::new(BTreeMap::new()))
    }

    /// That of this table, made if it was not asked for before.
    pub(crate) fn of(
        &self,
        table: &'static TableDef,
        make: impl FnOnce(&'static TableDef) -> T,
    ) -> &'static T {
        // Definitions are never freed, so the address says which it is. The compiler may keep one of them twice.
        let address = ptr::from_ref(table).addr();
        let made = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.get(&address) {
            return known;
        }
        drop(made);
        (self.0.write().unwrap_or_else(PoisonError::into_inner))
            .entry(address)
            .or_insert_with(|| Box::leak(Box::new(make(table))))
    }
}
