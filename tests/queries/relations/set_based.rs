//! Relations in what is updated and deleted, beside the same in SQL by hand.

use anabranch::{error::Result, prelude::*};
use anabranch_tests::outsider;

use crate::world::{Address, Customer, Employee, Line, Order, Product, Remark, Tag, by_hand, shop};

const TABLES: [&str; 7] = [
    "customer",
    "employee",
    "\"order's \"\"list\"\"\"",
    "line",
    "remark",
    "product_tag",
    "product",
];

/// In each place that writes the same changes as by hand.
macro_rules! changes_as {
    ($change:expr, $sql:expr) => {{
        let by_itself = shop().await;
        let rows = $change.execute(&by_itself).await.unwrap();
        is_as(&by_itself, $sql, rows).await;
        let in_transaction = shop().await;
        let rows = in_transaction
            .write(async |tx| $change.execute(tx).await)
            .await
            .unwrap();
        is_as(&in_transaction, $sql, rows).await;
        let in_session = shop().await;
        let rows = in_session
            .concurrent(async |s| $change.execute(s).await)
            .await
            .unwrap();
        is_as(&in_session, $sql, rows).await;
    }};
}

async fn is_as(db: &Database, sql: &str, rows: u64) {
    let other = shop().await;
    let connection = outsider(other.path());
    connection
        .execute_batch("PRAGMA foreign_keys = ON")
        .unwrap();
    assert_eq!(connection.execute(sql, []).unwrap() as u64, rows, "{sql}");
    for table in TABLES {
        let all = format!("SELECT * FROM {table} ORDER BY 1, 2");
        assert_eq!(by_hand(db, &all), by_hand(&other, &all), "{sql}");
    }
}

#[tokio::test]
async fn columns_are_set_to_what_relations_lead_to() -> Result<()> {
    changes_as!(
        Order::query()
            .update()
            .set(Order::TOTAL, Order::LINES.of_all((Line::AMOUNT * 2).sum())),
        r#"UPDATE "order's ""list""" SET total = (SELECT sum(amount * 2) FROM line WHERE order_id = "order's ""list""".id)"#
    );
    changes_as!(
        Order::query()
            .filter(Order::CUSTOMER.any(Customer::NAME.eq("Ada")))
            .update()
            .set(Order::TOTAL, Order::LINES.count()),
        r#"UPDATE "order's ""list""" SET total = (SELECT count(*) FROM line WHERE order_id = "order's ""list""".id)
           WHERE "customer's ""id""" = 1"#
    );
    changes_as!(
        Customer::query()
            .filter(Customer::REFERRER.get(Customer::NAME).ne("Ada"))
            .update()
            .set(Customer::NAME, Customer::ADDRESSES.of_all(Address::CITY.max()).coalesce(Customer::NAME)),
        "UPDATE customer SET name = coalesce((SELECT max(city) FROM address WHERE customer_id = customer.id), name)
         WHERE referrer_id IS NOT 1"
    );
    // Of two rows of one table.
    changes_as!(
        Employee::query()
            .filter(Employee::MANAGER.get(Employee::PAY).lt(Employee::PAY))
            .update()
            .set(Employee::PAY, Employee::PAY - 1),
        "UPDATE employee SET pay = pay - 1 WHERE id = 3"
    );
    changes_as!(
        Line::query()
            .filter(
                Line::PRODUCT
                    .any(Product::TAGS.any(Tag::CODE.eq("DRINK")))
                    .and(!Line::REMARKS.exists())
            )
            .update()
            .set(Line::PRICE, Line::ORDER.get(Order::ID)),
        "UPDATE line SET price = order_id WHERE (order_id, position) IN ((2, 1), (4, 1))"
    );
    Ok(())
}

#[tokio::test]
async fn rows_are_deleted_by_what_relations_lead_to() -> Result<()> {
    changes_as!(
        Customer::query()
            .filter(!Customer::ORDERS.exists())
            .filter(!Customer::REFERRED.exists())
            .delete(),
        "DELETE FROM customer WHERE id = 4"
    );
    changes_as!(
        Order::query().filter(Order::LINES.count().le(1)).delete(),
        r#"DELETE FROM "order's ""list""" WHERE id IN (2, 3, 4, 5)"#
    );
    changes_as!(
        Remark::query()
            .filter(Remark::LINE.any(Line::ORDER.any(Order::CUSTOMER.get(Customer::NAME).eq("Cy"))))
            .delete(),
        "DELETE FROM remark WHERE id = 3"
    );
    changes_as!(
        Order::query()
            .filter(Order::CUSTOMER.get(Customer::ORDERS.count()).gt(1))
            .order_by(Order::SHIP_TO.get(Address::CITY).desc())
            .limit(1)
            .delete(),
        r#"DELETE FROM "order's ""list""" WHERE id = 1"#
    );
    Ok(())
}
