//! From a plan to the batch for the writer, and the ledger to accept it by.

use std::{ptr, sync::Arc};

use crate::{
    entity::TableDef,
    flush::{
        Action, FlushPlan, PlannedRow,
        statements::{self, Statements},
    },
    sql::{Arg, Batch, Expect, NewKey, Statement, Step},
    tracker::{Ledger, LedgerEntry, Written},
    value::Value,
};

impl FlushPlan {
    /// The batch, and what is needed to accept it once it is committed.
    pub(crate) fn render(self) -> (Batch, Ledger) {
        let mut steps = Vec::with_capacity(self.rows.len());
        let mut entries = Vec::with_capacity(self.rows.len());
        let mut last: Option<(&'static TableDef, &'static Statements)> = None;
        for row in self.rows {
            let statements = match last {
                Some((table, known)) if ptr::eq(table, row.table) => known,
                _ => statements::of(row.table),
            };
            last = Some((row.table, statements));
            entries.push(LedgerEntry {
                place: row.place,
                written: row.written(),
            });
            steps.push(row.step(statements));
        }
        let batch = Batch {
            steps,
            keys: self
                .keys
                .iter()
                .map(|temporary| NewKey {
                    table: temporary.table.name,
                    column: temporary.table.key_column().name,
                })
                .collect(),
            defer_foreign_keys: self.defer_foreign_keys,
            token: None,
        };
        (
            batch,
            Ledger {
                entries,
                keys: self.keys,
            },
        )
    }
}

impl PlannedRow {
    fn written(&self) -> Written {
        match &self.action {
            Action::Insert { key, version, .. } => Written::Inserted {
                key: *key,
                version: *version,
            },
            Action::Update { version, .. } => Written::Updated {
                version: version.map(next),
            },
            Action::Delete { .. } => Written::Deleted,
        }
    }

    fn step(self, statements: &Statements) -> Step {
        match self.action {
            Action::Insert { values, .. } => Step {
                text: Arc::clone(&statements.insert),
                args: values,
                expect: Expect::Inserted {
                    table: self.table.name,
                },
            },
            Action::Update {
                key,
                version,
                columns,
                values,
                ..
            } => {
                let mut args = values;
                args.reserve_exact(3);
                args.extend(version.map(|version| integer(next(version))));
                args.push(Arg::Value(key.clone()));
                args.extend(version.map(integer));
                Step {
                    text: statements.update(&columns),
                    args,
                    expect: one_row(statements, key),
                }
            }
            Action::Delete { mut values } => {
                let table = self.table;
                let key = std::mem::take(&mut values[table.key]);
                let mut args = Vec::with_capacity(2);
                args.push(Arg::Value(key.clone()));
                args.extend(
                    table
                        .version
                        .map(|at| Arg::Value(std::mem::take(&mut values[at]))),
                );
                Step {
                    text: Arc::clone(&statements.delete),
                    args,
                    expect: one_row(statements, key),
                }
            }
        }
    }
}

fn one_row(statements: &Statements, key: Value) -> Expect {
    Expect::OneRow {
        probe: Statement {
            text: Arc::clone(&statements.by_key),
            args: vec![key],
        },
    }
}

const fn next(version: i64) -> i64 {
    version.wrapping_add(1)
}

const fn integer(value: i64) -> Arg {
    Arg::Value(Value::Integer(value))
}
