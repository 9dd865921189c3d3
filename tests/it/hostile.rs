//! What an application does not do on purpose: wakers that poll at once or panic, no runtime at all, runtimes that
//! end too early.
#![allow(
    clippy::unwrap_used,
    reason = "what does not work here must fail the test"
)]

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use anabranch::prelude::*;
use futures_util::{FutureExt, StreamExt};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "parts")]
struct Part {
    #[entity(id)]
    id: i64,
    name: String,
}

fn part(name: &str) -> Part {
    Part {
        id: 0,
        name: name.to_owned(),
    }
}

/// Runs `body` on a thread, and fails when it takes too long.
fn in_time(body: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel::<()>();
    let runs = std::thread::spawn(move || {
        body();
        drop(done);
    });
    let ended = ended.recv_timeout(Duration::from_secs(20));
    assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected), "it hangs");
    runs.join().unwrap();
}

fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        std::thread::park();
    }
}

#[test]
fn everything_works_without_a_runtime() {
    for mode in anabranch_tests::Mode::ALL {
        in_time(move || {
            block_on(async {
                let db = mode.temporary().await;
                db.create_tables::<Part>().await.unwrap();
                let mut ctx = db.context();
                ctx.add(part("a"));
                ctx.save_changes().await.unwrap();
                db.write(async |tx| {
                    sqlx::query("INSERT INTO parts (name) VALUES ('b')")
                        .execute(&mut *tx)
                        .await?;
                    let mut ctx = tx.context();
                    ctx.add(part("c"));
                    ctx.save_changes().await
                })
                .await
                .unwrap();
                let rows: Vec<_> = Part::query().stream(&db).collect().await;
                assert_eq!(rows.len(), 3);
                drop(db.begin().await.unwrap());
                db.vacuum().await.unwrap();
                db.checkpoint().await.unwrap();
                db.close().await.unwrap();
            });
        });
    }
}

/// A future that is polled by whoever wakes it, right there.
#[derive(Default)]
struct Inline(Mutex<(Option<Task>, bool)>);

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Inline {
    fn run(future: impl Future<Output = ()> + Send + 'static) {
        Arc::new(Self(Mutex::new((Some(future.boxed()), false)))).wake();
    }

    /// The future, unless it is being polled: then it is polled once more.
    fn take(&self) -> Option<Task> {
        let mut state = self.0.lock().unwrap();
        state.1 = state.0.is_none();
        state.0.take()
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        while let Some(mut future) = self.take() {
            if future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_ready()
            {
                return;
            }
            let mut state = self.0.lock().unwrap();
            state.0 = Some(future);
            if !state.1 {
                return;
            }
        }
    }
}

#[test]
fn a_waker_may_poll_at_once() {
    for mode in anabranch_tests::Mode::ALL {
        in_time(move || {
            let db = block_on(mode.temporary());
            block_on(db.create_tables::<Part>()).unwrap();
            let (send, receive) = mpsc::channel();
            let held = block_on(db.begin()).unwrap();
            for number in 0..20 {
                let (db, send) = (db.clone(), send.clone());
                Inline::run(async move {
                    let mut ctx = db.context();
                    ctx.add(part(&number.to_string()));
                    ctx.save_changes().await.unwrap();
                    if number % 5 == 0 {
                        db.write(async |tx| tx.context().save_changes().await)
                            .await
                            .unwrap();
                    }
                    send.send(()).unwrap();
                });
            }
            block_on(held.commit()).unwrap();
            for _ in 0..20 {
                receive.recv_timeout(Duration::from_secs(15)).unwrap();
            }
        });
    }
}

#[test]
fn a_waker_may_poll_at_once_when_a_wait_expires() {
    in_time(|| {
        let db = block_on(
            Database::builder("")
                .queue_timeout(Duration::from_millis(100))
                .readers(1)
                .open_temporary(),
        )
        .unwrap();
        block_on(db.create_tables::<Part>()).unwrap();
        let mut ctx = db.context();
        for _ in 0..2000 {
            ctx.add(part("x"));
        }
        block_on(ctx.save_changes()).unwrap();
        let held = block_on(db.begin()).unwrap();
        let mut rows = Part::query().stream(&db);
        block_on(rows.next());
        let (send, receive) = mpsc::channel();
        for _ in 0..3 {
            let (db, send) = (db.clone(), send.clone());
            Inline::run(async move {
                let mut ctx = db.context();
                ctx.add(part("y"));
                let error = ctx.save_changes().await.unwrap_err();
                send.send(error.kind()).unwrap();
                // Once more, from inside of the wake-up.
                let error = ctx.save_changes().await.unwrap_err();
                send.send(error.kind()).unwrap();
                let error = Part::query().count(&db).await.unwrap_err();
                send.send(error.kind()).unwrap();
                let error = Part::query().count(&db).await.unwrap_err();
                send.send(error.kind()).unwrap();
            });
        }
        for _ in 0..12 {
            let kind = receive.recv_timeout(Duration::from_secs(5)).unwrap();
            assert!(matches!(
                kind,
                ErrorKind::QueueTimeout | ErrorKind::PoolTimeout
            ));
        }
        drop(rows);
        drop(held);
    });
}

/// Panics when it is woken, once it is armed.
struct Panics(AtomicBool);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        assert!(!self.0.load(Ordering::SeqCst), "a waker that panics");
    }
}

#[test]
fn a_waker_that_panics_harms_no_neighbour() {
    for mode in anabranch_tests::Mode::ALL {
        in_time(move || {
            let db = block_on(mode.temporary());
            block_on(db.create_tables::<Part>()).unwrap();
            let held = block_on(db.begin()).unwrap();
            let mut contexts: Vec<_> = (0..4).map(|_| db.context()).collect();
            let mut saves: Vec<_> = contexts
                .iter_mut()
                .map(|ctx| {
                    ctx.add(part("x"));
                    ctx.save_changes().boxed()
                })
                .collect();
            let panics = Arc::new(Panics(AtomicBool::new(false)));
            for save in &mut saves {
                let waker = Waker::from(Arc::clone(&panics));
                for _ in 0..3 {
                    let polled = save.as_mut().poll(&mut Context::from_waker(&waker));
                    assert!(polled.is_pending());
                }
            }
            panics.0.store(true, Ordering::SeqCst);
            block_on(held.commit()).unwrap();
            let mut neighbour = db.context();
            neighbour.add(part("neighbour"));
            block_on(neighbour.save_changes()).unwrap();
            for save in &mut saves {
                block_on(save).unwrap();
            }
        });
    }
}

#[test]
fn a_queue_of_no_end_is_refused() {
    let db = block_on(
        Database::builder("")
            .write_queue_capacity(usize::MAX)
            .open_temporary(),
    );
    let kind = db.map(drop).map_err(|error| error.kind());
    assert!(matches!(kind, Ok(()) | Err(ErrorKind::Options)), "{kind:?}");
}

#[test]
fn a_runtime_that_ends_takes_nothing_along() {
    in_time(|| {
        let db = block_on(Database::temporary()).unwrap();
        block_on(db.create_tables::<Part>()).unwrap();
        for round in 0..10 {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            for task in 0..20 {
                let db = db.clone();
                runtime.spawn(async move {
                    loop {
                        let mut ctx = db.context();
                        ctx.add(part("x"));
                        ctx.save_changes().await.unwrap();
                        if task % 4 == 0 {
                            db.write(async |tx| {
                                sqlx::query("INSERT INTO parts (name) VALUES ('b')")
                                    .execute(&mut *tx)
                                    .await?;
                                tokio::task::yield_now().await;
                                Ok(())
                            })
                            .await
                            .unwrap();
                        }
                        let mut rows = Part::query().stream(&db);
                        rows.next().await;
                        tokio::task::yield_now().await;
                    }
                });
            }
            std::thread::park_timeout(Duration::from_millis(30));
            if round % 2 == 0 {
                runtime.shutdown_background();
            } else {
                drop(runtime);
            }
            block_on(async {
                let mut ctx = db.context();
                ctx.add(part("after"));
                ctx.save_changes().await.unwrap();
                db.write(async |tx| {
                    sqlx::query("SELECT 1").execute(&mut *tx).await?;
                    Ok(())
                })
                .await
                .unwrap();
                Part::query().count(&db).await.unwrap();
            });
        }
        block_on(db.close()).unwrap();
    });
}
