//! What a benchmark says in the end: ratios, and which of them are below their floor.

use serde::{Serialize, Serializer, ser::SerializeMap};

/// The least that a ratio is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// The ratio's name.
    pub key: &'static str,
    /// The least; `None` for one that is only printed.
    pub least: Option<f64>,
}

/// The last line of a benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    bench: &'static str,
    rounds: usize,
    #[serde(serialize_with = "as_map")]
    ratios: Vec<(Floor, f64)>,
    floors_missed: Vec<&'static str>,
}

impl Summary {
    /// The summary of these ratios.
    #[must_use]
    pub fn new(bench: &'static str, rounds: usize, ratios: Vec<(Floor, f64)>) -> Self {
        let missed = |&&(floor, ratio): &&(Floor, f64)| {
            // A ratio that could not be measured (NaN) has not met its floor either.
            (floor.least).is_some_and(|least| ratio.is_nan() || ratio < least)
        };
        let floors_missed = ratios.iter().filter(missed).map(|(floor, _)| floor.key);
        Self {
            bench,
            rounds,
            floors_missed: floors_missed.collect(),
            ratios,
        }
    }

    /// The ratios beside their floors, a line each.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = String::from("ratio                      measured  at least\n");
        for (floor, ratio) in &self.ratios {
            let least = floor
                .least
                .map_or_else(|| "-".to_owned(), |least| format!("{least}"));
            let mark = if self.floors_missed.contains(&floor.key) {
                "  missed"
            } else {
                ""
            };
            table += &format!("{:<25}  {ratio:>8.2}  {least:>8}{mark}\n", floor.key);
        }
        table
    }

    /// The same as one line of JSON.
    ///
    /// # Errors
    ///
    /// None that these fields can meet.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

fn as_map<S: Serializer>(ratios: &[(Floor, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(ratios.len()))?;
    for (floor, ratio) in ratios {
        // Three decimals: more would look like precision that is not there.
        map.serialize_entry(floor.key, &((ratio * 1000.0).round() / 1000.0))?;
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_ratios_in_order_and_the_floors_that_were_missed() {
        let floor = |key, least| Floor { key, least };
        let summary = Summary::new(
            "save",
            5,
            vec![
                (floor("second", Some(2.0)), 1.23456),
                (floor("first", Some(1.0)), 1.0),
                (floor("printed", None), 0.1),
            ],
        );
        assert_eq!(
            summary.json().unwrap(),
            r#"{"bench":"save","rounds":5,"ratios":{"second":1.235,"first":1.0,"printed":0.1},"floors_missed":["second"]}"#
        );
        assert!(summary.table().contains("missed"));
    }
}
