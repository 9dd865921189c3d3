//! The anomaly catalogue: what sessions side by side may see of each other, for both isolation levels.
//!
//! The scripts are those of Martin Kleppmann's Hermitage and some more. Each steps two or three transactions by hand.
//! What came of it is held against a plain map: committed transactions saw and left behind what *some* order of them, one
//! after the other, would have shown and left. Under `Serializable` that is so for each script; under `Snapshot` for all
//! but those that are write skew or the read-only anomaly, and there it must not be so: the level means what it says.

mod actor;
mod catalogue;
mod oracle;
mod play;

use anabranch::prelude::*;
use anabranch_tests::Mode;

use self::{
    actor::{Access, Cast},
    catalogue::{CATALOGUE, Script},
    oracle::is_serial,
    play::{Played, Stage},
};

const LEVELS: [Isolation; 2] = [Isolation::Serializable, Isolation::Snapshot];

#[tokio::test]
async fn sessions_show_no_anomaly_but_those_that_the_level_allows() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let mut stage = Stage::new(mode).await;
        for script in CATALOGUE {
            for isolation in LEVELS {
                for access in [Access::Raw, Access::Typed] {
                    let cast = [Cast::Session(access); 3];
                    let played = stage.play(script, isolation, cast).await;
                    let what = format!("{}, {isolation:?}, {access:?}, {mode:?}", script.name);
                    judge(script, isolation, access, &played, &what);
                }
            }
        }
    }
}

fn judge(script: &Script, isolation: Isolation, access: Access, played: &Played, what: &str) {
    let conflicts = match (isolation, access) {
        (Isolation::Serializable, Access::Raw) => script.serializable,
        (Isolation::Serializable, Access::Typed) => script.serializable_typed,
        (Isolation::Snapshot, _) => script.snapshot,
    };
    assert_eq!(
        played.conflicts, conflicts,
        "who conflicts: {what}: {played:#?}"
    );
    let allowed = script.is_allowed_by_snapshot && isolation == Isolation::Snapshot;
    assert_eq!(
        is_serial(&played.committed, &played.table),
        !allowed,
        "as in some order: {what}: {played:#?}"
    );
}

/// One of the transactions is something else, all at once where the script commits it: the others are sessions.
#[tokio::test]
async fn sessions_beside_other_writers_show_no_anomaly_either() {
    let mut stage = Stage::new(Mode::Inline).await;
    for script in CATALOGUE {
        for isolation in LEVELS {
            if script.is_allowed_by_snapshot && isolation == Isolation::Snapshot {
                continue;
            }
            for which in 0..script.transactions() {
                for other in [Cast::Save, Cast::Write, Cast::Process] {
                    let mut cast = [Cast::Session(Access::Raw); 3];
                    cast[which] = other;
                    let played = stage.play(script, isolation, cast).await;
                    assert!(
                        is_serial(&played.committed, &played.table),
                        "as in some order: {}, {isolation:?}, {cast:?}: {played:#?}",
                        script.name
                    );
                }
            }
        }
    }
}

/// The judge is judged: a lost update, a write skew and a torn read are in no order right.
#[test]
fn the_oracle_knows_what_no_order_explains() {
    use self::{catalogue::Op, oracle::Ended, oracle::Seen};

    let read = |id, value| (Op::Read(id), Seen::Rows(vec![(id, value)]));
    let set = |id, value| (Op::Set(id, value), Seen::Changed(1));
    let ended = |ops: &[(Op, Seen)]| Ended { ops: ops.to_vec() };
    let table = |one, two| [(1, one), (2, two)].into_iter().collect();

    let lost = [
        ended(&[read(1, 10), set(1, 11)]),
        ended(&[read(1, 10), set(1, 12)]),
    ];
    assert!(!is_serial(&lost, &table(12, 20)));
    let skew = [
        ended(&[read(2, 20), set(1, 11)]),
        ended(&[read(1, 10), set(2, 21)]),
    ];
    assert!(!is_serial(&skew, &table(11, 21)));
    let torn = [
        ended(&[set(1, 11), set(2, 21)]),
        ended(&[read(1, 10), read(2, 21)]),
    ];
    assert!(!is_serial(&torn, &table(11, 21)));
    let whole = [
        ended(&[set(1, 11), set(2, 21)]),
        ended(&[read(1, 11), read(2, 21)]),
    ];
    assert!(is_serial(&whole, &table(11, 21)));
    assert!(
        !is_serial(&whole, &table(11, 20)),
        "something was not written"
    );
}
