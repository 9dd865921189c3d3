//! Names of Rust made from names of SQL, which may be anything.

use std::collections::HashSet;

use unicode_ident::{is_xid_continue, is_xid_start};

/// Words that are names only behind `r#`.
const KEYWORDS: [&str; 49] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield", "union",
];

/// Words that are no names at all.
const NO_NAMES: [&str; 5] = ["self", "Self", "super", "crate", "_"];

/// Types that the source uses, or that everybody takes for something else.
const TYPES: [&str; 20] = [
    "Option",
    "Some",
    "None",
    "Result",
    "Ok",
    "Err",
    "Box",
    "Vec",
    "String",
    "Value",
    "NaiveDate",
    "NaiveTime",
    "DateTime",
    "Utc",
    "Uuid",
    "Entity",
    "EntityEnum",
    "Debug",
    "Clone",
    "PartialEq",
];

/// Words that are the same for one and for many.
const UNCOUNTED: [&str; 11] = [
    "news",
    "series",
    "species",
    "data",
    "info",
    "information",
    "metadata",
    "history",
    "media",
    "equipment",
    "staff",
];

/// Words that follow no rule.
const IRREGULAR: [(&str, &str); 18] = [
    ("person", "people"),
    ("child", "children"),
    ("man", "men"),
    ("woman", "women"),
    ("movie", "movies"),
    ("cookie", "cookies"),
    ("tie", "ties"),
    ("status", "statuses"),
    ("alias", "aliases"),
    ("bus", "buses"),
    ("bonus", "bonuses"),
    ("virus", "viruses"),
    ("campus", "campuses"),
    ("cache", "caches"),
    ("index", "indexes"),
    ("canvas", "canvases"),
    ("gas", "gases"),
    ("lens", "lenses"),
];

/// The names that are taken already, regardless of case: a constant is a field's name in capitals.
#[derive(Debug, Default)]
pub(crate) struct Taken(HashSet<String>);

impl Taken {
    /// Whether the name was free.
    pub(crate) fn take(&mut self, name: &str) -> bool {
        self.0.insert(name.to_uppercase())
    }

    /// The name of a field, a constant or a relation; with a number if it is taken.
    pub(crate) fn field(&mut self, name: &str) -> String {
        self.numbered(name, "_")
    }

    /// The name of a type; with a number if it is taken.
    pub(crate) fn type_name(&mut self, name: &str) -> String {
        self.numbered(name, "")
    }

    /// The name of a variant, which may differ from another in case alone.
    pub(crate) fn variant(&mut self, name: &str) -> String {
        let mut number = 1;
        let mut free = name.to_owned();
        while !self.0.insert(free.clone()) {
            number += 1;
            free = format!("{name}{number}");
        }
        free
    }

    fn numbered(&mut self, name: &str, separator: &str) -> String {
        let mut number = 1;
        let mut free = name.to_owned();
        while !self.take(&free) {
            number += 1;
            free = format!("{name}{separator}{number}");
        }
        free
    }
}

/// The name of a field, without `r#`.
pub(crate) fn field(column: &str) -> String {
    let name = snake_case(&words(column));
    named(&name, "column", "col_")
}

/// The name of a struct: that of a table, for one row of it.
pub(crate) fn entity(table: &str) -> String {
    let name = singular(&snake_case(&words(table)));
    let name = named(&pascal_case(&name), "Table", "T");
    if TYPES.contains(&name.as_str()) {
        return format!("{name}Row");
    }
    name
}

/// The name of a variant.
pub(crate) fn variant(text: &str) -> String {
    if text.is_empty() {
        return "Empty".to_owned();
    }
    // Capitals alone are no words of one letter each.
    let words = words(text);
    let snake = if text.chars().any(char::is_lowercase) {
        snake_case(&words)
    } else {
        words.to_lowercase()
    };
    named(&pascal_case(&snake), "Other", "V")
}

/// The name as it is written in Rust.
pub(crate) fn written(name: &str) -> String {
    if KEYWORDS.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

/// A name that can be one: `otherwise` if nothing is left of it, and `before` if it begins with a digit.
fn named(name: &str, otherwise: &str, before: &str) -> String {
    match name.chars().next() {
        None => otherwise.to_owned(),
        Some(_) if NO_NAMES.contains(&name) => format!("{name}_"),
        Some(first) if is_xid_start(first) => name.to_owned(),
        Some(_) => format!("{before}{name}"),
    }
}

/// The words of a name, with one `_` between them.
fn words(name: &str) -> String {
    let words = name.split(|letter| letter == '_' || !is_xid_continue(letter));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join("_")
}

/// As the derive has it: `OrderLine` is `order_line`, `HTTPServer` is `http_server`.
pub(crate) fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (index, &letter) in letters.iter().enumerate() {
        if letter.is_uppercase() && index > 0 {
            let before = letters[index - 1];
            let starts_word = (letters.get(index + 1)).is_some_and(|after| after.is_lowercase());
            if before != '_' && (!before.is_uppercase() || starts_word) {
                snake.push('_');
            }
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `order_line` is `OrderLine`.
pub(crate) fn pascal_case(snake: &str) -> String {
    let capitalized = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(char::to_uppercase);
        first
            .into_iter()
            .flatten()
            .chain(letters)
            .collect::<String>()
    };
    snake.split('_').map(capitalized).collect()
}

/// The same name for one of them: the last word changes.
fn singular(name: &str) -> String {
    let (before, word) = last_word(name);
    format!("{before}{}", singular_word(word))
}

/// The same name for many of them.
pub(crate) fn plural(name: &str) -> String {
    let (before, word) = last_word(name);
    format!("{before}{}", plural_word(word))
}

fn last_word(name: &str) -> (&str, &str) {
    name.split_at(name.rfind('_').map_or(0, |at| at + 1))
}

fn singular_word(word: &str) -> String {
    if UNCOUNTED.contains(&word) {
        return word.to_owned();
    }
    if let Some((one, _)) = IRREGULAR
        .iter()
        .find(|(one, many)| word == *many || word == *one)
    {
        return (*one).to_owned();
    }
    let stem = |end| word.strip_suffix(end).filter(|stem: &&str| stem.len() > 1);
    if let Some(stem) = stem("ies") {
        return format!("{stem}y");
    }
    for end in ["sses", "shes", "ches", "xes", "zzes"] {
        if stem(end).is_some() {
            return word[..word.len() - 2].to_owned();
        }
    }
    let is_plural = !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) && !is_short(word);
    match stem("s") {
        Some(stem) if is_plural => stem.to_owned(),
        _ => word.to_owned(),
    }
}

/// Without a vowel it is an abbreviation: its s is that of system or service.
fn is_short(word: &str) -> bool {
    !word.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

fn plural_word(word: &str) -> String {
    if UNCOUNTED.contains(&word) || (is_short(word) && word.ends_with('s')) {
        return word.to_owned();
    }
    if let Some((_, many)) = IRREGULAR
        .iter()
        .find(|(one, many)| word == *one || word == *many)
    {
        return (*many).to_owned();
    }
    let ends = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end));
    if ends(&["ay", "ey", "oy", "uy"]) {
        return format!("{word}s");
    }
    if let Some(stem) = word.strip_suffix('y') {
        return format!("{stem}ies");
    }
    if let Some(stem) = word.strip_suffix("is") {
        return format!("{stem}es");
    }
    if ends(&["s", "x", "z", "ch", "sh"]) {
        return format!("{word}es");
    }
    format!("{word}s")
}

#[cfg(test)]
mod tests {
    use super::{Taken, entity, field, plural, written};

    #[test]
    fn columns_become_fields() {
        let cases = [
            ("id", "id"),
            ("AlbumId", "album_id"),
            ("CustomerID", "customer_id"),
            ("UPPER", "upper"),
            ("two words", "two_words"),
            ("a\"b", "a_b"),
            ("__x__", "x"),
            ("2nd", "col_2nd"),
            ("größe", "größe"),
            ("名前", "名前"),
            ("%", "column"),
            ("", "column"),
            ("self", "self_"),
            ("crate", "crate_"),
            ("type", "type"),
        ];
        for (column, expected) in cases {
            assert_eq!(field(column), expected, "{column}");
        }
        assert_eq!(written("type"), "r#type");
    }

    #[test]
    fn tables_become_structs_of_one_row() {
        let cases = [
            ("orders", "Order"),
            ("order_lines", "OrderLine"),
            ("OrderLines", "OrderLine"),
            ("categories", "Category"),
            ("addresses", "Address"),
            ("boxes", "BoxRow"),
            ("matches", "Match"),
            ("people", "Person"),
            ("status", "Status"),
            ("statuses", "Status"),
            ("news", "News"),
            ("movies", "Movie"),
            ("houses", "House"),
            ("bus", "Bus"),
            ("analysis", "Analysis"),
            ("vertical_crs", "VerticalCrs"),
            ("CUSTOMERS", "Customer"),
            ("s", "S"),
            ("2013 figures", "T2013Figure"),
            ("options", "OptionRow"),
            ("self", "Self_"),
            ("---", "Table"),
        ];
        for (table, expected) in cases {
            assert_eq!(entity(table), expected, "{table}");
        }
    }

    #[test]
    fn relations_are_named_for_many() {
        let cases = [
            ("order_line", "order_lines"),
            ("category", "categories"),
            ("day", "days"),
            ("address", "addresses"),
            ("match", "matches"),
            ("person", "people"),
            ("news", "news"),
            ("movies", "movies"),
            ("axis", "axes"),
            ("vertical_crs", "vertical_crs"),
            ("url", "urls"),
        ];
        for (one, many) in cases {
            assert_eq!(plural(one), many);
        }
    }

    #[test]
    fn names_that_are_taken_get_a_number() {
        let mut taken = Taken::default();
        assert_eq!(taken.field("a"), "a");
        assert_eq!(taken.field("A"), "A_2");
        assert_eq!(taken.field("a"), "a_3");
        assert_eq!(taken.type_name("B"), "B");
        assert_eq!(taken.type_name("B"), "B2");
    }
}
