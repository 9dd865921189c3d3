//! Fields of structs inside of JSON, known to the compiler.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    marker::PhantomData,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    entity::{Column, Entity},
    query::{Expr, JsonScalar, Nullable, Part},
    value::Json,
};

/// A field of type `V` of a struct `D` that is stored as JSON: a constant that
/// [`derive(JsonFields)`](derive@crate::query::JsonFields) makes.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::JsonField;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, JsonFields)]
/// struct Extra {
///     colour: String,
/// }
///
/// let colour: JsonField<Extra, String> = Extra::COLOUR;
/// ```
pub struct JsonField<D, V> {
    /// As in a path.
    step: &'static str,
    of: PhantomData<fn() -> (D, V)>,
}

impl<D, V> JsonField<D, V> {
    /// The field at this step of a path. Called by the derive.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(step: &'static str) -> Self {
        Self {
            step,
            of: PhantomData,
        }
    }
}

impl<D, V> Clone for JsonField<D, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D, V> Copy for JsonField<D, V> {}

impl<D, V> fmt::Debug for JsonField<D, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonField(${})", self.step)
    }
}

/// A type whose values inside of JSON are asked like columns: what is a [`JsonScalar`], a struct that derives
/// [`JsonFields`](derive@crate::query::JsonFields), a `Vec`, a map, and an `Option` of these.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::{JsonField, JsonPart}, value::Json};
///
/// fn find<E: Entity, D, V: JsonPart>(document: Column<E, Json<D>>, field: JsonField<D, V>) -> Expr<E, V::Column> {
///     document.then(field)
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` inside of JSON is not asked like a column",
    label = "not what SQLite finds in JSON",
    note = "use i8 to i64, u8 to u32, bool, f64 or String, a struct that derives `JsonFields`, a Vec, a map, or an Option of these",
    note = "dates and UUIDs are text in JSON: ask for them with `path::<String>(\"$.day\")`"
)]
pub trait JsonPart {
    /// The type of the expression.
    type Column: Nullable;
}

#[diagnostic::do_not_recommend]
impl<T: JsonScalar> JsonPart for T {
    type Column = T;
}

impl<T: JsonPart> JsonPart for Option<T> {
    type Column = <T::Column as Nullable>::Nullable;
}

impl<T: Serialize + DeserializeOwned> JsonPart for Vec<T> {
    type Column = Json<Self>;
}

impl<T: Serialize + DeserializeOwned> JsonPart for HashMap<String, T> {
    type Column = Json<Self>;
}

impl<T: Serialize + DeserializeOwned> JsonPart for BTreeMap<String, T> {
    type Column = Json<Self>;
}

/// # Fields of JSON
///
/// As [`path`](Self::path), but the names and types of fields are those of the struct.
impl<E: Entity, D, P: Part> Column<E, Json<D>, P> {
    /// A field of the struct: `Article::EXTRA.then(Extra::COLOUR)`.
    ///
    /// It is the expression that [`path`](Self::path) makes of the same field, so that one index serves both, and its value is
    /// NULL where the field is missing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Debug, Entity)]
    /// struct Article {
    ///     #[entity(id)]
    ///     id: i64,
    ///     #[entity(json)]
    ///     extra: Extra,
    /// }
    ///
    /// #[derive(Debug, Serialize, Deserialize, JsonFields)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Extra {
    ///     main_colour: String,
    ///     size: Option<i64>,
    ///     tags: Vec<String>,
    ///     maker: Maker,
    /// }
    ///
    /// #[derive(Debug, Serialize, Deserialize, JsonFields)]
    /// struct Maker {
    ///     city: String,
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Article>().await?;
    /// # let mut ctx = db.context();
    /// let maker = Maker { city: "Bern".into() };
    /// let extra = Extra { main_colour: "red".into(), size: Some(38), tags: vec!["new".into()], maker };
    /// ctx.add(Article { id: 0, extra });
    /// ctx.save_changes().await?;
    ///
    /// let extra = Article::EXTRA;
    /// let red = Article::query()
    ///     .filter(extra.then(Extra::MAIN_COLOUR).eq("red"))
    ///     .filter(extra.then(Extra::SIZE).lt(40))
    ///     .filter(extra.then(Extra::TAGS).has("new"))
    ///     .select(extra.then(Extra::MAKER).then(Maker::CITY));
    /// assert_eq!(red.all(&db).await?, ["Bern"]);
    /// # Ok(()) }
    /// ```
    pub fn then<V: JsonPart>(self, field: JsonField<D, V>) -> Expr<E, V::Column> {
        self.node().within(field.step).into_expr()
    }
}

/// # Fields of optional JSON
impl<E: Entity, D, P: Part> Column<E, Option<Json<D>>, P> {
    /// A field of the struct, which is NULL where there is none.
    pub fn then<V: JsonPart>(
        self,
        field: JsonField<D, V>,
    ) -> Expr<E, <V::Column as Nullable>::Nullable> {
        self.node().within(field.step).into_expr()
    }
}
