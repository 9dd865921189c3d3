//! Who is in the way of the log.

use std::time::Instant;

use crate::engine::{
    core::Core,
    slot::{HeldBy, Label},
};

/// A reader that is open, and since when.
pub(in crate::engine) type OpenReader = (Label, Instant);

/// The reader of ours that is open for longest.
pub(in crate::engine) fn oldest_reader(core: &Core) -> Option<OpenReader> {
    let writer = core
        .slot
        .held_by()
        .filter(|held| held.label.is_of_application())
        .and_then(|HeldBy { label, age }| Some((label, Instant::now().checked_sub(age)?)));
    [core.pool.oldest(), core.sessions.pool.oldest(), writer]
        .into_iter()
        .flatten()
        .min_by_key(|(_, since)| *since)
}

/// The reader for which writers wait, in words; nothing where none is known.
pub(in crate::engine) fn waited_for(core: &Core) -> Option<String> {
    let now = Instant::now();
    let oldest = oldest_reader(core);
    let since = oldest.map(|(_, since)| since);
    if core.passes.read().is_foreign(since, now) {
        return Some("one of another process, or of another connection".to_owned());
    }
    let (label, since) = oldest?;
    let age = now.saturating_duration_since(since);
    Some(format!("{label}, open for {age:.1?}"))
}
