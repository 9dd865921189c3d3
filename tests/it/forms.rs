//! What a form sends back, after somebody else has saved.

use anabranch::prelude::*;
use anabranch_tests::Mode;
use chrono::{DateTime, Utc};
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Page {
    #[entity(id)]
    id: i64,
    text: String,
    title: String,
    #[entity(created_at)]
    created: DateTime<Utc>,
    #[entity(updated_at)]
    updated: DateTime<Utc>,
    #[entity(version)]
    version: i64,
}

fn page(text: &str) -> Page {
    Page {
        id: 0,
        text: text.to_owned(),
        title: "title".to_owned(),
        created: DateTime::default(),
        updated: DateTime::default(),
        version: 0,
    }
}

/// A page that was saved, and then changed by somebody else.
async fn changed_meanwhile() -> (Database, Page) {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Page>().await.unwrap();
    let mut ctx = db.context();
    let page = ctx.add(page("old"));
    ctx.save_changes().await.unwrap();
    let first = ctx[page].clone();
    ctx[page].text = "newer".to_owned();
    ctx.save_changes().await.unwrap();
    (db, first)
}

/// The values that the form was filled in over are not those that were read: merged, it overwrote them unseen.
#[tokio::test]
async fn what_a_stale_form_changes_clashes() {
    let (db, first) = changed_meanwhile().await;
    let mut ctx = db.context();
    let page = ctx.find::<Page>(first.id).await.unwrap().unwrap();
    let form = json!({"text": "from the form", "version": first.version});
    ctx.set_values(page, &form).unwrap();
    let error = ctx.save_changes().await.unwrap_err();
    let clash = ctx.merge(&error).unwrap_err();
    assert_eq!(clash.conflicts()[0].clashing, ["text"]);

    let mut ctx = db.context();
    let page = ctx.find::<Page>(first.id).await.unwrap().unwrap();
    let form = json!({"title": "from the form", "version": first.version});
    ctx.set_values(page, &form).unwrap();
    let error = ctx.save_changes().await.unwrap_err();
    ctx.merge_with(&error, |_| Winner::Client).unwrap();
    ctx.save_changes().await.unwrap();
    let read = Page::find(&db, first.id).await.unwrap().unwrap();
    assert_eq!((&*read.text, &*read.title), ("newer", "from the form"));
}

/// `update` leaves `created_at` alone, but what followed from a conflict wrote the form's 1970.
#[tokio::test]
async fn a_form_that_wins_keeps_the_time_of_creation() {
    let (db, first) = changed_meanwhile().await;
    let mut ctx = db.context();
    let form = Page {
        created: DateTime::default(),
        updated: DateTime::default(),
        text: "from the form".to_owned(),
        ..first.clone()
    };
    ctx.update(form).unwrap();
    let error = ctx.save_changes().await.unwrap_err();
    ctx.client_wins(&error).unwrap();
    ctx.save_changes().await.unwrap();
    let read = Page::find(&db, first.id).await.unwrap().unwrap();
    assert_eq!(
        (&*read.text, read.created),
        ("from the form", first.created)
    );
}

/// The time of the last save is nobody's change.
#[tokio::test]
async fn times_of_saves_do_not_clash() {
    let (db, first) = changed_meanwhile().await;
    let mut ctx = db.context();
    let form = Page {
        text: "newer".to_owned(),
        ..first.clone()
    };
    ctx.update(form).unwrap();
    let error = ctx.save_changes().await.unwrap_err();
    ctx.merge(&error).unwrap();
    ctx.save_changes().await.unwrap();
    let read = Page::find(&db, first.id).await.unwrap().unwrap();
    assert_eq!(read.text, "newer");
}
