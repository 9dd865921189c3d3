//! Dates and times: one fixed-width UTC text form that sorts as time, whichever crate the type is of.
//!
//! `2013-01-01 10:00:00.000000000`: what SQLite's own functions read, nanoseconds included, so that equal
//! instants are equal text and order is time order. SQLite's `CURRENT_TIMESTAMP` is its prefix up to the second.
//! Durations are integers of nanoseconds: exact, ordered and summed rightly in SQL; 292 years either way.

mod chrono;
#[cfg(feature = "jiff")]
mod jiff;
mod std;
#[cfg(feature = "time")]
mod time;

use crate::value::{Value, ValueError, ValueRef, scalar::decode_str};

/// A day, not known to be one of the calendar.
#[derive(Clone, Copy)]
struct Day {
    year: i32,
    month: u8,
    day: u8,
}

/// A time of day, not known to be one of a clock.
#[derive(Clone, Copy)]
struct Clock {
    hour: u8,
    minute: u8,
    second: u8,
    nanosecond: u32,
}

fn encode_day(day: Day) -> Result<Value, ValueError> {
    let mut text = String::with_capacity(10);
    push_day(&mut text, day)?;
    Ok(Value::Text(text))
}

fn encode_clock(clock: Clock) -> Result<Value, ValueError> {
    let mut text = String::with_capacity(18);
    push_clock(&mut text, clock)?;
    Ok(Value::Text(text))
}

/// Both are in UTC, or in no zone at all.
fn encode_moment(day: Day, clock: Clock) -> Result<Value, ValueError> {
    let mut text = String::with_capacity(29);
    push_day(&mut text, day)?;
    text.push(' ');
    push_clock(&mut text, clock)?;
    Ok(Value::Text(text))
}

fn encode_nanoseconds(nanoseconds: Option<i64>) -> Result<Value, ValueError> {
    nanoseconds.map(Value::Integer).ok_or_else(|| {
        ValueError::new("a duration is stored in nanoseconds: 292 years are the most")
    })
}

fn decode_day<T>(
    value: ValueRef<'_>,
    make: impl FnOnce(Day) -> Option<T>,
) -> Result<T, ValueError> {
    parse_day(decode_str(value)?.as_bytes())
        .and_then(make)
        .ok_or_else(|| ValueError::new("the stored text is no date (YYYY-MM-DD)"))
}

fn decode_clock<T>(
    value: ValueRef<'_>,
    make: impl FnOnce(Clock) -> Option<T>,
) -> Result<T, ValueError> {
    parse_clock(decode_str(value)?.as_bytes())
        .and_then(make)
        .ok_or_else(|| ValueError::new("the stored text is no time of day (HH:MM:SS)"))
}

/// `make` is handed the local day and clock, and by how many seconds they are ahead of UTC.
fn decode_moment<T>(
    value: ValueRef<'_>,
    make: impl FnOnce(Day, Clock, i32) -> Option<T>,
) -> Result<T, ValueError> {
    parse_moment(decode_str(value)?.as_bytes())
        .and_then(|(day, clock, ahead)| make(day, clock, ahead))
        .ok_or_else(|| ValueError::new("the stored text is no date and time in UTC"))
}

fn years() -> ValueError {
    ValueError::new("the year is outside of 0000 to 9999, where text sorts as time")
}

fn push_day(text: &mut String, day: Day) -> Result<(), ValueError> {
    let Ok(year @ 0..=9999) = u32::try_from(day.year) else {
        return Err(years());
    };
    push_digits(text, year, 4);
    text.push('-');
    push_digits(text, u32::from(day.month), 2);
    text.push('-');
    push_digits(text, u32::from(day.day), 2);
    Ok(())
}

fn push_clock(text: &mut String, clock: Clock) -> Result<(), ValueError> {
    if clock.second > 59 || clock.nanosecond > 999_999_999 {
        return Err(ValueError::new("a leap second cannot be stored"));
    }
    push_digits(text, u32::from(clock.hour), 2);
    text.push(':');
    push_digits(text, u32::from(clock.minute), 2);
    text.push(':');
    push_digits(text, u32::from(clock.second), 2);
    text.push('.');
    push_digits(text, clock.nanosecond, 9);
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

/// Our own form, and what other programs write: `T` for the space, 0 to 9 digits of a second, `Z` or an offset
/// at the end.
fn parse_moment(text: &[u8]) -> Option<(Day, Clock, i32)> {
    let (day, rest) = text.split_at_checked(10)?;
    let [b' ' | b'T', rest @ ..] = rest else {
        return None;
    };
    let zone = rest
        .iter()
        .position(|byte| matches!(byte, b'Z' | b'+' | b'-'));
    let (clock, zone) = rest.split_at(zone.unwrap_or(rest.len()));
    Some((parse_day(day)?, parse_clock(clock)?, parse_zone(zone)?))
}

/// By how many seconds a zone is ahead of UTC.
fn parse_zone(zone: &[u8]) -> Option<i32> {
    let [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] = zone else {
        return matches!(zone, b"" | b"Z").then_some(0);
    };
    let (hours, minutes) = (pair(*h1, *h2)?, pair(*m1, *m2)?);
    let seconds = i32::from(hours) * 3600 + i32::from(minutes) * 60;
    (hours < 24 && minutes < 60).then_some(if *sign == b'+' { seconds } else { -seconds })
}

fn parse_day(text: &[u8]) -> Option<Day> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else {
        return None;
    };
    Some(Day {
        year: i32::from(pair(*y1, *y2)?) * 100 + i32::from(pair(*y3, *y4)?),
        month: pair(*m1, *m2)?,
        day: pair(*d1, *d2)?,
    })
}

fn parse_clock(text: &[u8]) -> Option<Clock> {
    let [h1, h2, b':', m1, m2, rest @ ..] = text else {
        return None;
    };
    let (second, nanosecond) = match rest {
        [] => (0, 0),
        [b':', s1, s2] => (pair(*s1, *s2)?, 0),
        [b':', s1, s2, b'.', fraction @ ..] => (pair(*s1, *s2)?, parse_fraction(fraction)?),
        _ => return None,
    };
    Some(Clock {
        hour: pair(*h1, *h2)?,
        minute: pair(*m1, *m2)?,
        second,
        nanosecond,
    })
}

/// One to nine digits after the point, as nanoseconds.
fn parse_fraction(digits: &[u8]) -> Option<u32> {
    if !(1..=9).contains(&digits.len()) {
        return None;
    }
    (0..9).try_fold(0, |number, place| {
        Some(number * 10 + u32::from(digits.get(place).map_or(Some(0), |it| digit(*it))?))
    })
}

fn pair(tens: u8, ones: u8) -> Option<u8> {
    Some(digit(tens)? * 10 + digit(ones)?)
}

fn digit(byte: u8) -> Option<u8> {
    byte.is_ascii_digit().then(|| byte - b'0')
}
