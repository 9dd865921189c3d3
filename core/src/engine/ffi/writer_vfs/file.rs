//! The files of the VFS: the real one, which an entry of ours stands before.

use std::{
    ffi::{CStr, c_int, c_void},
    ptr::{null, null_mut},
    sync::atomic::Ordering,
};

use libsqlite3_sys as sqlite;

use crate::engine::{
    ffi::{guarded, writer_vfs::WriterSlot},
    hooks::{Ear, Header},
};

/// The slot of the lock WRITE.
const WRITE: c_int = 0;

/// What stands before the real file.
#[repr(C, align(8))]
struct WriterFile {
    base: sqlite::sqlite3_file,
    slot: &'static WriterSlot,
    ear: Ear,
    /// Region 0 of the shared memory, once SQLite has asked for it.
    index: *mut c_void,
    /// It holds WRITE.
    writes: bool,
    /// It got WRITE before it knew the index, and what it found has not been looked at.
    is_unseen: bool,
}

/// How many bytes that takes.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "some sixty bytes"
)]
pub(super) const ROOM: c_int = size_of::<WriterFile>() as c_int;

/// Opens a file. That of the database gets our methods, a log that somebody listens to too, and every other one those
/// of the real VFS.
///
/// # Safety
///
/// `file` has the room that the slot's VFS asks for, and the rest is as SQLite hands it to `xOpen`.
pub(super) unsafe fn open(
    slot: &'static WriterSlot,
    name: sqlite::sqlite3_filename,
    file: *mut sqlite::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: invariant 14.
    let Some(open) = (unsafe { (*slot.real).xOpen }) else {
        return sqlite::SQLITE_CANTOPEN;
    };
    // SAFETY: invariant 4; a file without a name is a temporary one.
    let name_text = unsafe { name.as_ref().map(|name| CStr::from_ptr(name)) }
        .and_then(|name| name.to_str().ok())
        .unwrap_or_default();
    let is_database = flags & sqlite::SQLITE_OPEN_MAIN_DB != 0;
    let ear = guarded(Ear::none(), || {
        if is_database {
            Ear::of_database(name_text)
        } else if flags & sqlite::SQLITE_OPEN_WAL != 0 {
            Ear::of_log(name_text)
        } else {
            Ear::none()
        }
    });
    if !is_database && !ear.listens() {
        // SAFETY: invariant 14; there is more room than the real file needs.
        return unsafe { open(slot.real, name, file, flags, out_flags) };
    }
    let ours = file.cast::<WriterFile>();
    // SAFETY: invariant 15, as this function's contract says: SQLite aligns to 8 bytes. A null in `pMethods` tells
    // it that there is nothing to close.
    unsafe {
        ours.write(WriterFile {
            base: sqlite::sqlite3_file { pMethods: null() },
            slot,
            ear,
            index: null_mut(),
            writes: false,
            is_unseen: false,
        });
        let real = real(file);
        (*real).pMethods = null();
        let result = open(slot.real, name, real, flags, out_flags);
        if let Some(methods) = (*real).pMethods.as_ref() {
            slot.users.fetch_add(1, Ordering::AcqRel);
            (*ours).base.pMethods = above(methods);
        } else {
            ours.drop_in_place();
            (*file).pMethods = null();
        }
        result
    }
}

/// The methods to set before a file with these: no more than it has.
fn above(real: &sqlite::sqlite3_io_methods) -> &'static sqlite::sqlite3_io_methods {
    static METHODS: [sqlite::sqlite3_io_methods; 3] = [methods(1), methods(2), methods(3)];
    if real.iVersion < 2 || real.xShmMap.is_none() {
        &METHODS[0]
    } else if real.iVersion < 3 || real.xFetch.is_none() {
        &METHODS[1]
    } else {
        &METHODS[2]
    }
}

const fn methods(version: c_int) -> sqlite::sqlite3_io_methods {
    let mut methods = sqlite::sqlite3_io_methods {
        iVersion: version,
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        xFileSize: Some(file_size),
        xLock: Some(lock),
        xUnlock: Some(unlock),
        xCheckReservedLock: Some(check_reserved_lock),
        xFileControl: Some(file_control),
        xSectorSize: Some(sector_size),
        xDeviceCharacteristics: Some(device_characteristics),
        xShmMap: None,
        xShmLock: None,
        xShmBarrier: None,
        xShmUnmap: None,
        xFetch: None,
        xUnfetch: None,
    };
    if version >= 2 {
        methods.xShmMap = Some(shm_map);
        methods.xShmLock = Some(shm_lock);
        methods.xShmBarrier = Some(shm_barrier);
        methods.xShmUnmap = Some(shm_unmap);
    }
    if version >= 3 {
        methods.xFetch = Some(fetch);
        methods.xUnfetch = Some(unfetch);
    }
    methods
}

/// The real file behind one of ours.
///
/// # Safety
///
/// `file` has the room of a file of our VFS (invariant 15).
unsafe fn real(file: *mut sqlite::sqlite3_file) -> *mut sqlite::sqlite3_file {
    // SAFETY: invariant 15, as this function's contract says.
    unsafe { file.byte_add(size_of::<WriterFile>()) }
}

/// Methods that are handed on with the real file.
macro_rules! hand_on {
    ($($name:ident = $method:ident($($arg:ident: $type:ty),*) -> $result:ty, else $otherwise:expr;)*) => {$(
        unsafe extern "C" fn $name(file: *mut sqlite::sqlite3_file, $($arg: $type),*) -> $result {
            // SAFETY: invariant 15; the arguments are handed on as they came.
            unsafe {
                let real = real(file);
                match (*(*real).pMethods).$method {
                    Some(method) => method(real, $($arg),*),
                    None => $otherwise,
                }
            }
        }
    )*};
}

hand_on! {
    close_real = xClose() -> c_int, else sqlite::SQLITE_OK;
    read = xRead(into: *mut c_void, amount: c_int, offset: i64) -> c_int, else sqlite::SQLITE_IOERR_READ;
    write_real = xWrite(from: *const c_void, amount: c_int, offset: i64) -> c_int, else sqlite::SQLITE_IOERR_WRITE;
    truncate_real = xTruncate(size: i64) -> c_int, else sqlite::SQLITE_IOERR_TRUNCATE;
    sync_real = xSync(flags: c_int) -> c_int, else sqlite::SQLITE_IOERR_FSYNC;
    file_size = xFileSize(size: *mut i64) -> c_int, else sqlite::SQLITE_IOERR_FSTAT;
    lock = xLock(level: c_int) -> c_int, else sqlite::SQLITE_IOERR_LOCK;
    unlock = xUnlock(level: c_int) -> c_int, else sqlite::SQLITE_IOERR_UNLOCK;
    check_reserved_lock = xCheckReservedLock(out: *mut c_int) -> c_int,
        else sqlite::SQLITE_IOERR_CHECKRESERVEDLOCK;
    file_control = xFileControl(operation: c_int, argument: *mut c_void) -> c_int, else sqlite::SQLITE_NOTFOUND;
    // As SQLite assumes for files that do not say.
    sector_size = xSectorSize() -> c_int, else 4096;
    device_characteristics = xDeviceCharacteristics() -> c_int, else 0;
    shm_map_real = xShmMap(region: c_int, size: c_int, extend: c_int, out: *mut *mut c_void) -> c_int,
        else sqlite::SQLITE_IOERR_SHMMAP;
    shm_lock_real = xShmLock(first: c_int, count: c_int, flags: c_int) -> c_int, else sqlite::SQLITE_IOERR_SHMLOCK;
    shm_barrier = xShmBarrier() -> (), else ();
    shm_unmap_real = xShmUnmap(remove: c_int) -> c_int, else sqlite::SQLITE_OK;
    fetch = xFetch(offset: i64, amount: c_int, out: *mut *mut c_void) -> c_int, else sqlite::SQLITE_OK;
    unfetch = xUnfetch(offset: i64, page: *mut c_void) -> c_int, else sqlite::SQLITE_OK;
}

unsafe extern "C" fn close(file: *mut sqlite::sqlite3_file) -> c_int {
    let ours = file.cast::<WriterFile>();
    // SAFETY: invariant 15; SQLite closes a file once.
    let (slot, result) = unsafe {
        let (slot, result) = ((*ours).slot, close_real(file));
        ours.drop_in_place();
        (slot, result)
    };
    guarded((), || slot.leave());
    result
}

unsafe extern "C" fn write(
    file: *mut sqlite::sqlite3_file,
    from: *const c_void,
    amount: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: invariant 15; the arguments are handed on as they came.
    let result = unsafe { write_real(file, from, amount, offset) };
    if result == sqlite::SQLITE_OK {
        guarded((), || {
            let amount = amount.unsigned_abs() as usize;
            // SAFETY: invariant 15; SQLite hands in this many bytes, and changes none before this returns.
            let (ear, bytes) = unsafe {
                let ear = &(*file.cast::<WriterFile>()).ear;
                (ear, std::slice::from_raw_parts(from.cast(), amount))
            };
            ear.written(bytes, offset);
        });
    }
    result
}

unsafe extern "C" fn truncate(file: *mut sqlite::sqlite3_file, size: i64) -> c_int {
    // SAFETY: invariant 15.
    let (ear, result) = unsafe {
        let result = truncate_real(file, size);
        (&(*file.cast::<WriterFile>()).ear, result)
    };
    if result == sqlite::SQLITE_OK {
        guarded((), || ear.truncated(size));
    }
    result
}

unsafe extern "C" fn sync(file: *mut sqlite::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: invariant 15.
    let ear = unsafe { &(*file.cast::<WriterFile>()).ear };
    let covers = guarded(0, || ear.syncs());
    // SAFETY: invariant 15.
    let result = unsafe { sync_real(file, flags) };
    if result == sqlite::SQLITE_OK {
        guarded((), || ear.synced(covers));
    }
    result
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: invariant 15; `out` is SQLite's, and written whatever the result.
    let result = unsafe { shm_map_real(file, region, size, extend, out) };
    let is_index = region == 0 && size.unsigned_abs() as usize >= size_of::<Header>();
    if is_index {
        guarded((), || {
            // SAFETY: invariant 15; `out` is SQLite's.
            let ours = unsafe {
                let ours = &mut *file.cast::<WriterFile>();
                ours.index = *out;
                ours
            };
            ours.look();
        });
    }
    result
}

unsafe extern "C" fn shm_lock(
    file: *mut sqlite::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    let is_write = first <= WRITE && WRITE < first + count;
    if !is_write || flags & sqlite::SQLITE_SHM_EXCLUSIVE == 0 {
        // SAFETY: invariant 15.
        return unsafe { shm_lock_real(file, first, count, flags) };
    }
    let ours = file.cast::<WriterFile>();
    if flags & sqlite::SQLITE_SHM_UNLOCK != 0 {
        // Before the lock is gone: the next one may write at once.
        // SAFETY: invariant 15.
        guarded((), || unsafe { &mut *ours }.leave());
        // SAFETY: invariant 15.
        return unsafe { shm_lock_real(file, first, count, flags) };
    }
    // SAFETY: invariant 15.
    let result = unsafe { shm_lock_real(file, first, count, flags) };
    if result == sqlite::SQLITE_OK {
        // SAFETY: invariant 15.
        guarded((), || unsafe { &mut *ours }.enter());
    }
    result
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite::sqlite3_file, remove: c_int) -> c_int {
    // SAFETY: invariant 15.
    unsafe {
        (*file.cast::<WriterFile>()).index = null_mut();
        shm_unmap_real(file, remove)
    }
}

impl WriterFile {
    /// WRITE was granted.
    fn enter(&mut self) {
        self.writes = true;
        self.is_unseen = true;
        self.look();
    }

    /// Looks at what the last one left, once, as soon as WRITE is held and the index is known.
    fn look(&mut self) {
        if self.is_unseen
            && let Some(header) = self.header()
        {
            self.is_unseen = false;
            self.slot.head.found(header);
        }
    }

    /// WRITE is about to be given up.
    fn leave(&mut self) {
        if let Some(header) = self.header() {
            self.slot.head.left(header);
        }
        self.writes = false;
        self.is_unseen = false;
    }

    /// The header of the log's index, while WRITE is held.
    fn header(&self) -> Option<Header> {
        if !self.writes || self.index.is_null() {
            return None;
        }
        // SAFETY: invariant 16; volatile, since other processes write it too.
        Some(unsafe { self.index.cast::<Header>().read_volatile() })
    }
}
