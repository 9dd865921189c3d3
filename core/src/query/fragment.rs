//! SQL as it is written, with expressions in it.

use crate::{
    entity::{Column, Entity},
    query::{
        Expr, Part,
        case::checked,
        condition::{Invalid, Shape},
        part::Node,
    },
    sql::{Piece, Term},
    value::{ColumnType, Scalar, Value, ValueError, check_text},
};

/// An expression for which there is no method: SQL with `{}` where each argument stands, or `{0}`, `{1}` by their
/// positions; `{{` is a brace. Arguments are columns and expressions of the entity, and values, which become parameters.
///
/// The text is a part of the program, so that nothing that a user typed becomes SQL. What type it gives is yours to say.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::fragment;
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # ctx.add(Item { id: 0, name: "tea".into() });
/// # ctx.save_changes().await?;
/// let code = fragment::<Item, String>("printf('%04d-%s', {}, upper({}))", (Item::ID, Item::NAME));
/// assert_eq!(Item::query().select(code).one(&db).await?, "0001-TEA");
/// # Ok(()) }
/// ```
///
/// A query with it fails with kind [`ErrorKind::Refused`](crate::error::ErrorKind::Refused) if arguments and
/// placeholders do not match, and with SQLite's own error if it is no SQL.
#[must_use]
pub fn fragment<E: Entity, T: ColumnType>(
    sql: &'static str,
    args: impl Arguments<E>,
) -> Expr<E, T> {
    let mut nodes = Vec::new();
    args.collect(&mut nodes);
    let mut shape = Shape::FLAT;
    let mut column = "";
    for node in &nodes {
        shape = shape.and(node.shape);
        if column.is_empty() {
            column = node.column;
        }
    }
    let mut node = Node::of(pieces(sql, nodes).map(Term::Fragment));
    node.shape = shape.around();
    node.column = column;
    node.into_expr()
}

/// The same as a whole statement, and how deep it is.
pub(in crate::query) fn source<E>(
    sql: &'static str,
    args: impl Arguments<E>,
) -> Result<(Vec<Piece>, Shape), Invalid> {
    let mut nodes = Vec::new();
    args.collect(&mut nodes);
    let shape = (nodes.iter()).fold(Shape::FLAT, |shape, node| shape.and(node.shape));
    Ok((pieces(sql, nodes)?, shape.around()))
}

/// One argument of a [`fragment`]: an expression, a value, an `Option` of one, or a [`list`] of them.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{Argument, fragment};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// fn padded(argument: impl Argument<Item>) -> Expr<Item, String> {
///     fragment("printf('%05d', {})", (argument,))
/// }
/// let (of_column, of_value) = (padded(Item::PRICE), padded(7));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of SQL",
    label = "neither an expression nor a value",
    note = "values are those that a column can hold, an Option of one, `&str` and `&[u8]`; any number of them is `list(values)`"
)]
pub trait Argument<E> {
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "so that nobody else implements it")]
    fn node(self) -> Node;
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, T, P: Part> Argument<E> for Column<E, T, P> {
    fn node(self) -> Node {
        self.node()
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E, T: Scalar> Argument<E> for T {
    fn node(self) -> Node {
        checked(self.encode().map(|value| Node::of(Ok(Term::Value(value)))))
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E> Argument<E> for &str {
    fn node(self) -> Node {
        let value = check_text(self).map(|()| Value::Text(self.to_owned()));
        checked(value.map(|value| Node::of(Ok(Term::Value(value)))))
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E, T: Scalar> Argument<E> for Option<T> {
    fn node(self) -> Node {
        checked(self.encode().map(|value| Node::of(Ok(Term::Value(value)))))
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E> Argument<E> for &String {
    fn node(self) -> Node {
        Argument::<E>::node(self.as_str())
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E> Argument<E> for &[u8] {
    fn node(self) -> Node {
        Node::of(Ok(Term::Value(Value::Blob(self.to_vec()))))
    }
}

/// Any number of values as one argument of a [`fragment`]; made by [`list`].
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price) in [("tea", 3), ("cake", 7), ("jam", 7)] {
/// #     ctx.add(Item { id: 0, name: name.into(), price });
/// # }
/// # ctx.save_changes().await?;
/// use anabranch::query::{List, fragment, list};
///
/// fn named(names: List) -> Condition<Item> {
///     fragment::<Item, bool>("{} IN ({})", (Item::NAME, names)).is_true()
/// }
/// assert_eq!(Item::query().filter(named(list(["tea", "jam"].map(str::to_owned)))).count(&db).await?, 2);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct List(Result<Vec<Value>, ValueError>);

/// Any number of values for what stands in the parentheses of `IN ({})`; of none nothing is one.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{list, raw};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// let found = raw::<i64>("SELECT value FROM json_each('[1, 2, 3]') WHERE value IN ({})", (list([1, 3, 5]),));
/// assert_eq!(found.all(&db).await?, [1, 3]);
/// # Ok(()) }
/// ```
pub fn list<T: Scalar>(values: impl IntoIterator<Item = T>) -> List {
    List(values.into_iter().map(|value| value.encode()).collect())
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E> Argument<E> for List {
    fn node(self) -> Node {
        checked(self.0.map(|values| Node::of(Ok(Term::Values(values)))))
    }
}

/// The arguments of a [`fragment`]: a tuple of up to eight, `()` for none.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{Arguments, fragment};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// fn greater_of_two(arguments: impl Arguments<Item>) -> Expr<Item, i64> {
///     fragment("max({0}, {1})", arguments)
/// }
/// let at_least_five = greater_of_two((Item::PRICE, 5));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of SQL",
    label = "not a tuple of arguments",
    note = "write a tuple of up to eight expressions and values: `(a, b)`, `(a,)` for one, `()` for none"
)]
pub trait Arguments<E> {
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "so that nobody else implements it")]
    fn collect(self, nodes: &mut Vec<Node>);
}

macro_rules! arguments {
    ($($name:ident $index:tt),*) => {
        #[allow(private_interfaces, reason = "as in the trait")]
        #[allow(unused_variables, reason = "of no arguments nothing is collected")]
        impl<E, $($name: Argument<E>),*> Arguments<E> for ($($name,)*) {
            fn collect(self, nodes: &mut Vec<Node>) {
                $(nodes.push(self.$index.node());)*
            }
        }
    };
}

arguments!();
arguments!(A 0);
arguments!(A 0, B 1);
arguments!(A 0, B 1, C 2);
arguments!(A 0, B 1, C 2, D 3);
arguments!(A 0, B 1, C 2, D 3, F 4);
arguments!(A 0, B 1, C 2, D 3, F 4, G 5);
arguments!(A 0, B 1, C 2, D 3, F 4, G 5, H 6);
arguments!(A 0, B 1, C 2, D 3, F 4, G 5, H 6, I 7);

fn pieces(sql: &'static str, nodes: Vec<Node>) -> Result<Vec<Piece>, Invalid> {
    let terms: Vec<_> = (nodes.into_iter())
        .map(|node| node.term)
        .collect::<Result<_, _>>()?;
    let given = terms.len();
    let mismatch = |asked| Invalid::Placeholders { sql, asked, given };
    let mut pieces = Vec::new();
    let mut used = vec![false; terms.len()];
    let mut text = String::new();
    let (mut next, mut asked) = (0, 0_usize);
    let mut rest = sql;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        text.push_str(before);
        if let Some(after) = (brace.strip_prefix("{{")).or_else(|| brace.strip_prefix("}}")) {
            text.push_str(&brace[..1]);
            rest = after;
            continue;
        }
        let inside = brace.strip_prefix('{').and_then(|it| it.split_once('}'));
        let (number, after) = inside.ok_or_else(|| mismatch(None))?;
        let position: usize = if number.is_empty() {
            next += 1;
            next - 1
        } else {
            number.parse().map_err(|_| mismatch(None))?
        };
        asked = asked.max(position.saturating_add(1));
        if let Some(term) = terms.get(position) {
            used[position] = true;
            pieces.push(Piece::Sql(std::mem::take(&mut text).into()));
            pieces.push(Piece::Term(term.clone()));
        }
        rest = after;
    }
    if asked > given || used.contains(&false) {
        return Err(mismatch(Some(asked)));
    }
    text.push_str(rest.trim_end().trim_end_matches(';'));
    pieces.push(Piece::Sql(text.into()));
    Ok(pieces)
}
