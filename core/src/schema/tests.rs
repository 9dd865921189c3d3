//! What the statements look like, and that SQLite takes them.

use expect_test::{Expect, expect};
use rusqlite::Connection;

use crate::{
    entity::{ColumnDef, CommitSeq, Entity, TableDef},
    error::ErrorKind,
    schema::{Ranks, create_tables},
    value::{KeyOrigin, Storage},
};

#[derive(Entity)]
#[entity(crate = "crate", table = "customers")]
struct Customer {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    name: String,
    #[entity(references = Self, on_delete = SetNull)]
    referrer: Option<i64>,
}

#[derive(Entity)]
#[entity(crate = "crate", table = "orders", check = "paid <= total")]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(references = Customer, on_delete = Cascade, on_update = Restrict, index)]
    customer_id: i64,
    #[entity(check = "total >= 0", default = "0")]
    total: i64,
    paid: f64,
    shipped: bool,
    note: Option<String>,
    #[entity(version)]
    version: i64,
    #[entity(commit_seq)]
    commit_seq: CommitSeq,
}

#[derive(Entity)]
#[entity(crate = "crate", table = "a\"b", strict = false)]
struct Hostile {
    #[entity(id, column = "select")]
    key: String,
    #[entity(index)]
    order: i64,
    #[entity(column = "a\"b", references = Hostile, index)]
    quoted: Option<String>,
    #[entity(column = "two words", default = "'it''s'")]
    words: String,
    group: Vec<u8>,
}

#[derive(Entity)]
#[entity(crate = "crate")]
struct Hen {
    #[entity(id)]
    id: uuid::Uuid,
    #[entity(references = Egg)]
    hatched_from: Option<uuid::Uuid>,
}

#[derive(Entity)]
#[entity(crate = "crate")]
struct Egg {
    #[entity(id)]
    id: uuid::Uuid,
    #[entity(references = Hen)]
    laid_by: Option<uuid::Uuid>,
}

#[derive(Entity)]
#[entity(crate = "crate")]
struct Nest {
    #[entity(id)]
    id: i64,
    #[entity(references = Egg)]
    egg: uuid::Uuid,
}

fn check(tables: &[&'static TableDef], expected: &Expect) {
    expected.assert_eq(&create_tables(tables).unwrap().join(";\n"));
}

#[test]
fn a_table_has_types_constraints_and_indexes() {
    check(
        &[Order::TABLE],
        &expect![[r#"
            CREATE TABLE IF NOT EXISTS "orders" (
              "id" INTEGER PRIMARY KEY,
              "customer_id" INTEGER NOT NULL REFERENCES "customers" ("id") ON DELETE CASCADE ON UPDATE RESTRICT,
              "total" INTEGER NOT NULL DEFAULT (0) CHECK (total >= 0),
              "paid" REAL NOT NULL,
              "shipped" INTEGER NOT NULL,
              "note" TEXT,
              "version" INTEGER NOT NULL,
              "commit_seq" INTEGER NOT NULL DEFAULT 0,
              CHECK (paid <= total)
            ) STRICT;
            CREATE INDEX IF NOT EXISTS "orders_customer_id" ON "orders" ("customer_id")"#]],
    );
}

#[test]
fn referenced_tables_come_first() {
    check(
        &[Order::TABLE, Customer::TABLE],
        &expect![[r#"
            CREATE TABLE IF NOT EXISTS "customers" (
              "id" INTEGER PRIMARY KEY,
              "name" TEXT NOT NULL UNIQUE,
              "referrer" INTEGER REFERENCES "customers" ("id") ON DELETE SET NULL
            ) STRICT;
            CREATE TABLE IF NOT EXISTS "orders" (
              "id" INTEGER PRIMARY KEY,
              "customer_id" INTEGER NOT NULL REFERENCES "customers" ("id") ON DELETE CASCADE ON UPDATE RESTRICT,
              "total" INTEGER NOT NULL DEFAULT (0) CHECK (total >= 0),
              "paid" REAL NOT NULL,
              "shipped" INTEGER NOT NULL,
              "note" TEXT,
              "version" INTEGER NOT NULL,
              "commit_seq" INTEGER NOT NULL DEFAULT 0,
              CHECK (paid <= total)
            ) STRICT;
            CREATE INDEX IF NOT EXISTS "orders_customer_id" ON "orders" ("customer_id")"#]],
    );
}

#[test]
fn hostile_names_are_quoted() {
    check(
        &[Hostile::TABLE],
        &expect![[r#"
        CREATE TABLE IF NOT EXISTS "a""b" (
          "select" TEXT PRIMARY KEY NOT NULL,
          "order" INTEGER NOT NULL,
          "a""b" TEXT REFERENCES "a""b" ("select"),
          "two words" TEXT NOT NULL DEFAULT ('it''s'),
          "group" BLOB NOT NULL
        );
        CREATE INDEX IF NOT EXISTS "a""b_order" ON "a""b" ("order");
        CREATE INDEX IF NOT EXISTS "a""b_a""b" ON "a""b" ("a""b")"#]],
    );
}

#[test]
fn tables_may_refer_to_each_other() {
    check(
        &[Nest::TABLE, Hen::TABLE, Egg::TABLE],
        &expect![[r#"
        CREATE TABLE IF NOT EXISTS "hen" (
          "id" BLOB PRIMARY KEY NOT NULL,
          "hatched_from" BLOB REFERENCES "egg" ("id")
        ) STRICT;
        CREATE TABLE IF NOT EXISTS "egg" (
          "id" BLOB PRIMARY KEY NOT NULL,
          "laid_by" BLOB REFERENCES "hen" ("id")
        ) STRICT;
        CREATE TABLE IF NOT EXISTS "nest" (
          "id" INTEGER PRIMARY KEY,
          "egg" BLOB NOT NULL REFERENCES "egg" ("id")
        ) STRICT"#]],
    );
}

#[test]
fn ranks_rise_from_parents_to_children() {
    let mut ranks = Ranks::default();
    let tables = [
        Nest::TABLE,
        Order::TABLE,
        Hen::TABLE,
        Hostile::TABLE,
        Customer::TABLE,
        Egg::TABLE,
    ];
    let lines: Vec<_> = tables
        .into_iter()
        .map(|table| (ranks.of(table), table.entity))
        .map(|(rank, entity)| format!("{} {entity} circular: {}", rank.level, rank.circular))
        .collect();
    expect![[r#"
        1 Nest circular: false
        3 Order circular: false
        0 Hen circular: true
        4 Hostile circular: true
        2 Customer circular: true
        0 Egg circular: true"#]]
    .assert_eq(&lines.join("\n"));
}

macro_rules! entities {
    ($($name:ident { $($field:ident: $parent:ident),* })*) => {$(
        #[derive(Entity)]
        #[entity(crate = "crate")]
        struct $name {
            #[entity(id)]
            id: i64,
            $(#[entity(references = $parent)]
            $field: i64,)*
        }
    )*};
}

#[test]
fn a_long_cycle_shares_one_rank() {
    entities! {
        A { b: B }
        B { c: C }
        C { a: A, d: D }
        D {}
        E { b: B, d: D }
    }
    let mut ranks = Ranks::default();
    let order: Vec<_> = [A::TABLE, B::TABLE, C::TABLE, D::TABLE, E::TABLE]
        .into_iter()
        .map(|table| (table.name, ranks.of(table)))
        .map(|(name, rank)| (name, rank.level, rank.circular))
        .collect();
    assert_eq!(
        order,
        [
            ("a", 1, true),
            ("b", 1, true),
            ("c", 1, true),
            ("d", 0, false),
            ("e", 2, false),
        ]
    );
}

#[test]
fn sqlite_takes_the_statements_twice() {
    let connection = Connection::open_in_memory().unwrap();
    let tables = [
        Order::TABLE,
        Customer::TABLE,
        Hostile::TABLE,
        Nest::TABLE,
        Hen::TABLE,
        Egg::TABLE,
    ];
    for statement in [
        create_tables(&tables).unwrap(),
        create_tables(&tables).unwrap(),
    ]
    .concat()
    {
        connection.execute_batch(&statement).unwrap();
    }
    let count = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(
        count("SELECT count(*) FROM pragma_table_list WHERE strict"),
        5
    );
    assert_eq!(
        count("SELECT count(*) FROM pragma_index_list('a\"b') WHERE origin = 'c'"),
        2
    );
    assert_eq!(
        count("SELECT count(*) FROM pragma_foreign_key_list('a\"b')"),
        1
    );
}

/// One customer with one order, and a row of the table with hostile names.
fn database_with_rows() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("PRAGMA foreign_keys = ON")
        .unwrap();
    for statement in create_tables(&[Customer::TABLE, Order::TABLE, Hostile::TABLE]).unwrap() {
        connection.execute_batch(&statement).unwrap();
    }
    connection
        .execute_batch(
            "INSERT INTO customers (id, name) VALUES (1, 'Ada');
             INSERT INTO orders (id, customer_id, total, paid, shipped, version, commit_seq)
             VALUES (1, 1, 5, 5.0, 0, 1, 0);
             INSERT INTO \"a\"\"b\" (\"select\", \"order\", \"a\"\"b\", \"group\") VALUES ('k', 'text', 'k', x'00')",
        )
        .unwrap();
    connection
}

#[test]
fn sqlite_keeps_the_constraints() {
    let connection = database_with_rows();
    let refused = |sql: &str| connection.execute_batch(sql).unwrap_err().to_string();
    for (statement, message) in [
        (
            "UPDATE orders SET total = 'much'",
            "cannot store TEXT value in INTEGER column orders.total",
        ),
        (
            "UPDATE orders SET customer_id = 2",
            "FOREIGN KEY constraint failed",
        ),
        (
            "UPDATE customers SET id = 2",
            "FOREIGN KEY constraint failed",
        ),
        (
            "UPDATE orders SET total = -1, paid = -2.0",
            "CHECK constraint failed: total >= 0",
        ),
        (
            "UPDATE orders SET paid = 6.0",
            "CHECK constraint failed: paid <= total",
        ),
        (
            "UPDATE orders SET shipped = NULL",
            "NOT NULL constraint failed: orders.shipped",
        ),
        (
            "INSERT INTO customers (name) VALUES ('Ada')",
            "UNIQUE constraint failed: customers.name",
        ),
        (
            "UPDATE \"a\"\"b\" SET \"select\" = NULL",
            "NOT NULL constraint failed: a\"b.select",
        ),
    ] {
        assert!(
            refused(statement).contains(message),
            "{}",
            refused(statement)
        );
    }
}

#[test]
fn deleting_a_customer_deletes_the_orders() {
    let connection = database_with_rows();
    connection.execute_batch("DELETE FROM customers").unwrap();
    let left: i64 = connection
        .query_row("SELECT count(*) FROM orders", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn an_entity_may_be_listed_twice() {
    let once = create_tables(&[Customer::TABLE]).unwrap();
    assert_eq!(
        create_tables(&[Customer::TABLE, Customer::TABLE]).unwrap(),
        once
    );
    let copies = [table("a", "A", &["id"]), table("a", "A", &["id"])];
    assert_eq!(create_tables(&copies).unwrap().len(), 1);
}

#[test]
fn two_entities_for_one_table_are_refused() {
    refused(
        &[Customer::TABLE, table("Customers", "Client", &["id"])],
        &expect![
            "Customers: two entities are for this table: Customer and Client; give one of them another name with #[entity(table = ...)]"
        ],
    );
    refused(
        &[table("a", "A", &["id"]), table("a", "A", &["id", "more"])],
        &expect![
            "a: two entities are for this table: A and A; give one of them another name with #[entity(table = ...)]"
        ],
    );
}

#[test]
fn empty_and_reserved_names_are_refused() {
    refused(
        &[table("", "Nameless", &["id"])],
        &expect!["the table of Nameless has an empty name"],
    );
    refused(
        &[table("SQLITE_x", "X", &["id"])],
        &expect!["SQLITE_x: names that begin with sqlite_ are reserved"],
    );
    refused(
        &[table("anabranch_meta", "Meta", &["id"])],
        &expect!["anabranch_meta: names that begin with anabranch_ are reserved"],
    );
    refused(
        &[table("a", "A", &["id", ""])],
        &expect!["a: a column has an empty name"],
    );
}

/// IF NOT EXISTS would leave out the second index without a word.
#[test]
fn an_index_name_is_not_taken_twice() {
    refused(
        &[
            table("a_b", "Ab", &["id", "c"]),
            table("a", "A", &["id", "b_c"]),
        ],
        &expect!["a_b: the index on c would be named a_b_c, as the index on a.b_c is"],
    );
    refused(
        &[table("a", "A", &["id", "b"]), table("A_b", "Ab", &["id"])],
        &expect!["a: the index on b would be named a_b, as the table A_b is"],
    );
}

fn refused(tables: &[&'static TableDef], expected: &Expect) {
    let error = create_tables(tables).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
    expected.assert_eq(&error.to_string());
}

/// A table as no derive would write it; every column but the first has an index.
fn table(name: &'static str, entity: &'static str, columns: &[&'static str]) -> &'static TableDef {
    let columns = columns.iter().enumerate().map(|(index, &name)| ColumnDef {
        index: index > 0,
        ..ColumnDef::new(name, Storage::Integer)
    });
    let columns = columns.collect::<Vec<_>>().leak();
    Box::leak(Box::new(TableDef::new(
        name,
        entity,
        columns,
        KeyOrigin::Writer,
    )))
}
