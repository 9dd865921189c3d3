//! Text in its several owners, and types that are stored as what they print.

use std::{
    borrow::Cow,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use crate::value::{ColumnType, Scalar, Storage, Value, ValueError, ValueRef, scalar::decode_str};

macro_rules! owners {
    ($($type:ty),*) => {$(
        impl Scalar for $type {}

        impl ColumnType for $type {
            const STORAGE: Storage = Storage::Text;

            fn encode(&self) -> Result<Value, ValueError> {
                check_text(self)?;
                Ok(Value::Text(String::from(&**self)))
            }

            fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
                decode_str(value).map(|text| Self::from(text.to_owned()))
            }
        }
    )*};
}

owners!(String, Box<str>, Arc<str>, Cow<'static, str>);

/// Refuses text that SQLite's own functions would see cut.
pub(crate) fn check_text(text: &str) -> Result<(), ValueError> {
    if text.as_bytes().contains(&0) {
        return Err(ValueError::new(
            "the text contains a NUL character, at which SQLite's functions would cut it; store it as bytes",
        ));
    }
    Ok(())
}

macro_rules! printed {
    ($($type:ty, $otherwise:literal;)*) => {$(
        impl Scalar for $type {}

        impl ColumnType for $type {
            const STORAGE: Storage = Storage::Text;

            fn encode(&self) -> Result<Value, ValueError> {
                self.to_string().encode()
            }

            fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
                decode_str(value)?.parse().map_err(|_| ValueError::new($otherwise))
            }
        }
    )*};
}

printed! {
    char, "the stored text is not one character";
    IpAddr, "the stored text is no IP address";
    Ipv4Addr, "the stored text is no IPv4 address";
    Ipv6Addr, "the stored text is no IPv6 address";
}
