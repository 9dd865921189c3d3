//! Deferred columns of tracked entities: not read until asked for, and never written by accident.

use anabranch::{context::Winner, prelude::*, query::upsert, value::Value};
use anabranch_tests::{Mode, ask, execute, statement_log::Logged};
use rust_decimal::Decimal;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Document {
    #[entity(id)]
    id: i64,
    title: String,
    body: Deferred<String>,
    scan: Deferred<Option<Vec<u8>>>,
    #[entity(version)]
    version: i64,
}

/// Without a version, and with what is stored in other forms.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(index(columns(tags)))]
struct Draft {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    title: String,
    #[entity(json, default = vec!["new".to_owned()])]
    tags: Deferred<Vec<String>>,
    #[entity(scale = 2)]
    price: Deferred<Option<Decimal>>,
    #[entity(padded)]
    size: Deferred<u64>,
}

fn document(title: &str) -> Document {
    Document {
        id: 0,
        title: title.to_owned(),
        body: Deferred::new(format!("about {title}")),
        scan: Some(vec![1, 2]).into(),
        version: 0,
    }
}

fn draft(title: &str) -> Draft {
    Draft {
        id: 0,
        title: title.to_owned(),
        tags: vec!["a".to_owned()].into(),
        price: Some(Decimal::new(150, 2)).into(),
        size: Deferred::new(7),
    }
}

/// Two documents and a draft; `written` lists which deferred columns are written from now on.
async fn library(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<(Document, Draft)>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(document("tea"));
    ctx.add(document("jam"));
    ctx.add(draft("plan"));
    ctx.save_changes().await.unwrap();
    execute(
        &db,
        "CREATE TABLE written (name TEXT);
         CREATE TRIGGER body AFTER UPDATE OF body ON document BEGIN INSERT INTO written VALUES ('body'); END;
         CREATE TRIGGER scan AFTER UPDATE OF scan ON document BEGIN INSERT INTO written VALUES ('scan'); END;
         CREATE TRIGGER tags AFTER UPDATE OF tags ON draft BEGIN INSERT INTO written VALUES ('tags'); END;
         CREATE TRIGGER price AFTER UPDATE OF price ON draft BEGIN INSERT INTO written VALUES ('price'); END",
    )
    .await;
    db
}

async fn written(db: &Database) -> Vec<Value> {
    let names = ask("SELECT name FROM written ORDER BY rowid");
    anabranch::sql::Executor::read(db, names).await.unwrap()
}

async fn whole(db: &Database, id: i64) -> Document {
    let found = Document::query().filter(Document::ID.eq(id));
    let found = found.including(Document::BODY).including(Document::SCAN);
    found.one(db).await.unwrap()
}

fn text(value: &Deferred<String>) -> Option<&str> {
    value.get().map(String::as_str)
}

#[tokio::test]
async fn the_column_is_one_like_any_other_in_the_table() {
    let db = library(Mode::Inline).await;
    let sql = ask(
        "SELECT group_concat(sql) FROM sqlite_schema WHERE tbl_name IN ('document', 'draft') AND type <> 'trigger'",
    );
    let sql = anabranch::sql::Executor::read(&db, sql).await.unwrap();
    let Value::Text(sql) = &sql[0] else {
        panic!("no text: {sql:?}")
    };
    for part in [
        "\"body\" TEXT NOT NULL",
        "\"scan\" BLOB,",
        "\"tags\" TEXT NOT NULL DEFAULT '[\"new\"]'",
        "\"price\" INTEGER,",
        "\"size\" TEXT NOT NULL",
        "(\"tags\")",
    ] {
        assert!(sql.contains(part), "{part}: {sql}");
    }
}

#[tokio::test]
async fn a_save_leaves_a_column_alone_that_was_not_loaded() {
    for mode in Mode::ALL {
        let db = library(mode).await;
        let mut ctx = db.context();
        let tea = ctx.find::<Document>(1).await.unwrap().unwrap();
        assert_eq!((ctx[tea].body.get(), ctx[tea].scan.get()), (None, None));
        assert!(format!("{:?}", ctx[tea]).contains("body: (not loaded), scan: (not loaded)"));
        ctx[tea].title = "green tea".to_owned();
        assert_eq!(ctx.entry(tea).modified_columns(), ["title"]);
        assert!(!ctx.mark_modified(tea, Document::BODY));
        assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
        assert!(written(&db).await.is_empty());
        assert!(!ctx[tea].body.is_loaded());
        let row = whole(&db, 1).await;
        assert_eq!(
            (&row.title[..], text(&row.body)),
            ("green tea", Some("about tea"))
        );
        assert_eq!(row.scan.get(), Some(&Some(vec![1, 2])));
        ctx.remove(tea);
        assert_eq!(ctx.save_changes().await.unwrap().deleted, 1);
    }
}

#[tokio::test]
async fn one_that_is_set_without_having_been_read_is_written_alone() {
    for mode in Mode::ALL {
        let db = library(mode).await;
        let mut ctx = db.context();
        let tea = ctx.find::<Document>(1).await.unwrap().unwrap();
        ctx[tea].body.set("new".to_owned());
        assert_eq!(ctx.entry(tea).state(), EntityState::Modified);
        assert_eq!(ctx.entry(tea).original_value(Document::BODY), None);
        assert!(
            ctx.debug_view()
                .with_values()
                .to_string()
                .contains("body: (not loaded) -> \"new\"")
        );
        ctx.save_changes().await.unwrap();
        ctx[tea].scan.set(None);
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx.save_changes().await.unwrap().updated, 0);
        let names = ["body", "scan"].map(|name| Value::Text(name.to_owned()));
        assert_eq!(written(&db).await, names);
        let row = whole(&db, 1).await;
        assert_eq!(
            (text(&row.body), row.scan.get()),
            (Some("new"), Some(&None))
        );
        assert_eq!(ctx[tea], row);

        // And back again before it is saved.
        let jam = ctx.find::<Document>(2).await.unwrap().unwrap();
        ctx[jam].body.set("new".to_owned());
        assert!(ctx.reset_column(jam, Document::BODY));
        assert!(!ctx[jam].body.is_loaded() && !ctx.has_changes());
    }
}

#[tokio::test]
async fn a_loaded_one_that_was_emptied_is_not_written() {
    let db = library(Mode::Inline).await;
    let mut ctx = db.context();
    let tea = Document::query().including(Document::BODY);
    let tea = tea
        .filter(Document::ID.eq(1))
        .load_one(&mut ctx)
        .await
        .unwrap();
    ctx[tea].body = Deferred::default();
    assert_eq!(ctx.entry(tea).state(), EntityState::Unchanged);
    assert_eq!(ctx.save_changes().await.unwrap().updated, 0);
    ctx[tea].title = "green tea".to_owned();
    ctx.save_changes().await.unwrap();
    assert_eq!(text(&whole(&db, 1).await.body), Some("about tea"));
    assert!(ctx.load_column(tea, Document::BODY).await.unwrap());
    assert_eq!(text(&ctx[tea].body), Some("about tea"));
}

#[tokio::test]
async fn an_entity_without_it_is_not_inserted() {
    let db = library(Mode::Inline).await;
    let mut ctx = db.context();
    let unset = Document {
        scan: Deferred::default(),
        ..document("new")
    };
    let added = ctx.add(unset.clone());
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.table()),
        (ErrorKind::Value, Some("document"))
    );
    assert_eq!(error.column(), Some("scan"));
    assert!(!ctx.load_column(added, Document::SCAN).await.unwrap());
    let error = upsert(unset).execute(&db).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Value, Some("scan"))
    );
    ctx[added].scan.set(None);
    ctx.save_changes().await.unwrap();
    assert_eq!(whole(&db, 3).await, ctx[added]);
}

#[tokio::test]
async fn an_upsert_writes_it_and_tells_the_row_without() {
    let db = library(Mode::Inline).await;
    let again = Draft {
        size: Deferred::new(9),
        ..draft("plan")
    };
    let plan = upsert(again)
        .on(Draft::TITLE)
        .execute(&db)
        .await
        .unwrap()
        .into_inner();
    assert_eq!((plan.id, plan.size.get()), (1, None));
    let read = Draft::query()
        .including(Draft::SIZE)
        .including(Draft::TAGS)
        .including(Draft::PRICE);
    let read = read.one(&db).await.unwrap();
    assert_eq!((read.size.get(), read.tags.is_loaded()), (Some(&9), true));
    assert_eq!(read.price.get(), Some(&Some(Decimal::new(150, 2))));
}

#[tokio::test]
async fn one_column_is_loaded_beside_local_changes() {
    for mode in Mode::ALL {
        let db = library(mode).await;
        let mut ctx = db.context();
        let tea = ctx.find::<Document>(1).await.unwrap().unwrap();
        ctx[tea].title = "green tea".to_owned();
        assert!(ctx.load_column(tea, Document::BODY).await.unwrap());
        assert!(ctx.load_column(tea, Document::TITLE).await.unwrap());
        assert_eq!(
            (&ctx[tea].title[..], text(&ctx[tea].body)),
            ("green tea", Some("about tea"))
        );
        assert_eq!(
            ctx.entry(tea).original_value(Document::BODY).as_deref(),
            Some("about tea")
        );
        assert_eq!(ctx.entry(tea).modified_columns(), ["title"]);
        assert!(!ctx[tea].scan.is_loaded());
        // What is set stays.
        ctx[tea].scan.set(None);
        assert!(ctx.load_column(tea, Document::SCAN).await.unwrap());
        assert_eq!(ctx[tea].scan.get(), Some(&None));
        ctx.save_changes().await.unwrap();
        assert_eq!(written(&db).await, [Value::Text("scan".to_owned())]);
        assert_eq!(whole(&db, 1).await, ctx[tea]);

        let jam = ctx.find::<Document>(2).await.unwrap().unwrap();
        execute(&db, "DELETE FROM document WHERE id = 2").await;
        assert!(!ctx.load_column(jam, Document::BODY).await.unwrap());
        ctx.remove(jam);
        assert!(!ctx.load_column(jam, Document::BODY).await.unwrap());
        ctx.detach(jam);
        assert!(!ctx.load_column(jam, Document::BODY).await.unwrap());
    }
}

#[tokio::test]
async fn a_column_of_a_row_that_changed_is_not_mixed_in() {
    for mode in Mode::ALL {
        let db = library(mode).await;
        let mut ctx = db.context();
        let tea = ctx.find::<Document>(1).await.unwrap().unwrap();
        let plan = ctx.find::<Draft>(1).await.unwrap().unwrap();
        execute(
            &db,
            "UPDATE document SET title = 'coffee', body = 'about coffee', version = 2 WHERE id = 1;
             UPDATE draft SET title = 'other'",
        )
        .await;
        // With a version and without.
        let error = ctx.load_column(plan, Draft::SIZE).await.unwrap_err();
        assert!(error.is_conflict() && !ctx[plan].size.is_loaded());
        let error = ctx.load_column(tea, Document::BODY).await.unwrap_err();
        assert!(error.is_conflict() && !ctx[tea].body.is_loaded());
        // Nor by a query that happens to read it.
        let query = Document::query()
            .including(Document::BODY)
            .filter(Document::ID.eq(1));
        assert_eq!(query.load_one(&mut ctx).await.unwrap(), tea);
        assert!(!ctx[tea].body.is_loaded());
        ctx[tea].scan.set(None);
        ctx.merge(&error).unwrap();
        assert_eq!(ctx[tea].title, "coffee");
        assert!(ctx.load_column(tea, Document::BODY).await.unwrap());
        assert_eq!(
            (text(&ctx[tea].body), ctx[tea].version),
            (Some("about coffee"), 2)
        );
        ctx.save_changes().await.unwrap();
        assert_eq!(whole(&db, 1).await, ctx[tea]);
        ctx.reload(plan).await.unwrap();
        assert!(ctx.load_column(plan, Draft::SIZE).await.unwrap());
    }
}

#[tokio::test]
async fn a_later_query_that_reads_it_fills_it_in_and_one_that_does_not_leaves_it() {
    for mode in Mode::ALL {
        let db = library(mode).await;
        let mut ctx = db.context();
        let [jam, tea] = Document::query()
            .order_by(Document::TITLE.asc())
            .load(&mut ctx)
            .await
            .unwrap()[..]
        else {
            panic!("two documents")
        };
        ctx[tea].title = "green tea".to_owned();
        ctx[tea].scan.set(None);
        let all = Document::query()
            .including(Document::BODY)
            .including(Document::SCAN);
        assert_eq!(all.load(&mut ctx).await.unwrap().len(), 2);
        assert_eq!(
            (text(&ctx[tea].body), &ctx[tea].title[..]),
            (Some("about tea"), "green tea")
        );
        assert_eq!(ctx[tea].scan.get(), Some(&None));
        assert_eq!(ctx[jam].scan.get(), Some(&Some(vec![1, 2])));
        assert_eq!(ctx.entry(jam).state(), EntityState::Unchanged);
        assert_eq!(Document::query().load(&mut ctx).await.unwrap().len(), 2);
        assert!(ctx[jam].body.is_loaded());
        let all = ctx.entry(tea).modified_columns();
        assert_eq!(all, ["title", "scan"]);
        ctx.save_changes().await.unwrap();
        assert_eq!(whole(&db, 1).await, ctx[tea]);
    }
}

#[tokio::test]
async fn a_reload_reads_what_was_loaded() {
    let db = library(Mode::Inline).await;
    let mut ctx = db.context();
    let tea = ctx.find::<Document>(1).await.unwrap().unwrap();
    ctx.load_column(tea, Document::BODY).await.unwrap();
    execute(
        &db,
        "UPDATE document SET body = 'newer', scan = NULL, version = 2 WHERE id = 1",
    )
    .await;
    let there = ctx.database_values(tea).await.unwrap().unwrap();
    assert_eq!((text(&there.body), there.scan.get()), (Some("newer"), None));
    assert!(ctx.reload(tea).await.unwrap());
    assert_eq!(
        (text(&ctx[tea].body), ctx[tea].scan.get()),
        (Some("newer"), None)
    );
}

#[tokio::test]
async fn conflicts_know_the_whole_row() {
    for mode in Mode::ALL {
        let db = library(mode).await;
        // What is not loaded goes with the row; what is set unread clashes, for nobody knows what it was.
        let mut ctx = db.context();
        let tea = ctx.find::<Document>(1).await.unwrap().unwrap();
        ctx[tea].title = "green tea".to_owned();
        ctx[tea].scan.set(None);
        let change = "UPDATE document SET body = 'theirs', version = version + 1 WHERE id = 1";
        execute(&db, change).await;
        let error = ctx.save_changes().await.unwrap_err();
        let conflict = &error.conflicts()[0];
        assert_eq!(
            (&conflict.original[2], &conflict.current[2]),
            (&Value::Unread, &Value::Unread)
        );
        let there = conflict.database_as::<Document>().unwrap().unwrap();
        assert_eq!(text(&there.body), Some("theirs"));
        assert_eq!(conflict.clashing, ["scan"]);
        assert!(ctx.merge(&error).is_err());
        ctx.merge_with(&error, |clash| {
            assert!(clash.is(Document::SCAN));
            Winner::Client
        })
        .unwrap();
        assert!(!ctx[tea].body.is_loaded());
        ctx.save_changes().await.unwrap();
        let row = whole(&db, 1).await;
        assert_eq!(
            (&row.title[..], text(&row.body), row.scan.get()),
            ("green tea", Some("theirs"), Some(&None))
        );
        assert!(ctx.load_column(tea, Document::BODY).await.unwrap());
        assert_eq!(row, ctx[tea]);

        // Ours over the row: only what is ours.
        ctx.clear();
        let tea = ctx.find::<Document>(1).await.unwrap().unwrap();
        ctx[tea].title = "black tea".to_owned();
        execute(&db, change).await;
        let error = ctx.save_changes().await.unwrap_err();
        ctx.client_wins(&error).unwrap();
        ctx.save_changes().await.unwrap();
        assert_eq!(text(&whole(&db, 1).await.body), Some("theirs"));

        // The row as it is.
        ctx[tea].title = "tea".to_owned();
        execute(&db, change).await;
        let error = ctx.save_changes().await.unwrap_err();
        ctx.store_wins(&error).unwrap();
        assert_eq!(whole(&db, 1).await, ctx[tea]);
    }
}

/// What was deleted by another save can be inserted again only as a whole.
#[tokio::test]
async fn a_row_that_is_gone_is_not_inserted_again_without_it() {
    let db = library(Mode::Inline).await;
    let mut ctx = db.context();
    let tea = ctx.find::<Document>(1).await.unwrap().unwrap();
    ctx[tea].title = "green tea".to_owned();
    execute(&db, "DELETE FROM document WHERE id = 1").await;
    let error = ctx.save_changes().await.unwrap_err();
    ctx.client_wins(&error).unwrap();
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Value, Some("body"))
    );
    assert!(Document::find(&db, 1).await.unwrap().is_none());
}

#[tokio::test]
async fn a_detached_one_that_comes_back_overwrites_nothing() {
    let db = library(Mode::Inline).await;
    let mut ctx = db.context();
    let mut tea = Document::find(&db, 1).await.unwrap().unwrap();
    tea.title = "green tea".to_owned();
    let handle = ctx.update(tea).unwrap();
    assert_eq!(ctx.entry(handle).modified_columns(), ["title"]);
    ctx.save_changes().await.unwrap();
    assert!(written(&db).await.is_empty());
    assert_eq!(text(&whole(&db, 1).await.body), Some("about tea"));
}

#[tokio::test]
async fn values_by_name_set_it_and_null_says_nothing_about_it() {
    let db = library(Mode::Inline).await;
    let mut ctx = db.context();
    let tea = ctx.find::<Document>(1).await.unwrap().unwrap();
    let form = serde_json::json!({ "title": "green tea", "body": null, "scan": null });
    ctx.set_values(tea, &form).unwrap();
    assert_eq!(ctx.entry(tea).modified_columns(), ["title"]);
    ctx.set_values(tea, &serde_json::json!({ "scan": [7] }))
        .unwrap();
    assert_eq!(ctx[tea].scan.get(), Some(&Some(vec![7])));
    ctx.set_values(tea, &form).unwrap();
    assert_eq!(ctx.entry(tea).modified_columns(), ["title", "scan"]);
    let error = ctx
        .set_values(tea, &serde_json::json!({ "body": 7 }))
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.column()),
        (ErrorKind::Value, Some("body"))
    );
    ctx.save_changes().await.unwrap();
    let row = whole(&db, 1).await;
    assert_eq!(
        (text(&row.body), row.scan.get()),
        (Some("about tea"), Some(&Some(vec![7])))
    );
}

#[test]
fn serde_tells_one_that_is_not_loaded_from_one_that_is_empty() {
    let read = |json: &str| serde_json::from_str::<Deferred<String>>(json).unwrap();
    let write = |value: &Deferred<String>| serde_json::to_string(value).unwrap();
    assert_eq!(write(&Deferred::default()), "null");
    assert_eq!(write(&Deferred::new(String::new())), "\"\"");
    assert_eq!(read("null"), Deferred::default());
    assert_eq!(read("\"\""), Deferred::new(String::new()));
    let missing: std::collections::HashMap<String, Deferred<Option<i64>>> =
        serde_json::from_str("{\"a\": 1, \"b\": null}").unwrap();
    assert_eq!(
        (missing["a"].get(), missing["b"].get()),
        (Some(&Some(1)), None)
    );
}

#[tokio::test]
async fn it_is_so_in_transactions_and_sessions() {
    let db = library(Mode::Inline).await;
    db.concurrent(async |s| {
        let mut ctx = s.context();
        let tea = ctx.find::<Document>(1).await?.unwrap();
        ctx[tea].title = "green tea".to_owned();
        assert!(ctx.load_column(tea, Document::BODY).await?);
        ctx.save_changes().await?;
        Ok(())
    })
    .await
    .unwrap();
    let mut tx = db.begin().await.unwrap();
    let mut ctx = db.context();
    let tea = ctx.find::<Document>(1).await.unwrap().unwrap();
    ctx[tea].title = "black tea".to_owned();
    ctx.save_changes_in(&mut tx).await.unwrap();
    // What the row holds depends on how the transaction ends.
    let error = ctx.load_column(tea, Document::BODY).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    tx.commit().await.unwrap();
    assert!(ctx.load_column(tea, Document::BODY).await.unwrap());
    assert!(written(&db).await.is_empty());
    assert_eq!(
        (&ctx[tea].title[..], text(&ctx[tea].body)),
        ("black tea", Some("about tea"))
    );
}

#[tokio::test]
async fn a_value_that_was_not_read_is_never_bound() {
    let db = library(Mode::Inline).await;
    let logged = Logged::new(&db);
    let found = Document::find(&logged, 1).await.unwrap().unwrap();
    assert!(!found.body.is_loaded() && !logged.take()[0].contains("body"));
    let read = anabranch_tests::ask_with("SELECT ?1", vec![Value::Unread]);
    let error = anabranch::sql::Executor::read(&db, read).await.unwrap_err();
    assert!(error.to_string().contains("was not read"), "{error}");
    let raw = anabranch::query::raw::<i64>(
        "SELECT count(*) FROM document WHERE body = ?",
        (Value::Unread,),
    );
    let error = raw.all(&db).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
}
