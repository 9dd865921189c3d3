//! Thrown away.
#![allow(missing_docs, missing_debug_implementations)]

use std::marker::PhantomData;

use crate::entity::{Column, Entity};

pub struct Relation<E, R, J = ()> {
    pub by: usize,
    pub to: usize,
    of: PhantomData<fn() -> (E, R, J)>,
}

impl<E, R, J> Clone for Relation<E, R, J> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E, R, J> Copy for Relation<E, R, J> {}

impl<E: Entity, R, J> Relation<E, R, J> {
    pub const fn belongs_to(by: usize) -> Self {
        Self {
            by,
            to: 0,
            of: PhantomData,
        }
    }
    pub const fn has(by: usize) -> Self {
        Self {
            by,
            to: 0,
            of: PhantomData,
        }
    }
    pub const fn project<P: Project<R>>(self) -> Projected<E, P::Whole> {
        Projected(PhantomData)
    }
}

pub trait Project<R> {
    type Whole;
}
impl<R: Entity, P: Projection<Entity = R>> Project<R> for P {
    type Whole = P;
}
impl<R: Entity, P: Projection<Entity = R>> Project<Vec<R>> for P {
    type Whole = Vec<P>;
}
impl<R: Entity, P: Projection<Entity = R>> Project<Option<R>> for P {
    type Whole = Option<P>;
}
pub struct Projected<E, W>(PhantomData<fn() -> (E, W)>);
impl<E: Entity, W> Selection<E> for Projected<E, W> {
    type Output = W;
}

impl<E: Entity, C: Entity, J: Entity> Relation<E, Vec<C>, J> {
    pub const fn through(by: usize, to: usize) -> Self {
        Self {
            by,
            to,
            of: PhantomData,
        }
    }
}

pub trait Selection<E> {
    type Output;
}

impl<E: Entity, T, P> Selection<E> for Column<E, T, P> {
    type Output = T;
}

pub trait Projection: Sized {
    type Entity: Entity;
    type Parts;
    fn selection() -> impl Selection<Self::Entity, Output = Self::Parts>;
    fn from_parts(parts: Self::Parts) -> Self;
}

macro_rules! tuple {
    ($($s:ident)*) => {
        impl<E: Entity, $($s: Selection<E>),*> Selection<E> for ($($s,)*) {
            type Output = ($($s::Output,)*);
        }
    };
}
tuple!(A);
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D F);
tuple!(A B C D F G);
tuple!(A B C D F G H);
tuple!(A B C D F G H I);

impl<E: Entity, P: Entity> Relation<E, P> {
    pub fn get<V>(self, _of: Column<P, V>) -> Projected<E, V> {
        Projected(PhantomData)
    }
}
