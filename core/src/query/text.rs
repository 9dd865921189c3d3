//! Computing with text, and searching it whatever the letters' case.

use std::{borrow::Cow, sync::Arc};

use crate::{
    entity::{Column, Entity},
    query::{Condition, Expr, Nullable, Operand, Part, arithmetic::invalid, part::Node},
    sql::{FOLD, Pattern, Predicate, Term, folded},
    value::{ColumnType, Scalar, Value, check_text},
};

/// A column type whose values are text to be searched: `String`, `Box<str>` and their like, a newtype of one, and an
/// `Option` of these.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::Text};
///
/// fn search<E: Entity, T: Text>(column: Column<E, T>, words: &[&str]) -> Query<E> {
///     words.iter().fold(Query::new(), |query, word| query.filter(column.clone().contains_folded(word)))
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a column of type `{Self}` holds no text to be searched",
    label = "not a text column"
)]
pub trait Text: ColumnType {}

impl Text for String {}

impl Text for Box<str> {}

impl Text for Arc<str> {}

impl Text for Cow<'static, str> {}

impl<T: Text + Scalar> Text for Option<T> {}

/// # Computing with text
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
/// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
/// # }
/// # ctx.save_changes().await?;
/// let tea = || Item::query().filter(Item::NAME.eq("tea"));
/// let shown = Item::NAME.upper().concat(" ").concat(Item::NAME.substring(1, 2).lower());
/// assert_eq!(tea().select(shown.trim()).one(&db).await?, "TEA ea");
/// let of_text = (Item::NAME.char_length(), Item::NAME.position_of("a"), Item::NAME.replace("t", "s"));
/// assert_eq!(tea().select(of_text).one(&db).await?, (3, Some(2), "sea".to_owned()));
/// # Ok(()) }
/// ```
impl<E: Entity, T: Text + Nullable, P: Part> Column<E, T, P> {
    /// With the 26 letters of ASCII in lower case; others stay. To compare whatever the case of any letter see
    /// [`eq_folded`](Self::eq_folded).
    pub fn lower(self) -> Expr<E, T> {
        self.call("lower")
    }

    /// With the 26 letters of ASCII in upper case; others stay.
    pub fn upper(self) -> Expr<E, T> {
        self.call("upper")
    }

    /// Without spaces at either end.
    pub fn trim(self) -> Expr<E, T> {
        self.call("trim")
    }

    /// How many characters it has: Unicode's code points.
    pub fn char_length(self) -> Expr<E, T::Like<i64>> {
        self.call("length")
    }

    /// So many characters, from the one at `start` on, the first being 0; fewer if it ends before.
    pub fn substring(self, start: u32, length: u32) -> Expr<E, T> {
        let number = |number| Node::of(Ok(Term::Number(number)));
        let first = i64::from(start) + 1;
        self.call_with("substr", [number(first), number(length.into())])
    }

    /// With every `from` replaced by `to`.
    pub fn replace(self, from: impl AsRef<str>, to: impl AsRef<str>) -> Expr<E, T> {
        let texts = [from.as_ref(), to.as_ref()];
        let checked = texts.into_iter().try_for_each(check_text);
        match checked {
            Err(error) => invalid::<E>(self.node(), error).into_expr(),
            Ok(()) => {
                let texts = texts.map(|text| Node::of(Ok(Term::Value(Value::Text(text.into())))));
                self.call_with("replace", texts)
            }
        }
    }

    /// Where the text first occurs in it, in characters, the first being 0; NULL if it does not.
    pub fn position_of(self, text: impl Operand<E, T>) -> Expr<E, Option<i64>> {
        let text = match text.node() {
            Ok(text) => text,
            Err(error) => return invalid::<E>(self.node(), error).into_expr(),
        };
        let found = self.node().with([text], |term, text| {
            let found = Term::Call {
                function: "instr",
                args: std::iter::once(term).chain(text).collect(),
            };
            let or_null = Term::Call {
                function: "nullif",
                args: vec![found, Term::Number(0)],
            };
            Term::Infix {
                left: Box::new(or_null),
                operator: " - ",
                right: Box::new(Term::Number(1)),
            }
        });
        found.into_expr()
    }

    /// This and then the other; NULL if either is.
    pub fn concat(self, other: impl Operand<E, T>) -> Expr<E, T> {
        let other = match other.node() {
            Ok(other) => other,
            Err(error) => return invalid::<E>(self.node(), error).into_expr(),
        };
        let joined = self.node().with([other], |left, right| Term::Infix {
            left: Box::new(left),
            operator: " || ",
            right: Box::new(Term::Several(right)),
        });
        joined.into_expr()
    }
}

/// # Searching text in any language
///
/// Letters match in either case, in all scripts (`Ä` and `ä`, `ß` and `SS`, `Σ` and `ς`), and a letter with its accent
/// as one character matches the two that mean the same. SQLite's own LIKE knows the 26 letters of ASCII alone. No index
/// serves these: each row's text is folded.
impl<E: Entity, T: Text, P: Part> Column<E, T, P> {
    /// Equal to the text but for the case of letters.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct City { #[entity(id)] id: i64, name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<City>().await?;
    /// # let mut ctx = db.context();
    /// ctx.add(City { id: 0, name: "Århus".into() });
    /// ctx.save_changes().await?;
    /// let search = |city: Condition<City>| City::query().filter(city).count(&db);
    /// assert_eq!(search(City::NAME.eq_folded("ÅRHUS")).await?, 1);
    /// assert_eq!(search(City::NAME.contains_folded("år")).await?, 1);
    /// assert_eq!(search(City::NAME.contains("år")).await?, 0);
    /// # Ok(()) }
    /// ```
    pub fn eq_folded(self, text: impl AsRef<str>) -> Condition<E> {
        self.matches_folded(text.as_ref(), |text| text)
    }

    /// Contains the text but for the case of letters.
    pub fn contains_folded(self, text: impl AsRef<str>) -> Condition<E> {
        self.like_folded(text.as_ref(), Pattern::containing)
    }

    /// Starts with the text but for the case of letters.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
    /// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
    /// # }
    /// # ctx.save_changes().await?;
    /// let found = Item::NAME.starts_with_folded("TE").and(Item::NAME.ends_with_folded("EA"));
    /// assert_eq!(Item::query().filter(found).count(&db).await?, 1);
    /// # Ok(()) }
    /// ```
    pub fn starts_with_folded(self, text: impl AsRef<str>) -> Condition<E> {
        self.like_folded(text.as_ref(), Pattern::starting_with)
    }

    /// Ends with the text but for the case of letters.
    pub fn ends_with_folded(self, text: impl AsRef<str>) -> Condition<E> {
        self.like_folded(text.as_ref(), Pattern::ending_with)
    }

    fn matches_folded(self, text: &str, finish: impl FnOnce(String) -> String) -> Condition<E> {
        let node = self.node();
        match check_text(text) {
            Err(error) => Condition::invalid(node.blamed::<E>(error)),
            Ok(()) => {
                let with = Term::Value(Value::Text(finish(folded(text))));
                let node = node.map(fold);
                let predicate = node.term.map(|term| Predicate::Compare {
                    term,
                    comparison: crate::sql::Comparison::Equal,
                    with,
                });
                Condition::shaped(predicate, node.shape)
            }
        }
    }

    fn like_folded(self, text: &str, pattern: impl FnOnce(&str) -> Pattern) -> Condition<E> {
        let node = self.node();
        match check_text(text) {
            Err(error) => Condition::invalid(node.blamed::<E>(error)),
            Ok(()) => {
                let pattern = pattern(&folded(text));
                let node = node.map(fold);
                let predicate = node.term.map(|term| Predicate::Like {
                    term,
                    pattern,
                    negated: false,
                });
                Condition::shaped(predicate, node.shape)
            }
        }
    }
}

fn fold(term: Term) -> Term {
    Term::Call {
        function: FOLD,
        args: vec![term],
    }
}
