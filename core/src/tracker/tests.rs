//! States, identity and detection, without a database.

mod edit;
mod resolution;

use uuid::Uuid;

use crate::{
    entity::samples::{Customer, Folder, Order},
    error::ErrorKind,
    tracker::{Changed, ColumnChange, EntityState, Tracked, Tracker, is_temporary},
    value::{TEMPORARY_KEYS, Value},
};

fn tracked() -> (Tracker, Tracked<Customer>) {
    let mut tracker = Tracker::new();
    let ada = tracker.attach(Customer::stored(5, "ada")).unwrap();
    (tracker, ada)
}

fn state(tracker: &Tracker, handle: Tracked<Customer>) -> EntityState {
    tracker
        .record(handle)
        .map_or(EntityState::Detached, |record| record.state())
}

#[test]
fn a_change_makes_an_entity_modified_and_its_undoing_unchanged() {
    let (mut tracker, ada) = tracked();
    assert_eq!(state(&tracker, ada), EntityState::Unchanged);
    tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
    assert_eq!(state(&tracker, ada), EntityState::Modified);
    assert_eq!(
        tracker.record(ada).unwrap().original(),
        Some(Customer::stored(5, "ada"))
    );
    tracker.get_mut(ada).unwrap().name = "ada".to_owned();
    assert_eq!(state(&tracker, ada), EntityState::Unchanged);
    assert!(!tracker.has_changes());
    assert!(tracker.detect().unwrap().is_empty());
}

#[test]
fn only_what_was_touched_is_listed() {
    let mut tracker = Tracker::new();
    for id in 1..100 {
        tracker.attach(Customer::stored(id, "x")).unwrap();
    }
    let one = tracker.lookup::<Customer>(&7).unwrap().unwrap();
    tracker.get_mut(one).unwrap();
    tracker.get_mut(one).unwrap().name = "y".to_owned();
    assert_eq!(tracker.listed, [one.place]);
    let changes = tracker.detect().unwrap();
    assert_eq!(changes.0.len(), 1);
    assert_eq!(
        changes.0[0].changed,
        Changed::Updated {
            key: vec![Value::Integer(7)],
            version: Some(3),
            columns: vec![ColumnChange {
                column: 1,
                value: Value::Text("y".to_owned()),
            }],
            unique: Vec::new(),
            left: Vec::new(),
            joined: Vec::new(),
        }
    );
}

#[test]
fn an_entity_that_was_looked_at_and_touched_again_is_listed_once() {
    let (mut tracker, ada) = tracked();
    tracker.get_mut(ada).unwrap();
    assert!(tracker.detect().unwrap().is_empty());
    tracker.get_mut(ada).unwrap().name.push('!');
    tracker.remove(ada);
    assert_eq!(tracker.listed, [ada.place]);
}

#[test]
fn unset_keys_are_given_at_once_and_set_ones_stay() {
    let mut tracker = Tracker::new();
    let (ada, bob) = (
        tracker.add(Customer::named("Ada")),
        tracker.add(Customer::named("Bob")),
    );
    let folder = tracker.add(Folder::default());
    let own = tracker.add(Customer::stored(7, "own"));
    let (ada, bob) = (tracker.get(ada).unwrap().id, tracker.get(bob).unwrap().id);
    assert!(is_temporary(&Value::Integer(ada)) && ada != bob);
    assert_eq!(tracker.get(folder).unwrap().id.get_version_num(), 7);
    assert_eq!(tracker.get(own).unwrap().id, 7);
}

#[test]
fn an_added_entity_that_is_overwritten_keeps_its_key() {
    let mut tracker = Tracker::new();
    let ada = tracker.add(Customer::named("Ada"));
    let key = tracker.get(ada).unwrap().id;
    *tracker.get_mut(ada).unwrap() = Customer::named("Bea");
    tracker.detect().unwrap();
    assert_eq!(tracker.get(ada).unwrap().id, key);
}

#[test]
fn a_key_is_tracked_once() {
    let (mut tracker, ada) = tracked();
    let error = tracker.attach(Customer::stored(5, "other")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyTracked);
    assert_eq!(error.key(), [Value::Integer(5)]);

    let twin = tracker.add(Customer::stored(5, "twin"));
    assert_eq!(
        tracker.detect().unwrap_err().kind(),
        ErrorKind::AlreadyTracked
    );
    tracker.detach(ada);
    assert_eq!(tracker.detect().unwrap().0.len(), 1);
    assert_eq!(tracker.lookup(&5), Some(Some(twin)));
}

#[test]
fn an_unset_or_temporary_key_is_not_attached() {
    let mut tracker = Tracker::new();
    for id in [0, TEMPORARY_KEYS.start + 5] {
        let error = tracker
            .attach(Customer {
                id,
                ..Customer::default()
            })
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.column()),
            (ErrorKind::Value, Some("id"))
        );
    }
    let error = tracker.attach(Order {
        id: 1,
        ..Order::new(TEMPORARY_KEYS.start + 5, "tea")
    });
    assert_eq!(error.unwrap_err().column(), Some("customer_id"));
    assert!(
        tracker
            .attach(Folder {
                id: Uuid::nil(),
                parent_id: None
            })
            .is_err()
    );
}

#[test]
fn reading_again_leaves_local_changes_alone() {
    let (mut tracker, ada) = tracked();
    tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
    assert_eq!(tracker.track(Customer::stored(5, "fresh")), Some(ada));
    assert_eq!(tracker.get(ada).unwrap().name, "Ada");
    tracker.remove(ada);
    assert_eq!(tracker.track(Customer::stored(5, "fresh")), None);
}

#[test]
fn the_key_and_the_version_are_not_the_applications_to_change() {
    let (mut tracker, ada) = tracked();
    tracker.get_mut(ada).unwrap().id = 6;
    let error = tracker.detect().unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Refused, Some("id"))
    );
    tracker.get_mut(ada).unwrap().id = 5;
    tracker.get_mut(ada).unwrap().version = 9;
    let error = tracker.detect().unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Refused, Some("version"))
    );
    tracker.get_mut(ada).unwrap().version = 3;
    assert!(tracker.detect().unwrap().is_empty());
}

#[test]
fn a_changed_commit_number_is_no_change() {
    let mut tracker = Tracker::new();
    let tea = tracker
        .attach(Order {
            id: 1,
            ..Order::new(5, "tea")
        })
        .unwrap();
    tracker.get_mut(tea).unwrap().commit_seq.0 = 99;
    assert!(!tracker.has_changes());
    assert!(tracker.detect().unwrap().is_empty());
}

#[test]
fn a_value_that_cannot_be_stored_names_its_column_and_changes_nothing() {
    let mut tracker = Tracker::new();
    let tea = tracker
        .attach(Order {
            id: 1,
            ..Order::new(5, "tea")
        })
        .unwrap();
    tracker.get_mut(tea).unwrap().total = f64::NAN;
    let error = tracker.detect().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert_eq!(
        (error.table(), error.column()),
        (Some("orders"), Some("total"))
    );
    tracker.get_mut(tea).unwrap().total = 1.0;
    assert_eq!(tracker.detect().unwrap().0.len(), 1);
}

#[test]
fn a_column_that_could_not_be_encoded_before_counts_as_changed() {
    let mut tracker = Tracker::new();
    let tea = tracker
        .attach(Order {
            id: 1,
            total: f64::NAN,
            ..Order::new(5, "tea")
        })
        .unwrap();
    tracker.get_mut(tea).unwrap().total = 0.0;
    assert_eq!(tracker.detect().unwrap().0.len(), 1);
}

#[test]
fn handles_go_stale_and_are_of_no_use_elsewhere() {
    let (mut tracker, ada) = tracked();
    let other = Tracker::new();
    assert!(other.get(ada).is_none());
    let new = tracker.add(Customer::named("New"));
    assert!(tracker.remove(new));
    assert!(!tracker.remove(new));
    assert_eq!(tracker.detach(ada), Some(Customer::stored(5, "ada")));
    assert!(tracker.get_mut(ada).is_none());
    let bob = tracker.attach(Customer::stored(6, "bob")).unwrap();
    tracker.clear();
    tracker.attach(Customer::stored(7, "cy")).unwrap();
    assert!(tracker.get(bob).is_none());
    assert_eq!(tracker.len(), 1);
}

#[test]
fn two_entities_can_be_changed_at_once_but_not_one_twice() {
    let (mut tracker, ada) = tracked();
    let bob = tracker.attach(Customer::stored(6, "bob")).unwrap();
    let [a, b] = tracker.get_disjoint_mut([ada, bob]).unwrap();
    std::mem::swap(&mut a.name, &mut b.name);
    assert_eq!(tracker.detect().unwrap().0.len(), 2);
    assert!(tracker.get_disjoint_mut([ada, ada]).is_none());
    assert_eq!(tracker.get_disjoint_mut::<Customer, 0>([]), Some([]));
}

#[test]
fn iteration_leaves_out_what_was_removed() {
    let (mut tracker, ada) = tracked();
    let bob = tracker.attach(Customer::stored(6, "bob")).unwrap();
    tracker.remove(ada);
    let handles: Vec<_> = tracker
        .iter::<Customer>()
        .map(|(handle, _)| handle)
        .collect();
    assert_eq!(handles, [bob]);
    assert_eq!(tracker.iter::<Order>().count(), 0);
}
