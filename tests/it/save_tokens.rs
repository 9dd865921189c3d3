//! Saves with a token: written once, and found again whatever became of whoever saved.

use std::{
    io::{BufRead, BufReader, Write},
    pin::pin,
    process::{Command, Stdio},
    time::Duration,
};

use anabranch::{context::SavedAt, prelude::*};
use anabranch_tests::{
    Mode, dropped_after, execute,
    load::{Line, Order, add_order, check_file, plainly},
    note::{Note, note, notes},
    outsider, start, try_execute,
};
use chrono::Utc;
use futures_util::future::join_all;

fn token(text: &str) -> SaveToken {
    SaveToken::from_text(text).unwrap()
}

async fn save_note(db: &Database, text: &str, token: &SaveToken) -> Result<Saved, Error> {
    let mut ctx = db.context();
    ctx.add(note(text));
    ctx.save_changes_with(token).await
}

async fn was_saved(db: &Database, text: &str) -> Option<SavedAt> {
    db.was_saved(&token(text)).await.unwrap()
}

async fn count(db: &Database) -> u64 {
    Note::query().count(db).await.unwrap()
}

/// Saves that share a commit, each with its token; all wait while a transaction holds the writer.
async fn together(
    db: &Database,
    saves: &mut [(Context<'static>, SaveToken)],
) -> Vec<Result<Saved, ErrorKind>> {
    let held = db.begin().await.unwrap();
    let saves = saves
        .iter_mut()
        .map(|(ctx, token)| ctx.save_changes_with(token));
    let mut saves = pin!(join_all(saves));
    start(saves.as_mut());
    held.rollback().await.unwrap();
    let answers = saves.await.into_iter();
    answers
        .map(|answer| answer.map_err(|error| error.kind()))
        .collect()
}

#[tokio::test]
async fn a_saved_token_is_found_with_its_time_and_commit_number() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        db.create_tables::<(Order, Line)>().await.unwrap();
        assert_eq!(was_saved(&db, "order").await, None);
        let mut ctx = db.context();
        let first = add_order(&mut ctx, 0, 1, 1);
        ctx.save_changes().await.unwrap();

        let before = Utc::now();
        let second = add_order(&mut ctx, 0, 2, 1);
        let saved = ctx.save_changes_with(&token("order")).await.unwrap();
        let found = was_saved(&db, "order").await.unwrap();
        assert!((before..=Utc::now()).contains(&found.time), "{mode:?}");
        assert_eq!(found.commit_seq, Some(ctx[second].seq));
        assert_eq!(saved.commit_seq, found.commit_seq);

        // Keys and numbers go on as if the table had not been made meanwhile.
        let third = add_order(&mut ctx, 0, 3, 1);
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx[third].id, ctx[first].id + 2);
        assert_eq!(ctx[third].seq.0, ctx[first].seq.0 + 2);

        // A table without commit numbers, and nothing at all.
        save_note(&db, "a note", &token("note")).await.unwrap();
        assert_eq!(was_saved(&db, "note").await.unwrap().commit_seq, None);
        let nothing = ctx.save_changes_with(&token("nothing")).await.unwrap();
        assert_eq!(nothing, Saved::default());
        assert!(was_saved(&db, "nothing").await.is_some());
        assert_eq!(was_saved(&db, "Note").await, None);
    }
}

#[tokio::test]
async fn a_save_with_a_known_token_is_not_repeated() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        for attempt in 0..3 {
            let mut ctx = db.context();
            // Without the token the second would be told of its own row: Unique.
            let row = ctx.add(Note {
                id: 7,
                text: format!("attempt {attempt}"),
            });
            let saved = ctx.save_changes_with(&token("once")).await;
            if attempt == 0 {
                saved.unwrap();
                continue;
            }
            assert_eq!(saved.unwrap_err().kind(), ErrorKind::AlreadySaved);
            assert!(ctx.has_changes(), "{mode:?}: the context is as before");
            ctx[row].id = 0;
            ctx.remove(row);
            let again = ctx.save_changes_with(&token("once")).await;
            assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadySaved);
            ctx.add(note("another"));
            ctx.save_changes_with(&SaveToken::new()).await.unwrap();
        }
        let texts: Vec<_> = Note::query().all(&db).await.unwrap();
        assert_eq!(texts[0].text, "attempt 0");
        assert_eq!(texts.len(), 3, "{mode:?}");
    }
}

#[tokio::test]
async fn of_saves_with_one_token_exactly_one_wins() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let mut saves: Vec<_> = (0..20)
            .map(|save| {
                let mut ctx = db.context();
                ctx.add(note(format!("{save}")));
                (ctx, token("one"))
            })
            .collect();
        let answers = together(&db, &mut saves).await;
        let won = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(won, 1, "{mode:?}: {answers:?}");
        for (answer, (ctx, _)) in answers.iter().zip(&saves) {
            assert!(matches!(answer, Ok(_) | Err(ErrorKind::AlreadySaved)));
            assert_eq!(ctx.has_changes(), answer.is_err());
        }
        assert_eq!(count(&db).await, 1, "{mode:?}");
    }
}

/// Two saves that would make the table fail, before and after one that does.
#[tokio::test]
async fn a_table_that_is_undone_with_its_first_save_is_made_by_the_next() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        execute(&db, "INSERT INTO note VALUES (7, 'taken')").await;
        let mut saves = Vec::new();
        for (name, id) in [("a", 7), ("b", 0), ("a", 7), ("c", 7), ("d", 0)] {
            let mut ctx = db.context();
            let text = name.to_owned();
            ctx.add(Note { id, text });
            saves.push((ctx, token(name)));
        }
        let answers = together(&db, &mut saves).await;
        let kinds: Vec<_> = answers.iter().map(|answer| answer.err()).collect();
        let taken = Some(ErrorKind::Unique);
        assert_eq!(kinds, [taken, None, taken, taken, None], "{mode:?}");
        for (name, there) in [("a", false), ("b", true), ("c", false), ("d", true)] {
            assert_eq!(was_saved(&db, name).await.is_some(), there, "{name}");
        }
        assert_eq!(db.statistics().largest_group, 2, "{mode:?}: one commit");

        // It can go away, as any table of the file, and comes back.
        outsider(db.path())
            .execute_batch("DROP TABLE anabranch_saves")
            .unwrap();
        assert_eq!(was_saved(&db, "b").await, None);
        save_note(&db, "b", &token("b")).await.unwrap();
        assert!(was_saved(&db, "b").await.is_some());
    }
}

#[tokio::test]
async fn a_token_is_as_lasting_as_its_transaction() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        db.create_tables::<(Order, Line)>().await.unwrap();

        let mut tx = db.begin().await.unwrap();
        tx.context()
            .save_changes_with(&token("rolled back"))
            .await
            .unwrap();
        tx.rollback().await.unwrap();
        assert_eq!(was_saved(&db, "rolled back").await, None, "{mode:?}");

        let mut tx = db.begin().await.unwrap();
        let undone = tx
            .savepoint(async |tx| {
                let mut ctx = tx.context();
                ctx.add(note("undone"));
                ctx.save_changes_with(&token("undone")).await?;
                Err::<(), _>(Error::application("not that"))
            })
            .await;
        assert_eq!(undone.unwrap_err().kind(), ErrorKind::Application);
        let mut ctx = tx.context();
        ctx.add(note("kept"));
        ctx.save_changes_with(&token("kept")).await.unwrap();
        ctx.add(note("again"));
        let again = ctx.save_changes_with(&token("kept")).await;
        assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadySaved);
        ctx.clear();
        add_order(&mut ctx, 0, 1, 1);
        ctx.save_changes_with(&token("order")).await.unwrap();
        drop(ctx);
        let number = tx.commit().await.unwrap();
        assert!(number.is_some());
        assert_eq!(was_saved(&db, "undone").await, None, "{mode:?}");
        // The number is the transaction's, for all that was saved in it.
        for name in ["kept", "order"] {
            let found = was_saved(&db, name).await.unwrap();
            assert_eq!(found.commit_seq.map(|seq| seq.0), number, "{mode:?}");
        }
        assert_eq!(count(&db).await, 1);
        let twice = save_note(&db, "again", &token("order")).await;
        assert_eq!(twice.unwrap_err().kind(), ErrorKind::AlreadySaved);
    }
}

/// A number is set only for what is there: the table itself may be undone with the savepoint that made it.
#[tokio::test]
async fn a_transaction_commits_without_the_tokens_that_were_undone() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        db.create_tables::<(Order, Line)>().await.unwrap();
        let mut tx = db.begin().await.unwrap();
        tx.savepoint(async |tx| {
            tx.context().save_changes_with(&token("undone")).await?;
            Err::<(), _>(Error::application("not that"))
        })
        .await
        .unwrap_err();
        let mut ctx = tx.context();
        add_order(&mut ctx, 0, 1, 1);
        ctx.save_changes().await.unwrap();
        drop(ctx);
        tx.commit().await.unwrap();
        assert_eq!(was_saved(&db, "undone").await, None, "{mode:?}");
        assert_eq!(Order::query().count(&db).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn was_saved_waits_for_what_is_queued() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let held = db.begin().await.unwrap();
        let (kept, dropped) = (token("kept"), token("dropped"));
        let mut save = Box::pin(save_note(&db, "kept", &kept));
        start(save.as_mut());
        let mut given_up = Box::pin(save_note(&db, "dropped", &dropped));
        start(given_up.as_mut());
        let mut asks = Box::pin(async {
            tokio::join!(db.was_saved(&kept), db.was_saved(&dropped), save.as_mut())
        });
        start(asks.as_mut());
        drop(given_up);
        held.rollback().await.unwrap();
        let (kept, dropped, saved) = asks.await;
        saved.unwrap();
        assert!(kept.unwrap().is_some(), "{mode:?}: it was queued before");
        assert_eq!(dropped.unwrap(), None, "{mode:?}");
        assert_eq!(count(&db).await, 1);
    }
}

#[tokio::test]
async fn was_saved_inside_of_a_write_is_refused() {
    let db = notes(Mode::Inline).await;
    let error = db
        .write(async |_tx| db.was_saved(&token("a")).await.map(drop))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Nested);
}

/// Others save meanwhile, so that one of them may be running what is dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_save_is_there_if_and_only_if_its_token_is() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        let beside = tokio::spawn({
            let db = db.clone();
            async move {
                let mut ctx = db.context();
                for round in 0.. {
                    ctx.add(note(format!("beside {round}")));
                    ctx.save_changes().await.unwrap();
                    ctx.clear();
                }
            }
        });
        for round in 0..200 {
            let (text, token) = (format!("dropped {round}"), SaveToken::new());
            let mut ctx = db.context();
            ctx.add(note(&text));
            let answer = dropped_after(round % 9, ctx.save_changes_with(&token)).await;
            let found = db.was_saved(&token).await.unwrap();
            let rows = || Note::query().filter(Note::TEXT.eq(&*text)).count(&db);
            let written = rows().await.unwrap();
            assert_eq!(found.is_some(), written == 1, "{mode:?} {round}");
            match answer {
                Some(saved) => assert!(saved.is_ok() && written == 1),
                None if round % 9 == 0 => assert_eq!(written, 0),
                None => {}
            }
            // The same context, and one of somebody who knows but the token.
            let again = ctx.save_changes_with(&token).await.map(drop);
            let again = again.map_err(|error| error.kind());
            assert_eq!(
                again,
                found.map_or(Ok(()), |_| Err(ErrorKind::AlreadySaved))
            );
            assert!(!ctx.has_changes(), "{mode:?}: written, and accepted");
            let other = save_note(&db, &text, &token).await.unwrap_err();
            assert_eq!(other.kind(), ErrorKind::AlreadySaved);
            assert_eq!(rows().await.unwrap(), 1, "{mode:?}");
        }
        beside.abort();
    }
}

/// The times of all tokens in the file: so many hours ago.
const AGE: &str = "UPDATE anabranch_saves SET saved_at =
     strftime('%Y-%m-%d %H:%M:%f000000', 'now', '-' || substr(token, 1, 2) || ' hours')
     WHERE token GLOB '[0-9][0-9] hours'";

#[tokio::test]
async fn a_token_is_kept_for_as_long_as_was_chosen() {
    for (hours, kept) in [(None, ["01", "23"].as_slice()), (Some(2), &["01"])] {
        let mut builder = Database::builder("");
        if let Some(hours) = hours {
            builder = builder.save_token_retention(Duration::from_hours(hours));
        }
        let db = builder.open_temporary().await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        let all = ["01", "23", "25"].map(|hours| format!("{hours} hours"));
        for name in &all {
            save_note(&db, name, &token(name)).await.unwrap();
        }
        execute(&db, AGE).await;
        // Saves without a token look after none.
        let mut ctx = db.context();
        ctx.add(note("no token"));
        ctx.save_changes().await.unwrap();
        assert!(was_saved(&db, "25 hours").await.is_some());
        save_note(&db, "next", &token("next")).await.unwrap();
        for name in &all {
            let is_kept = kept.iter().any(|hours| name.starts_with(hours));
            assert_eq!(was_saved(&db, name).await.is_some(), is_kept, "{name}");
        }
        assert!(was_saved(&db, "next").await.is_some());
        // What was forgotten can be saved anew.
        save_note(&db, "again", &token("25 hours")).await.unwrap();
    }
}

#[tokio::test]
async fn of_many_old_tokens_each_save_forgets_a_hundred_the_oldest_first() {
    for mode in Mode::ALL {
        let db = notes(mode).await;
        save_note(&db, "young", &token("young")).await.unwrap();
        execute(
            &db,
            "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 250)
             INSERT INTO anabranch_saves (token, saved_at)
             SELECT 'old ' || i, date('2000-01-01', i || ' days') FROM n",
        )
        .await;
        let other = outsider(db.path());
        let old = || -> (i64, Option<String>) {
            let sql =
                "SELECT count(*), min(saved_at) FROM anabranch_saves WHERE token GLOB 'old *'";
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            other.query_row(sql, [], row).unwrap()
        };
        // As long as it is there, it counts; and a save that is refused forgets nothing.
        let known = save_note(&db, "again", &token("old 249")).await;
        assert_eq!(known.unwrap_err().kind(), ErrorKind::AlreadySaved);
        assert_eq!(old().0, 250);
        for (save, left, oldest) in [
            ("1", 150, Some("2000-04-10")),
            ("2", 50, Some("2000-07-19")),
            ("3", 0, None),
        ] {
            save_note(&db, save, &token(save)).await.unwrap();
            assert_eq!(old(), (left, oldest.map(str::to_owned)), "{mode:?}");
        }
        assert!(was_saved(&db, "young").await.is_some());
        let plan: String = other
            .prepare("EXPLAIN QUERY PLAN SELECT token FROM anabranch_saves WHERE saved_at < '' ORDER BY saved_at LIMIT 100")
            .unwrap()
            .query_row([], |row| row.get("detail"))
            .unwrap();
        assert!(plan.contains("USING COVERING INDEX"), "{plan}");
    }
}

#[tokio::test]
async fn a_table_of_that_name_that_is_another_is_told() {
    let db = notes(Mode::Inline).await;
    execute(&db, "CREATE TABLE anabranch_saves (x)").await;
    let mut ctx = db.context();
    ctx.add(note("a"));
    let error = ctx.save_changes_with(&token("a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Statement, "{error:?}");
    let error = db.was_saved(&token("a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Statement, "{error:?}");
    ctx.save_changes().await.unwrap();
    assert_eq!(count(&db).await, 1);

    execute(&db, "DROP TABLE anabranch_saves").await;
    save_note(&db, "b", &token("b")).await.unwrap();
    let spoilt = "UPDATE anabranch_saves SET saved_at = 'yesterday'";
    try_execute(&db, spoilt).await.unwrap();
    let error = db.was_saved(&token("b")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert_eq!(error.column(), Some("saved_at"));
    assert!(!error.to_string().contains("yesterday"), "{error}");
}

#[tokio::test]
async fn two_processes_save_each_token_once() {
    const TOKENS: usize = 300;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db");
    let db = Database::open(&file).await.unwrap();
    db.create_tables::<(Order, Line)>().await.unwrap();
    db.close().await.unwrap();
    let mut peers = [(); 2].map(|()| {
        Command::new(env!("CARGO_BIN_EXE_peer"))
            .arg("tokens")
            .arg(&file)
            .arg(TOKENS.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    });
    for peer in &mut peers {
        peer.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let mut saved = Vec::new();
    for mut peer in peers {
        let lines = BufReader::new(peer.stdout.take().unwrap()).lines();
        saved.extend(lines.map(|line| line.unwrap().parse::<usize>().unwrap()));
        assert!(peer.wait().unwrap().success());
    }
    saved.sort_unstable();
    assert!(saved.into_iter().eq(0..TOKENS), "each of them once");
    let orders = check_file(&plainly(&file).unwrap());
    assert_eq!(orders.len(), TOKENS);
}
