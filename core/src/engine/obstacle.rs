//! Who is in the way of the log.

use std::time::Instant;

use crate::engine::core::{Core, oldest_reader};

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
