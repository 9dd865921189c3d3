//! A database under a workload, and the units that clients run on it.

use std::{
    cell::RefCell,
    sync::{Arc, Mutex},
};

use anabranch::{
    engine::{ConcurrentOptions, SessionGuard},
    prelude::*,
};
use anabranch_tests::{dropped_after, random::Random};
use tempfile::TempDir;

use crate::{
    client::Client,
    neighbour::Neighbour,
    operation::{Place, Seen},
    pace::Pace,
    remains::{self, Remains},
    shape::{Shape, Task},
    tables,
    unit::{Entry, Kind, Outcome, Recorder, Unit},
};

/// A file, open under a workload.
pub(crate) struct World {
    folder: TempDir,
    pub(crate) db: Database,
    pub(crate) shape: &'static Shape,
    pub(crate) recorder: Recorder,
    pub(crate) neighbour: Option<Arc<Mutex<Neighbour>>>,
}

impl World {
    pub(crate) async fn new(shape: &'static Shape) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("world.db");
        tables::make(&file).await;
        std::fs::copy(&file, remains::base(&folder)).unwrap();
        let builder = Database::builder(&file).wal_autocheckpoint(100);
        let db = shape.mode.set(builder).open().await.unwrap();
        let neighbour = shape
            .has(Task::Peer)
            .then(|| Arc::new(Mutex::new(Neighbour::new(&file))));
        Self {
            folder,
            db,
            shape,
            recorder: Recorder::default(),
            neighbour,
        }
    }

    /// One unit, to its end.
    pub(crate) async fn perform(&self, task: Task, random: &mut Random, pace: &Pace) {
        match task {
            Task::Session => self.session(Isolation::Serializable, random, pace).await,
            Task::SnapshotSession => self.session(Isolation::Snapshot, random, pace).await,
            Task::Concurrent => self.concurrent(Isolation::Serializable, random, pace).await,
            Task::SnapshotConcurrent => self.concurrent(Isolation::Snapshot, random, pace).await,
            Task::Write => self.write(random, pace).await,
            Task::Save => self.save(random).await,
            Task::Context => self.context(Isolation::Serializable, random, pace).await,
            Task::SnapshotContext => self.context(Isolation::Snapshot, random, pace).await,
            Task::Read => self.read(random).await,
            Task::Checkpoint => drop(self.db.checkpoint().await.unwrap()),
            Task::Peer => self.peer(random).await,
        }
    }

    pub(crate) fn unit(&self, kind: Kind) -> Unit {
        Unit {
            id: self.recorder.next_id(),
            kind,
            entries: Vec::new(),
            snapshot: None,
            submitted: 0,
            ended: 0,
            outcome: Outcome::Undone,
        }
    }

    pub(crate) fn ended(&self, mut unit: Unit, outcome: Outcome) {
        unit.ended = self.recorder.tick();
        unit.outcome = outcome;
        self.recorder.ended(unit);
    }

    async fn session(&self, isolation: Isolation, random: &mut Random, pace: &Pace) {
        let mut unit = self.unit(kind(isolation));
        let asked = self.recorder.tick();
        let mut session = self.db.begin_concurrent(isolation).await.unwrap();
        unit.snapshot = Some((asked, self.recorder.tick()));
        pace.holds(session.is_exclusive());
        let only_looks = random.once_in(8);
        let mut client = Client {
            shape: self.shape,
            random,
            place: Place::Session(&mut session),
            pace,
            unit: unit.id,
        };
        let worked = if only_looks {
            client.look(&mut unit.entries).await
        } else {
            client.work(&mut unit.entries).await
        };
        pace.next().await;
        unit.submitted = self.recorder.tick();
        let outcome = match worked {
            Err(error) => {
                assert!(self.may_end(&error, &unit), "{error:?}: {unit:?}");
                session.rollback().await.unwrap();
                Outcome::Undone
            }
            Ok(()) => self.end(session, random).await,
        };
        pace.holds(false);
        self.ended(unit, outcome);
    }

    /// Mostly commits it.
    async fn end(&self, session: SessionGuard, random: &mut Random) -> Outcome {
        match random.below(16) {
            0 => drop(session),
            1 => session.rollback().await.unwrap(),
            2 => {
                let polls = usize::try_from(random.below(6)).unwrap();
                return match dropped_after(polls, session.commit()).await {
                    None => Outcome::Unknown,
                    Some(committed) => outcome_of(committed),
                };
            }
            _ => return outcome_of(session.commit().await),
        }
        Outcome::Undone
    }

    /// Each attempt is a unit of its own.
    async fn concurrent(&self, isolation: Isolation, random: &mut Random, pace: &Pace) {
        let options = ConcurrentOptions::new()
            .isolation(isolation)
            .max_attempts(3);
        let changes_its_mind = random.once_in(12);
        let seed = random.branch();
        let asked = RefCell::new(self.recorder.tick());
        let last = RefCell::new(None::<Unit>);
        let done = self.db.concurrent_with(options, async |session| {
            if let Some(unit) = last.take() {
                self.ended(unit, Outcome::Conflict);
            }
            let mut unit = self.unit(kind(isolation));
            unit.snapshot = Some((*asked.borrow(), self.recorder.tick()));
            pace.holds(session.is_exclusive());
            let mut random = seed.clone();
            let mut client = Client {
                shape: self.shape,
                random: &mut random,
                place: Place::Session(session),
                pace,
                unit: unit.id,
            };
            let worked = client.work(&mut unit.entries).await;
            pace.next().await;
            unit.submitted = self.recorder.tick();
            if let Err(error) = &worked {
                assert!(self.may_end(error, &unit), "{error:?}: {unit:?}");
            }
            asked.replace(self.recorder.tick());
            last.replace(Some(unit));
            if changes_its_mind {
                Err(Error::application("changed its mind"))
            } else {
                worked
            }
        });
        let done = done.await;
        pace.holds(false);
        let unit = last.take().unwrap();
        self.ended(
            unit,
            match done {
                Ok(()) => Outcome::Committed(None),
                Err(error) => refused(&error),
            },
        );
    }

    async fn write(&self, random: &mut Random, pace: &Pace) {
        let mut unit = self.unit(Kind::Write);
        let number = unit.id;
        let entries = RefCell::new(Vec::new());
        let done = self.db.write(async |transaction| {
            pace.holds(true);
            let mut client = Client {
                shape: self.shape,
                random,
                place: Place::Transaction(transaction),
                pace,
                unit: number,
            };
            let mut seen = Vec::new();
            let worked = client.work(&mut seen).await;
            entries.replace(seen);
            worked
        });
        unit.submitted = self.recorder.tick();
        let done = done.await;
        pace.holds(false);
        unit.entries = entries.into_inner();
        let outcome = match done {
            Ok(()) => Outcome::Committed(None),
            Err(error) => refused(&error),
        };
        self.ended(unit, outcome);
    }

    /// Whether this may be why a unit was not finished: a trigger or a constraint of its own rolled it back.
    fn may_end(&self, error: &Error, unit: &Unit) -> bool {
        error.kind() == ErrorKind::TransactionEnded && was_refused(&unit.entries)
    }

    /// Closes the file, checks that it is sound, and tells what happened.
    pub(crate) async fn end_of_history(self) -> Remains {
        if let Some(neighbour) = self.neighbour {
            neighbour.lock().unwrap().end();
        }
        let alarms = self.db.statistics().session_alarms;
        assert_eq!(alarms, 0, "a session wanted to write to the file");
        let file = self.db.path().to_owned();
        self.db.close().await.unwrap();
        Remains::read(&file, self.folder, self.recorder)
    }
}

pub(crate) const fn kind(isolation: Isolation) -> Kind {
    match isolation {
        Isolation::Serializable => Kind::Serializable,
        Isolation::Snapshot => Kind::Snapshot,
    }
}

fn outcome_of(committed: Result<Option<i64>, Error>) -> Outcome {
    match committed {
        Ok(number) => Outcome::Committed(number),
        Err(error) if error.is_conflict() => Outcome::Conflict,
        Err(error) => refused(&error),
    }
}

/// The end of a unit that was not committed; only what a workload may meet.
fn refused(error: &Error) -> Outcome {
    assert!(
        matches!(
            error.kind(),
            ErrorKind::ForeignKey | ErrorKind::TransactionEnded | ErrorKind::Application
        ),
        "{error:?}"
    );
    Outcome::Undone
}

/// Whether something was refused that may take everything along.
fn was_refused(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| match entry {
        Entry::Did { operation, seen } => {
            matches!(seen, Seen::Refused(ErrorKind::Constraint, _))
                || matches!(seen, Seen::Refused(ErrorKind::Unique, _))
                    && operation.sql.contains("seat")
        }
        Entry::Savepoint { entries, .. } => was_refused(entries),
    })
}
