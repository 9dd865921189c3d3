//! Reading the files into the tables, a context for each thousand rows.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use anyhow::{Context as _, Result};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::de::DeserializeOwned;

use crate::{
    data_set::DataSet,
    entities::{Airline, Airport, Flight, Plane, Weather},
};

/// What became of one file.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) table: &'static str,
    pub(crate) rows: usize,
    pub(crate) took: Duration,
    /// The number of the last commit, for a table that keeps it.
    pub(crate) commit_seq: Option<CommitSeq>,
}

/// Imports all files.
pub(crate) async fn import(db: &Database, data: &DataSet) -> Result<Vec<Imported>> {
    let bars = MultiProgress::new();
    let airlines = import_table::<Airline>(db, data, &bars).await?;
    let airports = import_table::<Airport>(db, data, &bars).await?;
    let planes = import_table::<Plane>(db, data, &bars).await?;
    // These two refer to the tables above and not to each other.
    let (weather, flights) = tokio::try_join!(
        import_table::<Weather>(db, data, &bars),
        import_flights(db, data, &bars)
    )?;
    Ok(vec![airlines, airports, planes, weather, flights])
}

async fn import_table<E: Entity + DeserializeOwned>(
    db: &Database,
    data: &DataSet,
    bars: &MultiProgress,
) -> Result<Imported> {
    let mut import = Import::begin::<E>(bars)?;
    let mut chunks = data.chunks::<E>(import.table, import.bar.clone())?;
    while let Some(chunk) = chunks.recv().await {
        let mut ctx = db.context();
        for row in chunk? {
            ctx.add(row);
            import.rows += 1;
        }
        import.save(&mut ctx).await?;
    }
    Ok(import.end())
}

/// Flights come with the planes and airports that they are the first to name: one save writes both, and those that
/// are referred to before those that refer to them.
async fn import_flights(db: &Database, data: &DataSet, bars: &MultiProgress) -> Result<Imported> {
    let mut import = Import::begin::<Flight>(bars)?;
    let mut chunks = data.chunks::<Flight>(import.table, import.bar.clone())?;
    let mut known = Known::read(db).await?;
    while let Some(chunk) = chunks.recv().await {
        let mut ctx = db.context();
        for flight in chunk? {
            known.complete(&mut ctx, &flight);
            ctx.add(flight);
            import.rows += 1;
        }
        import.save(&mut ctx).await?;
    }
    Ok(import.end())
}

/// The import of one file while it goes on.
struct Import {
    table: &'static str,
    began: Instant,
    rows: usize,
    commit_seq: Option<CommitSeq>,
    bar: ProgressBar,
}

impl Import {
    fn begin<E: Entity>(bars: &MultiProgress) -> Result<Self> {
        let style = ProgressStyle::with_template(
            "{prefix:>9} {wide_bar} {bytes:>11} of {total_bytes:<11}",
        )?;
        let table = E::TABLE.name;
        let bar = ProgressBar::new(0).with_style(style).with_prefix(table);
        Ok(Self {
            table,
            began: Instant::now(),
            rows: 0,
            commit_seq: None,
            bar: bars.add(bar),
        })
    }

    async fn save(&mut self, ctx: &mut Context<'_>) -> Result<()> {
        let saved = ctx
            .save_changes()
            .await
            .with_context(|| format!("importing {}", self.table))?;
        self.commit_seq = self.commit_seq.max(saved.commit_seq);
        Ok(())
    }

    fn end(self) -> Imported {
        self.bar.finish();
        Imported {
            table: self.table,
            rows: self.rows,
            took: self.began.elapsed(),
            commit_seq: self.commit_seq,
        }
    }
}

/// The planes and airports that have a row.
///
/// Flights name some that the files do not list. Such a flight keeps its tail number and destination: they are facts,
/// and NULL would lose them. So the plane or airport gets a row of its own, with nothing in it but its key, and
/// `listed` says so. A flight whose tail number the file itself does not know (NA) has NULL there.
struct Known {
    planes: HashSet<String>,
    airports: HashSet<String>,
}

impl Known {
    async fn read(db: &Database) -> Result<Self> {
        let planes = Plane::query().all(db).await?;
        let airports = Airport::query().all(db).await?;
        Ok(Self {
            planes: planes.into_iter().map(|plane| plane.tailnum).collect(),
            airports: airports.into_iter().map(|airport| airport.faa).collect(),
        })
    }

    /// Adds what this flight refers to and nothing has listed so far.
    fn complete(&mut self, ctx: &mut Context<'_>, flight: &Flight) {
        if let Some(tailnum) = &flight.tailnum
            && self.planes.insert(tailnum.clone())
        {
            ctx.add(Plane::unlisted(tailnum));
        }
        for faa in [&flight.origin, &flight.dest] {
            if self.airports.insert(faa.clone()) {
                ctx.add(Airport::unlisted(faa));
            }
        }
    }
}
