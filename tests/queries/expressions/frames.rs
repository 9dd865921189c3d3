//! Windows with frames, and upserts of many.

use anabranch::{
    prelude::*,
    query::{
        Bound, Over, Upserted, count, cume_dist, fragment, ntile, percent_rank, raw, upsert_all,
    },
};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Day {
    #[entity(id)]
    id: i64,
    place: i64,
    rain: i64,
    #[entity(version)]
    version: i64,
}

async fn year() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Day>().await.unwrap();
    let days = (1..=12).map(|id| Day {
        id,
        place: id % 2,
        rain: id * id % 7,
        version: 0,
    });
    let written = upsert_all(days).execute(&db).await.unwrap();
    assert!(
        written
            .iter()
            .all(|day| matches!(day, Upserted::Inserted(_)))
    );
    db
}

#[tokio::test]
async fn frames_are_those_of_sql() {
    let db = year().await;
    let of = |from, to| {
        Over::all()
            .partition_by(Day::PLACE)
            .order_by(Day::ID.asc())
            .rows(from, to)
    };
    let read = Day::query()
        .order_by(Day::ID.asc())
        .select((
            Day::RAIN
                .sum()
                .over(of(Bound::Preceding(2), Bound::CurrentRow)),
            Day::RAIN
                .last_value()
                .over(of(Bound::CurrentRow, Bound::Unbounded)),
            Day::RAIN
                .nth_value(2)
                .over(of(Bound::Unbounded, Bound::Following(1))),
            count::<Day>().over(
                Over::all()
                    .order_by(Day::RAIN.asc())
                    .range(Bound::Preceding(1), Bound::Following(1)),
            ),
            count::<Day>().over(
                Over::all()
                    .order_by(Day::RAIN.desc())
                    .groups(Bound::Unbounded, Bound::CurrentRow),
            ),
        ))
        .all(&db)
        .await
        .unwrap();
    let by_hand = raw::<(Option<i64>, Option<i64>, Option<i64>, i64, i64)>(
        "SELECT sum(rain) OVER (PARTITION BY place ORDER BY id ROWS 2 PRECEDING),
                last_value(rain) OVER (PARTITION BY place ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING),
                nth_value(rain, 2) OVER (PARTITION BY place ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING),
                count(*) OVER (ORDER BY rain RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING),
                count(*) OVER (ORDER BY rain DESC GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
           FROM day ORDER BY id",
        (),
    );
    assert_eq!(read, by_hand.all(&db).await.unwrap());
}

#[tokio::test]
async fn rows_of_a_frame_are_left_out_as_in_sql() {
    let db = year().await;
    let by_rain = || Over::all().order_by(Day::RAIN.asc());
    let around = || by_rain().groups(Bound::Preceding(1), Bound::Following(1));
    let read = Day::query()
        .order_by(Day::ID.asc())
        .select((
            Day::RAIN.avg().over(Over::all().exclude_current_row()),
            count::<Day>().over(around().exclude_group()),
            count::<Day>().over(around().exclude_ties()),
            count::<Day>().over(
                by_rain()
                    .exclude_group()
                    .rows(Bound::Preceding(3), Bound::Unbounded),
            ),
            count::<Day>().over(by_rain().exclude_current_row()),
        ))
        .all(&db)
        .await
        .unwrap();
    let by_hand = raw::<(Option<f64>, i64, i64, i64, i64)>(
        "SELECT avg(rain) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW),
                count(*) OVER (ORDER BY rain GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP),
                count(*) OVER (ORDER BY rain GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES),
                count(*) OVER (ORDER BY rain ROWS BETWEEN 3 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP),
                count(*) OVER (ORDER BY rain RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW)
           FROM day ORDER BY id",
        (),
    );
    assert_eq!(read, by_hand.all(&db).await.unwrap());
}

#[tokio::test]
async fn functions_of_windows_are_those_of_sql() {
    let db = year().await;
    let over = || Over::all().order_by(Day::RAIN.asc());
    let read = Day::query()
        .order_by(Day::ID.asc())
        .select((
            ntile(5).over(over()),
            percent_rank().over(over()),
            cume_dist().over(over()),
            Day::ID.first_value().over(over().order_by(Day::ID.asc())),
            fragment::<Day, i64>("max({})", (Day::RAIN,)).over(over()),
        ))
        .all(&db)
        .await
        .unwrap();
    let by_hand = raw::<(i64, f64, f64, Option<i64>, i64)>(
        "SELECT ntile(5) OVER w, percent_rank() OVER w, cume_dist() OVER w,
                first_value(id) OVER (ORDER BY rain, id), max(rain) OVER w
           FROM day WINDOW w AS (ORDER BY rain) ORDER BY id",
        (),
    );
    assert_eq!(read, by_hand.all(&db).await.unwrap());
}

#[tokio::test]
async fn many_are_upserted_together_or_not_at_all() {
    let db = year().await;
    let day = |id, rain| Day {
        id,
        place: 0,
        rain,
        version: 0,
    };
    let told = upsert_all([day(1, 99), day(1, 99), day(13, 1)])
        .update(Day::RAIN)
        .execute(&db)
        .await
        .unwrap();
    assert!(matches!(
        &told[..],
        [
            Upserted::Updated(one),
            Upserted::Existing(same),
            Upserted::Inserted(new)
        ] if (one.rain, one.version, same.version, new.id) == (99, 2, 2, 13)
    ));
    execute_refusal(&db).await;
    let none = upsert_all(Vec::<Day>::new()).execute(&db).await.unwrap();
    assert!(none.is_empty());
    let in_session = db
        .concurrent(async |s| {
            let told = upsert_all([day(14, 1), day(15, 1)])
                .execute(&mut *s)
                .await?;
            Ok(told.len())
        })
        .await
        .unwrap();
    assert_eq!(in_session, 2);
    assert_eq!(Day::query().count(&db).await.unwrap(), 15);
}

/// The last of them breaks a trigger: none is written.
async fn execute_refusal(db: &Database) {
    anabranch_tests::execute(
        db,
        "CREATE TRIGGER dry BEFORE INSERT ON day WHEN NEW.rain < 0 BEGIN SELECT RAISE(ABORT, 'no'); END",
    )
    .await;
    let before = Day::query().all(db).await.unwrap();
    let days = [20, 21].map(|id| Day {
        id,
        place: 0,
        rain: 20 - id,
        version: 0,
    });
    assert!(upsert_all(days).execute(db).await.is_err());
    assert_eq!(Day::query().all(db).await.unwrap(), before);
}
