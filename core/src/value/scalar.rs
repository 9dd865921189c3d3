//! Numbers, bytes and UUIDs as column values.

use uuid::Uuid;

use crate::value::{
    ColumnType, JsonValue, Scalar, Storage, Value, ValueError, ValueRef,
    from_json::{expected, parsed},
};

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Scalar for $type {}

        impl ColumnType for $type {
            const STORAGE: Storage = Storage::Integer;
            #[allow(
                clippy::cast_possible_wrap,
                clippy::cast_lossless,
                reason = "i64 has all of these, and a constant takes no From"
            )]
            const RANGE: Option<(i64, i64)> = Some((<$type>::MIN as i64, <$type>::MAX as i64));

            fn encode(&self) -> Result<Value, ValueError> {
                Ok(Value::Integer(i64::from(*self)))
            }

            fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
                match value {
                    ValueRef::Integer(value) => Self::try_from(value).map_err(|_| {
                        ValueError::new(concat!("the stored integer is out of range for ", stringify!($type)))
                    }),
                    other => Err(ValueError::unexpected("an integer", other)),
                }
            }
        }
    )*};
}

integer!(i8, i16, i32, i64, u8, u16, u32);

impl Scalar for bool {}

impl ColumnType for bool {
    const STORAGE: Storage = Storage::Integer;

    fn encode(&self) -> Result<Value, ValueError> {
        Ok(Value::Integer(i64::from(*self)))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        match value {
            ValueRef::Integer(0) => Ok(false),
            ValueRef::Integer(1) => Ok(true),
            ValueRef::Integer(_) => Err(ValueError::new("a bool is stored as 0 or 1")),
            other => Err(ValueError::unexpected("an integer", other)),
        }
    }

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        json.as_bool().ok_or_else(|| expected("a bool", json))
    }
}

impl Scalar for f64 {}

/// Kept to the bit, infinities included; only the sign of a zero is not: SQLite stores `-0.0` as `0.0`, which is equal.
impl ColumnType for f64 {
    const STORAGE: Storage = Storage::Real;

    fn encode(&self) -> Result<Value, ValueError> {
        if self.is_nan() {
            return Err(ValueError::new(
                "not a number: SQLite would store NULL; use an Option and None instead",
            ));
        }
        Ok(Value::Real(*self))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        match value {
            ValueRef::Real(value) => Ok(value),
            // Tables that are not STRICT keep whole numbers as integers; beyond 2^53 some have no f64.
            #[allow(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                reason = "the way back shows whether the value was kept"
            )]
            ValueRef::Integer(value) if value as Self as i64 == value && value != i64::MAX => {
                Ok(value as Self)
            }
            ValueRef::Integer(_) => Err(ValueError::new(
                "the stored integer has no exact f64: use an i64 field",
            )),
            other => Err(ValueError::unexpected("a number", other)),
        }
    }
}

impl Scalar for f32 {}

/// Stored as the `f64` of the same value. A number of another program that is no `f32` is read as the nearest, and
/// stays as it is in the file.
impl ColumnType for f32 {
    const STORAGE: Storage = Storage::Real;

    fn encode(&self) -> Result<Value, ValueError> {
        f64::from(*self).encode()
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        let wide = f64::decode(value)?;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "rounding to the nearest f32 is what an f32 field asks for; overflow is refused"
        )]
        let narrow = wide as Self;
        if narrow.is_infinite() && wide.is_finite() {
            return Err(ValueError::new("the stored number is out of range for f32"));
        }
        Ok(narrow)
    }
}

/// Stored text, checked to be UTF-8.
pub(crate) fn decode_str(value: ValueRef<'_>) -> Result<&str, ValueError> {
    match value {
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).map_err(|_| ValueError::new("the stored text is not UTF-8"))
        }
        other => Err(ValueError::unexpected("text", other)),
    }
}

impl Scalar for Vec<u8> {}

impl ColumnType for Vec<u8> {
    const STORAGE: Storage = Storage::Blob;
    const LARGE: bool = true;

    fn encode(&self) -> Result<Value, ValueError> {
        Ok(Value::Blob(self.clone()))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        match value {
            ValueRef::Blob(bytes) => Ok(bytes.to_vec()),
            other => Err(ValueError::unexpected("a blob", other)),
        }
    }
}

impl Scalar for Uuid {}

/// Stored as its 16 bytes, as sqlx does too; version 7 sorts by time.
impl ColumnType for Uuid {
    const STORAGE: Storage = Storage::Blob;

    fn encode(&self) -> Result<Value, ValueError> {
        Ok(Value::Blob(self.as_bytes().to_vec()))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        match value {
            ValueRef::Blob(bytes) => {
                Self::from_slice(bytes).map_err(|_| ValueError::new("a UUID has 16 bytes"))
            }
            other => Err(ValueError::unexpected("a blob of 16 bytes", other)),
        }
    }

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        parsed(json, "a UUID", |text| Self::parse_str(text).ok())
    }
}
