//! Temporary keys: what a new entity is called until the writer has given it its key.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::{
    entity::TableDef,
    value::{TEMPORARY_KEYS, Value},
};

static NEXT: AtomicI64 = AtomicI64::new(TEMPORARY_KEYS.start);

/// A temporary key that no other entity of this process has.
pub(crate) fn next() -> i64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether a value is in the range of temporary keys: as a key or a reference it can be nothing else.
pub(crate) fn is_temporary(value: &Value) -> bool {
    matches!(value, Value::Integer(key) if TEMPORARY_KEYS.contains(key))
}

/// Whether a number is a temporary key that was given. Others of that range are numbers like any.
pub(crate) fn was_given(number: i64) -> bool {
    (TEMPORARY_KEYS.start..NEXT.load(Ordering::Relaxed)).contains(&number)
}

/// A temporary key, and the table for which the writer is asked to replace it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TemporaryKey {
    pub(crate) key: i64,
    pub(crate) table: &'static TableDef,
}

/// The temporary keys of one save, in order; each has the position under which the writer is asked for it.
#[derive(Debug, Default)]
pub(crate) struct TemporaryKeys(Vec<TemporaryKey>);

impl TemporaryKeys {
    /// The keys in order, or one that two entities hold.
    pub(crate) fn new(mut keys: Vec<TemporaryKey>) -> Result<Self, TemporaryKey> {
        // Mostly sorted as they come: an entity that is added later has a larger key.
        keys.sort_by_key(|temporary| temporary.key);
        match keys.windows(2).find(|pair| pair[0].key == pair[1].key) {
            Some(pair) => Err(pair[1]),
            None => Ok(Self(keys)),
        }
    }

    /// The position of the entity that holds this key.
    pub(crate) fn find(&self, key: i64) -> Option<usize> {
        let found = self.0.binary_search_by_key(&key, |temporary| temporary.key);
        found.ok()
    }

    /// The position of an entity of this table that holds this key.
    pub(crate) fn position(&self, table: &TableDef, key: i64) -> Option<usize> {
        self.find(key)
            .filter(|at| self.0[*at].table.name == table.name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = TemporaryKey> {
        self.0.iter().copied()
    }
}

/// Temporary keys and the real ones that were given for them, in order.
#[derive(Debug, Default)]
pub(crate) struct GivenKeys(Vec<(TemporaryKey, i64)>);

impl GivenKeys {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn remember(&mut self, keys: &TemporaryKeys, given: &[i64]) {
        self.0.extend(keys.iter().zip(given.iter().copied()));
        // Mostly sorted as they come.
        self.0.sort_by_key(|(temporary, _)| temporary.key);
    }

    /// The real key for a value in a column of a table, if that is one of the temporary keys.
    pub(crate) fn replacement(
        &self,
        table: &'static TableDef,
        column: usize,
        value: &Value,
    ) -> Option<Value> {
        let Value::Integer(key) = value else {
            return None;
        };
        let at = (self
            .0
            .binary_search_by_key(key, |(temporary, _)| temporary.key))
        .ok()?;
        let (temporary, given) = self.0[at];
        (table.key_source(column)?.name == temporary.table.name).then_some(Value::Integer(given))
    }
}
