//! What a session is promised.

/// What a session is promised about what others commit meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// As if sessions had run one after the other, in the order of their commits: all that a session read is compared
    /// when it commits.
    #[default]
    Serializable,
    /// What a session read is not compared, but what it wrote: no update is lost, two sessions that wrote the same row
    /// conflict. Decisions that rest on rows which were only read (write skew) are not protected.
    ///
    /// Where it is not known what was written meanwhile, by another process or with a change of tables, the session is
    /// compared as a whole, as a serializable one.
    Snapshot,
}
