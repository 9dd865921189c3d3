//! The rules of the locks, against a file that only remembers.

use std::ptr::NonNull;

use libsqlite3_sys::{
    SQLITE_BUSY, SQLITE_OK, SQLITE_PROTOCOL, SQLITE_READONLY, SQLITE_SHM_EXCLUSIVE as EXCLUSIVE,
    SQLITE_SHM_LOCK as LOCK, SQLITE_SHM_SHARED as SHARED, SQLITE_SHM_UNLOCK as UNLOCK,
};

use crate::engine::ffi::session_vfs::{
    region::{Header, Region, VERSION},
    shm::{RealRegion, Refreshed, Request, Shm, unsupported},
};

/// The real file: its region, and the calls that reached it.
struct Real {
    region: Box<Region>,
    calls: Vec<(i32, i32, i32)>,
}

fn header(commits: u32) -> Header {
    let mut header = [0; 12];
    header[0] = VERSION;
    header[2] = commits;
    header
}

/// A session's view of a file that has seen one commit.
fn session() -> (Shm, Real) {
    let real = Real {
        region: Region::zeroed(),
        calls: Vec::new(),
    };
    real.region.set_header(&header(1));
    let mut shm = Shm::default();
    // SAFETY: the region lives as long as the tests use it.
    shm.mapped(unsafe { RealRegion::new(NonNull::from(&*real.region)) });
    (shm, real)
}

impl Real {
    fn lock(&mut self, shm: &mut Shm, first: i32, count: i32, flags: i32) -> i32 {
        shm.lock(
            Request {
                first,
                count,
                flags,
            },
            &mut |request| {
                self.calls
                    .push((request.first, request.count, request.flags));
                SQLITE_OK
            },
        )
    }
}

fn private(shm: &Shm) -> &Region {
    shm.regions().unwrap().0
}

#[test]
fn a_private_region_has_one_address_and_follows_only_when_told() {
    let (mut shm, real) = session();
    assert_eq!(private(&shm).first_header(), header(1));
    real.region.set_header(&header(2));
    assert_eq!(private(&shm).first_header(), header(1));
    assert_eq!(shm.refresh(), Refreshed::Ok);
    assert_eq!(private(&shm).first_header(), header(2));
    let address = std::ptr::from_ref(private(&shm));
    shm.unmapped();
    assert_eq!(shm.refresh(), Refreshed::NotYetMapped);
    // SAFETY: as in `session`.
    let again = shm.mapped(unsafe { RealRegion::new(NonNull::from(&*real.region)) });
    assert_eq!(again.as_ptr().cast_const(), address);
}

#[test]
fn nothing_is_taken_over_while_a_read_lock_is_held() {
    let (mut shm, mut real) = session();
    assert_eq!(real.lock(&mut shm, 4, 1, LOCK | SHARED), SQLITE_OK);
    real.region.set_header(&header(2));
    assert_eq!(shm.refresh(), Refreshed::Reading);
    assert_eq!(real.lock(&mut shm, 0, 1, LOCK | EXCLUSIVE), SQLITE_OK);
    assert_eq!(private(&shm).first_header(), header(1));
}

#[test]
fn a_header_half_written_is_told_and_leaves_the_old_one() {
    let (mut shm, real) = session();
    real.region.set_header(&header(2));
    real.region.tear(1);
    assert_eq!(shm.refresh(), Refreshed::Torn);
    assert_eq!(private(&shm).first_header(), header(1));
    real.region.tear(u32::MAX);
    assert_eq!(shm.refresh(), Refreshed::Ok);
}

#[test]
fn a_read_lock_takes_the_present_over_after_it_was_taken() {
    let (mut shm, mut real) = session();
    real.region.set_index(7);
    real.region.set_mark(1, 9);
    assert_eq!(real.lock(&mut shm, 5, 1, LOCK | SHARED), SQLITE_OK);
    assert_eq!((private(&shm).index(), private(&shm).mark(1)), (7, 9));
}

#[test]
fn the_frames_are_taken_over_only_with_the_header_that_was_seen() {
    let (mut shm, mut real) = session();
    real.region.set_index(7);
    real.region.set_header(&header(2));
    assert_eq!(real.lock(&mut shm, 5, 1, LOCK | SHARED), SQLITE_OK);
    let missed = (private(&shm).first_header(), private(&shm).index());
    assert_eq!(missed, (header(2), 0), "SQLite finds another header");
    assert_eq!(real.lock(&mut shm, 5, 1, UNLOCK | SHARED), SQLITE_OK);
    assert_eq!(real.lock(&mut shm, 5, 1, LOCK | SHARED), SQLITE_OK);
    assert_eq!(private(&shm).index(), 7);
}

#[test]
fn the_fifth_change_between_look_and_lock_is_a_protocol_error_without_a_lock() {
    let (mut shm, mut real) = session();
    for commits in 2..6 {
        real.region.set_header(&header(commits));
        assert_eq!(real.lock(&mut shm, 4, 1, LOCK | SHARED), SQLITE_OK);
        assert_eq!(real.lock(&mut shm, 4, 1, UNLOCK | SHARED), SQLITE_OK);
    }
    real.region.set_header(&header(6));
    assert_eq!(real.lock(&mut shm, 4, 1, LOCK | SHARED), SQLITE_PROTOCOL);
    assert_eq!(real.calls.last(), Some(&(4, 1, UNLOCK | SHARED)));
    assert_eq!(shm.refresh(), Refreshed::Ok, "no lock is left");
    assert_eq!(real.lock(&mut shm, 4, 1, LOCK | SHARED), SQLITE_OK);
}

#[test]
fn misses_are_counted_within_one_begin() {
    let (mut shm, mut real) = session();
    for commits in 2..20 {
        real.region.set_header(&header(commits));
        assert_eq!(real.lock(&mut shm, 4, 1, LOCK | SHARED), SQLITE_OK);
        assert_eq!(real.lock(&mut shm, 4, 1, UNLOCK | SHARED), SQLITE_OK);
        shm.refresh();
    }
}

#[test]
fn a_mark_is_published_before_its_lock_goes() {
    let (mut shm, mut real) = session();
    assert_eq!(real.lock(&mut shm, 6, 1, LOCK | EXCLUSIVE), SQLITE_OK);
    private(&shm).set_mark(3, 11);
    assert_eq!(real.region.mark(3), 0);
    let mut seen = None;
    let unlock = Request {
        first: 6,
        count: 1,
        flags: UNLOCK | EXCLUSIVE,
    };
    shm.lock(unlock, &mut |_| {
        seen = Some(real.region.mark(3));
        SQLITE_OK
    });
    assert_eq!(seen, Some(11));
}

#[test]
fn the_write_lock_is_granted_to_readers_and_never_taken() {
    let (mut shm, mut real) = session();
    assert_eq!(real.lock(&mut shm, 3, 1, LOCK | SHARED), SQLITE_OK);
    assert_eq!(real.lock(&mut shm, 0, 1, LOCK | EXCLUSIVE), SQLITE_OK);
    assert_eq!(real.lock(&mut shm, 5, 1, LOCK | EXCLUSIVE), SQLITE_BUSY);
    assert_eq!(real.lock(&mut shm, 0, 1, UNLOCK | EXCLUSIVE), SQLITE_OK);
    assert_eq!(real.calls, [(3, 1, LOCK | SHARED)]);
    assert_eq!(real.lock(&mut shm, 5, 1, LOCK | EXCLUSIVE), SQLITE_OK);
}

#[test]
fn the_write_lock_without_a_read_lock_is_refused_after_a_look_at_the_present() {
    let (mut shm, mut real) = session();
    real.region.set_header(&header(2));
    assert_eq!(real.lock(&mut shm, 0, 1, LOCK | EXCLUSIVE), SQLITE_BUSY);
    assert_eq!(private(&shm).first_header(), header(2));
    for _ in 0..3 {
        assert_eq!(real.lock(&mut shm, 0, 1, LOCK | EXCLUSIVE), SQLITE_BUSY);
    }
    assert_eq!(real.lock(&mut shm, 0, 1, LOCK | EXCLUSIVE), SQLITE_PROTOCOL);
    assert_eq!(real.calls, []);
}

#[test]
fn ranges_checkpoints_and_recovery_are_refused_and_their_unlocks_swallowed() {
    let (mut shm, mut real) = session();
    assert_eq!(real.lock(&mut shm, 4, 1, LOCK | SHARED), SQLITE_OK);
    for (first, count, answer) in [
        (4, 4, SQLITE_READONLY),
        (1, 2, SQLITE_READONLY),
        (1, 1, SQLITE_BUSY),
        (2, 1, SQLITE_BUSY),
    ] {
        assert_eq!(real.lock(&mut shm, first, count, LOCK | EXCLUSIVE), answer);
        let unlocked = real.lock(&mut shm, first, count, UNLOCK | EXCLUSIVE);
        assert_eq!(unlocked, SQLITE_OK);
    }
    assert_eq!(real.calls, [(4, 1, LOCK | SHARED)]);
    assert_eq!(real.lock(&mut shm, 2, 1, LOCK | SHARED), SQLITE_OK);
    assert_eq!(real.lock(&mut shm, 2, 1, UNLOCK | SHARED), SQLITE_OK);
}

#[test]
fn the_layout_is_known_also_while_somebody_writes_the_header() {
    let (shm, real) = session();
    real.region.tear(1);
    assert_eq!(unsupported(shm.version()), None);
}

#[test]
fn only_the_layout_that_is_known_is_supported() {
    let (mut shm, real) = session();
    assert_eq!(unsupported(shm.version()), None);
    let mut next = header(1);
    next[0] = 4_000_000;
    real.region.set_header(&next);
    shm.refresh();
    assert!(unsupported(shm.version()).unwrap().contains("4000000"));
    real.region.set_header(&[0; 12]);
    shm.refresh();
    assert!(unsupported(shm.version()).unwrap().contains("no wal-index"));
    shm.unmapped();
    assert!(unsupported(shm.version()).unwrap().contains("no wal-index"));
}
