//! A value of any class as a column value: for tables of other programs, whose columns may hold a mixture.

use std::hash::{Hash, Hasher};

use crate::value::{
    ColumnType, KeyColumn, KeyOrigin, Scalar, Storage, Value, ValueError, ValueRef,
    text::check_text,
};

/// A `Real` is never NaN, so that every value equals itself.
impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null | Self::Unread => {}
            Self::Integer(value) => value.hash(state),
            // The two zeros are equal.
            Self::Real(value) => (value + 0.0).to_bits().hash(state),
            Self::Text(value) => value.hash(state),
            Self::Blob(value) => value.hash(state),
        }
    }
}

/// For tables of other programs, whose keys may be a mixture.
impl KeyColumn for Value {
    const ORIGIN: KeyOrigin = KeyOrigin::Application;

    fn is_unset(&self) -> bool {
        false
    }
}

impl Scalar for Value {}

/// Kept as it is, class and all. NULL is the `None` of an `Option<Value>`.
impl ColumnType for Value {
    const STORAGE: Storage = Storage::Any;
    const LARGE: bool = true;

    fn encode(&self) -> Result<Value, ValueError> {
        match self {
            Self::Null => Err(ValueError::new(
                "NULL is `None`: make the field an Option<Value>",
            )),
            Self::Unread => Err(ValueError::new("a column that was not read has no value")),
            Self::Real(value) => value.encode(),
            Self::Text(text) => check_text(text).map(|()| self.clone()),
            Self::Integer(_) | Self::Blob(_) => Ok(self.clone()),
        }
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        match value {
            ValueRef::Null | ValueRef::Unread => Err(ValueError::unexpected("a value", value)),
            value => value.to_value(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::value::{ColumnType, Value, ValueRef};

    #[test]
    fn every_class_is_kept_and_null_is_none() {
        let values = [
            Value::Integer(7),
            Value::Real(7.0),
            Value::Text("7".into()),
            Value::Blob(vec![7]),
        ];
        for value in values {
            let stored = value.encode().unwrap();
            assert_eq!(stored, value);
            assert_eq!(Value::decode(stored.as_ref()).unwrap(), value);
            assert_eq!(Option::decode(stored.as_ref()), Ok(Some(value)));
        }
        assert_eq!(None::<Value>.encode(), Ok(Value::Null));
        assert_eq!(Option::<Value>::decode(ValueRef::Null), Ok(None));
    }

    #[test]
    fn what_sqlite_would_not_keep_is_refused() {
        let refused = [
            Value::Null.encode().unwrap_err(),
            Value::Real(f64::NAN).encode().unwrap_err(),
            Value::Text("a\0b".into()).encode().unwrap_err(),
            Value::decode(ValueRef::Null).unwrap_err(),
            Value::decode(ValueRef::Text(b"\xff")).unwrap_err(),
        ];
        let refused: Vec<_> = refused.iter().map(ToString::to_string).collect();
        expect_test::expect![[r#"
            NULL is `None`: make the field an Option<Value>
            not a number: SQLite would store NULL; use an Option and None instead
            the text contains a NUL character, at which SQLite's functions would cut it; store it as bytes
            expected a value, found null
            the stored text is not UTF-8"#]]
        .assert_eq(&refused.join("\n"));
    }

    #[test]
    fn json_gives_the_class_that_it_has_itself() {
        let read = |json| Value::from_json(&json).map_err(|error| error.to_string());
        assert_eq!(read(json!(7)), Ok(Value::Integer(7)));
        assert_eq!(read(json!(7.5)), Ok(Value::Real(7.5)));
        assert_eq!(read(json!("7")), Ok(Value::Text("7".into())));
        assert_eq!(read(json!([7])), Ok(Value::Blob(vec![7])));
        assert_eq!(Option::<Value>::from_json(&json!(null)), Ok(None));
        assert_eq!(
            read(json!(true)),
            Err("expected a number, a string or an array of bytes, found a bool".into())
        );
        assert_eq!(
            read(json!(null)),
            Err("expected a value, found null".into())
        );
    }
}
