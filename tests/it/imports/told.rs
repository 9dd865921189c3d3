//! What an import tells of files that do not fit: the column, the header, an array, rows that were passed over.

use anabranch::{
    bulk::{BadLine, BulkReport, Csv, Format, Import},
    prelude::*,
};
use serde::Deserialize;

use crate::imports::{Item, Line, complaint, csv, database, names, ndjson, run};

/// A value that says itself what is wrong with it, as a date of `chrono` does.
#[derive(Debug)]
struct Day;

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_day = text.len() == 10 && text.as_bytes()[4] == b'-';
        is_day
            .then_some(Self)
            .ok_or_else(|| serde::de::Error::custom("input contains invalid characters"))
    }
}

#[derive(Debug, Deserialize)]
struct Joined {
    name: String,
    joined: Day,
    left: Option<Day>,
}

impl From<Joined> for Item {
    fn from(line: Joined) -> Self {
        let (Day, note) = (line.joined, line.left.map(|Day| "left".to_owned()));
        Self {
            id: 0,
            name: line.name,
            price: 0.0,
            note,
        }
    }
}

/// It is made of a whole row.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Joined")]
struct Checked(Item);

impl TryFrom<Joined> for Checked {
    type Error = &'static str;

    fn try_from(_: Joined) -> Result<Self, Self::Error> {
        Err("nobody left")
    }
}

impl From<Checked> for Item {
    fn from(Checked(item): Checked) -> Self {
        item
    }
}

impl From<(String, Day)> for Item {
    fn from((name, _): (String, Day)) -> Self {
        Self::from((name, 0.0))
    }
}

/// The first bad line of an import.
async fn first_bad<Row>(file: &str, csv: Csv) -> BadLine
where
    Row: serde::de::DeserializeOwned + Into<Item>,
{
    let db = database().await;
    let import = Import::new(file.as_bytes(), csv).skip_bad_lines();
    let report = db.bulk_insert::<Item>().run_import::<Row>(import).await;
    report.unwrap().first_bad_lines.remove(0)
}

#[tokio::test]
async fn the_column_is_told_of_what_a_type_itself_refuses() {
    for (line, column) in [
        ("a,02.01.2020,", "joined"),
        ("a,2020-01-02,02.01.2020", "left"),
        ("a,02.01.2020,02.01.2020", "joined"),
    ] {
        let file = format!("name,joined,left\n{line}\n");
        let bad = first_bad::<Joined>(&file, Csv::new()).await;
        assert_eq!(bad.column.as_deref(), Some(column), "{line}");
        assert_eq!(bad.reason, "input contains invalid characters");
    }
    let bad = first_bad::<(String, Day)>("a,02.01.2020\n", Csv::new().no_header()).await;
    assert_eq!(bad.column.as_deref(), Some("field 2"));
    // Of a whole row no column is to blame.
    let file = "name,joined,left\na,2020-01-02,\n";
    let bad = first_bad::<Checked>(file, Csv::new()).await;
    assert_eq!((bad.column, &*bad.reason), (None, "nobody left"));
}

#[tokio::test]
async fn a_header_that_fits_no_row_ends_an_import_whatever_becomes_of_bad_lines() {
    let told = async |file: &str, csv: Csv| {
        let db = database().await;
        let import = Import::new(file.as_bytes(), csv).skip_bad_lines();
        let failed = run(&db, import).await.unwrap_err();
        assert_eq!(
            (failed.kind(), failed.line()),
            (ErrorKind::BadLine, Some(2))
        );
        failed.error().to_string()
    };
    for (header, expected) in [
        (
            "name,Price",
            "missing field `price`: the header has `name`, `Price`",
        ),
        (
            "name, price",
            "missing field `price`: the header has `name`, ` price`; `Csv::trim` cuts blanks off",
        ),
        (
            "name;price",
            "missing field `name`: the header has `name;price`; is its delimiter another?",
        ),
    ] {
        let lines = if header.contains(';') {
            "tea;1"
        } else {
            "tea,1"
        };
        let file = format!("{header}\n{lines}\n{lines}\n");
        assert_eq!(told(&file, Csv::new()).await, expected);
    }
    let many: Vec<_> = (0..50).map(|n| format!("column{n}")).collect();
    let file = format!("{}\n{}\n", many.join(","), ",".repeat(49));
    let told = told(&file, Csv::new()).await;
    assert!(told.ends_with("`column19` and 30 more"), "{told}");

    let db = database().await;
    let import = Import::new("name , price\n tea,1 \n".as_bytes(), Csv::new().trim());
    assert_eq!(run(&db, import).await.unwrap().written, 1);
    assert_eq!(names(&db).await, ["tea"]);
}

/// Rows of which not all have the same columns.
#[derive(Debug, Deserialize)]
struct Sorted {
    #[serde(flatten)]
    sort: Either,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Either {
    Tea { name: String },
    Cake { sort: String },
}

impl From<Sorted> for Item {
    fn from(line: Sorted) -> Self {
        let (Either::Tea { name } | Either::Cake { sort: name }) = line.sort;
        Self::from((name, 0.0))
    }
}

#[tokio::test]
async fn a_row_that_needs_other_columns_than_the_next_is_only_a_bad_line() {
    let db = database().await;
    let file = "kind,name\ncake,a\ntea,b\n";
    let import = csv(file).skip_bad_lines();
    let report = db.bulk_insert::<Item>().run_import::<Sorted>(import).await;
    let report = report.unwrap();
    assert_eq!((report.written, report.bad_lines), (1, 1));
    let reason = &report.first_bad_lines[0].reason;
    assert_eq!(
        reason,
        "missing field `sort`: the header has `kind`, `name`"
    );
}

#[tokio::test]
async fn so_many_bad_lines_are_left_out_and_no_more() {
    let db = database().await;
    let file = "name,price\na,1\nb,x\nc,2\nd,y\ne,3\n";
    let failed = run(&db, csv(file).max_bad_lines(1)).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.line(), failed.report().rows),
        (ErrorKind::BadLine, Some(5), 3)
    );
    let text = failed.to_string();
    assert!(
        text.contains("; one more than the limit of bad lines, 1"),
        "{text}"
    );
    assert_eq!(names(&db).await, ["a", "c"]);
    let report = run(&database().await, csv(file).max_bad_lines(2)).await;
    assert_eq!(report.unwrap().bad_lines, 2);
}

#[tokio::test]
async fn a_file_that_is_a_json_array_is_told_as_one() {
    let db = database().await;
    for file in [
        "[{\"name\": \"a\", \"price\": 1}]",
        "[\n{\"name\": \"a\", \"price\": 1},\n{\"name\": \"b\", \"price\": 1}\n]\n",
        "[\"a\", 1.5, null]",
    ] {
        let failed = run(&db, ndjson(file).skip_bad_lines()).await.unwrap_err();
        assert_eq!(
            (failed.kind(), failed.line()),
            (ErrorKind::BadLine, Some(1))
        );
        let text = failed.to_string();
        assert!(text.contains("the file is a JSON array"), "{text}");
    }
    let file = "{\"name\": \"a\", \"price\": 1}\n[\"secret\", 1]\n";
    let told = complaint(ndjson(file)).await;
    assert_eq!(told, "line 2: is an array, not an object");
    // What is read by the order of its fields is written so.
    let import = Import::new("[\"b\", 1.5]\n".as_bytes(), Format::Ndjson);
    let report = db.bulk_insert::<Item>().run_import::<(String, f64)>(import);
    assert_eq!(report.await.unwrap().written, 1);
}

#[tokio::test]
async fn rows_that_are_passed_over_are_told_by_row_and_line() {
    let db = database().await;
    let file = "name,price\na,1\nx,no\na,2\nb,3\n\na,4\n";
    let insert = db.bulk_insert::<Item>().chunk_rows(2).skip_conflicts();
    let import = csv(file).skip_bad_lines();
    let report = insert.run_import::<Line>(import).await.unwrap();
    let places = |report: &BulkReport| -> Vec<_> {
        let passed = report.first_passed_over.iter();
        passed.map(|passed| (passed.row, passed.line)).collect()
    };
    assert_eq!(places(&report), [(2, Some(4)), (4, Some(7))]);
    assert_eq!((report.written, report.passed_over), (2, 2));

    // Also of a table without an index, where many rows are one statement, and keys that are given go on without a gap.
    #[derive(Debug, Entity)]
    struct Plain {
        #[entity(id)]
        id: i64,
        text: String,
    }
    db.create_tables::<Plain>().await.unwrap();
    let plain = |id| Plain {
        id,
        text: String::new(),
    };
    let rows = (0..1_000).map(|row| plain(if row % 9 == 7 { 5_000 + row % 2 } else { 0 }));
    let report = db.bulk_insert().skip_conflicts().run(rows).await.unwrap();
    let expected: Vec<_> = (0..1_000)
        .filter(|row| row % 9 == 7)
        .skip(2)
        .map(|row| (row, None))
        .collect();
    assert_eq!(report.passed_over, expected.len() as u64);
    assert_eq!(places(&report), expected[..100]);
    let count = Plain::query().count(&db).await.unwrap();
    assert_eq!(count, report.written);
    assert_eq!(count, 1_000 - report.passed_over);
    let last = Plain::query().max(Plain::ID, &db).await.unwrap();
    assert_eq!(last, Some(5_001 + 1_000 - 111));

    let gone = db
        .bulk_update()
        .skip_missing()
        .run([plain(5_000), plain(9_999)]);
    assert_eq!(places(&gone.await.unwrap()), [(1, None)]);
}
