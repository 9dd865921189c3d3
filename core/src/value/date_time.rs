//! Dates and times: one fixed-width UTC text form that sorts as time.
//!
//! `2013-01-01 10:00:00.000000000`: what SQLite's own functions read, nanoseconds included, so that equal
//! instants are equal text and order is time order. SQLite's `CURRENT_TIMESTAMP` is its prefix up to the second.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc};

use crate::value::{
    ColumnType, JsonValue, Scalar, Storage, Value, ValueError, ValueRef, from_json::parsed,
    scalar::decode_str,
};

impl Scalar for NaiveDateTime {}

impl ColumnType for NaiveDateTime {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        let mut text = String::with_capacity(29);
        push_date(&mut text, self.date())?;
        text.push(' ');
        push_time(&mut text, self.time())?;
        Ok(Value::Text(text))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        parse_date_time(decode_str(value)?)
            .ok_or_else(|| ValueError::new("the stored text is no date and time in UTC"))
    }

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        parsed(
            json,
            "a date and time (YYYY-MM-DDTHH:MM:SSZ)",
            parse_date_time,
        )
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

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        NaiveDateTime::from_json(json).map(|date_time| date_time.and_utc())
    }
}

impl Scalar for NaiveDate {}

impl ColumnType for NaiveDate {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        let mut text = String::with_capacity(10);
        push_date(&mut text, *self)?;
        Ok(Value::Text(text))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        parse_date(decode_str(value)?.as_bytes())
            .ok_or_else(|| ValueError::new("the stored text is no date (YYYY-MM-DD)"))
    }

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        parsed(json, "a date (YYYY-MM-DD)", |text| {
            parse_date(text.as_bytes())
        })
    }
}

impl Scalar for NaiveTime {}

impl ColumnType for NaiveTime {
    const STORAGE: Storage = Storage::Text;

    fn encode(&self) -> Result<Value, ValueError> {
        let mut text = String::with_capacity(18);
        push_time(&mut text, *self)?;
        Ok(Value::Text(text))
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        parse_time(decode_str(value)?.as_bytes())
            .ok_or_else(|| ValueError::new("the stored text is no time of day (HH:MM:SS)"))
    }

    fn from_json(json: &JsonValue) -> Result<Self, ValueError> {
        parsed(json, "a time of day (HH:MM:SS)", |text| {
            parse_time(text.as_bytes())
        })
    }
}

impl Scalar for TimeDelta {}

/// Stored as whole nanoseconds: exact, ordered and summed rightly in SQL; 292 years either way.
impl ColumnType for TimeDelta {
    const STORAGE: Storage = Storage::Integer;

    fn encode(&self) -> Result<Value, ValueError> {
        self.num_nanoseconds().map(Value::Integer).ok_or_else(|| {
            ValueError::new("a duration is stored in nanoseconds: 292 years are the most")
        })
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        i64::decode(value).map(Self::nanoseconds)
    }
}

fn push_date(text: &mut String, date: NaiveDate) -> Result<(), ValueError> {
    let Ok(year @ 0..=9999) = u32::try_from(date.year()) else {
        return Err(ValueError::new(
            "the year is outside of 0000 to 9999, where text sorts as time",
        ));
    };
    push_digits(text, year, 4);
    text.push('-');
    push_digits(text, date.month(), 2);
    text.push('-');
    push_digits(text, date.day(), 2);
    Ok(())
}

fn push_time(text: &mut String, time: NaiveTime) -> Result<(), ValueError> {
    if time.nanosecond() >= 1_000_000_000 {
        return Err(ValueError::new("a leap second cannot be stored"));
    }
    push_digits(text, time.hour(), 2);
    text.push(':');
    push_digits(text, time.minute(), 2);
    text.push(':');
    push_digits(text, time.second(), 2);
    text.push('.');
    push_digits(text, time.nanosecond(), 9);
    Ok(())
}

fn push_digits(text: &mut String, number: u32, width: usize) {
    let mut digits = [b'0'; 9];
    let mut rest = number;
    for digit in digits[..width].iter_mut().rev() {
        *digit += u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
    }
    text.extend(digits[..width].iter().map(|digit| char::from(*digit)));
}

/// Our own form, and what other programs write: `T` for the space, 0 to 9 digits of a second, `Z` or `+00:00`
/// at the end. An offset other than zero is converted.
fn parse_date_time(text: &str) -> Option<NaiveDateTime> {
    let bytes = text.as_bytes();
    if bytes.len() < 16 || !matches!(bytes[10], b' ' | b'T') {
        return None;
    }
    let date = parse_date(&bytes[..10])?;
    let rest = &bytes[11..];
    let zone = rest
        .iter()
        .position(|byte| matches!(byte, b'Z' | b'+' | b'-'));
    let (time, zone) = rest.split_at(zone.unwrap_or(rest.len()));
    let local = date.and_time(parse_time(time)?);
    match zone {
        b"" | b"Z" => Some(local),
        [sign, h1, h2, b':', m1, m2] => {
            let hours = number(&[*h1, *h2])?;
            let minutes = number(&[*m1, *m2])?;
            let offset = TimeDelta::minutes(i64::from(hours * 60 + minutes));
            if *sign == b'+' {
                local.checked_sub_signed(offset)
            } else {
                local.checked_add_signed(offset)
            }
        }
        _ => None,
    }
}

fn parse_date(bytes: &[u8]) -> Option<NaiveDate> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = bytes else {
        return None;
    };
    NaiveDate::from_ymd_opt(
        i32::try_from(number(&[*y1, *y2, *y3, *y4])?).ok()?,
        number(&[*m1, *m2])?,
        number(&[*d1, *d2])?,
    )
}

fn parse_time(bytes: &[u8]) -> Option<NaiveTime> {
    let [h1, h2, b':', m1, m2, rest @ ..] = bytes else {
        return None;
    };
    let (seconds, nanoseconds) = match rest {
        [] => (0, 0),
        [b':', s1, s2] => (number(&[*s1, *s2])?, 0),
        [b':', s1, s2, b'.', fraction @ ..] if (1..=9).contains(&fraction.len()) => {
            let scale = 10_u32.pow(9 - u32::try_from(fraction.len()).ok()?);
            (number(&[*s1, *s2])?, number(fraction)? * scale)
        }
        _ => return None,
    };
    NaiveTime::from_hms_nano_opt(
        number(&[*h1, *h2])?,
        number(&[*m1, *m2])?,
        seconds,
        nanoseconds,
    )
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + u32::from(digit - b'0'))
    })
}
