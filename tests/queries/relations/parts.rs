//! What is read for each parent: narrowed, sorted, limited, as a query for that parent alone would.

use crate::world::{Account, Address, Customer, Line, Order, Product, Tag, ids_by_hand, shop};

const LIMITS: [Option<u64>; 6] = [None, Some(0), Some(1), Some(2), Some(100), Some(u64::MAX)];
const OFFSETS: [u64; 4] = [0, 1, 2, u64::MAX];

/// In SQL.
fn window(limit: Option<u64>, offset: u64) -> String {
    let limit = limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    format!("LIMIT {limit} OFFSET {offset}")
}

#[tokio::test]
async fn children_of_each_parent_are_those_of_a_query_for_it_alone() {
    let db = shop().await;
    for (limit, offset) in combinations() {
        let mut orders = Customer::ORDERS
            .filter(Order::TOTAL.ge(10))
            .order_by([Order::TOTAL.desc()])
            .order_by([Order::ID.asc()])
            .offset(offset);
        if let Some(limit) = limit {
            orders = orders.limit(limit);
        }
        let query = Customer::query()
            .order_by(Customer::ID.asc())
            .select((Customer::ID, orders.select(Order::ID)));
        let alone = |customer: i64| {
            let sql = format!(
                r#"SELECT id FROM "order's ""list""" WHERE "customer's ""id""" = {customer} AND total >= 10
                   ORDER BY total DESC, id {}"#,
                window(limit, offset)
            );
            (customer, ids_by_hand(&db, &sql))
        };
        let expected: Vec<_> = (1..=4).map(alone).collect();
        gives!(db, query, expected);
    }
}

fn combinations() -> impl Iterator<Item = (Option<u64>, u64)> {
    let offsets = |limit| OFFSETS.into_iter().map(move |offset| (limit, offset));
    LIMITS.into_iter().flat_map(offsets)
}

#[tokio::test]
async fn so_it_is_through_a_third_and_by_a_key_of_several_columns() {
    let db = shop().await;
    for (limit, offset) in combinations() {
        let mut tags = Product::TAGS
            .filter(Tag::CODE.ne("none"))
            .order_by([Tag::LABEL.asc(), Tag::CODE.desc()])
            .offset(offset);
        let mut lines = Order::LINES.order_by([Line::AMOUNT.desc()]).offset(offset);
        if let Some(limit) = limit {
            (tags, lines) = (tags.limit(limit), lines.limit(limit));
        }
        let tags = Product::query()
            .order_by(Product::ID.asc())
            .select(tags.select(Tag::CODE.char_length()));
        let alone = |product: i64| {
            let sql = format!(
                "SELECT length(code) FROM tag JOIN product_tag ON code = tag_code
                 WHERE product_id = x'0000000000000000000000000000000{product}' ORDER BY label, code DESC {}",
                window(limit, offset)
            );
            ids_by_hand(&db, &sql)
        };
        gives!(db, tags, (1..=3).map(alone).collect::<Vec<_>>());
        let lines = Order::query()
            .order_by(Order::ID.asc())
            .select(lines.select(Line::POSITION));
        let alone = |order: i64| {
            let sql = format!(
                "SELECT position FROM line WHERE order_id = {order} ORDER BY amount DESC {}",
                window(limit, offset)
            );
            ids_by_hand(&db, &sql)
        };
        gives!(db, lines, (1..=5).map(alone).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn children_are_sorted_and_narrowed_by_what_they_are_related_to() {
    let db = shop().await;
    let query = Customer::query().order_by(Customer::ID.asc()).select(
        Customer::ORDERS
            .filter(Order::LINES.exists().or(Order::SHIP_TO.exists()))
            .order_by([
                Order::SHIP_TO.get(Address::CITY).desc(),
                Order::LINES.count().asc(),
                Order::ID.asc(),
            ])
            .limit(2)
            .select((Order::ID, Order::CUSTOMER.get(Customer::NAME))),
    );
    let ada = "Ada".to_owned();
    gives!(
        db,
        query,
        [
            vec![(1, ada.clone()), (4, ada.clone())],
            vec![(3, "O'Brien \"Bob\"".to_owned())],
            vec![(5, "Cy".to_owned())],
            vec![]
        ]
    );
}

/// A limit of none on a relation to at most one left the one there.
#[tokio::test]
async fn a_limit_of_none_leaves_out_the_one_that_there_may_be() {
    let db = shop().await;
    let customers = || Customer::query().order_by(Customer::ID.asc());
    let account = Customer::ACCOUNT.select(Account::ID);
    gives!(
        db,
        customers().select(account.clone().limit(1)),
        [Some(1), None, Some(2), None]
    );
    gives!(db, customers().select(account.clone().limit(0)), [None; 4]);
    gives!(db, customers().select(account.offset(1)), [None; 4]);
    let referrer = Customer::REFERRER.limit(0).select(Customer::ID);
    gives!(db, customers().select(referrer), [None; 4]);
}

#[tokio::test]
async fn a_page_and_one_row_come_with_their_relations() {
    let db = shop().await;
    let (order, lines) = Order::query()
        .filter(Order::ID.eq(1))
        .with(Order::LINES)
        .one(&db)
        .await
        .unwrap();
    assert_eq!((order.id, lines.len()), (1, 2));
    let found = Order::query()
        .order_by(Order::ID.desc())
        .with(Order::LINES.then(Line::PRODUCT))
        .first(&db)
        .await
        .unwrap();
    assert_eq!(found.unwrap().1[0].1.name, "jam");
    let page = Order::query()
        .with(Order::LINES.select(Line::POSITION))
        .order_by(Order::ID.asc())
        .page(None, 2)
        .read(&db)
        .await
        .unwrap();
    let positions: Vec<_> = page.items.into_iter().map(|(_, lines)| lines).collect();
    assert_eq!(positions, [vec![1, 2], vec![1]]);
    let count = Order::query().with(Order::LINES).limit(3).count(&db).await;
    assert_eq!(count.unwrap(), 3);
}
