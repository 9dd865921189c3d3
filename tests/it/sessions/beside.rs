//! Sessions beside other programs that commit without a pause, or hang in the middle of a commit.

use std::{
    fs::{File, OpenOptions},
    mem::ManuallyDrop,
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anabranch::{database::DatabaseBuilder, prelude::*};
use anabranch_tests::{
    Mode,
    note::{Note, note},
    outsider, until,
};
use tokio::join;

use crate::sessions::{MODES, Result, number, session};

/// How many sessions are begun, each on a connection of its own.
const PLACES: usize = 20;

/// A file with one note.
async fn with_a_note(
    mode: Mode,
    choose: impl Fn(DatabaseBuilder) -> DatabaseBuilder,
) -> Result<Database> {
    let db = choose(mode.set(Database::builder("")))
        .open_temporary()
        .await?;
    db.create_tables::<Note>().await?;
    let mut ctx = db.context();
    ctx.add(note("there"));
    ctx.save_changes().await?;
    drop(ctx);
    Ok(db)
}

/// Another program, in the middle of writing. To the header of the wal-index it does what commits do, as fast as they
/// can be thought of, and no faster than its lock allows.
struct Program {
    /// Holds the lock of writers.
    _writer: rusqlite::Connection,
    /// Never closed, for that would drop all locks of this process on it.
    shm: ManuallyDrop<File>,
    /// The two copies, as they were found.
    headers: [u8; 96],
}

impl Program {
    fn writing(db: &Database) -> Self {
        let writer = outsider(db.path());
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut shm = db.path().as_os_str().to_owned();
        shm.push("-shm");
        let shm = OpenOptions::new().read(true).write(true).open(shm).unwrap();
        let mut headers = [0; 96];
        shm.read_exact_at(&mut headers, 0).unwrap();
        assert_eq!(headers[..48], headers[48..]);
        Self {
            _writer: writer,
            shm: ManuallyDrop::new(shm),
            headers,
        }
    }

    /// Has one copy of the header written, and not the other.
    fn hang(&self) {
        self.write(48, &header_after(&self.headers, 1));
    }

    /// Makes the header look as after so many commits.
    fn commit(&self, commits: u32) {
        let header = header_after(&self.headers, commits);
        self.write(48, &header);
        self.write(0, &header);
    }

    /// Leaves all as it was found.
    fn end(&self) {
        self.commit(0);
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        self.shm.write_all_at(bytes, offset).unwrap();
    }

    /// Commits without a pause for some time, and then not at all for some time, until it is told to stop.
    fn come_and_go(self, stop: &AtomicBool) {
        let some_time = Duration::from_millis(3);
        let mut commits = 0_u32;
        loop {
            let end = Instant::now() + some_time;
            while Instant::now() < end {
                commits = commits.wrapping_add(1);
                self.commit(commits);
            }
            self.end();
            if stop.load(Ordering::Relaxed) {
                return;
            }
            thread::park_timeout(some_time);
        }
    }
}

/// The header after more commits, with its checksum.
fn header_after(headers: &[u8; 96], commits: u32) -> [u8; 48] {
    let mut words = [0_u32; 12];
    for (word, bytes) in words.iter_mut().zip(headers.chunks(4)) {
        *word = u32::from_ne_bytes(bytes.try_into().unwrap());
    }
    words[2] = words[2].wrapping_add(commits);
    let (mut first, mut second) = (0_u32, 0_u32);
    for pair in words[..10].chunks(2) {
        first = first.wrapping_add(pair[0]).wrapping_add(second);
        second = second.wrapping_add(pair[1]).wrapping_add(first);
    }
    words[10..].copy_from_slice(&[first, second]);
    let mut header = [0; 48];
    for (bytes, word) in header.chunks_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
    header
}

/// The first read of a connection takes a snapshot like any BEGIN, and is beaten by commits like any. The writer's slot
/// keeps only this process from committing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_begin_on_new_connections_beside_a_program_that_hardly_pauses() -> Result {
    for mode in MODES {
        let db = with_a_note(mode, |builder| builder.sessions(PLACES)).await?;
        let (program, stop) = (Program::writing(&db), Arc::default());
        let told = Arc::clone(&stop);
        let comes_and_goes = thread::spawn(move || program.come_and_go(&told));
        let mut sessions = Vec::new();
        for _ in 0..PLACES {
            sessions.push(db.begin_concurrent(Isolation::Serializable).await);
        }
        stop.store(true, Ordering::Relaxed);
        comes_and_goes.join().unwrap();
        for s in sessions {
            let mut s = s?;
            assert!(!s.is_exclusive());
            assert_eq!(number(&mut *s, "SELECT count(*) FROM note").await?, 1);
            s.rollback().await?;
        }
    }
    Ok(())
}

/// On a runtime of one thread, which a wait of SQLite's own would stop.
#[tokio::test]
async fn a_session_waits_for_a_program_that_is_half_way_through_a_commit() -> Result {
    for (mode, waits_for) in MODES.into_iter().flat_map(|mode| {
        [
            (mode, "the connection of a session"),
            (mode, "the begin of a session"),
        ]
    }) {
        let db = with_a_note(mode, |builder| builder.sessions(1)).await?;
        if waits_for == "the begin of a session" {
            session(&db).await.rollback().await?;
        }
        let program = Program::writing(&db);
        program.hang();
        let goes_on = async {
            let holder = async || {
                db.writer_holder()
                    .is_some_and(|held| held.label == waits_for)
            };
            until("the session has the writer, and waits", holder).await;
            program.end();
        };
        let (mut s, ()) = join!(session(&db), goes_on);
        assert_eq!(number(&mut *s, "SELECT count(*) FROM note").await?, 1);
        s.rollback().await?;
    }
    Ok(())
}

/// SQLite looks for ten seconds by itself, and calls that "locking protocol".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_cannot_wait_for_a_hanging_program_is_told_so() -> Result {
    let wait = Duration::from_millis(100);
    let db = with_a_note(Mode::Threaded, |builder| builder.busy_timeout(wait)).await?;
    session(&db).await.rollback().await?;
    // Who cannot look whether the schema is another one by now says that there is no such table.
    assert_eq!(Note::query().count(&db).await?, 1);
    let program = Program::writing(&db);
    program.hang();
    let (begun, read) = join!(
        db.begin_concurrent(Isolation::Serializable),
        Note::query().count(&db)
    );
    let (begun, read) = (begun.unwrap_err(), read.unwrap_err());
    assert!(begun.waited().unwrap() >= wait, "{begun}");
    assert!(begun.to_string().contains("busy_timeout"), "{begun}");
    for error in [begun, read] {
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert!(error.is_retryable());
        let text = error.to_string();
        assert!(text.contains("hangs in the middle of a commit"), "{text}");
        assert!(!text.contains("protocol"), "{text}");
    }
    program.end();
    assert_eq!(Note::query().count(&db).await?, 1);
    session(&db).await.rollback().await
}
