//! Faults planted in histories that real runs made: the checker must report each of them.

use anabranch_tests::random::seed;

use crate::{
    check::{Violation, check, committed, window},
    client::is_mark,
    remains::Remains,
    replay::{Replay, difference},
    shapes::named,
    stepper,
    unit::{Entry, History, Kind, Outcome, Unit},
};

/// How many histories are looked at for a place where a fault changes something.
const HISTORIES: u64 = 40;

/// Makes histories until so many of them were told to be wrong.
async fn find(name: &str, plant: impl Fn(&Remains) -> usize) {
    let first = seed(name);
    let mut planted = 0;
    for round in 0..HISTORIES {
        let shape = named("saves and transactions between");
        let remains = stepper::run(shape, first.wrapping_add(round), 60).await;
        let violations = check(&remains.history, &remains.base);
        assert!(
            violations.is_empty(),
            "nothing is planted yet: {violations:#?}"
        );
        planted += plant(&remains);
        if planted >= 5 {
            return;
        }
    }
    panic!("only {planted} faults could be planted");
}

#[tokio::test]
async fn a_comparison_that_was_skipped_is_reported() {
    find("skipped comparison", |remains| {
        let conflicts = remains.history.units.iter();
        let conflicts = conflicts.filter(|unit| unit.outcome == Outcome::Conflict
                && unit.kind == Kind::Serializable
                && unit.entries.iter().any(is_mark)
                && was_alone(unit, &remains.history));
        let planted = conflicts.map(|unit| {
            let id = unit.id;
            let mut wrong = remains.history.clone();
            // Where it asked to be committed, and with all that it would have written.
            let place = committed(&wrong).iter().filter(|other| other.submitted < unit.submitted).count();
            let mut order: Vec<_> = wrong.order.values().copied().collect();
            order.insert(place, id);
            set_order(&mut wrong, &order);
            unit_of(&mut wrong, id).outcome = Outcome::Committed(None);
            redump(&mut wrong, remains, 1, id);
            let violations = check(&wrong, &remains.base);
            let told = |violation: &Violation| matches!(violation, Violation::Differs { unit, .. } if *unit == id);
            assert!(violations.iter().any(told), "{violations:#?}");
        });
        planted.count()
    })
    .await;
}

#[tokio::test]
async fn a_unit_that_was_applied_twice_is_reported() {
    find("applied twice", |remains| {
        let planted = committed(&remains.history)
            .into_iter()
            .rev()
            .filter(|unit| {
                let mut wrong = remains.history.clone();
                redump(&mut wrong, remains, 2, unit.id);
                // Some things can be done twice.
                if wrong.dump == remains.history.dump {
                    return false;
                }
                let violations = check(&wrong, &remains.base);
                let told = |violation: &Violation| matches!(violation, Violation::Dump { .. });
                assert!(violations.iter().any(told), "{violations:#?}");
                true
            });
        planted.take(5).count()
    })
    .await;
}

#[tokio::test]
async fn a_stale_snapshot_is_reported() {
    find("stale snapshot", |remains| {
        let units = &remains.history.units;
        let planted = units.iter().filter(|unit| {
            let Some((asked, had)) = unit.snapshot else {
                return false;
            };
            let (low, _) = window(&committed(&remains.history), asked, had);
            let Some(stale) = (0..low).rev().find_map(|state| seen_at(remains, unit, state)) else {
                return false;
            };
            let id = unit.id;
            let mut wrong = remains.history.clone();
            unit_of(&mut wrong, id).entries = stale;
            let violations = check(&wrong, &remains.base);
            let told = |violation: &Violation| matches!(violation, Violation::NoSnapshot { unit, .. } if *unit == id);
            assert!(violations.iter().any(told), "{violations:#?}");
            true
        });
        planted.take(5).count()
    })
    .await;
}

/// What a unit would have seen of an older state, if that shows in what it read, and of none of those that it may see.
fn seen_at(remains: &Remains, unit: &Unit, state: usize) -> Option<Vec<Entry>> {
    let units = committed(&remains.history);
    let (asked, had) = unit.snapshot?;
    let (low, high) = window(&units, asked, had);
    let replay = Replay::new(&remains.base);
    for unit in &units[..state] {
        replay.apply(&unit.entries).unwrap();
    }
    let stale = replay.look(&unit.entries);
    let mut at = state;
    for later in low..=high {
        while at < later {
            replay.apply(&units[at].entries).unwrap();
            at += 1;
        }
        difference(&stale, &replay.look(&stale), false)?;
    }
    Some(stale)
}

#[tokio::test]
async fn an_acknowledged_unit_that_is_lost_is_reported() {
    find("lost", |remains| {
        let units = committed(&remains.history).into_iter().rev();
        let planted = units.filter(|unit| matches!(unit.outcome, Outcome::Committed(_))).map(|unit| {
            let id = unit.id;
            let mut wrong = remains.history.clone();
            wrong.order.retain(|_, other| *other != id);
            redump(&mut wrong, remains, 0, id);
            let violations = check(&wrong, &remains.base);
            let told = |violation: &Violation| matches!(violation, Violation::Lost { unit } if *unit == id);
            assert!(violations.iter().any(told), "{violations:#?}");
        });
        planted.take(5).count()
    })
    .await;
}

#[tokio::test]
async fn a_unit_of_which_only_the_mark_is_left_is_reported() {
    find("half lost", |remains| {
        let planted = committed(&remains.history)
            .into_iter()
            .rev()
            .filter(|unit| {
                let mut wrong = remains.history.clone();
                redump(&mut wrong, remains, 0, unit.id);
                // The mark stays.
                wrong.dump[0].clone_from(&remains.history.dump[0]);
                if wrong.dump == remains.history.dump {
                    return false;
                }
                let violations = check(&wrong, &remains.base);
                let told = |violation: &Violation| matches!(violation, Violation::Dump { .. });
                assert!(violations.iter().any(told), "{violations:#?}");
                true
            });
        planted.take(5).count()
    })
    .await;
}

/// Whether no other was being committed as this one was found in conflict, so that it is known where that was.
fn was_alone(unit: &Unit, history: &History) -> bool {
    let mut others = committed(history).into_iter();
    !others.any(|other| other.submitted < unit.ended && unit.submitted < other.ended)
}

fn unit_of(history: &mut History, id: i64) -> &mut Unit {
    history.units.iter_mut().find(|unit| unit.id == id).unwrap()
}

fn set_order(history: &mut History, order: &[i64]) {
    history.order = (1..).zip(order.iter().copied()).collect();
    for unit in &mut history.units {
        if let Outcome::Committed(number) = &mut unit.outcome {
            *number = None;
        }
    }
}

/// The rows with which the file would end, had this unit been applied so often: the engine that made the mistake would
/// have written them.
fn redump(wrong: &mut History, remains: &Remains, times: usize, id: i64) {
    let replay = Replay::new(&remains.base);
    for unit in committed(wrong) {
        // What cannot be done on what is there by now is left out.
        for _ in 0..if unit.id == id { times } else { 1 } {
            drop(replay.apply(&unit.entries));
        }
    }
    wrong.dump = replay.dump();
}
