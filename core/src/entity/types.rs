//! Lists of entity types, as `create_tables::<(A, B)>()` takes them.

use crate::entity::{Entity, TableDef};

/// One entity type, or a tuple of up to sixteen lists.
pub trait EntityTypes {
    /// Adds the tables to a list, in the order written.
    fn collect(tables: &mut Vec<&'static TableDef>);
}

impl<E: Entity> EntityTypes for E {
    fn collect(tables: &mut Vec<&'static TableDef>) {
        tables.push(E::TABLE);
    }
}

macro_rules! tuples {
    ($first:ident $($rest:ident)*) => {
        impl<$first: EntityTypes, $($rest: EntityTypes),*> EntityTypes for ($first, $($rest,)*) {
            fn collect(tables: &mut Vec<&'static TableDef>) {
                $first::collect(tables);
                $($rest::collect(tables);)*
            }
        }
        tuples!($($rest)*);
    };
    () => {};
}

tuples!(A B C D F G H I J K L M N O P Q);
