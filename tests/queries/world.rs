//! An order shop: the entities that the tests share, with a relation of every kind, and some rows of them.

use anabranch::{prelude::*, value::Value};
use anabranch_tests::{Mode, outsider};
use uuid::Uuid;

/// Refers to another one of its kind; has many of three kinds.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    has_many(orders: Order),
    has_many(addresses: Address),
    has_many(referred: Customer, by = referrer_id),
    has_one(account: Account)
)]
pub(crate) struct Customer {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) name: String,
    #[entity(references = Customer, index)]
    pub(crate) referrer_id: Option<i64>,
}

/// At most one for a customer.
#[derive(Debug, Clone, PartialEq, Entity)]
pub(crate) struct Account {
    #[entity(id)]
    pub(crate) id: i64,
    #[entity(references = Customer, unique, on_delete = Cascade)]
    pub(crate) customer_id: i64,
    pub(crate) login: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(deliveries: Order, by = ship_to_id))]
pub(crate) struct Address {
    #[entity(id)]
    pub(crate) id: i64,
    #[entity(references = Customer, index)]
    pub(crate) customer_id: i64,
    pub(crate) city: String,
}

/// Its table and a column have names that have to be quoted.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "order's \"list\"", has_many(lines: Line))]
pub(crate) struct Order {
    #[entity(id)]
    pub(crate) id: i64,
    #[entity(references = Customer, index, column = "customer's \"id\"")]
    pub(crate) customer_id: i64,
    #[entity(references = Address, index, on_delete = SetNull)]
    pub(crate) ship_to_id: Option<i64>,
    pub(crate) total: Option<i64>,
}

/// A key of two columns, of which one refers to the order.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(remarks: Remark, by = position))]
pub(crate) struct Line {
    #[entity(id, references = Order, on_delete = Cascade)]
    pub(crate) order_id: i64,
    #[entity(id)]
    pub(crate) position: i64,
    #[entity(references = Product, index)]
    pub(crate) product_id: Uuid,
    pub(crate) amount: i64,
    pub(crate) price: Option<i64>,
}

/// Refers to a key of two columns, or to none.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(foreign_key(columns(order_id, position), references = Line, relation = line, on_delete = Cascade))]
#[entity(index(columns(order_id, position)))]
pub(crate) struct Remark {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) order_id: Option<i64>,
    pub(crate) position: Option<i64>,
    pub(crate) text: String,
}

/// Many to many twice: through one with payload, and through one without.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    has_many(lines: Line),
    has_many(tags: Tag, through = ProductTag),
    has_many(tagged: ProductTag),
    has_many(shelves: Shelf, through = Placed)
)]
pub(crate) struct Product {
    #[entity(id)]
    pub(crate) id: Uuid,
    pub(crate) name: String,
}

/// A text key, of which the case does not matter.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(products: Product, through = ProductTag))]
pub(crate) struct Tag {
    #[entity(id, collate = "NOCASE")]
    pub(crate) code: String,
    pub(crate) label: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
pub(crate) struct ProductTag {
    #[entity(id, references = Product, on_delete = Cascade)]
    pub(crate) product_id: Uuid,
    #[entity(id, references = Tag, relation = tag, index, collate = "NOCASE", on_delete = Cascade)]
    pub(crate) tag_code: String,
    pub(crate) weight: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(products: Product, through = Placed))]
pub(crate) struct Shelf {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) room: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
pub(crate) struct Placed {
    #[entity(id, references = Shelf, on_delete = Cascade)]
    pub(crate) shelf_id: i64,
    #[entity(id, references = Product, index, on_delete = Cascade)]
    pub(crate) product_id: Uuid,
}

/// Refers to itself.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(reports: Employee, by = manager_id))]
pub(crate) struct Employee {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) pay: i64,
    #[entity(references = Employee, index)]
    pub(crate) manager_id: Option<i64>,
}

/// Two relations to the same entity.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "matches")]
pub(crate) struct Match {
    #[entity(id)]
    pub(crate) id: i64,
    #[entity(references = Team, index)]
    pub(crate) home_id: i64,
    #[entity(references = Team, index)]
    pub(crate) away_id: i64,
    pub(crate) goals: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(at_home: Match, by = home_id), has_many(away: Match, by = away_id))]
pub(crate) struct Team {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) name: String,
}

/// A key of two columns.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(at_home: Fixture, by = home), has_many(away: Fixture, by = away))]
pub(crate) struct Club {
    #[entity(id)]
    pub(crate) league: i64,
    #[entity(id)]
    pub(crate) number: i64,
    pub(crate) name: String,
}

/// Two references of two columns, which have one in common.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(foreign_key(columns(league, home), references = Club, relation = home_club))]
#[entity(foreign_key(columns(league, away), references = Club, relation = away_club))]
pub(crate) struct Fixture {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) league: i64,
    pub(crate) home: Option<i64>,
    pub(crate) away: Option<i64>,
}

/// Filtered by two filters, as is [`Document`].
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    has_many(documents: Document, by = folder_id),
    filter(live = Folder::live),
    filter(tenant = Folder::tenant)
)]
pub(crate) struct Folder {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) tenant: i64,
    pub(crate) deleted: bool,
}

impl Folder {
    fn live() -> Condition<Self> {
        Self::DELETED.eq(false)
    }

    fn tenant() -> Condition<Self> {
        Self::TENANT.eq(1)
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    has_many(labels: Label, through = DocumentLabel),
    has_many(attached: DocumentLabel),
    filter(live = Document::live),
    filter(tenant = Document::tenant)
)]
pub(crate) struct Document {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) tenant: i64,
    pub(crate) deleted: bool,
    #[entity(references = Folder, index)]
    pub(crate) folder_id: i64,
    #[entity(references = Folder, relation = copy_of, index)]
    pub(crate) copied_from: Option<i64>,
}

impl Document {
    fn live() -> Condition<Self> {
        Self::DELETED.eq(false)
    }

    fn tenant() -> Condition<Self> {
        Self::TENANT.eq(1)
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(filter(live = Label::live))]
pub(crate) struct Label {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) text: String,
    pub(crate) deleted: bool,
}

impl Label {
    fn live() -> Condition<Self> {
        Self::DELETED.eq(false)
    }
}

/// A join entity that has a filter of its own.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(filter(attached = DocumentLabel::attached))]
pub(crate) struct DocumentLabel {
    #[entity(id, references = Document)]
    pub(crate) document_id: i64,
    #[entity(id, references = Label, index)]
    pub(crate) label_id: i64,
    pub(crate) detached: bool,
}

impl DocumentLabel {
    fn attached() -> Condition<Self> {
        Self::DETACHED.eq(false)
    }
}

/// A product's key.
pub(crate) fn product(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// All tables, and no rows.
pub(crate) async fn tables() -> Database {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(
        (Customer, Account, Address, Order, Line, Remark),
        (Product, Tag, ProductTag, Shelf, Placed),
        (Employee, Team, Match, Club, Fixture),
        (Folder, Document, Label, DocumentLabel),
    )>()
    .await
    .unwrap();
    db
}

/// All tables, with some rows: of each kind of parent there is one without children, and of each optional reference one
/// that is NULL.
pub(crate) async fn shop() -> Database {
    let db = tables().await;
    outsider(db.path()).execute_batch(ROWS).unwrap();
    db
}

const ROWS: &str = r#"
    PRAGMA foreign_keys = ON;
    BEGIN;
    INSERT INTO customer VALUES (1, 'Ada', NULL), (2, 'O''Brien "Bob"', 1), (3, 'Cy', 1), (4, 'Di', 3);
    INSERT INTO account VALUES (1, 1, 'ada'), (2, 3, 'cy');
    INSERT INTO address VALUES (1, 1, 'Ulm'), (2, 1, 'Bonn'), (3, 2, 'Kiel');
    INSERT INTO "order's ""list""" VALUES
        (1, 1, 1, 10), (2, 1, NULL, 30), (3, 2, 3, NULL), (4, 1, 2, 20), (5, 3, 1, 30);
    INSERT INTO product VALUES
        (x'00000000000000000000000000000001', 'tea'), (x'00000000000000000000000000000002', 'jam'),
        (x'00000000000000000000000000000003', 'pan');
    INSERT INTO line VALUES
        (1, 1, x'00000000000000000000000000000001', 2, 3), (1, 2, x'00000000000000000000000000000002', 1, 4),
        (2, 1, x'00000000000000000000000000000001', 5, NULL), (4, 1, x'00000000000000000000000000000001', 1, 3),
        (5, 7, x'00000000000000000000000000000002', 9, 1);
    INSERT INTO remark VALUES (1, 1, 1, 'hot'), (2, 1, 1, 'soon'), (3, 5, 7, 'gift'), (4, NULL, NULL, 'lost'), (5, 1, NULL, 'half');
    INSERT INTO tag VALUES ('Food', 'to eat'), ('drink', NULL), ('none', NULL);
    INSERT INTO product_tag VALUES
        (x'00000000000000000000000000000001', 'DRINK', 5), (x'00000000000000000000000000000001', 'food', 1),
        (x'00000000000000000000000000000002', 'FOOD', 9);
    INSERT INTO shelf VALUES (1, 'cellar'), (2, 'shop'), (3, 'empty');
    INSERT INTO placed VALUES
        (1, x'00000000000000000000000000000001'), (2, x'00000000000000000000000000000001'),
        (2, x'00000000000000000000000000000002');
    INSERT INTO employee VALUES (1, 'top', 90, NULL), (2, 'mid', 50, 1), (3, 'mad', 95, 1), (4, 'low', 20, 2);
    INSERT INTO team VALUES (1, 'red'), (2, 'blue'), (3, 'idle');
    INSERT INTO matches VALUES (1, 1, 2, 3), (2, 2, 1, 0), (3, 1, 1, 4);
    INSERT INTO club VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 1, 'c');
    INSERT INTO fixture VALUES (1, 1, 1, 2), (2, 1, 2, NULL), (3, 2, 1, 1), (4, 2, NULL, NULL);
    INSERT INTO folder VALUES (1, 1, 0), (2, 1, 1), (3, 2, 0), (4, 1, 0);
    INSERT INTO document VALUES
        (1, 1, 0, 1, 1), (2, 1, 1, 1, 1), (3, 2, 0, 1, 1), (4, 1, 0, 2, 2), (5, 1, 0, 3, 3), (6, 1, 0, 1, NULL);
    INSERT INTO label VALUES (1, 'new', 0), (2, 'old', 1), (3, 'odd', 0);
    INSERT INTO document_label VALUES (1, 1, 0), (1, 2, 0), (1, 3, 1), (6, 3, 0), (2, 1, 0);
    COMMIT;
"#;

/// What plain SQLite reads: all columns of all rows.
pub(crate) fn by_hand(db: &Database, sql: &str) -> Vec<Vec<Value>> {
    let connection = outsider(db.path());
    let mut statement = connection.prepare(sql).unwrap();
    let width = statement.column_count();
    let rows = statement.query_map([], |row| {
        (0..width)
            .map(|column| {
                Ok(match row.get::<_, rusqlite::types::Value>(column)? {
                    rusqlite::types::Value::Null => Value::Null,
                    rusqlite::types::Value::Integer(value) => Value::Integer(value),
                    rusqlite::types::Value::Real(value) => Value::Real(value),
                    rusqlite::types::Value::Text(value) => Value::Text(value),
                    rusqlite::types::Value::Blob(value) => Value::Blob(value),
                })
            })
            .collect()
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// The one column of a statement, of integers.
pub(crate) fn ids_by_hand(db: &Database, sql: &str) -> Vec<i64> {
    let rows = by_hand(db, sql).into_iter().flatten();
    rows.map(|value| match value {
        Value::Integer(id) => id,
        other => panic!("{other:?} is no integer"),
    })
    .collect()
}
