//! Instruments: what was done is in them.

use std::{collections::BTreeSet, time::Duration};

use crate::between;
use crate::capture::{Told, Value, open, recorded};
use anabranch::{
    database::DatabaseBuilder,
    engine::ConcurrentOptions,
    feed::{GiveUp, Retries, Start},
    observe::Instrument,
    prelude::*,
};
use anabranch_tests::{
    note::{Note, note},
    until,
};

/// What is recorded of one database.
struct Recorded(Vec<Value>);

impl Recorded {
    fn of(database: &str) -> Self {
        let mut values = recorded();
        values.retain(|value| value.labels["db.namespace"] == database);
        Self(values)
    }

    fn values<'a>(&'a self, name: &'a str, label: &'a str) -> impl Iterator<Item = &'a Told> {
        let values = self.0.iter().filter(move |value| value.name == name);
        values
            .filter(move |value| label.is_empty() || value.labels.values().any(|it| it == label))
            .map(|value| &value.value)
    }

    /// What a counter has counted.
    fn counted(&self, name: &str, label: &str) -> u64 {
        let values = self.values(name, label).map(|value| match value {
            Told::Counter(count) => *count,
            other => panic!("{name}: {other:?}"),
        });
        values.sum()
    }

    fn samples(&self, name: &str, label: &str) -> Vec<f64> {
        let values = self.values(name, label).flat_map(|value| match value {
            Told::Histogram(samples) => samples.clone(),
            Told::Gauge(value) => vec![*value],
            Told::Counter(_) => panic!("{name} is a counter"),
        });
        values.collect()
    }
}

#[derive(Debug, Entity)]
struct Numbered {
    #[entity(id)]
    id: i64,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[derive(Debug, Entity)]
struct Other {
    #[entity(id)]
    id: i64,
    #[entity(commit_seq, index)]
    seq: CommitSeq,
}

#[tokio::test]
async fn what_was_done_is_in_the_instruments() {
    let folder = tempfile::tempdir().unwrap();
    let few = |options: DatabaseBuilder| options.readers(1).wal_autocheckpoint(10);
    let db = open(folder.path(), "instruments.db", few).await;
    db.create_tables::<Note>().await.unwrap();
    let tx = db.begin().await.unwrap();
    let saves = (0..4).map(|_| async {
        let mut ctx = db.context();
        ctx.add(note("x".repeat(4_000)));
        ctx.save_changes().await.unwrap();
    });
    let end = async { tx.commit().await.unwrap() };
    futures_util::future::join(futures_util::future::join_all(saves), end).await;

    // A feed.
    db.create_tables::<Numbered>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(Numbered {
        id: 0,
        seq: CommitSeq(0),
    });
    ctx.save_changes().await.unwrap();
    let mut feed = db.feed::<Numbered>("mailer");
    let twice = Retries::new()
        .attempts(2)
        .backoff(Duration::ZERO, Duration::ZERO);
    tokio::select! {
        ended = feed.each(twice.then(GiveUp::Skip), async |_| Err("no such address".into())) => panic!("{ended:?}"),
        () = until("it is acknowledged", async || {
            db.cursors().await.unwrap().iter().any(|cursor| cursor.seq == 1)
        }) => {}
    }

    // Conflicts and reruns.
    let mut ctx = db.context();
    let mut other = db.context();
    let mine = ctx.find::<Note>(1).await.unwrap().unwrap();
    let theirs = other.find::<Note>(1).await.unwrap().unwrap();
    other.remove(theirs);
    other.save_changes().await.unwrap();
    ctx[mine].text = "late".to_owned();
    assert!(ctx.save_changes().await.unwrap_err().is_conflict());
    db.concurrent_with(ConcurrentOptions::default(), async |s| {
        let count = Note::query().count(&mut *s).await?;
        if s.attempt() == 1 {
            between(&db, note("between")).await;
        }
        let mut ctx = s.context();
        ctx.add(note(count.to_string()));
        ctx.save_changes().await?;
        Ok(())
    })
    .await
    .unwrap();

    // Rows, errors, and a wait for the only reader.
    db.bulk_insert()
        .run((0..1_500).map(|n| note(n.to_string())))
        .await
        .unwrap();
    let read = db.read(async |snapshot| {
        Note::query().count(&mut *snapshot).await?;
        let waits = Note::query().count(&db);
        let looks = async { tokio::task::yield_now().await };
        let (waited, ()) = futures_util::future::join(
            tokio::time::timeout(Duration::from_millis(50), waits),
            looks,
        )
        .await;
        assert!(waited.is_err());
        Ok(())
    });
    read.await.unwrap();
    Note::query().all(&db).await.unwrap();
    let wrong = anabranch::query::raw::<i64>("SELECT nowhere FROM note", ());
    wrong.all(&db).await.unwrap_err();

    // The gauges are set every second.
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    let seen = loop {
        let seen = Recorded::of("instruments.db");
        let frames = seen.samples("anabranch.wal.frames", "");
        let consumers = seen.samples("anabranch.feed.lag", "mailer");
        if frames.iter().any(|frames| *frames > 0.0) && !consumers.is_empty() {
            break seen;
        }
        assert!(std::time::Instant::now() < deadline, "nobody looked");
        db.read(async |snapshot| Note::query().count(&mut *snapshot).await)
            .await
            .unwrap();
    };

    let statistics = db.statistics();
    for (name, count) in [
        ("anabranch.units", statistics.saves),
        ("anabranch.units.refused", statistics.refused),
        ("anabranch.conflicts", 1),
        ("anabranch.transactions", 1),
        ("anabranch.sessions", statistics.sessions),
        ("anabranch.sessions.conflicts", 1),
        ("anabranch.sessions.reruns", 1),
        ("anabranch.bulk.rows", 1_500),
        ("anabranch.session.alarms", 0),
        ("anabranch.feed.retries", 1),
        ("anabranch.feed.skipped", 1),
    ] {
        assert_eq!(seen.counted(name, ""), count, "{name}");
    }
    let sizes = seen.samples("anabranch.group.size", "");
    assert_eq!(sizes.iter().sum::<f64>(), statistics.saves as f64);
    assert!(sizes.contains(&4.0), "{sizes:?}");
    assert_eq!(seen.samples("anabranch.merge.duration", "").len(), 2);
    let waits = seen.samples("anabranch.queue.wait", "");
    assert!(waits.len() as u64 >= statistics.saves && waits.iter().all(|wait| *wait < 60.0));
    assert!(!seen.samples("anabranch.group.duration", "").is_empty());
    for (name, label) in [
        ("db.client.operation.duration", "SELECT"),
        ("db.client.operation.duration", "INSERT"),
        ("db.client.operation.duration", "SAVE"),
        ("db.client.operation.duration", "Statement"),
        ("db.client.connection.wait_time", "readers"),
        ("db.client.connection.wait_time", "sessions"),
        ("db.client.connection.count", "used"),
        ("anabranch.checkpoint.duration", "complete"),
        ("anabranch.wal.bytes", ""),
        ("anabranch.queue.depth", ""),
        ("anabranch.feed.lag", "mailer"),
    ] {
        assert!(!seen.samples(name, label).is_empty(), "{name} {label}");
    }
    assert!(seen.counted("anabranch.checkpoint.passes", "complete") > 0);

    // Each that there is has its unit and its text, and none is not in the list.
    for value in &seen.0 {
        let instrument = Instrument::ALL.iter().find(|it| it.name == value.name);
        let instrument = instrument.unwrap_or_else(|| panic!("{} is not listed", value.name));
        assert_eq!(value.description.as_deref(), Some(instrument.shows));
        let unit = value.unit.map(|unit| unit.as_canonical_label());
        let expected = match instrument.unit {
            "s" => "s",
            "By" => "B",
            _ => "",
        };
        assert_eq!(unit, Some(expected), "{}", value.name);
        let labels: BTreeSet<_> = value.labels.keys().map(String::as_str).collect();
        let known: BTreeSet<_> = (instrument.labels.iter().copied())
            .chain(["db.namespace"])
            .collect();
        assert!(labels.is_subset(&known), "{}: {labels:?}", value.name);
    }
    let told: BTreeSet<_> = seen.0.iter().map(|value| value.name.as_str()).collect();
    for instrument in Instrument::ALL {
        assert!(
            told.contains(instrument.name),
            "nobody tells {}",
            instrument.name
        );
    }
}

/// It is the one to hear of: it tells nothing itself.
#[tokio::test]
async fn a_consumer_that_does_not_run_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), "consumers.db", |options| options).await;
    db.create_tables::<(Numbered, Other)>().await.unwrap();
    for name in ["stopped", "removed", "other"] {
        db.feed::<Numbered>(name).lag().await.unwrap();
    }
    let mut ctx = db.context();
    for _ in 0..2 {
        ctx.add(Numbered {
            id: 0,
            seq: CommitSeq(0),
        });
        ctx.save_changes().await.unwrap();
    }
    // It has read nothing of what is there.
    let copy = db.feed::<Numbered>("copy").start(Start::Snapshot);
    copy.batch_rows(1)
        .next_batch()
        .await
        .unwrap()
        .ack()
        .await
        .unwrap();
    let has_been = |name: &str, label: &str, is: fn(f64) -> bool| {
        let seen = Recorded::of("consumers.db").samples(name, label);
        seen.into_iter().any(is)
    };
    until("both are behind", async || {
        tokio::time::sleep(Duration::from_millis(20)).await;
        ["stopped", "removed", "copy"].iter().all(|label| {
            has_been("anabranch.feed.lag", label, |lag| lag == 2.0)
                && has_been("anabranch.feed.age", label, |age| age > 0.0)
        })
    })
    .await;
    let batch = db.feed::<Numbered>("other").next_batch().await.unwrap();
    batch.ack().await.unwrap();
    db.remove_cursor("removed").await.unwrap();
    // Of another table: nothing that it waits for.
    ctx.add(Other {
        id: 0,
        seq: CommitSeq(0),
    });
    ctx.save_changes().await.unwrap();
    until("it is further behind, and the other is not", async || {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let seen = Recorded::of("consumers.db").samples("anabranch.feed.lag", "other");
        has_been("anabranch.feed.lag", "stopped", |lag| lag == 3.0) && seen.last() == Some(&0.0)
    })
    .await;
    assert!(!has_been("anabranch.feed.lag", "removed", |lag| lag == 3.0));
}
