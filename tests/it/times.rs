//! The time of a save in the types of other crates.

use anabranch::prelude::*;
use chrono::{DateTime, Utc};
use jiff::Timestamp;
use time::UtcDateTime;

#[derive(Debug, Entity)]
struct Note {
    #[entity(id)]
    id: i64,
    text: String,
    #[entity(created_at)]
    made: Timestamp,
    #[entity(updated_at)]
    changed: Option<UtcDateTime>,
}

/// The same table, as chrono has it.
#[derive(Debug, Entity)]
#[entity(table = "note")]
struct Seen {
    #[entity(id)]
    id: i64,
    made: DateTime<Utc>,
    changed: Option<DateTime<Utc>>,
}

#[tokio::test]
async fn jiff_and_time_have_the_same_instant_as_chrono() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    let before = Utc::now();
    let mut ctx = db.context();
    let note = ctx.add(Note {
        id: 0,
        text: "tea".into(),
        made: Timestamp::default(),
        changed: None,
    });
    ctx.save_changes().await.unwrap();
    let after = Utc::now();
    let made = ctx[note].made;
    let seen = Seen::query().one(&db).await.unwrap();
    assert!(before <= seen.made && seen.made <= after);
    assert_eq!(
        made.as_nanosecond(),
        i128::from(seen.made.timestamp_nanos_opt().unwrap())
    );
    assert_eq!(
        ctx[note].changed.unwrap().unix_timestamp_nanos(),
        made.as_nanosecond()
    );

    ctx[note].text.push('!');
    ctx.save_changes().await.unwrap();
    assert_eq!(ctx[note].made, made);
    let changed = ctx[note].changed.unwrap();
    assert!(changed.unix_timestamp_nanos() > made.as_nanosecond());
    let seen = Seen::query().one(&db).await.unwrap();
    assert_eq!(
        i128::from(seen.changed.unwrap().timestamp_nanos_opt().unwrap()),
        changed.unix_timestamp_nanos()
    );

    // What is set in a new one stays, and a bulk import sets it as a save does.
    let early: Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
    let notes = [early, Timestamp::UNIX_EPOCH].map(|made| Note {
        id: 0,
        text: String::new(),
        made,
        changed: None,
    });
    db.bulk_insert_optimized(notes).await.unwrap();
    let all = Note::query()
        .order_by(Note::ID.asc())
        .all(&db)
        .await
        .unwrap();
    assert_eq!(all[1].made, early);
    assert!(all[2].made >= made && all[2].changed.is_some());
}
