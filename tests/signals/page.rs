//! The guide's page on all this lists what there is, and nothing else.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anabranch::observe::{Instrument, InstrumentKind};

/// The rows of the table whose first column has this heading, without the marks of code.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = fs::read_to_string(root().join("docs/guide/src/observability.md")).unwrap();
    let start = format!("| {heading} |");
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with(&start))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells = row.trim_matches('|').split(" | ");
        cells.map(|cell| cell.trim().to_owned()).collect()
    })
    .collect()
}

/// The names in a cell.
fn names(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text of all sources of the library.
fn sources() -> Vec<String> {
    let mut folders = vec![root().join("core/src"), root().join("migrations/src")];
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    texts
}

/// The texts in quotes of each call of a macro with one of these endings, and its level.
fn calls(ending: &str) -> Vec<(String, Vec<String>)> {
    let levels = ["trace", "debug", "info", "warn", "error"];
    let mut calls = Vec::new();
    for text in sources() {
        for level in levels {
            let start = format!("tracing::{level}{ending}(");
            for rest in text.split(&start).skip(1) {
                calls.push((level.to_uppercase(), texts_of_call(rest)));
            }
        }
    }
    calls
}

/// The texts in quotes up to the bracket that closes the call.
fn texts_of_call(rest: &str) -> Vec<String> {
    let (mut texts, mut open, mut inside) = (Vec::new(), 1, None::<String>);
    for ch in rest.chars() {
        match (&mut inside, ch) {
            (Some(_), '"') => texts.extend(inside.take()),
            (Some(text), ch) => text.push(ch),
            (None, '"') => inside = Some(String::new()),
            (None, '(') => open += 1,
            (None, ')') => open -= 1,
            (None, _) => {}
        }
        if open == 0 {
            return texts;
        }
    }
    panic!("a call has no end")
}

fn pairs(rows: &[Vec<String>]) -> BTreeSet<(String, String)> {
    let pair = |row: &Vec<String>| (names(&row[0]).next().unwrap(), row[1].clone());
    rows.iter().map(pair).collect()
}

#[test]
fn every_span_is_on_the_page_with_its_level() {
    let mut there: BTreeSet<_> = (calls("_span!").into_iter())
        .map(|(level, texts)| {
            let name = texts
                .into_iter()
                .find(|text| text.starts_with("anabranch."));
            (name.unwrap(), level)
        })
        .collect();
    for text in sources() {
        for call in text.split("named_span!(").skip(1) {
            let mut words = call.split_whitespace();
            let level = words.next().unwrap().to_owned();
            let name = words.next().unwrap().trim_matches(['"', ',']).to_owned();
            there.insert((name, level));
        }
    }
    assert!(there.len() > 5, "the spans are not where they were");
    assert_eq!(pairs(&table("span")), there);
}

#[test]
fn every_field_of_a_span_is_on_the_page() {
    let text = fs::read_to_string(root().join("core/src/observe/span.rs")).unwrap();
    let fields = text.lines().filter_map(|line| {
        let (name, _) = line.trim().split_once(" = ")?;
        let name = name.trim_matches('"');
        name.contains('.').then(|| name.to_owned())
    });
    let there: BTreeSet<_> = fields.collect();
    assert!(
        there.len() > 15,
        "the fields are not where they were: {there:?}"
    );
    let listed = table("field")
        .iter()
        .flat_map(|row| names(&row[0]).collect::<Vec<_>>())
        .collect::<BTreeSet<_>>();
    assert_eq!(listed, there);
}

#[test]
fn every_event_is_on_the_page_with_its_level() {
    let there: BTreeSet<_> = (calls("!").into_iter())
        .map(|(level, texts)| (texts.last().unwrap().clone(), level))
        .collect();
    assert!(there.len() > 30, "the events are not where they were");
    assert_eq!(pairs(&table("event")), there);
}

#[test]
fn every_instrument_is_on_the_page_as_it_is() {
    let kind = |kind| match kind {
        InstrumentKind::Counter => "counter",
        InstrumentKind::Gauge => "gauge",
        InstrumentKind::Histogram => "histogram",
        other => panic!("{other:?} is no kind that the page knows"),
    };
    let there: Vec<_> = (Instrument::ALL.iter())
        .map(|it| {
            let labels = it.labels.iter().map(|label| format!("`{label}`"));
            let labels = labels.collect::<Vec<_>>().join(", ");
            format!(
                "| `{}` | {} | {} | {labels} | {} |",
                it.name,
                kind(it.kind),
                it.unit,
                it.shows
            )
        })
        .collect();
    let page = fs::read_to_string(root().join("docs/guide/src/observability.md")).unwrap();
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| instrument |"));
    let rows: Vec<_> = rows
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert_eq!(rows, there);
}
