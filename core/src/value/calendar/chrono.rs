//! chrono's types.

use chrono::{
    DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc,
};

use crate::value::{
    ColumnType, Scalar, Storage, Value, ValueError, ValueRef,
    calendar::{
        Clock, Day, decode_clock, decode_day, decode_moment, encode_clock, encode_day,
        encode_moment, encode_nanoseconds,
    },
};

impl Scalar for NaiveDate {}

impl ColumnType for NaiveDate {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_day(day(*self))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        decode_day(value, date)
    }
}

impl Scalar for NaiveTime {}

impl ColumnType for NaiveTime {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_clock(clock(*self))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        decode_clock(value, time)
    }
}

impl Scalar for NaiveDateTime {}

impl ColumnType for NaiveDateTime {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_moment(day(self.date()), clock(self.time()))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        decode_moment(value, |day, clock, ahead| {
            let local = date(day)?.and_time(time(clock)?);
            local.checked_sub_signed(TimeDelta::seconds(i64::from(ahead)))
        })
    }
}

impl Scalar for DateTime<Utc> {}

impl ColumnType for DateTime<Utc> {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        self.naive_utc().encode()
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        NaiveDateTime::decode(value).map(|date_time| date_time.and_utc())
    }
}

impl Scalar for DateTime<FixedOffset> {}

/// The instant is kept, the offset is not: it comes back at offset zero, an equal value. An offset that matters
/// needs a column of its own.
impl ColumnType for DateTime<FixedOffset> {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        self.naive_utc().encode()
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        NaiveDateTime::decode(value).map(|date_time| date_time.and_utc().fixed_offset())
    }
}

impl Scalar for TimeDelta {}

impl ColumnType for TimeDelta {
    const STORAGE: Storage = Storage::Integer;

    fn encode(&self) -> Result<Value, ValueError> {
        encode_nanoseconds(self.num_nanoseconds())
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        i64::decode(value).map(Self::nanoseconds)
    }
}

fn day(date: NaiveDate) -> Day {
    Day {
        year: date.year(),
        month: narrow(date.month()),
        day: narrow(date.day()),
    }
}

fn date(day: Day) -> Option<NaiveDate> {
    NaiveDate::from_ymd_opt(day.year, day.month.into(), day.day.into())
}

/// A leap second is a second with more than a thousand million nanoseconds here.
fn clock(time: NaiveTime) -> Clock {
    Clock {
        hour: narrow(time.hour()),
        minute: narrow(time.minute()),
        second: narrow(time.second()),
        nanosecond: time.nanosecond(),
    }
}

fn time(clock: Clock) -> Option<NaiveTime> {
    let (hour, minute, second) = (clock.hour, clock.minute, clock.second);
    NaiveTime::from_hms_nano_opt(hour.into(), minute.into(), second.into(), clock.nanosecond)
}

/// Months, days, hours, minutes and seconds are below 100.
fn narrow(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
