//! JSON text as a column value.

mod sound;

use serde::{Serialize, de::DeserializeOwned};

use crate::value::{
    ColumnType, JsonValue, Scalar, Storage, Value, ValueError, ValueRef, scalar::decode_str,
};

/// Any serde type, stored as JSON text; the column type of a field with `#[entity(json)]`.
///
/// A NUL character in a text is kept: it is escaped in JSON, so that no function of SQLite meets it before it asks for
/// that text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Json<T>(pub T);

impl<T: Serialize> Json<T> {
    /// The JSON text of a borrowed value.
    ///
    /// # Errors
    ///
    /// When serde refuses the value, as it does maps whose keys are not text; when a number in it is NaN or infinite,
    /// for which JSON has no word; when lists and maps are nested more than 127 deep.
    pub fn encode_ref(value: &T) -> Result<Value, ValueError> {
        sound::check(value)?;
        let text = serde_json::to_string(value)
            .map_err(|error| ValueError::new(format!("cannot be written as JSON: {error}")))?;
        Ok(Value::Text(text))
    }
}

/// Anything that serde can write, as JSON.
pub(crate) fn to_json(values: &(impl Serialize + ?Sized)) -> Result<JsonValue, ValueError> {
    sound::check(values)?;
    serde_json::to_value(values)
        .map_err(|error| ValueError::new(format!("cannot be written as JSON: {error}")))
}

impl<T: Serialize + DeserializeOwned> Scalar for Json<T> {}

impl<T: Serialize + DeserializeOwned> ColumnType for Json<T> {
    const STORAGE: Storage = Storage::Text;
    const LARGE: bool = true;

    fn encode(&self) -> Result<Value, ValueError> {
        Self::encode_ref(&self.0)
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        // serde's own message would quote the stored text; its category and place do not.
        serde_json::from_str(decode_str(value)?)
            .map(Self)
            .map_err(|error| {
                ValueError::new(format!(
                    "the stored text is not JSON of this type ({:?} error at line {}, column {})",
                    error.classify(),
                    error.line(),
                    error.column()
                ))
            })
    }

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        // serde's own message would quote the value.
        (serde_json::from_value(json.clone()).map(Self))
            .map_err(|_| ValueError::new("the JSON given is not of this type"))
    }
}

impl Scalar for serde_json::Value {}

impl ColumnType for serde_json::Value {
    const STORAGE: Storage = Storage::Text;
    const LARGE: bool = true;

    fn encode(&self) -> Result<Value, ValueError> {
        Json::encode_ref(self)
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        Json::decode(value).map(|Json(value)| value)
    }

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        Ok(json.clone())
    }
}
