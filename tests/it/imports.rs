//! Imports of CSV and NDJSON: lines in errors, bad lines, limits, and going on where one ended.

mod told;

use std::{
    fs,
    io::{self, Read},
    ops::ControlFlow,
    path::Path,
};

use anabranch::{
    bulk::{BulkError, BulkReport, Csv, Format, Import},
    prelude::*,
};
use futures_util::stream;
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Item {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    name: String,
    price: f64,
    note: Option<String>,
}

/// A line, which knows nothing of keys.
#[derive(Debug, Deserialize)]
struct Line {
    name: String,
    price: f64,
    #[serde(default)]
    note: Option<String>,
}

impl From<Line> for Item {
    fn from(line: Line) -> Self {
        Self {
            id: 0,
            name: line.name,
            price: line.price,
            note: line.note,
        }
    }
}

impl From<(String, f64)> for Item {
    fn from((name, price): (String, f64)) -> Self {
        Self {
            id: 0,
            name,
            price,
            note: None,
        }
    }
}

async fn database() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Item>().await.unwrap();
    db
}

fn csv(text: &(impl AsRef<[u8]> + ?Sized)) -> Import<&[u8]> {
    Import::new(text.as_ref(), Csv::new())
}

fn ndjson(text: &(impl AsRef<[u8]> + ?Sized)) -> Import<&[u8]> {
    Import::new(text.as_ref(), Format::Ndjson)
}

async fn run(db: &Database, import: Import<impl Read + Send>) -> Result<BulkReport, BulkError> {
    db.bulk_insert::<Item>().run_import::<Line>(import).await
}

async fn names(db: &Database) -> Vec<String> {
    let by_id = Item::query().order_by(Item::ID.asc());
    by_id.select(Item::NAME).all(db).await.unwrap()
}

/// The first bad line of an import, as it is told.
async fn complaint(import: Import<&[u8]>) -> String {
    let db = database().await;
    let report = run(&db, import.skip_bad_lines()).await.unwrap();
    report.first_bad_lines[0].to_string()
}

#[tokio::test]
async fn csv_is_read_with_marks_empty_lines_and_ends_of_any_kind() {
    let files = [
        "name,price,note\ntea,1,a\ncake,2.5,\n",
        "\u{feff}name,price,note\r\ntea,1,a\r\n\r\ncake,2.5,\r\n",
        "\n\nname,price,note\n\ntea,1,a\ncake,2.5,",
        "note,\"price\",name\na,1,tea\n,2.5,\"cake\"",
    ];
    for file in files {
        let db = database().await;
        let report = run(&db, csv(file)).await.unwrap();
        assert_eq!((report.rows, report.written), (2, 2), "{file}");
        let all = Item::query()
            .order_by(Item::ID.asc())
            .all(&db)
            .await
            .unwrap();
        assert_eq!(all[0].note.as_deref(), Some("a"), "{file}");
        assert_eq!((all[1].price, &all[1].note), (2.5, &None), "{file}");
    }
    let db = database().await;
    let written = csv("tea;1;NA\ncake;2;NA");
    let options = Csv::new().delimiter(b';').no_header().null("NA");
    let report = run(&db, Import::new(&b"tea;1;NA\ncake;2;x"[..], options)).await;
    assert_eq!(report.unwrap().written, 2);
    assert_eq!(
        Item::query()
            .filter(Item::NOTE.is_null())
            .count(&db)
            .await
            .unwrap(),
        1
    );
    // With the wrong delimiter nothing fits.
    let failed = run(&db, written).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.line()),
        (ErrorKind::BadLine, Some(2))
    );
    for nothing in ["", "\u{feff}", "\n\r\n", "name,price"] {
        assert_eq!(run(&db, csv(nothing)).await.unwrap().rows, 0);
    }
}

#[tokio::test]
async fn ndjson_is_read_with_marks_empty_lines_and_ends_of_any_kind() {
    let db = database().await;
    let file =
        "\u{feff}{\"name\": \"tea\", \"price\": 1}\r\n  \n\n{\"price\": 2, \"name\": \"ca\\nke\"}";
    let report = run(&db, ndjson(file)).await.unwrap();
    assert_eq!((report.rows, report.written), (2, 2));
    assert_eq!(names(&db).await, ["tea", "ca\nke"]);
    for nothing in ["", "\u{feff}", "\n\r\n", "  "] {
        assert_eq!(run(&db, ndjson(nothing)).await.unwrap().rows, 0);
    }
}

#[tokio::test]
async fn bad_lines_are_told_with_line_column_and_no_values() {
    let head = "name,price\n\"a\nb\",1\n\n";
    let cases: &[(&[u8], &str)] = &[
        (b"secret,cheap\n", "line 5, price: invalid float literal"),
        (b"secret\n", "line 5: has 1 field, the header has 2"),
        (b"secret,1,2\n", "line 5: has 3 fields, the header has 2"),
        (b"sec\xffret,1\n", "line 5, name: is not UTF-8"),
        (b"sec\0ret,1\n", "line 5, name: "),
        (b"secret,NaN\n", "line 5, price: "),
        (b"\"secret,1\nmore,2\n", "line 5: a quote is not closed"),
    ];
    for (line, expected) in cases {
        let told = complaint(csv(&[head.as_bytes(), line].concat())).await;
        assert!(told.starts_with(expected), "{told}");
        assert!(!told.contains("secret") && !told.contains("NaN"), "{told}");
    }

    let head = "{\"name\": \"a\", \"price\": 1}\n\n";
    let cases: &[(&[u8], &str)] = &[
        (
            b"{\"name\": \"x\", \"price\": \"secret, expected\"}",
            "line 3, price: invalid type: string, expected f64",
        ),
        (
            b"{\"price\": 1, \"name\": 815}",
            "line 3, name: invalid type: integer, expected a string",
        ),
        (b"{\"name\": \"secret\"}", "line 3: missing field `price`"),
        (
            b"{\"name\": \"secret\"",
            "line 3: is not JSON at character 17: EOF",
        ),
        (b"secret", "line 3: is not JSON at character 1: "),
        (
            b"{\"name\": \"\xff\", \"price\": 1}",
            "line 3: is not UTF-8",
        ),
        (b"{\"name\": \"a\\u0000\", \"price\": 1}", "line 3, name: "),
        (b"{\"name\": \"a\", \"price\": 1} {}", "line 3: is not JSON"),
    ];
    for (line, expected) in cases {
        let told = complaint(ndjson(&[head.as_bytes(), line].concat())).await;
        assert!(told.starts_with(expected), "{told}");
        assert!(!told.contains("secret") && !told.contains("815"), "{told}");
    }
}

#[tokio::test]
async fn the_first_bad_line_ends_an_import_unless_they_are_left_out() {
    let db = database().await;
    let file = "name,price\ntea,1\ncake,much\njam,3\n";
    let failed = run(&db, csv(file)).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.row(), failed.line()),
        (ErrorKind::BadLine, Some(1), Some(3))
    );
    assert_eq!(failed.error().column(), Some("price"));
    assert_eq!((failed.report().rows, failed.report().written), (1, 1));
    assert!(!failed.report().is_complete);
    assert!(
        failed.to_string().starts_with("line 3 (row 1): price: "),
        "{failed}"
    );
    let error = Error::from(failed);
    assert!(
        error.kind() == ErrorKind::BadLine && error.to_string().contains("line 3"),
        "{error}"
    );

    // A value that cannot be stored keeps its kind.
    let failed = run(&db, csv("name,price\ncake,NaN\n")).await.unwrap_err();
    assert_eq!((failed.kind(), failed.line()), (ErrorKind::Value, Some(2)));

    let report = run(
        &db,
        csv("name,price\ncake,much\njam,3\nx,\0\n").skip_bad_lines(),
    );
    let report = report.await.unwrap();
    assert_eq!((report.rows, report.written, report.bad_lines), (3, 1, 2));
    assert!(report.is_complete);
    assert_eq!(names(&db).await, ["tea", "jam"]);
}

#[tokio::test]
async fn a_report_keeps_the_first_bad_lines_and_counts_all() {
    let db = database().await;
    let bad = "x,much\n".repeat(5_000);
    let file = format!("name,price\n{bad}");
    let report = run(&db, csv(&file).skip_bad_lines()).await.unwrap();
    assert_eq!(
        (report.rows, report.bad_lines, report.written),
        (5_000, 5_000, 0)
    );
    assert_eq!(report.first_bad_lines.len(), 100);
    assert_eq!(report.first_bad_lines[99].line, 101);
    let report = run(&db, csv(&file).skip_bad_lines().keep_bad_lines(2)).await;
    assert_eq!(report.unwrap().first_bad_lines.len(), 2);
}

#[tokio::test]
async fn what_the_database_refuses_is_an_error_with_its_line() {
    let db = database().await;
    let file = "name,price\ntea,1\nbad,x\n\"ca\nke\",2\ntea,3\njam,4\n";
    let failed = run(&db, csv(file).skip_bad_lines()).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.row(), failed.line()),
        (ErrorKind::Unique, Some(3), Some(6))
    );
    assert!(
        failed.to_string().starts_with("line 6 (row 3): "),
        "{failed}"
    );
    // Nothing of the transaction is done, so no line of it is told as left out.
    assert_eq!((failed.report().rows, failed.report().bad_lines), (0, 0));
    assert!(failed.report().first_bad_lines.is_empty());
    let bulk = db.bulk_insert::<Item>().skip_conflicts();
    let report = bulk
        .run_import::<Line>(csv(file).skip_bad_lines())
        .await
        .unwrap();
    assert_eq!(
        (
            report.rows,
            report.written,
            report.passed_over,
            report.bad_lines
        ),
        (5, 3, 1, 1)
    );
}

/// A file of rows of which every seventh is bad, and its names.
fn sevens(count: usize) -> (String, Vec<String>) {
    let mut file = "name,price\n".to_owned();
    let mut names = Vec::new();
    for n in 0..count {
        let price = if n % 7 == 6 { "much" } else { "1" };
        file += &format!("\"item\n{n}\",{price}\n");
        if n % 7 != 6 {
            names.push(format!("item\n{n}"));
        }
    }
    (file, names)
}

#[tokio::test]
async fn an_import_goes_on_where_its_report_ends_though_lines_were_bad() {
    let (file, expected) = sevens(700);
    for stop_at in [1, 50, 60, 61, 333, 690] {
        let db = database().await;
        let first = db
            .bulk_insert::<Item>()
            .chunk_rows(10)
            .on_progress(|progress| {
                if progress.rows >= stop_at {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        let first = first
            .run_import::<Line>(csv(&file).skip_bad_lines())
            .await
            .unwrap();
        assert!(first.rows >= stop_at && (first.rows < 700 || first.is_complete));
        let rest = db.bulk_insert::<Item>().skip_rows(first.rows);
        let rest = rest
            .run_import::<Line>(csv(&file).skip_bad_lines())
            .await
            .unwrap();
        assert_eq!((rest.rows, rest.is_complete), (700, true));
        assert_eq!(first.written + rest.written, 600);
        // Each bad line is counted by one of the two, and told by the same.
        assert_eq!(first.bad_lines + rest.bad_lines, 100);
        let told: Vec<_> = [first.first_bad_lines, rest.first_bad_lines].concat();
        let rows: Vec<_> = told.iter().map(|bad| bad.row).collect();
        assert!(
            rows.iter().copied().eq((0..100).map(|n| n * 7 + 6)),
            "{rows:?}"
        );
        assert!(told.iter().all(|bad| bad.line == bad.row * 2 + 2));
        assert_eq!(names(&db).await, expected);
    }
}

#[tokio::test]
async fn an_import_goes_on_behind_what_was_committed_before_an_error() {
    let (file, expected) = sevens(300);
    let db = database().await;
    let cut = file.replace("\"item\n100\",1", "\"item\n1\",1");
    let bulk = db.bulk_insert::<Item>().chunk_rows(20);
    let failed = bulk
        .run_import::<Line>(csv(&cut).skip_bad_lines())
        .await
        .unwrap_err();
    assert_eq!(
        (failed.kind(), failed.row(), failed.line()),
        (ErrorKind::Unique, Some(100), Some(202))
    );
    let bulk = db.bulk_insert::<Item>().skip_rows(failed.report().rows);
    let report = bulk
        .run_import::<Line>(csv(&file).skip_bad_lines())
        .await
        .unwrap();
    assert_eq!(report.rows, 300);
    assert_eq!(names(&db).await, expected);
    // No header: the first record tells how many fields there are, also where it was written before.
    let import = Import::new(&b"a,1\nb,2\nc\n"[..], Csv::new().no_header());
    let bulk = db.bulk_insert::<Item>().skip_rows(2);
    let failed = bulk.run_import::<(String, f64)>(import).await;
    assert_eq!(failed.unwrap_err().line(), Some(3));
}

#[tokio::test]
async fn rejected_lines_are_kept_as_they_are_and_can_be_imported_when_mended() {
    let db = database().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.csv");
    let read = |path: &Path| fs::read(path).unwrap();
    let file =
        b"\xEF\xBB\xBFname,price\r\ntea,1\r\n\"two\r\nlines\", much \r\nsec\xffret,1\r\nx\0,1";
    let report = run(&db, csv(&file[..]).reject_to(&path).unwrap())
        .await
        .unwrap();
    assert_eq!((report.rows, report.written, report.bad_lines), (4, 1, 3));
    assert_eq!(
        read(&path),
        b"name,price\n\"two\r\nlines\", much \nsec\xffret,1\nx\0,1\n"
    );
    let reasons = String::from_utf8(read(&folder.path().join("bad.csv.reasons"))).unwrap();
    let lines: Vec<_> = reasons
        .lines()
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(lines, ["line 3, price", "line 5, name", "line 6, name"]);

    // The next ones are appended, also behind a line that was cut.
    fs::write(&path, "name,price\ncut").unwrap();
    run(&db, csv("name,price\ny,\"z\n").reject_to(&path).unwrap())
        .await
        .unwrap();
    assert_eq!(read(&path), b"name,price\ncut\ny,\"z\n");
    let mended = "name,price\ntwo lines,5\n";
    fs::write(&path, mended).unwrap();
    let import = Import::open(&path, Csv::new()).unwrap();
    assert_eq!(run(&db, import).await.unwrap().written, 1);
    assert_eq!(names(&db).await, ["tea", "two lines"]);

    let nowhere = csv("")
        .reject_to(folder.path().join("no/folder"))
        .unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::Io);
}

#[tokio::test]
async fn a_line_without_an_end_is_bad_and_not_held_in_memory() {
    let db = database().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad");
    let long = "x".repeat(300_000);
    let file = format!("name,price\ntea,1\n\"{long}\n\n{long}\",1\njam,1\n");
    let import = || csv(&file).longest_line(100_000);
    let failed = run(&db, import()).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.line()),
        (ErrorKind::BadLine, Some(3))
    );
    let report = run(&db, import().reject_to(&path).unwrap());
    let failed = report.await.unwrap_err();
    assert_eq!((failed.kind(), failed.line()), (ErrorKind::Unique, Some(2)));
    fs::remove_file(&path).unwrap();
    let bulk = db.bulk_insert::<Item>().skip_rows(1);
    let report = bulk
        .run_import::<Line>(import().reject_to(&path).unwrap())
        .await
        .unwrap();
    assert_eq!((report.rows, report.written, report.bad_lines), (3, 1, 1));
    assert!(report.first_bad_lines[0].reason.contains("100000 bytes"));
    let kept = fs::read_to_string(&path).unwrap();
    assert_eq!(kept, format!("name,price\n\"{long}\n\n{long}\",1\n"));

    let file =
        format!("{{\"name\": \"{long}\", \"price\": 1}}\n{{\"name\": \"pie\", \"price\": 1}}");
    let report = run(&db, ndjson(&file).longest_line(100_000).skip_bad_lines()).await;
    assert_eq!(report.unwrap().written, 1);
    assert_eq!(names(&db).await, ["tea", "jam", "pie"]);
    // Ends of lines inside of it stay, wherever the pieces are cut.
    fs::remove_file(&path).unwrap();
    let lines = format!("\"{}\"", "x\n".repeat(1_000));
    let file = format!("name,price\n{lines},1\n");
    let pieces = file.as_bytes().chunks(7).map(Ok::<_, io::Error>);
    let import = Import::new(stream::iter(pieces), Csv::new()).longest_line(100);
    let bulk = db.bulk_insert::<Item>();
    let report = bulk.run_import_stream::<Line>(import.reject_to(&path).unwrap());
    assert_eq!(report.await.unwrap().bad_lines, 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), file);
    // A file without any end of a line, which has no end itself.
    let endless = Import::new(io::repeat(b'x'), Format::Ndjson).longest_line(1_000_000);
    let failed = run(&db, endless).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.line()),
        (ErrorKind::BadLine, Some(1))
    );
    let endless = Import::new(io::repeat(b'x'), Csv::new())
        .max_bytes(5_000_000)
        .skip_bad_lines();
    let failed = run(&db, endless.longest_line(1_000)).await.unwrap_err();
    assert_eq!(
        failed.kind(),
        ErrorKind::BadLine,
        "the header is never left out"
    );
}

#[tokio::test]
async fn limits_of_rows_and_bytes_end_an_import() {
    let db = database().await;
    let file = "name,price\ntea,1\ncake,2\njam,3\n";
    let failed = run(&db, csv(file).max_rows(2)).await.unwrap_err();
    assert_eq!((failed.kind(), failed.line()), (ErrorKind::TooBig, Some(4)));
    assert_eq!(failed.report().written, 2);
    let failed = run(&db, csv("name,price\npie,1\nbun,2\n").max_bytes(17))
        .await
        .unwrap_err();
    assert_eq!(
        (failed.kind(), failed.report().written),
        (ErrorKind::TooBig, 1)
    );
    let all = run(&db, csv("name,price\nbun,2\n").max_bytes(17).max_rows(1)).await;
    assert_eq!(all.unwrap().written, 1);
    assert_eq!(names(&db).await, ["tea", "cake", "pie", "bun"]);
}

#[tokio::test]
async fn pieces_of_a_stream_may_be_cut_anywhere() {
    let file = "\u{feff}name,price\r\n\"té\r\n\"\"a\",1\r\n\r\ncake,2\r\nbad,x\r\njam,3";
    let lines = "\u{feff}{\"name\":\"té\\r\\n\\\"a\",\"price\":1}\r\n\r\n\r\n\r\n{\"name\":\"cake\",\"price\":2}\n{\"name\":\"bad\"}\n{\"name\":\"jam\",\"price\":3}";
    for (text, format) in [(file, Format::from(Csv::new())), (lines, Format::Ndjson)] {
        for size in 1..text.len() {
            let db = database().await;
            let pieces = text.as_bytes().chunks(size).flat_map(|piece| [piece, b""]);
            let stream = stream::iter(pieces.map(Ok::<_, io::Error>));
            let import = Import::new(stream, format.clone()).skip_bad_lines();
            let bulk = db.bulk_insert::<Item>();
            let report = bulk.run_import_stream::<Line>(import).await.unwrap();
            assert_eq!((report.rows, report.written), (4, 3), "{size}");
            assert_eq!(report.first_bad_lines[0].line, 6, "{size}");
            assert_eq!(names(&db).await, ["té\r\n\"a", "cake", "jam"], "{size}");
        }
    }
}

#[tokio::test]
async fn a_source_that_breaks_off_writes_no_half_line() {
    let db = database().await;
    let pieces = [
        Ok("name,price\ntea,1\ncake,2"),
        Err(io::Error::other("gone")),
    ];
    let import = Import::new(stream::iter(pieces), Csv::new()).skip_bad_lines();
    let bulk = db.bulk_insert::<Item>();
    let failed = bulk.run_import_stream::<Line>(import).await.unwrap_err();
    assert_eq!(
        (failed.kind(), failed.report().rows),
        (ErrorKind::Application, 1)
    );
    assert_eq!(names(&db).await, ["tea"]);

    struct Breaks<'a>(&'a [u8]);
    impl Read for Breaks<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(io::Error::other("the disk is gone"));
            }
            self.0.read(buffer)
        }
    }
    let import = Import::new(Breaks(b"name,price\npie,1\njam,22"), Csv::new());
    let failed = run(&db, import).await.unwrap_err();
    assert_eq!((failed.kind(), failed.report().rows), (ErrorKind::Io, 1));
    assert_eq!(names(&db).await, ["tea", "pie"]);
}

#[tokio::test]
async fn imports_change_and_delete_rows_too() {
    /// A price in cents, or none.
    #[derive(Deserialize)]
    struct Cents {
        name: String,
        cents: i32,
    }
    impl TryFrom<Cents> for Item {
        type Error = String;
        fn try_from(line: Cents) -> Result<Self, String> {
            if line.cents < 0 {
                return Err("a price is not negative".to_owned());
            }
            Ok(Self {
                id: 0,
                name: line.name,
                price: f64::from(line.cents) / 100.0,
                note: None,
            })
        }
    }
    let db = database().await;
    run(&db, csv("name,price\ntea,1\ncake,2\n")).await.unwrap();
    let lines = "name,cents\ntea,150\njam,-1\npie,300\n";
    let bulk = db.bulk_upsert::<Item>(|upsert| upsert.on(Item::NAME).update(Item::PRICE));
    let report = bulk
        .run_import::<Cents>(csv(lines).skip_bad_lines())
        .await
        .unwrap();
    assert_eq!((report.written, report.bad_lines), (2, 1));
    assert_eq!(
        report.first_bad_lines[0].to_string(),
        "line 3: a price is not negative"
    );
    let tea = Item::find(&db, 1).await.unwrap().unwrap();
    assert_eq!((tea.price, names(&db).await.len()), (1.5, 3));

    let pie = Item::query().filter(Item::NAME.eq("pie"));
    let pie = pie.one(&db).await.unwrap().id;
    let keys = format!("1\n{pie}\n99\n");
    let keys = Import::new(keys.as_bytes(), Format::Ndjson);
    let report = db
        .bulk_delete::<Item>()
        .run_import::<i64>(keys)
        .await
        .unwrap();
    assert_eq!((report.written, report.passed_over), (2, 1));
    assert_eq!(names(&db).await, ["cake"]);
}

#[derive(Debug, Entity, Deserialize)]
struct Airport {
    #[entity(id)]
    #[serde(rename = "faa")]
    code: String,
    name: String,
    lat: f64,
    lon: f64,
    alt: i64,
    tz: i64,
    dst: String,
    tzone: Option<String>,
}

#[derive(Debug, Entity, Deserialize)]
struct Plane {
    #[entity(id)]
    #[serde(rename = "tailnum")]
    tail: String,
    year: Option<i64>,
    model: String,
    seats: i64,
    speed: Option<i64>,
}

#[tokio::test]
async fn the_files_of_flights_are_imported_as_they_are() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Airport, Plane)>().await.unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/flights/data");
    let open = |name| Import::open(data.join(name), Csv::new().null("NA")).unwrap();
    let bulk = db.bulk_insert::<Airport>();
    let airports = bulk
        .run_import::<Airport>(open("airports.csv"))
        .await
        .unwrap();
    let lines = fs::read_to_string(data.join("airports.csv"))
        .unwrap()
        .lines()
        .count();
    assert_eq!(airports.written, lines as u64 - 1);
    let report = db
        .bulk_insert::<Plane>()
        .run_import::<Plane>(open("planes.csv"))
        .await
        .unwrap();
    assert_eq!(Plane::query().count(&db).await.unwrap(), report.rows);
    let unknown = Plane::query()
        .filter(Plane::YEAR.is_null())
        .count(&db)
        .await
        .unwrap();
    assert!(unknown > 0 && unknown < report.rows);
    let jfk = Airport::find(&db, "JFK".to_owned()).await.unwrap().unwrap();
    assert_eq!(jfk.name, "John F Kennedy Intl");
}
