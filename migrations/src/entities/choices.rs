//! What a CHECK lists: the variants of an enum.

use anabranch::value::ValueRef;

use crate::entities::{
    catalog::{Affinity, Column},
    names,
    token::{Kind, Token, closing, tokens, unquoted},
};

/// The values that a CHECK allows, in its order, none of them twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choices {
    Texts(Vec<String>),
    Integers(Vec<i64>),
}

impl Choices {
    /// Reads `column IN ('a', 'b')`, or `column = 'a' OR column = 'b'`; `column IS NULL OR` may stand before it, or
    /// after. `None` for every other condition.
    pub(crate) fn parse(check: &str, column: &str) -> Option<Self> {
        let tokens = tokens(check);
        let mut found = Vec::new();
        for part in alternatives(outside_parentheses(&tokens)) {
            let part = outside_parentheses(part);
            let (first, rest) = part.split_first()?;
            if !first.names(column) {
                return None;
            }
            match rest {
                [is, null] if is.is("IS") && null.is("NULL") => {}
                [equal, again, value @ ..] if equal.is_sign("=") && again.is_sign("=") => {
                    found.push(literal(value)?);
                }
                [equal, value @ ..] if equal.is_sign("=") => found.push(literal(value)?),
                [is_in, list @ ..] if is_in.is("IN") => {
                    let end = closing(list).filter(|end| end + 1 == list.len())?;
                    for value in list[1..end].split(|token| token.is_sign(",")) {
                        found.push(literal(value)?);
                    }
                }
                _ => return None,
            }
        }
        Self::of(found)
    }

    /// All of one class, or nothing.
    fn of(found: Vec<Literal>) -> Option<Self> {
        let (mut texts, mut integers) = (Vec::new(), Vec::new());
        for literal in found {
            match literal {
                Literal::Text(text) if !texts.contains(&text) => texts.push(text),
                Literal::Integer(integer) if !integers.contains(&integer) => {
                    integers.push(integer);
                }
                Literal::Text(_) | Literal::Integer(_) => {}
            }
        }
        match (texts.is_empty(), integers.is_empty()) {
            (false, true) => Some(Self::Texts(texts)),
            (true, false) => Some(Self::Integers(integers)),
            _ => None,
        }
    }

    /// The enum that a column is by its CHECKs: one, and no other condition is needed. A collation may take other texts
    /// for the same as those in the list.
    pub(crate) fn of_column(column: &Column) -> Option<Self> {
        let [check] = &column.checks[..] else {
            return None;
        };
        if (column.collate.as_ref()).is_some_and(|name| !name.eq_ignore_ascii_case("BINARY")) {
            return None;
        }
        Self::parse(check, &column.name).filter(|choices| {
            !choices.are_bool() && choices.suit(column.affinity) && choices.can_be_written()
        })
    }

    /// Whether they are those of a `bool`.
    pub(crate) fn are_bool(&self) -> bool {
        matches!(self, Self::Integers(integers) if matches!(integers[..], [0, 1] | [1, 0]))
    }

    /// Whether SQLite leaves them alone on their way into the column.
    fn suit(&self, affinity: Affinity) -> bool {
        match self {
            Self::Texts(texts) => {
                !affinity.is_number()
                    || texts.iter().all(|text| text.trim().parse::<f64>().is_err())
            }
            Self::Integers(_) => !matches!(affinity, Affinity::Text | Affinity::Real),
        }
    }

    /// Whether the derive takes them: it refuses names of spaces alone.
    fn can_be_written(&self) -> bool {
        match self {
            Self::Texts(texts) => (texts.iter())
                .all(|text| text.is_empty() || !(text.trim().is_empty() || text.contains('\0'))),
            Self::Integers(_) => true,
        }
    }

    /// Whether a stored value is one of them.
    pub(crate) fn allow(&self, value: ValueRef<'_>) -> bool {
        match (self, value) {
            (Self::Texts(texts), ValueRef::Text(value)) => {
                texts.iter().any(|text| text.as_bytes() == value)
            }
            (Self::Integers(integers), ValueRef::Integer(value)) => integers.contains(&value),
            _ => false,
        }
    }

    /// The names of the variants, each other than the rest.
    pub(crate) fn variants(&self) -> Vec<String> {
        let mut taken = names::Taken::default();
        match self {
            Self::Texts(texts) => (texts.iter())
                .map(|text| taken.variant(&names::variant(text)))
                .collect(),
            Self::Integers(integers) => (integers.iter())
                .map(|integer| {
                    let sign = if *integer < 0 { "Minus" } else { "N" };
                    taken.variant(&format!("{sign}{}", integer.unsigned_abs()))
                })
                .collect(),
        }
    }
}

enum Literal {
    Text(String),
    Integer(i64),
}

fn literal(tokens: &[Token<'_>]) -> Option<Literal> {
    let integer = |text: &str| text.parse().ok().map(Literal::Integer);
    match tokens {
        [text] if text.kind == Kind::Text => Some(Literal::Text(unquoted(text.text))),
        [number] if number.kind == Kind::Number => integer(number.text),
        [sign, number] if sign.is_sign("-") && number.kind == Kind::Number => {
            integer(&format!("-{}", number.text))
        }
        _ => None,
    }
}

/// Without the parentheses around all of it.
fn outside_parentheses<'a, 'b>(tokens: &'b [Token<'a>]) -> &'b [Token<'a>] {
    match tokens {
        [open, inside @ .., _]
            if open.is_sign("(") && closing(tokens) == Some(tokens.len() - 1) =>
        {
            outside_parentheses(inside)
        }
        _ => tokens,
    }
}

/// What stands between ORs.
fn alternatives<'a, 'b>(tokens: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let mut depth = 0_usize;
    let parts = tokens.split(|token| {
        if token.is_sign("(") {
            depth += 1;
        } else if token.is_sign(")") {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && token.is("OR")
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::Choices;

    fn texts(texts: &[&str]) -> Option<Choices> {
        let texts = texts.iter().map(|&text| text.to_owned());
        Some(Choices::Texts(texts.collect()))
    }

    #[test]
    fn lists_are_read_in_all_their_forms() {
        for check in [
            "status IN ('new','paid')",
            "\"status\" in ('new', 'paid', 'new')",
            "((Status = 'new') OR status == 'paid')",
            "status IS NULL OR status IN ('new', 'paid')",
            "([status] IN ('new', 'paid') OR status IS NULL)",
        ] {
            assert_eq!(
                Choices::parse(check, "status"),
                texts(&["new", "paid"]),
                "{check}"
            );
        }
        assert_eq!(
            Choices::parse("level IN (-1, 0, 10)", "level"),
            Some(Choices::Integers(vec![-1, 0, 10]))
        );
        assert_eq!(
            Choices::parse("a in ('', 'it''s')", "a"),
            texts(&["", "it's"])
        );
    }

    #[test]
    fn other_conditions_are_no_lists() {
        for check in [
            "status NOT IN ('new')",
            "status IN ('new', 1)",
            "status IN ('new') AND other > 1",
            "other IN ('new')",
            "lower(status) IN ('new')",
            "status IN (SELECT x FROM y)",
            "status IN ('new') COLLATE NOCASE",
            "status = 'new' || 'er'",
            "status IS NULL",
            "status IN (1.5)",
            "",
        ] {
            assert_eq!(Choices::parse(check, "status"), None, "{check}");
        }
    }

    #[test]
    fn variants_have_names_of_their_own() {
        let choices = Choices::Texts(
            [
                "",
                "new",
                "NEW",
                "in transit",
                "2nd",
                "it's",
                "é",
                "+",
                "self",
                "A_B",
                "ab",
            ]
            .map(str::to_owned)
            .to_vec(),
        );
        assert_eq!(
            choices.variants(),
            [
                "Empty",
                "New",
                "New2",
                "InTransit",
                "V2nd",
                "ItS",
                "É",
                "Other",
                "Self_",
                "AB",
                "Ab"
            ]
        );
        assert_eq!(
            Choices::Integers(vec![-1, 0, 1]).variants(),
            ["Minus1", "N0", "N1"]
        );
    }
}
