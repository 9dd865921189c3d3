//! From entities to batches, and back from receipts.

mod batches;
mod flights;

use std::fmt::Write;

use crate::{
    entity::Entity,
    error::Result,
    flush::FlushPlan,
    sql::{Arg, Batch, Expect, Receipt},
    tracker::{Ledger, Tracked, Tracker},
    value::Value,
};

/// Detects, plans and renders; the entities are marked as in flight.
fn depart(tracker: &mut Tracker) -> Result<(Batch, Ledger)> {
    let (batch, ledger) = FlushPlan::of(tracker.detect()?)?.render();
    tracker.depart(&ledger);
    Ok((batch, ledger))
}

/// A save that is committed, with the keys 101, 102, ... and the commit number 7.
fn save(tracker: &mut Tracker) -> String {
    let (batch, ledger) = depart(tracker).unwrap();
    tracker.accept(&ledger, &receipt(&batch));
    show(&batch)
}

fn receipt(batch: &Batch) -> Receipt {
    Receipt {
        keys: (101..).take(batch.keys.len()).collect(),
        commit_seq: Some(7),
        ..Receipt::default()
    }
}

fn attach<E: Entity>(tracker: &mut Tracker, entity: E) -> Tracked<E> {
    tracker.attach(entity).unwrap()
}

/// A batch as text: one line for each step, the arguments behind it.
fn show(batch: &Batch) -> String {
    let mut text = String::new();
    for step in &batch.steps {
        let args: Vec<_> = step.args.iter().map(show_argument).collect();
        let one = match step.expect {
            Expect::OneRow { .. } => " -> one row",
            Expect::Gone { .. } => " -> gone",
            Expect::Inserted { .. } | Expect::Any { .. } => "",
        };
        writeln!(text, "{} [{}]{one}", step.text, args.join(", ")).unwrap();
    }
    if !batch.keys.is_empty() {
        writeln!(
            text,
            "keys of {}",
            batch
                .keys
                .iter()
                .map(|key| key.table)
                .collect::<Vec<_>>()
                .join(", ")
        )
        .unwrap();
    }
    if batch.defer_foreign_keys {
        text.push_str("foreign keys at the end\n");
    }
    text
}

fn show_argument(argument: &Arg) -> String {
    match argument {
        Arg::Key(position) => format!("key {position}"),
        Arg::Value(Value::Null) => "NULL".to_owned(),
        Arg::Value(Value::Integer(value)) => value.to_string(),
        Arg::Value(Value::Real(value)) => format!("{value:?}"),
        Arg::Value(Value::Text(value)) => format!("'{value}'"),
        Arg::Value(Value::Unread) => unreachable!("nothing stores it"),
        Arg::Value(Value::Blob(value)) => format!(
            "x{}",
            value
                .iter()
                .filter(|byte| **byte > 0)
                .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
        ),
    }
}
