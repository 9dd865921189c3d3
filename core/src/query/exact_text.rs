//! Searching text that tells upper from lower case.

use crate::{
    entity::{Column, Entity},
    query::{
        Condition, Part, Text,
        columns::{is_path, is_text},
    },
    sql::{Comparison, Predicate, Term},
    value::{Value, check_text},
};

/// # Searching text exactly
///
/// Each character matches only itself: `A` is not `a`, nor is a letter with its accent as one character the two that mean the
/// same. A collating sequence of the column makes no difference.
impl<E: Entity, T: Text, P: Part> Column<E, T, P> {
    /// Starts with exactly this text. An index on the column serves it, unless it collates other than BINARY.
    ///
    /// It is the range of texts from this one to the first that is greater than all that begin with it. In a file of another
    /// program whose encoding is UTF-16 texts are in another order, and some may be missed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// #[derive(Debug, Entity)]
    /// struct Document {
    ///     #[entity(id)]
    ///     id: i64,
    ///     #[entity(index)]
    ///     path: String,
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Document>().await?;
    /// # let mut ctx = db.context();
    /// for path in ["src/lib.rs", "SRC/LIB.RS", "src_old/lib.rs"] {
    ///     ctx.add(Document { id: 0, path: path.into() });
    /// }
    /// ctx.save_changes().await?;
    ///
    /// let search = |document: Condition<Document>| Document::query().filter(document).count(&db);
    /// assert_eq!(search(Document::PATH.starts_with_exact("src/")).await?, 1);
    /// assert_eq!(search(Document::PATH.contains_exact("/l")).await?, 2);
    /// assert_eq!(search(Document::PATH.ends_with_exact(".RS")).await?, 1);
    /// assert_eq!(search(Document::PATH.starts_with("src/")).await?, 2); // in either case
    /// # Ok(()) }
    /// ```
    pub fn starts_with_exact(self, text: impl AsRef<str>) -> Condition<E> {
        self.found_exactly(text.as_ref(), |term, text| {
            let end = end_of_prefix(&text);
            let term = Term::Exact(Box::new(term));
            let from = compare(term.clone(), Comparison::GreaterOrEqual, Value::Text(text));
            from.and(compare(term, Comparison::Less, end))
        })
    }

    /// Contains exactly this text. No index serves it: each row's text is searched.
    pub fn contains_exact(self, text: impl AsRef<str>) -> Condition<E> {
        self.found_exactly(text.as_ref(), containing)
    }

    /// Ends with exactly this text. No index serves it.
    pub fn ends_with_exact(self, text: impl AsRef<str>) -> Condition<E> {
        self.found_exactly(text.as_ref(), |term, text| {
            let Ok(length @ 1..) = i64::try_from(text.chars().count()) else {
                // Counted from its end, nothing would be all of it.
                return containing(term, text);
            };
            let end = Term::Call {
                function: "substr",
                args: vec![term, Term::Value(Value::Integer(-length))],
            };
            let end = Term::Exact(Box::new(end));
            compare(end, Comparison::Equal, Value::Text(text))
        })
    }

    fn found_exactly(
        self,
        text: &str,
        find: impl FnOnce(Term, String) -> Predicate,
    ) -> Condition<E> {
        let node = self.node();
        if let Err(error) = check_text(text) {
            return Condition::invalid(node.blamed::<E>(error));
        }
        let predicate = node.term.map(|term| {
            // These functions take numbers for text; at a path only texts are meant.
            let text_only = is_path(&term).then(|| is_text(term.clone()));
            let found = find(term, text.to_owned());
            match text_only {
                Some(text_only) => found.and(text_only),
                None => found,
            }
        });
        Condition::shaped(predicate, node.shape)
    }
}

fn containing(term: Term, text: String) -> Predicate {
    let position = Term::Call {
        function: "instr",
        args: vec![term, Term::Value(Value::Text(text))],
    };
    Predicate::Compare {
        term: position,
        comparison: Comparison::Greater,
        with: Term::Number(0),
    }
}

const fn compare(term: Term, comparison: Comparison, with: Value) -> Predicate {
    Predicate::Compare {
        term,
        comparison,
        with: Term::Value(with),
    }
}

/// The least value that is greater than all texts that start with this one. UTF-8 sorts as its characters do.
fn end_of_prefix(text: &str) -> Value {
    let mut chars = text.char_indices().rev();
    let end = chars.find_map(|(at, ch)| {
        // Surrogates are no characters, and the range leaves them out.
        let next = (ch..=char::MAX).nth(1)?;
        Some(format!("{}{next}", &text[..at]))
    });
    // Every blob is greater than every text.
    end.map_or_else(|| Value::Blob(Vec::new()), Value::Text)
}

#[cfg(test)]
mod tests {
    use crate::{query::exact_text::end_of_prefix, value::Value};

    #[test]
    fn what_follows_a_prefix_is_greater_than_all_that_begin_with_it() {
        for (prefix, end) in [
            ("a", "b"),
            ("az", "a{"),
            ("\u{7f}", "\u{80}"),
            ("x\u{7ff}", "x\u{800}"),
            ("\u{d7ff}", "\u{e000}"),
            ("\u{ffff}", "\u{10000}"),
            ("a\u{10ffff}", "b"),
            ("\u{d7ff}\u{10ffff}\u{10ffff}", "\u{e000}"),
        ] {
            assert_eq!(end_of_prefix(prefix), Value::Text(end.into()), "{prefix:?}");
        }
        for prefix in ["", "\u{10ffff}", "\u{10ffff}\u{10ffff}"] {
            assert_eq!(end_of_prefix(prefix), Value::Blob(Vec::new()), "{prefix:?}");
        }
    }
}
