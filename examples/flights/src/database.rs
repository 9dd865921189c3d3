//! The database file: made anew at each run, and no other file overwritten.

use std::path::Path;

use anabranch::prelude::*;
use anyhow::{Context as _, Result, bail};
use sqlx::{ConnectOptions, Connection, sqlite::SqliteConnectOptions};

use crate::entities::{Airline, Airport, Flight, Plane, Weather};

/// What this example writes into the header of its file, to know it again.
const APPLICATION_ID: i64 = 0x666c_7431;

/// Referring tables go before those that they refer to.
const START: &str = "
    PRAGMA application_id = 0x666c7431;
    DROP TABLE IF EXISTS flights;
    DROP TABLE IF EXISTS weather;
    DROP TABLE IF EXISTS planes;
    DROP TABLE IF EXISTS airports;
    DROP TABLE IF EXISTS airlines";

/// Opens the file with five empty tables. What an earlier run left in it is removed, in place: whoever has the file
/// open beside us goes on with the same file.
pub(crate) async fn create(path: &Path) -> Result<Database> {
    if path.is_file() {
        refuse_strangers(path).await?;
    }
    let db = Database::open(path).await?;
    make_tables(&db)
        .await
        .with_context(|| format!("making the tables of {}", path.display()))?;
    Ok(db)
}

async fn make_tables(db: &Database) -> Result<()> {
    db.write(async |tx| {
        sqlx::raw_sql(START).execute(&mut *tx).await?;
        Ok(())
    })
    .await?;
    db.vacuum().await?;
    db.create_tables::<(Airline, Airport, Plane, Weather, Flight)>()
        .await?;
    Ok(())
}

/// A file that this example did not make is somebody's: it is looked at read-only, and left alone.
async fn refuse_strangers(path: &Path) -> Result<()> {
    let look = async {
        let mut file = SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .connect()
            .await?;
        let found: (i64, i64) = sqlx::query_as(
            "SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id",
        )
        .fetch_one(&mut file)
        .await?;
        file.close().await?;
        Ok::<_, Error>(found)
    };
    let (application, objects) = look
        .await
        .with_context(|| format!("{} is there already, and left as it is", path.display()))?;
    if application != APPLICATION_ID && objects > 0 {
        bail!(
            "{} is there already, and left as it is: this example did not make it; name another with --db",
            path.display()
        );
    }
    Ok(())
}
