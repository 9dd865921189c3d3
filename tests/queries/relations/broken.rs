//! Rows that refer to nothing, tables that are not there, and relations that are none.

use anabranch::prelude::*;
use anabranch_tests::{execute, outsider};

use crate::world::{Address, Customer, Line, Order, Product, ProductTag, Tag, shop};

/// A shop in which another program left references to nothing.
async fn dangling(sql: &str) -> Database {
    let db = shop().await;
    let connection = outsider(db.path());
    connection
        .execute_batch("PRAGMA foreign_keys = OFF")
        .unwrap();
    connection.execute_batch(sql).unwrap();
    db
}

#[tokio::test]
async fn a_required_reference_to_nothing_is_an_error_that_names_the_table() {
    let db =
        dangling(r#"UPDATE "order's ""list""" SET "customer's ""id""" = 99 WHERE id = 4"#).await;
    let check = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert_eq!(error.table(), Some("order's \"list\""));
        assert!(error.to_string().contains("Customer"), "{error}");
    };
    everywhere!(db, Order::query().with(Order::CUSTOMER), |found| check(
        found.unwrap_err()
    ));
    let names = Order::query().select(Order::CUSTOMER.select(Customer::NAME));
    everywhere!(db, names, |found| check(found.unwrap_err()));
    // Below others.
    let below = Address::query().with(Address::DELIVERIES.then(Order::CUSTOMER));
    everywhere!(db, below, |found| check(found.unwrap_err()));
    let below = Line::query().with(Line::ORDER.then(Order::CUSTOMER.then(Customer::ADDRESSES)));
    everywhere!(db, below, |found| check(found.unwrap_err()));
    let mut ctx = db.context();
    check(
        Order::query()
            .with(Order::CUSTOMER)
            .load(&mut ctx)
            .await
            .unwrap_err(),
    );
    assert!(ctx.is_empty());
    let order = ctx.find::<Order>(4).await.unwrap().unwrap();
    assert!(
        ctx.load_related(order, Order::CUSTOMER)
            .await
            .unwrap()
            .is_none()
    );
    // Of the one that is not there nothing is true, and it has no name.
    let any = Order::query().filter(Order::CUSTOMER.any(Customer::ID.gt(0)));
    assert_eq!(any.count(&db).await.unwrap(), 4);
    let names = Order::query().select(Order::CUSTOMER.get(Customer::NAME));
    fails!(db, names, Decode, "null");
    // Others are read as ever.
    let whole = Order::query().filter(Order::ID.ne(4)).with(Order::CUSTOMER);
    everywhere!(db, whole, |found| assert_eq!(found.unwrap().len(), 4));
}

#[tokio::test]
async fn an_optional_reference_to_nothing_leads_to_none() {
    let db = dangling(r#"UPDATE "order's ""list""" SET ship_to_id = 99"#).await;
    let query = Order::query().with(Order::SHIP_TO);
    everywhere!(db, query, |found| {
        let found = found.unwrap();
        assert_eq!(found.len(), 5);
        assert!(
            found
                .iter()
                .all(|(order, to)| order.ship_to_id == Some(99) && to.is_none())
        );
    });
    let exists = Order::query().filter(Order::SHIP_TO.exists());
    assert_eq!(exists.count(&db).await.unwrap(), 0);
}

#[tokio::test]
async fn a_join_entity_that_leads_to_nothing_is_an_error_where_the_others_are_read() {
    let db = dangling("DELETE FROM tag WHERE code = 'drink'").await;
    let check = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert_eq!(error.table(), Some("product_tag"));
        assert!(error.to_string().contains("Tag"), "{error}");
    };
    everywhere!(db, Product::query().with(Product::TAGS), |found| check(
        found.unwrap_err()
    ));
    let limited = Product::query().with(Product::TAGS.order_by([Tag::CODE.asc()]).limit(1));
    everywhere!(db, limited, |found| check(found.unwrap_err()));
    let filtered = Product::query().with(Product::TAGS.filter(Tag::LABEL.is_not_null()));
    everywhere!(db, filtered, |found| check(found.unwrap_err()));
    let mut ctx = db.context();
    check(
        Product::query()
            .with(Product::TAGS)
            .load(&mut ctx)
            .await
            .unwrap_err(),
    );
    assert!(ctx.is_empty());
    let by_entity = Product::query().with(Product::TAGGED.then(ProductTag::TAG));
    everywhere!(db, by_entity, |found| check(found.unwrap_err()));
    // Only those that are there count.
    let counts = Product::query()
        .order_by(Product::ID.asc())
        .select(Product::TAGS.count());
    gives!(db, counts, [1, 1, 0]);
}

#[tokio::test]
async fn a_table_that_is_not_there_is_an_error_and_the_reader_stays_usable() {
    let db = shop().await;
    execute(&db, "DROP TABLE remark").await;
    for _ in 0..20 {
        let missing = Line::query()
            .with(Line::REMARKS)
            .all(&db)
            .await
            .unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::Statement, "{missing}");
        assert!(missing.to_string().contains("remark"), "{missing}");
        let asked = Line::query().filter(Line::REMARKS.exists()).all(&db).await;
        assert_eq!(asked.unwrap_err().kind(), ErrorKind::Statement);
        let found = Line::query().with(Line::PRODUCT).all(&db).await.unwrap();
        assert_eq!(found.len(), 5);
    }
    db.write(async |tx| {
        let missing = Line::query().with(Line::REMARKS).all(&mut *tx).await;
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::Statement);
        assert_eq!(Line::query().all(&mut *tx).await?.len(), 5);
        Ok(())
    })
    .await
    .unwrap();
    db.concurrent(async |s| {
        let missing = Line::query().with(Line::REMARKS).all(&mut *s).await;
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::Statement);
        assert_eq!(Line::query().all(&mut *s).await?.len(), 5);
        Ok(())
    })
    .await
    .unwrap();
    db.read(async |snapshot| {
        let missing = Line::query().with(Line::REMARKS).all(&mut *snapshot).await;
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::Statement);
        assert_eq!(Line::query().all(&mut *snapshot).await?.len(), 5);
        Ok(())
    })
    .await
    .unwrap();
    let mut ctx = db.context();
    let missing = Line::query().with(Line::REMARKS).load(&mut ctx).await;
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::Statement);
    assert!(ctx.is_empty());
}

#[derive(Debug, Entity)]
#[entity(has_one(plate: Plate))]
struct Car {
    #[entity(id)]
    id: i64,
}

/// Nothing keeps it from being one of several.
#[derive(Debug, Entity)]
struct Plate {
    #[entity(id)]
    id: i64,
    #[entity(references = Car)]
    car_id: i64,
}

#[tokio::test]
async fn has_one_of_what_may_be_several_is_a_model_error() {
    let db = shop().await;
    db.create_tables::<(Car, Plate)>().await.unwrap();
    let message = "write `unique` at the field `car_id`";
    fails!(db, Car::query().with(Car::PLATE), Model, message);
    fails!(db, Car::query().filter(Car::PLATE.exists()), Model, message);
    fails!(
        db,
        Car::query().select(Car::PLATE.get(Plate::ID)),
        Model,
        message
    );
    let mut ctx = db.context();
    let car = ctx.add(Car { id: 0 });
    assert_eq!(
        ctx.related(car, Car::PLATE).unwrap_err().kind(),
        ErrorKind::Model
    );
    let load = Car::query().with(Car::PLATE).load(&mut ctx).await;
    assert_eq!(load.unwrap_err().kind(), ErrorKind::Model);
    // What reads it for no row at all says so as well.
    fails!(
        db,
        Plate::query().with(Plate::CAR.then(Car::PLATE)),
        Model,
        message
    );
}

#[tokio::test]
async fn a_relation_to_many_is_no_stream() {
    use futures_util::TryStreamExt as _;
    let db = shop().await;
    let many: Result<Vec<_>, _> = Order::query()
        .with(Order::LINES)
        .stream(&db)
        .try_collect()
        .await;
    assert_eq!(many.unwrap_err().kind(), ErrorKind::Refused);
    let one: Vec<_> = Order::query()
        .with(Order::CUSTOMER.then(Customer::ACCOUNT))
        .stream(&db)
        .try_collect()
        .await
        .unwrap();
    assert_eq!(one.len(), 5);
}
