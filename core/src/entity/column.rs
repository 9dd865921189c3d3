//! Typed columns, and the column type of a commit number.

use std::{fmt, marker::PhantomData};

use crate::{
    entity::{ColumnDef, Entity},
    value::{ColumnType, Scalar, Storage, Value, ValueError, ValueRef},
};

/// A column of entity `E` whose values are of type `T`; the derive makes one constant a field.
///
/// `P` tells a [`Part`](crate::query::Part) from the whole: what is found at a path inside of its JSON, or the length
/// of its list. Such a part is asked and sorted by like a column.
pub struct Column<E, T, P = ()> {
    index: usize,
    pub(crate) part: P,
    of: PhantomData<fn() -> (E, T)>,
}

impl<E, T> Column<E, T> {
    /// The column at `index` of the entity's table. Called by the derive.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self {
            index,
            part: (),
            of: PhantomData,
        }
    }

    /// The position among the table's columns.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index
    }

    /// A part of the column, whose values are of type `V`.
    pub(crate) const fn part<V, P>(self, part: P) -> Column<E, V, P> {
        Column {
            index: self.index,
            part,
            of: PhantomData,
        }
    }
}

impl<E: Entity, T, P> Column<E, T, P> {
    /// The column's definition.
    #[must_use]
    pub fn definition(&self) -> &'static ColumnDef {
        &E::TABLE.columns[self.index]
    }
}

impl<E, T, P: Clone> Clone for Column<E, T, P> {
    fn clone(&self) -> Self {
        Self {
            index: self.index,
            part: self.part.clone(),
            of: PhantomData,
        }
    }
}

impl<E, T, P: Copy> Copy for Column<E, T, P> {}

impl<E: Entity, T, P> fmt::Debug for Column<E, T, P> {
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
