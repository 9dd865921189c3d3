//! What a client could see of a statement: its rows, how far it read, and how it ended.
//!
//! Rows are not kept but hashed, twice with keys of this process: two results that differ look alike with a probability
//! of one to 2^128, and nobody outside can aim at it.

use std::{
    collections::hash_map::{DefaultHasher, RandomState},
    hash::{BuildHasher, Hasher},
    sync::LazyLock,
};

use crate::value::{Row, ValueRef};

static KEYS: LazyLock<[RandomState; 2]> =
    LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// What was seen of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Seen {
    pub(in crate::engine) rows: u64,
    hash: [u64; 2],
    pub(in crate::engine) end: End,
}

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum End {
    /// It was not read further.
    Partly,
    /// There were no more rows.
    Done,
    /// The same, of one that may write: how many rows it changed, and which rowid was inserted last.
    Changed { rows: u64, rowid: i64 },
    /// It failed, with this extended code.
    Failed(i32),
}

/// Takes rows in as they are seen.
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
            ValueRef::Null => self.write(&[0]),
            ValueRef::Integer(value) => self.fixed(1, value.to_ne_bytes()),
            // The bits: a zero has two of them, and clients can tell.
            ValueRef::Real(value) => self.fixed(2, value.to_bits().to_ne_bytes()),
            ValueRef::Text(bytes) => self.sized(3, bytes),
            ValueRef::Blob(bytes) => self.sized(4, bytes),
        }
    }

    pub(in crate::engine) fn end(self, end: End) -> Seen {
        Seen {
            rows: self.rows,
            hash: self.hashers.map(|hasher| hasher.finish()),
            end,
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
        observer.end(End::Done)
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
}
