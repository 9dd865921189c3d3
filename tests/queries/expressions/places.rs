//! Where a query runs, and SQL written by hand beside it.

use std::fmt::Debug;

use anabranch::{
    prelude::*,
    query::{Compound, Query, RawQuery, Selection},
    sql::Executor,
};
use anabranch_tests::outsider;

/// What a query answered: its rows, or the kind of its error.
pub(in crate::expressions) type Told<T> = Result<Vec<T>, ErrorKind>;

/// Something that reads rows.
pub(in crate::expressions) trait Reading: Clone + Debug {
    type Row: Debug + PartialEq;

    async fn rows<'c>(self, at: impl Executor<'c>) -> Result<Vec<Self::Row>, Error>;
}

impl<E: Entity, S: Selection<E>> Reading for Query<E, S>
where
    S::Output: Debug + PartialEq,
{
    type Row = S::Output;

    async fn rows<'c>(self, at: impl Executor<'c>) -> Result<Vec<Self::Row>, Error> {
        self.all(at).await
    }
}

impl<E: Entity, S: Selection<E>> Reading for Compound<E, S>
where
    S::Output: Debug + PartialEq,
{
    type Row = S::Output;

    async fn rows<'c>(self, at: impl Executor<'c>) -> Result<Vec<Self::Row>, Error> {
        self.all(at).await
    }
}

impl<T: anabranch::query::FromRow + Debug + PartialEq> Reading for RawQuery<T> {
    type Row = T;

    async fn rows<'c>(self, at: impl Executor<'c>) -> Result<Vec<Self::Row>, Error> {
        self.all(at).await
    }
}

/// What a query answers, the same in every place.
pub(in crate::expressions) async fn everywhere<R: Reading>(
    db: &Database,
    reading: &R,
) -> Told<R::Row> {
    let kind = |error: Error| error.kind();
    let plain = reading.clone().rows(db).await;
    if let Err(error) = &plain {
        assert!(!error.to_string().is_empty());
    }
    let plain = plain.map_err(kind);
    let read = db.read(async |snapshot| reading.clone().rows(&mut *snapshot).await);
    assert_eq!(
        read.await.map_err(kind),
        plain,
        "in a snapshot: {reading:?}"
    );
    let write = db.write(async |tx| reading.clone().rows(&mut *tx).await);
    assert_eq!(
        write.await.map_err(kind),
        plain,
        "in a transaction: {reading:?}"
    );
    let session = db.concurrent(async |session| reading.clone().rows(&mut *session).await);
    assert_eq!(
        session.await.map_err(kind),
        plain,
        "in a session: {reading:?}"
    );
    plain
}

/// That a query answers what SQL written by hand does, in every place.
pub(in crate::expressions) async fn same<R>(db: &Database, reading: R, sql: &str)
where
    R: Reading,
    R::Row: for<'a> TryFrom<&'a rusqlite::Row<'a>, Error = rusqlite::Error>,
{
    let expected: Vec<R::Row> = by_hand(db, sql);
    assert!(!expected.is_empty(), "nothing to compare: {sql}");
    let found = everywhere(db, &reading).await;
    assert_eq!(found, Ok(expected), "{reading:?} and {sql}");
}

/// What SQL written by hand answers.
pub(in crate::expressions) fn by_hand<T>(db: &Database, sql: &str) -> Vec<T>
where
    T: for<'a> TryFrom<&'a rusqlite::Row<'a>, Error = rusqlite::Error>,
{
    let connection = outsider(db.path());
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| T::try_from(row)).unwrap();
    rows.map(|row| row.unwrap()).collect()
}

/// How SQLite goes about a query.
pub(in crate::expressions) fn plan<E: Entity, S: Selection<E>>(
    db: &Database,
    query: &Query<E, S>,
) -> String {
    let connection = outsider(db.path());
    let sql = format!("EXPLAIN QUERY PLAN {}", query.sql().unwrap());
    let mut statement = connection.prepare(&sql).unwrap();
    // Whatever the arguments are.
    let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3));
    let steps: Result<Vec<_>, _> = steps.collect();
    steps.unwrap().join("\n")
}
