//! What could not be said in the entities.

use crate::entities::catalog::Table;

/// Sentences for whoever reads the source next.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) Vec<String>);

impl Notes {
    /// About a table, or what is like one.
    pub(crate) fn add(&mut self, table: &str, note: &str) {
        self.0.push(format!("{}: {note}", shown(table)));
    }

    /// About a column.
    pub(crate) fn of_column(&mut self, table: &Table, column: usize, note: &str) {
        let column = &table.columns[column].name;
        self.add(&format!("{}.{column}", table.name), note);
    }
}

/// A name on one line.
pub(crate) fn shown(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for letter in name.chars() {
        if is_hidden(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Whether a character would not be seen, or would turn around what is: rustc refuses the latter in source.
pub(crate) fn is_hidden(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
