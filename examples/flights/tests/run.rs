//! Runs the example as its users do, on the data beside it and on files with something wrong in them.
#![allow(
    clippy::unwrap_used,
    reason = "a folder or file that cannot be prepared must fail the test"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anabranch::prelude::*;
use tempfile::TempDir;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data");

/// A folder for the database, and a data set that may be spoiled.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        for file in fs::read_dir(DATA).unwrap() {
            let file = file.unwrap();
            fs::copy(
                file.path(),
                folder.path().join("data").join(file.file_name()),
            )
            .unwrap();
        }
        Self { folder }
    }

    fn data(&self, file: &str) -> PathBuf {
        self.folder.path().join("data").join(file)
    }

    fn db(&self) -> PathBuf {
        self.folder.path().join("flights.db")
    }

    /// Changes one line of a file, counted from 1.
    fn spoil(&self, file: &str, line: usize, change: impl Fn(&str) -> String) {
        let text = fs::read_to_string(self.data(file)).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines[line - 1] = change(&lines[line - 1]);
        fs::write(self.data(file), lines.join("\n")).unwrap();
    }

    fn run(&self) -> Output {
        flights(&self.data(""), &self.db())
    }

    /// Runs the example where it must fail, and returns what it says.
    fn error(&self) -> String {
        let output = self.run();
        assert!(!output.status.success(), "{}", text(&output.stdout));
        text(&output.stderr)
    }
}

fn flights(data: &Path, db: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flights"))
        .arg("--data")
        .arg(data)
        .arg("--db")
        .arg(db)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn ask(db: &Path, question: &'static str) -> String {
    let db = Database::open(db).await.unwrap();
    let answer = db
        .write(async |tx| {
            let answer = sqlx::query_scalar(question).fetch_one(&mut *tx).await?;
            Ok(answer)
        })
        .await
        .unwrap();
    db.close().await.unwrap();
    answer
}

#[tokio::test]
async fn the_subset_is_imported_and_worked_on_twice_over() {
    let place = Place::new();
    for _ in 0..2 {
        let output = place.run();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report = text(&output.stdout);
        for line in [
            "444 planes, of 1,909 flights",
            "4 airports (BQN, PSE, SJU, STT), of 289 flights",
            "the plane of 392 flights",
            "800 delays and 400 exchanges of planes",
            "4000 minutes recorded, 4000 found in the database; no plane lost or doubled",
            "41 flights have a commit number from after the import",
            "JFK to LAX     416 flights",
            "integrity_check: ok; 0 broken references",
        ] {
            assert!(report.contains(line), "no \"{line}\" in:\n{report}");
        }
        // All tasks but one lose each of 25 races.
        let conflicts = report.split(" conflicts met").next().unwrap();
        let conflicts = conflicts.rsplit(' ').next().unwrap().replace(',', "");
        assert!(conflicts.parse::<u32>().unwrap() >= 25 * 15, "{report}");
    }
    let rows = ask(
        &place.db(),
        "SELECT format('%d %d %d %d %d', (SELECT count(*) FROM airlines), (SELECT count(*) FROM airports), \
         (SELECT count(*) FROM planes), (SELECT count(*) FROM weather), (SELECT count(*) FROM flights))",
    )
    .await;
    assert_eq!(rows, "16 1462 3766 1008 12222");
    let first = ask(
        &place.db(),
        "SELECT concat_ws(' ', dep_time, carrier, flight, tailnum, origin, dest, time_hour) FROM flights \
         WHERE month = 2 AND day = 1 AND carrier = 'US' AND flight = 1117",
    )
    .await;
    assert_eq!(
        first,
        "456 US 1117 N197UW EWR CLT 2013-02-01 10:00:00.000000000"
    );
}

#[test]
fn a_missing_folder_is_named() {
    let place = Place::new();
    let output = flights(&place.data("elsewhere"), &place.db());
    let error = text(&output.stderr);
    assert!(error.starts_with("error: there is no folder "), "{error}");
    assert!(error.contains("elsewhere"), "{error}");
}

#[test]
fn a_missing_file_is_named_before_anything_is_touched() {
    let place = Place::new();
    fs::remove_file(place.data("weather.csv")).unwrap();
    let error = place.error();
    assert!(
        error.contains("has neither weather.csv nor weather.csv.zip"),
        "{error}"
    );
    assert!(!place.db().exists());
}

#[tokio::test]
async fn a_malformed_value_is_named_with_file_line_and_column() {
    let place = Place::new();
    place.spoil("planes.csv", 2017, |line| line.replace(",2,", ",two,"));
    let error = place.error();
    assert!(
        error.contains("planes.csv, line 2017: engines: invalid digit"),
        "{error}"
    );
    // What was saved before stays.
    assert_eq!(ask(&place.db(), "PRAGMA integrity_check").await, "ok");
    let kept = ask(&place.db(), "SELECT format('%d', count(*)) FROM planes").await;
    assert_eq!(kept, "2000");
}

#[test]
fn a_row_that_lacks_a_field_is_named_with_file_and_line() {
    let place = Place::new();
    place.spoil("weather.csv", 9, |line| {
        line.rsplit_once(',').unwrap().0.to_owned()
    });
    let error = place.error();
    assert!(
        error.contains("weather.csv, line 9: 14 fields, where the header has 15"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_no_archive_is_named() {
    let place = Place::new();
    fs::write(place.data("flights.csv.zip"), "no archive").unwrap();
    let error = place.error();
    assert!(
        error.contains("flights.csv.zip: invalid Zip archive"),
        "{error}"
    );
}

#[test]
fn a_database_of_somebody_else_is_left_alone() {
    let place = Place::new();
    let notes = b"no database at all";
    fs::write(place.db(), notes).unwrap();
    let error = place.error();
    assert!(
        error.contains("left as it is: the file is no SQLite database"),
        "{error}"
    );
    assert_eq!(fs::read(place.db()).unwrap(), notes);
}

#[tokio::test]
async fn a_database_with_the_same_tables_is_left_alone() {
    let place = Place::new();
    let db = Database::open(place.db()).await.unwrap();
    db.write(async |tx| {
        sqlx::raw_sql("CREATE TABLE flights (mine)")
            .execute(&mut *tx)
            .await?;
        Ok(())
    })
    .await
    .unwrap();
    db.close().await.unwrap();
    let before = fs::read(place.db()).unwrap();
    let error = place.error();
    assert!(error.contains("this example did not make it"), "{error}");
    assert_eq!(fs::read(place.db()).unwrap(), before);
}

#[test]
fn a_folder_that_does_not_exist_is_named() {
    let place = Place::new();
    let output = flights(Path::new(DATA), &place.folder.path().join("no/flights.db"));
    let error = text(&output.stderr);
    assert!(error.contains("no does not exist"), "{error}");
}

/// A limit on the size of files stands in for a full disk, which a test cannot ask for.
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_cannot_grow_ends_the_import_and_stays_whole() {
    let place = Place::new();
    let output = Command::new("sh")
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -f 1600; exec \"$0\" --db \"$1\"")
        .arg(env!("CARGO_BIN_EXE_flights"))
        .arg(place.db())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let error = text(&output.stderr);
    assert!(error.contains("flights.db is incomplete: "), "{error}");
    assert_eq!(ask(&place.db(), "PRAGMA integrity_check").await, "ok");
}
