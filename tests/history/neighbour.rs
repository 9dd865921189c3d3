//! Another process that writes the same file, through the library.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
};

use anabranch_tests::random::Random;

use crate::{
    client::{did, mark},
    draw::{Chance, Draw},
    operation::{Operation, Seen},
    unit::{Kind, Outcome},
    world::World,
};

/// What it writes.
const DRAWS: [Draw; 5] = [
    Draw::KeyUpdate,
    Draw::RangeUpdate,
    Draw::KeyInsert,
    Draw::KeyDelete,
    Draw::Replace,
];

/// The process.
#[derive(Debug)]
pub(crate) struct Neighbour {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Neighbour {
    pub(crate) fn new(file: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_peer"))
            .args(["units", file.to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, answers }
    }

    /// Lets it run these in one transaction; how many rows each wrote, if none was refused.
    pub(crate) fn write(&mut self, operations: &[Operation]) -> Option<Vec<u64>> {
        let texts: Vec<_> = operations.iter().map(Operation::written_out).collect();
        let pipe = self.process.stdin.as_mut().unwrap();
        pipe.write_all(format!("{}\n", texts.join("\t")).as_bytes())
            .unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let answer = answer.trim_end();
        (answer != "refused").then(|| {
            answer
                .split(' ')
                .map(|number| number.parse().unwrap())
                .collect()
        })
    }

    pub(crate) fn end(&mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success());
    }
}

impl World {
    /// On a thread that may wait: who holds the write lock may be on this one.
    pub(crate) async fn peer(&self, random: &mut Random) {
        let mut unit = self.unit(Kind::Peer);
        let mut chance = Chance {
            random,
            keys: self.shape.keys,
        };
        let operations = draw(unit.id, &mut chance);
        let neighbour = Arc::clone(self.neighbour.as_ref().unwrap());
        unit.submitted = self.recorder.tick();
        let asked = tokio::task::spawn_blocking(move || {
            let answer = neighbour.lock().unwrap().write(&operations);
            (operations, answer)
        });
        let (operations, changed) = asked.await.unwrap();
        let Some(changed) = changed else {
            return self.ended(unit, Outcome::Undone);
        };
        for (operation, changed) in operations.into_iter().zip(changed) {
            did(&mut unit.entries, operation, Seen::Changed(changed));
        }
        self.ended(unit, Outcome::Committed(None));
    }
}

/// What it is to write as a unit.
fn draw(unit: i64, chance: &mut Chance<'_>) -> Vec<Operation> {
    let mut operations = vec![mark(unit)];
    for _ in 0..=chance.below(2) {
        let draw = DRAWS[usize::try_from(chance.below(5)).unwrap()];
        let operation = draw.operation(chance).unwrap();
        // NULL is no argument that is written out.
        if !operation.args.contains(&None.into()) {
            operations.push(operation);
        }
    }
    operations
}
