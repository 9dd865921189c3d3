//! The guide is complete: every page is listed and compiled, and what a user can meet is in it.

use std::{collections::HashSet, fs};

use crate::{attributes, error_kinds, root};

/// The languages that blocks may have. None of Rust's is followed by `ignore`, `no_run` or the like: all of them run.
const LANGUAGES: [&str; 4] = ["rust", "sh", "text", "toml"];

#[test]
fn every_page_is_listed_and_compiled() {
    let summary = read("SUMMARY.md");
    let listed: Vec<_> = links(&summary).collect();
    let compiled = fs::read_to_string(root().join("tests/support/guide.rs")).unwrap();
    let mut names: Vec<_> = pages().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() > 5, "the pages are not where they were");
    for name in &names {
        assert!(listed.contains(&name.as_str()), "not in SUMMARY.md: {name}");
        assert!(
            compiled.contains(&format!("docs/guide/src/{name}\")]")),
            "no blocks of it are compiled: {name}"
        );
    }
    names.extend(listed.iter().map(|&name| name.to_owned()));
    for name in names {
        assert!(!read(&name).is_empty(), "there is no such page: {name}");
    }
}

#[test]
fn every_block_says_its_language_and_runs() {
    for (name, text) in pages() {
        let mut inside = false;
        let mut examples = 0;
        for fence in text.lines().filter_map(|line| line.strip_prefix("```")) {
            inside = !inside;
            if inside {
                assert!(LANGUAGES.contains(&fence), "{name}: a block of `{fence}`");
                examples += usize::from(fence == "rust");
            }
        }
        assert!(!inside, "{name}: a block has no end");
        assert!(examples > 0, "{name} has no example");
    }
}

#[test]
fn every_page_begins_with_a_whole_program() {
    for (name, text) in pages() {
        let first = text.split("```").nth(1).unwrap_or_default();
        assert!(
            first.contains("\nasync fn main()") && !first.contains("\n# "),
            "{name}: something is hidden in the first example"
        );
    }
}

#[test]
fn every_link_leads_somewhere() {
    for (name, text) in pages() {
        for link in links(&text).filter(|link| !link.starts_with("https://")) {
            let (page, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if page.is_empty() {
                text.clone()
            } else {
                read(page)
            };
            assert!(!target.is_empty(), "{name}: {link}");
            assert!(
                heading.is_empty() || headings(&target).contains(heading),
                "{name}: {link}"
            );
        }
    }
}

#[test]
fn every_attribute_and_every_kind_of_error_is_in_it() {
    let all: String = pages().into_iter().map(|(_, text)| text).collect();
    let missing: Vec<_> = attributes()
        .into_iter()
        .filter(|name| {
            ["`", " = ", "("]
                .iter()
                .all(|end| !all.contains(&format!("| `{name}{end}")))
        })
        .collect();
    assert!(missing.is_empty(), "attributes: {missing:?}");
    let errors = read("errors.md");
    let missing: Vec<_> = error_kinds()
        .into_iter()
        .filter(|kind| !errors.contains(&format!("`{kind}`")))
        .collect();
    assert!(missing.is_empty(), "kinds of errors: {missing:?}");
}

#[test]
fn every_command_and_every_option_is_in_it() {
    let all: String = pages().into_iter().map(|(_, text)| text).collect();
    let files = fs::read_dir(root().join("migrations/src/command")).unwrap();
    let mut options = 0;
    for file in files {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(all.contains(&format!("anabranch {name} ")), "no {name}");
        let text = fs::read_to_string(path).unwrap();
        let fields = text.split("#[arg(long").skip(1);
        for field in fields.filter_map(|field| field.lines().nth(1)?.split(':').next()) {
            let option = format!("| `--{}", field.trim().replace('_', "-"));
            assert!(all.contains(&option), "{name}: no {option}");
            options += 1;
        }
    }
    assert!(options > 0, "the commands are not where they were");
}

/// The pages, by name.
fn pages() -> Vec<(String, String)> {
    let files = fs::read_dir(root().join("docs/guide/src")).unwrap();
    let mut names: Vec<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "SUMMARY.md")
        .collect();
    names.sort();
    (names.into_iter())
        .map(|name| {
            let text = read(&name);
            (name, text)
        })
        .collect()
}

/// A page; empty if there is none.
fn read(name: &str) -> String {
    fs::read_to_string(root().join("docs/guide/src").join(name)).unwrap_or_default()
}

/// Where the links of a page lead.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let (link, _) = rest.split_once(')')?;
        (!link.contains(char::is_whitespace)).then_some(link)
    })
}

/// The headings of a page, as mdBook names them in links.
fn headings(text: &str) -> HashSet<String> {
    let headings = text.lines().filter(|line| line.starts_with("##"));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter_map(|ch| match ch {
                ' ' => Some('-'),
                ch => (ch.is_alphanumeric() || "-_".contains(ch)).then_some(ch),
            });
            kept.collect()
        })
        .collect()
}
