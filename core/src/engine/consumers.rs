//! How far the consumers of feeds are behind, told every second: those that do not run are the ones to hear of.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OptionalExtension as _};

use crate::{
    engine::{core::Core, sqlite_error::from_rusqlite},
    entity::tombstones_of,
    observe::{FeedGauges, Namespace},
    sql::Identifier,
};

/// What is told of each consumer, by its name.
#[derive(Debug, Default)]
pub(in crate::engine) struct Consumers(HashMap<String, FeedGauges>);

/// Where a consumer is.
struct Place {
    name: String,
    table: String,
    seq: i64,
    /// For how many seconds it has not moved.
    still: i64,
    /// Whether not all rows are read with which it starts.
    is_in_snapshot: bool,
    parked: i64,
}

impl Consumers {
    /// Looks at the last number and, if there is somebody to tell, at all places.
    pub(in crate::engine) fn look(&mut self, core: &Core, connection: &Connection) {
        if let Err(error) = self.tell(core, connection).map_err(from_rusqlite) {
            tracing::debug!(error = %error.in_log(), "the places of feeds could not be read");
        }
    }

    fn tell(&mut self, core: &Core, connection: &Connection) -> rusqlite::Result<()> {
        let now = Instant::now();
        if !has_table(connection, "anabranch_sequence")? {
            return Ok(());
        }
        let last: i64 = one(connection, "SELECT last FROM anabranch_sequence")?.unwrap_or_default();
        core.commit_times.note(last, now);
        if !cfg!(feature = "metrics") || !has_table(connection, "anabranch_cursors")? {
            return Ok(());
        }
        let places = places(connection)?;
        let names: HashSet<&str> = places.iter().map(|place| &*place.name).collect();
        self.0.retain(|name, gauges| {
            let is_there = names.contains(&**name);
            if !is_there {
                gauges.set(0, Duration::ZERO, 0);
            }
            is_there
        });
        let mut newest = HashMap::new();
        for place in &places {
            if !newest.contains_key(&*place.table) {
                newest.insert(&*place.table, newest_of(connection, &place.table)?);
            }
        }
        for place in &places {
            // Numbers of other tables are nothing that it waits for.
            let (lag, age) = if place.is_in_snapshot {
                let still = Duration::from_secs(place.still.max(0).unsigned_abs());
                (last.unsigned_abs().max(1), still)
            } else if newest[&*place.table] > place.seq {
                let age = core.commit_times.age_after(place.seq, now);
                (last.abs_diff(place.seq), age.unwrap_or_default())
            } else {
                (0, Duration::ZERO)
            };
            let namespace = Namespace(core.counters.told.namespace());
            let gauges = self.0.entry(place.name.clone());
            let gauges = gauges.or_insert_with_key(|name| FeedGauges::of(namespace, name));
            gauges.set(lag, age, place.parked.unsigned_abs());
        }
        Ok(())
    }
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    connection.prepare_cached(sql)?.exists([name])
}

fn one(connection: &Connection, sql: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([], |row| row.get(0)).optional()?;
    Ok(found.flatten())
}

fn places(connection: &Connection) -> rusqlite::Result<Vec<Place>> {
    let sql =
        "SELECT name, table_name, seq, unixepoch() - acked_at, coalesce(inside LIKE 'scan %', FALSE),
            (SELECT count(*) FROM anabranch_parked WHERE cursor = name)
        FROM anabranch_cursors";
    let mut statement = connection.prepare_cached(sql)?;
    let places = statement.query_map([], |row| {
        Ok(Place {
            name: row.get(0)?,
            table: row.get(1)?,
            seq: row.get(2)?,
            still: row.get(3)?,
            is_in_snapshot: row.get(4)?,
            parked: row.get(5)?,
        })
    })?;
    places.collect()
}

/// The largest number of the table's rows and deletions, as far as an index has it: a table is not read for it.
fn newest_of(connection: &Connection, table: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT table_name, column_name FROM anabranch_stamped AS stamped
        WHERE table_name COLLATE NOCASE IN (?1, ?2)
          AND EXISTS (
            SELECT 1 FROM pragma_index_list(table_name) AS list, pragma_index_info(list.name) AS info
            WHERE NOT list.partial AND info.seqno = 0 AND info.name = column_name COLLATE NOCASE)";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([table, &tombstones_of(table)])?;
    let mut newest = 0;
    while let Some(row) = rows.next()? {
        let (table, column): (String, String) = (row.get(0)?, row.get(1)?);
        let largest = format!(
            "SELECT max({}) FROM {}",
            Identifier(&column),
            Identifier(&table)
        );
        newest = newest.max(one(connection, &largest)?.unwrap_or_default());
    }
    Ok(newest)
}
