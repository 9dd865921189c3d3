//! Rows of NDJSON: one JSON value a line.

use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::bulk::{bad_line::Fault, shape::is_struct};

/// Makes a row of a line.
pub(in crate::bulk) fn row<Row: DeserializeOwned>(
    line: &[u8],
    is_first: bool,
) -> Result<Row, Fault> {
    let text = str::from_utf8(line).map_err(|_| Fault::new("is not UTF-8"))?;
    if text.trim_start().starts_with('[') && is_struct::<Row>() {
        return Err(array(is_first));
    }
    serde_json::from_str(text).map_err(|error| fault(text, &error))
}

/// What begins as an array, which serde would read into a struct by the order of its fields.
fn array(is_first: bool) -> Fault {
    if is_first {
        Fault::new(
            "the file is a JSON array: write each of its elements in a line of its own (`jq -c '.[]'`)",
        )
        .of_all_lines()
    } else {
        Fault::new("is an array, not an object")
    }
}

fn fault(line: &str, error: &serde_json::Error) -> Fault {
    let message = error.to_string();
    // Every line is a document of one line, of which serde counts from 1.
    let place = format!(" at line 1 column {}", error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);
    if error.classify() != Category::Data {
        let reason = format!("is not JSON at character {}: {message}", error.column());
        return Fault::new(reason);
    }
    // These name the field themselves, and are found at the end of the object.
    let is_of_object = ["missing field", "unknown field", "duplicate field"]
        .iter()
        .any(|start| message.starts_with(start));
    let before = line.as_bytes().get(..error.column()).unwrap_or_default();
    Fault {
        column: key_before(before).filter(|_| !is_of_object),
        ..Fault::new(Fault::without_values(message))
    }
}

/// The last key of the outermost object in a beginning of a line.
fn key_before(line: &[u8]) -> Option<String> {
    let mut depth = 0;
    // Where the last string of the object began, and where it ended.
    let (mut string, mut last) = (None, None);
    let mut key = None;
    let mut is_escaped = false;
    for (at, byte) in line.iter().enumerate() {
        match (string, byte) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), b'\\') => is_escaped = true,
            (Some(start), b'"') => {
                string = None;
                last = (depth == 1).then_some(start..at);
            }
            (Some(_), _) => {}
            (None, b'"') => string = Some(at + 1),
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth -= 1,
            (None, b':') if depth == 1 => key = last.take(),
            (None, _) => {}
        }
    }
    let key = str::from_utf8(&line[key?]).ok()?;
    Some(key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::key_before;

    #[test]
    fn the_key_before_a_place_is_one_of_the_outermost_object() {
        let keys = [
            (r#"{"a": 1, "b": "x""#, Some("b")),
            (r#"{"a": {"b": [1, 2"#, Some("a")),
            (r#"{"a": {"b": 1}, "c": "\"d\": ""#, Some("c")),
            (r#"[1, "a""#, None),
            ("", None),
        ];
        for (line, key) in keys {
            assert_eq!(key_before(line.as_bytes()).as_deref(), key, "{line}");
        }
    }
}
