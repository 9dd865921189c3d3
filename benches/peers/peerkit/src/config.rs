//! What one run is to do, from the command line.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use crate::WORKLOADS;

/// All peers open this many connections, and wait this long for a lock.
pub const POOL: usize = 8;
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronous {
    Normal,
    Full,
}

impl Synchronous {
    /// `NORMAL` or `FULL`, as the pragma wants it.
    pub fn as_sql(self) -> &'static str {
        match self {
            Self::Normal => "NORMAL",
            Self::Full => "FULL",
        }
    }
}

/// What one run is to do, from the command line.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name reported as `peer`; also tells a peer which of its variants to be.
    pub peer: String,
    pub workload: String,
    pub sync: Synchronous,
    pub db: PathBuf,
    /// After this long no further operation starts; the rate is of what was done.
    pub deadline: Duration,
    /// Divides all operation counts, for a quick try.
    pub divide: u64,
    /// Overrides the peer's rows per bulk statement (used to tune them).
    pub batch: Option<usize>,
    /// Pauses in transactions use `tokio::time::sleep` (1 ms steps) and not the precise timer.
    pub tokio_timer: bool,
}

impl Config {
    pub(crate) fn from_args() -> Self {
        let mut it = std::env::args().skip(1);
        let mut config = Self {
            peer: String::new(),
            workload: String::new(),
            sync: Synchronous::Normal,
            db: PathBuf::new(),
            deadline: Duration::from_secs(60),
            divide: 1,
            batch: None,
            tokio_timer: false,
        };
        while let Some(flag) = it.next() {
            let mut value = || {
                it.next()
                    .unwrap_or_else(|| usage(&format!("{flag} needs a value")))
            };
            match flag.as_str() {
                "--peer" => config.peer = value(),
                "--workload" => config.workload = value(),
                "--sync" => {
                    config.sync = match value().as_str() {
                        "normal" => Synchronous::Normal,
                        "full" => Synchronous::Full,
                        other => usage(&format!("--sync {other}")),
                    }
                }
                "--db" => config.db = value().into(),
                "--deadline" => {
                    config.deadline = Duration::from_secs_f64(value().parse().expect("seconds"))
                }
                "--divide" => {
                    let divide: NonZeroU64 = value().parse().expect("a number above 0");
                    config.divide = divide.get();
                }
                "--batch" => {
                    let batch: NonZeroUsize = value().parse().expect("a number above 0");
                    config.batch = Some(batch.get());
                }
                "--tokio-timer" => config.tokio_timer = true,
                other => usage(other),
            }
        }
        if config.peer.is_empty() || config.workload.is_empty() || config.db.as_os_str().is_empty()
        {
            usage("--peer, --workload and --db are required");
        }
        config
    }
    pub fn db_str(&self) -> &str {
        self.db.to_str().expect("UTF-8 path")
    }
}

pub(crate) fn usage(problem: &str) -> ! {
    eprintln!(
        "{problem}\nusage: --peer NAME --workload W --sync normal|full --db FILE \
         [--deadline S] [--divide N] [--batch ROWS] [--tokio-timer]\nworkloads: {}",
        WORKLOADS.join(" ")
    );
    std::process::exit(2)
}
