//! Values in a statement's text: only in table definitions, where SQLite takes no placeholders.

use std::fmt;

use crate::{sql::Quoted, value::Value};

/// Displays a value as SQL reads it back exactly.
pub(crate) struct Literal<'a>(pub(crate) &'a Value);

impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("NULL"),
            Value::Unread => Err(fmt::Error),
            // The lowest integer would be read as a real number with a sign before it.
            Value::Integer(i64::MIN) => write!(f, "(-{} - 1)", i64::MAX),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Real(value) if value.is_infinite() => {
                f.write_str(if *value > 0.0 { "9e999" } else { "-9e999" })
            }
            Value::Real(value) => write!(f, "{value:?}"),
            Value::Text(text) => Quoted(text).fmt(f),
            Value::Blob(bytes) => {
                f.write_str("x'")?;
                for byte in bytes {
                    write!(f, "{byte:02x}")?;
                }
                f.write_str("'")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{sql::Literal, value::Value};

    #[test]
    fn values_are_written_as_sql_reads_them() {
        let cases = [
            (Value::Null, "NULL"),
            (Value::Integer(-7), "-7"),
            (Value::Integer(i64::MIN), "(-9223372036854775807 - 1)"),
            (Value::Real(0.1), "0.1"),
            (Value::Real(1e300), "1e300"),
            (Value::Real(f64::NEG_INFINITY), "-9e999"),
            (Value::Text("it's".to_owned()), "'it''s'"),
            (Value::Blob(vec![0, 255]), "x'00ff'"),
        ];
        for (value, sql) in cases {
            assert_eq!(Literal(&value).to_string(), sql);
        }
    }
}
