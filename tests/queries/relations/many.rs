//! Many parents: none is lost and none gets another's children, and the number of statements does not grow.

use anabranch::prelude::*;
use anabranch_tests::outsider;
use uuid::Uuid;

use crate::{
    relations::places::Counting,
    world::{Address, Customer, Line, Order, Product, ProductTag, Remark, Tag, shop, tables},
};

const NUMBERS: &str =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";

/// Runs statements over the numbers up to one.
fn fill(db: &Database, count: usize, statements: &[&str]) {
    if count == 0 {
        return;
    }
    let connection = outsider(db.path());
    for statement in statements {
        let sql = match statement.split_once("SELECT") {
            Some((insert, select)) => format!("{insert} {NUMBERS} SELECT {select} FROM n"),
            None => panic!("no SELECT"),
        };
        connection
            .execute(&sql, [i64::try_from(count).unwrap()])
            .unwrap();
    }
}

/// Orders for two of three customers, two for each.
const ORDERS: [&str; 3] = [
    "INSERT INTO customer SELECT i, 'c' || i, NULL",
    r#"INSERT INTO "order's ""list""" SELECT i, i - i % 3 + 1, NULL, i"#,
    "INSERT INTO address SELECT i, i, 'city' || i",
];

#[tokio::test]
async fn each_parent_gets_its_children_however_many_there_are() {
    for count in [0, 1, 8, 9, 1_000, 40_000] {
        let db = tables().await;
        // So that a reference of the last ones is not dangling.
        fill(&db, count + 3, &ORDERS[..1]);
        fill(&db, count, &ORDERS[1..]);
        let counting = Counting::new(&db);
        let found = Customer::query()
            .with(Customer::ORDERS.select((Order::ID, Order::CUSTOMER.select(Customer::ID))))
            .with(Customer::ADDRESSES.select((Address::ID, Address::CITY)))
            .all(&counting)
            .await
            .unwrap();
        assert_eq!(counting.take(), 3);
        assert_eq!(found.len(), count + 3);
        let mut orders = 0;
        for (customer, of_it, addresses) in found {
            orders += of_it.len();
            for (order, owner) in of_it {
                assert_eq!((owner, order - order % 3 + 1), (customer.id, customer.id));
            }
            let is_one = customer.id <= i64::try_from(count).unwrap();
            let city = format!("city{}", customer.id);
            let expected: &[(i64, String)] = if is_one { &[(customer.id, city)] } else { &[] };
            assert_eq!(addresses, expected);
        }
        assert_eq!(orders, count);
    }
}

#[tokio::test]
async fn keys_of_text_are_found_as_the_database_compares_them() {
    for count in [1, 8, 9, 700] {
        let db = tables().await;
        fill(
            &db,
            count,
            &[
                "INSERT INTO tag SELECT 'Tag \"' || i || '\" ä''', NULL",
                "INSERT INTO product SELECT CAST(substr('0000000000000000' || i, -16) AS BLOB), 'p' || i",
            ],
        );
        fill(
            &db,
            count - 1,
            &[
                "INSERT INTO product_tag SELECT CAST(substr('0000000000000000' || (i + 1), -16) AS BLOB), 'TAG \"' || (i + 1 - (i + 1) % 2) || '\" ä''', i + 1",
            ],
        );
        let counting = Counting::new(&db);
        let found = Tag::query()
            .with(Tag::PRODUCTS)
            .all(&counting)
            .await
            .unwrap();
        assert_eq!((counting.take(), found.len()), (2, count));
        assert_eq!(
            found.iter().map(|(_, of)| of.len()).sum::<usize>(),
            count - 1
        );
        for (tag, products) in &found {
            let number: u64 = tag.code.split('"').nth(1).unwrap().parse().unwrap();
            for product in products {
                let of: u64 = product.name[1..].parse().unwrap();
                assert_eq!(of - of % 2, number);
            }
        }
        // And the other way, by keys that are bytes.
        let products = Product::query()
            .with(Product::TAGS)
            .with(Product::TAGGED.order_by([ProductTag::WEIGHT.asc()]))
            .all(&counting)
            .await
            .unwrap();
        assert_eq!((counting.take(), products.len()), (3, count));
        for (product, tags, tagged) in products {
            let weight: i64 = product.name[1..].parse().unwrap();
            let expected = usize::from(weight > 1);
            assert_eq!((tags.len(), tagged.len()), (expected, expected));
            assert!(tagged.iter().all(|tagged| tagged.weight == weight));
        }
    }
}

#[tokio::test]
async fn keys_of_several_columns_are_found_however_many_there_are() {
    for count in [1_usize, 8, 9, 200, 201, 500] {
        let db = shop().await;
        outsider(db.path())
            .execute_batch("DELETE FROM remark; DELETE FROM line")
            .unwrap();
        fill(
            &db,
            count,
            &[
                "INSERT INTO line SELECT i % 5 + 1, i, x'00000000000000000000000000000001', i, NULL",
                "INSERT INTO remark SELECT i, i % 5 + 1, i, 'a'",
                "INSERT INTO remark SELECT i + 1000, i % 5 + 1, i, 'b'",
            ],
        );
        let counting = Counting::new(&db);
        let found = Line::query()
            .with(
                Line::REMARKS
                    .order_by([Remark::ID.asc()])
                    .select(Remark::ID),
            )
            .all(&counting)
            .await
            .unwrap();
        // Keys of several columns are asked for by two hundred.
        assert_eq!(counting.take(), 1 + count.div_ceil(200));
        assert_eq!(found.len(), count);
        for (line, remarks) in found {
            assert_eq!(remarks, [line.position, line.position + 1_000]);
        }
    }
}

#[tokio::test]
async fn a_child_of_several_parents_is_there_for_each() {
    let db = shop().await;
    let counting = Counting::new(&db);
    let found = Order::query()
        .order_by(Order::ID.asc())
        .with(Order::CUSTOMER.then(Customer::ADDRESSES.order_by([Address::ID.asc()])))
        .all(&counting)
        .await
        .unwrap();
    assert_eq!(counting.take(), 2);
    let addresses: Vec<Vec<i64>> = found
        .iter()
        .map(|(_, (_, addresses))| addresses.iter().map(|it| it.id).collect())
        .collect();
    assert_eq!(
        addresses,
        [vec![1, 2], vec![1, 2], vec![3], vec![1, 2], vec![]]
    );
}

#[tokio::test]
async fn relations_to_one_need_no_statement_and_those_to_many_one_each() {
    let db = shop().await;
    let counting = Counting::new(&db);
    let query = Order::query();
    query
        .clone()
        .with(Order::CUSTOMER.then(Customer::REFERRER.then(Customer::ACCOUNT)))
        .with(Order::SHIP_TO.then(Address::CUSTOMER))
        .all(&counting)
        .await
        .unwrap();
    assert_eq!(counting.take(), 1);
    let all = query
        .clone()
        .with(
            Order::CUSTOMER
                .then(Customer::ORDERS)
                .then(Customer::ADDRESSES),
        )
        .with(
            Order::LINES
                .then(Line::PRODUCT.then(Product::TAGS))
                .then(Line::REMARKS),
        )
        .all(&counting)
        .await
        .unwrap();
    assert_eq!((counting.take(), all.len()), (6, 5));
    // Nothing is asked for the children of none.
    let none = query
        .filter(Order::ID.gt(9))
        .with(Order::LINES.then(Line::REMARKS));
    assert_eq!(none.all(&counting).await.unwrap().len(), 0);
    assert_eq!(counting.take(), 1);
    // Nor is what is not limited to them: the first has two lines.
    let first = Order::query().order_by(Order::ID.asc()).with(Order::LINES);
    assert_eq!(first.first(&counting).await.unwrap().unwrap().1.len(), 2);
    assert_eq!(counting.take(), 2);
}

/// A writer commits a customer and two orders at a time, and takes them away together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parents_and_children_that_were_committed_together_are_read_together() {
    let db = tables().await;
    let writing = tokio::spawn({
        let db = db.clone();
        async move {
            for round in 1..=150 {
                let mut ctx = db.context();
                let name = format!("c{round}");
                let customer = ctx.add(Customer {
                    id: 0,
                    name,
                    referrer_id: None,
                });
                let id = ctx[customer].id;
                for _ in 0..2 {
                    ctx.add(Order {
                        id: 0,
                        customer_id: id,
                        ship_to_id: None,
                        total: None,
                    });
                }
                ctx.save_changes().await.unwrap();
                if round % 2 == 0 {
                    let id = ctx[customer].id;
                    db.write(async |tx| {
                        let orders = Order::query().filter(Order::CUSTOMER_ID.eq(id));
                        orders.delete().execute(&mut *tx).await?;
                        let customers = Customer::query().filter(Customer::ID.eq(id));
                        customers.delete().execute(&mut *tx).await
                    })
                    .await
                    .unwrap();
                }
            }
        }
    });
    let customers = || Customer::query().select(Customer::ORDERS);
    let orders = || Order::query().with(Order::CUSTOMER.then(Customer::ORDERS));
    while !writing.is_finished() {
        everywhere!(db, customers(), |found| {
            assert!(found.unwrap().iter().all(|orders| orders.len() == 2));
        });
        everywhere!(db, orders(), |found| {
            let found = found.unwrap();
            assert!(found.iter().all(|(_, (_, orders))| orders.len() == 2));
        });
        let mut ctx = db.context();
        let loaded = Customer::query()
            .with(Customer::ORDERS)
            .load(&mut ctx)
            .await;
        assert!(loaded.unwrap().iter().all(|(_, orders)| orders.len() == 2));
    }
    writing.await.unwrap();
    assert_eq!(Customer::query().count(&db).await.unwrap(), 75);
}

#[tokio::test]
async fn a_key_is_found_in_each_form_of_list() {
    let db = tables().await;
    let mut ctx = db.context();
    for number in 0..20_u128 {
        let id = Uuid::from_u128(number << 64 | 0xff);
        ctx.add(Product {
            id,
            name: number.to_string(),
        });
    }
    ctx.add(Tag {
        code: "[1,\"2\"]".into(),
        label: None,
    });
    for number in 0..20 {
        let product_id = Uuid::from_u128(number << 64 | 0xff);
        ctx.add(ProductTag {
            product_id,
            tag_code: "[1,\"2\"]".into(),
            weight: 0,
        });
    }
    ctx.save_changes().await.unwrap();
    for limit in [1, 8, 9, 20] {
        let found = Product::query()
            .limit(limit)
            .with(Product::TAGS)
            .all(&db)
            .await;
        let found = found.unwrap();
        assert_eq!(found.len(), usize::try_from(limit).unwrap());
        assert!(found.iter().all(|(_, tags)| tags.len() == 1));
    }
}
