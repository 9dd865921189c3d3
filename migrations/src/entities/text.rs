//! Pieces of Rust source, laid out as rustfmt does.

use crate::entities::notes::is_hidden;

/// The width of a line.
const WIDTH: usize = 100;

/// The width of a list in parentheses that is not broken into lines (rustfmt's `attr_fn_like_width`).
const LIST_WIDTH: usize = 70;

/// A text as Rust writes it.
pub(crate) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => literal.extend(['\\', letter]),
            '\n' => literal.push_str("\\n"),
            '\t' => literal.push_str("\\t"),
            letter if is_hidden(letter) => literal.extend(letter.escape_unicode()),
            letter => literal.push(letter),
        }
    }
    literal.push('"');
    literal
}

/// `#[entity(...)]`, in one line if there is room.
pub(crate) fn attributes(source: &mut String, indent: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    source.push_str(indent);
    source.push_str("#[");
    call(source, indent, "entity", items, 1);
    source.push_str("]\n");
}

/// `name(items)`; `after` is how many characters follow it in its line.
fn call(source: &mut String, indent: &str, name: &str, items: &[String], after: usize) {
    let line = items.join(", ");
    let before = source
        .lines()
        .next_back()
        .map_or(0, |line| line.chars().count());
    let width = line.chars().count();
    source.push_str(name);
    source.push('(');
    if width <= LIST_WIDTH && before + name.len() + width + 2 + after <= WIDTH {
        source.push_str(&line);
    } else if let [item] = items
        && let Some((name, items)) = inner(item)
    {
        call(source, indent, name, &items, after + 1);
    } else {
        let deeper = format!("{indent}    ");
        for (index, item) in items.iter().enumerate() {
            source.push_str(if index == 0 { "\n" } else { ",\n" });
            source.push_str(&deeper);
            match inner(item) {
                Some((name, items)) => call(source, &deeper, name, &items, 1),
                None => source.push_str(item),
            }
        }
        source.push('\n');
        source.push_str(indent);
    }
    source.push(')');
}

/// The name and the items of `name(items)`.
fn inner(item: &str) -> Option<(&str, Vec<String>)> {
    let (name, inside) = item.strip_suffix(')')?.split_once('(')?;
    if name.contains([' ', '"']) {
        return None;
    }
    let (mut items, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let (mut is_text, mut is_escaped) = (false, false);
    for (at, letter) in inside.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_text,
            '"' => is_text = !is_text,
            '(' if !is_text => depth += 1,
            ')' if !is_text => depth = depth.saturating_sub(1),
            ',' if !is_text && depth == 0 => {
                items.push(inside[start..at].trim().to_owned());
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(inside[start..].trim().to_owned());
    Some((name, items))
}

/// Lines of a comment, broken between words.
pub(crate) fn comment(source: &mut String, mark: &str, text: &str) {
    let mut line = mark.to_owned();
    for word in text.split(' ') {
        if line.len() > mark.len() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            source.push_str(&line);
            source.push('\n');
            line = mark.to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    source.push_str(&line);
    source.push('\n');
}
