//! Which rows the writer's statements touch, whoever wrote the SQL.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Listens to the update hook of the writer's connections, for the tables that matter: those with integer keys
/// that the writer gives out, and those that are stamped with a commit number.
#[derive(Debug, Default)]
pub(in crate::engine) struct Watch {
    tables: Mutex<Vec<WatchedTable>>,
}

#[derive(Debug)]
struct WatchedTable {
    name: Box<str>,
    /// How its rows are stamped, if they are.
    stamped: Option<StampedBy>,
    /// Whether the key is the rowid, of which the update hook tells; `None` until it was asked.
    is_rowid: Option<bool>,
    /// The largest key seen; `None` until it was read from the table.
    highest: Option<i64>,
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
pub(in crate::engine) struct Mark(Vec<usize>);

/// The rows of one table that wait for their commit number.
#[derive(Debug)]
pub(in crate::engine) struct Touched {
    pub(in crate::engine) table: Box<str>,
    pub(in crate::engine) by: StampedBy,
    pub(in crate::engine) rowids: Vec<i64>,
}

impl Watch {
    /// A row was inserted or updated.
    pub(in crate::engine) fn row_changed(&self, table: &[u8], rowid: i64) {
        let mut tables = self.lock();
        let Some(watched) = tables
            .iter_mut()
            .find(|watched| watched.name.as_bytes().eq_ignore_ascii_case(table))
        else {
            return;
        };
        watched.highest = watched.highest.map(|highest| highest.max(rowid));
        // A unit that touches a row twice does so back to back, mostly; the rest is sorted out later.
        if watched.stamped.is_some() && watched.touched.last() != Some(&rowid) {
            watched.touched.push(rowid);
        }
    }

    /// Stamps rows of this table from now on.
    pub(in crate::engine) fn stamp(&self, table: &str, by: StampedBy) {
        entry(&mut self.lock(), table).stamped = Some(by);
    }

    /// The next integer key of a table, one beyond `above`; `highest` reads the largest one from the table when it is
    /// not known.
    pub(in crate::engine) fn next_key<E>(
        &self,
        table: &str,
        above: i64,
        highest: impl FnOnce() -> Result<i64, E>,
    ) -> Result<Option<i64>, E> {
        let known = entry(&mut self.lock(), table).highest;
        // The row with the largest key there is may be gone, or undone.
        let known = known.filter(|highest| *highest < i64::MAX);
        // Not under the lock: reading runs SQLite, which may call back.
        let highest = known.map_or_else(highest, Ok)?;
        let next = highest.max(above).max(0).checked_add(1);
        entry(&mut self.lock(), table).highest = next.or(Some(highest));
        Ok(next)
    }

    /// Whether the update hook tells of a table's keys, once it was asked.
    pub(in crate::engine) fn is_rowid(&self, table: &str) -> Option<bool> {
        entry(&mut self.lock(), table).is_rowid
    }

    /// Remembers the answer.
    pub(in crate::engine) fn set_is_rowid(&self, table: &str, is_rowid: bool) {
        entry(&mut self.lock(), table).is_rowid = Some(is_rowid);
    }

    /// A new unit gives keys: those of which the hook does not tell may have been taken since the last one.
    pub(in crate::engine) fn forget_unheard_keys(&self) {
        for table in self.lock().iter_mut() {
            if table.is_rowid == Some(false) {
                table.highest = None;
            }
        }
    }

    /// The schema is another one.
    pub(in crate::engine) fn forget_schema(&self) {
        for table in self.lock().iter_mut() {
            table.is_rowid = None;
            table.stamped = None;
        }
    }

    /// Another process, or another connection, wrote: what is known of the largest keys is out of date.
    pub(in crate::engine) fn forget_keys(&self) {
        for table in self.lock().iter_mut() {
            table.highest = None;
        }
    }

    /// How many rows were touched so far, for [`Watch::rewind`].
    pub(in crate::engine) fn mark(&self) -> Mark {
        Mark(
            self.lock()
                .iter()
                .map(|table| table.touched.len())
                .collect(),
        )
    }

    /// What was done since the mark was undone: those rows need no number, and the largest keys are to be read again.
    pub(in crate::engine) fn rewind(&self, mark: &Mark) {
        for (index, table) in self.lock().iter_mut().enumerate() {
            table
                .touched
                .truncate(mark.0.get(index).copied().unwrap_or(0));
            table.highest = None;
        }
    }

    /// Takes the rows that the present unit touched.
    pub(in crate::engine) fn take_touched(&self) -> Vec<Touched> {
        let mut taken = Vec::new();
        for table in self.lock().iter_mut() {
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

    fn lock(&self) -> MutexGuard<'_, Vec<WatchedTable>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry<'a>(tables: &'a mut Vec<WatchedTable>, name: &str) -> &'a mut WatchedTable {
    let index = tables
        .iter()
        .position(|watched| watched.name.eq_ignore_ascii_case(name))
        .unwrap_or_else(|| {
            tables.push(WatchedTable {
                name: name.into(),
                stamped: None,
                is_rowid: None,
                highest: None,
                touched: Vec::new(),
            });
            tables.len() - 1
        });
    &mut tables[index]
}

#[cfg(test)]
mod tests {
    use crate::engine::hooks::watch::{StampedBy, Watch};

    #[test]
    fn keys_follow_the_largest_one_seen() {
        let watch = Watch::default();
        let next = || watch.next_key("orders", 0, || Ok::<_, ()>(7));
        assert_eq!(next(), Ok(Some(8)));
        watch.row_changed(b"orders", 100);
        assert_eq!(next(), Ok(Some(101)));
        watch.forget_keys();
        assert_eq!(next(), Ok(Some(8)));
    }

    #[test]
    fn the_largest_key_is_looked_for_anew() {
        let watch = Watch::default();
        watch.next_key("t", 0, || Ok::<_, ()>(1)).unwrap();
        watch.row_changed(b"T", i64::MAX);
        assert_eq!(watch.next_key("t", 0, || Ok::<_, ()>(i64::MAX)), Ok(None));
        assert_eq!(watch.next_key("t", 0, || Ok::<_, ()>(1)), Ok(Some(2)));
    }

    #[test]
    fn negative_keys_are_no_start() {
        let watch = Watch::default();
        assert_eq!(watch.next_key("t", 0, || Ok::<_, ()>(-5)), Ok(Some(1)));
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
            watch.row_changed(b"Orders", rowid);
            watch.row_changed(b"customers", rowid);
        }
        let touched = watch.take_touched();
        assert_eq!(touched.len(), 1);
        assert_eq!(touched[0].rowids, [1, 2]);
        assert!(watch.take_touched().is_empty());
    }
}
