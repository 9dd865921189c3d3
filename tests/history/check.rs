//! The checker: whether what clients saw is what they would have seen one after the other, in commit order.

use std::{collections::HashMap, fmt, path::Path};

use anabranch::prelude::ErrorKind;

use crate::{
    client::is_mark,
    operation::Cell,
    replay::{Difference, Replay, difference},
    tables,
    unit::{History, Kind, Outcome, Unit},
};

/// What must not be.
#[derive(Debug)]
pub(crate) enum Violation {
    /// Acknowledged, and not there.
    Lost { unit: i64 },
    /// There, though its client was told that it is not, or never asked for it.
    Unasked { unit: i64 },
    /// Its client was told another commit number.
    Number { unit: i64, told: i64, found: i64 },
    /// Acknowledged before one that comes earlier in the order was asked for.
    Order { unit: i64 },
    /// Where it committed, it would have seen something else.
    Differs {
        unit: i64,
        kind: Kind,
        difference: Difference,
    },
    /// Where it committed, it could not have been.
    Impossible { unit: i64, refused: ErrorKind },
    /// No state that was there when it began shows what it saw.
    NoSnapshot {
        unit: i64,
        kind: Kind,
        low: usize,
        high: usize,
        /// At the last of these states.
        difference: Difference,
    },
    /// The file ends with other rows.
    Dump {
        query: &'static str,
        found: Vec<Vec<Cell>>,
        replayed: Vec<Vec<Cell>>,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { unit } => write!(f, "unit {unit} was acknowledged, and is not there"),
            Self::Unasked { unit } => write!(f, "unit {unit} is there, and should not be"),
            Self::Number { unit, told, found } => {
                write!(f, "unit {unit} was told the number {told}, and has {found}")
            }
            Self::Order { unit } => {
                write!(f, "unit {unit} comes after one that was asked for later")
            }
            Self::Differs {
                unit,
                kind,
                difference,
            } => write!(
                f,
                "unit {unit} ({kind:?}), where it committed: {difference}"
            ),
            Self::Impossible { unit, refused } => {
                write!(f, "unit {unit} could not have committed there: {refused:?}")
            }
            Self::NoSnapshot {
                unit,
                kind,
                low,
                high,
                difference,
            } => write!(
                f,
                "unit {unit} ({kind:?}) saw none of the states {low} to {high}; at the last: {difference}"
            ),
            Self::Dump {
                query,
                found,
                replayed,
            } => write!(
                f,
                "{query}: only found {found:?}, only replayed {replayed:?}"
            ),
        }
    }
}

/// All violations in a history that began with this file.
pub(crate) fn check(history: &History, base: &Path) -> Vec<Violation> {
    let mut checker = Checker::new(history);
    checker.check_outcomes();
    checker.check_times();
    checker.check_by_replay(&Replay::new(base));
    checker.violations
}

/// The units of a history in commit order.
pub(crate) fn committed(history: &History) -> Vec<&Unit> {
    let by_id = by_id(history);
    let ordered = history.order.values();
    ordered.filter_map(|id| by_id.get(id).copied()).collect()
}

/// The first and the last state, counted in committed units, that a unit's snapshot may be.
pub(crate) fn window(committed: &[&Unit], asked: u64, had: u64) -> (usize, usize) {
    let acknowledged =
        |unit: &Unit| matches!(unit.outcome, Outcome::Committed(_)) && unit.ended < asked;
    let low = committed.iter().rposition(|unit| acknowledged(unit));
    let high = committed.iter().position(|unit| unit.submitted > had);
    (
        low.map_or(0, |low| low + 1),
        high.unwrap_or(committed.len()),
    )
}

struct Checker<'h> {
    history: &'h History,
    committed: Vec<&'h Unit>,
    violations: Vec<Violation>,
}

/// A unit whose snapshot is looked for.
struct Sought<'h> {
    unit: &'h Unit,
    low: usize,
    high: usize,
    found: bool,
}

impl<'h> Checker<'h> {
    fn new(history: &'h History) -> Self {
        Self {
            history,
            committed: committed(history),
            violations: Vec::new(),
        }
    }

    fn check_outcomes(&mut self) {
        let history = self.history;
        let by_id = by_id(history);
        let numbers: HashMap<_, _> = history
            .order
            .iter()
            .map(|(seq, unit)| (*unit, *seq))
            .collect();
        for id in history.order.values() {
            if !by_id.contains_key(id) {
                self.violations.push(Violation::Unasked { unit: *id });
            }
        }
        for unit in &history.units {
            let (id, number) = (unit.id, numbers.get(&unit.id));
            match (unit.outcome, number) {
                (Outcome::Committed(_), None) if marked(unit) => {
                    self.violations.push(Violation::Lost { unit: id });
                }
                (Outcome::Committed(Some(told)), Some(&found)) if told != found => {
                    self.violations.push(Violation::Number {
                        unit: id,
                        told,
                        found,
                    });
                }
                (Outcome::Conflict | Outcome::Undone, Some(_)) => {
                    self.violations.push(Violation::Unasked { unit: id });
                }
                _ => {}
            }
        }
    }

    fn check_times(&mut self) {
        let mut latest = 0;
        for unit in &self.committed {
            if unit.ended < latest {
                self.violations.push(Violation::Order { unit: unit.id });
            }
            latest = latest.max(unit.submitted);
        }
    }

    fn check_by_replay(&mut self, replay: &Replay) {
        let mut sought: Vec<_> = self
            .history
            .units
            .iter()
            .filter_map(|unit| self.seek(unit))
            .collect();
        for state in 0..=self.committed.len() {
            for one in &mut sought {
                if !one.found && (one.low..=one.high).contains(&state) {
                    self.look(replay, one, state);
                }
            }
            if let Some(unit) = self.committed.get(state).copied() {
                self.apply(replay, unit);
            }
        }
        for (place, (found, replayed)) in self.history.dump.iter().zip(replay.dump()).enumerate() {
            if *found != replayed {
                self.violations.push(Violation::Dump {
                    query: tables::dumped(place),
                    found: only(found, &replayed),
                    replayed: only(&replayed, found),
                });
            }
        }
    }

    fn seek(&self, unit: &'h Unit) -> Option<Sought<'h>> {
        let (asked, had) = unit.snapshot?;
        let (low, high) = window(&self.committed, asked, had);
        Some(Sought {
            unit,
            low,
            high,
            found: false,
        })
    }

    fn look(&mut self, replay: &Replay, one: &mut Sought<'h>, state: usize) {
        let unit = one.unit;
        let differs = difference(&unit.entries, &replay.look(&unit.entries), false);
        one.found = differs.is_none();
        if let Some(difference) = differs
            && state == one.high
        {
            self.violations.push(Violation::NoSnapshot {
                unit: unit.id,
                kind: unit.kind,
                low: one.low,
                high: one.high,
                difference,
            });
        }
    }

    fn apply(&mut self, replay: &Replay, unit: &Unit) {
        match replay.apply(&unit.entries) {
            Ok(sees) => {
                let of_snapshot = unit.kind == Kind::Snapshot;
                if let Some(difference) = difference(&unit.entries, &sees, of_snapshot) {
                    self.violations.push(Violation::Differs {
                        unit: unit.id,
                        kind: unit.kind,
                        difference,
                    });
                }
            }
            Err(refused) => self.violations.push(Violation::Impossible {
                unit: unit.id,
                refused,
            }),
        }
    }
}

fn by_id(history: &History) -> HashMap<i64, &Unit> {
    history.units.iter().map(|unit| (unit.id, unit)).collect()
}

/// Whether the unit was to leave a mark: sessions that only looked leave none.
fn marked(unit: &Unit) -> bool {
    unit.entries.iter().any(is_mark)
}

/// The rows of one that the other does not have.
fn only(one: &[Vec<Cell>], other: &[Vec<Cell>]) -> Vec<Vec<Cell>> {
    one.iter()
        .filter(|row| !other.contains(row))
        .cloned()
        .collect()
}
