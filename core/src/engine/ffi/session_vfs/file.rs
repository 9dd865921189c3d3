//! The database file and its log as a session has them: everything may be read, nothing written.

use std::{
    ffi::{c_int, c_void},
    ptr::{NonNull, null},
    sync::atomic::Ordering,
};

use libsqlite3_sys as sqlite;

use crate::engine::ffi::{
    guarded,
    session_vfs::{
        control,
        region::BYTES,
        shm::{RealRegion, Request, Shm},
        vfs::Registered,
    },
};

/// A file of a session; the real one lies behind it in memory.
#[repr(C)]
pub(super) struct SessionFile {
    /// What SQLite knows of a file.
    base: sqlite::sqlite3_file,
    real: *mut sqlite::sqlite3_file,
    pub(super) vfs: &'static Registered,
    /// Of the log, this is unused.
    pub(super) shm: Shm,
}

/// Calls a method of the real file; what is answered if it has none.
macro_rules! real {
    ($file:expr, $method:ident ($($argument:expr),*), $missing:expr) => {{
        let real = $file.real;
        // SAFETY: invariant 8: the real file is open; invariant 9: what SQLite handed to us is handed on.
        unsafe { (*(*real).pMethods).$method.map_or($missing, |method| method(real $(, $argument)*)) }
    }};
}

impl SessionFile {
    /// The memory of the real file, behind ours.
    ///
    /// # Safety
    ///
    /// `file` points to memory of our `szOsFile` bytes (invariant 8).
    pub(super) unsafe fn behind(file: *mut sqlite::sqlite3_file) -> *mut sqlite::sqlite3_file {
        // SAFETY: within the same memory, as this function's contract says.
        unsafe { file.cast::<Self>().add(1).cast() }
    }

    /// Makes `file` one of ours, around the real file behind it, which was opened or is to be closed.
    ///
    /// # Safety
    ///
    /// `file` points to memory of our `szOsFile` bytes, and the real file behind it has methods (invariant 8).
    pub(super) unsafe fn make(file: *mut sqlite::sqlite3_file, vfs: &'static Registered) {
        let ours = Self {
            base: sqlite::sqlite3_file {
                pMethods: &raw const METHODS,
            },
            // SAFETY: as this function's contract says.
            real: unsafe { Self::behind(file) },
            vfs,
            #[cfg(not(test))]
            shm: Shm::default(),
            #[cfg(test)]
            shm: Shm::without(vfs.without()),
        };
        // SAFETY: as this function's contract says; the memory holds nothing yet that has to be dropped.
        unsafe { file.cast::<Self>().write(ours) };
    }

    /// Rule H: nothing of a session is ever written. That it was tried is a fault of ours.
    fn alarm(&self) -> c_int {
        self.vfs.alarms.fetch_add(1, Ordering::Relaxed);
        tracing::error!("a session tried to write to the file; it was refused");
        sqlite::SQLITE_READONLY
    }

    /// Rule A.
    fn map(&mut self, index: c_int, size: c_int) -> Result<*mut c_void, c_int> {
        let mut mapped = std::ptr::null_mut();
        // A session never makes the wal-index longer.
        let result = real!(
            self,
            xShmMap(index, size, 0, &raw mut mapped),
            sqlite::SQLITE_IOERR_SHMMAP
        );
        // A wal-index that may only be read (READONLY) takes no marks, so there are no sessions on it.
        if result & 0xff == sqlite::SQLITE_READONLY {
            return Err(sqlite::SQLITE_CANTOPEN);
        }
        if result != sqlite::SQLITE_OK {
            return Err(result);
        }
        if index != 0 {
            return Ok(mapped);
        }
        if usize::try_from(size) != Ok(BYTES) {
            return Err(sqlite::SQLITE_CANTOPEN);
        }
        let Some(region) = NonNull::new(mapped.cast()) else {
            return Err(self.shm.missing());
        };
        // SAFETY: invariant 10: mapped just now; `x_shm_unmap` lets the other side forget it first.
        let region = unsafe { RealRegion::new(region) };
        Ok(self.shm.mapped(region).as_ptr().cast())
    }

    fn control(&mut self, op: c_int, argument: *mut c_void) -> c_int {
        match op {
            // Rule H: what prepares writing, or would have reads answered by nothing.
            sqlite::SQLITE_FCNTL_SIZE_HINT
            | sqlite::SQLITE_FCNTL_CHUNK_SIZE
            | sqlite::SQLITE_FCNTL_NULL_IO => sqlite::SQLITE_NOTFOUND,
            _ if control::is_ours(op) => {
                // SAFETY: invariant 12.
                unsafe { control::answer(self, op, argument) }
            }
            _ => real!(self, xFileControl(op, argument), sqlite::SQLITE_NOTFOUND),
        }
    }
}

/// Runs a method of a file; `otherwise` is what SQLite is told if it panics.
///
/// # Safety
///
/// `file` is open, one of ours, and not in use elsewhere (invariant 8).
unsafe fn on<T>(
    file: *mut sqlite::sqlite3_file,
    otherwise: T,
    method: impl FnOnce(&mut SessionFile) -> T,
) -> T {
    guarded(otherwise, || {
        // SAFETY: invariant 8, as this function's contract says.
        method(unsafe { &mut *file.cast::<SessionFile>() })
    })
}

/// Defines methods of files: each is called by SQLite alone, with an open file of ours (invariant 8).
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident($file:ident $(, $argument:ident: $type:ty)*) or $otherwise:expr => $body:expr;)*) => {$(
        $(#[$doc])*
        unsafe extern "C" fn $name(file: *mut sqlite::sqlite3_file $(, $argument: $type)*) -> c_int {
            let method = |$file: &mut SessionFile| $body;
            // SAFETY: invariant 8: SQLite calls methods of open files only.
            unsafe { on(file, $otherwise, method) }
        }
    )*};
}

methods! {
    x_read(file, buffer: *mut c_void, length: c_int, offset: i64) or sqlite::SQLITE_IOERR_READ =>
        real!(file, xRead(buffer, length, offset), sqlite::SQLITE_IOERR_READ);
    /// Rule H.
    x_write(file, _buffer: *const c_void, _length: c_int, _offset: i64) or sqlite::SQLITE_READONLY => file.alarm();
    /// Rule H.
    x_truncate(file, _size: i64) or sqlite::SQLITE_READONLY => file.alarm();
    /// There is nothing of a session to bring to the disk.
    x_sync(_file, _flags: c_int) or sqlite::SQLITE_OK => sqlite::SQLITE_OK;
    x_file_size(file, size: *mut i64) or sqlite::SQLITE_IOERR_FSTAT =>
        real!(file, xFileSize(size), sqlite::SQLITE_IOERR_FSTAT);
    /// Rule G.
    x_lock(file, level: c_int) or sqlite::SQLITE_BUSY => if level > sqlite::SQLITE_LOCK_SHARED {
        sqlite::SQLITE_BUSY
    } else {
        real!(file, xLock(level), sqlite::SQLITE_IOERR_LOCK)
    };
    x_unlock(file, level: c_int) or sqlite::SQLITE_IOERR_UNLOCK =>
        real!(file, xUnlock(level), sqlite::SQLITE_IOERR_UNLOCK);
    x_check_reserved_lock(file, is_reserved: *mut c_int) or sqlite::SQLITE_IOERR_CHECKRESERVEDLOCK =>
        real!(file, xCheckReservedLock(is_reserved), sqlite::SQLITE_IOERR_CHECKRESERVEDLOCK);
    x_file_control(file, op: c_int, argument: *mut c_void) or sqlite::SQLITE_NOTFOUND => file.control(op, argument);
    x_sector_size(file) or 0 => real!(file, xSectorSize(), 0);
    x_device_characteristics(file) or 0 => real!(file, xDeviceCharacteristics(), 0);
    /// Rules B to F.
    x_shm_lock(file, first: c_int, count: c_int, flags: c_int) or sqlite::SQLITE_IOERR_SHMLOCK => {
        let SessionFile { real, shm, .. } = file;
        let real = *real;
        shm.lock(Request { first, count, flags }, &mut |Request { first, count, flags }| {
            // SAFETY: invariant 8: the real file is open.
            let method = unsafe { (*(*real).pMethods).xShmLock };
            // SAFETY: the same.
            method.map_or(sqlite::SQLITE_IOERR_SHMLOCK, |method| unsafe { method(real, first, count, flags) })
        })
    };
    /// Rule H: the wal-index is never removed.
    x_shm_unmap(file, _remove: c_int) or sqlite::SQLITE_IOERR => {
        file.shm.unmapped();
        real!(file, xShmUnmap(0), sqlite::SQLITE_OK)
    };
    x_unfetch(file, offset: i64, page: *mut c_void) or sqlite::SQLITE_IOERR =>
        real!(file, xUnfetch(offset, page), sqlite::SQLITE_OK);
}

unsafe extern "C" fn x_close(file: *mut sqlite::sqlite3_file) -> c_int {
    let close = |file: &mut SessionFile| {
        file.shm.unmapped();
        real!(file, xClose(), sqlite::SQLITE_OK)
    };
    // SAFETY: invariant 8: SQLite closes what is open, once.
    let result = unsafe { on(file, sqlite::SQLITE_IOERR_CLOSE, close) };
    // SAFETY: invariant 8: made in `make`, and not used after xClose; so the private region may go (invariant 11).
    guarded((), || unsafe { file.cast::<SessionFile>().drop_in_place() });
    result
}

unsafe extern "C" fn x_shm_map(
    file: *mut sqlite::sqlite3_file,
    index: c_int,
    size: c_int,
    _extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: invariant 8.
    let mapped = unsafe {
        on(file, Err(sqlite::SQLITE_IOERR_SHMMAP), |file| {
            file.map(index, size)
        })
    };
    // SAFETY: invariant 9: `out` takes one pointer.
    unsafe { *out = mapped.unwrap_or(std::ptr::null_mut()) };
    mapped.err().unwrap_or(sqlite::SQLITE_OK)
}

/// Rule J.
unsafe extern "C" fn x_shm_barrier(file: *mut sqlite::sqlite3_file) {
    let barrier = |file: &mut SessionFile| real!(file, xShmBarrier(), ());
    // SAFETY: invariant 8.
    unsafe { on(file, (), barrier) };
}

unsafe extern "C" fn x_fetch(
    file: *mut sqlite::sqlite3_file,
    offset: i64,
    length: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: invariant 9: `out` takes one pointer, which is null where nothing is fetched.
    unsafe { *out = null::<c_void>().cast_mut() };
    let fetch =
        |file: &mut SessionFile| real!(file, xFetch(offset, length, out), sqlite::SQLITE_OK);
    // SAFETY: invariant 8.
    unsafe { on(file, sqlite::SQLITE_IOERR, fetch) }
}

static METHODS: sqlite::sqlite3_io_methods = sqlite::sqlite3_io_methods {
    iVersion: 3,
    xClose: Some(x_close),
    xRead: Some(x_read),
    xWrite: Some(x_write),
    xTruncate: Some(x_truncate),
    xSync: Some(x_sync),
    xFileSize: Some(x_file_size),
    xLock: Some(x_lock),
    xUnlock: Some(x_unlock),
    xCheckReservedLock: Some(x_check_reserved_lock),
    xFileControl: Some(x_file_control),
    xSectorSize: Some(x_sector_size),
    xDeviceCharacteristics: Some(x_device_characteristics),
    xShmMap: Some(x_shm_map),
    xShmLock: Some(x_shm_lock),
    xShmBarrier: Some(x_shm_barrier),
    xShmUnmap: Some(x_shm_unmap),
    xFetch: Some(x_fetch),
    xUnfetch: Some(x_unfetch),
};
