//! What is printed at the end.

use std::{fmt, time::Duration};

use anabranch::{observe::Statistics, prelude::*};
use anyhow::Result;
use indicatif::HumanCount;

use crate::{
    entities::{Airport, Flight, Plane},
    import::Imported,
    work::{TASKS, Worked},
};

/// How many routes are shown.
const ROUTES: i64 = 5;

#[derive(Debug)]
pub(crate) struct Report {
    imported: Vec<Imported>,
    unlisted: Unlisted,
    worked: Worked,
    changed_flights: u64,
    statistics: Statistics,
    routes: Vec<Route>,
    integrity: Vec<String>,
    broken_references: i64,
}

/// What flights refer to and no file lists.
#[derive(Debug)]
struct Unlisted {
    planes: usize,
    flights_of_planes: u64,
    airports: Vec<String>,
    flights_to_airports: u64,
    flights_without_plane: u64,
}

#[derive(Debug, sqlx::FromRow)]
struct Route {
    origin: String,
    dest: String,
    name: Option<String>,
    flights: i64,
    mean_delay: Option<f64>,
}

impl Report {
    /// Asks the database for all that is shown.
    pub(crate) async fn gather(
        db: &Database,
        imported: Vec<Imported>,
        worked: Worked,
    ) -> Result<Self> {
        let statistics = db.statistics();
        // Commit numbers only grow: what was saved after the import has a larger one.
        let import_end = imported.iter().filter_map(|file| file.commit_seq).max();
        let changed_flights = Flight::query()
            .filter(Flight::COMMIT_SEQ.gt(import_end.unwrap_or_default()))
            .count(db)
            .await?;
        let unlisted = Unlisted::count(db).await?;
        // Sums and checks are SQL, and SQL runs in a transaction.
        let (routes, integrity, broken_references) = db
            .write(async |tx| {
                let routes = sqlx::query_as(BUSIEST_ROUTES)
                    .bind(ROUTES)
                    .fetch_all(&mut *tx)
                    .await?;
                let integrity = sqlx::query_scalar("PRAGMA integrity_check")
                    .fetch_all(&mut *tx)
                    .await?;
                let broken = sqlx::query_scalar("SELECT count(*) FROM pragma_foreign_key_check")
                    .fetch_one(&mut *tx)
                    .await?;
                Ok((routes, integrity, broken))
            })
            .await?;
        Ok(Self {
            imported,
            unlisted,
            worked,
            changed_flights,
            statistics,
            routes,
            integrity,
            broken_references,
        })
    }
}

const BUSIEST_ROUTES: &str = "
    SELECT origin, dest, airports.name, count(*) AS flights, avg(dep_delay) AS mean_delay
    FROM flights JOIN airports ON airports.faa = flights.dest
    GROUP BY origin, dest
    ORDER BY flights DESC, origin, dest
    LIMIT ?";

impl Unlisted {
    async fn count(db: &Database) -> Result<Self> {
        let planes = Plane::query()
            .filter(Plane::LISTED.eq(false))
            .all(db)
            .await?;
        let airports = Airport::query()
            .filter(Airport::LISTED.eq(false))
            .order_by(Airport::FAA.asc())
            .all(db)
            .await?;
        let tailnums = planes.iter().map(|plane| &plane.tailnum);
        let airports: Vec<_> = airports.into_iter().map(|airport| airport.faa).collect();
        Ok(Self {
            planes: planes.len(),
            flights_of_planes: Flight::query()
                .filter(Flight::TAILNUM.is_in(tailnums))
                .count(db)
                .await?,
            flights_to_airports: Flight::query()
                .filter(Flight::DEST.is_in(&airports))
                .count(db)
                .await?,
            flights_without_plane: Flight::query()
                .filter(Flight::TAILNUM.is_null())
                .count(db)
                .await?,
            airports,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Imported")?;
        for file in &self.imported {
            writeln!(
                f,
                "  {:<9}{:>8} rows in {:>7.3} s, {:>9} rows/s",
                file.table,
                HumanCount(file.rows as u64).to_string(),
                file.took.as_secs_f64(),
                rate(file.rows as u64, file.took).to_string(),
            )?;
        }
        write!(f, "{}{}", self.unlisted, self.worked)?;
        writeln!(
            f,
            "  {} flights have a commit number from after the import",
            HumanCount(self.changed_flights),
        )?;
        commits(f, &self.statistics)?;
        writeln!(f, "\nBusiest routes")?;
        for route in &self.routes {
            writeln!(f, "  {route}")?;
        }
        writeln!(
            f,
            "\nintegrity_check: {}; {} broken references",
            self.integrity.join("; "),
            self.broken_references,
        )
    }
}

impl fmt::Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nNot in the files, though flights name them")?;
        writeln!(
            f,
            "  {} planes, of {} flights: each has a row with its tail number alone",
            HumanCount(self.planes as u64),
            HumanCount(self.flights_of_planes),
        )?;
        writeln!(
            f,
            "  {} airports ({}), of {} flights: each has a row with its code alone",
            self.airports.len(),
            self.airports.join(", "),
            HumanCount(self.flights_to_airports),
        )?;
        writeln!(
            f,
            "  the plane of {} flights, whose tail number is NA: NULL",
            HumanCount(self.flights_without_plane),
        )
    }
}

impl fmt::Display for Worked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let saves = self.delays + self.swaps;
        writeln!(f, "\nWorked, {TASKS} tasks at once")?;
        writeln!(
            f,
            "  {} delays and {} exchanges of planes in {:.3} s, {} saves/s",
            HumanCount(self.delays),
            HumanCount(self.swaps),
            self.took.as_secs_f64(),
            rate(saves, self.took),
        )?;
        writeln!(
            f,
            "  {} conflicts met, {} resolved",
            HumanCount(self.conflicts),
            HumanCount(self.resolved),
        )?;
        writeln!(
            f,
            "  {} minutes recorded, {} found in the database; {}",
            self.minutes_recorded,
            self.minutes_found,
            if self.planes_kept {
                "no plane lost or doubled"
            } else {
                "PLANES LOST OR DOUBLED"
            },
        )
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flights = HumanCount(self.flights.unsigned_abs()).to_string();
        write!(f, "{} to {} {flights:>7} flights", self.origin, self.dest)?;
        match self.mean_delay {
            Some(minutes) => write!(f, ", {minutes:>4.1} minutes late on average")?,
            None => write!(f, ", none of which departed")?,
        }
        match &self.name {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}

fn commits(f: &mut fmt::Formatter<'_>, statistics: &Statistics) -> fmt::Result {
    const CLASSES: [&str; 8] = [
        "1", "2", "3 to 4", "5 to 8", "9 to 16", "17 to 32", "33 to 64", "more",
    ];
    writeln!(
        f,
        "\nCommitted {} saves in {} commits, each of so many saves:",
        HumanCount(statistics.saves),
        HumanCount(statistics.groups),
    )?;
    for (class, commits) in CLASSES.iter().zip(statistics.group_sizes) {
        if commits > 0 {
            let commits = HumanCount(commits).to_string();
            writeln!(f, "  {commits:>7} of {class}")?;
        }
    }
    Ok(())
}

fn rate(count: u64, took: Duration) -> HumanCount {
    let per_second = u128::from(count) * 1_000_000 / took.as_micros().max(1);
    HumanCount(u64::try_from(per_second).unwrap_or(u64::MAX))
}
