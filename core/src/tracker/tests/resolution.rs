//! Conflicts resolved, without a database.

use crate::{
    entity::samples::Customer,
    error::{Conflict, Error, ErrorKind},
    tracker::{
        Changed, EntityState, Ledger, LedgerEntry, TemporaryKeys, Tracked, Tracker, Winner,
        Written,
        tests::{state, tracked},
    },
    value::Value,
};

fn row(name: &str, email: Option<&str>) -> Vec<Value> {
    vec![
        Value::Integer(5),
        text(name),
        email.map_or(Value::Null, text),
        Value::Integer(7),
    ]
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// The entity lost a race against this row.
fn lost(tracker: &Tracker, handle: Tracked<Customer>, database: Option<Vec<Value>>) -> Error {
    let conflict = tracker.conflict(handle.place, database);
    Error::conflict(vec![conflict.unwrap()])
}

fn update(tracker: &mut Tracker) -> (Option<i64>, Vec<usize>) {
    let changes = tracker.detect().unwrap();
    let Some(Changed::Updated {
        version, columns, ..
    }) = changes.0.first().map(|change| &change.changed)
    else {
        panic!("it is an update: {changes:?}");
    };
    (
        *version,
        columns.iter().map(|change| change.column).collect(),
    )
}

fn renamed() -> (Tracker, Tracked<Customer>) {
    let (mut tracker, ada) = tracked();
    tracker.get_mut(ada).unwrap().name = "Ada".to_owned();
    (tracker, ada)
}

#[test]
fn the_client_wins_over_all_that_differs() {
    let (mut tracker, ada) = renamed();
    let error = lost(&tracker, ada, Some(row("A.", None)));
    tracker.client_wins(&error).unwrap();
    assert_eq!(update(&mut tracker), (Some(7), vec![1, 2]));
    assert_eq!(tracker.get(ada).unwrap().version, 7);
    assert_eq!(tracker.listed, [ada.place]);
}

#[test]
fn the_store_wins_and_nothing_is_left_to_save() {
    let (mut tracker, ada) = renamed();
    let error = lost(&tracker, ada, Some(row("A.", None)));
    tracker.store_wins(&error).unwrap();
    assert_eq!(state(&tracker, ada), EntityState::Unchanged);
    let expected = Customer {
        name: "A.".to_owned(),
        email: None,
        version: 7,
        ..Customer::stored(5, "ada")
    };
    assert_eq!(tracker.get(ada), Some(&expected));
    assert!(tracker.detect().unwrap().is_empty());
}

#[test]
fn a_merge_keeps_ours_and_takes_theirs() {
    let (mut tracker, ada) = renamed();
    let error = lost(&tracker, ada, Some(row("ada", None)));
    assert!(error.conflicts()[0].clashing.is_empty());
    tracker.merge(&error).unwrap();
    assert_eq!(update(&mut tracker), (Some(7), vec![1]));
    assert_eq!(tracker.get(ada).unwrap().email, None);
}

#[test]
fn both_to_the_same_value_is_no_clash() {
    let (mut tracker, ada) = renamed();
    let error = lost(&tracker, ada, Some(row("Ada", Some("ada@example.org"))));
    tracker.merge(&error).unwrap();
    assert_eq!(state(&tracker, ada), EntityState::Unchanged);
}

#[test]
fn a_clash_is_named_changes_nothing_and_is_decided() {
    for (winner, name) in [(Winner::Client, "Ada"), (Winner::Store, "A.")] {
        let (mut tracker, ada) = renamed();
        let error = lost(&tracker, ada, Some(row("A.", None)));
        let refused = tracker.merge(&error).unwrap_err();
        assert!(refused.is_conflict());
        assert_eq!(refused.column(), Some("name"));
        assert_eq!(refused.conflicts()[0].clashing, ["name"]);
        assert_eq!(tracker.get(ada).unwrap().version, 3);

        let mut asked = Vec::new();
        tracker
            .merge_with(&refused, |clash| {
                asked.push((clash.column(), clash.original().cloned()));
                assert_eq!(clash.current(), Some(&text("Ada")));
                assert_eq!(clash.database(), Some(&text("A.")));
                winner
            })
            .unwrap();
        assert_eq!(asked, [(Some("name"), Some(text("ada")))]);
        let customer = tracker.get(ada).unwrap();
        assert_eq!((customer.name.as_str(), &customer.email), (name, &None));
    }
}

#[test]
fn what_was_never_read_and_what_was_marked_clashes_with_any_other_value() {
    let mut tracker = Tracker::new();
    let ada = tracker.update(Customer::stored(5, "ada")).unwrap();
    let error = lost(&tracker, ada, Some(row("ada", None)));
    assert_eq!(error.conflicts()[0].clashing, ["email"]);

    let (mut tracker, ada) = tracked();
    tracker.mark_modified(ada, 1);
    let error = lost(&tracker, ada, Some(row("A.", Some("ada@example.org"))));
    assert_eq!(error.conflicts()[0].clashing, ["name"]);
}

#[test]
fn a_row_that_is_gone_is_inserted_again_or_forgotten() {
    let (mut tracker, ada) = renamed();
    let error = lost(&tracker, ada, None);
    assert!(tracker.merge(&error).unwrap_err().is_conflict());
    tracker.client_wins(&error).unwrap();
    assert_eq!(state(&tracker, ada), EntityState::Added);
    assert_eq!(tracker.detect().unwrap().0.len(), 1);

    for store in [true, false] {
        let (mut tracker, ada) = renamed();
        let error = lost(&tracker, ada, None);
        if store {
            tracker.store_wins(&error).unwrap();
        } else {
            tracker
                .merge_with(&error, |clash| {
                    assert_eq!(clash.column(), None);
                    Winner::Store
                })
                .unwrap();
        }
        assert_eq!(state(&tracker, ada), EntityState::Detached);
        assert!(!tracker.has_changes());
    }
}

#[test]
fn a_delete_that_lost_is_done_undone_or_decided() {
    let (mut tracker, ada) = tracked();
    tracker.remove(ada);
    let error = lost(&tracker, ada, Some(row("A.", None)));
    assert!(error.conflicts()[0].deletes);
    assert!(tracker.merge(&error).unwrap_err().is_conflict());
    tracker.client_wins(&error).unwrap();
    let changes = tracker.detect().unwrap();
    let Changed::Deleted { values } = &changes.0[0].changed else {
        panic!("it is a delete");
    };
    assert_eq!(values[3], Value::Integer(7), "the version that it has now");

    tracker.store_wins(&error).unwrap();
    assert_eq!(state(&tracker, ada), EntityState::Unchanged);
    assert_eq!(tracker.get(ada).unwrap().name, "A.");
    assert_eq!(tracker.lookup(&5), Some(Some(ada)));
}

#[test]
fn a_delete_of_a_row_that_is_gone_is_done() {
    for resolve in [Tracker::client_wins, Tracker::store_wins, Tracker::merge] {
        let (mut tracker, ada) = tracked();
        tracker.remove(ada);
        let error = lost(&tracker, ada, None);
        resolve(&mut tracker, &error).unwrap();
        assert_eq!(state(&tracker, ada), EntityState::Detached);
        assert!(tracker.detect().unwrap().is_empty());
    }
}

#[test]
fn what_cannot_be_resolved_is_refused_and_changes_nothing() {
    let (mut tracker, ada) = renamed();
    let other = tracker.attach(Customer::stored(6, "bob")).unwrap();
    tracker.get_mut(other).unwrap().name = "Bob".to_owned();
    let conflicts: Vec<Conflict> = [ada, other]
        .into_iter()
        .filter_map(|handle| tracker.conflict(handle.place, Some(row("A.", None))))
        .collect();
    let error = Error::conflict(conflicts);
    tracker.detach(other);
    for resolve in [Tracker::client_wins, Tracker::store_wins, Tracker::merge] {
        let refused = resolve(&mut tracker, &error).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert_eq!(refused.key(), error.conflicts()[1].key);
        let refused = resolve(&mut tracker, &refused).unwrap_err();
        assert_eq!(
            (refused.kind(), refused.key()),
            (ErrorKind::Refused, &[][..])
        );
        assert_eq!(tracker.get(ada).unwrap().version, 3);
    }
}

#[test]
fn what_a_later_plan_may_have_written_is_not_resolved() {
    let (mut tracker, ada) = renamed();
    let error = lost(&tracker, ada, Some(row("A.", None)));
    let ledger = Ledger {
        entries: vec![LedgerEntry {
            place: ada.place,
            written: Written::Updated { version: Some(4) },
        }],
        keys: TemporaryKeys::default(),
        now: None,
    };
    tracker.depart(&ledger);
    for resolve in [Tracker::client_wins, Tracker::store_wins, Tracker::merge] {
        let refused = resolve(&mut tracker, &error).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
    }
    tracker.refuse(&ledger);
    tracker.client_wins(&error).unwrap();
}

#[test]
fn a_row_that_does_not_fit_is_a_decode_error_and_changes_nothing() {
    let (mut tracker, ada) = renamed();
    let mut database = row("A.", None);
    database[1] = Value::Integer(1);
    let error = lost(&tracker, ada, Some(database));
    for resolve in [Tracker::client_wins, Tracker::store_wins, Tracker::merge] {
        let refused = resolve(&mut tracker, &error).unwrap_err();
        assert_eq!(
            (refused.kind(), refused.column()),
            (ErrorKind::Decode, Some("name"))
        );
        assert_eq!(tracker.get(ada).unwrap().version, 3);
    }
}

#[test]
fn a_removed_entity_does_not_come_back_beside_the_one_that_took_its_key() {
    let (mut tracker, ada) = tracked();
    tracker.remove(ada);
    let error = lost(&tracker, ada, Some(row("A.", None)));
    tracker.add(Customer::stored(5, "again"));
    let refused = tracker.store_wins(&error).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyTracked);
    assert_eq!(state(&tracker, ada), EntityState::Deleted);
    tracker.client_wins(&error).unwrap();
}
