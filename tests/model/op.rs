//! What a run does, as chance chooses it: numbers that are looked at only when their turn comes, so that what is left
//! of a run after shrinking still means something.

use proptest::prelude::*;

/// A number of which something is chosen.
pub(crate) type Pick = u16;

/// A call that does not wait.
#[derive(Debug, Clone)]
pub(crate) enum Local {
    Add {
        table: u8,
        target: Pick,
        name: u8,
    },
    AddAgain(Pick),
    Set {
        of: Pick,
        what: Pick,
        value: Pick,
    },
    SetTwo {
        one: Pick,
        other: Pick,
        what: Pick,
        value: Pick,
    },
    Remove(Pick),
    Detach(Pick),
    Clear,
}

/// How a save goes.
#[derive(Debug, Clone)]
pub(crate) enum Save {
    Plain,
    Token(u8),
    /// An interceptor says no.
    Refused,
    /// Into a transaction, which then ends so.
    In {
        end: End,
        meanwhile: Vec<Local>,
    },
    /// Dropped after so many polls; while somebody else has the writer, perhaps.
    Dropped {
        polls: usize,
        held: bool,
        token: Option<u8>,
        meanwhile: Vec<Local>,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Commit,
    RollBack,
    Drop,
    Undo,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Spoil {
    Score,
    NotANumber,
    Reference,
    Key,
    Version,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Local(Local),
    Json {
        of: Pick,
        what: Pick,
        value: Pick,
    },
    Sever {
        of: Pick,
        which: Pick,
    },
    Reset(Pick),
    ResetColumn {
        of: Pick,
        column: Pick,
    },
    Mark {
        of: Pick,
        column: Pick,
    },
    Attach {
        row: Pick,
        whole: bool,
        stale: bool,
        value: Pick,
    },
    Graph {
        root: Pick,
        kind: u8,
        child: Pick,
    },
    Find(Pick),
    Query(u8),
    Reload(Pick),
    Spoil {
        of: Pick,
        how: Spoil,
    },
    /// A save; what is done after it failed.
    Save {
        how: Save,
        resolve: u8,
        heal: bool,
    },
    /// Somebody else writes.
    Other {
        who: u8,
        row: Pick,
        what: u8,
        value: Pick,
    },
}

fn local() -> impl Strategy<Value = Local> {
    prop_oneof![
        6 => (0..4_u8, any::<Pick>(), 0..24_u8)
            .prop_map(|(table, target, name)| Local::Add { table, target, name }),
        1 => any::<Pick>().prop_map(Local::AddAgain),
        8 => (any::<Pick>(), any::<Pick>(), any::<Pick>())
            .prop_map(|(of, what, value)| Local::Set { of, what, value }),
        2 => (any::<Pick>(), any::<Pick>(), any::<Pick>(), any::<Pick>())
            .prop_map(|(one, other, what, value)| Local::SetTwo { one, other, what, value }),
        3 => any::<Pick>().prop_map(Local::Remove),
        1 => any::<Pick>().prop_map(Local::Detach),
        1 => Just(Local::Clear),
    ]
}

fn save() -> impl Strategy<Value = Save> {
    let meanwhile = || prop::collection::vec(local(), 0..4);
    let end = prop_oneof![
        3 => Just(End::Commit),
        1 => Just(End::RollBack),
        1 => Just(End::Drop),
        1 => Just(End::Undo)
    ];
    prop_oneof![
        8 => Just(Save::Plain),
        2 => (0..6_u8).prop_map(Save::Token),
        1 => Just(Save::Refused),
        3 => (end, meanwhile()).prop_map(|(end, meanwhile)| Save::In { end, meanwhile }),
        5 => (0..4_usize, any::<bool>(), prop::option::weighted(0.2, 0..6_u8), meanwhile()).prop_map(
            |(polls, held, token, meanwhile)| Save::Dropped { polls, held, token, meanwhile }
        ),
    ]
}

/// One step of a run.
pub(crate) fn op() -> impl Strategy<Value = Op> {
    let spoil = prop_oneof![
        Just(Spoil::Score),
        Just(Spoil::NotANumber),
        Just(Spoil::Reference),
        Just(Spoil::Key),
        Just(Spoil::Version)
    ];
    prop_oneof![
        22 => local().prop_map(Op::Local),
        2 => (any::<Pick>(), any::<Pick>(), any::<Pick>())
            .prop_map(|(of, what, value)| Op::Json { of, what, value }),
        1 => (any::<Pick>(), any::<Pick>()).prop_map(|(of, which)| Op::Sever { of, which }),
        1 => any::<Pick>().prop_map(Op::Reset),
        1 => (any::<Pick>(), any::<Pick>()).prop_map(|(of, column)| Op::ResetColumn { of, column }),
        1 => (any::<Pick>(), any::<Pick>()).prop_map(|(of, column)| Op::Mark { of, column }),
        2 => (any::<Pick>(), any::<bool>(), prop::bool::weighted(0.2), any::<Pick>())
            .prop_map(|(row, whole, stale, value)| Op::Attach { row, whole, stale, value }),
        1 => (any::<Pick>(), 0..6_u8, any::<Pick>())
            .prop_map(|(root, kind, child)| Op::Graph { root, kind, child }),
        3 => any::<Pick>().prop_map(Op::Find),
        1 => (0..4_u8).prop_map(Op::Query),
        2 => any::<Pick>().prop_map(Op::Reload),
        1 => (any::<Pick>(), spoil).prop_map(|(of, how)| Op::Spoil { of, how }),
        10 => (save(), 0..6_u8, prop::bool::weighted(0.8))
            .prop_map(|(how, resolve, heal)| Op::Save { how, resolve, heal }),
        4 => (0..4_u8, any::<Pick>(), 0..4_u8, any::<Pick>())
            .prop_map(|(who, row, what, value)| Op::Other { who, row, what, value }),
    ]
}
