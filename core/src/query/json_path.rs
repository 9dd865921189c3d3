//! What stands inside of JSON, asked like a column.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    entity::{Column, Entity},
    query::{Expr, Part, arithmetic::invalid, condition::Invalid, part::Node},
    sql::Term,
    value::{ColumnType, Json, Scalar, ValueError, check_text},
};

/// A column type whose values are JSON: a field with `#[entity(json)]`, a `serde_json::Value`, and an `Option` of
/// either.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::JsonDocument};
///
/// fn colour<E: Entity, T: JsonDocument>(column: Column<E, T>) -> Expr<E, Option<String>> {
///     column.path("$.colour")
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a column of type `{Self}` holds no JSON to look into",
    label = "not a JSON column",
    note = "write #[entity(json)] on the field, or make it a serde_json::Value"
)]
pub trait JsonDocument: ColumnType {}

impl<T: Serialize + DeserializeOwned> JsonDocument for Json<T> {}

impl JsonDocument for serde_json::Value {}

impl<T: JsonDocument + Scalar> JsonDocument for Option<T> {}

/// A type whose values SQLite reads from JSON as it would store them in a column: integers, `bool`, `f64`, `String`.
///
/// An enum without data may join them if serde writes it as the column would.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::JsonScalar;
///
/// # #[derive(Debug, Entity)]
/// # struct Article { #[entity(id)] id: i64, extra: serde_json::Value }
/// #[derive(Debug, Clone, Copy, EntityEnum, serde::Serialize, serde::Deserialize)]
/// enum Colour {
///     Red, // "Red", in JSON as in a column
///     Blue,
/// }
///
/// impl JsonScalar for Colour {}
///
/// let red = Article::EXTRA.path::<Colour>("$.colour").eq(Colour::Red);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what SQLite finds in JSON",
    label = "not a JSON value",
    note = "use i8 to i64, u8 to u32, bool, f64 or String; dates and UUIDs are text in JSON, an f32 is an f64"
)]
pub trait JsonScalar: Scalar {}

macro_rules! json_scalar {
    ($($type:ty),*) => {$(
        impl JsonScalar for $type {}
    )*};
}

json_scalar!(i8, i16, i32, i64, u8, u16, u32, bool, f64, String);

/// # Looking into JSON
impl<E: Entity, T, P: Part> Column<E, T, P> {
    /// What stands at a path inside of the JSON, as an expression that is compared and sorted by like a column that
    /// may be NULL.
    ///
    /// A path is `$` and then steps: `.key`, `."any key"` (with JSON's escapes), `[0]` from the start of an array,
    /// `[#-1]` from its end. It becomes a part of the statement's text, so that an index on
    /// `json_extract(column, '$.key')` serves it if its path is written the same. Another path is another statement:
    /// build paths from names that are known, not from endless ones.
    ///
    /// `V` is the type of the values to compare with. What the documents hold there may be anything:
    ///
    /// * A missing key, a JSON `null` and a column that is NULL are NULL.
    /// * `true` and `false` are 1 and 0, also to numbers; `5.0` equals `5`, and the text `"5"` equals neither.
    /// * Numbers are never less or greater than text, nor text than numbers, and only text matches a pattern. Sorted,
    ///   NULLs come first, then numbers, then text.
    /// * An object or an array is its JSON, as text without spaces.
    /// * An integer beyond 64 bits is an `f64`. Very large and very small reals (beyond some 15 digits before or after
    ///   the point) may be off in their last digit: ask for them with [`between`](Column::between).
    ///
    /// A row whose text is no JSON at all, from another program, fails the query with kind
    /// [`ErrorKind::Decode`](crate::error::ErrorKind::Decode), as reading it would. A path that cannot be one fails it
    /// with kind [`ErrorKind::Value`](crate::error::ErrorKind::Value) before anything is asked, and names the column.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// #[derive(Debug, Entity)]
    /// struct Article {
    ///     #[entity(id)]
    ///     id: i64,
    ///     extra: serde_json::Value,
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Article>().await?;
    /// # let mut ctx = db.context();
    /// ctx.add(Article { id: 0, extra: serde_json::json!({"colour": "red", "sizes": [38, 40]}) });
    /// ctx.add(Article { id: 0, extra: serde_json::json!({"colour": "blue"}) });
    /// ctx.save_changes().await?;
    ///
    /// let smallest = || Article::EXTRA.path::<i64>("$.sizes[0]");
    /// let red = Article::query()
    ///     .filter(Article::EXTRA.path::<String>("$.colour").eq("red").and(smallest().lt(40)))
    ///     .order_by(smallest().desc())
    ///     .all(&db)
    ///     .await?;
    /// assert_eq!(red.len(), 1);
    /// # Ok(()) }
    /// ```
    pub fn path<V: JsonScalar>(self, path: impl Into<Arc<str>>) -> Expr<E, Option<V>>
    where
        T: JsonDocument,
    {
        let node = self.node();
        match checked(path.into()) {
            Ok(path) => node.within(&path[1..]).into_expr(),
            Err(error) => invalid::<E>(node, error).into_expr(),
        }
    }
}

impl Node {
    /// What stands in this JSON after some more steps.
    pub(in crate::query) fn within(mut self, steps: &str) -> Self {
        self.is_required = false;
        self.term = self.term.and_then(|term| within(term, steps));
        self
    }
}

fn within(term: Term, steps: &str) -> Result<Term, Invalid> {
    match term {
        Term::Column(column) => Ok(Term::Path {
            column,
            path: format!("${steps}").into(),
        }),
        Term::Path { column, path } => Ok(Term::Path {
            column,
            path: format!("{path}{steps}").into(),
        }),
        Term::At { hops, term } => Ok(Term::At {
            hops,
            term: Box::new(within(*term, steps)?),
        }),
        _ => Err(Invalid::Refused(
            "only the JSON of a column is looked into, not that of an expression",
        )),
    }
}

/// The path, if SQLite takes it whatever it meets on the way.
///
/// SQLite would find most faults only in a document that has what comes before them.
fn checked(path: Arc<str>) -> Result<Arc<str>, ValueError> {
    check_text(&path)?;
    let mut rest = path
        .strip_prefix('$')
        .ok_or_else(|| ValueError::new("a JSON path begins with `$`"))?;
    while !rest.is_empty() {
        rest = after_step(rest).ok_or_else(|| {
            ValueError::new(format!(
                "not a JSON path from its byte {} on: steps are `.key`, `.\"any key\"`, `[0]` and `[#-1]`",
                path.len() - rest.len()
            ))
        })?;
    }
    Ok(path)
}

/// What follows the step at the beginning.
fn after_step(path: &str) -> Option<&str> {
    if let Some(quoted) = path.strip_prefix(".\"") {
        return after_quoted(quoted);
    }
    if let Some(key) = path.strip_prefix('.') {
        let end = key.find(['.', '[']).unwrap_or(key.len());
        return (end > 0).then(|| &key[end..]);
    }
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    let number = match index.strip_prefix('#') {
        Some("") => return Some(rest),
        Some(back) => back.strip_prefix('-')?,
        None => index,
    };
    // SQLite counts in 32 bits and starts anew beyond.
    let counts =
        number.bytes().all(|digit| digit.is_ascii_digit()) && number.parse::<u32>().is_ok();
    counts.then_some(rest)
}

fn after_quoted(key: &str) -> Option<&str> {
    let mut escaped = false;
    let end = key.find(|ch| {
        let closes = ch == '"' && !escaped;
        escaped = ch == '\\' && !escaped;
        closes
    })?;
    Some(&key[end + 1..])
}
