//! Which statements a connection ran that may have written.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Listens to the statements of the connection for exclusive transactions, while sessions want to know what they change.
#[derive(Debug, Default)]
pub(in crate::engine) struct Statements {
    is_on: AtomicBool,
    texts: Mutex<BTreeSet<Arc<str>>>,
}

impl Statements {
    /// Notes statements from now on, or none.
    pub(in crate::engine) fn note(&self, is_on: bool) {
        self.lock().clear();
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// The texts of those that ran since, each once; nothing if they were not noted.
    pub(in crate::engine) fn take(&self) -> Option<BTreeSet<Arc<str>>> {
        let was_on = self.is_on.swap(false, Ordering::Relaxed);
        let texts = std::mem::take(&mut *self.lock());
        was_on.then_some(texts)
    }

    /// Whether statements are noted.
    pub(in crate::engine) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// A statement that may write begins to run.
    pub(in crate::engine) fn runs(&self, text: &str) {
        let mut texts = self.lock();
        if !texts.contains(text) {
            texts.insert(text.into());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Arc<str>>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::hooks::Statements;

    #[test]
    fn statements_are_noted_once_and_only_if_asked_for() {
        let statements = Statements::default();
        assert_eq!(statements.take(), None);
        statements.note(true);
        for text in ["b", "a", "b"] {
            statements.runs(text);
        }
        let noted: Vec<_> = statements.take().unwrap().into_iter().collect();
        assert_eq!(noted, ["a".into(), "b".into()]);
        assert!(!statements.is_on());
    }
}
