//! SQL of the application that gives no entities.

use std::{fmt, future::Future, marker::PhantomData};

use crate::{
    error::{Error, ErrorKind, Result, counted},
    query::{Arguments, condition::Invalid, fragment, run::read},
    sql::{Cost, Executor, Piece, Read, Rows, statement_of},
    value::{ColumnType, Row},
};

/// A statement of the application; made by [`raw`].
#[must_use = "a statement does nothing until it is run"]
pub struct RawQuery<T> {
    pieces: Result<Vec<Piece>, Invalid>,
    of: PhantomData<fn() -> T>,
}

/// A statement that reads, as it is written: reports with windows, common table expressions, whatever SQLite knows. Its
/// columns become a tuple by their positions, one value if there is one, or a struct by their names ([`FromRow`]).
///
/// The text is a part of the program. `{}` stands where each argument does, `{0}` or `{1}` for one by its position; `{{` is
/// a brace. To read entities see [`Query::from_sql`](crate::query::Query::from_sql); to write see
/// [`Database::write`](crate::database::Database::write), where sqlx takes any SQL.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::raw;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// let rows = raw::<(i64, String)>(
///     "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {})
///      SELECT x, printf('%03d', x) FROM n",
///     (3,),
/// )
/// .all(&db)
/// .await?;
/// assert_eq!(rows[2], (3, "003".to_owned()));
/// # Ok(()) }
/// ```
pub fn raw<T: FromRow>(sql: &'static str, args: impl Arguments<()>) -> RawQuery<T> {
    RawQuery {
        pieces: fragment::source(sql, args).map(|(pieces, _)| pieces),
        of: PhantomData,
    }
}

/// What a row of a [`RawQuery`] becomes: a value, a tuple of up to twelve, or a struct that derives it.
///
/// A struct is read by the names of columns, whatever their order; others than it asks for are ignored. A column that is
/// missing, or there twice, is an error of kind [`ErrorKind::Decode`] that names it, once there is a row. How a field is
/// stored, and what its column is called if not like it, say the attributes of [the derive](macro@crate::query::FromRow).
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{FromRow, raw};
///
/// #[derive(Debug, PartialEq, FromRow)]
/// struct Report {
///     city: String,
///     #[row(column = "total")]
///     sum: i64,
///     dearest: Option<i64>,
/// }
///
/// # #[derive(Debug, Entity)]
/// # struct Sale { #[entity(id)] id: i64, city: String, price: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Sale>().await?;
/// # let mut ctx = db.context();
/// # for (city, price) in [("Bern", 4), ("Bern", 7), ("Rome", 5)] {
/// #     ctx.add(Sale { id: 0, city: city.into(), price });
/// # }
/// # ctx.save_changes().await?;
/// let sql = "SELECT sum(price) AS total, max(price) AS dearest, city FROM sale GROUP BY city ORDER BY city";
/// let reports = raw::<Report>(sql, ()).all(&db).await?;
/// assert_eq!(reports[0], Report { city: "Bern".into(), sum: 11, dearest: Some(7) });
/// # Ok(()) }
/// ```
///
/// Where it is asked for:
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{FromRow, RawQuery, raw};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
/// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
/// # }
/// # ctx.save_changes().await?;
/// fn report<T: FromRow>() -> RawQuery<T> {
///     raw("SELECT count(*), max(discount) FROM item", ())
/// }
/// assert_eq!(report::<(i64, Option<i64>)>().one(&db).await?, (3, Some(7)));
/// assert!(report::<i64>().first(&db).await.is_err()); // a type for each column
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "a row cannot be read as `{Self}`",
    label = "no value, no tuple of values, and no struct that derives `FromRow`",
    note = "give the types of the columns: `raw::<(i64, Option<String>)>(...)`, or write #[derive(FromRow)] on a struct of them",
    note = "for entities there is `Query::from_sql`"
)]
pub trait FromRow: Sized + Send + 'static {
    #[doc(hidden)]
    fn from_row(row: &dyn Row) -> Result<Self>;
}

impl<T: ColumnType + Send + 'static> FromRow for T {
    fn from_row(row: &dyn Row) -> Result<Self> {
        has_width(row, 1)?;
        value(row, 0)
    }
}

macro_rules! tuple {
    ($($name:ident $index:literal),*) => {
        impl<$($name: ColumnType + Send + 'static),*> FromRow for ($($name,)*) {
            fn from_row(row: &dyn Row) -> Result<Self> {
                has_width(row, [$($index),*].len())?;
                Ok(($(value::<$name>(row, $index)?,)*))
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);

/// SQLite has NULL for a column that is none.
fn has_width(row: &dyn Row, width: usize) -> Result<()> {
    if row.width() == width {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Decode,
        format!(
            "the statement gives {}, and is read as {width}",
            counted(row.width(), "column")
        ),
    ))
}

fn value<T: ColumnType>(row: &dyn Row, index: usize) -> Result<T> {
    T::decode(row.value(index)).map_err(|error| {
        Error::new(
            ErrorKind::Decode,
            format!("column {} of the result: {error}", index + 1),
        )
    })
}

impl<T: FromRow> RawQuery<T> {
    /// Reads all rows.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::Refused`] for a text that does not only read, or has other placeholders than arguments; those
    /// of SQLite; [`ErrorKind::Decode`] if a value is not of its type.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn all<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Vec<T>>> + Send {
        read(executor, self.into_read(), Ok)
    }

    /// Reads the first row, if there is any; the statement is run as it is, so it should have a limit.
    ///
    /// # Errors
    ///
    /// As [`RawQuery::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn first<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Option<T>>> + Send {
        read(executor, self.into_read(), |rows| {
            Ok(rows.into_iter().next())
        })
    }

    /// Reads the only row, if there is one.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::MoreThanOne`] if there are more; else as [`RawQuery::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn optional<'c>(
        self,
        executor: impl Executor<'c>,
    ) -> impl Future<Output = Result<Option<T>>> + Send {
        read(executor, self.into_read(), |rows| {
            let mut rows = rows.into_iter();
            match (rows.next(), rows.next()) {
                (_, Some(_)) => Err(Error::new(
                    ErrorKind::MoreThanOne,
                    "the statement gave more than one row",
                )),
                (row, None) => Ok(row),
            }
        })
    }

    /// Reads the only row.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::NotFound`] if there is none, [`ErrorKind::MoreThanOne`] if there are more; else as
    /// [`RawQuery::all`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; the answer is lost.
    #[track_caller]
    pub fn one<'c>(self, executor: impl Executor<'c>) -> impl Future<Output = Result<T>> + Send {
        read(executor, self.into_read(), |rows| {
            let mut rows = rows.into_iter();
            match (rows.next(), rows.next()) {
                (Some(row), None) => Ok(row),
                (None, _) => Err(Error::new(ErrorKind::NotFound, "the statement gave no row")),
                (Some(_), Some(_)) => Err(Error::new(
                    ErrorKind::MoreThanOne,
                    "the statement gave more than one row",
                )),
            }
        })
    }

    /// Reads the rows as they are asked for. What is wrong with the statement is the stream's only item.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::raw;
    /// use futures_util::TryStreamExt as _;
    ///
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
    /// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
    /// # }
    /// # ctx.save_changes().await?;
    /// let mut names = raw::<String>("SELECT name FROM item ORDER BY price", ()).stream(&db);
    /// assert_eq!(names.try_next().await?.as_deref(), Some("tea"));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn stream<'c>(self, executor: impl Executor<'c>) -> Rows<'c, T> {
        match self.into_read() {
            Ok(read) => executor.stream(read),
            Err(error) => Box::pin(futures_util::stream::once(std::future::ready(Err(error)))),
        }
    }

    fn into_read(self) -> Result<Read<T>> {
        Ok(Read {
            statement: statement_of(self.pieces?),
            cost: Cost::Any,
            entity: None,
            decode: T::from_row,
        })
    }
}

impl<T> Clone for RawQuery<T> {
    fn clone(&self) -> Self {
        Self {
            pieces: self.pieces.clone(),
            of: PhantomData,
        }
    }
}

/// Shows the text; no values.
impl<T> fmt::Debug for RawQuery<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pieces {
            Ok(pieces) => write!(f, "RawQuery({})", statement_of(pieces.clone())),
            Err(invalid) => write!(f, "RawQuery({invalid:?})"),
        }
    }
}
