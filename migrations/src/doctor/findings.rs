//! What is wrong with a file, and what could be better.

use rusqlite::{Connection, Error, ErrorCode, Result};

use crate::{
    doctor::{Check, Facts, Finding, Weight, tables},
    log::Log,
    look::Look,
};

/// After so many findings of one check no more are listed.
const MOST: usize = 100;
/// A log that is longer than this does not come of commits alone: something keeps it from starting anew.
const LONG_LOG: u64 = 64 * 1024 * 1024;
/// What each page has before it in the log.
const FRAME_HEADER: u64 = 24;
/// Free pages that are worth a VACUUM.
const MANY_FREE_PAGES: i64 = 1_000;

impl Finding {
    pub(super) fn problem(check: Check, table: Option<String>, message: String) -> Self {
        Self {
            weight: Weight::Problem,
            check,
            table,
            message,
        }
    }

    pub(super) fn advice(check: Check, table: Option<String>, message: String) -> Self {
        Self {
            weight: Weight::Advice,
            check,
            table,
            message,
        }
    }
}

pub(super) fn of(look: &Look, facts: &Facts) -> Result<Vec<Finding>> {
    let connection = &look.connection;
    let mut findings = whole_or_by_table(connection, Weight::Advice, integrity)?;
    if findings
        .iter()
        .any(|finding| finding.check == Check::Integrity)
    {
        // Of rows that cannot be relied on nothing else is said.
        findings.extend(of_file(facts));
        return Ok(findings);
    }
    let references = whole_or_by_table(connection, Weight::Problem, broken_references)?;
    findings.extend(references);
    findings.extend(tables::unstamped(connection)?);
    findings.extend(of_file(facts));
    findings.extend(tables::missing_indexes(connection)?);
    findings.extend(tables::strict_candidates(connection)?);
    Ok(findings)
}

/// One definition that SQLite can make nothing of fails a check as a whole: then tables are checked one by one.
fn whole_or_by_table(
    connection: &Connection,
    weight: Weight,
    check: fn(&Connection, Option<&str>) -> Result<Vec<Finding>>,
) -> Result<Vec<Finding>> {
    match check(connection, None) {
        Err(error) if is_of_a_definition(&error) => {}
        whole => return whole,
    }
    let mut found = Vec::new();
    for table in tables::with_pages(connection)? {
        match check(connection, Some(&table)) {
            Err(error) if is_of_a_definition(&error) => found.push(Finding {
                weight,
                check: Check::Unchecked,
                message: format!("SQLite cannot check it: {error}"),
                table: Some(table),
            }),
            one => found.extend(one?),
        }
    }
    found.truncate(MOST);
    Ok(found)
}

/// Whether it comes of what a table is said to be, and not of the file.
pub(super) fn is_of_a_definition(error: &Error) -> bool {
    match error {
        Error::SqlInputError { error, .. } => error.code == ErrorCode::Unknown,
        error => error.sqlite_error_code() == Some(ErrorCode::Unknown),
    }
}

fn integrity(connection: &Connection, table: Option<&str>) -> Result<Vec<Finding>> {
    let of = table.map_or_else(|| MOST.to_string(), tables::quoted);
    let sql = format!("PRAGMA main.integrity_check({of})");
    let messages = match tables::texts(connection, &sql, []) {
        // Too damaged for the check itself.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            vec![error.to_string()]
        }
        messages => messages?,
    };
    Ok(messages
        .iter()
        .flat_map(|message| message.lines())
        .filter(|line| *line != "ok")
        .map(|line| Finding::problem(Check::Integrity, None, line.to_owned()))
        .collect())
}

fn broken_references(connection: &Connection, table: Option<&str>) -> Result<Vec<Finding>> {
    let of = table.map_or_else(String::new, |table| format!("({})", tables::quoted(table)));
    let mut statement = connection.prepare(&format!("PRAGMA main.foreign_key_check{of}"))?;
    let broken = statement.query_map([], |row| {
        let (table, rowid, parent) = (
            tables::text(row, 0)?,
            row.get::<_, Option<i64>>(1)?,
            tables::text(row, 2)?,
        );
        let row = rowid.map_or_else(|| "a row".to_owned(), |rowid| format!("row {rowid}"));
        let message = format!("{row} refers to a row of {parent} that is not there");
        Ok(Finding::problem(
            Check::BrokenReference,
            Some(table),
            message,
        ))
    })?;
    broken.take(MOST).collect()
}

fn of_file(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if facts.hard_links > 1 {
        let message = format!(
            "the file has {} names (hard links): whoever opens it by another one than the rest does not find its log, and \
             damages it: remove the others",
            facts.hard_links
        );
        findings.push(Finding::problem(Check::HardLinks, None, message));
    }
    if let Some(name) = facts.network_file_system {
        let message = format!(
            "it is on {name}, over which processes cannot share a write-ahead log: move it to a local disk"
        );
        findings.push(Finding::problem(Check::NetworkFileSystem, None, message));
    }
    if facts.free_pages > MANY_FREE_PAGES && facts.free_pages > facts.pages / 4 {
        let message = format!(
            "{} of {} pages are free: db.vacuum() gives them back",
            facts.free_pages, facts.pages
        );
        findings.push(Finding::advice(Check::FreePages, None, message));
    }
    findings
}

pub(super) fn of_log(log: &Log, page_size: i64) -> Option<Finding> {
    let frame = page_size.unsigned_abs() + FRAME_HEADER;
    // Its file stays as long as it once was.
    let used = log.frames.map(|frames| frames.saturating_mul(frame));
    if used.unwrap_or(log.bytes) > LONG_LOG {
        let message = format!(
            "the log is long ({log}): a reader that stays keeps it from starting anew, or nobody moves it into the \
             file; db.checkpoint() truncates it"
        );
        return Some(Finding::problem(Check::LongLog, None, message));
    }
    (log.bytes > LONG_LOG).then(|| {
        let message = format!(
            "the file of the log is longer than what is in it ({log}): db.checkpoint() truncates it"
        );
        Finding::advice(Check::LongLog, None, message)
    })
}
