//! What a derive demands of a field's type beyond being storable; each trait is there for its message.
//!
//! A derive names `MET` of the field's type, so that the compiler looks and, if need be, complains there.

use chrono::{DateTime, Utc};

use crate::{entity::CommitSeq, value::KeyColumn};

/// The type of a `version` field.
#[diagnostic::on_unimplemented(
    message = "a version is an `i64`, not `{Self}`",
    label = "change this to `i64`"
)]
pub trait VersionType {
    /// The demand is met.
    const MET: () = ();
}

#[diagnostic::do_not_recommend]
impl VersionType for i64 {}

/// The type of a `commit_seq` field.
#[diagnostic::on_unimplemented(
    message = "a commit_seq is a `CommitSeq`, not `{Self}`",
    label = "change this to `anabranch::entity::CommitSeq`"
)]
pub trait CommitSeqType {
    /// The demand is met.
    const MET: () = ();
}

#[diagnostic::do_not_recommend]
impl CommitSeqType for CommitSeq {}

/// A type that can hold a key of type `K`, or none.
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` cannot refer to a key of type `{K}`",
    label = "change this to `{K}` or `Option<{K}>`",
    note = "a field with `references` has the type of the other entity's key, or is an Option of it",
    note = "to a key of several fields refers `foreign_key(columns(...), references = ...)` on the struct, with fields of their types in their order"
)]
pub trait ReferenceType<K> {
    /// The demand is met.
    const MET: () = ();
}

#[diagnostic::do_not_recommend]
impl<K: KeyColumn> ReferenceType<K> for K {}
#[diagnostic::do_not_recommend]
impl<K: KeyColumn> ReferenceType<K> for Option<K> {}

macro_rules! composite {
    ($($field:ident $key:ident),*) => {
        #[diagnostic::do_not_recommend]
        impl<$($field: ReferenceType<$key>, $key: KeyColumn),*> ReferenceType<($($key,)*)> for ($($field,)*) {}
    };
}

composite!(A K0, B K1);
composite!(A K0, B K1, C K2);
composite!(A K0, B K1, C K2, D K3);
composite!(A K0, B K1, C K2, D K3, F K4);
composite!(A K0, B K1, C K2, D K3, F K4, G K5);
composite!(A K0, B K1, C K2, D K3, F K4, G K5, H K6);
composite!(A K0, B K1, C K2, D K3, F K4, G K5, H K6, I K7);
composite!(A K0, B K1, C K2, D K3, F K4, G K5, H K6, I K7, J K8);
composite!(A K0, B K1, C K2, D K3, F K4, G K5, H K6, I K7, J K8, P K9);
composite!(A K0, B K1, C K2, D K3, F K4, G K5, H K6, I K7, J K8, P K9, Q K10);
composite!(A K0, B K1, C K2, D K3, F K4, G K5, H K6, I K7, J K8, P K9, Q K10, R K11);

/// An entity with one reference to `P`, and no second one: what a relation of `P` to it finds by itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not refer to `{P}` by exactly one field",
    label = "needs exactly one field with `references = {P}`",
    note = "in `{Self}`, which is to derive `Entity`, add `references = {P}` to the field that holds its key",
    note = "if there are several, name the one that is meant: `by = field`; for the other end of a relation that has `through`: `to = field`"
)]
pub trait References<P> {
    /// The position of the field's column; of several columns one that is in no other reference, if there is such.
    const BY: usize;
}

/// An entity that refers to `P` by the column at `COLUMN`, alone or as part of a key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not refer to `{P}` by this field",
    label = "needs `references = {P}`",
    note = "name a field of `{Self}` that has `references = {P}`, or is in one such `foreign_key`"
)]
pub trait ReferencesBy<P, const COLUMN: usize> {
    /// The position of the column.
    const BY: usize = COLUMN;
}

/// The type of a `created_at` or `updated_at` field.
#[diagnostic::on_unimplemented(
    message = "the time of a save is a `DateTime<Utc>`, not `{Self}`",
    label = "change this to `chrono::DateTime<chrono::Utc>`, or an Option of it",
    note = "with the feature `jiff` it may be a `jiff::Timestamp`, with `time` a `time::UtcDateTime`"
)]
pub trait TimestampType {
    /// The demand is met.
    const MET: () = ();
}

#[diagnostic::do_not_recommend]
impl TimestampType for DateTime<Utc> {}
#[cfg(feature = "jiff")]
#[diagnostic::do_not_recommend]
impl TimestampType for jiff::Timestamp {}
#[cfg(feature = "time")]
#[diagnostic::do_not_recommend]
impl TimestampType for time::UtcDateTime {}
#[diagnostic::do_not_recommend]
impl<T: TimestampType> TimestampType for Option<T> {}

/// A type that can be NULL.
#[diagnostic::on_unimplemented(
    message = "a reference that is `SetNull` must be able to be NULL",
    label = "change this to `Option<{Self}>`, or use another action"
)]
pub trait NullableType {
    /// The demand is met.
    const MET: () = ();
}

#[diagnostic::do_not_recommend]
impl<T> NullableType for Option<T> {}
