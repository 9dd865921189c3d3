//! What a context tells of its entities: entries of all types, original values, and the text for a bug report.

use anabranch::{
    prelude::*,
    value::{TEMPORARY_KEYS, Value},
};
use anabranch_tests::Mode;
use expect_test::expect;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Customer {
    #[entity(id)]
    id: i64,
    name: String,
    photo: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "orders")]
struct Order {
    #[entity(id)]
    id: Uuid,
    #[entity(references = Customer)]
    customer_id: i64,
    #[entity(column = "item_name")]
    item: String,
    price: f64,
    #[entity(version)]
    version: i64,
}

fn customer(id: i64, name: &str) -> Customer {
    Customer {
        id,
        name: name.to_owned(),
        photo: None,
    }
}

fn order(customer_id: i64, item: &str) -> Order {
    Order {
        id: Uuid::from_u128(7),
        customer_id,
        item: item.to_owned(),
        price: 1.5,
        version: 3,
    }
}

async fn shop() -> Database {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Customer, Order)>().await.unwrap();
    db
}

/// One of each state, of two types.
fn filled(ctx: &mut Context<'_>) -> (Tracked<Customer>, Tracked<Order>) {
    let ada = ctx.add(customer(0, "Ada"));
    let tea = ctx.attach(order(5, "tea")).unwrap();
    ctx.attach(customer(5, "bob")).unwrap();
    let cy = ctx.attach(customer(6, "cy")).unwrap();
    ctx[tea].item = "green tea".to_owned();
    ctx[tea].customer_id = ctx[ada].id;
    ctx.remove(cy);
    (ada, tea)
}

#[tokio::test]
async fn entries_are_of_all_types_and_states_in_the_order_of_tracking() {
    let db = shop().await;
    let mut ctx = db.context();
    let (ada, tea) = filled(&mut ctx);
    let entries: Vec<_> = ctx.entries().collect();
    let found: Vec<_> = entries
        .iter()
        .map(|entry| (entry.entity(), entry.table().name, entry.state()))
        .collect();
    assert_eq!(
        found,
        [
            ("Customer", "customer", EntityState::Added),
            ("Order", "orders", EntityState::Modified),
            ("Customer", "customer", EntityState::Unchanged),
            ("Customer", "customer", EntityState::Deleted),
        ]
    );
    assert!(entries[0].has_temporary_key() && !entries[2].has_temporary_key());
    assert_eq!(entries[0].handle(), Some(ada));
    assert_eq!(entries[0].handle::<Order>(), None);
    assert_eq!(entries[1].handle(), Some(tea));
    let modified: Vec<_> = entries[1].modified_columns().collect();
    assert_eq!(modified.len(), 2);
    assert_eq!(modified[1].name, "item_name");
    assert_eq!(modified[1].original, Some(Value::Text("tea".to_owned())));
    assert_eq!(
        modified[1].current,
        Some(Value::Text("green tea".to_owned()))
    );
    assert_eq!(entries[0].modified_columns().count(), 0);
    assert_eq!(entries[0].columns().count(), 3);
    assert!(entries[0].columns().all(|column| column.original.is_none()));
}

#[tokio::test]
async fn entries_of_a_type_have_what_iteration_leaves_out() {
    let db = shop().await;
    let mut ctx = db.context();
    filled(&mut ctx);
    let states: Vec<_> = ctx
        .entries_of::<Customer>()
        .map(|(handle, entry)| {
            assert_eq!(ctx.entry(handle).state(), entry.state());
            entry.state()
        })
        .collect();
    assert_eq!(
        states,
        [
            EntityState::Added,
            EntityState::Unchanged,
            EntityState::Deleted
        ]
    );
    assert_eq!(ctx.iter::<Customer>().count(), 2);
}

#[tokio::test]
async fn an_entry_knows_original_values_by_column() {
    let db = shop().await;
    let mut ctx = db.context();
    let (ada, tea) = filled(&mut ctx);
    let entry = ctx.entry(tea);
    assert_eq!(entry.original_value(Order::ITEM), Some("tea".to_owned()));
    assert_eq!(entry.original_value(Order::PRICE), Some(1.5));
    assert_eq!(entry.modified_columns(), ["customer_id", "item_name"]);
    assert!(entry.is_modified(Order::ITEM) && !entry.is_modified(Order::PRICE));
    assert_eq!(ctx.entry(ada).original_value(Customer::NAME), None);
    assert!(ctx.entry(ada).modified_columns().is_empty());
    ctx.detach(tea);
    assert_eq!(ctx.entry(tea).original_value(Order::ITEM), None);
    assert!(ctx.entry(tea).modified_columns().is_empty());

    let whole = ctx.update(order(5, "tea")).unwrap();
    let entry = ctx.entry(whole);
    assert_eq!(entry.original_value(Order::ITEM), None, "it was not read");
    assert_eq!(entry.original_value(Order::VERSION), Some(3));
    assert_eq!(
        entry.modified_columns(),
        ["customer_id", "item_name", "price"]
    );
}

#[tokio::test]
async fn the_debug_view_shows_no_values_unless_asked() {
    let db = shop().await;
    let mut ctx = db.context();
    filled(&mut ctx);
    ctx.update(Customer {
        photo: Some(vec![7; 100]),
        ..customer(8, &"long ".repeat(20))
    })
    .unwrap();
    ctx.add(Order {
        price: f64::NAN,
        ..order(TEMPORARY_KEYS.end - 1, "ca\"ke")
    });
    let view = ctx.debug_view();
    expect![[r"
        6 tracked, 5 to save
        Customer#1 Added, temporary key
        Order#2 Modified: customer_id, item_name
        Customer#3 Unchanged
        Customer#4 Deleted
        Customer#5 Modified: name, photo
        Order#6 Added
    "]]
    .assert_eq(&view.to_string());
    assert_eq!(format!("{view:?}"), view.to_string());
    expect![[r#"
        6 tracked, 5 to save
        Customer#1 Added, temporary key
            id: (temporary key)
            name: "Ada"
            photo: NULL
        Order#2 Modified: customer_id, item_name
            id: x'00000000000000000000000000000007'
            customer_id: 5 -> (temporary key)
            item_name: "tea" -> "green tea"
            price: 1.5
            version: 3
        Customer#3 Unchanged
            id: 5
            name: "bob"
            photo: NULL
        Customer#4 Deleted
            id: 6
            name: "cy"
            photo: NULL
        Customer#5 Modified: name, photo
            id: 8
            name: (not read) -> "long long long long long long long long "... (100 bytes)
            photo: (not read) -> x'07070707070707070707070707070707070707070707070707070707070707070707070707070707'... (100 bytes)
        Order#6 Added
            id: x'00000000000000000000000000000007'
            customer_id: -9223090561878065153
            item_name: "ca\"ke"
            price: (cannot be stored)
            version: 3
    "#]].assert_eq(&view.with_values().to_string());
}

#[tokio::test]
async fn the_debug_view_tells_of_a_save_that_is_not_answered() {
    let db = shop().await;
    let mut ctx = db.context();
    ctx.add(customer(0, "Ada"));
    let held = db.begin().await.unwrap();
    // Asked once, and dropped while it waits for the writer.
    drop(futures_util::FutureExt::now_or_never(ctx.save_changes()));
    let view = ctx.debug_view().to_string();
    held.rollback().await.unwrap();
    expect![[r"
        1 tracked, 1 to save, a save in flight
        Customer#1 Added, temporary key, in flight
    "]]
    .assert_eq(&view);
}

#[tokio::test]
async fn an_empty_context_is_viewed_too() {
    let db = shop().await;
    assert_eq!(
        db.context().debug_view().to_string(),
        "0 tracked, 0 to save\n"
    );
    assert_eq!(db.context().entries().count(), 0);
    assert_eq!(db.context().entries_of::<Customer>().count(), 0);
}
