//! SQLite's callbacks, handed on to safe code.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr::null_mut,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, Ordering},
    },
};

use libsqlite3_sys as sqlite;

use crate::engine::{
    ffi::guarded,
    hooks::{Action, Authorizer, Progress, Statements, WalSize, Watch},
};

/// Who listens to a connection. The connection's owner keeps it for as long as the connection is open.
#[derive(Debug, Clone, Default)]
pub(in crate::engine) struct Hooks {
    /// Told of each changed row.
    pub(in crate::engine) watch: Option<Arc<Watch>>,
    /// Told of each commit.
    pub(in crate::engine) wal_size: Option<Arc<WalSize>>,
    /// Asked now and then whether to go on.
    pub(in crate::engine) progress: Option<Arc<Progress>>,
    /// Asked now and then, in place of `progress`, whether the pages in memory are too many.
    pub(in crate::engine) pages: Option<Arc<PageLimit>>,
    /// Told of each statement that begins to run and may write.
    pub(in crate::engine) statements: Option<Arc<Statements>>,
    /// Asked what a statement may do.
    pub(in crate::engine) authorizer: Option<Arc<Authorizer>>,
}

/// Stops a statement of a session that changes more pages than may be kept in memory.
#[derive(Debug)]
pub(in crate::engine) struct PageLimit {
    /// In bytes.
    limit: u64,
    exceeded: AtomicBool,
    /// Of the connection that asks; used by its callback alone.
    db: AtomicPtr<sqlite::sqlite3>,
}

impl PageLimit {
    pub(in crate::engine) fn new(limit: u64) -> Self {
        Self {
            limit,
            exceeded: AtomicBool::new(false),
            db: AtomicPtr::new(null_mut()),
        }
    }

    /// Whether a statement was stopped since this was asked.
    pub(in crate::engine) fn take_exceeded(&self) -> bool {
        self.exceeded.swap(false, Ordering::Relaxed)
    }
}

impl Hooks {
    /// Registers the listeners on a connection.
    ///
    /// # Safety
    ///
    /// `db` is open and not in use by another thread (invariant 1), and `self` outlives it (invariant 2).
    pub(super) unsafe fn install(&self, db: *mut sqlite::sqlite3) {
        // SAFETY: invariants 1 and 2, as this function's contract says; each pointer is to the type that its
        // callback reads.
        unsafe {
            if let Some(watch) = &self.watch {
                sqlite::sqlite3_update_hook(db, Some(row_changed), context(watch));
            }
            if let Some(wal_size) = &self.wal_size {
                sqlite::sqlite3_wal_hook(db, Some(committed), context(wal_size));
            }
            if let Some(progress) = &self.progress {
                sqlite::sqlite3_progress_handler(
                    db,
                    Progress::STEPS,
                    Some(shall_stop),
                    context(progress),
                );
            }
            if let Some(pages) = &self.pages {
                pages.db.store(db, Ordering::Relaxed);
                sqlite::sqlite3_progress_handler(
                    db,
                    Progress::STEPS,
                    Some(outgrows),
                    context(pages),
                );
            }
            if let Some(statements) = &self.statements {
                sqlite::sqlite3_trace_v2(
                    db,
                    sqlite::SQLITE_TRACE_STMT,
                    Some(begins),
                    context(statements),
                );
            }
            if let Some(authorizer) = &self.authorizer {
                sqlite::sqlite3_set_authorizer(db, Some(may), context(authorizer));
            }
        }
    }

    /// Registers no listeners any more.
    ///
    /// # Safety
    ///
    /// `db` is open and not in use by another thread (invariant 1).
    pub(super) unsafe fn remove(db: *mut sqlite::sqlite3) {
        // SAFETY: invariant 1, as this function's contract says.
        unsafe {
            sqlite::sqlite3_update_hook(db, None, null_mut());
            sqlite::sqlite3_wal_hook(db, None, null_mut());
            sqlite::sqlite3_progress_handler(db, 0, None, null_mut());
            sqlite::sqlite3_trace_v2(db, 0, None, null_mut());
            sqlite::sqlite3_set_authorizer(db, None, null_mut());
        }
    }
}

fn context<T>(listener: &Arc<T>) -> *mut c_void {
    Arc::as_ptr(listener).cast_mut().cast()
}

unsafe extern "C" fn row_changed(
    watch: *mut c_void,
    operation: c_int,
    _database: *const c_char,
    table: *const c_char,
    rowid: i64,
) {
    guarded((), || {
        // SAFETY: invariant 2; the hook was registered with a pointer to a `Watch`.
        let watch = unsafe { &*watch.cast::<Watch>() };
        // SAFETY: invariant 4.
        let table = unsafe { CStr::from_ptr(table) };
        let is_deleted = operation == sqlite::SQLITE_DELETE;
        watch.row_changed(table.to_bytes(), rowid, is_deleted);
    });
}

unsafe extern "C" fn committed(
    wal_size: *mut c_void,
    _db: *mut sqlite::sqlite3,
    _database: *const c_char,
    frames: c_int,
) -> c_int {
    guarded((), || {
        // SAFETY: invariant 2; the hook was registered with a pointer to a `WalSize`.
        unsafe { &*wal_size.cast::<WalSize>() }.committed(frames.unsigned_abs());
    });
    sqlite::SQLITE_OK
}

unsafe extern "C" fn shall_stop(progress: *mut c_void) -> c_int {
    let stop = guarded(true, || {
        // SAFETY: invariant 2; the handler was registered with a pointer to a `Progress`.
        unsafe { &*progress.cast::<Progress>() }.shall_stop()
    });
    c_int::from(stop)
}

unsafe extern "C" fn begins(
    _event: c_uint,
    statements: *mut c_void,
    statement: *mut c_void,
    _text: *mut c_void,
) -> c_int {
    guarded((), || {
        // SAFETY: invariant 2; the callback was registered with a pointer to a `Statements`.
        let statements = unsafe { &*statements.cast::<Statements>() };
        if !statements.is_on() {
            return;
        }
        // A trigger of it is told as well, with the same statement.
        let statement = statement.cast::<sqlite::sqlite3_stmt>();
        // SAFETY: SQLite hands in the statement that begins, which is valid while this runs.
        let reads_only = unsafe { sqlite::sqlite3_stmt_readonly(statement) } != 0;
        if reads_only {
            return;
        }
        // SAFETY: the same; its text is NUL-terminated, and lives as long (invariant 4).
        if let Some(text) = unsafe { text(sqlite::sqlite3_sql(statement)) } {
            statements.runs(text);
        }
    });
    0
}

unsafe extern "C" fn outgrows(pages: *mut c_void) -> c_int {
    let stop = guarded(true, || {
        // SAFETY: invariant 2; the handler was registered with a pointer to a `PageLimit`.
        let pages = unsafe { &*pages.cast::<PageLimit>() };
        // SAFETY: invariant 1: the connection runs a statement on this thread, which asks.
        let used = unsafe { pages_in_memory(pages.db.load(Ordering::Relaxed)) };
        if used > pages.limit {
            pages.exceeded.store(true, Ordering::Relaxed);
        }
        used > pages.limit
    });
    c_int::from(stop)
}

/// How many bytes of pages a connection keeps.
///
/// # Safety
///
/// `db` is open and not in use by another thread (invariant 1).
pub(super) unsafe fn pages_in_memory(db: *mut sqlite::sqlite3) -> u64 {
    let (mut current, mut highest) = (0, 0);
    // SAFETY: invariant 1, as this function's contract says; SQLite writes two ints.
    unsafe {
        sqlite::sqlite3_db_status(
            db,
            sqlite::SQLITE_DBSTATUS_CACHE_USED,
            &raw mut current,
            &raw mut highest,
            0,
        );
    }
    u64::try_from(current).unwrap_or_default()
}

unsafe extern "C" fn may(
    authorizer: *mut c_void,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    database: *const c_char,
    _inner: *const c_char,
) -> c_int {
    let allowed = guarded(false, || {
        // SAFETY: invariant 2; the authorizer was registered with a pointer to an `Authorizer`.
        let authorizer = unsafe { &*authorizer.cast::<Authorizer>() };
        // SAFETY: invariant 4, for each of the three.
        let (first, second, database) = unsafe { (text(first), text(second), text(database)) };
        authorizer.allows(&Action {
            code: action,
            first,
            second,
            database,
        })
    });
    if allowed {
        sqlite::SQLITE_OK
    } else {
        sqlite::SQLITE_DENY
    }
}

/// The text at `text`, if there is one.
///
/// # Safety
///
/// `text` is null or NUL-terminated, and valid for `'a` (invariant 4).
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and by this function's contract NUL-terminated.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}
