//! All that a relation of an entity to itself leads to.

use crate::{
    entity::Entity,
    query::{
        Fetch, Query, Related, Relation, Through,
        condition::{Condition, Invalid, Shape},
        filters::Lifted,
    },
    sql::{ColumnList, Hop, Predicate, Recursion, Term},
};

/// A step of a recursion.
#[derive(Debug)]
pub(in crate::query) struct Onward {
    pub(in crate::query) hops: Vec<Hop>,
    pub(in crate::query) beyond: Vec<Hop>,
    pub(in crate::query) conditions: Vec<Predicate>,
}

/// A relation from an entity to others of its kind, or a [`Fetch`] of one.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::ToItself;
///
/// # #[derive(Debug, Entity)]
/// # #[entity(has_many(children: Folder, by = parent_id))]
/// # struct Folder { #[entity(id)] id: i64, #[entity(references = Folder, index)] parent_id: Option<i64> }
/// fn all_from(id: i64, relation: impl ToItself<Folder>) -> Query<Folder> {
///     Folder::query().filter(Folder::ID.eq(id)).recursive(relation)
/// }
/// let (below, above) = (all_from(5, Folder::CHILDREN), all_from(5, Folder::PARENT));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not lead from `{E}` to `{E}`",
    label = "not a relation of `{E}` to itself",
    note = "a recursion takes the same step from where it came to: give a relation whose both ends are `{E}`"
)]
pub trait ToItself<E> {
    /// One step, and how deep its conditions are.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "so that nobody else implements it")]
    fn onward(self) -> (Result<Onward, Invalid>, Shape);
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, R: Related<Entity = E>, J: Through> ToItself<E> for Relation<E, R, J> {
    fn onward(self) -> (Result<Onward, Invalid>, Shape) {
        self.fetch().onward()
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl<E: Entity, R: Related<Entity = E>, J: Through, N> ToItself<E> for Fetch<E, R, J, N> {
    fn onward(self) -> (Result<Onward, Invalid>, Shape) {
        self.as_step()
    }
}

/// # From row to row
impl<E: Entity> Query<E> {
    /// The rows of this query, and all that the relation leads to from there in any number of steps, each row once. Rows
    /// that lead to each other in a circle are no matter.
    ///
    /// What was said so far, order and limit too, is of the rows to begin with; what follows is of all that were
    /// reached. The entity's filters hold for the former as this query has them, and at each step as the relation does:
    /// what they leave out leads nowhere. To lift them, or to narrow the steps, give `Folder::CHILDREN.without_filters()`
    /// or `.filter(...)`.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// #[derive(Debug, Entity)]
    /// #[entity(has_many(children: Folder, by = parent_id))]
    /// struct Folder {
    ///     #[entity(id)]
    ///     id: i64,
    ///     name: String,
    ///     #[entity(references = Folder, index)]
    ///     parent_id: Option<i64>,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Folder>().await?;
    /// # let mut ctx = db.context();
    /// # for (id, name, parent_id) in [(1, "home", None), (2, "ada", Some(1)), (3, "notes", Some(2)), (4, "old", Some(3))] {
    /// #     ctx.add(Folder { id, name: name.into(), parent_id });
    /// # }
    /// # ctx.save_changes().await?;
    /// let ada = || Folder::query().filter(Folder::NAME.eq("ada"));
    /// let below = ada().recursive(Folder::CHILDREN).order_by(Folder::ID.asc()).select(Folder::NAME);
    /// assert_eq!(below.all(&db).await?, ["ada", "notes", "old"]);
    /// let above = ada().recursive(Folder::PARENT).filter(Folder::PARENT_ID.is_null());
    /// assert_eq!(above.one(&db).await?.name, "home");
    /// assert_eq!(ada().recursive_up_to(1, Folder::CHILDREN).count(&db).await?, 2);
    /// assert_eq!(ada().recursive(Folder::CHILDREN).delete().execute(&db).await?, 3);
    /// # Ok(()) }
    /// ```
    pub fn recursive(self, relation: impl ToItself<E>) -> Self {
        self.reaching(None, relation)
    }

    /// The same with no more than so many steps.
    pub fn recursive_up_to(self, steps: u32, relation: impl ToItself<E>) -> Self {
        self.reaching(Some(steps), relation)
    }

    fn reaching(self, steps: Option<u32>, relation: impl ToItself<E>) -> Self {
        let (onward, shape) = relation.onward();
        let shape = self.shape().and(shape).around();
        let recursion = shape.check().and(onward).and_then(|onward| {
            let mut start = self.into_inner_select()?;
            let key = ColumnList::new(E::TABLE.key_columns().map(|column| column.name));
            start.columns = Term::All(key.clone());
            Ok(Predicate::Reached(Box::new(Recursion {
                key,
                start,
                hops: onward.hops,
                beyond: onward.beyond,
                conditions: onward.conditions,
                steps,
            })))
        });
        let mut reached = Self::new().filter(Condition::shaped(recursion, shape));
        reached.lifted = Lifted::All;
        reached
    }
}
