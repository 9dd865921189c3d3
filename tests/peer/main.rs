//! A process that writes, for the tests that kill one, and for those that let two of them write one file.
//!
//! `peer crash FILE SEED EXECUTION SYNCHRONOUS` saves until it is killed; a line `KEY LINES WAY` for each order
//! says what was acknowledged. `peer write FILE MILLISECONDS NUMBER` waits for a line, saves for so long, and prints how many
//! orders and commits it made. `peer tokens FILE COUNT` waits for a line, saves an order with each of so many tokens, and
//! prints the numbers of those that it was first with. `peer units FILE` runs the statements of each line in one transaction, and
//! prints how many rows each wrote, or that they were refused. `peer sessions FILE MILLISECONDS NUMBER` waits for a line,
//! writes in sessions for so long, and prints how many orders, conflicts and alarms there were. `peer hold
//! FILE` opens a session, says so, and keeps it until a line comes. `peer open` opens, makes the tables of, and saves into each file that a line names.

mod sessions;

use std::{
    error::Error as StdError,
    io::{BufRead, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anabranch_tests::{
    load::{Line, Order, SESSION_LINES, add_line, add_order, token, write_order},
    random::Random,
};
use sqlx::AssertSqlSafe;
use tokio::{runtime::Handle, task::JoinSet};

type Outcome<T = ()> = Result<T, Box<dyn StdError + Send + Sync>>;

/// How many tasks save at once.
const TASKS: i64 = 8;

fn main() -> Outcome {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match *arguments {
            ["crash", file, seed, execution, synchronous] => {
                let builder = Database::builder(file)
                    .execution(match execution {
                        "threaded" => Execution::Threaded,
                        _ => Execution::Inline,
                    })
                    .synchronous(match synchronous {
                        "full" => Synchronous::Full,
                        _ => Synchronous::Normal,
                    });
                let db = builder.wal_autocheckpoint(50).open().await?;
                save_until_killed(&db, seed.parse()?).await
            }
            ["write", file, milliseconds, number] => {
                let lasting = Duration::from_millis(milliseconds.parse()?);
                save_for(Path::new(file), lasting, number.parse()?).await
            }
            ["tokens", file, count] => save_with_tokens(Path::new(file), count.parse()?).await,
            ["units", file] => write_units(Path::new(file)).await,
            ["sessions", file, milliseconds, number] => {
                let lasting = Duration::from_millis(milliseconds.parse()?);
                sessions_for(Path::new(file), lasting, number.parse()?).await
            }
            ["hold", file] => sessions::hold(Path::new(file)).await,
            ["open"] => open_each().await,
            _ => Err("what is this process to do?".into()),
        }
    })
}

/// One write to the pipe for each line, so that none is torn.
fn say(line: &str) -> Outcome {
    Ok(std::io::stdout()
        .lock()
        .write_all(format!("{line}\n").as_bytes())?)
}

async fn save_until_killed(db: &Database, seed: u64) -> Outcome {
    db.create_tables::<(Order, Line)>().await?;
    let mut random = Random::new(seed);
    let first = i64::try_from(seed >> 16)?;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (db, random) = (db.clone(), random.branch());
        on_a_thread(&mut tasks, async move || {
            save_as_drawn(&db, task, first, random).await
        });
    }
    let (db, random) = (db.clone(), random.branch());
    on_a_thread(&mut tasks, async move || {
        sessions::linger(&db, first, random).await
    });
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// Runs what the compiler does not see to be free to move between threads.
fn on_a_thread<T: Send + 'static>(
    tasks: &mut JoinSet<Outcome<T>>,
    work: impl AsyncFnOnce() -> Outcome<T> + Send + 'static,
) {
    let runtime = Handle::current();
    tasks.spawn_blocking(move || runtime.block_on(work()));
}

/// Saves in one way after the other.
async fn save_as_drawn(db: &Database, task: i64, first: i64, mut random: Random) -> Outcome {
    let mut known = Vec::new();
    for serial in first.. {
        let (id, lines, way) = match random.below(16) {
            0 => (write_order(db, task, serial).await?, 3, "write"),
            1..=3 if !known.is_empty() => {
                let which = random.below(known.len() as u64);
                let (id, lines) = extend(db, known[usize::try_from(which)?]).await?;
                (id, lines, "save")
            }
            4..=7 => {
                let id = sessions::beside(db, task, serial).await?;
                (id, SESSION_LINES, "session")
            }
            8 => {
                let id = sessions::contended(db, task, serial).await?;
                (id, SESSION_LINES, "session")
            }
            9 => {
                sessions::given_up(db, task, serial).await?;
                continue;
            }
            _ => {
                let mut ctx = db.context();
                let lines = 1 + i64::try_from(random.below(5))?;
                let order = add_order(&mut ctx, task, serial, lines);
                ctx.save_changes_with(&token(task, serial)).await?;
                (ctx[order].id, lines, "save")
            }
        };
        known.push(id);
        say(&format!("{id} {lines} {way}"))?;
    }
    Ok(())
}

async fn sessions_for(file: &Path, lasting: Duration, number: i64) -> Outcome {
    let db = Database::open(file).await?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    let end = Instant::now() + lasting;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (db, task) = (db.clone(), number * TASKS + task);
        on_a_thread(&mut tasks, async move || {
            sessions::write_until(&db, end, task).await
        });
    }
    let mut written = 0;
    while let Some(ended) = tasks.join_next().await {
        written += ended??;
    }
    let statistics = db.statistics();
    db.close().await?;
    say(&format!(
        "{written} {} {}",
        statistics.session_conflicts, statistics.session_alarms
    ))
}

async fn extend(db: &Database, id: i64) -> Outcome<(i64, i64)> {
    let mut ctx = db.context();
    let order = ctx.find::<Order>(id).await?;
    let order = order.ok_or("an acknowledged order is missing")?;
    add_line(&mut ctx, order);
    ctx.save_changes().await?;
    Ok((id, ctx[order].lines))
}

async fn save_for(file: &Path, lasting: Duration, number: i64) -> Outcome {
    let db = Database::open(file).await?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    let end = Instant::now() + lasting;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let db = db.clone();
        tasks.spawn(async move {
            let mut saved = 0_u64;
            let mut last = CommitSeq(0);
            while Instant::now() < end {
                let serial = i64::try_from(saved)?;
                let task = number * TASKS + task;
                if serial % 10 == 9 {
                    write_order(&db, task, serial).await?;
                } else {
                    let mut ctx = db.context();
                    let order = add_order(&mut ctx, task, serial, 2);
                    let stamp = ctx.save_changes().await?.commit_seq;
                    if stamp != Some(ctx[order].seq) || ctx[order].seq <= last {
                        return Err("commit numbers do not grow".into());
                    }
                    last = ctx[order].seq;
                }
                saved += 1;
            }
            Outcome::Ok(saved)
        });
    }
    let mut saved = 0;
    while let Some(ended) = tasks.join_next().await {
        saved += ended??;
    }
    let statistics = db.statistics();
    db.close().await?;
    let commits = statistics.groups + statistics.transactions;
    say(&format!("{saved} {commits} {}", statistics.busy))
}

async fn save_with_tokens(file: &Path, count: i64) -> Outcome {
    let db = Database::open(file).await?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    for serial in 0..count {
        let mut ctx = db.context();
        add_order(&mut ctx, 0, serial, 2);
        match ctx.save_changes_with(&token(0, serial)).await {
            Ok(_) => say(&serial.to_string())?,
            Err(error) if error.kind() == ErrorKind::AlreadySaved => {}
            Err(error) => return Err(error.into()),
        }
    }
    db.close().await?;
    Ok(())
}

async fn write_units(file: &Path) -> Outcome {
    let db = Database::open(file).await?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let written = db.write(async |tx| {
            let mut changed = Vec::new();
            for sql in line.split('\t') {
                let done = sqlx::query(AssertSqlSafe(sql)).execute(&mut *tx).await?;
                changed.push(done.rows_affected().to_string());
            }
            Ok(changed.join(" "))
        });
        match written.await {
            Ok(changed) => say(&changed)?,
            Err(error) if error.kind() == ErrorKind::Unique => say("refused")?,
            Err(error) => return Err(error.into()),
        }
    }
    db.close().await?;
    Ok(())
}

async fn open_each() -> Outcome {
    for file in std::io::stdin().lock().lines() {
        let db = Database::open(PathBuf::from(file?)).await?;
        db.create_tables::<(Order, Line)>().await?;
        let mut ctx = db.context();
        add_order(&mut ctx, i64::from(std::process::id()), 0, 2);
        ctx.save_changes().await?;
        db.close().await?;
        say("saved")?;
    }
    Ok(())
}
