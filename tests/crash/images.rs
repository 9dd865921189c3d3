//! A power cut loses nothing that it may not lose: the file as the disk may have it after one is put together from
//! what was recorded, in hundreds of ways, and looked at by plain SQLite.
//!
//! What a sync covered is there. Of what came later each write may be there, be missing, be torn at a sector, and be
//! older than one that it followed. The rule for what was acknowledged:
//!
//! * `Synchronous::Full`: every save that was acknowledged before the cut is there.
//! * `Synchronous::Normal`: every save that was acknowledged before the last sync of the log began, which is the last
//!   checkpoint's or a new log's, is there. Later ones may be missing.
//!
//! In both, what is there are the first so many transactions, each whole, and none that nobody had asked for yet.
//!
//! The work is done by threads, so its log is another one each time; `ANABRANCH_SEED` repeats the choices. An image that
//! fails is kept, and its folder printed.

mod check;
mod disk;
mod sessions;
mod work;

use anabranch::engine::Synchronous;
use anabranch_tests::random::{Random, is_long};

use self::{
    check::{Broken, Sound, check},
    disk::{Disk, Image},
    work::{History, work},
};

/// How many images are made of the work in one mode.
fn images() -> usize {
    if is_long() { 1_000 } else { 150 }
}

/// Makes images of power cuts until one is not as it must be, which is kept.
fn first_broken(
    history: &History,
    disk: Disk,
    random: &mut Random,
    count: usize,
) -> Option<(Image, Broken)> {
    let (mut lost, mut more, mut promised) = (0, 0, 0);
    for _ in 0..count {
        let image = Image::random(history, disk, random);
        match check(history, &image) {
            Ok(sound) => {
                lost += image.lost;
                more += usize::from(sound.survived > sound.promised);
                promised += sound.promised;
            }
            Err(broken) => return Some((image, broken)),
        }
    }
    eprintln!(
        "images: {count} at {:?}, {} transactions, {} entries; {lost} pieces were lost, {more} images have more than \
         was promised, which was {} transactions on average",
        history.synchronous,
        history.transactions.len(),
        history.entries.len(),
        promised / count,
    );
    assert!(lost > count, "hardly anything was lost");
    assert!(more > 0, "nothing is ever there that was not promised");
    assert!(promised > count, "hardly anything was promised");
    None
}

async fn survives(synchronous: Synchronous) {
    let mut random = Random::seeded("images");
    for _ in 0..if is_long() { 5 } else { 1 } {
        let history = work(synchronous, &mut random).await;
        if let Some((image, broken)) = first_broken(&history, Disk::Honest, &mut random, images()) {
            let told = format!("{broken}\n{image:?}");
            panic!("{told}, kept in {}", image.keep().display());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_at_full_loses_nothing_that_was_acknowledged() {
    survives(Synchronous::Full).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_at_normal_loses_only_what_came_after_the_last_sync() {
    survives(Synchronous::Normal).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_ignores_syncs_is_found_out() {
    let mut random = Random::seeded("ignored syncs");
    for synchronous in [Synchronous::Full, Synchronous::Normal] {
        let history = work(synchronous, &mut random).await;
        let found = first_broken(&history, Disk::IgnoresSyncs, &mut random, images());
        let (_, broken) = found.expect("syncs are of no use, it seems");
        eprintln!("found out: {broken}");
    }
}

/// What `Normal` promises less is something that the images show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn normal_does_not_keep_what_full_promises() {
    let mut random = Random::seeded("normal as full");
    let mut history = work(Synchronous::Normal, &mut random).await;
    history.synchronous = Synchronous::Full;
    let found = first_broken(&history, Disk::Honest, &mut random, images());
    let (_, broken) = found.expect("Normal syncs each commit, it seems");
    assert!(matches!(broken, Broken::Lost { .. }), "{broken}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_in_an_image_is_found() {
    let mut random = Random::seeded("planted faults");
    let history = work(Synchronous::Full, &mut random).await;
    let image = Image::at_the_end(&history);
    let all = history.transactions.len();
    let sound = Sound {
        survived: all,
        promised: all,
    };
    assert_eq!(check(&history, &image), Ok(sound));
    let faults = [
        (
            "DELETE FROM lines WHERE id = (SELECT max(id) FROM lines)",
            Broken::Half,
        ),
        (
            "UPDATE orders SET lines = lines + 1 WHERE id = 1",
            Broken::Half,
        ),
        (
            "DELETE FROM steps WHERE id = (SELECT id FROM steps ORDER BY seq LIMIT 1 OFFSET 3)",
            Broken::Order,
        ),
        (
            "UPDATE steps SET serial = 1000 WHERE id = (SELECT id FROM steps ORDER BY seq DESC LIMIT 1)",
            Broken::Order,
        ),
        (
            "PRAGMA foreign_keys = OFF; DELETE FROM orders WHERE id = 1",
            Broken::References,
        ),
    ];
    for (sql, expected) in faults {
        let image = Image::at_the_end(&history);
        image.spoil(sql);
        assert_eq!(check(&history, &image), Err(expected), "{sql}");
    }
    let image = Image::at_the_end(&history);
    image.cut_in_half();
    assert!(matches!(check(&history, &image), Err(Broken::File(_))));
}
