//! One unit's work: statements drawn from the shape, each recorded with what was seen.

use std::time::{SystemTime, UNIX_EPOCH};

use anabranch::prelude::*;
use anabranch_tests::random::Random;

use crate::{
    draw::{Chance, Draw},
    operation::{
        Cell, Operation, Place, Seen,
        Sees::{FirstRow, Rows},
    },
    pace::Pace,
    shape::Shape,
    tables::Item,
    typed::{INSERT, SET_VALUE, VALUE},
    unit::Entry,
};

const MARK: &str = "INSERT INTO event (id, seq) VALUES (?, 0)";

/// A client in the middle of a unit.
pub(crate) struct Client<'a, 'p> {
    pub(crate) shape: &'static Shape,
    pub(crate) random: &'a mut Random,
    pub(crate) place: Place<'p>,
    pub(crate) pace: &'a Pace,
    /// The unit's number.
    pub(crate) unit: i64,
}

impl Client<'_, '_> {
    /// Does so many things, and then leaves the unit's mark.
    pub(crate) async fn work(&mut self, entries: &mut Vec<Entry>) -> Result<(), Error> {
        let statements = 1 + self.random.below(self.shape.statements);
        for _ in 0..statements {
            self.step(entries, 0).await?;
        }
        self.mark(entries).await
    }

    /// Only reads, and leaves no mark.
    pub(crate) async fn look(&mut self, entries: &mut Vec<Entry>) -> Result<(), Error> {
        for _ in 0..=self.random.below(self.shape.statements) {
            self.pace.next().await;
            let draw = self.shape.draw(self.random);
            let operation = draw.operation(&mut self.chance());
            if let Some(operation) = operation.filter(|operation| !operation.writes) {
                self.run(operation, entries).await?;
            }
        }
        Ok(())
    }

    /// The row that has the unit's commit number. Nobody else inserts there under that key.
    async fn mark(&mut self, entries: &mut Vec<Entry>) -> Result<(), Error> {
        self.pace.next().await;
        self.run(mark(self.unit), entries).await.map(drop)
    }

    async fn step(&mut self, entries: &mut Vec<Entry>, depth: u64) -> Result<(), Error> {
        self.pace.next().await;
        let draw = self.shape.draw(self.random);
        let operation = draw.operation(&mut self.chance());
        if let Some(operation) = operation {
            return self.run(operation, entries).await.map(drop);
        }
        match draw {
            Draw::ReadThenWrite => self.read_then_write(entries).await,
            Draw::LastRowid => self.last_rowid(entries).await,
            Draw::Noise => self.noise(entries).await,
            Draw::NextId | Draw::SqlNextId => self.next_id(draw, entries).await,
            Draw::Undone | Draw::Kept if depth < 2 => {
                Box::pin(self.savepoint(draw == Draw::Kept, entries, depth)).await
            }
            _ => self.typed(draw, entries).await,
        }
    }

    pub(crate) fn chance(&mut self) -> Chance<'_> {
        Chance {
            random: self.random,
            keys: self.shape.keys,
        }
    }

    async fn run(&mut self, operation: Operation, entries: &mut Vec<Entry>) -> Result<Seen, Error> {
        let seen = operation.run(&mut self.place).await?;
        did(entries, operation, seen.clone());
        Ok(seen)
    }

    async fn read_then_write(&mut self, entries: &mut Vec<Entry>) -> Result<(), Error> {
        let key = self.chance().key();
        let read = Operation::read(VALUE, vec![key.into()]);
        let seen = self.run(read.seeing(FirstRow), entries).await?;
        let Seen::Rows(rows) = seen else {
            return Ok(());
        };
        let Some([Cell::Integer(value)]) = rows.first().map(Vec::as_slice) else {
            return Ok(());
        };
        self.pace.next().await;
        let args = vec![(value + 1).into(), key.into()];
        let write = Operation::write(SET_VALUE, args);
        self.run(write, entries).await.map(drop)
    }

    async fn last_rowid(&mut self, entries: &mut Vec<Entry>) -> Result<(), Error> {
        let insert = "INSERT INTO item (grp, val) VALUES (?, 1) RETURNING val";
        let insert = Operation::write(insert, vec![self.chance().below(5).into()]);
        self.run(insert.seeing(FirstRow), entries).await?;
        self.pace.next().await;
        let ask = Operation::read("SELECT last_insert_rowid()", vec![]);
        let seen = self.run(ask, entries).await?;
        let Seen::Rows(rows) = seen else {
            panic!("nothing refuses it: {seen:?}");
        };
        self.pace.next().await;
        let keep = "INSERT OR REPLACE INTO computed (id, val) VALUES (?, ?)";
        let args = vec![self.chance().key().into(), rows[0][0].clone()];
        let keep = Operation::write(keep, args);
        self.run(keep, entries).await.map(drop)
    }

    /// Replayed with the values that the client was told.
    async fn noise(&mut self, entries: &mut Vec<Entry>) -> Result<(), Error> {
        // Of a range in which no two are the same.
        let id = self.chance().below(1 << 60);
        let read = Operation::read("SELECT chance, at FROM noise WHERE id = ?", vec![id.into()]);
        let returns = self.random.once_in(2);
        let before = now();
        let seen = if returns {
            let insert = "INSERT INTO noise (id, chance, at) VALUES (?, random(), unixepoch('subsec')) RETURNING chance, at";
            let insert = Operation::write(insert, vec![id.into()]).seeing(Rows);
            insert.run(&mut self.place).await?
        } else {
            let insert = "INSERT INTO noise (id, chance, at) SELECT ?, random(), (julianday('now') - 2440587.5) * 86400.0";
            let insert = Operation::write(insert, vec![id.into()]);
            insert.run(&mut self.place).await?;
            read.run(&mut self.place).await?
        };
        let after = now();
        let Seen::Rows(rows) = &seen else {
            panic!("nobody else has this key: {seen:?}");
        };
        let [Cell::Integer(chance), Cell::Real(at)] = rows[0][..] else {
            panic!("not what was asked for: {rows:?}");
        };
        assert!(before - 0.01 < at && at < after + 0.01, "the time is wrong");
        let args = vec![id.into(), Cell::Integer(chance), Cell::Real(at)];
        let insert = Operation::write("INSERT INTO noise (id, chance, at) VALUES (?, ?, ?)", args);
        did(entries, insert, Seen::Changed(1));
        did(entries, read, seen);
        Ok(())
    }

    async fn next_id(&mut self, draw: Draw, entries: &mut Vec<Entry>) -> Result<(), Error> {
        let id = match (&mut self.place, draw) {
            (Place::Session(session), Draw::NextId) => session.next_id::<Item>().await?,
            (Place::Session(_), _) => {
                // Compared by nobody but the library: each of its runs gives others, and none twice.
                let ask = Operation::read("SELECT next_id('item')", vec![]);
                match ask.run(&mut self.place).await? {
                    Seen::Rows(rows) => match rows[0][0] {
                        Cell::Integer(id) => id,
                        _ => panic!("a key that is no integer"),
                    },
                    other => panic!("{other:?}"),
                }
            }
            (Place::Transaction(_), _) => return self.typed(Draw::TypedInsert, entries).await,
        };
        self.pace.next().await;
        let args = vec![
            id.into(),
            self.chance().below(5).into(),
            self.chance().below(100).into(),
            Cell::Null,
        ];
        self.run(Operation::write(INSERT, args), entries)
            .await
            .map(drop)
    }

    async fn savepoint(
        &mut self,
        kept: bool,
        entries: &mut Vec<Entry>,
        depth: u64,
    ) -> Result<(), Error> {
        let mut inside = Vec::new();
        let statements = 1 + self.random.below(3);
        let (shape, pace, unit) = (self.shape, self.pace, self.unit);
        let random = &mut *self.random;
        let seen = &mut inside;
        let outcome = match &mut self.place {
            Place::Session(session) => {
                let body = async |session: &mut Session| {
                    let place = Place::Session(session);
                    let mut client = Client {
                        shape,
                        random,
                        place,
                        pace,
                        unit,
                    };
                    client.inside(seen, statements, kept, depth).await
                };
                session.savepoint(body).await
            }
            Place::Transaction(transaction) => {
                let body = async |transaction: &mut Transaction| {
                    let place = Place::Transaction(transaction);
                    let mut client = Client {
                        shape,
                        random,
                        place,
                        pace,
                        unit,
                    };
                    client.inside(seen, statements, kept, depth).await
                };
                transaction.savepoint(body).await
            }
        };
        entries.push(Entry::Savepoint {
            entries: inside,
            kept,
        });
        match outcome {
            Err(error) if error.kind() != ErrorKind::Application => Err(error),
            _ => Ok(()),
        }
    }

    async fn inside(
        &mut self,
        entries: &mut Vec<Entry>,
        statements: u64,
        kept: bool,
        depth: u64,
    ) -> Result<(), Error> {
        for _ in 0..statements {
            self.step(entries, depth + 1).await?;
        }
        if kept {
            Ok(())
        } else {
            Err(Error::application("undo this"))
        }
    }
}

/// The statement that leaves a unit's mark.
pub(crate) fn mark(unit: i64) -> Operation {
    Operation::write(MARK, vec![unit.into()])
}

/// Whether this left a unit's mark.
pub(crate) fn is_mark(entry: &Entry) -> bool {
    matches!(entry, Entry::Did { operation, .. } if operation.sql == MARK)
}

pub(crate) fn did(entries: &mut Vec<Entry>, operation: Operation, seen: Seen) {
    entries.push(Entry::Did { operation, seen });
}

fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}
