//! What may be said of a text of SQL: what it does, with which table, and the text without its literals.

/// What a statement does, by its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Select,
    Insert,
    Update,
    Delete,
    /// Something else.
    Other,
    /// No statement: a save.
    Save,
}

impl Operation {
    pub(crate) const ALL: [Self; 6] = [
        Self::Select,
        Self::Insert,
        Self::Update,
        Self::Delete,
        Self::Other,
        Self::Save,
    ];

    /// Of a text; what begins with WITH is told by what it reads, for nearly all of them do.
    pub(crate) fn of(text: &str) -> Self {
        let word = text.trim_start().as_bytes();
        let is =
            |name: &[u8]| word.len() >= name.len() && word[..name.len()].eq_ignore_ascii_case(name);
        match word.first().map(u8::to_ascii_uppercase) {
            Some(b'S') if is(b"SELECT") => Self::Select,
            Some(b'W') if is(b"WITH") => Self::Select,
            Some(b'I') if is(b"INSERT") => Self::Insert,
            Some(b'U') if is(b"UPDATE") => Self::Update,
            Some(b'D') if is(b"DELETE") => Self::Delete,
            Some(b'R') if is(b"REPLACE") => Self::Insert,
            _ => Self::Other,
        }
    }

    /// As `db.operation.name` has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Other => "OTHER",
            Self::Save => "SAVE",
        }
    }
}

/// What a statement does and with what: `SELECT orders`.
pub(crate) fn summary(text: &str) -> String {
    let operation = Operation::of(text).name();
    match table(text) {
        Some(table) => format!("{operation} {table}"),
        None => operation.to_owned(),
    }
}

/// The first table that a statement names, behind FROM, INTO or UPDATE.
pub(crate) fn table(text: &str) -> Option<&str> {
    let mut pieces = Pieces(text).filter(|piece| !matches!(piece, Piece::Gap(_)));
    let mut is_next = false;
    loop {
        match pieces.next()? {
            Piece::Word(word) if !is_next => {
                is_next = ["from", "into", "update"]
                    .iter()
                    .any(|name| word.eq_ignore_ascii_case(name));
            }
            // UPDATE OR IGNORE t
            Piece::Word(word) if word.eq_ignore_ascii_case("or") => {
                pieces.next()?;
            }
            Piece::Word(name) if is_next => return Some(name),
            Piece::Quoted(name) if is_next => return Some(&name[1..name.len() - 1]),
            // FROM (SELECT ...
            _ => is_next = false,
        }
    }
}

/// The text with `?` in the place of each literal, whoever wrote it. What is not closed is left out to the end.
pub(crate) fn without_literals(text: &str) -> String {
    Pieces(text)
        .map(|piece| match piece {
            Piece::Word(piece) | Piece::Quoted(piece) | Piece::Sign(piece) | Piece::Gap(piece) => {
                piece
            }
            Piece::Literal => "?",
        })
        .collect()
}

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'t> {
    /// A keyword, a name, or a placeholder.
    Word(&'t str),
    /// A name in quotes.
    Quoted(&'t str),
    /// A number, a text, a blob.
    Literal,
    Sign(&'t str),
    Gap(&'t str),
}

/// The pieces of a text, one after the other. Comments are gaps of a blank: anything may be written in them.
struct Pieces<'t>(&'t str);

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let text = self.0;
        let first = text.chars().next()?;
        let rest = &text[first.len_utf8()..];
        let (end, piece): (usize, fn(&'t str) -> Piece<'t>) = match first {
            '\'' => (closed(text, '\''), |_| Piece::Literal),
            'x' | 'X' if rest.starts_with('\'') => (1 + closed(rest, '\''), |_| Piece::Literal),
            '"' | '`' => (closed(text, first), quoted),
            '[' => (text.find(']').map_or(text.len(), |end| end + 1), quoted),
            '-' if rest.starts_with('-') => {
                (text.find('\n').unwrap_or(text.len()), |_| Piece::Gap(" "))
            }
            '/' if rest.starts_with('*') => {
                let end = text[2..].find("*/").map_or(text.len(), |end| end + 4);
                (end, |_| Piece::Gap(" "))
            }
            '?' | ':' | '@' | '$' | '#' => (1 + word(rest), Piece::Word),
            _ if first.is_ascii_digit() => (number(text), |_| Piece::Literal),
            '.' if rest.starts_with(|next: char| next.is_ascii_digit()) => {
                (1 + number(rest), |_| Piece::Literal)
            }
            _ if is_of_word(first) => (word(text), Piece::Word),
            _ if first.is_whitespace() => {
                let end = text
                    .find(|ch: char| !ch.is_whitespace())
                    .unwrap_or(text.len());
                (end, Piece::Gap)
            }
            _ => (first.len_utf8(), Piece::Sign),
        };
        let (taken, left) = text.split_at(end);
        self.0 = left;
        Some(piece(taken))
    }
}

/// A name in quotes; what has no end is no name.
fn quoted(taken: &str) -> Piece<'_> {
    let is_closed = taken.len() >= 2 && (taken.ends_with(['"', '`', ']']));
    if is_closed {
        Piece::Quoted(taken)
    } else {
        Piece::Literal
    }
}

/// Where a text in quotes ends: two of them are one in it.
fn closed(text: &str, quote: char) -> usize {
    let mut places = text
        .match_indices(quote)
        .map(|(place, _)| place)
        .skip(1)
        .peekable();
    while let Some(place) = places.next() {
        if places.next_if_eq(&(place + 1)).is_none() {
            return place + 1;
        }
    }
    text.len()
}

fn is_of_word(ch: char) -> bool {
    ch.is_alphanumeric() || ch == '_' || ch == '$'
}

fn word(text: &str) -> usize {
    text.find(|ch| !is_of_word(ch)).unwrap_or(text.len())
}

/// Digits, letters and dots, and the sign of an exponent.
fn number(text: &str) -> usize {
    let mut end = 0;
    for ch in text.chars() {
        let is_exponent =
            matches!(ch, '+' | '-') && text[..end].ends_with(['e', 'E']) && !text.starts_with("0x");
        if !(is_of_word(ch) || ch == '.' || is_exponent) {
            break;
        }
        end += ch.len_utf8();
    }
    end
}

#[cfg(test)]
mod tests {
    use crate::observe::summary::{Operation, summary, without_literals};

    #[test]
    fn a_summary_has_the_operation_and_the_first_table() {
        for (text, expected) in [
            ("SELECT a, b FROM \"orders\" AS o JOIN c", "SELECT orders"),
            ("insert into [two words] values (?1)", "INSERT two words"),
            ("UPDATE OR IGNORE t SET a = 1", "UPDATE t"),
            ("DELETE FROM `t`", "DELETE t"),
            ("WITH r AS (SELECT 1) SELECT * FROM r", "SELECT r"),
            ("REPLACE INTO t VALUES (1)", "INSERT t"),
            ("SELECT 'from x'", "SELECT"),
            ("SELECT * FROM (SELECT a FROM t)", "SELECT t"),
            ("PRAGMA user_version", "OTHER"),
            ("UPDATE", "UPDATE"),
            ("", "OTHER"),
        ] {
            assert_eq!(summary(text), expected, "{text}");
        }
    }

    #[test]
    fn literals_are_left_out_and_all_else_stays() {
        for (text, expected) in [
            (
                "SELECT 'it''s' || x'00ff', a1 FROM t2 LIMIT 10",
                "SELECT ? || ?, a1 FROM t2 LIMIT ?",
            ),
            (
                "a = ?1 AND b = :name AND c = $3 AND d = @e",
                "a = ?1 AND b = :name AND c = $3 AND d = @e",
            ),
            ("a = 1.5e-3 + .5 - 0xFF-1", "a = ? + ? - ?-?"),
            (
                "\"a 'b'\" = `c` /* 'x' */ -- y\n= [d e]",
                "\"a 'b'\" = `c`    \n= [d e]",
            ),
            ("a = 'no end", "a = ?"),
            ("a = \"no end", "a = ?"),
            ("a = 'ü' || \u{e9}t\u{e9}", "a = ? || \u{e9}t\u{e9}"),
            ("'''' /* no end", "?  "),
            ("1_000 e1 1e", "? e1 ?"),
        ] {
            assert_eq!(without_literals(text), expected, "{text}");
        }
    }

    #[test]
    fn the_first_word_tells_the_operation() {
        assert_eq!(Operation::of(" \n select 1"), Operation::Select);
        assert_eq!(Operation::of("SEL"), Operation::Other);
        assert_eq!(Operation::ALL.map(Operation::name).len(), 6);
    }
}
