//! A feed that mails nobody twice, while its mailer is killed and started again.

mod mailer;
mod order;

use std::{
    collections::HashMap,
    env, fmt,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    time::Duration,
};

use anabranch::prelude::*;
use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    task::JoinSet,
};

use crate::order::{Mail, Order, take};

const CUSTOMERS: i64 = 4;
const ORDERS: i64 = 100;
/// After how many milliseconds one mailer after the other is killed.
const LIVES: [u64; 9] = [40, 130, 65, 210, 50, 95, 170, 80, 120];

#[tokio::main]
async fn main() -> ExitCode {
    let done = match env::args_os().nth(1) {
        Some(path) => mailer::run(Path::new(&path)).await,
        None => shop().await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn shop() -> Result<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("shop.db");
    let db = Database::open(&path).await?;
    db.create_tables::<(Order, Mail)>().await?;

    let mut customers = JoinSet::new();
    for customer in 1..=CUSTOMERS {
        let db = db.clone();
        customers.spawn(async move {
            for _ in 0..ORDERS {
                // They think for a while.
                tokio::time::sleep(Duration::from_millis(8)).await;
                take(&db, customer).await?;
            }
            anyhow::Ok(())
        });
    }
    for (number, life) in LIVES.into_iter().enumerate() {
        let mut mailer = start(&path)?;
        tokio::time::sleep(Duration::from_millis(life)).await;
        kill(&mut mailer).await?;
        let (orders, mails) = (
            Order::query().count(&db).await?,
            Mail::query().count(&db).await?,
        );
        say(format_args!(
            "mailer {} was killed after {life} ms: {orders} orders, {mails} mails",
            number + 1
        ))?;
    }
    let mut last = start(&path)?;
    while let Some(done) = customers.join_next().await {
        done??;
    }
    tokio::select! {
        seen = all_mails(&db) => seen?,
        status = last.wait() => bail!("the mailer ended by itself: {}", status?),
    }
    kill(&mut last).await?;
    check(&db).await?;
    db.close().await?;
    Ok(())
}

/// Waits for the mails, as another consumer does: by a feed.
async fn all_mails(db: &Database) -> Result<()> {
    let mut feed = db
        .feed::<Mail>("shop")
        .look_every(Duration::from_millis(10));
    let mut mails = 0;
    while mails < CUSTOMERS * ORDERS {
        let batch = feed.next_batch().await?;
        mails += i64::try_from(batch.len())?;
        batch.ack().await?;
    }
    Ok(())
}

/// Each order has one mail, and they were written in the order of the commits.
async fn check(db: &Database) -> Result<()> {
    let orders = Order::query().all(db).await?;
    let by_id: HashMap<_, _> = orders.iter().map(|order| (order.id, order)).collect();
    let mut mails = Mail::query().all(db).await?;
    mails.sort_by_key(|mail| mail.seq);
    let commits = mails
        .chunk_by(|one, other| one.seq == other.seq)
        .map(|mailed| {
            let seqs = mailed.iter().map(|mail| by_id.get(&mail.order_id));
            let seqs: Option<Vec<_>> = seqs.map(|order| Some(order?.seq)).collect();
            seqs.context("a mail about no order")
        })
        .collect::<Result<Vec<_>>>()?;
    let in_order = commits
        .windows(2)
        .all(|two| two[0].iter().max() < two[1].iter().min());
    ensure!(in_order, "mails were written in another order");
    let expected = usize::try_from(CUSTOMERS * ORDERS)?;
    ensure!(
        (orders.len(), mails.len()) == (expected, expected),
        "{} orders and {} mails, of {expected}",
        orders.len(),
        mails.len()
    );
    say(format_args!(
        "{} orders, {} mails in their order, nobody twice and nobody left out",
        orders.len(),
        mails.len()
    ))?;
    say(format_args!(
        "the last one says: {}",
        mails[expected - 1].text
    ))
}

fn start(path: &PathBuf) -> Result<Child> {
    Command::new(env::current_exe()?)
        .arg(path)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("starting a mailer")
}

async fn kill(mailer: &mut Child) -> Result<()> {
    if let Some(status) = mailer.try_wait()? {
        bail!("a mailer ended by itself: {status}");
    }
    mailer.kill().await.context("killing a mailer")
}

fn say(what: fmt::Arguments<'_>) -> Result<()> {
    writeln!(io::stdout(), "{what}").context("printing")
}
