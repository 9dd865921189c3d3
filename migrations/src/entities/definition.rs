//! What only the text of a definition tells: CHECKs, computed columns, collations, and what an index is on.

use crate::entities::token::{Kind, Token, closing, quoted_text, text, tokens};

/// What CREATE TABLE says beyond the pragmas.
#[derive(Debug, Default)]
pub(crate) struct TableText {
    pub(crate) columns: Vec<ColumnText>,
    /// CHECKs of the whole row.
    pub(crate) checks: Vec<String>,
    pub(crate) autoincrement: bool,
    /// Whether a constraint says what happens on a conflict, such as REPLACE.
    pub(crate) on_conflict: bool,
}

/// The same of one column.
#[derive(Debug, Default)]
pub(crate) struct ColumnText {
    pub(crate) name: String,
    pub(crate) checks: Vec<String>,
    pub(crate) collate: Option<String>,
    pub(crate) generated: Option<String>,
}

/// What CREATE INDEX says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexText {
    pub(crate) on: String,
    pub(crate) filter: Option<String>,
}

/// Reads CREATE TABLE; `names` are those of the columns.
pub(crate) fn table(sql: &str, names: &[&str]) -> TableText {
    let tokens = tokens(sql);
    let mut table = TableText::default();
    for item in items(&tokens) {
        if is_constraint(item) {
            table.read(item, None, names);
        } else if let Some(name) = item.first().and_then(Token::name) {
            let mut column = ColumnText {
                name,
                ..ColumnText::default()
            };
            table.read(&item[1..], Some(&mut column), names);
            table.columns.push(column);
        }
    }
    table
}

/// Reads CREATE INDEX; `names` are those of the table's columns.
pub(crate) fn index(sql: &str, names: &[&str]) -> Option<IndexText> {
    let tokens = tokens(sql);
    let open = tokens.iter().position(|token| token.is_sign("("))?;
    let close = open + closing(&tokens[open..])?;
    let rest = &tokens[close + 1..];
    let filter = (rest.first())
        .filter(|token| token.is("WHERE"))
        .map(|_| expression(&rest[1..], names));
    Some(IndexText {
        on: expression(&tokens[open + 1..close], names),
        filter,
    })
}

/// The text of a DEFAULT, which takes any name for a text.
pub(crate) fn default(sql: &str) -> String {
    const WORDS: [&str; 6] = [
        "NULL",
        "TRUE",
        "FALSE",
        "CURRENT_TIMESTAMP",
        "CURRENT_DATE",
        "CURRENT_TIME",
    ];
    let tokens = tokens(sql);
    if let [word] = tokens[..]
        && word.kind == Kind::Word
        && !WORDS.iter().any(|known| word.is(known))
    {
        return quoted_text(word.text);
    }
    expression(&tokens, &[])
}

impl TableText {
    /// Reads the constraints of a column, or one of the table.
    fn read(&mut self, item: &[Token<'_>], mut column: Option<&mut ColumnText>, names: &[&str]) {
        let mut at = 0;
        while at < item.len() {
            let token = &item[at];
            let next = item.get(at + 1);
            let end = match next {
                Some(next) if next.is_sign("(") => closing(&item[at + 1..]),
                _ => None,
            };
            let inside = end.map(|end| expression(&item[at + 2..at + 1 + end], names));
            if token.is("CHECK") {
                match &mut column {
                    Some(column) => column.checks.extend(inside),
                    None => self.checks.extend(inside),
                }
            } else if let Some(column) = &mut column {
                if token.is("AS") {
                    column.generated = inside;
                } else if token.is("COLLATE") {
                    column.collate = next.and_then(Token::name);
                }
            }
            self.autoincrement |= token.is("AUTOINCREMENT");
            self.on_conflict |= token.is("CONFLICT") && next.is_some_and(|next| !next.is("ABORT"));
            // What stands in parentheses is of this word; a DEFAULT without them is one token, or a sign and one.
            at += 1 + match end {
                Some(end) => end + 1,
                None if token.is_sign("(") => closing(&item[at..]).unwrap_or_default(),
                None => 0,
            };
        }
    }
}

/// What stands between the commas of CREATE TABLE.
fn items<'a, 'b>(tokens: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let Some(open) = tokens.iter().position(|token| token.is_sign("(")) else {
        return Vec::new();
    };
    let Some(close) = closing(&tokens[open..]) else {
        return Vec::new();
    };
    let inside = &tokens[open + 1..open + close];
    let mut depth = 0_usize;
    let items = inside.split(|token| {
        if token.is_sign("(") {
            depth += 1;
        } else if token.is_sign(")") {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && token.is_sign(",")
    });
    items.filter(|item| !item.is_empty()).collect()
}

fn is_constraint(item: &[Token<'_>]) -> bool {
    let Some(first) = item.first() else {
        return false;
    };
    ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"]
        .iter()
        .any(|word| first.is(word))
}

/// The text of an expression. What is quoted like a name and is none was taken for a text when the table was made; the
/// connections of this library do not do so.
fn expression(tokens: &[Token<'_>], names: &[&str]) -> String {
    let texts: Vec<_> = (tokens.iter())
        .map(|token| {
            let is_name = || names.iter().any(|name| token.names(name));
            if token.text.starts_with('"') && !is_name() {
                token.name().map(|name| quoted_text(&name))
            } else {
                None
            }
        })
        .collect();
    let tokens: Vec<_> = (tokens.iter().zip(&texts))
        .map(|(token, text)| Token {
            text: text.as_deref().unwrap_or(token.text),
            ..*token
        })
        .collect();
    text(&tokens)
}

#[cfg(test)]
mod tests {
    use super::{default, index, table};

    #[test]
    fn constraints_are_found_where_they_stand() {
        let sql = r#"CREATE TABLE "t (" (
            "check" TEXT DEFAULT (')' || 'CHECK (1)') CHECK("check" <> "none") COLLATE [NOCASE] NOT NULL, -- a, b
            [b c] VARCHAR(10, 2) CONSTRAINT positive CHECK ([b c] > 0) CHECK (length([b c]) < 9),
            d INT GENERATED ALWAYS AS (coalesce(e, ',')) STORED,
            e AS (1 + (2)) /* ) */,
            id INTEGER PRIMARY KEY ON CONFLICT REPLACE AUTOINCREMENT,
            CONSTRAINT both CHECK (e < 3
                OR e > 4), UNIQUE ("check", [b c]) CHECK (e <> 5)
        )"#;
        let read = table(sql, &["check", "b c", "d", "e", "id"]);
        let columns = (read.columns.iter()).map(|column| format!("{column:?}\n"));
        expect_test::expect![[r#"
            ColumnText { name: "check", checks: ["\"check\" <> 'none'"], collate: Some("NOCASE"), generated: None }
            ColumnText { name: "b c", checks: ["[b c] > 0", "length([b c]) < 9"], collate: None, generated: None }
            ColumnText { name: "d", checks: [], collate: None, generated: Some("coalesce(e, ',')") }
            ColumnText { name: "e", checks: [], collate: None, generated: Some("1 + (2)") }
            ColumnText { name: "id", checks: [], collate: None, generated: None }
        "#]].assert_eq(&columns.collect::<String>());
        assert_eq!(read.checks, ["e < 3 OR e > 4", "e <> 5"]);
        assert!(read.autoincrement && read.on_conflict);
    }

    #[test]
    fn an_index_says_what_it_is_on() {
        let sql = r#"CREATE UNIQUE INDEX "by (name)" ON t (lower("name"), b DESC) WHERE b <> "x" AND c IN (1, 2)"#;
        let read = index(sql, &["name", "b", "c"]).unwrap();
        assert_eq!(read.on, r#"lower("name"), b DESC"#);
        assert_eq!(read.filter.as_deref(), Some("b <> 'x' AND c IN (1, 2)"));
    }

    #[test]
    fn names_are_texts_in_a_default() {
        let cases = [
            ("0", "0"),
            ("-1", "-1"),
            ("'it''s'", "'it''s'"),
            ("\"x y\"", "'x y'"),
            ("draft", "'draft'"),
            ("current_timestamp", "current_timestamp"),
            ("datetime('now')", "datetime('now')"),
            ("x'00'", "x'00'"),
        ];
        for (sql, expected) in cases {
            assert_eq!(default(sql), expected);
        }
    }
}
