//! Anything that serde can write, as JSON; but for numbers that JSON has not, which serde_json would make `null`.

use std::fmt;

use serde::{
    Serialize, Serializer,
    ser::{
        self, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};

use crate::value::{JsonValue, ValueError};

/// The values as JSON.
pub(crate) fn to_json(values: &(impl Serialize + ?Sized)) -> Result<JsonValue, ValueError> {
    (values.serialize(Finite)).map_err(|Refused(message)| ValueError::new(message))?;
    serde_json::to_value(values)
        .map_err(|error| ValueError::new(format!("cannot be written as JSON: {error}")))
}

/// Looks at every number on the way, and writes nothing.
#[derive(Clone, Copy)]
struct Finite;

#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(format!("cannot be written as JSON: {message}"))
    }
}

type Checked = Result<(), Refused>;

macro_rules! fine {
    ($($function:ident: $type:ty),*) => {$(
        fn $function(self, _value: $type) -> Checked {
            Ok(())
        }
    )*};
}

impl Serializer for Finite {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fine!(
        serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
        serialize_unit_struct: &'static str
    );

    fn serialize_f32(self, value: f32) -> Checked {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Checked {
        if value.is_finite() {
            return Ok(());
        }
        Err(Refused(
            "holds a number that is not finite, which JSON has not: set the field itself"
                .to_owned(),
        ))
    }

    fn serialize_none(self) -> Checked {
        Ok(())
    }

    fn serialize_unit(self) -> Checked {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Checked {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Checked {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Checked {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Checked {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Refused> {
        Ok(self)
    }
}

macro_rules! parts {
    ($($part:ident::$function:ident($($name:ty)?)),*) => {$(
        impl $part for Finite {
            type Ok = ();
            type Error = Refused;

            fn $function<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Checked {
                value.serialize(*self)
            }

            fn end(self) -> Checked {
                Ok(())
            }
        }
    )*};
}

parts!(
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(&'static str),
    SerializeStructVariant::serialize_field(&'static str)
);

impl SerializeMap for Finite {
    type Ok = ();
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _key: &T) -> Checked {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Checked {
        value.serialize(*self)
    }

    fn end(self) -> Checked {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::json;

    use crate::value::to_json::to_json;

    #[derive(Serialize)]
    enum Part {
        None,
        One(f64),
        Two(f64, f64),
        Named { part: f64 },
    }

    #[derive(Serialize)]
    struct Whole {
        parts: Vec<Part>,
        pair: (u8, Option<f32>),
        named: BTreeMap<String, f64>,
    }

    fn whole(number: f64) -> [Whole; 6] {
        let whole = |parts, pair, named: f64| Whole {
            parts,
            pair: (1, pair),
            named: BTreeMap::from([("a".to_owned(), named)]),
        };
        #[allow(clippy::cast_possible_truncation, reason = "NaN stays what it is")]
        let narrow = number as f32;
        [
            whole(vec![Part::None, Part::One(number)], None, 1.0),
            whole(vec![Part::Two(1.0, number)], None, 1.0),
            whole(vec![Part::Named { part: number }], None, 1.0),
            whole(vec![], Some(narrow), 1.0),
            whole(vec![], None, number),
            whole(vec![], Some(narrow), number),
        ]
    }

    #[test]
    fn a_number_that_json_has_not_is_found_wherever_it_is() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for values in whole(number) {
                assert!(to_json(&values).is_err());
            }
        }
        for values in whole(0.5) {
            to_json(&values).unwrap();
        }
        assert_eq!(to_json(&json!({"a": [null]})), Ok(json!({"a": [null]})));
    }
}
