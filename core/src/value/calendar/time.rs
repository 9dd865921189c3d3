//! The types of the crate `time`.

use time::{Date, Duration, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcDateTime};

use crate::value::{
    ColumnType, Scalar, Storage, Value, ValueError, ValueRef,
    calendar::{
        Clock, Day, decode_clock, decode_day, decode_moment, encode_clock, encode_day,
        encode_moment, encode_nanoseconds, years,
    },
};

impl Scalar for Date {}

impl ColumnType for Date {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_day(day(*self))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        decode_day(value, date)
    }
}

impl Scalar for Time {}

impl ColumnType for Time {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_clock(clock(*self))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        decode_clock(value, time)
    }
}

impl Scalar for PrimitiveDateTime {}

impl ColumnType for PrimitiveDateTime {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_moment(day(self.date()), clock(self.time()))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        decode_moment(value, |day, clock, ahead| {
            let local = Self::new(date(day)?, time(clock)?);
            local.checked_sub(Duration::seconds(ahead.into()))
        })
    }
}

impl Scalar for UtcDateTime {}

impl ColumnType for UtcDateTime {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_moment(day(self.date()), clock(self.time()))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        PrimitiveDateTime::decode(value).map(PrimitiveDateTime::as_utc)
    }
}

impl Scalar for OffsetDateTime {}

/// The instant is kept, the offset is not: it comes back at offset zero, an equal value. An offset that matters
/// needs a column of its own.
impl ColumnType for OffsetDateTime {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        self.checked_to_utc().ok_or_else(years)?.encode()
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        PrimitiveDateTime::decode(value).map(PrimitiveDateTime::assume_utc)
    }
}

impl Scalar for Duration {}

impl ColumnType for Duration {
    const STORAGE: Storage = Storage::Integer;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_nanoseconds(i64::try_from(self.whole_nanoseconds()).ok())
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        i64::decode(value).map(Self::nanoseconds)
    }
}

fn day(date: Date) -> Day {
    Day {
        year: date.year(),
        month: date.month().into(),
        day: date.day(),
    }
}

fn date(day: Day) -> Option<Date> {
    let month = Month::try_from(day.month).ok()?;
    Date::from_calendar_date(day.year, month, day.day).ok()
}

fn clock(time: Time) -> Clock {
    let (hour, minute, second, nanosecond) = time.as_hms_nano();
    Clock {
        hour,
        minute,
        second,
        nanosecond,
    }
}

fn time(clock: Clock) -> Option<Time> {
    Time::from_hms_nano(clock.hour, clock.minute, clock.second, clock.nanosecond).ok()
}
