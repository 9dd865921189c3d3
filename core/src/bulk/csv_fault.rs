//! What is wrong with a record of CSV, where the crate `csv` does not say it: the column of a value that a type's own
//! `Deserialize` refuses, and a header that has not the columns of the row.

use csv::StringRecord;
use serde::de::DeserializeOwned;

/// How many names of the header are told, and how long each may be.
const TOLD: usize = 20;
const LONGEST: usize = 40;

/// What serde says of fields, not of a value.
const OF_FIELDS: [&str; 4] = [
    "missing field",
    "unknown field",
    "duplicate field",
    "invalid length",
];

/// The first field that by itself is refused for the same reason. Without a header fields are known by their order: the
/// first up to which they are refused for it.
pub(in crate::bulk) fn field<Row: DeserializeOwned>(
    record: &StringRecord,
    header: Option<&StringRecord>,
    message: &str,
) -> Option<usize> {
    if OF_FIELDS.iter().any(|start| message.starts_with(start)) {
        return None;
    }
    (0..record.len()).find(|field| {
        let first = header.map_or(0, |_| *field);
        let part = |of: &StringRecord| of.iter().take(field + 1).skip(first).collect();
        let (record, header): (StringRecord, Option<StringRecord>) =
            (part(record), header.map(part));
        let refused = record.deserialize::<Row>(header.as_ref()).err();
        refused.is_some_and(|error| match error.kind() {
            csv::ErrorKind::Deserialize { err, .. } => {
                err.field().is_none() && err.kind().to_string() == message
            }
            _ => false,
        })
    })
}

/// What to say of the header, if the message is that a column is missing which it has not.
pub(in crate::bulk) fn missing(message: &str, header: &StringRecord) -> Option<String> {
    let name = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    if header.iter().any(|column| column == name) {
        return None;
    }
    let advice = if header.len() == 1 {
        "; is its delimiter another?"
    } else if header.iter().any(|column| column.trim() == name) {
        "; `Csv::trim` cuts blanks off"
    } else {
        ""
    };
    let told: Vec<_> = header.iter().take(TOLD).map(quoted).collect();
    let more = header.len() - told.len();
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("the header has {}{more}{advice}", told.join(", ")))
}

fn quoted(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}...`", &name[..end]),
        None => format!("`{name}`"),
    }
}
