//! Interceptors: when they are called, what they may do, and what a panic in one does.

use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

use anabranch::{
    context::{ChangeKind, Interceptor, NewlyTracked, SavedChange},
    prelude::*,
    value::Value,
};
use anabranch_tests::{
    Mode, execute,
    note::{Note, note},
};
use futures_util::FutureExt;

type Result<T> = anabranch::error::Result<T>;

/// Writes down what it is called with.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Interceptor for Recorder {
    async fn saving(&self, ctx: &mut Context<'_>) -> Result<()> {
        self.note(format!("saving {}", ctx.len()));
        Ok(())
    }

    fn saved(&self, ctx: &mut Context<'_>, saved: &Saved, changes: &[SavedChange]) {
        let changes: Vec<_> = changes
            .iter()
            .map(|change| {
                assert_eq!(change.table, "note");
                format!("{:?} {} {:?}", change.kind, change.entity, change.key)
            })
            .collect();
        let clean = !ctx.has_changes();
        self.note(format!(
            "saved {} {} {}, clean {clean}: {}",
            saved.inserted,
            saved.updated,
            saved.deleted,
            changes.join(", ")
        ));
    }

    fn failed(&self, ctx: &mut Context<'_>, error: &Error) {
        self.note(format!("failed {:?} {}", error.kind(), ctx.has_changes()));
    }

    fn tracked(&self, entity: NewlyTracked<'_>) {
        let text = entity.get::<Note>().map(|note| note.text.clone());
        self.note(format!(
            "tracked {} {:?} {}",
            entity.name(),
            entity.state(),
            text.unwrap()
        ));
    }
}

async fn recorded(mode: Mode) -> (Database, Recorder) {
    let recorder = Recorder::default();
    let builder = mode
        .set(Database::builder(""))
        .interceptor(recorder.clone());
    let db = builder.open_temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    (db, recorder)
}

/// Polls a future once and drops it.
async fn dropped_after_one_poll<F: Future>(future: F) {
    let mut future = pin!(future);
    let polled = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
    assert!(polled.is_pending());
}

#[tokio::test]
async fn a_save_tells_what_it_wrote_with_real_keys() {
    for mode in Mode::ALL {
        let (db, recorder) = recorded(mode).await;
        let mut ctx = db.context();
        let one = ctx.add(note("one"));
        let two = ctx.add(note("two"));
        ctx.save_changes().await.unwrap();
        ctx[one].text.push('!');
        ctx.remove(two);
        ctx.save_changes().await.unwrap();
        assert_eq!(
            recorder.take(),
            [
                "tracked Note Added one",
                "tracked Note Added two",
                "saving 2",
                "saved 2 0 0, clean true: Inserted Note [Integer(1)], Inserted Note [Integer(2)]",
                "saving 2",
                "saved 0 1 1, clean true: Updated Note [Integer(1)], Deleted Note [Integer(2)]",
            ],
            "{mode:?}"
        );
        let mut other = db.context();
        assert_eq!(Note::query().load(&mut other).await.unwrap().len(), 1);
        assert_eq!(Note::query().load(&mut other).await.unwrap().len(), 1);
        other.save_changes().await.unwrap();
        assert_eq!(
            recorder.take(),
            ["tracked Note Unchanged one!", "saving 1"],
            "read twice, tracked once; with nothing to write nothing is told"
        );
    }
}

#[tokio::test]
async fn a_failed_save_tells_why_at_whatever_step_it_failed() {
    let (db, recorder) = recorded(Mode::Inline).await;
    execute(&db, "CREATE UNIQUE INDEX texts ON note (text)").await;
    let mut ctx = db.context();
    let one = ctx.add(note("same"));
    let two = ctx.add(note("same"));
    recorder.take();
    ctx.save_changes().await.unwrap_err();
    assert_eq!(recorder.take(), ["saving 2", "failed Unique true"]);
    ctx[two].text = "has a \0".to_owned();
    ctx.save_changes().await.unwrap_err();
    assert_eq!(recorder.take(), ["saving 2", "failed Value true"]);
    ctx.detach(two);
    ctx.intercept(Refuses("same"));
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.to_string(), "same is refused");
    assert_eq!(recorder.take(), ["saving 1", "failed Application true"]);
    ctx[one].text = "another".to_owned();
    ctx.save_changes().await.unwrap();
    assert_eq!(Note::query().count(&db).await.unwrap(), 1);
}

/// A rule of the application: no note with this text.
struct Refuses(&'static str);

impl Interceptor for Refuses {
    async fn saving(&self, ctx: &mut Context<'_>) -> Result<()> {
        if ctx.iter::<Note>().any(|(_, note)| note.text == self.0) {
            return Err(Error::application(format!("{} is refused", self.0)));
        }
        Ok(())
    }
}

/// Adds a note for each that is added, from what it reads, and removes those called "temporary".
struct Doubles;

impl Interceptor for Doubles {
    async fn saving(&self, ctx: &mut Context<'_>) -> Result<()> {
        let count = Note::query().load(ctx).await?.len();
        let temporary: Vec<_> = ctx
            .iter::<Note>()
            .filter(|(_, note)| note.text == "temporary")
            .map(|(handle, _)| handle)
            .collect();
        for handle in temporary {
            ctx.remove(handle);
        }
        ctx.add(note(format!("after {count}")));
        Ok(())
    }
}

#[tokio::test]
async fn what_saving_adds_and_removes_is_part_of_the_save() {
    let db = Database::builder("")
        .interceptor(Doubles)
        .open_temporary()
        .await
        .unwrap();
    db.create_tables::<Note>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(note("one"));
    ctx.add(note("temporary"));
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 2);
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 1);
    let texts = Note::query().order_by(Note::ID.asc()).all(&db).await;
    let texts: Vec<_> = texts.unwrap().into_iter().map(|note| note.text).collect();
    assert_eq!(texts, ["one", "after 0", "after 2"]);
}

#[tokio::test]
async fn contexts_of_transactions_and_of_clones_are_told_too() {
    let (db, recorder) = recorded(Mode::Inline).await;
    db.clone()
        .write(async |tx| {
            let mut ctx = tx.context();
            ctx.add(note("inside"));
            ctx.save_changes().await.map(drop)
        })
        .await
        .unwrap();
    let mut tx = db.begin().await.unwrap();
    let mut ctx = tx.context();
    ctx.intercept(recorder.clone());
    ctx.save_changes().await.unwrap();
    assert_eq!(
        recorder.take(),
        [
            "tracked Note Added inside",
            "saving 1",
            "saved 1 0 0, clean true: Inserted Note [Integer(1)]",
            "saving 0",
            "saving 0",
        ]
    );
}

/// A save that was dropped is told of by the call that settles it, and only once.
#[tokio::test]
async fn a_dropped_save_is_told_of_by_the_call_that_settles_it() {
    let (db, recorder) = recorded(Mode::Threaded).await;
    let guard = db.begin().await.unwrap();
    let mut ctx = db.context();
    ctx.add(note("queued"));
    dropped_after_one_poll(ctx.save_changes()).await;
    recorder.take();
    assert!(ctx.find::<Note>(7).await.unwrap().is_none());
    assert_eq!(recorder.take(), ["failed Interrupted true"]);
    assert!(ctx.find::<Note>(7).await.unwrap().is_none());
    assert!(recorder.take().is_empty());
    guard.rollback().await.unwrap();
    ctx.save_changes().await.unwrap();
    assert_eq!(recorder.take().len(), 2);
}

struct Saves;

impl Interceptor for Saves {
    async fn saving(&self, ctx: &mut Context<'_>) -> Result<()> {
        ctx.save_changes().await.map(drop)
    }
}

#[tokio::test]
async fn a_save_within_a_save_is_refused() {
    let (db, recorder) = recorded(Mode::Inline).await;
    let mut ctx = db.context();
    ctx.intercept(Saves);
    ctx.add(note("one"));
    recorder.take();
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("an interceptor cannot save"));
    assert_eq!(recorder.take(), ["saving 1", "failed Refused true"]);
}

/// Waits for ever the first time, so that its save is dropped.
#[derive(Default)]
struct Waits(AtomicBool);

impl Interceptor for Waits {
    async fn saving(&self, ctx: &mut Context<'_>) -> Result<()> {
        if !self.0.swap(true, Ordering::Relaxed) {
            ctx.add(note("added while saving"));
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_save_that_is_dropped_while_an_interceptor_waits_can_be_called_again() {
    let (db, recorder) = recorded(Mode::Inline).await;
    let mut ctx = db.context();
    ctx.intercept(Waits::default());
    ctx.add(note("one"));
    dropped_after_one_poll(ctx.save_changes()).await;
    recorder.take();
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 1);
    assert_eq!(recorder.take().len(), 2, "saving and saved, no failed");
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    Saving,
    Saved,
    Failed,
}

/// Panics once.
struct Panics(At, AtomicBool);

impl Panics {
    fn at(&self, at: At) {
        assert!(
            at != self.0 || self.1.swap(true, Ordering::Relaxed),
            "a panic of the application"
        );
    }
}

impl Interceptor for Panics {
    async fn saving(&self, _: &mut Context<'_>) -> Result<()> {
        self.at(At::Saving);
        Ok(())
    }

    fn saved(&self, _: &mut Context<'_>, _: &Saved, _: &[SavedChange]) {
        self.at(At::Saved);
    }

    fn failed(&self, _: &mut Context<'_>, _: &Error) {
        self.at(At::Failed);
    }
}

#[tokio::test]
async fn a_panic_of_an_interceptor_leaves_the_context_usable() {
    for at in [At::Saving, At::Saved, At::Failed] {
        let db = Database::temporary().await.unwrap();
        db.create_tables::<Note>().await.unwrap();
        execute(&db, "CREATE UNIQUE INDEX texts ON note (text)").await;
        execute(&db, "INSERT INTO note (text) VALUES ('taken')").await;
        let mut ctx = db.context();
        ctx.intercept(Panics(at, AtomicBool::default()));
        let recorder = Recorder::default();
        ctx.intercept(recorder.clone());
        let text = if at == At::Failed { "taken" } else { "free" };
        let one = ctx.add(note(text));
        recorder.take();
        let save = AssertUnwindSafe(ctx.save_changes()).catch_unwind().await;
        assert!(save.is_err());
        let told = recorder.take();
        let state = ctx.entry(one).state();
        match at {
            At::Saving => assert_eq!((state, told.len()), (EntityState::Added, 0)),
            At::Saved => assert_eq!((state, told.len()), (EntityState::Unchanged, 2)),
            At::Failed => assert_eq!((state, told.len()), (EntityState::Added, 2)),
        }
        ctx[one].text = "other".to_owned();
        let saved = ctx.save_changes().await.unwrap();
        assert_eq!(saved.inserted + saved.updated, 1);
        assert_eq!(Note::query().count(&db).await.unwrap(), 2);
    }
}

#[tokio::test]
async fn the_changes_of_a_detached_entity_are_told_with_its_key() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    struct Keys(Arc<Mutex<Vec<SavedChange>>>);
    impl Interceptor for Keys {
        fn saved(&self, _: &mut Context<'_>, _: &Saved, changes: &[SavedChange]) {
            self.0.lock().unwrap().extend_from_slice(changes);
        }
    }
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    let mut ctx = db.context();
    ctx.intercept(Keys(Arc::clone(&seen)));
    let one = ctx.add(note("one"));
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    ctx.detach(one);
    assert!(seen.lock().unwrap().is_empty(), "not before the commit");
    tx.commit().await.unwrap();
    assert!(ctx.find::<Note>(2).await.unwrap().is_none());
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (&seen[0].key[..], seen[0].kind),
        (&[Value::Integer(1)][..], ChangeKind::Inserted)
    );
}

/// Adds a note for every save.
struct Logs;

impl Interceptor for Logs {
    async fn saving(&self, ctx: &mut Context<'_>) -> Result<()> {
        ctx.add(note("log"));
        Ok(())
    }
}

/// What `saving` added stayed in the context when the save failed, and each further try added it once more.
#[tokio::test]
async fn what_saving_adds_is_saved_once_however_often_the_save_is_tried() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<Note>().await.unwrap();
        let mut ctx = db.context();
        let first = ctx.add(note("kept"));
        ctx.save_changes().await.unwrap();
        ctx.intercept(Logs);
        ctx[first].text = "changed".to_owned();

        // Refused by the database, dropped while queued, and dropped while an interceptor waits.
        let twin = ctx.add(Note {
            id: ctx[first].id,
            ..note("twin")
        });
        for _ in 0..2 {
            assert!(ctx.save_changes().await.is_err());
            assert_eq!(ctx.len(), 2, "{mode:?}");
        }
        ctx.detach(twin);
        let tx = db.begin().await.unwrap();
        dropped_after_one_poll(ctx.save_changes()).await;
        tx.rollback().await.unwrap();
        ctx.intercept(Waits::default());
        dropped_after_one_poll(ctx.save_changes()).await;

        let later = ctx.add(note("later"));
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx[later].text, "later");
        let logs = Note::query().filter(Note::TEXT.eq("log"));
        assert_eq!(logs.count(&db).await.unwrap(), 1, "{mode:?}");
    }
}
