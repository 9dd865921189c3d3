//! Lists that are stored as JSON.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    entity::{Column, Entity},
    query::{
        Condition, Expr, JsonScalar, Operand, Part, columns::nodes, condition::Invalid, part::Node,
    },
    sql::{Predicate, Term},
    value::{ColumnType, Json, Value, ValueError},
};

/// A column type whose values are lists: a `Vec` of integers, `bool`, `f64` or `String` with `#[entity(json)]`, or inside of
/// one ([`JsonFields`](derive@crate::query::JsonFields)), and an `Option` of it.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::JsonList};
///
/// fn is_new<E: Entity, L: JsonList<Item = String>>(tags: Column<E, L>) -> Condition<E> {
///     tags.has_all(["new", "unread"])
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a column of type `{Self}` holds no list",
    label = "not a list",
    note = "write #[entity(json)] on a Vec of integers, bool, f64 or String"
)]
pub trait JsonList: ColumnType {
    /// What the list has.
    type Item;
}

impl<T: JsonScalar + Serialize + DeserializeOwned> JsonList for Json<Vec<T>> {
    type Item = T;
}

impl<T: JsonScalar + Serialize + DeserializeOwned> JsonList for Option<Json<Vec<T>>> {
    type Item = T;
}

/// # Asking lists
///
/// A column that is NULL has no values. How often a value is in the list, or asked for, makes no difference. No index
/// serves these: each row's list is read.
impl<E: Entity, L, P: Part> Column<E, L, P> {
    /// The list has this value.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// #[derive(Debug, Entity)]
    /// struct Article {
    ///     #[entity(id)]
    ///     id: i64,
    ///     #[entity(json)]
    ///     tags: Vec<String>,
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Article>().await?;
    /// # let mut ctx = db.context();
    /// ctx.add(Article { id: 0, tags: vec!["new".into(), "wool".into()] });
    /// ctx.add(Article { id: 0, tags: vec!["wool".into()] });
    /// ctx.save_changes().await?;
    ///
    /// let wool = || Article::query().filter(Article::TAGS.has("wool"));
    /// assert_eq!(wool().count(&db).await?, 2);
    /// let new = wool().filter(Article::TAGS.has_any(["new", "sale"]));
    /// assert_eq!(new.count(&db).await?, 1);
    /// let longest = wool().order_by(Article::TAGS.length().desc()).first(&db).await?;
    /// assert_eq!(longest.map(|article| article.tags.len()), Some(2));
    /// # Ok(()) }
    /// ```
    pub fn has(self, value: impl Operand<E, L::Item>) -> Condition<E>
    where
        L: JsonList,
    {
        self.listed(value.node().map(|value| vec![value]), false)
    }

    /// The list has all of these values, of which there may be any number. No value selects every row, those where
    /// the column is NULL included.
    pub fn has_all(self, values: impl IntoIterator<Item = impl Operand<E, L::Item>>) -> Condition<E>
    where
        L: JsonList,
    {
        self.listed(nodes(values), true)
    }

    /// The list has at least one of these values, of which there may be any number. No value selects no row.
    pub fn has_any(self, values: impl IntoIterator<Item = impl Operand<E, L::Item>>) -> Condition<E>
    where
        L: JsonList,
    {
        self.listed(nodes(values), false)
    }

    /// How many values the list has, as an expression that is compared and sorted by like a column. It is NULL where
    /// the column is; what is no list, from another program, has the length 0.
    #[must_use]
    pub fn length(self) -> Expr<E, Option<i64>>
    where
        L: JsonList,
    {
        let mut node = self.node();
        node.term = (node.term.and_then(place)).map(|(column, path)| Term::Length(column, path));
        node.is_required = false;
        node.into_expr()
    }

    fn listed(self, nodes: Result<Vec<Node>, ValueError>, all: bool) -> Condition<E> {
        let list = self.node();
        let nodes = match nodes {
            Ok(nodes) => nodes,
            Err(error) => return Condition::invalid(list.blamed::<E>(error)),
        };
        let mut values = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node.term {
                Ok(Term::Value(value)) => values.push(value),
                Ok(_) => {
                    return Condition::invalid(Invalid::Refused(
                        "a list is asked for values, not for expressions",
                    ));
                }
                Err(invalid) => return Condition::invalid(invalid),
            }
        }
        let values = without_repeats(values);
        if values.is_empty() {
            return Condition::new(Predicate::Constant(all));
        }
        let has = (list.term.and_then(place)).map(|(column, path)| Predicate::Has {
            column,
            path,
            values,
            all,
        });
        Condition::shaped(has, list.shape)
    }
}

/// The column that a list is in, and where.
fn place(list: Term) -> Result<(&'static str, Option<Arc<str>>), Invalid> {
    match list {
        Term::Column(column) => Ok((column, None)),
        Term::Path { column, path } => Ok((column, Some(path))),
        _ => Err(Invalid::Refused(
            "only a list of a column is asked for values: of a related row ask inside of `any`",
        )),
    }
}

/// Each value once, in no particular order. They are of one storage class, and none is NaN.
fn without_repeats(mut values: Vec<Value>) -> Vec<Value> {
    values.sort_by(|first, second| match (first, second) {
        (Value::Integer(first), Value::Integer(second)) => first.cmp(second),
        (Value::Text(first), Value::Text(second)) => first.cmp(second),
        // The two zeros are one.
        (Value::Real(first), Value::Real(second)) => (first + 0.0).total_cmp(&(second + 0.0)),
        _ => std::cmp::Ordering::Equal,
    });
    values.dedup();
    values
}
