//! Questions about what relations lead to, beside the same in SQL by hand.

use anabranch::{prelude::*, query::count};

use crate::world::{
    Account, Address, Customer, Employee, Line, Match, Order, Product, Remark, Tag, Team,
    ids_by_hand, shop,
};

const ORDERS: &str =
    r#"SELECT 1 FROM "order's ""list""" AS o WHERE o."customer's ""id""" = customer.id"#;

fn of_customers() -> Vec<(Condition<Customer>, String)> {
    let orders = |rest: &str| format!("EXISTS ({ORDERS} {rest})");
    let late = || Order::TOTAL.gt(15);
    let in_ulm = || Address::CITY.eq("Ulm");
    let food = Product::TAGS.any(Tag::CODE.eq("FOOD"));
    vec![
        (Customer::ORDERS.any(late()), orders("AND total > 15")),
        (
            Customer::ORDERS.all(late()),
            format!("NOT {}", orders("AND (total > 15) IS NOT TRUE")),
        ),
        (
            Customer::ORDERS.none(late()),
            format!("NOT {}", orders("AND total > 15")),
        ),
        (Customer::ORDERS.any(!late()), orders("AND (total > 15) IS NOT TRUE")),
        (Customer::ORDERS.exists(), orders("")),
        (
            Customer::ORDERS.filter(late()).exists(),
            orders("AND total > 15"),
        ),
        (
            Customer::ORDERS.any(Order::LINES.any(Line::PRICE.is_null())),
            orders("AND EXISTS (SELECT 1 FROM line WHERE order_id = o.id AND price IS NULL)"),
        ),
        (
            Customer::ORDERS.all(Order::LINES.exists()),
            format!("NOT {}", orders("AND NOT EXISTS (SELECT 1 FROM line WHERE order_id = o.id)")),
        ),
        (
            Customer::ORDERS.any(Order::SHIP_TO.none(in_ulm())),
            orders("AND NOT EXISTS (SELECT 1 FROM address WHERE id = o.ship_to_id AND city = 'Ulm')"),
        ),
        (
            Customer::ORDERS.any(Order::SHIP_TO.any(!in_ulm())),
            orders("AND EXISTS (SELECT 1 FROM address WHERE id = o.ship_to_id AND city <> 'Ulm')"),
        ),
        (
            Customer::ORDERS.any(Order::SHIP_TO.get(Address::CITY).ne("Ulm")),
            orders("AND (SELECT city FROM address WHERE id = o.ship_to_id) IS NOT 'Ulm'"),
        ),
        (
            Customer::ORDERS.any(Order::LINES.any(Line::PRODUCT.any(food))),
            orders(
                "AND EXISTS (SELECT 1 FROM line JOIN product_tag USING (product_id)
                     WHERE order_id = o.id AND tag_code = 'FOOD' COLLATE NOCASE)",
            ),
        ),
        (
            Customer::ORDERS.count().gt(1),
            format!("(SELECT count(*) FROM ({ORDERS})) > 1"),
        ),
        (
            Customer::ORDERS.filter(late()).count().eq(0),
            format!("NOT {}", orders("AND total > 15")),
        ),
        (
            Customer::ORDERS.of_all(Order::TOTAL.sum()).gt(25),
            r#"(SELECT sum(total) FROM "order's ""list""" AS o WHERE o."customer's ""id""" = customer.id) > 25"#
                .to_owned(),
        ),
        (
            Customer::ORDERS.of_all(Order::LINES.count().sum()).ne(3),
            r#"(SELECT sum((SELECT count(*) FROM line WHERE order_id = o.id)) FROM "order's ""list""" AS o
                WHERE o."customer's ""id""" = customer.id) IS NOT 3"#
                .to_owned(),
        ),
        (
            Customer::REFERRER.any(Customer::NAME.eq("Ada")),
            "referrer_id IN (SELECT id FROM customer WHERE name = 'Ada')".to_owned(),
        ),
        (Customer::REFERRER.exists(), "referrer_id IS NOT NULL".to_owned()),
        (
            Customer::REFERRER.all(Customer::NAME.eq("Ada")),
            "referrer_id IS NULL OR referrer_id = 1".to_owned(),
        ),
        (
            Customer::REFERRER.get(Customer::NAME).eq("Ada"),
            "referrer_id IS 1".to_owned(),
        ),
        (
            Customer::REFERRER.get(Customer::NAME).ne("Ada"),
            "referrer_id IS NOT 1".to_owned(),
        ),
        (
            Customer::REFERRER.get(Customer::ORDERS.count()).gt(1),
            "referrer_id IS 1".to_owned(),
        ),
        (
            Customer::REFERRED.any(Customer::REFERRED.exists()),
            "id IN (SELECT a.referrer_id FROM customer a JOIN customer b ON b.referrer_id = a.id)".to_owned(),
        ),
        (
            Customer::REFERRER.any(Customer::REFERRER.any(Customer::ADDRESSES.any(in_ulm()))),
            "id = 4".to_owned(),
        ),
        (
            Customer::ACCOUNT.any(Account::LOGIN.starts_with("a")),
            "id IN (SELECT customer_id FROM account WHERE login LIKE 'a%')".to_owned(),
        ),
        (
            Customer::ACCOUNT.get(Account::LOGIN).starts_with("a"),
            "id IN (SELECT customer_id FROM account WHERE login LIKE 'a%')".to_owned(),
        ),
        (
            Customer::ACCOUNT.filter(Account::LOGIN.eq("cy")).get(Account::ID).is_null(),
            "id <> 3".to_owned(),
        ),
    ]
}

/// A condition and its complement are every row once, also where there is nothing or NULL.
#[tokio::test]
async fn conditions_over_relations_are_those_of_sql() {
    let db = shop().await;
    for (condition, sql) in of_customers() {
        let ids = |condition| {
            Customer::query()
                .filter(condition)
                .order_by(Customer::ID.asc())
                .select(Customer::ID)
        };
        let yes = ids_by_hand(
            &db,
            &format!("SELECT id FROM customer WHERE {sql} ORDER BY id"),
        );
        let no: Vec<i64> = (1..=4).filter(|id| !yes.contains(id)).collect();
        everywhere!(db, ids(condition.clone()), |found| assert_eq!(
            found.unwrap(),
            yes,
            "{sql}"
        ));
        everywhere!(db, ids(!condition.clone()), |found| assert_eq!(
            found.unwrap(),
            no,
            "{sql}"
        ));
        everywhere!(db, ids(!!condition.clone()), |found| assert_eq!(
            found.unwrap(),
            yes,
            "{sql}"
        ));
        let query = Customer::query().filter(condition.clone());
        let count = query.clone().count(&db).await.unwrap();
        assert_eq!(count, yes.len() as u64, "{sql}");
        assert_eq!(query.exists(&db).await.unwrap(), !yes.is_empty(), "{sql}");
        // In the midst of others.
        let both = condition
            .clone()
            .and(!condition.clone())
            .or(Customer::ID.eq(2));
        gives!(db, ids(both), [2]);
        let either = condition.clone().or(!condition).and(Customer::ID.le(2));
        gives!(db, ids(either), [1, 2]);
    }
}

#[tokio::test]
async fn other_kinds_are_asked_about_too() {
    let db = shop().await;
    let employees = |condition| {
        let query = Employee::query()
            .filter(condition)
            .order_by(Employee::ID.asc());
        query.select(Employee::ID)
    };
    gives!(
        db,
        employees(Employee::REPORTS.any(Employee::PAY.gt(90))),
        [1]
    );
    // Of two rows of one table each is meant.
    let better_paid = Employee::MANAGER.get(Employee::PAY).lt(Employee::PAY);
    gives!(db, employees(better_paid), [3]);
    let of_reports = Employee::REPORTS
        .of_all(Employee::PAY.max())
        .gt(Employee::PAY);
    gives!(db, employees(of_reports), [1]);
    let lonely = Employee::MANAGER.any(Employee::REPORTS.count().eq(1));
    gives!(db, employees(lonely), [4]);
    let teams = |condition| {
        let query = Team::query().filter(condition).order_by(Team::ID.asc());
        query.select(Team::ID)
    };
    let scored = Team::AT_HOME
        .any(Match::GOALS.gt(2))
        .and(Team::AWAY.none(Match::GOALS.eq(3)));
    gives!(db, teams(scored), [1]);
    let same = Team::AT_HOME.any(Match::AWAY.get(Team::NAME).eq("red"));
    gives!(db, teams(same), [1, 2]);
    let products = |condition| {
        let query = Product::query()
            .filter(condition)
            .order_by(Product::ID.asc());
        query.select(Product::NAME)
    };
    gives!(db, products(Product::TAGS.count().eq(2)), ["tea"]);
    gives!(
        db,
        products(Product::TAGS.all(Tag::LABEL.is_not_null())),
        ["jam", "pan"]
    );
    gives!(
        db,
        products(Product::TAGS.of_all(Tag::CODE.min()).eq("Food")),
        ["jam"]
    );
    let lines = |condition| {
        let query = Line::query().filter(condition);
        query
            .order_by([Line::ORDER_ID.asc(), Line::POSITION.asc()])
            .select(Line::POSITION)
    };
    gives!(db, lines(Line::REMARKS.any(Remark::TEXT.eq("gift"))), [7]);
    gives!(db, lines(Line::REMARKS.count().eq(0)), [2, 1, 1]);
    let remarks = |condition| {
        let query = Remark::query().filter(condition).order_by(Remark::ID.asc());
        query.select(Remark::ID)
    };
    gives!(db, remarks(Remark::LINE.exists()), [1, 2, 3]);
    gives!(db, remarks(!Remark::LINE.exists()), [4, 5]);
    gives!(db, remarks(Remark::LINE.get(Line::AMOUNT).eq(9)), [3]);
}

#[tokio::test]
async fn expressions_over_relations_are_selected_sorted_by_and_grouped() {
    let db = shop().await;
    let totals = Customer::ORDERS.of_all(Order::TOTAL.sum());
    let query = Customer::query()
        .order_by([
            Customer::ORDERS.count().desc(),
            Customer::REFERRER.get(Customer::NAME).asc(),
        ])
        .order_by(Customer::ID.asc())
        .select((
            Customer::ID,
            Customer::ORDERS.count(),
            totals.clone(),
            Customer::REFERRER.get(Customer::NAME),
            Customer::ORDERS.of_all(Order::CUSTOMER.get(Customer::NAME).max()),
            Customer::ACCOUNT.get(Account::LOGIN),
        ));
    let text = |text: &str| Some(text.to_owned());
    let bob = "O'Brien \"Bob\"";
    gives!(
        db,
        query,
        [
            (1, 3, Some(60), None, text("Ada"), text("ada")),
            (2, 1, None, text("Ada"), text(bob), None),
            (3, 1, Some(30), text("Ada"), text("Cy"), text("cy")),
            (4, 0, None, text("Cy"), None, None)
        ]
    );
    let grouped = Order::query()
        .group_by(Order::CUSTOMER_ID)
        .having(
            Order::CUSTOMER
                .get(Customer::ORDERS.count())
                .gt(1)
                .or(count::<Order>().eq(1)),
        )
        .order_by(Order::CUSTOMER.get(Customer::NAME).asc())
        .select((
            Order::CUSTOMER.get(Customer::NAME),
            count(),
            Order::LINES.count().sum(),
        ));
    gives!(
        db,
        grouped,
        [
            ("Ada".to_owned(), 3, Some(4)),
            ("Cy".to_owned(), 1, Some(1)),
            (bob.to_owned(), 1, Some(0))
        ]
    );
    // A row that asks about itself through two ways.
    let both = Order::query()
        .filter(
            Order::SHIP_TO
                .get(Address::CUSTOMER_ID)
                .eq(Order::CUSTOMER.get(Customer::ID))
                .and(
                    Order::SHIP_TO
                        .get(Address::CUSTOMER.get(Customer::NAME))
                        .eq("Ada"),
                ),
        )
        .order_by(Order::ID.asc())
        .select(Order::ID);
    gives!(db, both, [1, 4]);
}

#[tokio::test]
async fn what_cannot_be_asked_says_so() {
    let db = shop().await;
    let query = Customer::query();
    let limited = query.clone().filter(Customer::ORDERS.limit(1).exists());
    fails!(db, limited, Refused, "cannot be asked about");
    let offset = query
        .clone()
        .select(Customer::ORDERS.limit(2).offset(1).count());
    fails!(db, offset, Refused, "cannot be asked about");
    let plain = query.clone().select(Customer::ORDERS.of_all(Order::TOTAL));
    fails!(db, plain, Refused, "an aggregate");
    let mut deep = Customer::ID.eq(1);
    for _ in 0..300 {
        deep = Customer::REFERRER.any(deep);
    }
    fails!(db, query.filter(deep), TooBig, "deep");
}
