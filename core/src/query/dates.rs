//! Parts of dates and times.

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, Utc};

use crate::{
    entity::{Column, Entity},
    query::{Expr, Nullable, Part, part::Node},
    sql::Term,
    value::{Scalar, Value},
};

/// A column type whose values begin with a date: instants, dates with a time, and dates, of any of the crates for them.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::Dated};
///
/// fn in_year<E: Entity, T: Dated<Required = T>>(column: Column<E, T>) -> Expr<E, T::Like<i64>> {
///     column.year()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a column of type `{Self}` has no date",
    label = "neither a date nor an instant"
)]
pub trait Dated: Nullable {}

/// A [`Dated`] column type whose values have a time of day as well.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{entity::Column, query::Timed};
///
/// fn at_hour<E: Entity, T: Timed>(column: Column<E, T>) -> Expr<E, T::Like<i64>> {
///     column.hour()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a column of type `{Self}` has no time of day",
    label = "no instant, and no date with a time"
)]
pub trait Timed: Dated {}

macro_rules! dated {
    ($($type:ty),*) => {$(
        impl Dated for $type {}
    )*};
}

macro_rules! timed {
    ($($type:ty),*) => {$(
        impl Dated for $type {}

        impl Timed for $type {}
    )*};
}

timed!(DateTime<Utc>, DateTime<FixedOffset>, NaiveDateTime);
dated!(NaiveDate);
#[cfg(feature = "jiff")]
timed!(jiff::Timestamp, jiff::civil::DateTime);
#[cfg(feature = "jiff")]
dated!(jiff::civil::Date);
#[cfg(feature = "time")]
timed!(
    time::UtcDateTime,
    time::OffsetDateTime,
    time::PrimitiveDateTime
);
#[cfg(feature = "time")]
dated!(time::Date);

impl<T: Dated + Scalar> Dated for Option<T> {}

impl<T: Timed + Scalar> Timed for Option<T> {}

/// The time at which the statement runs, the same in all of it.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::now;
/// use chrono::{DateTime, Utc};
///
/// #[derive(Debug, Entity)]
/// struct Offer {
///     #[entity(id)]
///     id: i64,
///     until: DateTime<Utc>,
/// }
/// let open = Offer::query().filter(Offer::UNTIL.ge(now()));
/// ```
#[must_use]
pub fn now<E: Entity>() -> Expr<E, DateTime<Utc>> {
    let text = |text: &str| Term::Value(Value::Text(text.to_owned()));
    let milliseconds = Term::Call {
        function: "strftime",
        args: vec![text("%Y-%m-%d %H:%M:%f"), text("now")],
    };
    // As wide as all instants are.
    let now = Term::Infix {
        left: Box::new(milliseconds),
        operator: " || ",
        right: Box::new(text("000000")),
    };
    Node::of(Ok(now)).into_expr()
}

/// # Parts of dates
///
/// In UTC, as dates and instants are stored.
///
/// ```
/// # use anabranch::prelude::*;
/// use chrono::{DateTime, NaiveDate, Utc};
///
/// # #[derive(Debug, Entity)]
/// # struct Visit { #[entity(id)] id: i64, day: NaiveDate, at: DateTime<Utc> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Visit>().await?;
/// # let mut ctx = db.context();
/// # let day = "2026-02-28".parse().unwrap();
/// # let at = "2026-02-28T12:30:00Z".parse().unwrap();
/// # ctx.add(Visit { id: 0, day, at });
/// # ctx.save_changes().await?;
/// let parts = Visit::query()
///     .select((Visit::AT.year(), Visit::AT.month(), Visit::AT.day(), Visit::AT.weekday(), Visit::AT.date()))
///     .one(&db)
///     .await?;
/// assert_eq!((parts.0, parts.1, parts.2, parts.3), (2026, 2, 28, 6)); // a Saturday
/// assert_eq!(parts.4.to_string(), "2026-02-28");
/// let since = Visit::DAY.days_since(NaiveDate::from_ymd_opt(2026, 2, 1).unwrap());
/// assert_eq!(Visit::query().select(since).one(&db).await?, 27.0);
/// let time = Visit::query().select((Visit::AT.hour(), Visit::AT.minute())).one(&db).await?;
/// assert_eq!(time, (12, 30));
/// # Ok(()) }
/// ```
impl<E: Entity, T: Dated, P: Part> Column<E, T, P> {
    /// The day, as chrono's date.
    pub fn date(self) -> Expr<E, T::Like<NaiveDate>> {
        self.node().map(|term| part(term, 1, 10)).into_expr()
    }

    /// The year.
    pub fn year(self) -> Expr<E, T::Like<i64>> {
        self.date_number(1, 4)
    }

    /// The month, from 1 to 12.
    pub fn month(self) -> Expr<E, T::Like<i64>> {
        self.date_number(6, 2)
    }

    /// The day of the month, from 1 to 31.
    pub fn day(self) -> Expr<E, T::Like<i64>> {
        self.date_number(9, 2)
    }

    /// The day of the week, from 0 for Sunday to 6.
    pub fn weekday(self) -> Expr<E, T::Like<i64>> {
        let weekday = self.node().map(|term| Term::Cast {
            of: Box::new(Term::Call {
                function: "strftime",
                args: vec![Term::Value(Value::Text("%w".into())), part(term, 1, 10)],
            }),
            to: "INTEGER",
        });
        weekday.into_expr()
    }

    /// How many days there are from the other to this, with fractions of them.
    pub fn days_since(self, other: impl crate::query::Operand<E, T>) -> Expr<E, T::Like<f64>> {
        let other = match other.node() {
            Ok(other) => other,
            Err(error) => {
                return crate::query::arithmetic::invalid::<E>(self.node(), error).into_expr();
            }
        };
        let days = |term| Term::Call {
            function: "julianday",
            args: vec![term],
        };
        let between = self.node().with([other], |this, other| Term::Infix {
            left: Box::new(days(this)),
            operator: " - ",
            right: Box::new(days(Term::Several(other))),
        });
        between.into_expr()
    }

    fn date_number(self, start: i64, length: i64) -> Expr<E, T::Like<i64>> {
        let number = self.node().map(|term| Term::Cast {
            of: Box::new(part(term, start, length)),
            to: "INTEGER",
        });
        number.into_expr()
    }
}

/// # Parts of times
impl<E: Entity, T: Timed, P: Part> Column<E, T, P> {
    /// The hour, from 0 to 23.
    pub fn hour(self) -> Expr<E, T::Like<i64>> {
        self.date_number(12, 2)
    }

    /// The minute, from 0 to 59.
    pub fn minute(self) -> Expr<E, T::Like<i64>> {
        self.date_number(15, 2)
    }
}

/// Dates and times are text of a fixed width.
fn part(term: Term, start: i64, length: i64) -> Term {
    Term::Call {
        function: "substr",
        args: vec![term, Term::Number(start), Term::Number(length)],
    }
}
