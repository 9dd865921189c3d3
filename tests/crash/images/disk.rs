//! The files as a disk may have them after a power cut.

use std::{fmt, fs, path::PathBuf};

use anabranch::recording::{Entry, Event, File};
use anabranch_tests::random::Random;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::images::work::History;

/// What a disk makes of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disk {
    Honest,
    /// It says that all is written, and it is not.
    IgnoresSyncs,
}

/// How the disk treats what no sync covered.
#[derive(Debug, Clone, Copy)]
struct Fate {
    /// So many pieces of four are kept.
    kept: u64,
    /// Where a write may be torn.
    sector: usize,
    /// Whether writes are torn at all, or whole or missing.
    tears: bool,
    /// Whether older writes may come out on top of later ones.
    reorders: bool,
}

/// A database and its log in a folder of their own.
pub(super) struct Image {
    folder: TempDir,
    /// How much of the log of the work had happened.
    pub(super) cut: usize,
    /// How many pieces of what had happened are missing.
    pub(super) lost: usize,
    fate: Fate,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cut at {}, {} pieces lost, {:?}",
            self.cut, self.lost, self.fate
        )
    }
}

impl Image {
    /// A power cut at some moment.
    pub(super) fn random(history: &History, disk: Disk, random: &mut Random) -> Self {
        let moments = history.entries.len() - history.start + 1;
        let cut = history.start + usize::try_from(random.below(moments as u64)).unwrap();
        let fate = Fate {
            kept: random.below(5),
            sector: [512, 4096][usize::from(random.once_in(2))],
            tears: random.once_in(2),
            reorders: random.once_in(2),
        };
        Self::build(history, disk, cut, fate, random)
    }

    /// After everything, with nothing lost.
    pub(super) fn at_the_end(history: &History) -> Self {
        let fate = Fate {
            kept: 4,
            sector: 4096,
            tears: false,
            reorders: false,
        };
        let cut = history.entries.len();
        Self::build(history, Disk::Honest, cut, fate, &mut Random::new(0))
    }

    fn build(history: &History, disk: Disk, cut: usize, fate: Fate, random: &mut Random) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut lost = 0;
        for (file, name) in [(File::Database, "image.db"), (File::Log, "image.db-wal")] {
            let happened = &history.entries[..cut];
            let certain = match disk {
                Disk::Honest => synced(happened, file).max(history.start),
                Disk::IgnoresSyncs => history.start,
            };
            let of_file = |entries: &[Entry]| -> Vec<Event> {
                let entries = entries.iter().filter(|entry| entry.file == file);
                entries.map(|entry| entry.event.clone()).collect()
            };
            let mut content = Vec::new();
            for event in of_file(&happened[..certain]) {
                apply(&mut content, &event);
            }
            let mut pieces: Vec<Event> = of_file(&happened[certain..])
                .iter()
                .flat_map(|event| torn(event, fate))
                .collect();
            let all = pieces.len();
            pieces.retain(|_| random.below(4) < fate.kept);
            lost += all - pieces.len();
            if fate.reorders {
                shuffle(&mut pieces, random);
            }
            for piece in &pieces {
                apply(&mut content, piece);
            }
            fs::write(folder.path().join(name), content).unwrap();
        }
        Self {
            folder,
            cut,
            lost,
            fate,
        }
    }

    /// Where the database is.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("image.db")
    }

    /// Leaves the folder for whoever wants to look.
    pub(super) fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// Plants a fault.
    pub(super) fn spoil(&self, sql: &str) {
        let connection = Connection::open(self.path()).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    /// Cuts off half of the database, after all that the log had was moved there.
    pub(super) fn cut_in_half(&self) {
        self.spoil("PRAGMA wal_checkpoint(TRUNCATE)");
        let content = fs::read(self.path()).unwrap();
        fs::write(self.path(), &content[..content.len() / 2]).unwrap();
    }
}

/// Up to where the last sync of a file covers what was done to it.
pub(super) fn synced(happened: &[Entry], file: File) -> usize {
    let covered = happened
        .iter()
        .filter(|entry| entry.file == file)
        .map(|entry| match entry.event {
            Event::Sync { covers } => covers,
            Event::Write { .. } | Event::Truncate { .. } => 0,
        });
    covered.max().unwrap_or_default()
}

/// The pieces of a write of which each may be there without the others.
fn torn(event: &Event, fate: Fate) -> Vec<Event> {
    match event {
        Event::Write { offset, bytes } if fate.tears => {
            let sector = fate.sector as u64;
            let mut pieces = Vec::new();
            let (mut offset, mut rest) = (*offset, &bytes[..]);
            while !rest.is_empty() {
                let room = usize::try_from(sector - offset % sector).unwrap();
                let (piece, later) = rest.split_at(room.min(rest.len()));
                pieces.push(Event::Write {
                    offset,
                    bytes: piece.to_vec(),
                });
                offset += piece.len() as u64;
                rest = later;
            }
            pieces
        }
        Event::Sync { .. } => Vec::new(),
        whole => vec![whole.clone()],
    }
}

fn shuffle(pieces: &mut [Event], random: &mut Random) {
    for end in (1..pieces.len()).rev() {
        pieces.swap(end, usize::try_from(random.below(end as u64 + 1)).unwrap());
    }
}

fn apply(content: &mut Vec<u8>, event: &Event) {
    match event {
        Event::Write { offset, bytes } => {
            let begin = usize::try_from(*offset).unwrap();
            let end = begin + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[begin..end].copy_from_slice(bytes);
        }
        Event::Truncate { size } => content.resize(usize::try_from(*size).unwrap(), 0),
        Event::Sync { .. } => {}
    }
}
