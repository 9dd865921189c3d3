//! From a plan to the batch for the writer, and the ledger to accept it by.

use std::{collections::HashMap, ptr, sync::Arc};

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
        let brought = self.brought_keys();
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
                    column: temporary.table.columns[temporary.table.key[0]].name,
                    above: brought.get(temporary.table.name).copied().unwrap_or(0),
                })
                .collect(),
            unkeyed: None,
            defer_foreign_keys: self.defer_foreign_keys,
            token: None,
        };
        (
            batch,
            Ledger {
                entries,
                keys: self.keys,
                now: self.now,
            },
        )
    }
}

impl FlushPlan {
    /// The largest keys that rows have already, of those tables in which the writer gives keys to others: none of these
    /// is given, not even that of a row to be deleted which has been gone for some time.
    fn brought_keys(&self) -> HashMap<&'static str, i64> {
        let mut brought = HashMap::new();
        if self.keys.is_empty() {
            return brought;
        }
        for row in &self.rows {
            let Some(column) = row.table.writer_key() else {
                continue;
            };
            let key = match &row.action {
                Action::Insert { values, .. } => match &values[column] {
                    Arg::Value(key) => key,
                    Arg::Key(_) => continue,
                },
                Action::Update { key, .. } => &key[0],
                Action::Delete { values } => &values[column],
            };
            // Beyond the largest there is none: the writer looks for room elsewhere.
            if let Value::Integer(key) = *key
                && key < i64::MAX
            {
                let largest = brought.entry(row.table.name).or_insert(0);
                *largest = key.max(*largest);
            }
        }
        brought
    }
}

impl PlannedRow {
    fn written(&self) -> Written {
        match &self.action {
            Action::Insert {
                version,
                created_at,
                updated_at,
                ..
            } => Written::Inserted {
                version: *version,
                created_at: *created_at,
                updated_at: *updated_at,
            },
            Action::Update { version, .. } => Written::Updated {
                version: version.map(next),
            },
            Action::Delete { values } => Written::Deleted {
                key: (self.table.key.iter())
                    .map(|column| values[*column].clone())
                    .collect(),
            },
        }
    }

    fn step(self, statements: &Statements) -> Step {
        let may_be_gone = self.may_be_gone;
        match self.action {
            Action::Insert { values, .. } => Step {
                text: Arc::clone(&statements.insert),
                args: if statements.returns {
                    written(self.table, values)
                } else {
                    values
                },
                expect: Expect::Inserted {
                    table: self.table.name,
                },
                returns: statements.returns,
            },
            Action::Update {
                key,
                version,
                columns,
                values,
                ..
            } => {
                let mut args = values;
                args.reserve_exact(key.len() + 2);
                args.extend(version.map(|version| integer(next(version))));
                args.extend(key.iter().cloned().map(Arg::Value));
                args.extend(version.map(integer));
                Step {
                    text: statements.update(&columns),
                    args,
                    expect: one_row(self.table, statements, key, version),
                    returns: statements.returns,
                }
            }
            Action::Delete { mut values } => {
                let table = self.table;
                let key: Vec<_> = (table.key.iter())
                    .map(|column| std::mem::take(&mut values[*column]))
                    .collect();
                let mut args = Vec::with_capacity(key.len() + 1);
                args.extend(key.iter().cloned().map(Arg::Value));
                let version = table.version.map(|at| std::mem::take(&mut values[at]));
                args.extend(version.clone().map(Arg::Value));
                Step {
                    text: Arc::clone(&statements.delete),
                    args,
                    expect: if may_be_gone {
                        Expect::Gone {
                            probe: by_key(statements, key),
                        }
                    } else {
                        let version = match version {
                            Some(Value::Integer(version)) => Some(version),
                            _ => None,
                        };
                        one_row(table, statements, key, version)
                    },
                    returns: false,
                }
            }
        }
    }
}

/// The values of those columns that are not computed.
fn written(table: &TableDef, values: Vec<Arg>) -> Vec<Arg> {
    (values.into_iter().zip(table.columns))
        .filter(|(_, column)| column.generated.is_none())
        .map(|(value, _)| value)
        .collect()
}

fn one_row(
    table: &'static TableDef,
    statements: &Statements,
    key: Vec<Value>,
    version: Option<i64>,
) -> Expect {
    Expect::OneRow {
        table: table.name,
        probe: by_key(statements, key),
        version: table.version.zip(version),
    }
}

fn by_key(statements: &Statements, key: Vec<Value>) -> Statement {
    Statement {
        text: Arc::clone(&statements.by_key),
        args: key,
    }
}

const fn next(version: i64) -> i64 {
    version.wrapping_add(1)
}

const fn integer(value: i64) -> Arg {
    Arg::Value(Value::Integer(value))
}
