//! What a save writes, and in which order.

use expect_test::expect;
use uuid::Uuid;

use crate::{
    entity::samples::{Customer, Folder, Order, Page, Player, Profile, Team},
    error::ErrorKind,
    flush::{
        FlushPlan,
        tests::{attach, save},
    },
    sql::Expect,
    tracker::Tracker,
    value::TEMPORARY_KEYS,
};

#[test]
fn a_new_parent_is_inserted_before_its_children() {
    let mut tracker = Tracker::new();
    let tea = tracker.add(Order::new(0, "tea"));
    let ada = tracker.add(Customer::named("Ada"));
    tracker.get_mut(tea).unwrap().customer_id = tracker.get(ada).unwrap().id;
    expect![[r#"
        INSERT INTO "customers" ("id", "name", "email", "version") VALUES (?1, ?2, ?3, ?4) [key 1, 'Ada', NULL, 1]
        INSERT INTO "orders" ("id", "customer_id", "item", "total", "commit_seq") VALUES (?1, ?2, ?3, ?4, ?5) [key 0, key 1, 'tea', 0.0, 0]
        keys of orders, customers
    "#]]
    .assert_eq(&save(&mut tracker));

    let (ada, tea) = (tracker.get(ada).unwrap(), tracker.get(tea).unwrap());
    assert_eq!((ada.id, ada.version), (102, 1));
    assert_eq!((tea.id, tea.customer_id, tea.commit_seq.0), (101, 102, 7));
    assert!(!tracker.has_changes());
}

#[test]
fn an_update_writes_the_changed_columns_and_counts_the_version() {
    let mut tracker = Tracker::new();
    let ada = attach(&mut tracker, Customer::stored(5, "ada"));
    tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
    let tea = attach(
        &mut tracker,
        Order {
            id: 9,
            ..Order::new(5, "tea")
        },
    );
    tracker.get_mut(tea).unwrap().total = 2.5;
    expect![[r#"
        UPDATE "customers" SET "name" = ?1, "version" = ?2 WHERE "id" = ?3 AND "version" = ?4 ['Ada', 4, 5, 3] -> one row
        UPDATE "orders" SET "total" = ?1 WHERE "id" = ?2 [2.5, 9] -> one row
    "#]]
    .assert_eq(&save(&mut tracker));
    assert_eq!(tracker.get(ada).unwrap().version, 4);
    assert_eq!(tracker.get(tea).unwrap().commit_seq.0, 7);
}

#[test]
fn an_update_probes_the_row_by_its_key() {
    let mut tracker = Tracker::new();
    let ada = attach(&mut tracker, Customer::stored(5, "ada"));
    tracker.get_mut(ada).unwrap().name.clear();
    let (batch, _) = FlushPlan::of(tracker.detect().unwrap()).unwrap().render();
    let Expect::OneRow { probe, .. } = &batch.steps[0].expect else {
        panic!("an update expects one row");
    };
    expect![[r#"
        Statement {
            text: "SELECT \"id\", \"name\", \"email\", \"version\" FROM \"customers\" WHERE \"id\" = ?1",
            args: [
                Integer(
                    5,
                ),
            ],
        }
    "#]]
    .assert_debug_eq(probe);
}

#[test]
fn children_are_deleted_before_their_parent() {
    let mut tracker = Tracker::new();
    let ada = attach(&mut tracker, Customer::stored(5, "ada"));
    let tea = attach(
        &mut tracker,
        Order {
            id: 9,
            ..Order::new(5, "tea")
        },
    );
    tracker.remove(ada);
    tracker.remove(tea);
    expect![[r#"
        DELETE FROM "orders" WHERE "id" = ?1 [9] -> one row
        DELETE FROM "customers" WHERE "id" = ?1 AND "version" = ?2 [5, 3] -> one row
    "#]]
    .assert_eq(&save(&mut tracker));
    assert_eq!(tracker.len(), 0);
}

#[test]
fn a_tree_is_inserted_from_its_root_and_deleted_from_its_leaves() {
    let mut tracker = Tracker::new();
    let leaf = tracker.add(Page {
        views: 3,
        ..Page::default()
    });
    let branch = tracker.add(Page {
        views: 2,
        ..Page::default()
    });
    let root = tracker.add(Page {
        views: 1,
        ..Page::default()
    });
    tracker.get_mut(leaf).unwrap().parent_id = Some(tracker.get(branch).unwrap().id);
    tracker.get_mut(branch).unwrap().parent_id = Some(tracker.get(root).unwrap().id);
    expect![[r#"
        INSERT INTO "pages" ("id", "parent_id", "views") VALUES (?1, ?2, ?3) [key 2, NULL, 1]
        INSERT INTO "pages" ("id", "parent_id", "views") VALUES (?1, ?2, ?3) [key 1, key 2, 2]
        INSERT INTO "pages" ("id", "parent_id", "views") VALUES (?1, ?2, ?3) [key 0, key 1, 3]
        keys of pages, pages, pages
    "#]]
    .assert_eq(&save(&mut tracker));

    for page in [root, leaf, branch] {
        tracker.remove(page);
    }
    expect![[r#"
        DELETE FROM "pages" WHERE "id" = ?1 [101] -> one row
        DELETE FROM "pages" WHERE "id" = ?1 [102] -> gone
        DELETE FROM "pages" WHERE "id" = ?1 [103] -> gone
    "#]]
    .assert_eq(&save(&mut tracker));
}

#[test]
fn keys_made_by_the_context_order_a_tree_too() {
    let mut tracker = Tracker::new();
    let (root, leaf) = (Uuid::from_u128(1), Uuid::from_u128(2));
    tracker.add(Folder {
        id: leaf,
        parent_id: Some(root),
    });
    tracker.add(Folder {
        id: root,
        parent_id: None,
    });
    expect![[r#"
        INSERT INTO "folders" ("id", "parent_id") VALUES (?1, ?2) [x01, NULL]
        INSERT INTO "folders" ("id", "parent_id") VALUES (?1, ?2) [x02, x01]
    "#]]
    .assert_eq(&save(&mut tracker));
}

#[test]
fn a_circle_of_rows_defers_foreign_keys_and_a_circle_of_tables_alone_does_not() {
    let mut tracker = Tracker::new();
    let reds = tracker.add(Team {
        id: "reds".to_owned(),
        captain_id: None,
    });
    let bea = tracker.add(Player {
        id: 0,
        team_id: "reds".to_owned(),
    });
    let (mut open, mut closed) = (tracker, Tracker::new());
    expect![[r#"
        INSERT INTO "teams" ("id", "captain_id") VALUES (?1, ?2) ['reds', NULL]
        INSERT INTO "players" ("id", "team_id") VALUES (?1, ?2) [key 0, 'reds']
        keys of players
    "#]]
    .assert_eq(&save(&mut open));
    assert!(open.get(reds).is_some() && open.get(bea).is_some());

    let bea = closed.add(Player {
        id: 0,
        team_id: "reds".to_owned(),
    });
    let captain_id = Some(closed.get(bea).unwrap().id);
    let reds = closed.add(Team {
        id: "reds".to_owned(),
        captain_id,
    });
    expect![[r#"
        INSERT INTO "teams" ("id", "captain_id") VALUES (?1, ?2) ['reds', key 0]
        INSERT INTO "players" ("id", "team_id") VALUES (?1, ?2) [key 0, 'reds']
        keys of players
        foreign keys at the end
    "#]]
    .assert_eq(&save(&mut closed));
    assert_eq!(closed.get(reds).unwrap().captain_id, Some(101));
}

#[test]
fn a_key_can_be_removed_and_added_again() {
    let mut tracker = Tracker::new();
    let old = attach(&mut tracker, Customer::stored(5, "ada"));
    let tea = attach(
        &mut tracker,
        Order {
            id: 9,
            ..Order::new(5, "tea")
        },
    );
    tracker.remove(old);
    tracker.remove(tea);
    let new = tracker.add(Customer::stored(5, "Ada"));
    expect![[r#"
        DELETE FROM "orders" WHERE "id" = ?1 [9] -> one row
        DELETE FROM "customers" WHERE "id" = ?1 AND "version" = ?2 [5, 3] -> one row
        INSERT INTO "customers" ("id", "name", "email", "version") VALUES (?1, ?2, ?3, ?4) [5, 'Ada', 'Ada@example.org', 3]
        foreign keys at the end
    "#]]
    .assert_eq(&save(&mut tracker));
    assert_eq!(tracker.lookup(&5), Some(Some(new)));
    assert!(tracker.get(old).is_none());
}

#[test]
fn unique_values_are_given_up_before_they_are_taken() {
    let mut tracker = Tracker::new();
    let first = attach(&mut tracker, Customer::stored(1, "a"));
    let second = attach(&mut tracker, Customer::stored(2, "b"));
    tracker.get_mut(first).unwrap().email = Some("b@example.org".to_owned());
    tracker.get_mut(second).unwrap().email = Some("c@example.org".to_owned());
    tracker.add(Customer {
        id: 3,
        version: 0,
        ..Customer::stored(3, "a")
    });
    expect![[r#"
        UPDATE "customers" SET "email" = ?1, "version" = ?2 WHERE "id" = ?3 AND "version" = ?4 ['c@example.org', 4, 2, 3] -> one row
        UPDATE "customers" SET "email" = ?1, "version" = ?2 WHERE "id" = ?3 AND "version" = ?4 ['b@example.org', 4, 1, 3] -> one row
        INSERT INTO "customers" ("id", "name", "email", "version") VALUES (?1, ?2, ?3, ?4) [3, 'a', 'a@example.org', 1]
        foreign keys at the end
    "#]]
    .assert_eq(&save(&mut tracker));
}

#[test]
fn a_child_leaves_a_parent_that_makes_room_before_that_is_deleted() {
    let mut tracker = Tracker::new();
    let old = attach(&mut tracker, Customer::stored(5, "ada"));
    let tea = attach(
        &mut tracker,
        Order {
            id: 9,
            ..Order::new(5, "tea")
        },
    );
    tracker.remove(old);
    let new = tracker.add(Customer {
        id: 0,
        version: 0,
        ..Customer::stored(0, "ada")
    });
    tracker.get_mut(tea).unwrap().customer_id = tracker.get(new).unwrap().id;
    expect![[r#"
        UPDATE "orders" SET "customer_id" = ?1 WHERE "id" = ?2 [key 0, 9] -> one row
        DELETE FROM "customers" WHERE "id" = ?1 AND "version" = ?2 [5, 3] -> one row
        INSERT INTO "customers" ("id", "name", "email", "version") VALUES (?1, ?2, ?3, ?4) [key 0, 'ada', 'ada@example.org', 1]
        keys of customers
        foreign keys at the end
    "#]]
    .assert_eq(&save(&mut tracker));
    assert_eq!(tracker.get(tea).unwrap().customer_id, 101);
}

#[test]
fn a_shared_key_is_that_of_the_entity_it_refers_to() {
    let mut tracker = Tracker::new();
    let ada = tracker.add(Customer::named("Ada"));
    let id = tracker.get(ada).unwrap().id;
    let profile = tracker.add(Profile {
        id,
        bio: "counts".to_owned(),
    });
    expect![[r#"
        INSERT INTO "customers" ("id", "name", "email", "version") VALUES (?1, ?2, ?3, ?4) [key 0, 'Ada', NULL, 1]
        INSERT INTO "profiles" ("id", "bio") VALUES (?1, ?2) [key 0, 'counts']
        keys of customers
    "#]]
    .assert_eq(&save(&mut tracker));
    assert_eq!(tracker.get(profile).unwrap().id, 101);
    assert_eq!(tracker.lookup(&101), Some(Some(profile)));
}

#[test]
fn a_temporary_key_of_nobody_is_refused() {
    let foreign = TEMPORARY_KEYS.end - 1;
    let refused = |tracker: &mut Tracker| {
        let error = FlushPlan::of(tracker.detect().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value);
        error.to_string()
    };

    let mut tracker = Tracker::new();
    tracker.add(Order::new(foreign, "tea"));
    expect![
        "orders.customer_id: holds a temporary key that is not of an entity added to this context"
    ]
    .assert_eq(&refused(&mut tracker));

    let mut tracker = Tracker::new();
    let page = tracker.add(Page::default());
    tracker.get_mut(page).unwrap().views = tracker.get(page).unwrap().id;
    expect!["pages.views: holds a temporary key: only a column declared as a reference gets the real one at save"]
        .assert_eq(&refused(&mut tracker));

    // The key of a page in a column that refers to customers.
    let mut tracker = Tracker::new();
    let page = tracker.add(Page::default());
    tracker.add(Order::new(tracker.get(page).unwrap().id, "tea"));
    expect![
        "orders.customer_id: holds a temporary key that is not of an entity added to this context"
    ]
    .assert_eq(&refused(&mut tracker));
}
