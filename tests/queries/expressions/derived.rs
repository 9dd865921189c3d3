//! Queries over the rows of other queries.

use anabranch::{
    prelude::*,
    query::{Over, Query, count, exists, row_number, value},
};
use rust_decimal::Decimal;
use serde_json::json;
use uuid::Uuid;

use crate::expressions::places::{by_hand, everywhere, plan, same};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(songs: Song))]
struct Album {
    #[entity(id)]
    id: i64,
    title: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(filter(live = Song::live))]
struct Song {
    #[entity(id)]
    id: i64,
    #[entity(references = Album, index)]
    album_id: i64,
    plays: i64,
    #[entity(scale = 2)]
    price: Decimal,
    #[entity(json)]
    extra: serde_json::Value,
    code: Option<Uuid>,
    deleted: bool,
}

impl Song {
    fn live() -> Condition<Self> {
        Self::DELETED.eq(false)
    }
}

#[derive(Debug, Clone, PartialEq, Entity, Projection)]
#[projection(entity = Song)]
struct Ranked {
    #[entity(id)]
    id: i64,
    #[entity(references = Album, column = "of \"album\"")]
    album_id: i64,
    #[entity(scale = 2)]
    #[projection(scale = 2)]
    price: Decimal,
    #[entity(json)]
    #[projection(json)]
    extra: serde_json::Value,
    code: Option<Uuid>,
    #[projection(from = Song::ALBUM.get(Album::TITLE))]
    title: String,
    #[projection(from = row_number().over(Over::all().partition_by(Song::ALBUM_ID).order_by(Song::PLAYS.desc())))]
    place: i64,
}

async fn songs() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Album, Song)>().await.unwrap();
    let mut ctx = db.context();
    for (id, title) in [(1, "one"), (2, "two"), (3, "none")] {
        ctx.add(Album {
            id,
            title: title.into(),
        });
    }
    for id in 1..=12 {
        ctx.add(Song {
            id,
            album_id: 1 + id % 2,
            plays: id * 5 % 13,
            price: Decimal::new(id * 25, 2),
            extra: json!({ "n": id }),
            code: (id % 3 > 0).then(|| Uuid::from_u128(id.unsigned_abs().into())),
            deleted: id == 5,
        });
    }
    ctx.save_changes().await.unwrap();
    db
}

const RANKED: &str = r#"(SELECT s.id, s.album_id, s.price, s.code, a.title,
    row_number() OVER (PARTITION BY album_id ORDER BY plays DESC) AS place
    FROM song s JOIN album a ON a.id = s.album_id WHERE NOT deleted)"#;

fn ranked() -> Query<Ranked> {
    Song::query().project::<Ranked>().as_table()
}

#[tokio::test]
async fn rows_of_a_query_are_filtered_by_a_window() {
    let db = songs().await;
    let query = ranked()
        .filter(
            Ranked::PLACE
                .le(2)
                .and(Ranked::PRICE.gt(Decimal::new(60, 2))),
        )
        .order_by([Ranked::TITLE.asc(), Ranked::PLACE.desc()])
        .select((Ranked::ID, Ranked::TITLE, Ranked::PLACE));
    same(
        &db,
        query,
        &format!("SELECT id, title, place FROM {RANKED} WHERE place <= 2 AND price > 60 ORDER BY title, place DESC"),
    )
    .await;
    // Whole rows are as the projection has them, and what is stored is decoded as it.
    let projected = Song::query()
        .order_by(Song::ID.asc())
        .project::<Ranked>()
        .all(&db)
        .await
        .unwrap();
    let read = everywhere(&db, &ranked().order_by(Ranked::ID.asc())).await;
    assert_eq!(read, Ok(projected.clone()));
    assert_eq!(projected.len(), 11);
    let by_code = ranked().filter(Ranked::CODE.eq(projected[0].code));
    assert_eq!(by_code.one(&db).await.unwrap(), projected[0]);
    assert_eq!(
        ranked().sum(Ranked::PRICE, &db).await.unwrap(),
        Song::query().sum(Song::PRICE, &db).await.unwrap()
    );
    let deleted = Song::query().without_filters().project::<Ranked>();
    assert_eq!(deleted.as_table().count(&db).await.unwrap(), 12);
}

#[tokio::test]
async fn rows_of_a_query_are_grouped_paged_and_asked_for() {
    let db = songs().await;
    let grouped = ranked()
        .filter(Ranked::PLACE.gt(1))
        .group_by(Ranked::TITLE)
        .having(count().gt(1))
        .order_by(Ranked::TITLE.desc())
        .select((Ranked::TITLE, count(), Ranked::PLACE.max()));
    same(
        &db,
        grouped,
        &format!("SELECT title, count(*), max(place) FROM {RANKED} WHERE place > 1 GROUP BY title ORDER BY title DESC"),
    )
    .await;
    let first = ranked().filter(Ranked::PLACE.eq(1)).select(Ranked::ID);
    same(
        &db,
        Song::query()
            .filter(Song::ID.is_in_query(first.clone()))
            .order_by(Song::ID.asc())
            .select((Song::ID,)),
        &format!("SELECT id FROM {RANKED} WHERE place = 1 ORDER BY id"),
    )
    .await;
    let union = first
        .union(ranked().filter(Ranked::PLACE.eq(6)).select(Ranked::ID))
        .order_by_position(0);
    assert_eq!(
        everywhere(&db, &union).await,
        Ok(by_hand::<(i64,)>(
            &db,
            &format!("SELECT id FROM {RANKED} WHERE place IN (1, 6) ORDER BY id")
        )
        .into_iter()
        .map(|(id,)| id)
        .collect())
    );
    let any = Album::query().filter(exists(ranked().filter(Ranked::PLACE.eq(6))));
    assert_eq!(any.count(&db).await.unwrap(), 3);
    let page = ranked().order_by(Ranked::PLACE.asc()).page(None, 4);
    let page = page.read(&db).await.unwrap();
    let next = ranked().order_by(Ranked::PLACE.asc()).page(page.next, 40);
    assert_eq!(next.read(&db).await.unwrap().items.len(), 7);
    // A query over that one, with what relations lead to from there.
    let again = ranked()
        .filter(Ranked::PLACE.le(3))
        .order_by(Ranked::PLACE.asc())
        .limit(3)
        .as_table()
        .order_by(Ranked::ID.asc())
        .with(Ranked::ALBUM);
    let again = again.all(&db).await.unwrap();
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|(row, album)| row.title == album.title));
    let many = ranked()
        .filter(Ranked::PLACE.eq(1))
        .order_by(Ranked::ID.asc())
        .with(Ranked::ALBUM.then(Album::SONGS));
    let many = many.all(&db).await.unwrap();
    assert_eq!(
        many.iter()
            .map(|(_, (_, songs))| songs.len())
            .sum::<usize>(),
        11
    );
}

#[tokio::test]
async fn what_was_said_before_is_of_the_rows_below() {
    let db = songs().await;
    let latest = || Song::query().order_by(Song::ID.desc()).limit(5).as_table();
    same(
        &db,
        latest()
            .filter(Song::ALBUM_ID.eq(1))
            .order_by(Song::PLAYS.asc())
            .select((Song::ID, Song::ALBUM.get(Album::TITLE))),
        "SELECT s.id, a.title FROM (SELECT * FROM song WHERE NOT deleted ORDER BY id DESC LIMIT 5) s
         JOIN album a ON a.id = s.album_id WHERE album_id = 1 ORDER BY plays",
    )
    .await;
    // Over a union.
    let union = || {
        let few = Song::query().filter(Song::PLAYS.lt(4));
        let last = Song::query().order_by(Song::ID.desc()).limit(2);
        few.union(last)
    };
    let grouped = union()
        .as_table()
        .group_by(Song::ALBUM_ID)
        .order_by(Song::ALBUM_ID.asc())
        .select((Song::ALBUM_ID, count(), Song::PLAYS.sum()));
    same(
        &db,
        grouped,
        "SELECT album_id, count(*), sum(plays) FROM (SELECT * FROM song WHERE NOT deleted AND plays < 4
         UNION SELECT * FROM (SELECT * FROM song WHERE NOT deleted ORDER BY id DESC LIMIT 2))
         GROUP BY album_id ORDER BY album_id",
    )
    .await;
    let limited = union().order_by_position_desc(2).limit(3).as_table();
    assert_eq!(limited.count(&db).await.unwrap(), 3);
    let distinct = Song::query().distinct().as_table();
    assert_eq!(distinct.count(&db).await.unwrap(), 11);
    // They are rows of the table still, and can be changed.
    let plays = latest().filter(Song::ALBUM_ID.eq(1));
    let changed = plays.update().set(Song::PLAYS, 100).execute(&db).await;
    assert_eq!(changed.unwrap(), 3);
    assert_eq!(
        by_hand::<(i64,)>(&db, "SELECT id FROM song WHERE plays = 100 ORDER BY id"),
        [(8,), (10,), (12,)]
    );
}

#[derive(Debug, Entity, Projection)]
#[projection(entity = Song)]
struct Cents {
    #[entity(id)]
    id: i64,
    #[entity(scale = 3)]
    #[projection(scale = 2)]
    price: Decimal,
}

#[derive(Debug, Entity, Projection)]
#[projection(entity = Song)]
struct Constant {
    #[entity(id)]
    id: i64,
    #[projection(from = value(7))]
    seven: i64,
}

#[tokio::test]
async fn what_cannot_be_a_table_is_refused() {
    let db = songs().await;
    let refused = async |query: Query<Cents>| everywhere(&db, &query.select((Cents::ID,))).await;
    let cents = Song::query().project::<Cents>();
    assert_eq!(refused(cents.as_table()).await, Err(ErrorKind::Refused));
    // Mistakes below come out above.
    let aggregate = Song::query()
        .filter(Song::ID.max().is_null())
        .project::<Ranked>();
    assert_eq!(
        everywhere(&db, &aggregate.as_table()).await,
        Err(ErrorKind::Refused)
    );
    let changed = ranked().delete().execute(&db).await.unwrap_err();
    assert_eq!(changed.kind(), ErrorKind::Refused);
    same(
        &db,
        Song::query()
            .project::<Constant>()
            .as_table()
            .filter(Constant::SEVEN.eq(7))
            .select((Constant::ID, Constant::SEVEN + 1))
            .order_by(Constant::ID.asc())
            .limit(2),
        "VALUES (1, 8), (2, 8)",
    )
    .await;
}

#[tokio::test]
async fn what_is_no_more_than_a_part_is_found_by_the_index_below() {
    let db = songs().await;
    let one = Song::query()
        .project::<Constant>()
        .as_table()
        .filter(Constant::ID.eq(3));
    let plan = plan(&db, &one);
    assert!(plan.contains("USING INTEGER PRIMARY KEY"), "{plan}");
}
