//! Inserting what queries read.

use anabranch::{
    entity::CommitSeq,
    prelude::*,
    query::{Insert, case, value},
};
use anabranch_tests::execute;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::expressions::{changes::written, places::by_hand};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "sales", has_many(parts: Part), filter(live = Sale::live))]
struct Sale {
    #[entity(id)]
    id: i64,
    place: String,
    total: i64,
    discount: Option<i64>,
    deleted: bool,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Part {
    #[entity(id)]
    id: i64,
    #[entity(references = Sale, relation = sale, index)]
    sale_id: i64,
    amount: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Kept {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    sale_id: i64,
    place: Option<String>,
    small: Option<i8>,
    #[entity(default = "7")]
    rank: i64,
    #[entity(generated = "sale_id * 2")]
    double: i64,
    #[entity(version)]
    version: i64,
    #[entity(created_at)]
    created_at: DateTime<Utc>,
    #[entity(updated_at)]
    updated_at: Option<DateTime<Utc>>,
    #[entity(commit_seq)]
    commit_seq: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Ticket {
    #[entity(id)]
    id: Uuid,
    sale_id: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(without_rowid)]
struct Place {
    #[entity(id)]
    id: i64,
    name: String,
}

impl Sale {
    fn live() -> Condition<Self> {
        Self::DELETED.eq(false)
    }
}

/// Sales 1 to 5, of which the last is deleted, with parts.
async fn sales() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Sale, Part, Kept, Ticket, Place)>()
        .await
        .unwrap();
    let mut ctx = db.context();
    for number in 1..=5 {
        ctx.add(Sale {
            id: number,
            place: ["Rome", "Bern"][usize::from(number % 2 == 0)].to_owned(),
            total: number * 10,
            discount: (number == 2).then_some(4),
            deleted: number == 5,
        });
        for amount in 0..number {
            ctx.add(Part {
                id: 0,
                sale_id: number,
                amount,
            });
        }
    }
    ctx.save_changes().await.unwrap();
    db
}

fn kept(db: &Database) -> Vec<(i64, i64, Option<String>)> {
    by_hand(db, "SELECT id, sale_id, place FROM kept ORDER BY id")
}

#[tokio::test]
async fn rows_are_inserted_as_the_query_reads_them() {
    let insert = || {
        Sale::query()
            .filter(Sale::TOTAL.gt(10))
            .order_by(Sale::TOTAL.desc())
            .limit(2)
            .select((Sale::ID, Sale::PLACE))
            .insert_into((Kept::SALE_ID, Kept::PLACE))
    };
    written!(sales().await, at => insert().execute(at), (db, told) => {
        assert_eq!(told, Ok(2));
        // The filter of the entity holds, and keys are given in the order of the rows.
        let rome = |id, sale| (id, sale, Some("Rome".to_owned()));
        let bern = |id, sale| (id, sale, Some("Bern".to_owned()));
        assert_eq!(kept(db), [bern(1, 4), rome(2, 3)]);
        let rest: Vec<(Option<i64>, i64, i64, i64)> = by_hand(db, "SELECT small, rank, double, version FROM kept ORDER BY id");
        assert_eq!(rest, [(None, 7, 8, 1), (None, 7, 6, 1)]);
        let times: Vec<(i64,)> = by_hand(db, "SELECT count(*) FROM kept WHERE created_at > '2026' AND updated_at = created_at");
        assert_eq!(times, [(2,)]);
        let stamps: Vec<(i64, i64)> = by_hand(db, "SELECT count(DISTINCT commit_seq), min(commit_seq) FROM kept");
        assert_eq!(stamps[0].0, 1);
        assert!(stamps[0].1 > 0);
        // What the library reads is what it wrote, and the next key is another.
        let mut ctx = db.context();
        let all = Kept::query().load(&mut ctx).await.unwrap();
        ctx[all[0]].rank = 8;
        let mut another = ctx[all[0]].clone();
        (another.id, another.sale_id) = (0, 9);
        let another = ctx.add(another);
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx[another].id, 3);
    });
}

#[tokio::test]
async fn inserted_rows_tell_of_themselves() {
    let insert = || {
        Sale::query()
            .select((
                Sale::PARTS.count() + Sale::ID,
                case::<Sale, String>()
                    .when(Sale::DISCOUNT.is_not_null(), "reduced")
                    .otherwise(Sale::PLACE),
                value::<_, i8>(3),
            ))
            .insert_into((Kept::SALE_ID, Kept::PLACE, Kept::SMALL))
            .returning((Kept::ID, Kept::DOUBLE, Kept::PLACE.coalesce("-")))
    };
    written!(sales().await, at => insert().all(at), (db, told) => {
        let row = |id, double, place: &str| (id, double, place.to_owned());
        assert_eq!(told, Ok(vec![row(1, 4, "Rome"), row(2, 8, "reduced"), row(3, 12, "Rome"), row(4, 16, "Bern")]));
        assert_eq!(kept(db).len(), 4);
    });
}

#[tokio::test]
async fn relations_groups_and_distinct_rows_are_inserted() {
    let db = sales().await;
    let grouped = Part::query()
        .group_by(Part::SALE.get(Sale::PLACE))
        .having(Part::AMOUNT.sum().gt(1))
        .select((Part::AMOUNT.sum().coalesce(0), Part::SALE.get(Sale::PLACE)))
        .insert_into((Kept::SALE_ID, Kept::PLACE));
    assert_eq!(grouped.execute(&db).await.unwrap(), 2);
    let rows: Vec<(i64, String)> = by_hand(&db, "SELECT sale_id, place FROM kept ORDER BY place");
    assert_eq!(rows, [(7, "Bern".to_owned()), (13, "Rome".to_owned())]);
    let distinct = Sale::query()
        .distinct()
        .select(((Sale::TOTAL / Sale::TOTAL).coalesce(0), Sale::PLACE))
        .filter(Sale::PLACE.eq("Rome"))
        .insert_into((Kept::SALE_ID, Kept::PLACE));
    assert_eq!(distinct.execute(&db).await.unwrap(), 1);
}

#[tokio::test]
async fn compounds_are_inserted_in_their_order() {
    let part = |condition| {
        Sale::query()
            .filter(condition)
            .select((Sale::ID, Sale::PLACE))
    };
    let insert = || {
        part(Sale::ID.le(2))
            .union(part(Sale::ID.ge(2)).order_by(Sale::ID.asc()).limit(2))
            .order_by_position_desc(0)
            .insert_into((Kept::SALE_ID, Kept::PLACE))
    };
    written!(sales().await, at => insert().execute(at), (db, told) => {
        assert_eq!(told, Ok(3));
        let order: Vec<(i64, i64)> = by_hand(db, "SELECT id, sale_id FROM kept ORDER BY id");
        assert_eq!(order, [(1, 3), (2, 2), (3, 1)]);
    });
}

#[tokio::test]
async fn a_table_is_inserted_into_itself() {
    let copy = || {
        Sale::query()
            .select((Sale::PLACE, Sale::TOTAL + 1, Sale::DISCOUNT, Sale::DELETED))
            .insert_into((Sale::PLACE, Sale::TOTAL, Sale::DISCOUNT, Sale::DELETED))
    };
    written!(sales().await, at => copy().execute(at), (db, told) => {
        assert_eq!(told, Ok(4));
        let totals: Vec<(i64, i64)> = by_hand(db, "SELECT id, total FROM sales WHERE id > 5 ORDER BY id");
        assert_eq!(totals, [(6, 11), (7, 21), (8, 31), (9, 41)]);
    });
}

#[tokio::test]
async fn an_integer_that_the_field_cannot_hold_is_refused_and_nothing_is_written() {
    let small = Sale::query().select(value::<_, i8>(60)).limit(1);
    let sum = || {
        small
            .clone()
            .select((Sale::ID, value::<_, i8>(60) + 60 + 60))
            .insert_into((Kept::SALE_ID, Kept::SMALL))
    };
    written!(sales().await, at => sum().execute(at), (db, told) => {
        assert_eq!(told, Err(ErrorKind::Statement));
        assert_eq!(kept(db), []);
    });
}

fn model_error<E: Entity>(insert: &Insert<E>) -> (Option<String>, Option<String>) {
    let error = insert.sql().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model, "{error}");
    let owned = |name: Option<&str>| name.map(str::to_owned);
    (owned(error.table()), owned(error.column()))
}

#[tokio::test]
async fn what_a_row_cannot_be_without_has_to_be_named() {
    let ids = || Sale::query().select(Sale::ID);
    let named = |table: &str, column: &str| (Some(table.to_owned()), Some(column.to_owned()));
    assert_eq!(
        model_error(&ids().insert_into(Kept::RANK)),
        named("kept", "sale_id")
    );
    assert_eq!(
        model_error(&ids().insert_into(Ticket::SALE_ID)),
        named("ticket", "id")
    );
    assert_eq!(
        model_error(&Sale::query().select(Sale::PLACE).insert_into(Place::NAME)),
        named("place", "id")
    );
    assert_eq!(
        model_error(
            &Sale::query()
                .select((Sale::ID, Sale::ID))
                .insert_into((Kept::SALE_ID, Kept::SALE_ID))
        ),
        named("kept", "sale_id")
    );
    for (column, name) in [(Kept::DOUBLE, "double"), (Kept::VERSION, "version")] {
        let both = Sale::query()
            .select((Sale::ID, Sale::ID))
            .insert_into((Kept::SALE_ID, column));
        assert_eq!(model_error(&both), named("kept", name));
    }
    let db = sales().await;
    let error = ids()
        .insert_into(Ticket::SALE_ID)
        .execute(&db)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
    // With their keys they are taken.
    let keyed = Sale::query()
        .select((Sale::ID, Sale::PLACE))
        .insert_into((Place::ID, Place::NAME));
    assert_eq!(keyed.execute(&db).await.unwrap(), 4);
}

#[tokio::test]
async fn what_is_no_value_of_the_row_alone_is_refused() {
    let db = sales().await;
    let ids = || Sale::query().select(Sale::ID);
    let counted = ids().insert_into(Kept::SALE_ID).returning(Kept::ID.max());
    assert_eq!(
        counted.all(&db).await.unwrap_err().kind(),
        ErrorKind::Refused
    );
    let grouped = Sale::query()
        .group_by(Sale::PLACE)
        .select(Sale::ID)
        .insert_into(Kept::SALE_ID);
    assert_eq!(
        grouped.execute(&db).await.unwrap_err().kind(),
        ErrorKind::Model
    );
    let mut ctx = db.context();
    let new = ctx.add(Sale {
        id: 0,
        place: "Ulm".to_owned(),
        total: 0,
        discount: None,
        deleted: false,
    });
    let temporary = ids()
        .select((value::<_, i64>(ctx[new].id), Sale::TOTAL))
        .insert_into((Part::SALE_ID, Part::AMOUNT));
    let error = temporary.execute(&db).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Value, Some("sale_id"))
    );
    assert_eq!(kept(&db), []);
}

#[tokio::test]
async fn what_constraints_refuse_is_refused_as_a_whole() {
    let insert = || {
        Sale::query()
            .select((Sale::TOTAL / 20).coalesce(0))
            .insert_into(Kept::SALE_ID)
    };
    written!(sales().await, at => insert().execute(at), (db, told) => {
        assert_eq!(told, Err(ErrorKind::Unique));
        assert_eq!(kept(db), []);
    });
    let db = sales().await;
    let error = insert().execute(&db).await.unwrap_err();
    assert_eq!(
        (error.table(), error.column()),
        (Some("kept"), Some("sale_id"))
    );
    let orphans = Sale::query()
        .select((Sale::ID + 100, Sale::TOTAL))
        .insert_into((Part::SALE_ID, Part::AMOUNT));
    let error = orphans.execute(&db).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignKey);
}

#[tokio::test]
async fn rows_of_other_sql_are_inserted_where_they_fit() {
    let db = sales().await;
    execute(&db, "INSERT INTO kept (sale_id, small, version, created_at) VALUES (1, 5, 1, '2026-01-01 00:00:00.000000000+00:00')").await;
    let from = |sql| {
        Kept::from_sql(sql, ())
            .select((Kept::SALE_ID + 1, Kept::SMALL))
            .insert_into((Kept::SALE_ID, Kept::SMALL))
    };
    let error = from("SELECT sale_id, 500 AS small FROM kept")
        .execute(&db)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Statement);
    assert_eq!(
        from("SELECT sale_id, 100 AS small FROM kept")
            .execute(&db)
            .await
            .unwrap(),
        1
    );
}

#[tokio::test]
async fn sessions_that_insert_what_they_read_are_serial() {
    let db = sales().await;
    let mut first = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let mut second = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let unseen = || {
        Sale::query()
            .filter(Sale::ID.not_in_query(Kept::query().select(Kept::SALE_ID)))
            .select(Sale::ID)
            .insert_into(Kept::SALE_ID)
    };
    assert_eq!(unseen().execute(&mut *first).await.unwrap(), 4);
    assert_eq!(unseen().execute(&mut *second).await.unwrap(), 4);
    first.commit().await.unwrap();
    assert!(second.commit().await.unwrap_err().is_conflict());
    assert_eq!(unseen().execute(&db).await.unwrap(), 0);
    assert_eq!(kept(&db).len(), 4);
}

#[test]
fn its_text_is_one_statement() {
    let insert = Sale::query()
        .filter(Sale::TOTAL.gt(5))
        .select((Sale::ID, Sale::PLACE))
        .insert_into((Place::ID, Place::NAME));
    let expected = "INSERT INTO \"place\" (\"id\", \"name\") SELECT \"id\", \"place\" FROM \"sales\" WHERE \"total\" > ?1 AND \"deleted\" = ?2";
    assert_eq!(insert.sql().unwrap().to_string(), expected);
    assert_eq!(format!("{insert:?}"), format!("Insert({expected})"));
}
