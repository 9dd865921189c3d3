//! Pages: every row once and in order, whatever it is sorted by and whatever happens in between.

use std::collections::BTreeSet;

use anabranch::{
    prelude::*,
    query::{Cursor, OrderBy, Page, Query, count},
};
use chrono::NaiveDate;
use proptest::{collection::vec, option, prelude::*, test_runner::TestCaseError};
use rust_decimal::Decimal;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(below: Row))]
struct Row {
    #[entity(id)]
    id: i64,
    rank: Option<i64>,
    #[entity(collate = "NOCASE")]
    label: Option<String>,
    real: Option<f64>,
    day: NaiveDate,
    #[entity(scale = 2)]
    price: Decimal,
    blob: Option<Vec<u8>>,
    #[entity(references = Row)]
    parent_id: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(without_rowid)]
struct Pair {
    #[entity(id, collate = "NOCASE")]
    word: String,
    #[entity(id)]
    number: i64,
    weight: Option<i64>,
}

fn row() -> impl Strategy<Value = Row> {
    let real = prop_oneof![
        Just(0.0),
        Just(-0.0),
        Just(0.1),
        Just(1e300),
        Just(f64::INFINITY),
        Just(-1.5)
    ];
    (
        option::of(-1..2_i64),
        option::of(prop_oneof![
            Just("a"),
            Just("A"),
            Just("b"),
            Just(""),
            Just("ä"),
            Just("'%_")
        ]),
        option::of(real),
        0..3_u32,
        -2..3_i64,
        option::of(vec(0..2_u8, 0..2)),
    )
        .prop_map(|(rank, label, real, day, price, blob)| Row {
            id: 0,
            rank,
            label: label.map(str::to_owned),
            real,
            day: NaiveDate::from_ymd_opt(2024, 1, 1 + day).unwrap(),
            price: Decimal::new(price * 50, 2),
            blob,
            parent_id: None,
        })
}

/// By one of many expressions.
fn order((by, desc): (u8, bool)) -> OrderBy<Row> {
    macro_rules! by {
        ($($number:pat => $expression:expr;)*) => {
            match by {
                $($number if desc => $expression.desc(), $number => $expression.asc(),)*
            }
        };
    }
    by! {
        0 => Row::RANK;
        1 => Row::LABEL;
        2 => Row::REAL;
        3 => Row::DAY;
        4 => Row::PRICE;
        5 => Row::BLOB;
        6 => (Row::RANK.coalesce(0) * 2 - 1);
        7 => Row::LABEL.lower();
        8 => (Row::REAL / 3.0);
        9 => Row::LABEL.eq("a").or(Row::RANK.is_null()).as_bool();
        10 => (Row::ID % 3);
        11 => Row::LABEL.concat("x").char_length();
        12 => (Row::PRICE + Decimal::new(1, 2));
        _ => Row::ID;
    }
}

fn orders() -> impl Strategy<Value = Vec<(u8, bool)>> {
    vec((0..14_u8, any::<bool>()), 0..4)
}

fn sorted(by: &[(u8, bool)]) -> Query<Row> {
    Row::query().order_by(by.iter().map(|by| order(*by)))
}

/// The key, in the direction of the last part.
fn last(by: &[(u8, bool)]) -> OrderBy<Row> {
    match by.last() {
        Some((_, true)) => Row::ID.desc(),
        _ => Row::ID.asc(),
    }
}

async fn rows(rows: &[Row]) -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Row, Pair)>().await.unwrap();
    add(&db, rows).await;
    db
}

async fn add(db: &Database, rows: &[Row]) {
    let mut ctx = db.context();
    for row in rows {
        ctx.add(row.clone());
    }
    ctx.save_changes().await.unwrap();
}

/// Through its text.
fn through_text(cursor: Option<Cursor>) -> Option<Cursor> {
    cursor.map(|cursor| {
        let text = cursor.to_string();
        assert!(
            text.chars()
                .all(|it| it.is_ascii_alphanumeric() || "-_".contains(it)),
            "{text}"
        );
        let again: Cursor = text.parse().unwrap();
        assert_eq!(again, cursor);
        again
    })
}

fn ids(rows: &[Row]) -> Vec<i64> {
    rows.iter().map(|row| row.id).collect()
}

async fn there_and_back(
    all: Vec<Row>,
    by: Vec<(u8, bool)>,
    size: u64,
) -> Result<(), TestCaseError> {
    let db = rows(&all).await;
    // The key is the last part of the order, if it is not in it.
    let expected = sorted(&by).order_by(last(&by)).all(&db).await.unwrap();
    let mut found = Vec::new();
    let mut last: Page<Row> = sorted(&by).page(None, size).read(&db).await.unwrap();
    prop_assert_eq!(&last.previous, &None);
    while let Some(next) = through_text(last.next.clone()) {
        prop_assert_eq!(last.items.len() as u64, size);
        found.extend(ids(&last.items));
        last = sorted(&by).page(next, size).read(&db).await.unwrap();
        prop_assert!(!last.items.is_empty());
    }
    found.extend(ids(&last.items));
    prop_assert_eq!(&found, &ids(&expected));
    let mut back = ids(&last.items);
    let mut here = last;
    while let Some(previous) = through_text(here.previous.clone()) {
        here = sorted(&by).page(previous, size).read(&db).await.unwrap();
        prop_assert!(here.next.is_some());
        prop_assert!(!here.items.is_empty());
        back.splice(0..0, ids(&here.items));
    }
    prop_assert_eq!(&back, &found);
    Ok(())
}

async fn while_it_changes(
    all: Vec<Row>,
    by: Vec<(u8, bool)>,
    size: u64,
    changes: Vec<Result<Row, usize>>,
    backwards: bool,
) -> Result<(), TestCaseError> {
    let db = rows(&all).await;
    let mut stays: BTreeSet<i64> = (1..=i64::try_from(all.len()).unwrap()).collect();
    let mut changes = changes.into_iter();
    let mut page = sorted(&by).page(None, size).read(&db).await.unwrap();
    if backwards {
        // From the end: pages forward until the last, and back.
        while let Some(next) = page.next {
            page = sorted(&by).page(next, size).read(&db).await.unwrap();
        }
    }
    let mut found = ids(&page.items);
    let onward = |page: &Page<Row>| {
        if backwards {
            page.previous.clone()
        } else {
            page.next.clone()
        }
    };
    while let Some(cursor) = onward(&page) {
        match changes.next() {
            Some(Ok(row)) => add(&db, &[row]).await,
            Some(Err(number)) => {
                let gone = 1 + i64::try_from(number % all.len()).unwrap();
                Row::query()
                    .filter(Row::ID.eq(gone))
                    .delete()
                    .execute(&db)
                    .await
                    .unwrap();
                stays.remove(&gone);
            }
            None => {}
        }
        page = sorted(&by).page(cursor, size).read(&db).await.unwrap();
        found = if backwards {
            [ids(&page.items), found].concat()
        } else {
            [found, ids(&page.items)].concat()
        };
    }
    let once: BTreeSet<i64> = found.iter().copied().collect();
    prop_assert_eq!(once.len(), found.len(), "a row twice: {:?}", found);
    let expected = ids(&sorted(&by).order_by(last(&by)).all(&db).await.unwrap());
    let stayed: Vec<_> = expected
        .into_iter()
        .filter(|id| stays.contains(id))
        .collect();
    let found: Vec<_> = found.into_iter().filter(|id| stays.contains(id)).collect();
    prop_assert_eq!(found, stayed);
    Ok(())
}

fn config() -> ProptestConfig {
    let cases = if std::env::var_os("ANABRANCH_LONG").is_some() {
        2_000
    } else {
        48
    };
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn run<F: Future<Output = Result<(), TestCaseError>>>(future: F) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn pages_visit_every_row_once_in_order_there_and_back(
        all in vec(row(), 0..30),
        by in orders(),
        size in 1..8_u64,
    ) {
        run(there_and_back(all, by, size))?;
    }

    #[test]
    fn rows_that_stay_are_visited_once_whatever_is_inserted_and_deleted(
        all in vec(row(), 1..25),
        by in orders(),
        size in 1..5_u64,
        changes in vec(prop_oneof![row().prop_map(Ok), any::<usize>().prop_map(Err)], 0..20),
        backwards in any::<bool>(),
    ) {
        run(while_it_changes(all, by, size, changes, backwards))?;
    }

    #[test]
    fn cursors_that_were_tampered_with_are_errors_or_places(
        bytes in vec((0..80_usize, any::<u8>()), 0..4),
        length in 0..90_usize,
        text in ".{0,20}",
    ) {
        run(async {
            let start = Row { id: 0, rank: Some(1), label: Some("a".to_owned()), real: Some(0.5), day: NaiveDate::MIN.max(NaiveDate::from_ymd_opt(2024, 1, 1).unwrap()), price: Decimal::ONE, blob: Some(vec![1]), parent_id: None };
            let db = rows(&[start.clone(), start]).await;
            let by: Vec<_> = (0..6).map(|by| (by, by % 2 == 0)).collect();
            let page = sorted(&by).page(None, 1).read(&db).await.unwrap();
            let mut cursor = page.next.unwrap().to_string().into_bytes();
            for (at, byte) in bytes {
                if let Some(here) = cursor.get_mut(at) {
                    *here = byte;
                }
            }
            cursor.truncate(length);
            for text in [String::from_utf8_lossy(&cursor).into_owned(), text] {
                match text.parse::<Cursor>() {
                    Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Value),
                    Ok(cursor) => match sorted(&by).page(cursor, 3).read(&db).await {
                        Ok(page) => prop_assert!(page.items.len() <= 2),
                        Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Refused),
                    },
                }
            }
            Ok(())
        })?;
    }
}

fn plain(rank: i64, parent_id: Option<i64>) -> Row {
    Row {
        id: 0,
        rank: Some(rank),
        label: None,
        real: None,
        day: NaiveDate::from_ymd_opt(2024, 1, 1).unwrap(),
        price: Decimal::ZERO,
        blob: None,
        parent_id,
    }
}

#[tokio::test]
async fn a_cursor_fits_the_query_it_is_of() {
    let db = rows(&[plain(1, None), plain(1, None), plain(2, None)]).await;
    let cursor = sorted(&[(0, false)])
        .page(None, 1)
        .read(&db)
        .await
        .unwrap()
        .next;
    let kind = async |query: Query<Row>, size| {
        let read = query.page(cursor.clone(), size).read(&db).await;
        read.map(|page| page.items.len())
            .map_err(|error| error.kind())
    };
    assert_eq!(kind(sorted(&[(0, false)]), 1).await, Ok(1));
    assert_eq!(kind(sorted(&[(0, false)]), u64::MAX).await, Ok(2));
    let refused = Err(ErrorKind::Refused);
    assert_eq!(kind(sorted(&[(0, true)]), 1).await, refused);
    assert_eq!(kind(sorted(&[]), 1).await, refused);
    assert_eq!(kind(sorted(&[(0, false), (1, false)]), 1).await, refused);
    assert_eq!(
        kind(Row::query().order_by((Row::RANK + 1).asc()), 1).await,
        refused
    );
    assert_eq!(kind(sorted(&[(0, false)]), 0).await, refused);
    assert_eq!(kind(sorted(&[(0, false)]).limit(3), 1).await, refused);
    assert_eq!(kind(sorted(&[(0, false)]).offset(3), 1).await, refused);
    assert_eq!(kind(sorted(&[(0, false)]).distinct(), 1).await, refused);
    let other = Pair::query()
        .order_by(Pair::WEIGHT.asc())
        .page(cursor, 1)
        .read(&db)
        .await;
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Refused);
    // What is made of many rows has no place between two.
    let groups = [
        Row::query()
            .group_by(Row::RANK)
            .select(count())
            .page(None, 1),
        Row::query().select(count()).page(None, 1),
        Row::query()
            .order_by(count().asc())
            .select(Row::ID.expr())
            .page(None, 1),
        Row::query()
            .order_by(
                anabranch::query::row_number()
                    .over(anabranch::query::Over::all())
                    .asc(),
            )
            .select(Row::ID.expr())
            .page(None, 1),
    ];
    for page in groups {
        assert_eq!(page.read(&db).await.unwrap_err().kind(), ErrorKind::Refused);
    }
}

#[tokio::test]
async fn a_page_reads_in_every_place_and_with_what_is_related() {
    let db = rows(&[
        plain(1, None),
        plain(1, Some(1)),
        plain(2, Some(1)),
        plain(2, Some(2)),
    ])
    .await;
    let query = || {
        Row::query()
            .order_by(Row::RANK.desc())
            .with(Row::BELOW)
            .with(Row::PARENT)
    };
    let check = |first: &Page<(Row, Vec<Row>, Option<Row>)>,
                 second: &Page<(Row, Vec<Row>, Option<Row>)>| {
        let told = |page: &Page<(Row, Vec<Row>, Option<Row>)>| -> Vec<_> {
            page.items
                .iter()
                .map(|(row, below, parent)| (row.id, ids(below), parent.as_ref().map(|it| it.id)))
                .collect()
        };
        assert_eq!(
            told(first),
            [
                (4, vec![], Some(2)),
                (3, vec![], Some(1)),
                (2, vec![4], Some(1))
            ]
        );
        assert_eq!(told(second), [(1, vec![2, 3], None)]);
        assert_eq!(second.next, None);
    };
    macro_rules! both {
        ($at:expr) => {{
            let first = query().page(None, 3).read($at).await?;
            let second = query().page(first.next.clone(), 3).read($at).await?;
            check(&first, &second);
            let back = query().page(second.previous.clone(), 3).read($at).await?;
            assert_eq!((&back.items, &back.previous), (&first.items, &None));
            Ok::<_, Error>(())
        }};
    }
    let plainly: Result<(), Error> = async { both!(&db) }.await;
    plainly.unwrap();
    db.read(async |snapshot| both!(&mut *snapshot))
        .await
        .unwrap();
    db.write(async |tx| both!(&mut *tx)).await.unwrap();
    db.concurrent(async |session| both!(&mut *session))
        .await
        .unwrap();
    let ranks = Row::query()
        .order_by(Row::PARENT.get(Row::RANK).desc())
        .select((Row::ID, Row::PARENT.get(Row::RANK)));
    let first = ranks.clone().page(None, 2).read(&db).await.unwrap();
    let rest = ranks.page(first.next, 2).read(&db).await.unwrap();
    assert_eq!(first.items, [(4, Some(1)), (3, Some(1))]);
    assert_eq!(rest.items, [(2, Some(1)), (1, None)]);
}

#[tokio::test]
async fn keys_of_several_columns_are_all_in_the_cursor() {
    let db = rows(&[]).await;
    let mut ctx = db.context();
    for number in 0..12 {
        let word = ["a", "B", "b2", "C"][number % 4].to_owned();
        let number = i64::try_from(number).unwrap();
        ctx.add(Pair {
            word,
            number,
            weight: (number % 3 > 0).then_some(number % 2),
        });
    }
    ctx.save_changes().await.unwrap();
    let query = || Pair::query().order_by([Pair::WEIGHT.desc(), Pair::NUMBER.desc()]);
    let expected = query().order_by(Pair::WORD.asc()).all(&db).await.unwrap();
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = query().page(cursor, 5).read(&db).await.unwrap();
        found.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, expected);
}
