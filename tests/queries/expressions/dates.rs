//! Parts of dates, of the types of all crates.

use chrono::{Datelike as _, Timelike as _};

use crate::expressions::thing::{Thing, thing, things};

#[tokio::test]
async fn parts_of_dates_are_those_that_the_crates_tell() {
    let db = things().await;
    let query = Thing::query().order_by(Thing::ID.asc());
    let at = (
        Thing::AT.year(),
        Thing::AT.month(),
        Thing::AT.day(),
        Thing::AT.hour(),
        Thing::AT.minute(),
        Thing::AT.weekday(),
        Thing::AT.date(),
    );
    let rows = query.clone().select(at).all(&db).await.unwrap();
    let days = (
        Thing::DAY.year(),
        Thing::DAY.weekday(),
        Thing::DAY.day(),
        Thing::DAY.date(),
    );
    let days = query.clone().select(days).all(&db).await.unwrap();
    let others = (
        Thing::STAMP.year(),
        Thing::STAMP.weekday(),
        Thing::STAMP.date(),
        Thing::MOMENT.month(),
        Thing::MOMENT.hour(),
        Thing::MOMENT.date(),
    );
    let others = query.select(others).all(&db).await.unwrap();
    for (number, ((at, day), other)) in (1..).zip(rows.into_iter().zip(days).zip(others)) {
        let thing = thing(number);
        let it = thing.at;
        let expected = (
            i64::from(it.year()),
            i64::from(it.month()),
            i64::from(it.day()),
            i64::from(it.hour()),
            i64::from(it.minute()),
            i64::from(it.weekday().num_days_from_sunday()),
            it.date_naive(),
        );
        assert_eq!(at, expected);
        let expected = (
            thing.day.map(|day| i64::from(day.year())),
            thing
                .day
                .map(|day| i64::from(day.weekday().num_days_from_sunday())),
            thing.day.map(|day| i64::from(day.day())),
            thing.day,
        );
        assert_eq!(day, expected);
        let stamp = jiff::tz::Offset::UTC.to_datetime(thing.stamp);
        assert_eq!(other.0, i64::from(stamp.year()));
        assert_eq!(other.1, i64::from(stamp.weekday().to_sunday_zero_offset()));
        assert_eq!(other.2.to_string(), stamp.date().to_string());
        assert_eq!(other.3, i64::from(u8::from(thing.moment.month())));
        assert_eq!(other.4, i64::from(thing.moment.hour()));
        assert_eq!(other.5.to_string(), thing.moment.date().to_string());
    }
}

#[tokio::test]
async fn days_between_dates_have_fractions() {
    let db = things().await;
    let since = (
        Thing::AT.days_since(Thing::AT),
        Thing::DAY.days_since(chrono::NaiveDate::from_ymd_opt(2024, 2, 1).unwrap()),
        Thing::MOMENT.days_since(thing(1).moment),
    );
    let rows = Thing::query()
        .order_by(Thing::ID.asc())
        .select(since)
        .all(&db)
        .await
        .unwrap();
    for (number, (none, day, moment)) in (1..).zip(rows) {
        let thing_ = thing(number);
        assert!(none.abs() < 1e-9);
        let expected = thing_.day.map(|day| f64::from(day.day() - 1));
        assert_eq!(day, expected);
        let expected = (thing_.moment - thing(1).moment).as_seconds_f64() / 86_400.0;
        assert!((moment - expected).abs() < 1e-6, "{moment} {expected}");
    }
    let late = Thing::query()
        .filter(Thing::AT.year().ge(1970).and(Thing::AT.hour().lt(12)))
        .count(&db)
        .await
        .unwrap();
    let expected = (1..=12)
        .map(thing)
        .filter(|it| it.at.year() >= 1970 && it.at.hour() < 12)
        .count();
    assert_eq!(late, expected as u64);
}
