//! What becomes of entities that change while their plan is in flight.

use expect_test::expect;

use crate::{
    entity::samples::{Customer, Order},
    flush::tests::{attach, depart, receipt, save, show},
    tracker::{EntityState, Tracked, Tracker},
};

fn state(tracker: &Tracker, handle: Tracked<Customer>) -> EntityState {
    tracker
        .record(handle)
        .map_or(EntityState::Detached, |record| record.state())
}

#[test]
fn a_change_made_in_flight_is_compared_with_what_the_plan_wrote() {
    let mut tracker = Tracker::new();
    let ada = tracker.add(Customer::named("Ada"));
    let (batch, ledger) = depart(&mut tracker).unwrap();
    tracker.get_mut(ada).unwrap().name = "Ada L.".to_owned();
    tracker.accept(&ledger, &receipt(&batch));

    assert_eq!(state(&tracker, ada), EntityState::Modified);
    expect![[r#"
        UPDATE "customers" SET "name" = ?1, "version" = ?2 WHERE "id" = ?3 AND "version" = ?4 ['Ada L.', 2, 101, 1] -> one row
    "#]]
    .assert_eq(&save(&mut tracker));
}

#[test]
fn a_change_taken_back_in_flight_is_a_change() {
    let mut tracker = Tracker::new();
    let ada = attach(&mut tracker, Customer::stored(5, "ada"));
    tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
    let (batch, ledger) = depart(&mut tracker).unwrap();
    tracker.get_mut(ada).unwrap().name = "ada".to_owned();
    assert_eq!(state(&tracker, ada), EntityState::Unchanged);
    tracker.accept(&ledger, &receipt(&batch));
    expect![[r#"
        UPDATE "customers" SET "name" = ?1, "version" = ?2 WHERE "id" = ?3 AND "version" = ?4 ['ada', 5, 5, 4] -> one row
    "#]]
    .assert_eq(&save(&mut tracker));
}

#[test]
fn a_refused_plan_leaves_everything_to_be_saved_again() {
    let mut tracker = Tracker::new();
    let ada = tracker.add(Customer::named("Ada"));
    let bob = attach(&mut tracker, Customer::stored(6, "bob"));
    let tea = attach(
        &mut tracker,
        Order {
            id: 9,
            ..Order::new(5, "tea")
        },
    );
    tracker.get_mut(bob).unwrap().name = "Bob".to_owned();
    tracker.remove(tea);
    let (first, ledger) = depart(&mut tracker).unwrap();
    tracker.refuse(&ledger);
    assert_eq!(state(&tracker, ada), EntityState::Added);
    assert_eq!(state(&tracker, bob), EntityState::Modified);
    assert_eq!(show(&first), save(&mut tracker));
    assert!(!tracker.has_changes());
}

#[test]
fn an_entity_removed_while_its_insert_is_in_flight_is_deleted_if_it_was_committed() {
    let mut tracker = Tracker::new();
    let ada = tracker.add(Customer::named("Ada"));
    let (batch, ledger) = depart(&mut tracker).unwrap();
    tracker.remove(ada);
    tracker.accept(&ledger, &receipt(&batch));
    assert_eq!(state(&tracker, ada), EntityState::Deleted);
    assert_eq!(tracker.lookup::<Customer>(&101), Some(None));
    expect![[r#"
        DELETE FROM "customers" WHERE "id" = ?1 AND "version" = ?2 [101, 1] -> one row
    "#]]
    .assert_eq(&save(&mut tracker));
    assert_eq!(tracker.len(), 0);
}

#[test]
fn an_entity_removed_while_its_insert_is_in_flight_is_forgotten_if_it_was_not() {
    let mut tracker = Tracker::new();
    let ada = tracker.add(Customer::named("Ada"));
    let (_, ledger) = depart(&mut tracker).unwrap();
    tracker.remove(ada);
    tracker.refuse(&ledger);
    assert_eq!(state(&tracker, ada), EntityState::Detached);
    assert!(!tracker.has_changes());
}

#[test]
fn what_is_detached_or_cleared_in_flight_is_gone() {
    let mut tracker = Tracker::new();
    let ada = tracker.add(Customer::named("Ada"));
    let (batch, ledger) = depart(&mut tracker).unwrap();
    tracker.detach(ada).unwrap();
    // The same place in memory, and not to be taken for the one that was saved.
    let bob = tracker.add(Customer::named("Bob"));
    tracker.accept(&ledger, &receipt(&batch));
    assert_eq!(state(&tracker, bob), EntityState::Added);

    let (batch, ledger) = depart(&mut tracker).unwrap();
    tracker.clear();
    tracker.accept(&ledger, &receipt(&batch));
    assert_eq!(tracker.len(), 0);
}

#[test]
fn references_taken_in_flight_get_the_real_key() {
    let mut tracker = Tracker::new();
    let ada = tracker.add(Customer::named("Ada"));
    let tea = attach(
        &mut tracker,
        Order {
            id: 9,
            ..Order::new(5, "tea")
        },
    );
    let (batch, ledger) = depart(&mut tracker).unwrap();
    let temporary = tracker.get(ada).unwrap().id;
    let cup = tracker.add(Order::new(temporary, "cup"));
    tracker.get_mut(tea).unwrap().customer_id = temporary;
    tracker.accept(&ledger, &receipt(&batch));
    assert_eq!(tracker.get(cup).unwrap().customer_id, 101);
    assert_eq!(tracker.get(tea).unwrap().customer_id, 101);
    expect![[r#"
        INSERT INTO "orders" ("id", "customer_id", "item", "total", "commit_seq") VALUES (?1, ?2, ?3, ?4, ?5) [key 0, 101, 'cup', 0.0, 0]
        UPDATE "orders" SET "customer_id" = ?1 WHERE "id" = ?2 [101, 9] -> one row
        keys of orders
    "#]]
    .assert_eq(&save(&mut tracker));
}

#[test]
fn a_row_updated_and_then_removed_in_flight_is_deleted_at_its_new_version() {
    let mut tracker = Tracker::new();
    let ada = attach(&mut tracker, Customer::stored(5, "ada"));
    tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
    let (batch, ledger) = depart(&mut tracker).unwrap();
    tracker.remove(ada);
    tracker.accept(&ledger, &receipt(&batch));
    expect![[r#"
        DELETE FROM "customers" WHERE "id" = ?1 AND "version" = ?2 [5, 4] -> one row
    "#]]
    .assert_eq(&save(&mut tracker));
}
