//! The VFS itself: opens files, tells the time, and leaves the rest to the real one.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr::{NonNull, null, null_mut},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use libsqlite3_sys as sqlite;

#[cfg(test)]
use crate::engine::ffi::session_vfs::ablation::Without;
use crate::engine::{
    ffi::{
        guarded,
        session_vfs::{Unavailable, file::SessionFile},
    },
    hooks::Clock,
};

/// The VFS that sessions are made for, and whose locks they know.
const REAL: &CStr = c"unix";

/// All that were registered in the process.
static ALL: Mutex<Vec<&'static Registered>> = Mutex::new(Vec::new());

/// A VFS that SQLite knows. It is never freed (invariant 7).
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) name: CString,
    pub(super) clock: Clock,
    /// Rule H: how often a file of this VFS was to be written.
    pub(super) alarms: AtomicU64,
    real: NonNull<sqlite::sqlite3_vfs>,
    #[cfg(test)]
    without: Mutex<Without>,
}

// SAFETY: the real VFS belongs to no thread; SQLite calls its methods from all of them.
unsafe impl Send for Registered {}
// SAFETY: the same; the other fields are `Sync`.
unsafe impl Sync for Registered {}

impl Registered {
    /// Registers one more.
    pub(super) fn new() -> Result<&'static Self, Unavailable> {
        let real = real()?;
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let name = CString::new(format!("anabranch-session-{}", all.len()))
            .map_err(|_| Unavailable::new("its name has a NUL"))?;
        let ours: &'static Self = Box::leak(Box::new(Self {
            name,
            clock: Clock::default(),
            alarms: AtomicU64::new(0),
            real,
            #[cfg(test)]
            without: Mutex::default(),
        }));
        let vfs = Box::into_raw(Box::new(ours.describe()));
        // SAFETY: invariant 7: neither the VFS nor what it points to is ever freed.
        if unsafe { sqlite::sqlite3_vfs_register(vfs, 0) } != sqlite::SQLITE_OK {
            return Err(Unavailable::new("SQLite did not take the VFS"));
        }
        all.push(ours);
        Ok(ours)
    }

    fn describe(&'static self) -> sqlite::sqlite3_vfs {
        // SAFETY: invariant 7: SQLite's own VFS is never freed.
        let real = unsafe { self.real.as_ref() };
        let ours = size_of::<SessionFile>();
        sqlite::sqlite3_vfs {
            // The methods of version 3, which replace system calls, are left out.
            iVersion: 2,
            szOsFile: c_int::try_from(ours)
                .unwrap_or(c_int::MAX)
                .saturating_add(real.szOsFile),
            mxPathname: real.mxPathname,
            pNext: null_mut(),
            zName: self.name.as_ptr(),
            pAppData: std::ptr::from_ref(self).cast_mut().cast(),
            xOpen: Some(x_open),
            xDelete: Some(x_delete),
            xAccess: Some(x_access),
            xFullPathname: Some(x_full_pathname),
            xDlOpen: Some(x_dl_open),
            xDlError: Some(x_dl_error),
            xDlSym: Some(x_dl_sym),
            xDlClose: Some(x_dl_close),
            xRandomness: Some(x_randomness),
            xSleep: Some(x_sleep),
            xCurrentTime: Some(x_current_time),
            xGetLastError: Some(x_get_last_error),
            xCurrentTimeInt64: Some(x_current_time_int64),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        }
    }

    /// The rules that the files of this VFS do without.
    #[cfg(test)]
    pub(super) fn without(&self) -> Without {
        *self.without.lock().unwrap()
    }

    /// Lets the files that are opened from now on do without some rules.
    #[cfg(test)]
    pub(super) fn set_without(&self, without: Without) {
        *self.without.lock().unwrap() = without;
    }
}

/// How often a session of the process was to write.
pub(super) fn alarms() -> u64 {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter()
        .map(|vfs| vfs.alarms.load(Ordering::Relaxed))
        .sum()
}

/// SQLite's own VFS, if the process uses it.
fn real() -> Result<NonNull<sqlite::sqlite3_vfs>, Unavailable> {
    if !cfg!(unix) {
        return Err(Unavailable::new(
            "on this platform the locks of the wal-index are not known well enough",
        ));
    }
    // SAFETY: this may be called at any time, and again.
    if unsafe { sqlite::sqlite3_initialize() } != sqlite::SQLITE_OK {
        return Err(Unavailable::new("SQLite could not be initialised"));
    }
    // SAFETY: null asks for the default VFS.
    let real = NonNull::new(unsafe { sqlite::sqlite3_vfs_find(null()) })
        .ok_or_else(|| Unavailable::new("SQLite has no VFS"))?;
    // SAFETY: a registered VFS has a name that ends with NUL.
    let name = unsafe { CStr::from_ptr(real.as_ref().zName) };
    if name != REAL {
        return Err(Unavailable::new(
            "the process has a default VFS of its own, whose locks are not known",
        ));
    }
    Ok(real)
}

/// The VFS that SQLite means, for as long as the process runs.
///
/// # Safety
///
/// `vfs` was registered by [`Registered::new`] (invariant 7).
unsafe fn ours(vfs: *mut sqlite::sqlite3_vfs) -> &'static Registered {
    // SAFETY: invariant 7; `describe` set the pointer.
    unsafe { &*(*vfs).pAppData.cast::<Registered>() }
}

unsafe extern "C" fn x_open(
    vfs: *mut sqlite::sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    guarded(sqlite::SQLITE_CANTOPEN, || {
        // SAFETY: invariant 7.
        let vfs = unsafe { ours(vfs) };
        let is_wrapped = flags & (sqlite::SQLITE_OPEN_MAIN_DB | sqlite::SQLITE_OPEN_WAL) != 0;
        if !is_wrapped {
            // SAFETY: invariant 9.
            return unsafe { open(vfs, name, file, flags, out_flags) };
        }
        // SAFETY: invariant 9: whatever becomes of it, SQLite looks for methods to close it with.
        unsafe { (*file).pMethods = null() };
        // SAFETY: invariant 8.
        let real = unsafe { SessionFile::behind(file) };
        // Rule H: a session does not make a file either.
        let flags = flags & !sqlite::SQLITE_OPEN_CREATE;
        // SAFETY: invariants 8 and 9.
        let result = unsafe { open(vfs, name, real, flags, out_flags) };
        // SAFETY: invariant 8: the real VFS has set the pointer; if it is null there is nothing to close.
        unsafe {
            if !(*real).pMethods.is_null() {
                SessionFile::make(file, vfs);
            }
        }
        result
    })
}

/// `xOpen` of the real VFS.
///
/// # Safety
///
/// As for any `xOpen` (invariant 9), with room for a file of the real VFS at `file`.
unsafe fn open(
    vfs: &Registered,
    name: *const c_char,
    file: *mut sqlite::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: invariant 9: SQLite looks at the pointer also if the file could not be opened.
    unsafe { (*file).pMethods = null() };
    let real = vfs.real.as_ptr();
    // SAFETY: invariants 7 and 9.
    unsafe {
        (*real).xOpen.map_or(sqlite::SQLITE_CANTOPEN, |open| {
            open(real, name, file, flags, out_flags)
        })
    }
}

/// Rule H: a session removes nothing. SQLite asks for it where the database is empty and there is a log.
unsafe extern "C" fn x_delete(
    _vfs: *mut sqlite::sqlite3_vfs,
    _name: *const c_char,
    _sync: c_int,
) -> c_int {
    sqlite::SQLITE_IOERR_DELETE
}

/// Defines methods that call the same one of the real VFS, with *its* pointer.
macro_rules! forwarded {
    ($($name:ident => $method:ident($($argument:ident: $type:ty),*) -> $result:ty, or $missing:expr;)*) => {$(
        unsafe extern "C" fn $name(vfs: *mut sqlite::sqlite3_vfs $(, $argument: $type)*) -> $result {
            guarded($missing, || {
                // SAFETY: invariant 7.
                let real = unsafe { ours(vfs) }.real.as_ptr();
                // SAFETY: invariants 7 and 9.
                unsafe { (*real).$method.map_or($missing, |method| method(real $(, $argument)*)) }
            })
        }
    )*};
}

/// What `xDlSym` finds.
type Symbol = Option<unsafe extern "C" fn(*mut sqlite::sqlite3_vfs, *mut c_void, *const c_char)>;

forwarded! {
    x_access => xAccess(name: *const c_char, flags: c_int, out: *mut c_int) -> c_int, or sqlite::SQLITE_IOERR_ACCESS;
    x_full_pathname => xFullPathname(name: *const c_char, length: c_int, out: *mut c_char) -> c_int, or sqlite::SQLITE_CANTOPEN;
    x_dl_open => xDlOpen(name: *const c_char) -> *mut c_void, or null_mut();
    x_dl_error => xDlError(length: c_int, out: *mut c_char) -> (), or ();
    x_dl_sym => xDlSym(library: *mut c_void, name: *const c_char) -> Symbol, or None;
    x_dl_close => xDlClose(library: *mut c_void) -> (), or ();
    x_randomness => xRandomness(length: c_int, out: *mut c_char) -> c_int, or 0;
    real_sleep => xSleep(microseconds: c_int) -> c_int, or 0;
    x_get_last_error => xGetLastError(length: c_int, out: *mut c_char) -> c_int, or 0;
    real_time => xCurrentTimeInt64(out: *mut i64) -> c_int, or sqlite::SQLITE_ERROR;
}

unsafe extern "C" fn x_sleep(vfs: *mut sqlite::sqlite3_vfs, microseconds: c_int) -> c_int {
    // Without rule E SQLite would sleep for ten seconds.
    #[cfg(test)]
    // SAFETY: invariant 7.
    if unsafe { ours(vfs) }.without().skips_sleep() {
        return microseconds;
    }
    // SAFETY: invariant 7.
    unsafe { real_sleep(vfs, microseconds) }
}

/// The time in milliseconds of the Julian day, as the clock has it.
///
/// # Safety
///
/// `vfs` is one of ours (invariant 7).
unsafe fn time(vfs: *mut sqlite::sqlite3_vfs) -> Result<i64, c_int> {
    let mut result = sqlite::SQLITE_OK;
    // SAFETY: invariant 7.
    let now = unsafe { ours(vfs) }.clock.now(|| {
        let mut now = 0;
        // SAFETY: invariant 7, and `now` takes one number.
        result = unsafe { real_time(vfs, &raw mut now) };
        now
    });
    if result == sqlite::SQLITE_OK {
        Ok(now)
    } else {
        Err(result)
    }
}

unsafe extern "C" fn x_current_time_int64(vfs: *mut sqlite::sqlite3_vfs, out: *mut i64) -> c_int {
    // SAFETY: invariant 7.
    match guarded(Err(sqlite::SQLITE_ERROR), || unsafe { time(vfs) }) {
        Ok(now) => {
            // SAFETY: invariant 9: `out` takes one number.
            unsafe { *out = now };
            sqlite::SQLITE_OK
        }
        Err(code) => code,
    }
}

unsafe extern "C" fn x_current_time(vfs: *mut sqlite::sqlite3_vfs, out: *mut f64) -> c_int {
    // SAFETY: invariant 7.
    match guarded(Err(sqlite::SQLITE_ERROR), || unsafe { time(vfs) }) {
        Ok(now) => {
            // SAFETY: invariant 9: `out` takes one number. A day's milliseconds are exact in it for ages.
            unsafe { *out = now as f64 / 86_400_000.0 };
            sqlite::SQLITE_OK
        }
        Err(code) => code,
    }
}
