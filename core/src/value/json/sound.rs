//! What serde_json would write without a word, and not read back.
//!
//! It writes NaN and the infinities as `null`, and values that are nested more deeply than it is willing to read.

use std::fmt;

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::value::ValueError;

/// serde_json reads lists and maps in each other up to this depth.
const DEPTH: usize = 127;

/// Refuses what would not come back as it was.
pub(in crate::value) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), ValueError> {
    value
        .serialize(Sound { depth: 0 })
        .map_err(|Unsound(error)| error)
}

/// Writes nothing, and looks.
#[derive(Clone, Copy)]
struct Sound {
    depth: usize,
}

#[derive(Debug)]
struct Unsound(ValueError);

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unsound {}

impl Error for Unsound {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(ValueError::new(format!(
            "cannot be written as JSON: {message}"
        )))
    }
}

impl Sound {
    fn deeper(self, by: usize) -> Result<Self, Unsound> {
        let depth = self.depth + by;
        if depth > DEPTH {
            return Err(Unsound(ValueError::new(
                "lists and maps are nested too deeply to be read back from JSON: 127 are the most",
            )));
        }
        Ok(Self { depth })
    }
}

macro_rules! fine {
    ($($method:ident($($type:ty)?);)*) => {$(
        fn $method(self $(, _: $type)?) -> Result<(), Unsound> {
            Ok(())
        }
    )*};
}

impl Serializer for Sound {
    type Ok = ();
    type Error = Unsound;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fine! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
    }

    fn serialize_f32(self, value: f32) -> Result<(), Unsound> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Unsound> {
        if value.is_finite() {
            return Ok(());
        }
        Err(Unsound(ValueError::new(
            "JSON has no NaN and no infinity: null would be stored",
        )))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unsound> {
        value.serialize(self)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<(), Unsound> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unsound> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unsound> {
        value.serialize(self.deeper(1)?)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Unsound> {
        self.deeper(1)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Unsound> {
        self.deeper(1)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Unsound> {
        self.deeper(1)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unsound> {
        self.deeper(2)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Unsound> {
        self.deeper(1)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unsound> {
        self.deeper(1)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unsound> {
        self.deeper(2)
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result<(), Unsound> {
        Ok(())
    }
}

macro_rules! parts {
    ($($compound:ident: $method:ident($($name:ty)?);)*) => {$(
        impl $compound for Sound {
            type Ok = ();
            type Error = Unsound;

            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Result<(), Unsound> {
                value.serialize(*self)
            }

            fn end(self) -> Result<(), Unsound> {
                Ok(())
            }
        }
    )*};
}

parts! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeStruct: serialize_field(&'static str);
    SerializeStructVariant: serialize_field(&'static str);
}

impl SerializeMap for Sound {
    type Ok = ();
    type Error = Unsound;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unsound> {
        key.serialize(*self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unsound> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Unsound> {
        Ok(())
    }
}
