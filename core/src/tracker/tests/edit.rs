//! Updates of detached entities, resets, marks and values from JSON, without a database.

use serde_json::json;

use crate::{
    entity::samples::{Customer, Order, Page, Place},
    error::ErrorKind,
    sql::Receipt,
    tracker::{
        Changed, EntityState, Ledger, LedgerEntry, TemporaryKeys, Tracked, Tracker, Written,
        tests::{state, tracked},
    },
    value::Value,
};

const NAME: usize = 1;

/// A plan that updates an entity is on its way.
fn departed(tracker: &mut Tracker, handle: Tracked<Customer>) -> Ledger {
    assert_eq!(tracker.detect().unwrap().0.len(), 1);
    let ledger = Ledger {
        entries: vec![LedgerEntry {
            place: handle.place,
            written: Written::Updated { version: Some(4) },
        }],
        keys: TemporaryKeys::default(),
        now: None,
    };
    tracker.depart(&ledger);
    ledger
}

fn changed(tracker: &mut Tracker) -> usize {
    tracker.detect().unwrap().0.len()
}

#[test]
fn a_detached_entity_is_written_whole_but_for_what_is_kept() {
    let mut tracker = Tracker::new();
    let ada = tracker.update(Customer::stored(5, "ada")).unwrap();
    assert_eq!(state(&tracker, ada), EntityState::Modified);
    let record = tracker.record(ada).unwrap();
    let differing: Vec<_> = (0..4).filter(|column| record.differs(*column)).collect();
    assert_eq!(differing, [NAME, 2]);
    assert_eq!(record.original_value(NAME), None);
    assert_eq!(record.original_value(3), Some(Value::Integer(3)));
    assert_eq!(changed(&mut tracker), 1);
    assert_eq!(tracker.listed, [ada.place]);
}

#[test]
fn an_update_without_a_key_adds_and_one_of_a_tracked_entity_is_refused() {
    let (mut tracker, _) = tracked();
    let new = tracker.update(Customer::named("new")).unwrap();
    assert_eq!(state(&tracker, new), EntityState::Added);
    let error = tracker.update(Customer::stored(5, "ada")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyTracked);
    assert!(error.to_string().contains("set_values"), "{error}");
    assert_eq!(
        error.key(),
        tracker
            .attach(Customer::stored(5, "ada"))
            .unwrap_err()
            .key()
    );
}

#[test]
fn a_reset_leads_back_from_changes_and_from_removal() {
    let (mut tracker, ada) = tracked();
    tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
    tracker.get_mut(ada).unwrap().id = 9;
    tracker.remove(ada);
    assert!(tracker.reset(ada));
    assert_eq!(tracker.get(ada), Some(&Customer::stored(5, "ada")));
    assert_eq!(state(&tracker, ada), EntityState::Unchanged);
    assert_eq!(tracker.lookup(&5), Some(Some(ada)));
    assert_eq!(changed(&mut tracker), 0);
    assert!(tracker.listed.is_empty());
}

#[test]
fn an_entity_that_was_reset_and_changed_again_is_listed_once() {
    let (mut tracker, ada) = tracked();
    tracker.remove(ada);
    tracker.reset(ada);
    tracker.get_mut(ada).unwrap().name.push('!');
    assert_eq!(tracker.listed, [ada.place]);
    assert_eq!(changed(&mut tracker), 1);
}

#[test]
fn there_is_no_way_back_for_what_was_added_or_replaced_or_is_gone() {
    let (mut tracker, ada) = tracked();
    let new = tracker.add(Customer::named("new"));
    assert!(!tracker.reset(new) && !tracker.reset_column(new, NAME));
    tracker.remove(ada);
    let again = tracker.add(Customer::stored(5, "again"));
    assert!(!tracker.reset(ada), "its key is taken");
    assert!(!tracker.reset_column(ada, NAME));
    assert_eq!(state(&tracker, ada), EntityState::Deleted);
    tracker.detach(again);
    assert!(tracker.reset(ada));
    tracker.detach(ada);
    assert!(!tracker.reset(ada) && !tracker.mark_modified(ada, NAME));
}

#[test]
fn what_was_never_read_stays_at_a_reset() {
    let mut tracker = Tracker::new();
    let ada = tracker.update(Customer::stored(5, "ada")).unwrap();
    tracker.get_mut(ada).unwrap().version = 9;
    assert!(tracker.reset(ada));
    assert_eq!(tracker.get(ada), Some(&Customer::stored(5, "ada")));
    assert_eq!(state(&tracker, ada), EntityState::Unchanged);
}

#[test]
fn one_column_is_reset_and_the_others_stay() {
    let (mut tracker, ada) = tracked();
    tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
    tracker.get_mut(ada).unwrap().email = None;
    assert!(tracker.reset_column(ada, NAME));
    let record = tracker.record(ada).unwrap();
    assert!(!record.differs(NAME) && record.differs(2));
}

#[test]
fn a_marked_column_is_written_once_though_it_is_equal() {
    let (mut tracker, ada) = tracked();
    assert!(!tracker.mark_modified(ada, 0) && !tracker.mark_modified(ada, 3));
    assert!(tracker.mark_modified(ada, 2) && tracker.mark_modified(ada, 2));
    assert_eq!(state(&tracker, ada), EntityState::Modified);
    let changes = tracker.detect().unwrap();
    let Changed::Updated {
        columns, unique, ..
    } = &changes.0[0].changed
    else {
        panic!("it is an update");
    };
    assert_eq!((columns.len(), columns[0].column), (1, 2));
    assert!(unique.is_empty(), "the row still holds its unique value");
    let ledger = departed(&mut tracker, ada);
    assert!(
        tracker.record(ada).unwrap().differs(2),
        "until it is answered"
    );
    tracker.accept(&ledger, &Receipt::default());
    assert_eq!(changed(&mut tracker), 0);
}

#[test]
fn a_mark_outlives_a_plan_that_was_refused_and_one_that_went_before_it() {
    let (mut tracker, ada) = tracked();
    tracker.mark_modified(ada, NAME);
    let ledger = departed(&mut tracker, ada);
    tracker.refuse(&ledger);
    assert!(tracker.record(ada).unwrap().differs(NAME));
    let ledger = departed(&mut tracker, ada);
    assert!(tracker.mark_modified(ada, 2));
    tracker.accept(&ledger, &Receipt::default());
    let record = tracker.record(ada).unwrap();
    assert!(!record.differs(NAME) && record.differs(2));
    assert_eq!(changed(&mut tracker), 1);
}

#[test]
fn a_reset_while_a_plan_is_in_flight_is_against_what_the_plan_wrote() {
    for committed in [true, false] {
        let (mut tracker, ada) = tracked();
        tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
        let ledger = departed(&mut tracker, ada);
        assert!(tracker.reset(ada));
        assert_eq!(tracker.get(ada).unwrap().name, "ada");
        if committed {
            tracker.accept(&ledger, &Receipt::default());
            assert_eq!(state(&tracker, ada), EntityState::Modified);
            assert_eq!(tracker.get(ada).unwrap().version, 4);
        } else {
            tracker.refuse(&ledger);
            assert_eq!(state(&tracker, ada), EntityState::Unchanged);
        }
    }
}

#[test]
fn what_a_plan_in_flight_may_have_deleted_is_not_reset() {
    let (mut tracker, ada) = tracked();
    tracker.remove(ada);
    let ledger = departed(&mut tracker, ada);
    assert!(!tracker.reset(ada));
    tracker.refuse(&ledger);
    assert!(tracker.reset(ada));
}

#[test]
fn values_are_set_all_or_none() {
    let (mut tracker, ada) = tracked();
    let set = |tracker: &mut Tracker, values| tracker.set_values(ada, &values);
    set(&mut tracker, json!({ "name": "Ada", "email": null })).unwrap();
    assert_eq!(tracker.get(ada).unwrap().name, "Ada");
    assert_eq!(tracker.get(ada).unwrap().email, None);
    for (values, kind, column) in [
        (
            json!({ "name": "x", "email": 7 }),
            ErrorKind::Value,
            Some("email"),
        ),
        (
            json!({ "name": "x", "phone": 7 }),
            ErrorKind::Value,
            Some("phone"),
        ),
        (json!({ "name": "a\0b" }), ErrorKind::Value, Some("name")),
        (json!({ "name": null }), ErrorKind::Value, Some("name")),
        (
            json!({ "name": { "x": 1 } }),
            ErrorKind::Value,
            Some("name"),
        ),
        (json!(["x"]), ErrorKind::Value, None),
        (
            json!({ "name": "x", "id": 6 }),
            ErrorKind::Refused,
            Some("id"),
        ),
    ] {
        let error = set(&mut tracker, values.clone()).unwrap_err();
        assert_eq!((error.kind(), error.column()), (kind, column), "{values}");
        assert_eq!(error.table(), Some("customers"));
        assert_eq!(tracker.get(ada).unwrap().name, "Ada");
    }
    set(&mut tracker, json!({ "id": 5 })).unwrap();
    set(&mut tracker, json!({})).unwrap();
}

#[test]
fn a_version_that_is_set_is_the_one_to_be_checked() {
    let (mut tracker, ada) = tracked();
    tracker.set_values(ada, &json!({ "version": 2 })).unwrap();
    assert_eq!(state(&tracker, ada), EntityState::Unchanged);
    tracker
        .set_values(ada, &json!({ "version": 1, "name": "Ada" }))
        .unwrap();
    assert_eq!(tracker.get(ada).unwrap().version, 1);
    let changes = tracker.detect().unwrap();
    let Changed::Updated {
        version, columns, ..
    } = &changes.0[0].changed
    else {
        panic!("it is an update");
    };
    assert_eq!((*version, columns.len()), (Some(1), 1));
}

#[test]
fn a_version_is_not_set_while_a_plan_is_in_flight() {
    let (mut tracker, ada) = tracked();
    tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
    let ledger = departed(&mut tracker, ada);
    let error = tracker
        .set_values(ada, &json!({ "version": 3 }))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    tracker.set_values(ada, &json!({ "name": "Bea" })).unwrap();
    tracker.accept(&ledger, &Receipt::default());
    assert_eq!(state(&tracker, ada), EntityState::Modified);
}

#[test]
fn values_are_set_in_what_is_added_and_not_in_what_is_removed_or_gone() {
    let mut tracker = Tracker::new();
    let page = tracker.add(Page::default());
    tracker.set_values(page, &json!({ "views": 7 })).unwrap();
    assert_eq!(tracker.get(page).unwrap().views, 7);
    let tea = tracker
        .attach(Order {
            id: 1,
            ..Order::new(5, "tea")
        })
        .unwrap();
    tracker
        .set_values(tea, &json!({ "commit_seq": 99, "total": 2 }))
        .unwrap();
    let order = tracker.get(tea).unwrap();
    assert_eq!((order.commit_seq.0, order.total), (0, 2.0));
    tracker.remove(tea);
    for _ in 0..2 {
        let error = tracker.set_values(tea, &json!({ "total": 3 })).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        tracker.detach(tea);
    }
}

#[test]
fn what_is_embedded_is_set_from_nested_objects() {
    let mut tracker = Tracker::new();
    let place = tracker.add(Place::default());
    let values = json!({ "address": { "city": "Delft", "point": { "latitude": 52 } }, "floor": 1 });
    tracker.set_values(place, &values).unwrap();
    let expected = Place {
        id: tracker.get(place).unwrap().id,
        city: Some("Delft".to_owned()),
        latitude: Some(52.0),
        floor: 1,
    };
    assert_eq!(tracker.get(place), Some(&expected));
    for (values, column) in [
        (json!({ "address": { "town": "x" } }), "address.town"),
        (json!({ "address": { "city": 1 } }), "address_city"),
        (json!({ "address": "x" }), "address"),
        (json!({ "floor": { "city": 1 } }), "floor"),
        (json!({ "addres": { "city": "x" } }), "addres"),
    ] {
        let error = tracker.set_values(place, &values).unwrap_err();
        assert_eq!(
            (error.kind(), error.column()),
            (ErrorKind::Value, Some(column))
        );
        assert_eq!(tracker.get(place), Some(&expected));
    }
    tracker
        .set_values(place, &json!({ "address": null }))
        .unwrap();
    let emptied = tracker.get(place).unwrap();
    assert_eq!(
        (&emptied.city, emptied.latitude, emptied.floor),
        (&None, None, 1)
    );
}
