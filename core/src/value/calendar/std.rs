//! The duration of the standard library.

use std::time::Duration;

use crate::value::{
    ColumnType, Scalar, Storage, Value, ValueError, ValueRef, calendar::encode_nanoseconds,
};

impl Scalar for Duration {}

impl ColumnType for Duration {
    const STORAGE: Storage = Storage::Integer;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_nanoseconds(i64::try_from(self.as_nanos()).ok())
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        let nanoseconds = u64::try_from(i64::decode(value)?);
        nanoseconds
            .map(Self::from_nanos)
            .map_err(|_| ValueError::new("the stored duration is negative: use a signed one"))
    }
}
