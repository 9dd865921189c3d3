//! Subqueries about the row around them, and joins on any condition.

use anabranch::{
    entity::Column,
    prelude::*,
    query::{Over, Query, count, exists, outer, row_number, upsert},
};
use anabranch_tests::execute;

use crate::expressions::places::{by_hand, everywhere, same};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "order \"s\"", has_many(lines: Line))]
struct Order {
    #[entity(id)]
    id: i64,
    item: String,
    #[entity(column = "the \"day\"")]
    day: i64,
    /// Also a column of the prices.
    amount: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Line {
    #[entity(id)]
    id: i64,
    #[entity(references = Order, index)]
    order_id: i64,
    amount: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(filter(valid = Price::valid))]
struct Price {
    #[entity(id)]
    id: i64,
    item: String,
    since: i64,
    amount: i64,
    valid: bool,
}

impl Price {
    fn valid() -> Condition<Self> {
        Self::VALID.eq(true)
    }
}

async fn shop() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Order, Line, Price)>().await.unwrap();
    execute(
        &db,
        r#"INSERT INTO "order ""s""" VALUES (1, 'tea', 3, 5), (2, 'tea', 9, 1), (3, 'jam', 9, 3), (4, 'tea', 0, 5)"#,
    )
    .await;
    execute(
        &db,
        "INSERT INTO price VALUES (1, 'tea', 1, 4, 1), (2, 'tea', 7, 5, 1), (3, 'jam', 20, 3, 1), (4, 'jam', 1, 9, 0)",
    )
    .await;
    execute(
        &db,
        "INSERT INTO line VALUES (1, 1, 4), (2, 1, 7), (3, 2, 5), (4, 3, 1)",
    )
    .await;
    db
}

/// The prices that the item of the order around has had.
fn prices() -> Query<Price> {
    Price::query()
        .filter(Price::ITEM.eq(outer(Order::ITEM)))
        .filter(Price::SINCE.le(outer(Order::DAY)))
}

fn orders() -> Query<Order> {
    Order::query().order_by(Order::ID.asc())
}

fn orders_by_item() -> Query<Order> {
    Order::query()
        .group_by(Order::ITEM)
        .order_by(Order::ITEM.asc())
}

/// For SQL written by hand.
const O: &str = r#"(SELECT id, item, "the ""day""" AS day, amount FROM "order ""s""") o"#;

#[tokio::test]
async fn subqueries_name_columns_of_the_row_around_them() {
    let db = shop().await;
    same(
        &db,
        orders().filter(exists(prices())).select((Order::ID,)),
        &format!(
            "SELECT id FROM {O} WHERE EXISTS (SELECT 1 FROM price p WHERE valid AND p.item = o.item AND since <= o.day) ORDER BY id"
        ),
    )
    .await;
    // `amount` is a column of both.
    let same_amount = prices().filter(Price::AMOUNT.ne(outer(Order::AMOUNT)));
    same(
        &db,
        orders().filter(!exists(same_amount)).select((Order::ID,)),
        &format!(
            "SELECT id FROM {O} WHERE NOT EXISTS (SELECT 1 FROM price p
             WHERE valid AND p.item = o.item AND since <= o.day AND p.amount <> o.amount) ORDER BY id"
        ),
    )
    .await;
    let price = || {
        prices()
            .order_by(Price::SINCE.desc())
            .limit(1)
            .select(Price::AMOUNT * outer::<Price, _, _, _>(Order::AMOUNT))
            .as_value::<Order>()
    };
    same(
        &db,
        orders()
            .order_by(price().desc())
            .filter(price().coalesce(0).lt(100))
            .select((Order::ID, price())),
        &format!(
            "SELECT id, (SELECT p.amount * o.amount FROM price p WHERE valid AND p.item = o.item AND since <= o.day
             ORDER BY since DESC LIMIT 1) FROM {O} ORDER BY id"
        ),
    )
    .await;
    let amounts = prices().select(Price::AMOUNT + 1);
    same(
        &db,
        orders()
            .filter(Order::AMOUNT.is_in_query(amounts))
            .select((Order::ID, Order::LINES.count())),
        &format!(
            "SELECT id, (SELECT count(*) FROM line WHERE order_id = o.id) FROM {O} WHERE amount IN
             (SELECT amount + 1 FROM price p WHERE valid AND p.item = o.item AND since <= o.day) ORDER BY id"
        ),
    )
    .await;
    // Through relations: of the order by way of its line, and computed.
    let dear = Order::LINES.any(
        Line::AMOUNT.gt(outer(Order::AMOUNT)).and(exists(
            Price::query().filter(
                Price::AMOUNT
                    .lt(outer(Line::AMOUNT))
                    .and(Price::SINCE.gt(outer(Order::DAY * 2)))
                    .and(Price::ITEM.eq(outer(Line::ORDER.get(Order::ITEM)))),
            ),
        )),
    );
    same(
        &db,
        orders().filter(dear).select((Order::ID,)),
        &format!(
            "SELECT id FROM {O} WHERE EXISTS (SELECT 1 FROM line l WHERE order_id = o.id AND l.amount > o.amount AND EXISTS
             (SELECT 1 FROM price p WHERE valid AND p.amount < l.amount AND since > o.day * 2 AND p.item = o.item)) ORDER BY id"
        ),
    )
    .await;
    let of_lines = Order::LINES
        .filter(Line::AMOUNT.lt(outer(Order::AMOUNT)))
        .of_all(Line::AMOUNT.sum());
    same(
        &db,
        orders().filter(Order::ID.ne(4)).select((Order::ID, of_lines)),
        &format!("SELECT id, (SELECT sum(l.amount) FROM line l WHERE order_id = id AND l.amount < o.amount) FROM {O} WHERE id <> 4 ORDER BY id").replace("order_id = id", "order_id = o.id"),
    )
    .await;
    // As the rows of a table, in a compound, and in SQL as it is written.
    let derived = prices().limit(1).as_table().filter(Price::AMOUNT.gt(3));
    assert_eq!(
        orders().filter(exists(derived)).count(&db).await.unwrap(),
        2
    );
    let written = Query::<Price>::from_sql(
        "SELECT * FROM price WHERE item = {}",
        (outer::<Price, _, _, _>(Order::ITEM),),
    );
    assert_eq!(
        orders().filter(exists(written)).count(&db).await.unwrap(),
        4
    );
    let union = orders()
        .filter(exists(prices()))
        .select(Order::ID)
        .union(orders().filter(!exists(prices())).select(Order::ID));
    assert_eq!(union.count(&db).await.unwrap(), 4);
    let of_any =
        orders_by_item().select((Order::ITEM, prices().select(count()).as_value::<Order>()));
    assert_eq!(
        everywhere(&db, &of_any).await,
        Err(ErrorKind::Model),
        "the day is that of any order of the group"
    );
    let by_item = Price::query()
        .filter(Price::ITEM.eq(outer(Order::ITEM)))
        .select(count())
        .as_value::<Order>();
    let grouped = orders_by_item().select((Order::ITEM, by_item));
    same(&db, grouped, "VALUES ('jam', 1), ('tea', 2)").await;
}

#[tokio::test]
async fn both_rows_may_be_of_one_table() {
    let db = shop().await;
    let earlier = || {
        Order::query().filter(
            Order::ITEM
                .eq(outer(Order::ITEM))
                .and(Order::DAY.lt(outer(Order::DAY))),
        )
    };
    same(
        &db,
        orders().select((
            Order::ID,
            earlier().select(count()).as_value::<Order>().coalesce(0),
        )),
        &format!(
            "SELECT id, (SELECT count(*) FROM \"order \"\"s\"\"\" e WHERE e.item = o.item AND e.\"the \"\"day\"\"\" < o.day) FROM {O} ORDER BY id"
        ),
    )
    .await;
    // The first two of each item, and the row around the row around.
    let first_two = orders()
        .filter(
            earlier()
                .select(count())
                .as_value::<Order>()
                .coalesce(0)
                .lt(2),
        )
        .select((Order::ID,));
    same(&db, first_two, "VALUES (1), (3), (4)").await;
    fn here<T>(column: Column<Order, T>) -> Expr<Order, T> {
        outer(column)
    }
    let between = Order::query().filter(
        Order::ITEM
            .eq(here(Order::ITEM))
            .and(Order::DAY.gt(here(Order::DAY)))
            .and(exists(
                Order::query().filter(
                    // Later than the one in between, with the amount of the outermost.
                    Order::DAY
                        .gt(here(Order::DAY))
                        .and(Order::AMOUNT.lt(outer(here(Order::AMOUNT)))),
                ),
            )),
    );
    same(
        &db,
        orders().filter(exists(between)).select((Order::ID,)),
        &format!(
            "SELECT id FROM {O} WHERE EXISTS (SELECT 1 FROM {m} WHERE m.item = o.item AND m.day > o.day AND EXISTS
             (SELECT 1 FROM {l} WHERE l.day > m.day AND l.amount < o.amount)) ORDER BY id",
            m = O.replace(") o", ") m"),
            l = O.replace(") o", ") l"),
        ),
    )
    .await;
}

#[tokio::test]
async fn changes_may_depend_on_correlated_subqueries() {
    let db = shop().await;
    let price = prices()
        .order_by(Price::SINCE.desc())
        .limit(1)
        .select(Price::AMOUNT)
        .as_value::<Order>();
    let changed = Order::query()
        .filter(exists(prices()))
        .update()
        .set(Order::AMOUNT, price.coalesce(0));
    assert_eq!(changed.execute(&db).await.unwrap(), 2);
    assert_eq!(
        by_hand::<(i64,)>(&db, "SELECT amount FROM \"order \"\"s\"\"\" ORDER BY id"),
        [(4,), (5,), (3,), (5,)]
    );
    let deleted = Order::query().filter(!exists(prices())).limit(9).delete();
    execute(&db, "DELETE FROM line").await;
    assert_eq!(deleted.execute(&db).await.unwrap(), 2);
}

#[tokio::test]
async fn a_row_that_is_not_around_is_refused() {
    let db = shop().await;
    let refused = Err(ErrorKind::Refused);
    let alone = prices().select((Price::ID,));
    assert_eq!(everywhere(&db, &alone).await, refused);
    let error = prices().count(&db).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.table()),
        (ErrorKind::Refused, Some("order \"s\""))
    );
    assert!(prices().exists(&db).await.is_err());
    let wrong = Line::query().filter(exists(prices())).select((Line::ID,));
    assert_eq!(everywhere(&db, &wrong).await, refused);
    // Not even of its own row.
    let own = orders()
        .filter(Order::DAY.eq(outer(Order::DAY)))
        .select((Order::ID,));
    assert_eq!(everywhere(&db, &own).await, refused);
    let union = prices().union(prices());
    assert_eq!(everywhere(&db, &union).await, Err(ErrorKind::Refused));
    let read = orders().with(Order::LINES.filter(Line::AMOUNT.gt(outer(Order::AMOUNT))));
    let nobody = read.clone().filter(Order::ID.lt(0)).all(&db).await;
    assert_eq!(nobody.unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(read.all(&db).await.unwrap_err().kind(), ErrorKind::Refused);
    let sum = orders().filter(
        Order::DAY.is_in_query(Price::query().select(outer::<Price, _, _, _>(Order::DAY.sum()))),
    );
    assert_eq!(sum.all(&db).await.unwrap_err().kind(), ErrorKind::Refused);
    let window = outer::<Price, Order, _, _>(row_number().over(Over::all()));
    let window = orders().filter(exists(Price::query().filter(window.gt(1))));
    assert_eq!(
        window.all(&db).await.unwrap_err().kind(),
        ErrorKind::Refused
    );
    let returned = orders()
        .delete()
        .returning(outer::<Order, _, _, _>(Order::DAY));
    assert_eq!(
        returned.all(&db).await.unwrap_err().kind(),
        ErrorKind::Refused
    );
    let deleted = orders().filter(Order::ID.gt(outer(Line::ID))).delete();
    assert_eq!(
        deleted.execute(&db).await.unwrap_err().kind(),
        ErrorKind::Refused
    );
    let order = Order {
        id: 1,
        item: "tea".into(),
        day: 1,
        amount: 1,
    };
    let upserted = upsert(order).set(Order::DAY, outer::<Order, _, _, _>(Line::AMOUNT));
    assert_eq!(
        upserted.execute(&db).await.unwrap_err().kind(),
        ErrorKind::Refused
    );
    assert_eq!(
        by_hand::<(i64,)>(&db, "SELECT count(*) FROM \"order \"\"s\"\"\""),
        [(4,)]
    );
}

fn valid_then() -> Fetch<Order, Vec<Price>> {
    Relation::when(
        Price::ITEM
            .eq(outer(Order::ITEM))
            .and(Price::SINCE.le(outer(Order::DAY))),
    )
}

#[tokio::test]
async fn a_condition_makes_a_relation() {
    let db = shop().await;
    let asked = valid_then()
        .any(Price::AMOUNT.gt(4))
        .or(valid_then().none(Price::AMOUNT.gt(0)));
    same(
        &db,
        orders().filter(asked).select((
            Order::ID,
            valid_then().count(),
            valid_then().of_all(Price::AMOUNT.max()).coalesce(0),
        )),
        "VALUES (2, 2, 5), (3, 0, 0), (4, 0, 0)",
    )
    .await;
    let read = orders()
        .with(valid_then().order_by(Price::SINCE.desc()).select(Price::ID))
        .with(Order::LINES);
    let read = read.all(&db).await.unwrap();
    let prices: Vec<_> = read.iter().map(|(_, prices, _)| &prices[..]).collect();
    assert_eq!(prices, [&[1][..], &[2, 1], &[], &[]]);
    let limited = orders().with(
        valid_then()
            .order_by(Price::SINCE.desc())
            .limit(1)
            .without_filters(),
    );
    let limited = limited.all(&db).await.unwrap();
    let ids: Vec<Vec<i64>> = (limited.iter())
        .map(|(_, prices)| prices.iter().map(|price| price.id).collect())
        .collect();
    assert_eq!(ids, [vec![1], vec![2], vec![4], vec![]]);
    // Any with any, also where there is none.
    execute(&db, "DELETE FROM price").await;
    let all: Fetch<Order, Vec<Price>> = Relation::when(Condition::all_of([]));
    let none = orders().with(all).all(&db).await.unwrap();
    assert!(none.iter().all(|(_, prices)| prices.is_empty()));
    // Nested, and tracked.
    let nested = Relation::<Line, Vec<Line>>::when(
        Line::AMOUNT
            .gt(outer(Line::AMOUNT))
            .and(Line::ORDER_ID.eq(outer(Line::ORDER_ID))),
    );
    let nested = orders().with(Order::LINES.then(nested.clone()));
    let mut ctx = db.context();
    let tracked = nested.clone().load(&mut ctx).await.unwrap();
    assert_eq!(tracked.len(), 4);
    let nested = nested.all(&db).await.unwrap();
    let larger: Vec<_> = (nested[0].1.iter())
        .map(|(line, larger)| (line.id, larger.len()))
        .collect();
    assert_eq!(larger, [(1, 1), (2, 0)]);
}

/// Named as the aliases are that statements give.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "t0", filter(last = First::last))]
struct First {
    #[entity(id)]
    id: i64,
    n: i64,
}

impl First {
    /// A filter that asks about the other rows of its table.
    fn last() -> Condition<Self> {
        let later = Self::query()
            .without_filters()
            .filter(Self::N.eq(outer(Self::N)).and(Self::ID.gt(outer(Self::ID))));
        !exists(later)
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "t1")]
struct Second {
    #[entity(id)]
    id: i64,
    n: i64,
}

#[tokio::test]
async fn tables_named_as_aliases_are_told_apart() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(First, Second)>().await.unwrap();
    execute(&db, "INSERT INTO t0 VALUES (1, 1), (2, 1), (3, 2)").await;
    execute(&db, "INSERT INTO t1 VALUES (1, 1), (2, 3), (3, 2)").await;
    same(
        &db,
        First::query()
            .select((First::ID,))
            .order_by(First::ID.asc()),
        "VALUES (2), (3)",
    )
    .await;
    let firsts = First::query()
        .filter(First::N.eq(outer(Second::N)))
        .select(First::ID.sum())
        .as_value::<Second>();
    let seconds = Second::query()
        .filter(exists(
            First::query()
                .without_filters()
                .filter(First::N.eq(outer(Second::N))),
        ))
        .order_by(Second::ID.asc())
        .select((Second::ID, firsts.coalesce(0)));
    same(&db, seconds, "VALUES (1, 2), (3, 3)").await;
    // The sum so far, by a join of the table with itself.
    let so_far = Relation::<Second, Vec<Second>>::when(Second::ID.le(outer(Second::ID)));
    same(
        &db,
        Second::query()
            .order_by(Second::ID.asc())
            .select((Second::ID, so_far.of_all(Second::N.sum()).coalesce(0))),
        "VALUES (1, 1), (2, 4), (3, 6)",
    )
    .await;
    // Correlated rows as a table, in a condition on a part of that table.
    let largest = Second::query()
        .filter(Second::N.le(outer(Second::N)))
        .order_by(Second::N.desc())
        .limit(2)
        .as_table()
        .filter(Second::ID.lt(outer(Second::ID)));
    same(
        &db,
        Second::query().filter(exists(largest)).select((Second::ID,)).order_by(Second::ID.asc()),
        "SELECT id FROM t1 a WHERE EXISTS (SELECT 1 FROM (SELECT * FROM t1 b WHERE b.n <= a.n ORDER BY n DESC LIMIT 2) c
         WHERE c.id < a.id) ORDER BY id",
    )
    .await;
    let page = First::query()
        .order_by(First::ID.asc())
        .page(None, 1)
        .read(&db)
        .await
        .unwrap();
    assert_eq!(page.items.len(), 1);
    let next = First::query().order_by(First::ID.asc()).page(page.next, 5);
    assert_eq!(next.read(&db).await.unwrap().items, [First { id: 3, n: 2 }]);
    assert_eq!(First::query().delete().execute(&db).await.unwrap(), 2);
}
