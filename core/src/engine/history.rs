//! What was committed since the sessions that are open began.
//!
//! Each commit of this file in this process has a number. A session notes the last one *before* it takes its snapshot, so
//! that all up to it are in the snapshot; what came later may or may not be, and counts as changed. A commit is noted
//! *after* its COMMIT, for the same reason. Commits of other processes are counted by
//! [`Head`](crate::engine::hooks::Head): after one, nothing is known of what changed.
//!
//! Before there ever was a session nothing is noted, and while none is open nothing is kept.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use crate::engine::access::StatementAccess;

/// See the module's page.
#[derive(Debug, Default)]
pub(in crate::engine) struct History {
    state: Mutex<State>,
    /// Told when the last session ends.
    idle: Condvar,
    /// Whether there ever was a session. What a transaction changed is noted as it runs, so one that begins in the midst
    /// of a transaction can only be told if it was noted from the start.
    is_wanted: AtomicBool,
    /// The same of sessions that want to know the rows.
    wants_rows: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    /// How many open sessions began after each commit.
    begun: BTreeMap<u64, usize>,
    commits: VecDeque<(u64, Changes)>,
}

/// What a commit, a unit of it, or several of them changed.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::engine) enum Changes {
    /// Anything.
    Unknown,
    /// Rows of these tables.
    Tables(HashMap<Box<str>, Rows>),
}

/// The rows of a table that were changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) enum Rows {
    /// Any.
    All,
    /// Those with these rowids.
    These(HashSet<i64>),
}

/// More rows of a table than this are not told apart.
const MOST_ROWS: usize = 100_000;

/// Where in the history a session began. Dropped, the history may forget.
#[derive(Debug)]
pub(in crate::engine) struct Since {
    history: Arc<History>,
    last: u64,
    foreign: u64,
}

impl History {
    /// A session is about to take its snapshot. `foreign` is how many commits of other processes were noticed.
    pub(in crate::engine) fn begin(self: &Arc<Self>, foreign: u64, is_snapshot: bool) -> Since {
        let mut state = self.lock();
        let last = state.last;
        *state.begun.entry(last).or_default() += 1;
        self.is_wanted.store(true, Ordering::Relaxed);
        self.wants_rows.fetch_or(is_snapshot, Ordering::Relaxed);
        drop(state);
        Since {
            history: Arc::clone(self),
            last,
            foreign,
        }
    }

    /// Whether what a transaction changes is to be noted.
    pub(in crate::engine) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Whether the rows are to be noted as well.
    pub(in crate::engine) fn wants_rows(&self) -> bool {
        self.wants_rows.load(Ordering::Relaxed)
    }

    /// A transaction of this process was committed, or may have been.
    pub(in crate::engine) fn committed(&self, changes: Changes) {
        let mut state = self.lock();
        state.last += 1;
        let last = state.last;
        let Some(newest) = state.begun.keys().next_back().copied() else {
            return;
        };
        match state.commits.back_mut() {
            // Nobody began between the two: they are never told apart.
            Some((number, known)) if *number > newest => {
                *number = last;
                known.add(&changes);
            }
            _ => state.commits.push_back((last, changes)),
        }
    }

    /// Waits until no session is open, for no longer than until the deadline; whether that is so.
    pub(in crate::engine) fn is_idle_by(&self, deadline: Instant) -> bool {
        let rest = deadline.saturating_duration_since(Instant::now());
        let (state, _) = self
            .idle
            .wait_timeout_while(self.lock(), rest, |state| !state.begun.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        state.begun.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Since {
    /// What was changed since the session began; `foreign` as in [`History::begin`], asked under the write lock.
    pub(in crate::engine) fn changes(&self, foreign: u64) -> Changes {
        let mut changes = Changes::default();
        if foreign != self.foreign {
            return Changes::Unknown;
        }
        let state = self.history.lock();
        for (number, commit) in &state.commits {
            if *number > self.last {
                changes.add(commit);
            }
        }
        changes
    }
}

impl Drop for Since {
    fn drop(&mut self) {
        let mut state = self.history.lock();
        if let Some(sessions) = state.begun.get_mut(&self.last) {
            *sessions -= 1;
            if *sessions == 0 {
                state.begun.remove(&self.last);
            }
        }
        if state.begun.is_empty() {
            self.history.idle.notify_all();
        }
        let oldest = state.begun.keys().next().copied().unwrap_or(u64::MAX);
        while let Some((number, _)) = state.commits.front()
            && *number <= oldest
        {
            state.commits.pop_front();
        }
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self::Tables(HashMap::new())
    }
}

impl Changes {
    /// These as well.
    pub(in crate::engine) fn add(&mut self, other: &Self) {
        match other {
            Self::Unknown => *self = Self::Unknown,
            Self::Tables(tables) => {
                for (table, rows) in tables {
                    self.add_rows(table, rows);
                }
            }
        }
    }

    /// Rows of a table as well.
    pub(in crate::engine) fn add_rows(&mut self, table: &str, rows: &Rows) {
        let Self::Tables(tables) = self else { return };
        match (tables.get_mut(table), rows) {
            (None, rows) => drop(tables.insert(table.into(), rows.clone())),
            (Some(Rows::These(known)), Rows::These(more))
                if known.len() + more.len() <= MOST_ROWS =>
            {
                known.extend(more);
            }
            (Some(known), _) => *known = Rows::All,
        }
    }

    /// What a statement that was run may have written: anything, if it is not known. If rows are noted, they follow with
    /// [`Changes::add_noted`], where they can be.
    pub(in crate::engine) fn add_writes(
        &mut self,
        access: Option<&StatementAccess>,
        notes_rows: bool,
    ) {
        let Some(access) = access.filter(|access| !access.changes_schema && !access.is_pragma)
        else {
            *self = Self::Unknown;
            return;
        };
        for written in &access.writes {
            let rows = if written.is_blind || !notes_rows {
                Rows::All
            } else {
                Rows::These(HashSet::new())
            };
            self.add_rows(&written.table, &rows);
        }
    }

    /// Rows that the update hook told of.
    pub(in crate::engine) fn add_noted(&mut self, rows: Vec<(Box<str>, Vec<i64>)>) {
        for (table, rows) in rows {
            self.add_rows(&table, &Rows::These(rows.into_iter().collect()));
        }
    }

    /// The tables, as far as they are known.
    pub(in crate::engine) fn tables(&self) -> Vec<Box<str>> {
        match self {
            Self::Unknown => Vec::new(),
            Self::Tables(tables) => tables.keys().cloned().collect(),
        }
    }

    /// Whether nothing changed.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        matches!(self, Self::Tables(tables) if tables.is_empty())
    }

    /// Whether anything of this table changed.
    pub(in crate::engine) fn concern(&self, table: &str) -> bool {
        match self {
            Self::Unknown => true,
            Self::Tables(tables) => tables.contains_key(table),
        }
    }

    /// A table of which both changed a row, as far as can be known, and the row, if one is meant. Where either is
    /// unknown there is no table to name.
    pub(in crate::engine) fn clash(&self, other: &Self) -> Option<(Option<Box<str>>, Option<i64>)> {
        let (Self::Tables(ours), Self::Tables(theirs)) = (self, other) else {
            return (!self.is_empty() && !other.is_empty()).then_some((None, None));
        };
        // What counts keys or commits is written by everybody, and no client's row.
        let is_counter =
            |table: &str| table.starts_with("sqlite_") || table.starts_with("anabranch_");
        let ours = ours.iter().filter(|(table, _)| !is_counter(table));
        ours.into_iter().find_map(|(table, rows)| {
            let rowid = match (rows, theirs.get(table)?) {
                (Rows::These(ours), Rows::These(theirs)) => {
                    let same = ours.intersection(theirs).next()?;
                    Some(*same)
                }
                _ => None,
            };
            Some((Some(table.clone()), rowid))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::engine::history::{Changes, History, Rows};

    fn rows(table: &str, rows: &[i64]) -> Changes {
        let mut changes = Changes::default();
        changes.add_rows(table, &Rows::These(rows.iter().copied().collect()));
        changes
    }

    #[test]
    fn a_session_is_told_of_what_was_committed_after_it_began() {
        let history = Arc::new(History::default());
        let first = history.begin(0, true);
        history.committed(rows("a", &[1]));
        let second = history.begin(0, false);
        history.committed(rows("b", &[2]));
        assert!(first.changes(0).concern("a") && first.changes(0).concern("b"));
        assert!(!second.changes(0).concern("a") && second.changes(0).concern("b"));
        assert_eq!(second.changes(1), Changes::Unknown);
    }

    #[test]
    fn what_nobody_can_ask_for_is_forgotten() {
        let history = Arc::new(History::default());
        history.committed(rows("a", &[1]));
        assert!(history.lock().commits.is_empty());
        let first = history.begin(0, false);
        history.committed(rows("a", &[1]));
        let second = history.begin(0, false);
        history.committed(rows("a", &[1]));
        drop(first);
        assert_eq!(history.lock().commits.len(), 1);
        drop(second);
        assert!(history.lock().commits.is_empty());
    }

    #[test]
    fn changes_clash_in_the_same_row_or_where_rows_are_not_known() {
        let mut whole = Changes::default();
        whole.add_rows("a", &Rows::All);
        assert_eq!(
            rows("a", &[1, 2]).clash(&rows("a", &[2])),
            Some((Some("a".into()), Some(2)))
        );
        assert_eq!(rows("a", &[1]).clash(&rows("a", &[2])), None);
        assert_eq!(rows("a", &[1]).clash(&rows("b", &[1])), None);
        assert_eq!(
            rows("a", &[1]).clash(&whole),
            Some((Some("a".into()), None))
        );
        assert!(rows("a", &[1]).clash(&Changes::Unknown).is_some());
        assert_eq!(Changes::Unknown.clash(&Changes::default()), None);
    }
}
