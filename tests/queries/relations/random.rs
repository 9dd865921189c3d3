//! Small shops at random: what relations read is what plain Rust makes of all rows.

use std::collections::BTreeSet;

use anabranch::prelude::*;
use anabranch_tests::outsider;
use proptest::{
    prelude::{ProptestConfig, Strategy, prop},
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use uuid::Uuid;

use crate::world::{Customer, Line, Order, Product, ProductTag, Tag, product, tables};

/// Rows by number: of customers their referrers, of orders their customers and totals, of lines their orders and products.
#[derive(Debug, Clone)]
struct Rows {
    referrers: Vec<Option<usize>>,
    orders: Vec<(usize, Option<i64>)>,
    lines: Vec<(usize, u8)>,
    tagged: BTreeSet<(u8, u8)>,
    at_least: i64,
    limit: u64,
    offset: u64,
}

fn rows() -> impl Strategy<Value = Rows> {
    let referrers = prop::collection::vec(prop::option::of(0_usize..9), 1..12);
    let orders = prop::collection::vec((0_usize..99, prop::option::of(0_i64..4)), 0..14);
    let lines = prop::collection::vec((0_usize..99, 0_u8..4), 0..20);
    let tagged = prop::collection::btree_set((0_u8..4, 0_u8..3), 0..12);
    (
        referrers,
        orders,
        lines,
        tagged,
        (0_i64..4, 0_u64..4, 0_u64..3),
    )
        .prop_map(
            |(mut referrers, mut orders, mut lines, tagged, (at_least, limit, offset))| {
                let customers = referrers.len();
                for referrer in referrers.iter_mut().flatten() {
                    *referrer %= customers;
                }
                for (customer, _) in &mut orders {
                    *customer %= customers;
                }
                match orders.len() {
                    0 => lines.clear(),
                    count => lines.iter_mut().for_each(|(order, _)| *order %= count),
                }
                Rows {
                    referrers,
                    orders,
                    lines,
                    tagged,
                    at_least,
                    limit,
                    offset,
                }
            },
        )
}

fn key(index: usize) -> i64 {
    i64::try_from(index).unwrap() + 1
}

/// Never 0: that would be an unset key.
fn id_of(number: u8) -> Uuid {
    product(u128::from(number) + 1)
}

fn product_of(number: u8) -> Product {
    Product {
        id: id_of(number),
        name: number.to_string(),
    }
}

impl Rows {
    fn customers(&self) -> Vec<Customer> {
        let customer = |(index, referrer): (usize, &Option<usize>)| Customer {
            id: key(index),
            name: format!("c{}", index % 3),
            referrer_id: referrer.map(key),
        };
        self.referrers.iter().enumerate().map(customer).collect()
    }

    fn orders(&self) -> Vec<Order> {
        let order = |(index, (customer, total)): (usize, &(usize, Option<i64>))| Order {
            id: key(index),
            customer_id: key(*customer),
            ship_to_id: None,
            total: *total,
        };
        self.orders.iter().enumerate().map(order).collect()
    }

    fn lines(&self) -> Vec<Line> {
        let line = |(index, (order, of)): (usize, &(usize, u8))| Line {
            order_id: key(*order),
            position: key(index),
            product_id: id_of(*of),
            amount: 1,
            price: None,
        };
        self.lines.iter().enumerate().map(line).collect()
    }

    fn tags_of(&self, number: u8) -> Vec<String> {
        let of_it = self.tagged.iter().filter(|(product, _)| *product == number);
        of_it.map(|(_, tag)| format!("tag{tag}")).collect()
    }
}

async fn write(db: &Database, rows: &Rows) {
    outsider(db.path())
        .execute_batch(
            r#"PRAGMA foreign_keys = OFF; DELETE FROM product_tag; DELETE FROM line; DELETE FROM "order's ""list""";
               DELETE FROM customer; DELETE FROM product; DELETE FROM tag"#,
        )
        .unwrap();
    let mut ctx = db.context();
    for customer in rows.customers() {
        ctx.add(customer);
    }
    for order in rows.orders() {
        ctx.add(order);
    }
    for number in 0..4 {
        ctx.add(product_of(number));
    }
    for tag in 0..3 {
        ctx.add(Tag {
            code: format!("Tag{tag}"),
            label: None,
        });
    }
    for line in rows.lines() {
        ctx.add(line);
    }
    for (number, tag) in &rows.tagged {
        let (product_id, tag_code) = (id_of(*number), format!("tag{tag}"));
        ctx.add(ProductTag {
            product_id,
            tag_code,
            weight: 0,
        });
    }
    ctx.save_changes().await.unwrap();
}

async fn is_as_in_rust(db: &Database, rows: &Rows) {
    write(db, rows).await;
    let (customers, orders, lines) = (rows.customers(), rows.orders(), rows.lines());
    let by_id = |id: Option<i64>| customers.iter().find(|it| Some(it.id) == id).cloned();
    let lines_of = |order: &Order| -> Vec<_> {
        let of_it = lines
            .iter()
            .filter(|line| line.order_id == order.id)
            .cloned();
        let with = of_it.map(|line| {
            let number = u8::try_from(line.product_id.as_u128() - 1).unwrap();
            let tags = rows
                .tags_of(number)
                .iter()
                .map(|tag| tag.replace('t', "T"))
                .collect::<Vec<_>>();
            (line, (product_of(number), tags))
        });
        with.collect()
    };
    let orders_of = |customer: &Customer| -> Vec<_> {
        let mut of_it: Vec<_> = orders
            .iter()
            .filter(|order| order.customer_id == customer.id && order.total >= Some(rows.at_least))
            .cloned()
            .collect();
        of_it.sort_by_key(|order| (std::cmp::Reverse(order.total), order.id));
        let skipped = of_it
            .into_iter()
            .skip(usize::try_from(rows.offset).unwrap());
        let taken = skipped.take(usize::try_from(rows.limit).unwrap());
        taken
            .map(|order| (order.clone(), lines_of(&order)))
            .collect()
    };
    let expected: Vec<_> = customers
        .iter()
        .map(|customer| {
            let referrer = by_id(customer.referrer_id);
            let above = referrer.map(|it| (it.clone(), by_id(it.referrer_id)));
            (customer.clone(), orders_of(customer), above)
        })
        .collect();
    let query = Customer::query()
        .order_by(Customer::ID.asc())
        .with(
            Customer::ORDERS
                .filter(Order::TOTAL.ge(rows.at_least))
                .order_by([Order::TOTAL.desc(), Order::ID.asc()])
                .limit(rows.limit)
                .offset(rows.offset)
                .then(Order::LINES.order_by([Line::POSITION.asc()]).then(
                    Line::PRODUCT.then(Product::TAGS.order_by([Tag::CODE.asc()]).select(Tag::CODE)),
                )),
        )
        .with(Customer::REFERRER.then(Customer::REFERRER));
    gives!(db, query, expected);

    // And what is asked about the same.
    let has = |customer: &Customer| {
        let mut of_it = orders
            .iter()
            .filter(|order| order.customer_id == customer.id);
        of_it.any(|order| lines_of(order).iter().any(|(_, (_, tags))| tags.len() > 1))
    };
    let two_tags = Line::PRODUCT.any(Product::TAGS.count().gt(1));
    let condition = Customer::ORDERS.any(Order::LINES.any(two_tags));
    let ids = |wanted: bool| -> Vec<i64> {
        let chosen = customers.iter().filter(|it| has(it) == wanted);
        chosen.map(|it| it.id).collect()
    };
    let query = Customer::query()
        .order_by(Customer::ID.asc())
        .select(Customer::ID);
    gives!(db, query.clone().filter(condition.clone()), ids(true));
    gives!(db, query.filter(!condition), ids(false));
}

#[test]
fn what_is_read_is_what_plain_rust_makes_of_all_rows() {
    let cases = if anabranch_tests::random::is_long() {
        1_000
    } else {
        40
    };
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let db = runtime.block_on(tables());
    TestRunner::new_with_rng(config, rng)
        .run(&rows(), |rows| {
            runtime.block_on(is_as_in_rust(&db, &rows));
            Ok(())
        })
        .unwrap();
}
