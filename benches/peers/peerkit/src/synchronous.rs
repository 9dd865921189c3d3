//! The runner of blocking peers: one thread per task.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::measure::{OPS, failed, keep_latencies, max_rss_kb, settle, start_clock};
use crate::plan::{all_rows, orders, read_id, right_row, rmw_id};
use crate::report::{Report, could_not, install_panic_hook, watchdog};
use crate::{Config, Entity, NewOrder, NewWide, Plan, Res, Rng, note};

/// The operations of a peer with a blocking API; shared by the threads.
/// What each must do is written at `AsyncPeer`.
pub trait SyncPeer: Sized + Send + Sync {
    type Row: Entity;
    fn open(config: &Config) -> Res<Self>;
    fn save(&self, order: NewOrder) -> Res<i64>;
    fn bulk(&self, rows: Vec<NewOrder>) -> Res<()>;
    fn bulk_wide(&self, rows: Vec<NewWide>) -> Res<()>;
    /// The pause of a blocking peer is [`sleep`].
    fn tx_work(&self, order: NewOrder, wait_us: u64) -> Res<u64>;
    fn get(&self, id: i64) -> Res<Self::Row>;
    fn scan(&self) -> Res<Vec<Self::Row>>;
    fn rmw(&self, id: i64) -> Res<u64>;
    fn count(&self, table: &'static str) -> Res<(i64, i64)>;
    fn close(self) -> Res<()>;
}

/// Sleeps `us` microseconds; 0 does not sleep at all.
pub fn sleep(us: u64) {
    if us > 0 {
        std::thread::sleep(Duration::from_micros(us));
    }
}

pub fn run_sync<P: SyncPeer>() {
    let config = Config::from_args();
    install_panic_hook();
    watchdog(&config);
    if let Err(error) = run::<P>(&config) {
        could_not(&config, "run", error);
    }
}

/// Runs `work` on `tasks` threads; it gets the number of its task.
fn threads(tasks: u64, work: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..tasks)
            .map(|task| {
                let work = &work;
                scope.spawn(move || work(task))
            })
            .collect();
        for handle in handles {
            if handle.join().is_err() {
                failed("thread panicked");
            }
        }
    });
}

fn run<P: SyncPeer>(config: &Config) -> Res<()> {
    let plan = Plan::of(config);
    let table = if matches!(plan, Plan::BulkWide { .. }) {
        "wide"
    } else {
        "orders"
    };
    if let Plan::Count = plan {
        let peer = P::open(config)?;
        let (rows, sum) = peer.count("orders")?;
        let (wide, _) = peer.count("wide")?;
        note(format!("quantity_sum={sum}"));
        Report {
            config,
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
        let peer = P::open(config)?;
        peer.bulk(plan.seed())?;
        peer.close()?;
    }
    let peer = P::open(config)?;
    let mut expected_rows = Some(plan.seed_rows());
    let mut ops_per_success = 1;
    let clock;
    match plan {
        Plan::Count => unreachable!(),
        Plan::Save { tasks, each } => {
            let work: Vec<Mutex<Vec<NewOrder>>> =
                orders(tasks, each).into_iter().map(Mutex::new).collect();
            clock = start_clock(config);
            threads(tasks, |task| {
                let orders = std::mem::take(&mut *work[task as usize].lock().unwrap());
                let mut latencies = Vec::with_capacity(orders.len());
                for order in orders {
                    if !clock.running() {
                        break;
                    }
                    let from = Instant::now();
                    latencies.push(settle(from, peer.save(order), |_| 0));
                }
                keep_latencies(latencies);
            });
        }
        Plan::Bulk { rows } => {
            let data: Vec<NewOrder> = (0..rows).map(|n| NewOrder::nth(1, n)).collect();
            ops_per_success = rows;
            clock = start_clock(config);
            settle(clock.start, peer.bulk(data), |_| 0);
        }
        Plan::BulkWide { rows } => {
            let data: Vec<NewWide> = (0..rows).map(NewWide::nth).collect();
            ops_per_success = rows;
            clock = start_clock(config);
            settle(clock.start, peer.bulk_wide(data), |_| 0);
        }
        Plan::TxWork {
            tasks,
            each,
            wait_us,
        } => {
            let work: Vec<Mutex<Vec<NewOrder>>> =
                orders(tasks, each).into_iter().map(Mutex::new).collect();
            clock = start_clock(config);
            threads(tasks, |task| {
                let orders = std::mem::take(&mut *work[task as usize].lock().unwrap());
                let mut latencies = Vec::with_capacity(orders.len());
                for order in orders {
                    if !clock.running() {
                        break;
                    }
                    let from = Instant::now();
                    latencies.push(settle(from, peer.tx_work(order, wait_us), |retries| {
                        *retries
                    }));
                }
                keep_latencies(latencies);
            });
        }
        Plan::Get { seed, tasks, each } => {
            clock = start_clock(config);
            threads(tasks, |task| {
                let mut rng = Rng::new(task);
                let mut latencies = Vec::with_capacity(each as usize);
                for _ in 0..each {
                    if !clock.running() {
                        break;
                    }
                    let id = read_id(&mut rng, seed);
                    let from = Instant::now();
                    let result = peer.get(id).and_then(|row| right_row(&row, id));
                    latencies.push(settle(from, result, |_| 0));
                }
                keep_latencies(latencies);
            });
        }
        Plan::Scan { seed, times } => {
            ops_per_success = seed;
            clock = start_clock(config);
            for _ in 0..times {
                if !clock.running() {
                    break;
                }
                let from = Instant::now();
                settle(
                    from,
                    peer.scan().and_then(|rows| all_rows(&rows, seed)),
                    |_| 0,
                );
            }
        }
        Plan::Rmw {
            tasks, each, hot, ..
        } => {
            clock = start_clock(config);
            threads(tasks, |task| {
                let mut latencies = Vec::with_capacity(each as usize);
                for n in 0..each {
                    if !clock.running() {
                        break;
                    }
                    let from = Instant::now();
                    let result = peer.rmw(rmw_id(hot, task, each, n));
                    latencies.push(settle(from, result, |retries| *retries));
                }
                keep_latencies(latencies);
            });
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
    let (rows, sum) = peer.count(table)?;
    let lost_updates = match plan {
        Plan::Rmw { .. } => Some(successes as i64 - sum),
        _ => None,
    };
    Report {
        config,
        seconds,
        ops: successes * ops_per_success,
        max_rss_kb,
        expected_rows,
        found_rows: Some(rows),
        lost_updates,
    }
    .print();
    peer.close()
}
