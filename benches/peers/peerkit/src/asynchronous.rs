//! The runner of async peers: tasks of a tokio runtime.

use std::future::Future;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::measure::{OPS, failed, keep_latencies, max_rss_kb, settle, start_clock};
use crate::plan::{all_rows, orders, read_id, right_row, rmw_id};
use crate::report::{Report, could_not, install_panic_hook, watchdog};
use crate::{Config, Entity, NewOrder, NewWide, Plan, Res, Rng, note};

/// The operations of a peer with an async API. `Clone` gives each task a handle.
pub trait AsyncPeer: Clone + Send + Sync + 'static {
    type Row: Entity;
    /// Opens the database (creating it and its two tables where they are
    /// missing), with its whole pool of connections already open.
    fn open(config: &Config) -> impl Future<Output = Res<Self>> + Send;
    /// Saves one new entity in its own transaction; returns its id.
    fn save(&self, order: NewOrder) -> impl Future<Output = Res<i64>> + Send;
    /// Inserts all rows, as one transaction, the fastest way the library has.
    fn bulk(&self, rows: Vec<NewOrder>) -> impl Future<Output = Res<()>> + Send;
    fn bulk_wide(&self, rows: Vec<NewWide>) -> impl Future<Output = Res<()>> + Send;
    /// One transaction: insert, `pause(wait_us)`, commit. Returns the retries.
    fn tx_work(&self, order: NewOrder, wait_us: u64) -> impl Future<Output = Res<u64>> + Send;
    fn get(&self, id: i64) -> impl Future<Output = Res<Self::Row>> + Send;
    fn scan(&self) -> impl Future<Output = Res<Vec<Self::Row>>> + Send;
    /// One transaction: load entity `id`, add one to its quantity, save it.
    /// Returns the retries.
    fn rmw(&self, id: i64) -> impl Future<Output = Res<u64>> + Send;
    /// The number of rows and the sum of the quantities of a table.
    fn count(&self, table: &'static str) -> impl Future<Output = Res<(i64, i64)>> + Send;
    /// Closes the database, with its log written back to it where it can.
    fn close(self) -> impl Future<Output = Res<()>> + Send;
}

/// Runs the workload that the command line names. `worker_threads` of the
/// runtime: `None` for tokio's default, one per core.
pub fn run_async<P: AsyncPeer>(worker_threads: impl FnOnce(&Config) -> Option<usize>) {
    let config = Config::from_args();
    install_panic_hook();
    watchdog(&config);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = worker_threads(&config) {
        builder.worker_threads(threads);
    }
    let runtime = builder.enable_all().build().unwrap();
    let for_task = config.clone();
    // In a task, as the handlers of a server are, not on the main thread.
    let outcome = runtime.block_on(async { tokio::spawn(run::<P>(for_task)).await });
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => could_not(&config, "run", error),
        Err(error) => could_not(&config, "run", error),
    }
    runtime.shutdown_background();
}

async fn run<P: AsyncPeer>(config: Config) -> Res<()> {
    let plan = Plan::of(&config);
    let table = if matches!(plan, Plan::BulkWide { .. }) {
        "wide"
    } else {
        "orders"
    };
    if let Plan::Count = plan {
        let peer = P::open(&config).await?;
        let (rows, sum) = peer.count("orders").await?;
        let (wide, _) = peer.count("wide").await?;
        note(format!("quantity_sum={sum}"));
        Report {
            config: &config,
            seconds: 0.0,
            ops: (rows + wide) as u64,
            max_rss_kb: max_rss_kb(),
            expected_rows: None,
            found_rows: Some(rows + wide),
            lost_updates: None,
        }
        .print();
        return Ok(());
    }
    if plan.seed_rows() > 0 {
        let peer = P::open(&config).await?;
        peer.bulk(plan.seed()).await?;
        peer.close().await?;
    }
    let peer = P::open(&config).await?;
    let mut expected_rows = Some(plan.seed_rows());
    let mut ops_per_success = 1;
    let clock;
    match plan {
        Plan::Count => unreachable!(),
        Plan::Save { tasks, each } => {
            let work: Vec<Vec<NewOrder>> = orders(tasks, each);
            clock = start_clock(&config);
            let handles = work.into_iter().map(|orders| {
                let peer = peer.clone();
                tokio::spawn(async move {
                    let mut latencies = Vec::with_capacity(orders.len());
                    for order in orders {
                        if !clock.running() {
                            break;
                        }
                        let from = Instant::now();
                        let result = peer.save(order).await;
                        latencies.push(settle(from, result, |_| 0));
                    }
                    keep_latencies(latencies);
                })
            });
            join(handles.collect()).await;
        }
        Plan::Bulk { rows } => {
            let data: Vec<NewOrder> = (0..rows).map(|n| NewOrder::nth(1, n)).collect();
            ops_per_success = rows;
            clock = start_clock(&config);
            let result = peer.bulk(data).await;
            settle(clock.start, result, |_| 0);
        }
        Plan::BulkWide { rows } => {
            let data: Vec<NewWide> = (0..rows).map(NewWide::nth).collect();
            ops_per_success = rows;
            clock = start_clock(&config);
            let result = peer.bulk_wide(data).await;
            settle(clock.start, result, |_| 0);
        }
        Plan::TxWork {
            tasks,
            each,
            wait_us,
        } => {
            let work = orders(tasks, each);
            clock = start_clock(&config);
            let handles = work.into_iter().map(|orders| {
                let peer = peer.clone();
                tokio::spawn(async move {
                    let mut latencies = Vec::with_capacity(orders.len());
                    for order in orders {
                        if !clock.running() {
                            break;
                        }
                        let from = Instant::now();
                        let result = peer.tx_work(order, wait_us).await;
                        latencies.push(settle(from, result, |retries| *retries));
                    }
                    keep_latencies(latencies);
                })
            });
            join(handles.collect()).await;
        }
        Plan::Get { seed, tasks, each } => {
            clock = start_clock(&config);
            let handles = (0..tasks).map(|task| {
                let peer = peer.clone();
                tokio::spawn(async move {
                    let mut rng = Rng::new(task);
                    let mut latencies = Vec::with_capacity(each as usize);
                    for _ in 0..each {
                        if !clock.running() {
                            break;
                        }
                        let id = read_id(&mut rng, seed);
                        let from = Instant::now();
                        let result = peer.get(id).await.and_then(|row| right_row(&row, id));
                        latencies.push(settle(from, result, |_| 0));
                    }
                    keep_latencies(latencies);
                })
            });
            join(handles.collect()).await;
        }
        Plan::Scan { seed, times } => {
            ops_per_success = seed;
            clock = start_clock(&config);
            for _ in 0..times {
                if !clock.running() {
                    break;
                }
                let from = Instant::now();
                let result = peer.scan().await.and_then(|rows| all_rows(&rows, seed));
                settle(from, result, |_| 0);
            }
        }
        Plan::Rmw {
            tasks, each, hot, ..
        } => {
            clock = start_clock(&config);
            let handles = (0..tasks).map(|task| {
                let peer = peer.clone();
                tokio::spawn(async move {
                    let mut latencies = Vec::with_capacity(each as usize);
                    for n in 0..each {
                        if !clock.running() {
                            break;
                        }
                        let from = Instant::now();
                        let result = peer.rmw(rmw_id(hot, task, each, n)).await;
                        latencies.push(settle(from, result, |retries| *retries));
                    }
                    keep_latencies(latencies);
                })
            });
            join(handles.collect()).await;
        }
    }
    let seconds = clock.start.elapsed().as_secs_f64();
    let max_rss_kb = max_rss_kb();
    let successes = OPS.load(Relaxed);
    if matches!(
        plan,
        Plan::Save { .. } | Plan::TxWork { .. } | Plan::Bulk { .. } | Plan::BulkWide { .. }
    ) {
        expected_rows = Some(successes * ops_per_success);
    }
    let counted = peer.count(table).await;
    let (found_rows, sum) = match counted {
        Ok((rows, sum)) => (Some(rows), Some(sum)),
        Err(error) => {
            note(format!("count failed: {error}"));
            (None, None)
        }
    };
    let lost_updates = match plan {
        Plan::Rmw { .. } => sum.map(|sum| successes as i64 - sum),
        _ => None,
    };
    Report {
        config: &config,
        seconds,
        ops: successes * ops_per_success,
        max_rss_kb,
        expected_rows,
        found_rows,
        lost_updates,
    }
    .print();
    if let Err(error) = peer.close().await {
        eprintln!("close: {error}");
    }
    Ok(())
}

async fn join(handles: Vec<tokio::task::JoinHandle<()>>) {
    for handle in handles {
        if let Err(error) = handle.await {
            failed(&format!("task ended: {error}"));
        }
    }
}
