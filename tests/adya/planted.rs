//! Anomalies edited into histories: what a broken library would have shown.

use adya::history::{Id, Mop, OpType, ReadValue};

use crate::history::{Kind, Recorded};

type Plant = fn(Kind, &mut Recorded);

pub(crate) const ALL: &[(&str, Plant)] = &[
    ("stale read", stale_read),
    ("lost write", lost_write),
    ("write skew", write_skew),
];

/// Somebody who comes when all is over sees a cell that was written as it was at the beginning.
fn stale_read(kind: Kind, recorded: &mut Recorded) {
    let key = written(recorded).expect("something was written");
    let value = initial(kind);
    recorded.push_whole(100, vec![Mop::Read { key, value }]);
}

/// What somebody acknowledged had written is not there, neither for those who came later nor at the end: another
/// transaction reads what was there before, and writes on top of that.
fn lost_write(kind: Kind, recorded: &mut Recorded) {
    let (key, first, second) = fresh(recorded);
    let read = |value| Mop::Read { key, value };
    recorded.push_whole(100, vec![read(initial(kind)), write(kind, key, first)]);
    recorded.push_whole(101, vec![read(initial(kind)), write(kind, key, second)]);
    recorded.push_whole(102, vec![read(holding(kind, second))]);
}

/// Two who each read what the other wrote, before it did.
fn write_skew(kind: Kind, recorded: &mut Recorded) {
    let (one, first, second) = fresh(recorded);
    let two = second + 1;
    let read = |key, value| Mop::Read { key, value };
    let steps = [
        vec![read(one, initial(kind)), write(kind, two, first)],
        vec![read(two, initial(kind)), write(kind, one, second)],
    ];
    for kind in [OpType::Invoke, OpType::Ok] {
        for (process, steps) in (100..).zip(&steps) {
            recorded.push(process, kind, steps.clone());
        }
    }
    let both = vec![
        read(one, holding(kind, second)),
        read(two, holding(kind, first)),
    ];
    recorded.push_whole(102, both);
}

/// A key and two elements that nobody had.
fn fresh(recorded: &Recorded) -> (Id, Id, Id) {
    let next = recorded.largest() + 1;
    (next, next + 1, next + 2)
}

/// A key that a committed transaction wrote.
fn written(recorded: &Recorded) -> Option<Id> {
    let ended = recorded.ops.iter().filter(|op| op.kind == OpType::Ok);
    let mut writes = ended.flat_map(|op| &op.value);
    let found = writes.find(|mop| !matches!(mop, Mop::Read { .. }));
    found.map(Mop::key)
}

const fn write(kind: Kind, key: Id, value: Id) -> Mop {
    match kind {
        Kind::Lists => Mop::Append { key, value },
        Kind::Registers => Mop::Write { key, value },
    }
}

const fn initial(kind: Kind) -> ReadValue {
    match kind {
        Kind::Lists => ReadValue::List(Vec::new()),
        Kind::Registers => ReadValue::Nil,
    }
}

fn holding(kind: Kind, value: Id) -> ReadValue {
    match kind {
        Kind::Lists => ReadValue::List(vec![value]),
        Kind::Registers => ReadValue::Scalar(value),
    }
}
