//! The VFS through which all connections are opened that write to a file: SQLite's own, but for the clock, and with
//! an ear at the lock of writers.
//!
//! Everything is handed on to the real VFS. What is asked the time asks the [`Clock`] first, and what takes the lock
//! WRITE tells the [`Head`]. Files other than the database itself are the real ones.

mod file;
#[cfg(test)]
mod tests;

use std::{
    cell::UnsafeCell,
    ffi::{CString, c_char, c_int, c_void},
    ptr::{null, null_mut},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use libsqlite3_sys as sqlite;

use crate::{
    engine::{
        ffi::guarded,
        hooks::{Clock, Head},
    },
    error::{Error, ErrorKind, Result},
};

/// What this many milliseconds are to SQLite: a day.
const DAY: f64 = 86_400_000.0;

/// The VFS of the connections that write to one open file.
#[derive(Debug)]
pub(in crate::engine) struct WriterVfs(&'static WriterSlot);

/// A registered VFS. It is used for one open file after the other, and never freed: SQLite unregisters a VFS
/// without asking whether a connection still uses it, and sqlx closes a connection at some time later.
///
/// Who had the name of a slot that serves another file by now could still open its own file through it. A connect of
/// sqlx whose future was dropped may do that, and closes again: the head then counts somebody else's commit that
/// there was not, which is never wrong to assume.
struct WriterSlot {
    vfs: UnsafeCell<sqlite::sqlite3_vfs>,
    name: CString,
    real: *mut sqlite::sqlite3_vfs,
    clock: Clock,
    head: Head,
    /// The `WriterVfs`, and each file that is open.
    users: AtomicUsize,
}

// SAFETY: invariants 13 and 14: what the pointers lead to is never freed, and used by SQLite alone.
unsafe impl Send for WriterSlot {}
// SAFETY: the same; the rest is atomics, locks, and what is never written.
unsafe impl Sync for WriterSlot {}

impl std::fmt::Debug for WriterSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriterSlot")
            .field("name", &self.name)
            .field("users", &self.users)
            .finish_non_exhaustive()
    }
}

/// Slots that nobody uses, and how many there are at all.
static FREE: Mutex<(Vec<&'static WriterSlot>, usize)> = Mutex::new((Vec::new(), 0));

impl WriterVfs {
    /// Registers a VFS above the one that is SQLite's default now.
    pub(in crate::engine) fn register() -> Result<Arc<Self>> {
        // SAFETY: a null name asks for the default; this may be called at any time, from any thread.
        let real = unsafe { sqlite::sqlite3_vfs_find(null()) };
        if real.is_null() {
            return Err(no_vfs());
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match free.0.iter().position(|slot| slot.real == real) {
            Some(place) => free.0.swap_remove(place),
            None => {
                free.1 += 1;
                WriterSlot::register(free.1, real)?
            }
        };
        slot.clock.free();
        slot.head.forget();
        slot.users.store(1, Ordering::Release);
        Ok(Arc::new(Self(slot)))
    }

    /// By which connections are opened through it.
    pub(in crate::engine) fn name(&self) -> &'static str {
        self.0.name.to_str().unwrap_or_default()
    }

    /// What its connections are told when they ask for the time.
    pub(in crate::engine) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Whether others wrote.
    pub(in crate::engine) fn head(&self) -> &Head {
        &self.0.head
    }
}

impl Drop for WriterVfs {
    fn drop(&mut self) {
        self.0.leave();
    }
}

fn no_vfs() -> Error {
    Error::new(
        ErrorKind::OutOfMemory,
        "SQLite could not register the VFS of the writer",
    )
}

impl WriterSlot {
    /// Makes one and registers it, for as long as the process lives.
    fn register(number: usize, real: *mut sqlite::sqlite3_vfs) -> Result<&'static Self> {
        let name = CString::new(format!("anabranch-writer-{number}")).map_err(|_| no_vfs())?;
        // SAFETY: invariant 14: `real` was just found; it is copied, and written by nobody.
        let mut vfs = unsafe { *real };
        above(&mut vfs);
        let slot = Box::leak(Box::new(Self {
            vfs: UnsafeCell::new(vfs),
            name,
            real,
            clock: Clock::default(),
            head: Head::default(),
            users: AtomicUsize::new(0),
        }));
        let vfs = slot.vfs.get();
        // SAFETY: invariant 13; nobody else has the slot yet.
        let registered = unsafe {
            (*vfs).zName = slot.name.as_ptr();
            (*vfs).pAppData = std::ptr::from_ref(slot).cast_mut().cast();
            sqlite::sqlite3_vfs_register(vfs, 0)
        };
        if registered == sqlite::SQLITE_OK {
            Ok(slot)
        } else {
            Err(no_vfs())
        }
    }

    /// One user less. The last one puts the slot back.
    fn leave(&'static self) {
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            free.0.push(self);
        }
    }
}

/// Makes of a copy of the real VFS one that hands on to it. What the real one lacks is lacking here.
fn above(vfs: &mut sqlite::sqlite3_vfs) {
    vfs.pNext = null_mut();
    vfs.szOsFile += file::ROOM;
    vfs.xOpen = Some(open);
    vfs.xDelete = vfs.xDelete.and(Some(delete));
    vfs.xAccess = vfs.xAccess.and(Some(access));
    vfs.xFullPathname = vfs.xFullPathname.and(Some(full_pathname));
    vfs.xDlOpen = vfs.xDlOpen.and(Some(dl_open));
    vfs.xDlError = vfs.xDlError.and(Some(dl_error));
    vfs.xDlSym = vfs.xDlSym.and(Some(dl_sym));
    vfs.xDlClose = vfs.xDlClose.and(Some(dl_close));
    vfs.xRandomness = vfs.xRandomness.and(Some(randomness));
    vfs.xSleep = vfs.xSleep.and(Some(sleep));
    vfs.xGetLastError = vfs.xGetLastError.and(Some(last_error));
    vfs.xCurrentTime = Some(current_time);
    vfs.xCurrentTimeInt64 = Some(current_time_millis);
    // The methods of the third version replace system calls, for SQLite's own tests.
    vfs.iVersion = 2;
    vfs.xSetSystemCall = None;
    vfs.xGetSystemCall = None;
    vfs.xNextSystemCall = None;
}

/// The slot that a VFS of ours is in.
///
/// # Safety
///
/// `vfs` is one that [`WriterSlot::register`] made.
unsafe fn slot_of(vfs: *mut sqlite::sqlite3_vfs) -> &'static WriterSlot {
    // SAFETY: invariant 13; `pAppData` was set there.
    unsafe { &*(*vfs).pAppData.cast::<WriterSlot>() }
}

unsafe extern "C" fn open(
    vfs: *mut sqlite::sqlite3_vfs,
    name: sqlite::sqlite3_filename,
    file: *mut sqlite::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: invariant 13: SQLite hands in the VFS that was registered.
    let slot = unsafe { slot_of(vfs) };
    // SAFETY: invariants 14 and 15: SQLite gave `file` the room that the VFS asks for.
    unsafe { file::open(slot, name, file, flags, out_flags) }
}

unsafe extern "C" fn current_time_millis(vfs: *mut sqlite::sqlite3_vfs, time: *mut i64) -> c_int {
    guarded(sqlite::SQLITE_ERROR, || {
        // SAFETY: invariant 13.
        let slot = unsafe { slot_of(vfs) };
        let mut result = sqlite::SQLITE_OK;
        let now = slot.clock.now(|| {
            let mut now = 0;
            // SAFETY: invariant 14; `now` is written while this runs.
            result = unsafe { real_time(slot.real, &mut now) };
            now
        });
        // SAFETY: SQLite hands in where it wants the answer.
        unsafe { *time = now };
        result
    })
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a Julian day in milliseconds is far below 2^53"
)]
unsafe extern "C" fn current_time(vfs: *mut sqlite::sqlite3_vfs, day: *mut f64) -> c_int {
    let mut now = 0;
    // SAFETY: invariant 13: the VFS is the one that SQLite handed in.
    let result = unsafe { current_time_millis(vfs, &raw mut now) };
    // SAFETY: SQLite hands in where it wants the answer.
    unsafe { *day = now as f64 / DAY };
    result
}

/// What time it is to the real VFS, asked as `sqlite3OsCurrentTimeInt64` does.
///
/// # Safety
///
/// `real` is a registered VFS (invariant 14).
#[allow(
    clippy::cast_possible_truncation,
    reason = "a Julian day in milliseconds fits"
)]
unsafe fn real_time(real: *mut sqlite::sqlite3_vfs, time: &mut i64) -> c_int {
    // SAFETY: invariant 14, as this function's contract says.
    unsafe {
        if (*real).iVersion >= 2
            && let Some(millis) = (*real).xCurrentTimeInt64
        {
            return millis(real, time);
        }
        let mut day = 0.0;
        let Some(ask) = (*real).xCurrentTime else {
            return sqlite::SQLITE_ERROR;
        };
        let result = ask(real, &raw mut day);
        *time = (day * DAY) as i64;
        result
    }
}

/// Methods of the VFS that are handed on with the real VFS.
macro_rules! hand_on {
    ($($name:ident = $method:ident($($arg:ident: $type:ty),*) -> $result:ty, else $otherwise:expr;)*) => {$(
        unsafe extern "C" fn $name(vfs: *mut sqlite::sqlite3_vfs, $($arg: $type),*) -> $result {
            // SAFETY: invariants 13 and 14; the arguments are handed on as they came.
            unsafe {
                let real = slot_of(vfs).real;
                match (*real).$method {
                    Some(method) => method(real, $($arg),*),
                    None => $otherwise,
                }
            }
        }
    )*};
}

type Symbol =
    unsafe extern "C" fn(*mut sqlite::sqlite3_vfs, symbol: *mut c_void, name: *const c_char);

hand_on! {
    delete = xDelete(name: *const c_char, sync: c_int) -> c_int, else sqlite::SQLITE_ERROR;
    access = xAccess(name: *const c_char, flags: c_int, out: *mut c_int) -> c_int, else sqlite::SQLITE_ERROR;
    full_pathname = xFullPathname(name: *const c_char, room: c_int, out: *mut c_char) -> c_int,
        else sqlite::SQLITE_ERROR;
    dl_open = xDlOpen(name: *const c_char) -> *mut c_void, else null_mut();
    dl_error = xDlError(room: c_int, out: *mut c_char) -> (), else ();
    dl_sym = xDlSym(library: *mut c_void, name: *const c_char) -> Option<Symbol>, else None;
    dl_close = xDlClose(library: *mut c_void) -> (), else ();
    randomness = xRandomness(room: c_int, out: *mut c_char) -> c_int, else 0;
    sleep = xSleep(micros: c_int) -> c_int, else 0;
    last_error = xGetLastError(room: c_int, out: *mut c_char) -> c_int, else 0;
}
