//! SQL as a list of tokens: as much as it takes to find the parts of a definition.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword, or a name without quotes.
    Word,
    /// A name in double quotes, backticks or brackets.
    Quoted,
    /// A text in single quotes.
    Text,
    /// A number.
    Number,
    /// Anything else, one character each.
    Sign,
}

/// A token, with where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Whether space or a comment stands before it.
    pub(crate) spaced: bool,
}

impl Token<'_> {
    /// Whether it is this keyword, written without quotes.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Whether it is this sign.
    pub(crate) fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// The name that it is; SQLite takes texts for names too, where only a name can stand.
    pub(crate) fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Word => Some(self.text.to_owned()),
            Kind::Quoted | Kind::Text => Some(unquoted(self.text)),
            Kind::Number | Kind::Sign => None,
        }
    }

    /// Whether it is this name, as SQLite compares names.
    pub(crate) fn names(&self, name: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Quoted)
            && (self.name()).is_some_and(|own| own.eq_ignore_ascii_case(name))
    }
}

/// The tokens of a statement; comments are none.
pub(crate) fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut rest, mut spaced) = (sql, false);
    while let Some(first) = rest.chars().next() {
        let blank = blank(rest);
        if blank > 0 {
            rest = &rest[blank..];
            spaced = true;
            continue;
        }
        let (kind, length) = token(rest, first);
        let (text, after) = rest.split_at(length);
        found.push(Token { kind, text, spaced });
        (rest, spaced) = (after, false);
    }
    found
}

/// The text of some tokens: one space where there was any, and no comment.
pub(crate) fn text(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    for token in tokens {
        if token.spaced && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(token.text);
    }
    text
}

/// Where the parenthesis ends that opens at the start of `tokens`: the index of the closing one.
pub(crate) fn closing(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        if token.is_sign("(") {
            depth += 1;
        } else if token.is_sign(")") {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(index);
            }
        }
    }
    None
}

/// A text or a name without its quotes.
pub(crate) fn unquoted(text: &str) -> String {
    let Some(quote) = text.chars().next() else {
        return String::new();
    };
    let end = if quote == '[' { ']' } else { quote };
    let inner = text.strip_prefix(quote).unwrap_or(text);
    let inner = inner.strip_suffix(end).unwrap_or(inner);
    if quote == '[' {
        inner.to_owned()
    } else {
        inner.replace(&format!("{quote}{quote}"), &quote.to_string())
    }
}

/// A text as SQL writes it.
pub(crate) fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// How many bytes of space or comment `rest` begins with.
fn blank(rest: &str) -> usize {
    if let Some(comment) = rest.strip_prefix("--") {
        return comment.find('\n').map_or(rest.len(), |end| end + 3);
    }
    if let Some(comment) = rest.strip_prefix("/*") {
        return comment.find("*/").map_or(rest.len(), |end| end + 4);
    }
    rest.len()
        - rest
            .trim_start_matches([' ', '\t', '\n', '\r', '\u{c}'])
            .len()
}

fn token(rest: &str, first: char) -> (Kind, usize) {
    match first {
        '\'' => (Kind::Text, quoted(rest, '\'')),
        '"' | '`' => (Kind::Quoted, quoted(rest, first)),
        '[' => (
            Kind::Quoted,
            rest.find(']').map_or(rest.len(), |end| end + 1),
        ),
        '0'..='9' => (Kind::Number, number(rest)),
        '.' if rest[1..].starts_with(|next: char| next.is_ascii_digit()) => {
            (Kind::Number, number(rest))
        }
        first if is_word(first) => {
            let end = rest.find(|next| !is_word(next)).unwrap_or(rest.len());
            (Kind::Word, end)
        }
        first => (Kind::Sign, first.len_utf8()),
    }
}

/// SQLite takes every character outside of ASCII for a letter.
fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '$' || !letter.is_ascii()
}

/// The length of what is quoted; a quote inside is doubled.
fn quoted(rest: &str, quote: char) -> usize {
    let mut at = 1;
    while let Some(end) = rest[at..].find(quote) {
        at += end + 1;
        if !rest[at..].starts_with(quote) {
            return at;
        }
        at += 1;
    }
    rest.len()
}

fn number(rest: &str) -> usize {
    let is_hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
    let mut before = ' ';
    for (at, letter) in rest.char_indices() {
        let is_sign_of_exponent =
            matches!(letter, '+' | '-') && matches!(before, 'e' | 'E') && !is_hexadecimal;
        if !(letter.is_ascii_alphanumeric()
            || letter == '.'
            || letter == '_'
            || is_sign_of_exponent)
        {
            return at;
        }
        before = letter;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::{closing, text, tokens, unquoted};

    #[test]
    fn statements_come_apart_into_tokens() {
        let sql = "a\"b\"\"c\" [d]e'f''g'-- h (\n1.5e-3+.5/* i ) */0x1F >= größe";
        let found: Vec<_> = tokens(sql).iter().map(|token| token.text).collect();
        assert_eq!(
            found,
            [
                "a",
                "\"b\"\"c\"",
                "[d]",
                "e",
                "'f''g'",
                "1.5e-3",
                "+",
                ".5",
                "0x1F",
                ">",
                "=",
                "größe"
            ]
        );
        assert_eq!(
            text(&tokens("a  >=\n 'x  y' -- z\n and b")),
            "a >= 'x  y' and b"
        );
    }

    #[test]
    fn what_does_not_end_ends_with_the_statement() {
        for sql in ["'abc", "\"abc", "[abc", "/* abc", "-- abc", "'a''"] {
            assert!(tokens(sql).len() <= 1, "{sql}");
        }
    }

    #[test]
    fn quotes_are_taken_off() {
        assert_eq!(unquoted("\"a\"\"b\""), "a\"b");
        assert_eq!(unquoted("[a]"), "a");
        assert_eq!(unquoted("`a``b`"), "a`b");
        assert_eq!(unquoted("'it''s'"), "it's");
    }

    #[test]
    fn parentheses_are_matched() {
        assert_eq!(closing(&tokens("(a (b) ')' c) d")), Some(7));
        assert_eq!(closing(&tokens("(a")), None);
    }
}
