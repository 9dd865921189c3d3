//! jiff's types. A `ZonedDateTime` is none: keep its instant, and the name of its zone in a column of its own.

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Time},
    tz::Offset,
};

use crate::value::{
    ColumnType, Scalar, Storage, Value, ValueError, ValueRef,
    calendar::{
        Clock, Day, decode_clock, decode_day, decode_moment, encode_clock, encode_day,
        encode_moment, encode_nanoseconds,
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

impl Scalar for DateTime {}

impl ColumnType for DateTime {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_moment(day(self.date()), clock(self.time()))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        decode_moment(value, |day, clock, ahead| {
            let local = Self::from_parts(date(day)?, time(clock)?);
            local
                .checked_sub(SignedDuration::from_secs(ahead.into()))
                .ok()
        })
    }
}

impl Scalar for Timestamp {}

impl ColumnType for Timestamp {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        Offset::UTC.to_datetime(*self).encode()
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        Offset::UTC
            .to_timestamp(DateTime::decode(value)?)
            .map_err(|_| {
                ValueError::new("the stored instant is beyond the last that a Timestamp can be")
            })
    }
}

impl Scalar for SignedDuration {}

impl ColumnType for SignedDuration {
    const STORAGE: Storage = Storage::Integer;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_nanoseconds(i64::try_from(self.as_nanos()).ok())
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        i64::decode(value).map(Self::from_nanos)
    }
}

fn day(date: Date) -> Day {
    Day {
        year: date.year().into(),
        month: date.month().unsigned_abs(),
        day: date.day().unsigned_abs(),
    }
}

fn date(day: Day) -> Option<Date> {
    let year = i16::try_from(day.year).ok()?;
    let (month, day) = (i8::try_from(day.month).ok()?, i8::try_from(day.day).ok()?);
    Date::new(year, month, day).ok()
}

fn clock(time: Time) -> Clock {
    Clock {
        hour: time.hour().unsigned_abs(),
        minute: time.minute().unsigned_abs(),
        second: time.second().unsigned_abs(),
        nanosecond: time.subsec_nanosecond().unsigned_abs(),
    }
}

fn time(clock: Clock) -> Option<Time> {
    Time::new(
        i8::try_from(clock.hour).ok()?,
        i8::try_from(clock.minute).ok()?,
        i8::try_from(clock.second).ok()?,
        i32::try_from(clock.nanosecond).ok()?,
    )
    .ok()
}
