//! Whether each consumer was told of what was committed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::ExitStatus,
};

use anabranch_tests::load::plainly;
use rusqlite::Connection;

use crate::{
    consumers::{Who, replica},
    writers::{Acknowledged, NUMBERS, RANGE},
};

/// Rows by their keys: value and number.
type Rows = BTreeMap<i64, (i64, i64)>;

/// A line of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Run,
    Saw {
        seq: i64,
        key: i64,
        value: Option<i64>,
    },
    Acked(i64),
}

/// What is left when all is over.
#[derive(Debug)]
pub(crate) struct Evidence {
    log: Vec<Acknowledged>,
    rows: Rows,
    /// The number of each key's last deletion.
    deleted: BTreeMap<i64, i64>,
    last: i64,
    journal: Vec<Line>,
    /// Key, number, and whether it is a deletion.
    effects: BTreeSet<(i64, i64, bool)>,
    tally: usize,
    applied: Rows,
    replica: Rows,
    /// Of whom the last process failed.
    failed: Vec<Who>,
}

impl Evidence {
    /// `drains`: how the last process of each consumer ended.
    pub(crate) fn read(folder: &Path, log: Vec<Acknowledged>, drains: &[ExitStatus; 3]) -> Self {
        let file = plainly(&folder.join("items.db")).unwrap();
        let number = |sql| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        let pairs = |sql| {
            let mut statement = file.prepare(sql).unwrap();
            let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            found.unwrap().collect::<Result<_, _>>().unwrap()
        };
        let failed = Who::ALL.into_iter().zip(drains);
        Self {
            log,
            rows: rows(&file, "SELECT id, value, seq FROM items"),
            deleted: pairs(
                "SELECT id, max(seq) FROM (SELECT id, anabranch_seq AS seq FROM anabranch_deleted_items
                 UNION ALL SELECT id, seq FROM forgotten) GROUP BY id",
            ),
            last: number("SELECT last FROM anabranch_sequence"),
            journal: journal(&fs::read_to_string(folder.join("journal")).unwrap()),
            effects: rows_of_effects(&file),
            tally: usize::try_from(number("SELECT events FROM tally")).unwrap(),
            applied: rows(&file, "SELECT id, value, seq FROM replica"),
            replica: rows(
                &replica(folder).unwrap(),
                "SELECT id, value, seq FROM replica",
            ),
            failed: failed
                .filter(|(_, status)| !status.success())
                .map(|(who, _)| who)
                .collect(),
        }
    }

    pub(crate) fn summary(&self) -> String {
        format!(
            "{} changes acknowledged, of writers {:?}, {} numbers, {} rows and {} deletions; journal {} lines, effects {}",
            self.log.len(),
            self.by_writer(),
            self.last,
            self.rows.len(),
            self.deleted.len(),
            self.journal.len(),
            self.effects.len(),
        )
    }

    /// How many changes each writer was told of.
    fn by_writer(&self) -> [usize; NUMBERS.len()] {
        NUMBERS.map(|number| {
            let own = |change: &&Acknowledged| change.key / RANGE == number;
            self.log.iter().filter(own).count()
        })
    }

    /// That something happened which could have gone wrong.
    pub(crate) fn assert_busy(&self) {
        let least = self.by_writer().into_iter().min();
        assert!(least > Some(20), "{}", self.summary());
        assert!(self.deleted.len() > 100, "{}", self.summary());
        let saw = |line: &&Line| matches!(line, Line::Saw { .. });
        let told = self.journal.iter().filter(saw).count();
        assert!(
            told > self.rows.len() + self.deleted.len(),
            "{}",
            self.summary()
        );
        assert!(
            self.effects.len() > self.rows.len() + self.deleted.len(),
            "{}",
            self.summary()
        );
    }
}

fn rows(file: &Connection, sql: &str) -> Rows {
    let mut statement = file.prepare(sql).unwrap();
    let found = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))));
    found.unwrap().collect::<Result<_, _>>().unwrap()
}

fn rows_of_effects(file: &Connection) -> BTreeSet<(i64, i64, bool)> {
    let mut statement = file
        .prepare("SELECT key, seq, is_deleted FROM effects")
        .unwrap();
    let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    found.unwrap().collect::<Result<_, _>>().unwrap()
}

/// Its lines, without those that were torn.
fn journal(text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let words: Vec<_> = line.strip_suffix(" .")?.split(' ').collect();
        Some(match *words {
            ["run"] => Line::Run,
            ["acked", seq] => Line::Acked(seq.parse().unwrap()),
            ["saw", seq, key, value] => Line::Saw {
                seq: seq.parse().unwrap(),
                key: key.parse().unwrap(),
                value: value.parse().ok(),
            },
            _ => return None,
        })
    };
    text.lines().filter_map(line).collect()
}

/// What is wrong, in words.
pub(crate) fn faults(evidence: &Evidence) -> Vec<String> {
    let mut found: Vec<_> = (evidence.failed.iter())
        .map(|who| format!("{}: ended with an error", format!("{who:?}").to_lowercase()))
        .collect();
    found.extend(lost_commits(evidence));
    found.extend(order_of(&evidence.journal));
    found.extend(untold(evidence));
    found.extend(effects(evidence));
    let replicas = [
        ("effects", &evidence.applied),
        ("replica", &evidence.replica),
    ];
    for (name, replica) in replicas {
        found.extend(different(name, &evidence.rows, replica));
    }
    found
}

/// The table is as the writers were told.
fn lost_commits(evidence: &Evidence) -> Vec<String> {
    let mut found = Vec::new();
    // The last of each key: each has one writer.
    let last: BTreeMap<_, _> = (evidence.log.iter())
        .map(|change| (change.key, change))
        .collect();
    for change in last.values() {
        let row = evidence.rows.get(&change.key);
        let number = match (change.value, row) {
            (Some(value), Some((there, seq))) if value == *there => Some(*seq),
            (None, None) => evidence.deleted.get(&change.key).copied(),
            _ => None,
        };
        match (number, change.seq) {
            (None, _) => found.push(format!("table: not as acknowledged: {change:?}, {row:?}")),
            (Some(number), Some(seq)) if seq != number => {
                found.push(format!("table: another number than {change:?}: {number}"));
            }
            (Some(number), _) if number <= 0 || number > evidence.last => {
                found.push(format!(
                    "table: no number of a commit: {change:?}, {number}"
                ));
            }
            _ => {}
        }
    }
    found
}

/// The journal never goes back, neither within a process nor behind what was acknowledged.
fn order_of(journal: &[Line]) -> Vec<String> {
    let mut found = Vec::new();
    let (mut acked, mut last) = (0, 0);
    for line in journal {
        match *line {
            Line::Run => last = acked,
            Line::Saw { seq, .. } if seq < last || seq <= acked => {
                found.push(format!(
                    "journal: goes back: {line:?} after {last}, {acked}"
                ));
            }
            Line::Saw { seq, .. } => last = seq,
            Line::Acked(seq) if seq < last => {
                found.push(format!("journal: acknowledges {seq} before {last}"));
            }
            Line::Acked(seq) => (acked, last) = (seq, seq),
        }
    }
    found
}

/// The journal has the last state of each row, and each key's last deletion, and what was acknowledged or something later.
fn untold(evidence: &Evidence) -> Vec<String> {
    let mut last = BTreeMap::new();
    let mut deletions = BTreeSet::new();
    for line in &evidence.journal {
        if let Line::Saw { seq, key, value } = *line {
            last.insert(key, (value, seq));
            if value.is_none() {
                deletions.insert((key, seq));
            }
        }
    }
    let mut found = Vec::new();
    for (key, (value, seq)) in &evidence.rows {
        let told = last.get(key);
        if told != Some(&(Some(*value), *seq)) {
            found.push(format!(
                "journal: never told of {key}, {value} of {seq}: {told:?}"
            ));
        }
    }
    for (key, seq) in &evidence.deleted {
        if !deletions.contains(&(*key, *seq)) {
            found.push(format!(
                "journal: never told of the deletion {seq} of {key}"
            ));
        }
        if !evidence.rows.contains_key(key) && last.get(key) != Some(&(None, *seq)) {
            found.push(format!("journal: {key} is not gone: {:?}", last.get(key)));
        }
    }
    for change in &evidence.log {
        let told = last.get(&change.key).map(|(_, seq)| *seq);
        if told < change.seq.or(Some(1)) {
            found.push(format!("journal: never told of {change:?}: {told:?}"));
        }
    }
    found
}

/// Each took place once; that none did twice is what its key is for.
fn effects(evidence: &Evidence) -> Vec<String> {
    let of_rows = evidence
        .rows
        .iter()
        .map(|(key, (_, seq))| (*key, *seq, false));
    let of_deletions = evidence.deleted.iter().map(|(key, seq)| (*key, *seq, true));
    let mut found: Vec<_> = of_rows
        .chain(of_deletions)
        .filter(|effect| !evidence.effects.contains(effect))
        .map(|effect| format!("effects: never told of {effect:?}"))
        .collect();
    if evidence.tally != evidence.effects.len() {
        let (tally, effects) = (evidence.tally, evidence.effects.len());
        found.push(format!("effects: {effects} were counted as {tally}"));
    }
    found
}

fn different(name: &str, rows: &Rows, replica: &Rows) -> Vec<String> {
    let keys: BTreeSet<_> = rows.keys().chain(replica.keys()).collect();
    keys.into_iter()
        .filter(|key| rows.get(key) != replica.get(key))
        .map(|key| {
            let (row, kept) = (rows.get(key), replica.get(key));
            format!("{name}: another row {key}: {kept:?} for {row:?}")
        })
        .collect()
}

#[test]
fn a_journal_that_goes_back_is_found_out() {
    let saw = |seq| format!("saw {seq} 1 1 .\n");
    let of = |text: &str| order_of(&journal(text)).len();
    assert_eq!(
        of(&[&saw(1), &saw(2), "run .\n", &saw(1), "acked 2 .\n"].concat()),
        0
    );
    assert_eq!(of(&[saw(2), saw(1)].concat()), 1);
    assert_eq!(
        of(&[&saw(2), "acked 2 .\nsaw 1", "run .\n", &saw(2)].concat()),
        1
    );
    assert_eq!(of(&[&saw(2), "acked 1 .\n"].concat()), 1);
}
