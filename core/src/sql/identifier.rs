//! Names in SQL text, always quoted.

use std::fmt;

/// Displays a name in double quotes, those inside doubled: `order`, `group` and `a"b` work like any other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identifier<'a>(pub &'a str);

impl fmt::Display for Identifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for (index, part) in self.0.split('"').enumerate() {
            if index > 0 {
                f.write_str("\"\"")?;
            }
            f.write_str(part)?;
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::Identifier;

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(Identifier("order").to_string(), "\"order\"");
        assert_eq!(Identifier("a\"b").to_string(), "\"a\"\"b\"");
    }
}
