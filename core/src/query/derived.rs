//! Queries over the rows of queries.

use crate::{
    entity::Entity,
    query::{
        Compound, Query, Selection,
        condition::{Invalid, Shape},
        filters::Lifted,
    },
    sql::{self, ColumnList, Source},
};

/// # As a table
impl<E: Entity, S: Selection<E>> Query<E, S>
where
    S::Output: Entity,
{
    /// A query over the rows of this one, as over a table: what was said so far, limits and groups too, is of the rows
    /// below, and what follows is of those that come of it.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Song { #[entity(id)] id: i64, album: String, plays: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Song>().await?;
    /// # let mut ctx = db.context();
    /// # for (album, plays) in [("a", 5), ("a", 9), ("b", 7), ("b", 1)] {
    /// #     ctx.add(Song { id: 0, album: album.into(), plays });
    /// # }
    /// # ctx.save_changes().await?;
    /// let most_played = Song::query().order_by(Song::PLAYS.desc()).limit(3).as_table();
    /// assert_eq!(most_played.filter(Song::ALBUM.eq("b")).count(&db).await?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// Rows of another kind are a struct that derives both [`Entity`], for what its columns are, and
    /// [`Projection`](crate::query::Projection), for how they are made. Its table is never created, and its key is what
    /// tells its rows apart:
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::{Over, row_number};
    ///
    /// # #[derive(Debug, Entity)]
    /// # struct Song { #[entity(id)] id: i64, album: String, plays: i64 }
    /// #[derive(Debug, Entity, Projection)]
    /// #[projection(entity = Song)]
    /// struct Ranked {
    ///     #[entity(id)]
    ///     id: i64,
    ///     album: String,
    ///     #[projection(from = row_number().over(Over::all().partition_by(Song::ALBUM).order_by(Song::PLAYS.desc())))]
    ///     place: i64,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Song>().await?;
    /// # let mut ctx = db.context();
    /// # for (album, plays) in [("a", 5), ("a", 9), ("b", 7), ("b", 1)] {
    /// #     ctx.add(Song { id: 0, album: album.into(), plays });
    /// # }
    /// # ctx.save_changes().await?;
    /// // The song that is played most, of each album.
    /// let first = Song::query().project::<Ranked>().as_table().filter(Ranked::PLACE.eq(1));
    /// let ids = first.order_by(Ranked::ALBUM.asc()).select(Ranked::ID).all(&db).await?;
    /// assert_eq!(ids, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// It fails with kind [`ErrorKind::Refused`](crate::error::ErrorKind::Refused) if this one reads what to-many
    /// relations lead to, or what is not stored as the columns of the entity are.
    pub fn as_table(self) -> Query<S::Output> {
        let shape = self.shape();
        let rows = check::<E, S>().and_then(|()| {
            Ok(sql::Compound {
                first: self.into_inner_select()?,
                others: Vec::new(),
                order: Vec::new(),
                limit: None,
                offset: 0,
            })
        });
        over(rows, shape)
    }
}

/// # As a table
impl<E: Entity, S: Selection<E>> Compound<E, S>
where
    S::Output: Entity,
{
    /// A query over these rows, as over a table: see [`Query::as_table`].
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::count;
    ///
    /// # #[derive(Debug, Entity)]
    /// # struct Item { #[entity(id)] id: i64, name: String, price: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Item>().await?;
    /// # let mut ctx = db.context();
    /// # for (name, price) in [("tea", 3), ("tea", 9), ("jam", 7)] {
    /// #     ctx.add(Item { id: 0, name: name.into(), price });
    /// # }
    /// # ctx.save_changes().await?;
    /// let dear = || Item::query().filter(Item::PRICE.gt(5));
    /// let tea = || Item::query().filter(Item::NAME.eq("tea"));
    /// let either = dear().union(tea()).as_table().group_by(Item::NAME).order_by(Item::NAME.asc());
    /// let counts = either.select((Item::NAME, count())).all(&db).await?;
    /// assert_eq!(counts, [("jam".to_owned(), 1), ("tea".to_owned(), 2)]);
    /// # Ok(()) }
    /// ```
    pub fn as_table(self) -> Query<S::Output> {
        let shape = self.shape();
        over(check::<E, S>().and_then(|()| self.into_tree()), shape)
    }
}

fn over<T: Entity>(rows: Result<sql::Compound, Invalid>, shape: Shape) -> Query<T> {
    let mut query = Query::new();
    query.shape = shape.around();
    match query.shape.check().and(rows) {
        Ok(mut rows) => {
            let names = ColumnList::new(T::TABLE.columns.iter().map(|column| column.name));
            // Deferred columns are for the query over these rows to ask for.
            rows.read_whole(&names);
            let source = Source::Rows {
                rows: Box::new(rows),
                names,
            };
            if source.is_of(T::TABLE.name) {
                // The filters of the entity were asked below.
                query.lifted = Lifted::All;
            }
            query.source = Some(source);
        }
        Err(invalid) => query.conditions = Err(invalid),
    }
    query
}

/// Whether what is read is what the columns hold.
fn check<E: Entity, S: Selection<E>>() -> Result<(), Invalid>
where
    S::Output: Entity,
{
    if !S::FLAT {
        return Err(Invalid::Refused(
            "what to-many relations lead to is no column: read it along with the rows of the query that follows",
        ));
    }
    let columns = S::Output::TABLE.columns.len();
    let (mut read, mut held) = (Vec::with_capacity(columns), Vec::with_capacity(columns));
    S::types(&mut read);
    S::Output::column_types(&mut held);
    let is_same = read.len() == columns
        && read
            .iter()
            .zip(&held)
            .all(|(read, held)| match (read, held) {
                (Some(read), Some(held)) => read == held,
                _ => true,
            });
    if !is_same {
        return Err(Invalid::Refused(
            "the projection reads a field otherwise than the entity holds it: write the same `json`, `scale` or `padded` \
             for both, and no relation",
        ));
    }
    Ok(())
}
