//! Imports of the bodies of requests: what clients are told, limits, back-pressure, and clients that go away.

use std::{
    io,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anabranch::{
    bulk::{Csv, ImportAnswer, ImportBody},
    prelude::*,
};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    response::Response,
    routing::post,
};
use futures_util::{StreamExt as _, future::join, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::yield_now,
};
use tower::ServiceExt as _;

#[derive(Debug, Entity, Deserialize)]
struct Item {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    name: String,
}

async fn import(State(db): State<Database>, ImportBody(import): ImportBody) -> ImportAnswer {
    let import = import.max_rows(50_000);
    (db.bulk_insert::<Item>()
        .run_import_stream::<Item>(import)
        .await)
        .into()
}

async fn leave_out(State(db): State<Database>, ImportBody(import): ImportBody) -> ImportAnswer {
    let import = import.skip_bad_lines().max_bytes(100);
    (db.bulk_insert::<Item>()
        .run_import_stream::<Item>(import)
        .await)
        .into()
}

async fn semicolons(State(db): State<Database>, request: Request) -> ImportAnswer {
    let ImportBody(import) = ImportBody::of(request, Csv::new().delimiter(b';'));
    (db.bulk_insert::<Item>()
        .run_import_stream::<Item>(import)
        .await)
        .into()
}

fn router(db: &Database) -> Router {
    Router::new()
        .route("/items", post(import))
        .route("/left-out", post(leave_out))
        .route("/semicolons", post(semicolons))
        .with_state(db.clone())
}

async fn database() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Item>().await.unwrap();
    db
}

async fn count(db: &Database) -> u64 {
    Item::query().count(db).await.unwrap()
}

async fn send(db: &Database, path: &str, kind: &str, body: impl Into<Body>) -> Response {
    let request = Request::post(path).header(header::CONTENT_TYPE, kind);
    let request = request.body(body.into()).unwrap();
    router(db).oneshot(request).await.unwrap()
}

/// The status and what is told.
async fn told(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

const NDJSON: &str = "application/x-ndjson";

#[tokio::test]
async fn bodies_are_read_as_their_content_type_says() {
    let db = database().await;
    let response = send(
        &db,
        "/items",
        "text/csv; charset=utf-8",
        "id,name\n0,tea\n0,cake\n",
    )
    .await;
    let expected = json!({
        "rows": 2, "written": 2, "passed_over": 0, "first_passed_over": [], "bad_lines": 0, "rejected": [], "is_complete": true
    });
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    assert_eq!(told(response).await, (200, expected));
    let response = send(&db, "/items", "text/csv; header=absent", "0,pie").await;
    assert_eq!(response.status(), StatusCode::OK);
    let response = send(&db, "/items", NDJSON, "{\"id\": 0, \"name\": \"jam\"}").await;
    assert_eq!(response.status(), StatusCode::OK);
    // The handler may choose.
    let response = send(&db, "/semicolons", "text/plain", "id;name\n0;bun").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(count(&db).await, 5);

    for kind in [
        "application/json",
        "text/plain",
        "",
        "text/csv; charset=iso-8859-1",
        "application/x-ndjson; charset=\"UTF-16\"",
    ] {
        let response = send(&db, "/items", kind, "0,pie").await;
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let (status, told) = told(response).await;
        assert_eq!((status, &told["rows"]), (415, &json!(0)));
        assert!(
            told["error"].as_str().unwrap().starts_with("send "),
            "{told}"
        );
    }
    let response = send(&db, "/items", "text/csv; charset=\"UTF-8\"", "id,name").await;
    assert_eq!(response.status(), StatusCode::OK);
    let request = Request::post("/items")
        .header(header::CONTENT_TYPE, NDJSON)
        .header(header::CONTENT_ENCODING, "gzip");
    let response = router(&db)
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn clients_are_told_which_line_is_wrong_and_what_is_written() {
    let db = database().await;
    let body = "id,name\n0,tea\n\nx,cake\n";
    let (status, answer) = told(send(&db, "/items", "text/csv", body).await).await;
    assert_eq!(
        (status, &answer["line"], &answer["row"]),
        (400, &json!(4), &json!(1))
    );
    assert_eq!(
        (&answer["column"], &answer["written"]),
        (&json!("id"), &json!(1))
    );
    assert_eq!(answer["is_complete"], false);

    let body = "id,name\n0,cake\n0,tea\n";
    let (status, answer) = told(send(&db, "/items", "text/csv", body).await).await;
    assert_eq!(
        (status, &answer["line"], &answer["rows"]),
        (409, &json!(3), &json!(0))
    );

    // What is wrong is told, and no SQL.
    let error = answer["error"].as_str().unwrap();
    assert!(
        error.contains("name") && !error.contains("INSERT"),
        "{error}"
    );

    let body = "id,name\n0,cake\nx,jam\n0,pie\n";
    let (status, answer) = told(send(&db, "/left-out", "text/csv", body).await).await;
    assert_eq!(
        (status, &answer["rows"], &answer["written"]),
        (200, &json!(3), &json!(2))
    );
    let reason =
        json!({"line": 3, "row": 1, "column": "id", "reason": "invalid digit found in string"});
    assert_eq!(
        (&answer["bad_lines"], &answer["rejected"]),
        (&json!(1), &json!([reason]))
    );
    assert_eq!(count(&db).await, 3);
}

/// Rows, each a piece of a body.
fn rows(count: u64) -> impl stream::Stream<Item = io::Result<String>> + Send {
    stream::iter((0..count).map(|n| Ok(format!("{{\"id\": 0, \"name\": \"item {n}\"}}\n"))))
}

#[tokio::test]
async fn what_is_too_large_is_refused() {
    let db = database().await;
    // Told in advance, it is not begun.
    let request = Request::post("/left-out")
        .header(header::CONTENT_TYPE, NDJSON)
        .header(header::CONTENT_LENGTH, 101);
    let request = request.body(Body::from_stream(rows(1))).unwrap();
    let (status, answer) = told(router(&db).oneshot(request).await.unwrap()).await;
    assert_eq!((status, &answer["written"]), (413, &json!(0)));
    // Else it is noticed.
    let (status, answer) =
        told(send(&db, "/left-out", NDJSON, Body::from_stream(rows(10))).await).await;
    assert_eq!((status, &answer["written"]), (413, &json!(3)));
    let (status, answer) = told(send(&db, "/items", "text/csv", "id,name\n0,\n").await).await;
    assert_eq!((status, &answer["written"]), (200, &json!(1)));
    let lots = Body::from_stream(rows(60_000).skip(5));
    let (status, answer) = told(send(&db, "/items", NDJSON, lots).await).await;
    assert_eq!((status, &answer["rows"]), (413, &json!(50_000)));
}

#[tokio::test]
async fn a_busy_database_asks_to_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::builder(folder.path().join("busy.db"))
        .queue_timeout(Duration::from_millis(20))
        .open()
        .await
        .unwrap();
    db.create_tables::<Item>().await.unwrap();
    let tx = db.begin().await.unwrap();
    let response = send(&db, "/items", NDJSON, Body::from_stream(rows(10))).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    tx.rollback().await.unwrap();
    let response = send(&db, "/items", NDJSON, Body::from_stream(rows(10))).await;
    assert_eq!((response.status(), count(&db).await), (StatusCode::OK, 10));
}

#[tokio::test]
async fn a_body_is_read_no_faster_than_it_is_written() {
    let db = database().await;
    let taken = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&taken);
    let body = Body::from_stream(rows(20_000).inspect(move |_| {
        counting.fetch_add(1, Ordering::Relaxed);
    }));
    // Nobody writes while this has the writer.
    let tx = db.begin().await.unwrap();
    let held = async {
        while taken.load(Ordering::Relaxed) < 2_000 {
            yield_now().await;
        }
        for _ in 0..1_000 {
            yield_now().await;
        }
        let taken = taken.load(Ordering::Relaxed);
        tx.rollback().await.unwrap();
        taken
    };
    let (response, taken) = join(send(&db, "/items", NDJSON, body), held).await;
    assert!(
        taken <= 4_000,
        "{taken} rows were taken while none was written"
    );
    assert_eq!(
        (response.status(), count(&db).await),
        (StatusCode::OK, 20_000)
    );
}

/// A server whose handler tells how many rows are done, and when it has ended.
async fn serve(db: &Database) -> (TcpStream, mpsc::UnboundedReceiver<Option<u64>>) {
    let (tell, told) = mpsc::unbounded_channel();
    let state = (db.clone(), tell);
    let handler = async |State((db, tell)): State<(Database, mpsc::UnboundedSender<_>)>,
                         ImportBody(import): ImportBody| {
        let _ended = Ended(tell.clone());
        let bulk = db
            .bulk_insert::<Item>()
            .chunk_rows(10)
            .on_progress(|progress| {
                tell.send(Some(progress.rows)).unwrap();
                ControlFlow::Continue(())
            });
        ImportAnswer::from(bulk.run_import_stream::<Item>(import).await)
    };
    let router = Router::new()
        .route("/items", post(handler))
        .with_state(state);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, router).await });
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = "POST /items HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Type: text/csv\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    piece(&mut client, "id,name\n").await;
    (client, told)
}

/// Tells that a handler has returned, or was dropped.
struct Ended(mpsc::UnboundedSender<Option<u64>>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.send(None).unwrap();
    }
}

async fn piece(client: &mut TcpStream, text: &str) {
    let piece = format!("{:x}\r\n{text}\r\n", text.len());
    client.write_all(piece.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_client_may_send_slowly_and_others_write_meanwhile() {
    let db = database().await;
    let (mut client, mut told) = serve(&db).await;
    for n in 0..100 {
        piece(&mut client, "0,it").await;
        piece(&mut client, &format!("em {n}\n")).await;
        if n % 10 == 9 {
            assert_eq!(told.recv().await, Some(Some(n + 1)));
            let mut ctx = db.context();
            ctx.add(Item {
                id: 0,
                name: format!("between {n}"),
            });
            ctx.save_changes().await.unwrap();
        }
    }
    client.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("\"written\":100"),
        "{answer}"
    );
    assert_eq!(count(&db).await, 110);
}

#[tokio::test]
async fn of_a_client_that_goes_away_whole_transactions_stay_and_no_half_line() {
    let db = database().await;
    let (mut client, mut told) = serve(&db).await;
    for n in 0..25 {
        piece(&mut client, &format!("0,item {n}\n")).await;
    }
    piece(&mut client, "0,half of a na").await;
    while told.recv().await.unwrap() != Some(20) {}
    drop(client);
    while told.recv().await.unwrap().is_some() {}
    // Nobody holds the writer any more.
    let mut ctx = db.context();
    ctx.add(Item {
        id: 0,
        name: "after".into(),
    });
    ctx.save_changes().await.unwrap();
    let count = count(&db).await;
    assert!((21..=26).contains(&count), "{count}");
    let half = Item::query()
        .filter(Item::NAME.contains("half"))
        .count(&db)
        .await;
    assert_eq!(half.unwrap(), 0);
}
