//! What a client could see of a statement: its rows, how far it read, how it ended, and what it changed.
//!
//! Rows are not kept but hashed, twice with keys of this process: two results that differ look alike with a probability
//! of one to 2^128, and nobody outside can aim at it.

use std::{
    collections::hash_map::{DefaultHasher, RandomState},
    hash::{BuildHasher, Hasher},
    sync::LazyLock,
};

use rusqlite::Connection;

use crate::value::{Row, ValueRef};

static KEYS: LazyLock<[RandomState; 2]> =
    LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// What was seen of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Seen {
    pub(in crate::engine) rows: u64,
    hash: [u64; 2],
    pub(in crate::engine) end: End,
    /// Of a statement that may write.
    pub(in crate::engine) effect: Option<Effect>,
}

impl Seen {
    /// Whether a client saw the same. Of a statement that counts no rows, `changes()` tells what an earlier one on that
    /// connection left.
    pub(in crate::engine) fn agrees(&self, other: &Self, counts_rows: bool) -> bool {
        let told = |seen: &Self| {
            let effect = seen.effect;
            effect.map(|effect| (effect.changes.filter(|_| counts_rows), effect.rowid))
        };
        (self.rows, self.hash, self.end) == (other.rows, other.hash, other.end)
            && told(self) == told(other)
    }
}

/// How far a statement was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum End {
    /// It was not read further.
    Partly,
    /// There were no more rows.
    Done,
    /// It failed, with this extended code; its message is in the hash.
    Failed(i32),
}

/// What the connection tells after a statement that may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Effect {
    /// How many rows it changed, if it counts them; not told of one that failed.
    pub(in crate::engine) changes: Option<u64>,
    /// Which rowid was inserted last.
    pub(in crate::engine) rowid: i64,
}

impl Effect {
    pub(in crate::engine) fn of(connection: &Connection, end: End) -> Self {
        let has_failed = matches!(end, End::Failed(_));
        Self {
            changes: (!has_failed).then(|| connection.changes()),
            rowid: connection.last_insert_rowid(),
        }
    }
}

/// Takes in what is seen, as it is seen.
#[derive(Debug)]
pub(in crate::engine) struct Observer {
    rows: u64,
    hashers: [DefaultHasher; 2],
}

impl Observer {
    pub(in crate::engine) fn new() -> Self {
        Self {
            rows: 0,
            hashers: KEYS.each_ref().map(BuildHasher::build_hasher),
        }
    }

    /// How many rows were seen so far.
    pub(in crate::engine) const fn rows(&self) -> u64 {
        self.rows
    }

    /// The name of a column was seen.
    pub(in crate::engine) fn name(&mut self, name: &str) {
        self.sized(5, name.as_bytes());
    }

    /// A row was seen.
    pub(in crate::engine) fn row(&mut self, row: &dyn Row, columns: usize) {
        self.begin_row(columns);
        for index in 0..columns {
            self.value(row.value(index));
        }
    }

    /// A row is seen, of so many values, which follow.
    pub(in crate::engine) fn begin_row(&mut self, columns: usize) {
        self.rows += 1;
        self.write(&columns.to_ne_bytes());
    }

    /// The next value of the row.
    pub(in crate::engine) fn value(&mut self, value: ValueRef<'_>) {
        match value {
            // What was not read is no value of SQLite's.
            ValueRef::Null | ValueRef::Unread => self.write(&[0]),
            ValueRef::Integer(value) => self.fixed(1, value.to_ne_bytes()),
            // The bits: a zero has two of them, and clients can tell.
            ValueRef::Real(value) => self.fixed(2, value.to_bits().to_ne_bytes()),
            ValueRef::Text(bytes) => self.sized(3, bytes),
            ValueRef::Blob(bytes) => self.sized(4, bytes),
        }
    }

    /// It failed with this message of SQLite's, which names tables and columns, or is that of a trigger.
    pub(in crate::engine) fn message(&mut self, message: &str) {
        self.sized(6, message.as_bytes());
    }

    pub(in crate::engine) fn end(self, end: End, effect: Option<Effect>) -> Seen {
        Seen {
            rows: self.rows,
            hash: self.hashers.map(|hasher| hasher.finish()),
            end,
            effect,
        }
    }

    fn fixed(&mut self, kind: u8, bytes: [u8; 8]) {
        let mut all = [kind; 9];
        all[1..].copy_from_slice(&bytes);
        self.write(&all);
    }

    fn sized(&mut self, kind: u8, bytes: &[u8]) {
        self.fixed(kind, (bytes.len() as u64).to_ne_bytes());
        self.write(bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        for hasher in &mut self.hashers {
            hasher.write(bytes);
        }
    }
}

/// SQLite's code and message, if it was SQLite that failed.
pub(in crate::engine) fn failure(error: &rusqlite::Error) -> Option<(i32, &str)> {
    match error {
        rusqlite::Error::SqliteFailure(error, message) => {
            Some((error.extended_code, message.as_deref().unwrap_or_default()))
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => Some((error.extended_code, msg)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        engine::seen::{End, Observer, Seen},
        value::ValueRef,
    };

    fn seen(rows: &[&[ValueRef<'_>]]) -> Seen {
        let mut observer = Observer::new();
        for row in rows {
            observer.begin_row(row.len());
            for value in *row {
                observer.value(*value);
            }
        }
        observer.end(End::Done, None)
    }

    #[test]
    fn equal_rows_look_alike_and_others_do_not() {
        use ValueRef::{Blob, Integer, Null, Real, Text};
        let rows: [&[&[ValueRef<'_>]]; 10] = [
            &[],
            &[&[]],
            &[&[Null]],
            &[&[Integer(1)]],
            &[&[Real(1.0)]],
            &[&[Text(b"1")]],
            &[&[Blob(b"1")]],
            &[&[Text(b"ab"), Text(b"c")]],
            &[&[Text(b"a"), Text(b"bc")]],
            &[&[Text(b"a")], &[Text(b"bc")]],
        ];
        for (at, one) in rows.iter().enumerate() {
            for (other_at, other) in rows.iter().enumerate() {
                assert_eq!(seen(one) == seen(other), at == other_at);
            }
        }
    }

    #[test]
    fn both_zeros_of_a_real_are_told_apart() {
        use ValueRef::Real;
        assert_ne!(seen(&[&[Real(0.0)]]), seen(&[&[Real(-0.0)]]));
    }

    #[test]
    fn failures_with_one_code_and_other_messages_are_told_apart() {
        let failed = |message| {
            let mut observer = Observer::new();
            observer.message(message);
            observer.end(End::Failed(2067), None)
        };
        assert_ne!(failed("t.a"), failed("t.b"));
    }
}
