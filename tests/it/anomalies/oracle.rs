//! A plain map runs the same steps, one transaction after the other, in each order there is.

use std::collections::BTreeMap;

use crate::anomalies::catalogue::Op;

/// What a step showed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    Rows(Vec<(i64, i64)>),
    Changed(u64),
}

/// A transaction that was committed, and what it saw.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) ops: Vec<(Op, Seen)>,
}

pub(crate) type Table = BTreeMap<i64, i64>;

/// The rows at the beginning.
pub(crate) fn start() -> Table {
    [(1, 10), (2, 20)].into_iter().collect()
}

/// Whether these could have run one after the other, in some order, and left this table.
pub(crate) fn is_serial(committed: &[Ended], table: &Table) -> bool {
    let all: Vec<_> = committed.iter().collect();
    explains(&start(), &all, table)
}

fn explains(now: &Table, left: &[&Ended], table: &Table) -> bool {
    if left.is_empty() {
        return now == table;
    }
    (0..left.len()).any(|next| {
        let mut after = now.clone();
        let fits = (left[next].ops.iter()).all(|(op, seen)| apply(&mut after, *op) == *seen);
        let mut rest = left.to_vec();
        rest.remove(next);
        fits && explains(&after, &rest, table)
    })
}

fn apply(table: &mut Table, op: Op) -> Seen {
    let rows = |wanted: &dyn Fn(i64, i64) -> bool| {
        let found = table.iter().filter(|(id, value)| wanted(**id, **value));
        Seen::Rows(found.map(|(id, value)| (*id, *value)).collect())
    };
    match op {
        Op::Read(id) => rows(&|row, _| row == id),
        Op::ReadAll => rows(&|_, _| true),
        Op::ReadValue(wanted) => rows(&|_, value| value == wanted),
        Op::ReadFrom(least) => rows(&|_, value| value >= least),
        Op::Count => Seen::Rows(vec![(i64::try_from(table.len()).unwrap(), 0)]),
        Op::Set(id, to) => change(table, |row, value| (row == id).then(|| *value = to)),
        Op::Add(id, more) => change(table, |row, value| (row == id).then(|| *value += more)),
        Op::AddAll(more) => change(table, |_, value| {
            *value += more;
            Some(())
        }),
        Op::Replace(from, to) => change(table, |_, value| (*value == from).then(|| *value = to)),
        Op::Delete(wanted) => {
            let before = table.len();
            table.retain(|_, value| *value != wanted);
            Seen::Changed((before - table.len()) as u64)
        }
        Op::Insert(id, value) => {
            assert!(table.insert(id, value).is_none(), "no script inserts twice");
            Seen::Changed(1)
        }
        Op::Commit | Op::Rollback => unreachable!("no statement"),
    }
}

fn change(table: &mut Table, each: impl Fn(i64, &mut i64) -> Option<()>) -> Seen {
    let changed = table.iter_mut().filter_map(|(id, value)| each(*id, value));
    Seen::Changed(changed.count() as u64)
}
