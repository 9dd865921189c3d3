//! No value of a row is told of, whatever happens.

use std::{collections::BTreeSet, fmt, ops::ControlFlow, time::Duration};

use anabranch::{
    database::DatabaseBuilder,
    engine::{Isolation, Session},
    error::{ApplicationError, Result},
    feed::{GiveUp, Retries},
    prelude::*,
    query::raw,
};
use chrono::NaiveDate;

use crate::between;
use crate::capture::{Line, Value, events, lines, open, recorded};

const SECRET: &str = "7f3a-secret-9c1e";
/// The same as a number, and as it looks in a blob.
const NUMBER: i64 = 5_820_974_163_301;
const HEX: &str = "37663361";

/// It is its key that is not to be told.
#[derive(Debug, Entity)]
#[entity(table = "letters", tombstones)]
struct Letter {
    #[entity(id)]
    key: String,
    day: NaiveDate,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[derive(Debug, Clone, Entity)]
#[entity(table = "secrets")]
struct Secret {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    text: String,
    number: i64,
    #[entity(version)]
    version: i64,
}

fn secret() -> Secret {
    Secret {
        id: 0,
        text: SECRET.to_owned(),
        number: NUMBER,
        version: 0,
    }
}

/// An error of the application that says too much.
#[derive(Debug)]
struct Talkative;

impl fmt::Display for Talkative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SECRET} {NUMBER}")
    }
}

impl std::error::Error for Talkative {}

fn is_told(text: &str) -> bool {
    [SECRET, HEX, &NUMBER.to_string()]
        .iter()
        .any(|secret| text.contains(secret))
}

fn tells(line: &Line) -> bool {
    line.fields.values().any(|value| is_told(value))
}

/// The kinds of errors that were met.
#[derive(Debug, Default)]
struct Met(BTreeSet<String>);

impl Met {
    fn note<T: fmt::Debug>(&mut self, outcome: Result<T>) {
        let error = outcome.expect_err("this was to fail");
        self.0.insert(format!("{:?}", error.kind()));
    }
}

/// Consumers whose errors say too much, a row that cannot be read, and a key that no entity can have.
async fn feeds(db: &Database, met: &mut Met) -> Result<()> {
    db.create_tables::<Letter>().await?;
    let mut ctx = db.context();
    for n in 0..2 {
        ctx.add(Letter {
            key: format!("{SECRET}{n}"),
            day: NaiveDate::default(),
            seq: CommitSeq(0),
        });
    }
    ctx.save_changes().await?;
    let soon = Retries::new().backoff(Duration::ZERO, Duration::ZERO);
    met.note(talk(db, "stopped", soon.attempts(2)).await);
    for (name, retries) in [
        ("parked", soon.attempts(2).then(GiveUp::Park)),
        ("skipped", soon.attempts(2).then(GiveUp::Skip)),
    ] {
        // Its cursor has moved, then.
        let done = async {
            loop {
                let all = db.cursors().await.unwrap();
                if all
                    .iter()
                    .any(|cursor| &*cursor.name == name && cursor.seq > 0)
                {
                    break;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            ended = talk(db, name, retries) => met.note(ended),
            () = done => {}
        }
    }
    assert_eq!(db.feed::<Letter>("parked").parked(9).await?.len(), 2);
    sql(db, "DELETE FROM letters WHERE key = '7f3a-secret-9c1e0'").await?;
    sql(db, "UPDATE letters SET day = '7f3a-secret-9c1e'").await?;
    met.note(talk(db, "parked", soon).await);
    sql(
        db,
        "UPDATE letters SET day = '2026-12-01', key = '7f3a-secret-9c1e' || char(0)",
    )
    .await?;
    met.note(talk(db, "parked", soon).await);
    db.renew_epoch().await?;
    met.note(talk(db, "parked", soon).await);
    Ok(())
}

async fn talk(db: &Database, name: &str, retries: Retries) -> Result<()> {
    let mut feed = db.feed::<Letter>(name);
    feed.each(retries, async |event| {
        assert!(event.key().starts_with(SECRET));
        Err(Talkative.into())
    })
    .await
}

async fn changed_by_another(db: &Database) -> Result<()> {
    let mut ctx = db.context();
    let mut other = db.context();
    let id = Secret::query().first(db).await?.unwrap().id;
    let (mine, theirs) = (
        ctx.find::<Secret>(id).await?.unwrap(),
        other.find::<Secret>(id).await?.unwrap(),
    );
    other[theirs].number += 1;
    other.save_changes().await?;
    ctx[mine].number = NUMBER + 2;
    ctx.save_changes().await.map(drop)
}

async fn sql(db: &Database, text: &'static str) -> Result<()> {
    db.write(async |tx| {
        sqlx::query(text).execute(&mut *tx).await?;
        Ok(())
    })
    .await
}

async fn in_session(s: &mut Session, text: &'static str) -> Result<()> {
    sqlx::query(text).execute(&mut *s).await?;
    Ok(())
}

#[tokio::test]
async fn no_value_is_told_whatever_is_done_and_whatever_fails() {
    let folder = tempfile::tempdir().unwrap();
    let all = |options: DatabaseBuilder| {
        options
            .slow_statements(Duration::ZERO)
            .queue_timeout(Duration::from_millis(50))
    };
    let db = open(folder.path(), "secret.db", all).await;
    db.create_tables::<Secret>().await.unwrap();
    let mut met = Met::default();

    // What goes well.
    let mut ctx = db.context();
    ctx.add(secret());
    ctx.save_changes().await.unwrap();
    let same = Secret::query().filter(Secret::TEXT.eq(SECRET));
    assert_eq!(same.clone().all(&db).await.unwrap().len(), 1);
    let found = raw::<i64>(
        "SELECT count(*) FROM secrets WHERE text = '7f3a-secret-9c1e' AND number = 5820974163301
            AND x'37663361' != {} /* 7f3a-secret-9c1e */ -- 5820974163301",
        (SECRET,),
    );
    assert_eq!(found.all(&db).await.unwrap(), [1]);
    db.bulk_insert()
        .run((0..3).map(|n| Secret {
            text: format!("{SECRET}{n}"),
            ..secret()
        }))
        .await
        .unwrap();
    sql(
        &db,
        "UPDATE secrets SET text = text || '7f3a-secret-9c1e' WHERE number = 0",
    )
    .await
    .unwrap();
    db.concurrent(async |s| {
        in_session(s, "DELETE FROM secrets WHERE text = '7f3a-secret-9c1ex'").await
    })
    .await
    .unwrap();

    // What fails.
    let mut ctx = db.context();
    ctx.add(secret());
    met.note(ctx.save_changes().await);
    met.note(changed_by_another(&db).await);
    met.note(db.bulk_insert().run([secret()]).await.map_err(Error::from));
    for text in [
        "INSERT INTO secrets VALUES (NULL, '7f3a-secret-9c1e', NULL, 1)",
        "INSERT INTO secrets VALUES (NULL, '7f3a-secret-9c1e', 5820974163301, 1)",
        "SELECT 7f3a-secret-9c1e",
        "SELECT '7f3a-secret-9c1e",
        "SELECT load_extension('7f3a-secret-9c1e')",
        "SELECT json('7f3a-secret-9c1e')",
        "ATTACH '7f3a-secret-9c1e' AS other",
        "SELECT zeroblob(5820974163301)",
    ] {
        let failed = sql(&db, text).await;
        assert!(failed.is_err(), "{text}");
        met.note(failed);
        let failed = db.concurrent(async |s| in_session(s, text).await).await;
        assert!(failed.is_err(), "in a session: {text}");
        met.note(failed);
    }
    sql(
        &db,
        "CREATE TRIGGER loud BEFORE DELETE ON secrets BEGIN SELECT RAISE(ABORT, 'not 7f3a-secret-9c1e'); END",
    )
    .await
    .unwrap();
    met.note(Secret::query().delete().execute(&db).await);
    met.note(raw::<i64>("SELECT text FROM secrets", ()).all(&db).await);
    met.note(
        raw::<i64>("DELETE FROM secrets WHERE text = '7f3a-secret-9c1e'", ())
            .all(&db)
            .await,
    );
    met.note(
        Secret::query()
            .filter(Secret::NUMBER.eq(NUMBER + 9))
            .one(&db)
            .await,
    );
    let talkative = async |_: &mut Transaction| Err::<(), _>(Error::application(Talkative));
    met.note(db.write(talkative).await);
    let undone = db
        .write(async |tx| {
            let failed = tx
                .savepoint(async |tx| {
                    sqlx::query("ROLLBACK").execute(&mut *tx).await?;
                    Err::<(), _>(Error::application(Talkative))
                })
                .await;
            assert!(failed.is_err());
            Err::<(), _>(Error::application(Talkative))
        })
        .await;
    met.note(undone);
    let failing = (0..3).map(|n| {
        if n < 2 {
            Ok(secret())
        } else {
            Err(ApplicationError::from(Talkative))
        }
    });
    met.note(db.bulk_insert().run_try(failing).await.map_err(Error::from));
    let stopped = db.bulk_insert().on_progress(|_| ControlFlow::Break(()));
    let rows = (0..2_000).map(|n| Secret {
        text: format!("{SECRET}-{n}"),
        ..secret()
    });
    stopped.run(rows).await.unwrap();

    // A session that lost, with texts of the application in the error.
    let mut session = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    in_session(
        &mut session,
        "UPDATE secrets SET number = (SELECT sum(number) FROM secrets WHERE text != '7f3a-secret-9c1ey') WHERE id = 1",
    )
    .await
    .unwrap();
    let seen = Secret::query()
        .filter(Secret::TEXT.ne(SECRET))
        .count(&mut *session)
        .await;
    seen.unwrap();
    sql(
        &db,
        "INSERT INTO secrets VALUES (NULL, '7f3a-secret-9c1ez', 5820974163301, 1)",
    )
    .await
    .unwrap();
    met.note(session.commit().await);
    db.concurrent(async |s| {
        // It is what the conflict names, in an event.
        in_session(
            s,
            "SELECT count(*) FROM secrets WHERE text != '7f3a-secret-9c1ew'",
        )
        .await?;
        if s.attempt() == 1 {
            between(
                &db,
                Secret {
                    text: format!("{SECRET}!"),
                    ..secret()
                },
            )
            .await;
        }
        in_session(
            s,
            "UPDATE secrets SET number = 5820974163301 WHERE text = '7f3a-secret-9c1ey'",
        )
        .await
    })
    .await
    .unwrap();

    feeds(&db, &mut met).await.unwrap();

    // Held, and dropped.
    let held = db.begin().await.unwrap();
    let mut ctx = db.context();
    ctx.add(Secret {
        text: format!("{SECRET}?"),
        ..secret()
    });
    met.note(ctx.save_changes().await);
    drop(held);
    db.close().await.unwrap();
    met.note(Secret::query().count(&db).await);

    for kind in [
        "Application",
        "Closed",
        "Conflict",
        "Constraint",
        "Decode",
        "EpochChanged",
        "NotFound",
        "NotNull",
        "QueueTimeout",
        "Refused",
        "Statement",
        "TooBig",
        "Unique",
    ] {
        assert!(met.0.contains(kind), "{kind} was not met: {met:?}");
    }
    let reruns = events("a session is run again");
    assert!(
        reruns
            .iter()
            .any(|event| event.get("error").starts_with("Conflict")),
        "{reruns:?}"
    );
    let told = lines();
    assert!(told.iter().filter(|line| line.is_of("secret.db")).count() > 100);
    let telling: Vec<_> = told.iter().filter(|line| tells(line)).collect();
    assert!(telling.is_empty(), "{telling:#?}");
    let values = recorded();
    let of_ours = |it: &&Value| it.labels["db.namespace"] == "secret.db";
    assert!(values.iter().filter(of_ours).count() > 20);
    for value in &values {
        assert!(!is_told(&format!("{value:?}")), "{value:?}");
    }
}

#[test]
fn a_value_that_is_told_would_be_found() {
    let line = |text: String| Line {
        name: "",
        target: "",
        level: tracing::Level::INFO,
        is_span: false,
        span: None,
        parent: None,
        fields: [("message", text)].into(),
    };
    assert!(tells(&line(format!("a {SECRET}"))));
    assert!(tells(&line(NUMBER.to_string())));
    assert!(!tells(&line("nothing".to_owned())));
}
