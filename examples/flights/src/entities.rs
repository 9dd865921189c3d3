//! The five tables. Each struct is one row of its file, and one row of its table.

use anabranch::prelude::*;
use chrono::{DateTime, Utc};
use serde::Deserialize;

#[derive(Debug, Clone, Entity, Deserialize)]
#[entity(table = "airlines")]
pub(crate) struct Airline {
    #[entity(id)]
    pub(crate) carrier: String,
    pub(crate) name: String,
}

#[derive(Debug, Clone, Entity, Deserialize)]
#[entity(table = "airports")]
pub(crate) struct Airport {
    #[entity(id)]
    pub(crate) faa: String,
    pub(crate) name: Option<String>,
    pub(crate) lat: Option<f64>,
    pub(crate) lon: Option<f64>,
    pub(crate) alt: Option<i32>,
    pub(crate) tz: Option<i32>,
    pub(crate) dst: Option<String>,
    pub(crate) tzone: Option<String>,
    /// Whether it stands in `airports.csv`; else flights go there, and nothing more is known of it.
    #[serde(skip, default = "in_the_file")]
    pub(crate) listed: bool,
}

#[derive(Debug, Clone, Entity, Deserialize)]
#[entity(table = "planes")]
pub(crate) struct Plane {
    #[entity(id)]
    pub(crate) tailnum: String,
    pub(crate) year: Option<i32>,
    pub(crate) r#type: Option<String>,
    pub(crate) manufacturer: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) engines: Option<i32>,
    pub(crate) seats: Option<i32>,
    pub(crate) speed: Option<i32>,
    pub(crate) engine: Option<String>,
    /// Whether it stands in `planes.csv`; else it flies, and nothing more is known of it.
    #[serde(skip, default = "in_the_file")]
    pub(crate) listed: bool,
}

#[derive(Debug, Clone, Entity, Deserialize)]
#[entity(table = "weather")]
pub(crate) struct Weather {
    #[entity(id)]
    #[serde(skip)]
    pub(crate) id: i64,
    #[entity(references = Airport, index)]
    pub(crate) origin: String,
    pub(crate) year: i32,
    pub(crate) month: i32,
    pub(crate) day: i32,
    pub(crate) hour: i32,
    pub(crate) temp: Option<f64>,
    pub(crate) dewp: Option<f64>,
    pub(crate) humid: Option<f64>,
    pub(crate) wind_dir: Option<i32>,
    pub(crate) wind_speed: Option<f64>,
    pub(crate) wind_gust: Option<f64>,
    pub(crate) precip: Option<f64>,
    pub(crate) pressure: Option<f64>,
    pub(crate) visib: Option<f64>,
    pub(crate) time_hour: DateTime<Utc>,
}

/// Times of day are local, as the airlines write them: 517 is 5:17.
#[derive(Debug, Clone, Entity, Deserialize)]
#[entity(table = "flights")]
pub(crate) struct Flight {
    #[entity(id)]
    #[serde(skip)]
    pub(crate) id: i64,
    pub(crate) year: i32,
    pub(crate) month: i32,
    pub(crate) day: i32,
    pub(crate) dep_time: Option<i32>,
    pub(crate) sched_dep_time: i32,
    pub(crate) dep_delay: Option<i32>,
    pub(crate) arr_time: Option<i32>,
    pub(crate) sched_arr_time: i32,
    pub(crate) arr_delay: Option<i32>,
    #[entity(references = Airline)]
    pub(crate) carrier: String,
    pub(crate) flight: i32,
    #[entity(references = Plane, index)]
    pub(crate) tailnum: Option<String>,
    #[entity(references = Airport)]
    pub(crate) origin: String,
    #[entity(references = Airport)]
    pub(crate) dest: String,
    pub(crate) air_time: Option<i32>,
    pub(crate) distance: i32,
    pub(crate) hour: i32,
    pub(crate) minute: i32,
    pub(crate) time_hour: DateTime<Utc>,
    #[entity(version)]
    #[serde(skip)]
    pub(crate) version: i64,
    #[entity(commit_seq)]
    #[serde(skip)]
    pub(crate) commit_seq: CommitSeq,
}

impl Airport {
    pub(crate) fn unlisted(faa: &str) -> Self {
        Self {
            faa: faa.to_owned(),
            name: None,
            lat: None,
            lon: None,
            alt: None,
            tz: None,
            dst: None,
            tzone: None,
            listed: false,
        }
    }
}

impl Plane {
    pub(crate) fn unlisted(tailnum: &str) -> Self {
        Self {
            tailnum: tailnum.to_owned(),
            year: None,
            r#type: None,
            manufacturer: None,
            model: None,
            engines: None,
            seats: None,
            speed: None,
            engine: None,
            listed: false,
        }
    }
}

fn in_the_file() -> bool {
    true
}
