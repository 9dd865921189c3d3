//! Typed columns, and the column type of a commit number.

use std::{fmt, marker::PhantomData};

use crate::{
    entity::{ColumnDef, Entity},
    value::{ColumnType, Scalar, Storage, Value, ValueError, ValueRef},
};

/// A column of entity `E` whose values are of type `T`; the derive makes one constant a field.
///
/// `P` tells what is computed from columns, an [`Expr`](crate::query::Expr), from the columns themselves, which are
/// [`Stored`]. Both are asked, sorted by and selected in the same way.
pub struct Column<E, T, P = Stored> {
    pub(crate) part: P,
    of: PhantomData<fn() -> (E, T)>,
}

/// A column of the table, by its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored(pub(crate) usize);

impl<E, T> Column<E, T> {
    /// The column at `index` of the entity's table. Called by the derive.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self::of(Stored(index))
    }

    /// The position among the table's columns.
    #[must_use]
    pub const fn index(self) -> usize {
        self.part.0
    }
}

impl<E: Entity, T> Column<E, T> {
    /// The column's definition.
    #[must_use]
    pub fn definition(&self) -> &'static ColumnDef {
        &E::TABLE.columns[self.part.0]
    }
}

impl<E, T, P> Column<E, T, P> {
    pub(crate) const fn of(part: P) -> Self {
        Self {
            part,
            of: PhantomData,
        }
    }
}

impl<E, T, P: Clone> Clone for Column<E, T, P> {
    fn clone(&self) -> Self {
        Self::of(self.part.clone())
    }
}

impl<E, T, P: Copy> Copy for Column<E, T, P> {}

impl<E: Entity, T> fmt::Debug for Column<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", E::TABLE.name, self.definition().name)
    }
}

/// A position in commit order, stamped by the writer: of two rows, the one with the larger number was saved by
/// the later commit. 0 until the row was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CommitSeq(pub i64);

impl Scalar for CommitSeq {}

impl ColumnType for CommitSeq {
    const STORAGE: Storage = Storage::Integer;

    fn encode(&self) -> Result<Value, ValueError> {
        self.0.encode()
    }

    fn decode(value: ValueRef<'_>) -> Result<Self, ValueError> {
        i64::decode(value).map(Self)
    }
}
