//! Names in SQL text, always quoted, and texts that are part of a statement.

use std::fmt::{self, Write as _};

/// Displays a name in double quotes, those inside doubled: `order`, `group` and `a"b` work like any other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identifier<'a>(pub &'a str);

impl fmt::Display for Identifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quoted(f, self.0, '"')
    }
}

/// Displays a text in single quotes, those inside doubled. For what belongs to a statement's shape; values are its
/// arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quoted(f, self.0, '\'')
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str, quote: char) -> fmt::Result {
    f.write_char(quote)?;
    for (index, part) in text.split(quote).enumerate() {
        if index > 0 {
            f.write_char(quote)?;
            f.write_char(quote)?;
        }
        f.write_str(part)?;
    }
    f.write_char(quote)
}

#[cfg(test)]
mod tests {
    use crate::sql::{Identifier, Quoted};

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(Identifier("order").to_string(), "\"order\"");
        assert_eq!(Identifier("a\"b").to_string(), "\"a\"\"b\"");
        assert_eq!(Quoted("$.\"it's\"").to_string(), "'$.\"it''s\"'");
    }
}
