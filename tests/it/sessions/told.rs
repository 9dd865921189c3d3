//! What is told beside the rows: commit numbers, tokens of saves, interceptors.

use std::sync::{Arc, Mutex};

use anabranch::{
    context::{Interceptor, SavedChange},
    prelude::*,
};
use anabranch_tests::{
    Mode, execute,
    note::{Note, note, notes},
};

use crate::sessions::{
    LEVELS, MODES, Result, conflict, found_number, number, run, session, session_of,
};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "orders")]
struct Order {
    #[entity(id)]
    id: i64,
    item: String,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

async fn shop(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<(Order, Note)>().await.unwrap();
    db
}

async fn order(s: &mut Session, item: &str) -> Result<i64> {
    let mut ctx = s.context();
    let added = ctx.add(Order {
        id: 0,
        item: item.to_owned(),
        seq: CommitSeq(0),
    });
    ctx.save_changes().await?;
    Ok(ctx[added].id)
}

#[tokio::test]
async fn commits_of_sessions_are_numbered_in_their_order() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = shop(mode).await;
            let mut sessions = Vec::new();
            for _ in 0..3 {
                let mut s = session_of(&db, isolation).await;
                let first = order(&mut s, "typed").await?;
                sqlx::query(
                    "INSERT INTO orders (id, item, seq) VALUES (next_id('orders'), 'raw', 0)",
                )
                .execute(&mut *s)
                .await?;
                sessions.push((s, first));
            }
            let mut last = 0;
            // In another order than they began.
            for (s, first) in sessions.into_iter().rev() {
                let number = s.commit().await?.expect("a stamped table was touched");
                assert!(number > last, "{number} after {last}");
                let rows = Order::query()
                    .filter(Order::SEQ.eq(CommitSeq(number)))
                    .all(&db)
                    .await?;
                assert_eq!(rows.len(), 2, "{mode:?}, {isolation:?}");
                assert_eq!(rows[0].id, first);
                last = number;
            }
            let mut untouched = session_of(&db, isolation).await;
            run(
                &mut *untouched,
                "INSERT INTO note (id, text) VALUES (1, 'a')",
            )
            .await?;
            assert_eq!(untouched.commit().await?, None);
        }
    }
    Ok(())
}

/// The number is given after the comparison, so it is none that sessions conflict about; who reads a stamp has read it.
#[tokio::test]
async fn a_stamp_that_was_read_is_compared() -> Result {
    let db = shop(Mode::Inline).await;
    let mut s = session(&db).await;
    order(&mut s, "first").await?;
    s.commit().await?;

    let mut s = session(&db).await;
    let stamps = "SELECT max(seq) FROM orders";
    number(&mut *s, stamps).await?;
    order(&mut s, "second").await?;
    execute(&db, "UPDATE orders SET item = 'changed' WHERE id = 1").await;
    let error = conflict(s).await;
    assert_eq!(error.statement(), Some(stamps));

    let mut s = session(&db).await;
    let own = order(&mut s, "own").await?;
    let mut ctx = s.context();
    let found = ctx.find::<Order>(own).await?.unwrap();
    assert_eq!(ctx[found].item, "own");
    drop(ctx);
    execute(
        &db,
        "INSERT INTO orders (id, item, seq) VALUES (77, 'theirs', 0)",
    )
    .await;
    s.commit().await?;
    Ok(())
}

#[tokio::test]
async fn a_save_with_a_token_is_known_once_its_session_is_committed() -> Result {
    for mode in MODES {
        for isolation in LEVELS {
            let db = shop(mode).await;
            let token = SaveToken::from_text("the first")?;
            let save = async |s: &mut Session, token: &SaveToken| {
                let mut ctx = s.context();
                ctx.add(Order {
                    id: 0,
                    item: "once".to_owned(),
                    seq: CommitSeq(0),
                });
                ctx.save_changes_with(token).await.map(drop)
            };
            let mut s = session_of(&db, isolation).await;
            save(&mut s, &token).await?;
            assert!(db.was_saved(&token).await?.is_none());
            s.rollback().await?;
            assert!(db.was_saved(&token).await?.is_none());

            let (mut one, mut two) = (
                session_of(&db, isolation).await,
                session_of(&db, isolation).await,
            );
            save(&mut one, &token).await?;
            save(&mut two, &token).await?;
            let number = one.commit().await?;
            let saved = db.was_saved(&token).await?.expect("it is committed");
            assert_eq!(saved.commit_seq.map(|seq| seq.0), number);
            let error = two.commit().await.unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Conflict | ErrorKind::AlreadySaved),
                "{error}"
            );
            let again = db
                .concurrent(async |s| save(s, &token).await)
                .await
                .unwrap_err();
            assert_eq!(again.kind(), ErrorKind::AlreadySaved, "{again}");
            assert_eq!(Order::query().count(&db).await?, 1, "{mode:?}");
        }
    }
    Ok(())
}

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Interceptor for Recorder {
    async fn saving(&self, ctx: &mut Context<'_>) -> Result {
        let inside = ctx.session().is_some();
        let rows = match ctx.session() {
            Some(session) => Note::query().count(session).await?,
            None => 0,
        };
        let line = format!("saving, in a session {inside}, {rows} rows");
        self.0.lock().unwrap().push(line);
        let first = ctx.iter::<Note>().next().map(|(row, _)| row);
        if let Some(row) = first {
            ctx[row].text.push('!');
        }
        Ok(())
    }

    fn saved(&self, _: &mut Context<'_>, saved: &Saved, changes: &[SavedChange]) {
        let line = format!("saved {} as {:?}", saved.inserted, changes[0].key);
        self.0.lock().unwrap().push(line);
    }

    fn failed(&self, _: &mut Context<'_>, error: &Error) {
        let line = format!("failed {:?}", error.kind());
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test]
async fn interceptors_take_part_in_saves_of_sessions() -> Result {
    for mode in MODES {
        let recorder = Recorder::default();
        let builder = mode
            .set(Database::builder(""))
            .interceptor(recorder.clone());
        let db = builder.open_temporary().await?;
        db.create_tables::<Note>().await?;
        execute(&db, "CREATE UNIQUE INDEX texts ON note (text)").await;
        db.concurrent(async |s| {
            let mut ctx = s.context();
            ctx.add(note("a"));
            ctx.save_changes().await?;
            let mut again = s.context();
            again.add(note("a"));
            again.save_changes().await.unwrap_err();
            Ok(())
        })
        .await?;
        assert_eq!(
            *recorder.0.lock().unwrap(),
            [
                "saving, in a session true, 0 rows",
                "saved 1 as [Integer(1)]",
                "saving, in a session true, 1 rows",
                "failed Unique",
            ],
            "{mode:?}"
        );
        assert_eq!(Note::query().one(&db).await?.text, "a!");
    }
    Ok(())
}

#[tokio::test]
async fn a_context_of_a_session_sees_what_its_session_does() -> Result {
    for mode in MODES {
        let db = notes(mode).await;
        let mut s = session(&db).await;
        let mut ctx = s.context();
        assert!(ctx.transaction().is_none());
        let added = ctx.add(note("typed"));
        let saved = ctx.save_changes().await?;
        assert_eq!((saved.inserted, saved.commit_seq), (1, None));
        let inner = ctx.session().expect("it is bound to one");
        run(&mut *inner, "UPDATE note SET text = 'raw'").await?;
        assert!(ctx.reload(added).await?);
        assert_eq!(ctx[added].text, "raw");
        ctx[added].text = "again".to_owned();
        ctx.save_changes().await?;
        ctx.remove(added);
        ctx.save_changes().await?;
        drop(ctx);
        assert_eq!(Note::query().count(&mut *s).await?, 0);
        s.commit().await?;
        assert_eq!(
            found_number(&db, "SELECT count(*) FROM note"),
            0,
            "{mode:?}"
        );
    }
    Ok(())
}
