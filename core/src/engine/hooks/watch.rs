//! Which rows a connection's statements touch, whoever wrote the SQL.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Listens to the update hook of a connection: for the largest integer keys, for rows that are stamped with a commit
/// number, and, if asked, for every row.
#[derive(Debug, Default)]
pub(in crate::engine) struct Watch {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    /// Never shorter: rows are noted with their table's place.
    list: Vec<WatchedTable>,
    /// Every row that was changed, by its table's place, since this was asked for.
    rows: Option<Vec<(usize, i64)>>,
}

#[derive(Debug)]
struct WatchedTable {
    name: Box<str>,
    /// How its rows are stamped, if they are.
    stamped: Option<StampedBy>,
    /// Whether the key is the rowid, of which the update hook tells; `None` until it was asked.
    is_rowid: Option<bool>,
    /// The largest key seen; `None` until it was read from the table by who writes.
    highest: Option<i64>,
    /// The largest key that was committed when it was read for a session.
    committed: Option<i64>,
    /// The largest key that was heard of while `highest` was not known.
    heard: i64,
    /// The largest key that was given to a session, which may insert it at any time.
    reserved: i64,
    /// The rows of a stamped table that the present unit touched.
    touched: Vec<i64>,
}

/// The columns by which the rows of a table are stamped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct StampedBy {
    /// The commit number.
    pub(in crate::engine) column: Box<str>,
    /// A name of the rowid that no column of the table has taken.
    pub(in crate::engine) rowid: Box<str>,
}

/// How far a savepoint reached.
#[derive(Debug, Default)]
pub(in crate::engine) struct Mark(Vec<TableMark>);

#[derive(Debug, Clone, Copy)]
struct TableMark {
    touched: usize,
    /// The largest key known.
    known: i64,
}

/// The rows of one table that wait for their commit number.
#[derive(Debug)]
pub(in crate::engine) struct Touched {
    pub(in crate::engine) table: Box<str>,
    pub(in crate::engine) by: StampedBy,
    pub(in crate::engine) rowids: Vec<i64>,
}

impl Watch {
    /// A row was inserted, updated or deleted.
    pub(in crate::engine) fn row_changed(&self, table: &[u8], rowid: i64, is_deleted: bool) {
        let mut tables = self.lock();
        let Some(place) = tables.place(table) else {
            return;
        };
        if let Some(rows) = &mut tables.rows {
            rows.push((place, rowid));
        }
        if is_deleted {
            return;
        }
        let watched = &mut tables.list[place];
        match &mut watched.highest {
            Some(highest) => *highest = rowid.max(*highest),
            None => watched.heard = rowid.max(watched.heard),
        }
        // A unit that touches a row twice does so back to back, mostly; the rest is sorted out later.
        if watched.stamped.is_some() && watched.touched.last() != Some(&rowid) {
            watched.touched.push(rowid);
        }
    }

    /// Notes every row from now on; what was noted so far is forgotten.
    pub(in crate::engine) fn note_rows(&self) {
        self.lock().rows = Some(Vec::new());
    }

    /// Whether rows are noted.
    pub(in crate::engine) fn notes_rows(&self) -> bool {
        self.lock().rows.is_some()
    }

    /// How many were noted so far.
    pub(in crate::engine) fn noted(&self) -> usize {
        self.lock().rows.as_ref().map_or(0, Vec::len)
    }

    /// The rows since then, by table, each once; nothing is noted any more.
    pub(in crate::engine) fn take_rows(&self) -> Vec<(Box<str>, Vec<i64>)> {
        let mut tables = self.lock();
        let mut rows = tables.rows.take().unwrap_or_default();
        rows.sort_unstable();
        rows.dedup();
        rows.chunk_by(|one, other| one.0 == other.0)
            .map(|rows| {
                let name = tables.list[rows[0].0].name.clone();
                (name, rows.iter().map(|row| row.1).collect())
            })
            .collect()
    }

    /// How rows of a table are stamped, if they are.
    pub(in crate::engine) fn stamped_by(&self, table: &str) -> Option<StampedBy> {
        self.lock().entry(table).stamped.clone()
    }

    /// Stamps rows of this table from now on.
    pub(in crate::engine) fn stamp(&self, table: &str, by: StampedBy) {
        self.lock().entry(table).stamped = Some(by);
    }

    /// The first of so many integer keys of a table that follow one another, beyond `above`; `highest` reads the largest one
    /// from the table when it is not known.
    pub(in crate::engine) fn next_keys<E>(
        &self,
        table: &str,
        above: i64,
        count: i64,
        highest: impl FnOnce() -> Result<i64, E>,
    ) -> Result<Option<i64>, E> {
        // The row with the largest key there is may be gone, or undone.
        let known = self.lock().entry(table).highest;
        let read = match known.filter(|highest| *highest < i64::MAX) {
            Some(_) => None,
            // Not under the lock: reading runs SQLite, which may call back.
            None => Some(highest()?),
        };
        let mut tables = self.lock();
        let watched = tables.entry(table);
        let highest = match (read, watched.highest) {
            (Some(read), Some(known)) if known < i64::MAX => read.max(known),
            (Some(read), _) => read.max(watched.heard),
            (None, known) => known.unwrap_or(watched.heard),
        };
        // So is a row that a session was to insert.
        let reserved = Some(watched.reserved).filter(|reserved| *reserved < i64::MAX);
        let next = highest
            .max(above)
            .max(reserved.unwrap_or_default())
            .max(0)
            .checked_add(count);
        watched.highest = next.or(Some(highest));
        Ok(next.map(|last| last - count + 1))
    }

    /// The same for a session, which may insert it at any time: nobody else is given it. Here `highest` reads what is
    /// committed, which says nothing of the rows of the writer's open transaction: for those it is no answer.
    pub(in crate::engine) fn reserve_key<E>(
        &self,
        table: &str,
        above: i64,
        highest: impl FnOnce() -> Result<i64, E>,
    ) -> Result<Option<i64>, E> {
        let is_usual = |key: &i64| *key < i64::MAX;
        let known = {
            let mut tables = self.lock();
            let watched = tables.entry(table);
            watched.highest.or(watched.committed).filter(is_usual)
        };
        // Not under the lock, as above.
        let read = known.is_none().then(highest).transpose()?;
        let mut tables = self.lock();
        let watched = tables.entry(table);
        if read.is_some() {
            watched.committed = read;
        }
        let seen = watched.highest.filter(is_usual).unwrap_or(watched.heard);
        let reserved = Some(watched.reserved).filter(is_usual);
        let next = [seen, above, 0]
            .into_iter()
            .chain(reserved)
            .chain(watched.committed)
            .max()
            .and_then(|key| key.checked_add(1));
        if let Some(next) = next {
            watched.reserved = next;
        }
        Ok(next)
    }

    /// The largest key of a table that this connection sees; `read` reads it from the table when it is not known.
    pub(in crate::engine) fn largest_key<E>(
        &self,
        table: &str,
        read: impl FnOnce() -> Result<i64, E>,
    ) -> Result<i64, E> {
        let known = self.lock().entry(table).highest;
        if let Some(known) = known {
            return Ok(known);
        }
        // Not under the lock, as above.
        let read = read()?;
        let mut tables = self.lock();
        let watched = tables.entry(table);
        let largest = read.max(watched.heard);
        watched.highest = Some(largest);
        Ok(largest)
    }

    /// The largest key of a table that this connection has heard of.
    pub(in crate::engine) fn heard(&self, table: &str) -> i64 {
        let mut tables = self.lock();
        let watched = tables.entry(table);
        watched.highest.unwrap_or(watched.heard)
    }

    /// Whether the update hook tells of a table's keys, once it was asked.
    pub(in crate::engine) fn is_rowid(&self, table: &str) -> Option<bool> {
        self.lock().entry(table).is_rowid
    }

    /// Remembers the answer.
    pub(in crate::engine) fn set_is_rowid(&self, table: &str, is_rowid: bool) {
        self.lock().entry(table).is_rowid = Some(is_rowid);
    }

    /// A new unit gives keys: those of which the hook does not tell may have been taken since the last one.
    pub(in crate::engine) fn forget_unheard_keys(&self) {
        for table in &mut self.lock().list {
            if table.is_rowid == Some(false) {
                table.highest = None;
                table.committed = None;
            }
        }
    }

    /// The schema is another one.
    pub(in crate::engine) fn forget_schema(&self) {
        for table in &mut self.lock().list {
            table.is_rowid = None;
            table.stamped = None;
        }
    }

    /// Another process, or another connection, wrote: what is known of the largest keys is out of date.
    pub(in crate::engine) fn forget_keys(&self) {
        for table in &mut self.lock().list {
            table.highest = None;
            table.committed = None;
            table.heard = 0;
        }
    }

    /// What was touched and heard of so far, for [`Watch::rewind`].
    pub(in crate::engine) fn mark(&self) -> Mark {
        Mark(
            self.lock()
                .list
                .iter()
                .map(|table| TableMark {
                    touched: table.touched.len(),
                    known: table
                        .highest
                        .filter(|highest| *highest < i64::MAX)
                        .unwrap_or(table.heard),
                })
                .collect(),
        )
    }

    /// What was done since the mark was undone: those rows need no number, and the largest keys are to be read again.
    pub(in crate::engine) fn rewind(&self, mark: &Mark) {
        for (index, table) in self.lock().list.iter_mut().enumerate() {
            let mark = mark.0.get(index);
            table.touched.truncate(mark.map_or(0, |mark| mark.touched));
            table.highest = None;
            // Sessions do not see the rows of before the mark that are still open: they are heard of, or not at all.
            table.heard = mark.map_or(0, |mark| mark.known);
            if mark.is_none() {
                table.committed = None;
            }
        }
    }

    /// Takes the rows that the present unit touched.
    pub(in crate::engine) fn take_touched(&self) -> Vec<Touched> {
        let mut taken = Vec::new();
        for table in &mut self.lock().list {
            if let Some(by) = &table.stamped
                && !table.touched.is_empty()
            {
                let mut rowids = std::mem::take(&mut table.touched);
                rowids.sort_unstable();
                rowids.dedup();
                taken.push(Touched {
                    table: table.name.clone(),
                    by: by.clone(),
                    rowids,
                });
            }
        }
        taken
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    /// Where a table is in the list; `None` for a name that is no text.
    fn place(&mut self, name: &[u8]) -> Option<usize> {
        let known = (self.list.iter())
            .position(|watched| watched.name.as_bytes().eq_ignore_ascii_case(name));
        if known.is_some() {
            return known;
        }
        self.list.push(WatchedTable {
            name: str::from_utf8(name).ok()?.into(),
            stamped: None,
            is_rowid: None,
            highest: None,
            committed: None,
            heard: 0,
            reserved: 0,
            touched: Vec::new(),
        });
        Some(self.list.len() - 1)
    }

    #[allow(clippy::expect_used, reason = "the name is a text")]
    fn entry(&mut self, name: &str) -> &mut WatchedTable {
        let place = self.place(name.as_bytes()).expect("a text has a place");
        &mut self.list[place]
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::hooks::watch::{Mark, StampedBy, Watch};

    #[test]
    fn keys_follow_the_largest_one_seen() {
        let watch = Watch::default();
        let next = || watch.next_keys("orders", 0, 1, || Ok::<_, ()>(7));
        assert_eq!(next(), Ok(Some(8)));
        watch.row_changed(b"orders", 100, false);
        assert_eq!(next(), Ok(Some(101)));
        watch.forget_keys();
        assert_eq!(next(), Ok(Some(8)));
    }

    #[test]
    fn the_largest_key_is_looked_for_anew() {
        let watch = Watch::default();
        watch.next_keys("t", 0, 1, || Ok::<_, ()>(1)).unwrap();
        watch.row_changed(b"T", i64::MAX, false);
        assert_eq!(
            watch.next_keys("t", 0, 1, || Ok::<_, ()>(i64::MAX)),
            Ok(None)
        );
        assert_eq!(watch.next_keys("t", 0, 1, || Ok::<_, ()>(1)), Ok(Some(2)));
    }

    #[test]
    fn negative_keys_are_no_start() {
        let watch = Watch::default();
        assert_eq!(watch.next_keys("t", 0, 1, || Ok::<_, ()>(-5)), Ok(Some(1)));
    }

    #[test]
    fn only_stamped_tables_are_collected_each_row_once() {
        let watch = Watch::default();
        watch.stamp(
            "Orders",
            StampedBy {
                column: "seq".into(),
                rowid: "rowid".into(),
            },
        );
        for rowid in [2, 1, 2] {
            watch.row_changed(b"Orders", rowid, false);
            watch.row_changed(b"customers", rowid, false);
        }
        let touched = watch.take_touched();
        assert_eq!(touched.len(), 1);
        assert_eq!(touched[0].rowids, [1, 2]);
        assert!(watch.take_touched().is_empty());
    }

    #[test]
    fn a_key_that_a_session_was_given_is_given_to_nobody_else() {
        let watch = Watch::default();
        let read = || Ok::<_, ()>(7);
        assert_eq!(watch.reserve_key("t", 0, read), Ok(Some(8)));
        assert_eq!(watch.next_keys("t", 0, 1, read), Ok(Some(9)));
        watch.rewind(&Mark::default());
        assert_eq!(
            watch.next_keys("t", 0, 1, read),
            Ok(Some(9)),
            "9 was undone"
        );
        watch.forget_keys();
        assert_eq!(watch.reserve_key("t", 0, read), Ok(Some(9)));
        watch.rewind(&Mark::default());
        assert_eq!(watch.next_keys("t", 0, 1, read), Ok(Some(10)));
    }

    #[test]
    fn what_a_session_reads_is_no_answer_for_the_open_transaction() {
        let watch = Watch::default();
        let committed = || Ok::<_, ()>(7);
        assert_eq!(watch.next_keys("t", 0, 1, committed), Ok(Some(8)));
        assert_eq!(watch.next_keys("t", 0, 1, committed), Ok(Some(9)));
        let mark = watch.mark();
        assert_eq!(watch.next_keys("t", 0, 1, committed), Ok(Some(10)));
        watch.rewind(&mark);
        assert_eq!(watch.reserve_key("t", 0, committed), Ok(Some(10)));
        watch.forget_keys();
        assert_eq!(watch.reserve_key("t", 0, committed), Ok(Some(11)));
        let open = || Ok::<_, ()>(20);
        assert_eq!(watch.next_keys("t", 0, 1, open), Ok(Some(21)));
    }

    #[test]
    fn a_key_heard_of_before_the_table_was_read_counts() {
        let watch = Watch::default();
        watch.row_changed(b"t", 20, false);
        assert_eq!(watch.next_keys("t", 0, 1, || Ok::<_, ()>(7)), Ok(Some(21)));
    }

    #[test]
    fn all_rows_are_noted_if_asked_deleted_ones_too() {
        let watch = Watch::default();
        watch.row_changed(b"t", 1, false);
        watch.note_rows();
        for (rowid, is_deleted) in [(3, false), (2, true), (3, false)] {
            watch.row_changed(b"t", rowid, is_deleted);
        }
        assert_eq!(watch.take_rows(), [("t".into(), vec![2, 3])]);
        assert!(watch.take_rows().is_empty());
    }
}
