//! A column value that may not have been read.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A field whose column is read only where it is asked for: the text of a document, a picture.
///
/// In the table it is a column like any other, and `Document::BODY` is a `Column<Document, String>`. An entity that was
/// read without it holds one that is not loaded, and a save leaves its column alone. [`set`](Self::set) gives it a value
/// all the same, which the next save writes. A new entity needs a value: what is not loaded is not inserted.
///
/// serde writes one that is not loaded as null, and reads null, or nothing at all, as not loaded, so that an entity that
/// went out and came back overwrites nothing. It follows that a NULL is set in Rust, and not by JSON.
///
/// # Examples
///
/// ```
/// # use anabranch::prelude::*;
/// #[derive(Debug, Entity)]
/// struct Document {
///     #[entity(id)]
///     id: i64,
///     title: String,
///     body: Deferred<String>,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Document>().await?;
/// let mut ctx = db.context();
/// ctx.add(Document { id: 0, title: "tea".into(), body: Deferred::new("how to make it".into()) });
/// ctx.save_changes().await?;
///
/// let document = Document::query().filter(Document::BODY.contains("make")).one(&db).await?;
/// assert_eq!(document.body.get(), None);
/// let document = Document::query().including(Document::BODY).one(&db).await?;
/// assert_eq!(document.body.get().map(String::as_str), Some("how to make it"));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Deferred<T>(Option<T>);

impl<T> Deferred<T> {
    /// One that has a value.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// let body = Deferred::new("tea".to_owned());
    /// assert_eq!(body.into_inner().as_deref(), Some("tea"));
    /// ```
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// The value, if it was read or set.
    #[must_use]
    pub const fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// The value to be changed in its place, if it was read or set.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// let mut body = Deferred::new("tea".to_owned());
    /// if let Some(body) = body.get_mut() {
    ///     body.push('!');
    /// }
    /// assert_eq!(body.get().map(String::as_str), Some("tea!"));
    /// ```
    pub const fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()
    }

    /// Whether it was read or set.
    #[must_use]
    pub const fn is_loaded(&self) -> bool {
        self.0.is_some()
    }

    /// Gives it a value, whether or not it was read.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// let mut body = Deferred::default();
    /// assert!(!body.is_loaded());
    /// body.set("tea".to_owned());
    /// assert!(body.is_loaded());
    /// ```
    pub fn set(&mut self, value: T) {
        self.0 = Some(value);
    }

    /// The value itself, if it was read or set.
    #[must_use]
    pub fn into_inner(self) -> Option<T> {
        self.0
    }
}

/// Not loaded.
impl<T> Default for Deferred<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> From<T> for Deferred<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: fmt::Debug> fmt::Debug for Deferred<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("(not loaded)"),
        }
    }
}

impl<T: Serialize> Serialize for Deferred<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            // As the value alone: readers of other programs need not know that it is deferred.
            Some(value) => value.serialize(serializer),
            None => serializer.serialize_none(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Deferred<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}
