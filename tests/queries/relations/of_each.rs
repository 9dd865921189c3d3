//! What relations lead to from entities that were read before, against what a query reads along with its rows.

use anabranch::{
    prelude::*,
    query::{Selection, outer},
};
use anabranch_tests::outsider;

use crate::{
    relations::places::Counting,
    world::{
        Account, Club, Customer, Document, Employee, Fixture, Folder, Label, Line, Order, Product,
        Remark, Tag, shop,
    },
};

/// Both ways give the same for each entity, and this one in as many statements.
macro_rules! same {
    ($db:expr, $entity:ty, $relation:expr, $statements:expr) => {{
        let db: &Database = &$db;
        let query = <$entity>::query().without_filters();
        let read = query.clone().with($relation).all(db).await.unwrap();
        let (mut entities, mut expected): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        // In whatever order, and some of them twice.
        entities.reverse();
        entities.push(entities[0].clone());
        expected.reverse();
        expected.push(
            <$entity>::of_one(query, &entities[0])
                .with($relation)
                .one(db)
                .await
                .unwrap()
                .1,
        );
        let of_each = || $relation.of_each(&entities);
        let counting = Counting::new(db);
        assert_eq!(of_each().all(&counting).await.unwrap(), expected);
        assert_eq!(counting.take(), $statements);
        db.read(async |snapshot| {
            assert_eq!(of_each().all(&mut *snapshot).await?, expected);
            Ok(())
        })
        .await
        .unwrap();
        db.write(async |tx| {
            assert_eq!(of_each().all(&mut *tx).await?, expected);
            Ok(())
        })
        .await
        .unwrap();
        db.concurrent(async |s| {
            assert_eq!(of_each().all(&mut *s).await?, expected);
            Ok(())
        })
        .await
        .unwrap();
    }};
}

/// The one row of a query that is this entity.
trait OfOne: Entity {
    fn of_one<S: Selection<Self>>(query: Query<Self, S>, entity: &Self) -> Query<Self, S>;
}

macro_rules! of_one {
    ($($entity:ty: $($key:ident = $field:ident),+;)*) => {$(
        impl OfOne for $entity {
            fn of_one<S: Selection<Self>>(query: Query<Self, S>, entity: &Self) -> Query<Self, S> {
                query$(.filter(Self::$key.eq(entity.$field.clone())))+
            }
        }
    )*};
}

of_one! {
    Customer: ID = id;
    Order: ID = id;
    Line: ORDER_ID = order_id, POSITION = position;
    Remark: ID = id;
    Product: ID = id;
    Tag: CODE = code;
    Employee: ID = id;
    Club: LEAGUE = league, NUMBER = number;
    Fixture: ID = id;
    Document: ID = id;
    Folder: ID = id;
}

#[tokio::test]
async fn every_kind_of_relation_gives_what_a_query_reads_along() {
    let db = shop().await;
    same!(db, Customer, Customer::ORDERS.order_by(Order::ID.asc()), 1);
    same!(db, Customer, Customer::ACCOUNT, 1);
    same!(db, Customer, Customer::REFERRER, 1);
    same!(db, Order, Order::CUSTOMER, 1);
    same!(db, Order, Order::SHIP_TO, 1);
    same!(db, Line, Line::REMARKS.order_by(Remark::ID.asc()), 1);
    same!(db, Remark, Remark::LINE, 1);
    same!(db, Product, Product::TAGS.order_by(Tag::CODE.asc()), 1);
    same!(db, Tag, Tag::PRODUCTS.order_by(Product::NAME.asc()), 1);
    same!(
        db,
        Employee,
        Employee::REPORTS.order_by(Employee::ID.asc()),
        1
    );
    same!(db, Employee, Employee::MANAGER, 1);
    same!(db, Club, Club::AT_HOME.order_by(Fixture::ID.asc()), 1);
    same!(db, Fixture, Fixture::AWAY_CLUB, 1);
}

#[tokio::test]
async fn what_is_narrowed_is_narrowed_for_each_entity() {
    let db = shop().await;
    let dearest = || Customer::ORDERS.order_by([Order::TOTAL.desc(), Order::ID.asc()]);
    same!(db, Customer, dearest().limit(1), 1);
    same!(db, Customer, dearest().offset(1).limit(1), 1);
    same!(db, Customer, dearest().filter(Order::TOTAL.gt(15)), 1);
    same!(db, Customer, dearest().select((Order::ID, Order::TOTAL)), 1);
    same!(
        db,
        Customer,
        Customer::ACCOUNT.filter(Account::LOGIN.eq("cy")),
        1
    );
    same!(db, Customer, Customer::ACCOUNT.limit(0), 1);
    same!(
        db,
        Product,
        Product::TAGS.order_by(Tag::CODE.asc()).limit(1),
        1
    );
    // With more below: a statement for each to-many relation.
    let below = || Line::REMARKS.order_by(Remark::ID.asc());
    let lines = || Order::LINES.order_by(Line::POSITION.asc()).then(below());
    same!(
        db,
        Customer,
        dearest().then(lines()).then(Order::CUSTOMER),
        3
    );
    same!(
        db,
        Line,
        Line::ORDER.then(Order::CUSTOMER.then(Customer::ACCOUNT)),
        1
    );
}

#[tokio::test]
async fn filters_of_entities_hold() {
    let db = shop().await;
    same!(
        db,
        Folder,
        Folder::DOCUMENTS.order_by(Document::ID.asc()),
        1
    );
    same!(
        db,
        Folder,
        Folder::DOCUMENTS
            .order_by(Document::ID.asc())
            .without_filter("live"),
        1
    );
    same!(db, Document, Document::FOLDER, 1);
    same!(db, Document, Document::COPY_OF, 1);
    same!(db, Document, Document::LABELS.order_by(Label::ID.asc()), 1);
    same!(
        db,
        Document,
        Document::LABELS
            .order_by(Label::ID.asc())
            .without_filter("attached"),
        1
    );
}

#[tokio::test]
async fn without_entities_nothing_is_asked() {
    let db = shop().await;
    let counting = Counting::new(&db);
    let none = Customer::ORDERS.of_each(&[]).all(&counting).await.unwrap();
    assert_eq!((none.len(), counting.take()), (0, 0));
    // Nor where nothing leads anywhere; but a mistake is told all the same.
    let lost = Remark::query()
        .filter(Remark::ID.eq(4))
        .all(&db)
        .await
        .unwrap();
    let found = Remark::LINE.of_each(&lost).all(&counting).await.unwrap();
    assert_eq!((found, counting.take()), (vec![None], 0));
    let wrong = Customer::ORDERS.without_filter("hidden").of_each(&[]);
    let error = wrong.all(&db).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model, "{error}");
}

#[tokio::test]
async fn a_required_row_that_is_not_there_is_an_error() {
    let db = shop().await;
    let orders = Order::query().all(&db).await.unwrap();
    let connection = outsider(db.path());
    connection
        .execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM customer WHERE id = 3")
        .unwrap();
    let error = Order::CUSTOMER.of_each(&orders).all(&db).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let others: Vec<_> = orders
        .iter()
        .filter(|order| order.customer_id != 3)
        .collect();
    let found = Order::CUSTOMER.of_each(others).all(&db).await.unwrap();
    assert!(found.iter().all(|customer| customer.id < 3));
}

#[tokio::test]
async fn entities_are_taken_as_they_are() {
    let db = shop().await;
    let mut orders = Order::query()
        .order_by(Order::ID.asc())
        .all(&db)
        .await
        .unwrap();
    orders[0].customer_id = 4;
    let found = Order::CUSTOMER
        .of_each(&orders[..1])
        .all(&db)
        .await
        .unwrap();
    assert_eq!(found[0].name, "Di");
}

#[tokio::test]
async fn keys_of_several_columns_are_asked_for_by_the_hundred() {
    let db = shop().await;
    let lines: Vec<_> = (0..450)
        .map(|position| Line {
            order_id: 1,
            position: position % 401,
            product_id: crate::world::product(1),
            amount: 0,
            price: None,
        })
        .collect();
    let counting = Counting::new(&db);
    let found = Line::REMARKS.of_each(&lines).all(&counting).await.unwrap();
    assert_eq!(counting.take(), 3);
    for (line, remarks) in lines.iter().zip(&found) {
        assert_eq!(remarks.len(), if line.position == 1 { 2 } else { 0 });
    }
}

#[tokio::test]
async fn a_relation_on_any_condition_leads_on_from_entities_too() {
    let db = shop().await;
    let later = || {
        Relation::<Order, Vec<Order>>::when(Order::ID.gt(outer(Order::ID)))
            .order_by(Order::ID.asc())
    };
    same!(db, Order, later(), 1);
}
