//! Typed columns, and the column type of a commit number.

use std::{fmt, marker::PhantomData};

use crate::{
    entity::{ColumnDef, Entity},
    value::{ColumnType, Scalar, Storage, Value, ValueError, ValueRef},
};

/// A column of entity `E` whose values are of type `T`; the derive makes one constant a field.
pub struct Column<E, T> {
    index: usize,
    of: PhantomData<fn() -> (E, T)>,
}

impl<E, T> Column<E, T> {
    /// The column at `index` of the entity's table. Called by the derive.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self {
            index,
            of: PhantomData,
        }
    }

    /// The position among the table's columns.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index
    }
}

impl<E: Entity, T> Column<E, T> {
    /// The column's definition.
    #[must_use]
    pub fn definition(self) -> &'static ColumnDef {
        &E::TABLE.columns[self.index]
    }
}

impl<E, T> Clone for Column<E, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, T> Copy for Column<E, T> {}

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
