//! A context as text, to be pasted into a bug report.

use std::fmt::{self, Write as _};

use crate::{
    context::{AnyEntry, ColumnEntry, Context, EntityState},
    value::Value,
};

/// The most characters of a text, and bytes of a blob, that are shown.
const SHOWN: usize = 40;

/// What a context tracks, one line an entity, in the order in which they came; it shows no values of rows unless asked.
pub struct DebugView<'a> {
    entries: Vec<AnyEntry<'a>>,
    in_flight: bool,
    values: bool,
}

impl Context<'_> {
    /// What is tracked, as text for a bug report: types, states, the names of changed columns, and whether a save
    /// (one that was dropped, or is in a transaction that is still open) is not answered yet. Neither keys nor other
    /// values of rows are shown; [`DebugView::with_values`] adds them.
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
    /// ctx.add(Item { id: 0, name: "cake".into() });
    /// assert_eq!(
    ///     ctx.debug_view().to_string(),
    ///     "2 tracked, 2 to save\n\
    ///      Item#1 Modified: name\n\
    ///      Item#2 Added, temporary key\n"
    /// );
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn debug_view(&self) -> DebugView<'_> {
        DebugView {
            entries: self.tracker.entries(),
            in_flight: self.in_flight.is_some(),
            values: false,
        }
    }
}

impl DebugView<'_> {
    /// Adds keys and values: of what was changed, the original one too. Long ones are cut.
    #[must_use]
    pub const fn with_values(mut self) -> Self {
        self.values = true;
        self
    }
}

impl fmt::Display for DebugView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changed = |entry: &&AnyEntry<'_>| entry.state() != EntityState::Unchanged;
        let to_save = self.entries.iter().filter(changed).count();
        write!(f, "{} tracked, {to_save} to save", self.entries.len())?;
        if self.in_flight {
            f.write_str(", a save in flight")?;
        }
        f.write_char('\n')?;
        for entry in &self.entries {
            write_entry(f, entry)?;
            if self.values {
                write_values(f, entry)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for DebugView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn write_entry(f: &mut fmt::Formatter<'_>, entry: &AnyEntry<'_>) -> fmt::Result {
    write!(f, "{entry:?}")?;
    if entry.has_temporary_key() {
        f.write_str(", temporary key")?;
    }
    if entry.is_in_flight() {
        f.write_str(", in flight")?;
    }
    let mut separator = ": ";
    for column in entry.modified_columns() {
        write!(f, "{separator}{}", column.name)?;
        separator = ", ";
    }
    f.write_char('\n')
}

fn write_values(f: &mut fmt::Formatter<'_>, entry: &AnyEntry<'_>) -> fmt::Result {
    for column in entry.columns() {
        let ColumnEntry {
            name,
            original,
            current,
            modified,
        } = column;
        write!(f, "    {name}: ")?;
        if modified {
            write_value(f, original.as_ref(), "(not read)")?;
            f.write_str(" -> ")?;
        }
        write_value(f, current.as_ref(), "(cannot be stored)")?;
        f.write_char('\n')?;
    }
    Ok(())
}

fn write_value(f: &mut fmt::Formatter<'_>, value: Option<&Value>, none: &str) -> fmt::Result {
    match value {
        None => f.write_str(none),
        Some(value) if AnyEntry::is_temporary_key(value) => f.write_str("(temporary key)"),
        Some(Value::Null) => f.write_str("NULL"),
        Some(Value::Unread) => f.write_str("(not loaded)"),
        Some(Value::Integer(value)) => write!(f, "{value}"),
        Some(Value::Real(value)) => write!(f, "{value:?}"),
        Some(Value::Text(text)) => match text.char_indices().nth(SHOWN) {
            None => write!(f, "{text:?}"),
            Some((end, _)) => write!(f, "{:?}... ({} bytes)", &text[..end], text.len()),
        },
        Some(Value::Blob(bytes)) => {
            f.write_str("x'")?;
            for byte in bytes.iter().take(SHOWN) {
                write!(f, "{byte:02x}")?;
            }
            f.write_char('\'')?;
            if bytes.len() > SHOWN {
                write!(f, "... ({} bytes)", bytes.len())?;
            }
            Ok(())
        }
    }
}
