//! What stands between the two ends of a relation.

use std::marker::PhantomData;

use crate::{
    entity::{Entity, TableDef},
    query::{Related, condition::Invalid, route::Way},
};

/// What a relation goes through: nothing, a join entity, or what other relations lead to ([`Via`]).
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::{Related, Through};
///
/// # #[derive(Debug, Entity)]
/// # #[entity(has_many(orders: Order))]
/// # struct Customer { #[entity(id)] id: i64, name: String }
/// # #[derive(Debug, Entity)]
/// # #[entity(table = "orders", has_many(lines: Line))]
/// # struct Order { #[entity(id)] id: i64, #[entity(references = Customer, index)] customer_id: i64 }
/// # #[derive(Debug, Entity)]
/// # #[entity(filter(live = Line::live))]
/// # struct Line {
/// #     #[entity(id)] id: i64,
/// #     #[entity(references = Order, index)] order_id: i64,
/// #     item: String,
/// #     price: i64,
/// #     deleted: bool,
/// # }
/// # impl Line { fn live() -> Condition<Self> { Self::DELETED.eq(false) } }
/// fn linked<E: Entity, R: Related, J: Through>(relation: Relation<E, R, J>) -> Condition<E> {
///     relation.exists()
/// }
/// let query = Order::query().filter(linked(Order::LINES));
/// ```
pub trait Through: 'static {
    /// The join entity's table.
    #[doc(hidden)]
    const JOIN: Option<&'static TableDef> = None;
    /// Whether it is made of other relations.
    #[doc(hidden)]
    const IS_CHAIN: bool = false;

    /// Adds the steps from an entity to what a relation leads to.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "so that nobody else implements it")]
    fn steps<E: Entity, R: Related>(way: &mut Way<'_>) -> Result<(), Invalid>;

    /// The most columns of the entity by which the first step may go.
    #[doc(hidden)]
    fn width<E: Entity, R: Related>() -> usize;
}

#[allow(private_interfaces, reason = "as in the trait")]
impl Through for () {
    fn steps<E: Entity, R: Related>(way: &mut Way<'_>) -> Result<(), Invalid> {
        way.step::<E, R>()
    }

    fn width<E: Entity, R: Related>() -> usize {
        let by_reference = if R::MANY {
            0
        } else {
            R::Entity::TABLE.key.len()
        };
        by_reference.max(E::TABLE.key.len())
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<J: Entity> Through for J {
    const JOIN: Option<&'static TableDef> = Some(J::TABLE);

    fn steps<E: Entity, R: Related>(way: &mut Way<'_>) -> Result<(), Invalid> {
        way.steps_through::<E, J, R::Entity>()
    }

    fn width<E: Entity, R: Related>() -> usize {
        E::TABLE.key.len()
    }
}

/// What a relation of several steps goes through: a relation through `A` to `M`, and from there one through `B`. `M` is an
/// entity, an `Option` or a `Vec`, as the first of the two says. See [`Relation::via`](crate::query::Relation::via).
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::Via;
///
/// # #[derive(Debug, Entity)]
/// # #[entity(has_many(orders: Order))]
/// # struct Customer { #[entity(id)] id: i64, name: String }
/// # #[derive(Debug, Entity)]
/// # #[entity(table = "orders", has_many(lines: Line))]
/// # struct Order { #[entity(id)] id: i64, #[entity(references = Customer, index)] customer_id: i64 }
/// # #[derive(Debug, Entity)]
/// # struct Line { #[entity(id)] id: i64, #[entity(references = Order, index)] order_id: i64, item: String }
/// const BOUGHT: Relation<Customer, Vec<Line>, Via<(), Vec<Order>, ()>> = Customer::ORDERS.via(Order::LINES);
/// const BUYER: Relation<Line, Customer, Via<(), Order, ()>> = Line::ORDER.via(Order::CUSTOMER);
/// let query = Customer::query().with(BOUGHT).filter(BOUGHT.any(BUYER.exists()));
/// ```
#[derive(Debug)]
pub struct Via<A, M, B>(PhantomData<Between<A, M, B>>);

/// What it goes through; it has none of them.
type Between<A, M, B> = fn() -> (A, M, B);

#[allow(private_interfaces, reason = "as in the trait")]
impl<A: Through, M: Related, B: Through> Through for Via<A, M, B> {
    const IS_CHAIN: bool = true;

    fn steps<E: Entity, R: Related>(way: &mut Way<'_>) -> Result<(), Invalid> {
        A::steps::<E, M>(way)?;
        way.pass::<M::Entity>(M::REQUIRED)?;
        B::steps::<M::Entity, R>(way)
    }

    fn width<E: Entity, R: Related>() -> usize {
        A::width::<E, M>()
    }
}
