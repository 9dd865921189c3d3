//! Relations between entities.

use std::{fmt, marker::PhantomData};

use crate::{
    entity::{Column, Entity},
    query::{
        Condition, Expr, Fetch, Nullable, Orders, Part, Projection, Query, Selection, Through, Via,
        Whole,
        condition::Invalid,
        filters::Lifted,
        route::{Ends, Route, Way},
        step::Step,
    },
    sql::{Comparison, Piece, Predicate, Term},
    value::Value,
};

/// How to get from an entity `E` to those that are related to it. The derive makes a constant for each.
///
/// `R` is what comes of it: the other entity, an `Option` of it if there may be none, or a `Vec` of them. Many to many
/// goes through a join entity `J`.
///
/// | constant | declared by | type |
/// |---|---|---|
/// | `Order::CUSTOMER` | `references = Customer` on the field `customer_id` | `Relation<Order, Customer>` |
/// | `Order::COUPON` | the same on a field that is an `Option` | `Relation<Order, Option<Coupon>>` |
/// | `Order::LINES` | `has_many(lines: OrderLine)` on the struct | `Relation<Order, Vec<OrderLine>>` |
/// | `User::PROFILE` | `has_one(profile: Profile)` on the struct | `Relation<User, Option<Profile>>` |
/// | `Post::TAGS` | `has_many(tags: Tag, through = PostTag)` on the struct | `Relation<Post, Vec<Tag>, PostTag>` |
///
/// A query asks about them ([`any`](Self::any), [`count`](Self::count)), reads them along with its rows
/// ([`Query::with`](crate::query::Query::with)), and computes with them ([`get`](Self::get)). Narrowed by
/// [`filter`](Self::filter), sorted or limited it is a [`Fetch`], which does the same.
///
/// ```
/// # use anabranch::prelude::*;
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
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<(Customer, Order, Line)>().await?;
/// # let mut ctx = db.context();
/// # let ada = ctx.add(Customer { id: 0, name: "Ada".into() });
/// # let order = ctx.add(Order { id: 0, customer_id: ctx[ada].id });
/// # for (item, price, deleted) in [("tea", 4, false), ("cake", 7, false), ("jam", 9, true)] {
/// #     ctx.add(Line { id: 0, order_id: ctx[order].id, item: item.into(), price, deleted });
/// # }
/// # ctx.save_changes().await?;
/// // Reading along.
/// let orders = Order::query().with(Order::CUSTOMER).with(Order::LINES).all(&db).await?;
/// let (_, customer, lines) = &orders[0];
/// assert_eq!((&customer.name[..], lines.len()), ("Ada", 2));
/// let customers = Customer::query().with(Customer::ORDERS.then(Order::LINES.without_filter("live"))).all(&db).await?;
/// assert_eq!(customers[0].1[0].1.len(), 3);
/// let items = Order::LINES.filter(Line::PRICE.gt(5)).select(Line::ITEM);
/// assert_eq!(Order::query().with(items).all(&db).await?[0].1, ["cake"]);
///
/// // Asking.
/// let asked = Order::LINES.exists()
///     .and(Order::LINES.any(Line::PRICE.gt(5)))
///     .and(Order::LINES.none(Line::PRICE.gt(7)))
///     .and(Order::LINES.all(Line::PRICE.gt(1)));
/// assert_eq!(Order::query().filter(asked).count(&db).await?, 1);
///
/// // Computing.
/// let computed = (Order::CUSTOMER.get(Customer::NAME), Order::LINES.count(), Order::LINES.of_all(Line::PRICE.max()));
/// assert_eq!(Order::query().select(computed).one(&db).await?, ("Ada".to_owned(), 2, Some(7)));
/// # Ok(()) }
/// ```
pub struct Relation<E, R, J = ()> {
    pub(in crate::query) route: Route,
    of: PhantomData<Between<E, R, J>>,
}

/// Whom a relation is of; it has none of them.
type Between<E, R, J> = fn() -> (E, R, J);

/// What a relation leads to: an entity, an `Option` of one, or a `Vec` of them.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::Related;
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
/// fn leads_to<R: Related>(_: Relation<Order, R>) -> &'static str {
///     R::Entity::TABLE.name
/// }
/// assert_eq!((leads_to(Order::CUSTOMER), leads_to(Order::LINES)), ("customer", "line"));
/// ```
pub trait Related: 'static {
    /// The other entity.
    type Entity: Entity;
    /// The same around something else.
    type Wrapped<O: Send + 'static>: Send + 'static;
    /// Whether there may be more than one.
    const MANY: bool;
    /// Whether there always is one.
    const REQUIRED: bool = false;

    /// What is related to that which is related.
    #[doc(hidden)]
    type Beyond<R: Related>: Related<Entity = R::Entity>;
    /// The same where there may be none.
    #[doc(hidden)]
    type Optional: Related<Entity = Self::Entity>;

    /// Those that a context tracks: an `Option` of one, or a `Vec`.
    type Tracked<O: Send + 'static>: Send + 'static;

    /// Of any number of them.
    #[doc(hidden)]
    fn tracked<O: Send + 'static>(found: Vec<O>) -> Self::Tracked<O>;

    /// All of them.
    #[doc(hidden)]
    fn unwrapped<O: Send + 'static>(wrapped: Self::Wrapped<O>) -> Vec<O>;

    /// Of any number of them; nothing if there has to be one and is none.
    #[doc(hidden)]
    fn wrapped<O: Send + 'static>(found: Vec<O>) -> Option<Self::Wrapped<O>>;
}

impl<T: Entity> Related for T {
    type Entity = T;
    type Wrapped<O: Send + 'static> = O;
    const MANY: bool = false;
    const REQUIRED: bool = true;

    type Beyond<R: Related> = R;
    type Optional = Option<T>;
    type Tracked<O: Send + 'static> = Option<O>;

    fn tracked<O: Send + 'static>(found: Vec<O>) -> Option<O> {
        found.into_iter().next()
    }

    fn unwrapped<O: Send + 'static>(wrapped: O) -> Vec<O> {
        vec![wrapped]
    }

    fn wrapped<O: Send + 'static>(found: Vec<O>) -> Option<O> {
        found.into_iter().next()
    }
}

impl<T: Entity> Related for Option<T> {
    type Entity = T;
    type Wrapped<O: Send + 'static> = Option<O>;
    const MANY: bool = false;

    type Beyond<R: Related> = R::Optional;
    type Optional = Self;
    type Tracked<O: Send + 'static> = Option<O>;

    fn tracked<O: Send + 'static>(found: Vec<O>) -> Option<O> {
        found.into_iter().next()
    }

    fn unwrapped<O: Send + 'static>(wrapped: Option<O>) -> Vec<O> {
        wrapped.into_iter().collect()
    }

    fn wrapped<O: Send + 'static>(found: Vec<O>) -> Option<Option<O>> {
        Some(found.into_iter().next())
    }
}

impl<T: Entity> Related for Vec<T> {
    type Entity = T;
    type Wrapped<O: Send + 'static> = Vec<O>;
    const MANY: bool = true;

    type Beyond<R: Related> = Vec<R::Entity>;
    type Optional = Self;
    type Tracked<O: Send + 'static> = Vec<O>;

    fn tracked<O: Send + 'static>(found: Vec<O>) -> Vec<O> {
        found
    }

    fn unwrapped<O: Send + 'static>(wrapped: Vec<O>) -> Vec<O> {
        wrapped
    }

    fn wrapped<O: Send + 'static>(found: Vec<O>) -> Option<Vec<O>> {
        Some(found)
    }
}

/// What a relation leads to if some of it may be left out: an `Option` or a `Vec`.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::Narrowed;
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
/// fn ten<R: Narrowed>(relation: Relation<Order, R>) -> Fetch<Order, R> {
///     relation.limit(10)
/// }
/// let query = Order::query().with(ten(Order::LINES)); // `ten(Order::CUSTOMER)` does not compile
/// ```
#[diagnostic::on_unimplemented(
    message = "this relation always leads to one row, which cannot be left out",
    label = "leads to one `{Self}`",
    note = "put the condition on the query: `Order::CUSTOMER.any(condition)`"
)]
pub trait Narrowed: Related {}

impl<T: Entity> Narrowed for Option<T> {}

impl<T: Entity> Narrowed for Vec<T> {}

/// What one row is read through a relation as: the value, or an `Option` of it if there may be no row.
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::query::Reached;
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
/// fn name_of<R: Reached<String, Entity = Customer>>(relation: Relation<Order, R>) -> Expr<Order, R::Value> {
///     relation.get(Customer::NAME)
/// }
/// let names: Expr<Order, String> = name_of(Order::CUSTOMER);
/// ```
pub trait Reached<V>: Related {
    /// The type of the value.
    type Value;
}

impl<T: Entity, V> Reached<V> for T {
    type Value = V;
}

impl<T: Entity, V: Nullable> Reached<V> for Option<T> {
    type Value = V::Nullable;
}

/// # Made by the derive
impl<E, R> Relation<E, R> {
    /// The entity's column at `by` refers to the other's key.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Country { #[entity(id)] code: String, name: String }
    /// # #[derive(Debug, Entity)]
    /// # struct City { #[entity(id)] id: i64, country: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Country, City)>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Country { code: "NO".into(), name: "Norway".into() });
    /// # ctx.add(City { id: 0, country: "NO".into() });
    /// # ctx.save_changes().await?;
    /// // The table is one of another program, and has no foreign key.
    /// const IN_COUNTRY: Relation<City, Country> = Relation::belongs_to(1);
    /// const CITIES: Relation<Country, Vec<City>> = Relation::has(1);
    ///
    /// let cities = City::query().with(IN_COUNTRY).all(&db).await?;
    /// assert_eq!(cities[0].1.name, "Norway");
    /// assert_eq!(Country::query().with(CITIES).all(&db).await?[0].1.len(), 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn belongs_to(by: usize) -> Self {
        Self::new(Ends::BelongsTo { by })
    }

    /// The column at `by` of the other's table refers to the entity's key.
    #[must_use]
    pub const fn has(by: usize) -> Self {
        Self::new(Ends::Has { by })
    }
}

/// # Made for one query
impl<E, R: Related> Relation<E, R> {
    /// Those that are equal in a column to one of the entity, where no reference is declared: any two columns of one type
    /// make a relation, and either may be NULL, from which nothing leads anywhere. One that leads to an `Option` needs the
    /// other column to be unique.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Login { #[entity(id)] id: i64, email: String }
    /// # #[derive(Debug, Entity)]
    /// # struct Customer { #[entity(id)] id: i64, #[entity(unique)] email: String }
    /// const LOGINS: Relation<Customer, Vec<Login>> = Relation::on(Customer::EMAIL, Login::EMAIL);
    /// let never = Customer::query().filter(!LOGINS.exists());
    /// ```
    #[must_use]
    pub const fn on<T, U>(from: Column<E, T>, to: Column<R::Entity, U>) -> Self
    where
        T: Nullable,
        U: Nullable<Required = T::Required>,
    {
        Self::new(Ends::On {
            from: from.index(),
            to: to.index(),
        })
    }
}

/// # Made by the derive
impl<E, R, J> Relation<E, R, J> {
    /// Of the join entity's table the column at `by` refers to the entity's key, that at `to` to the other's.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Post { #[entity(id)] id: i64 }
    /// # #[derive(Debug, Entity)]
    /// # struct Tag { #[entity(id)] id: i64, name: String }
    /// # #[derive(Debug, Entity)]
    /// # struct PostTag { #[entity(id, references = Post)] post: i64, #[entity(id, references = Tag, index)] tag: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Post, Tag, PostTag)>().await?;
    /// # let mut ctx = db.context();
    /// # let post = ctx.add(Post { id: 0 });
    /// # let tag = ctx.add(Tag { id: 0, name: "sqlite".into() });
    /// # ctx.add(PostTag { post: ctx[post].id, tag: ctx[tag].id });
    /// # ctx.save_changes().await?;
    /// const TAGS: Relation<Post, Vec<Tag>, PostTag> = Relation::through(0, 1);
    ///
    /// let posts = Post::query().with(TAGS).all(&db).await?;
    /// assert_eq!(posts[0].1[0].name, "sqlite");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn through(by: usize, to: usize) -> Self {
        Self::new(Ends::Through { by, to })
    }

    pub(in crate::query) const fn new(ends: Ends) -> Self {
        Self {
            route: Route::of(ends),
            of: PhantomData,
        }
    }
}

impl<E, R, J> Clone for Relation<E, R, J> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, R, J> Copy for Relation<E, R, J> {}

impl<E: Entity, R: Related, J: Through> fmt::Debug for Relation<E, R, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relation({}", E::TABLE.entity)?;
        for step in self.steps().iter().flatten() {
            write!(f, " to {}", step.to.entity)?;
        }
        f.write_str(")")
    }
}

impl<E: Entity, R: Related, J: Through> Relation<E, R, J> {
    /// Of the columns that refer, in whichever table, the one that says which reference is meant; or one that may be
    /// NULL, by which the reference can be taken away.
    pub(crate) fn referring(self) -> Result<usize, Invalid> {
        let steps = self.steps()?;
        let [step] = &steps[..] else {
            return Err(Invalid::Refused("a relation goes through another entity"));
        };
        let (by, table, columns) = match self.route.first() {
            Ends::BelongsTo { by } => (by, step.from, &step.from_columns),
            Ends::Has { by } | Ends::Through { by, .. } => (by, step.to, &step.to_columns),
            Ends::On { .. } | Ends::When => {
                return Err(Invalid::Refused(
                    "a relation of any two columns has no reference: name the column",
                ));
            }
        };
        let mut by_preference = std::iter::once(&by).chain(columns);
        let nullable = by_preference.find(|column| table.columns[**column].nullable);
        Ok(*nullable.unwrap_or(&by))
    }

    /// The steps: one, two through a join entity, or those of all relations that this one is made of.
    pub(crate) fn steps(self) -> Result<Vec<Step>, Invalid> {
        self.steps_without(&Lifted::All)
    }

    /// The steps, with the filters of the entities between but for those that are lifted.
    pub(in crate::query) fn steps_without(self, lifted: &Lifted) -> Result<Vec<Step>, Invalid> {
        let mut way = Way::along(&self.route, lifted)?;
        J::steps::<E, R>(&mut way)?;
        Ok(way.into_steps())
    }

    /// All that it leads to, to be narrowed.
    pub(crate) const fn fetch(self) -> Fetch<E, R, J> {
        Fetch::new(self)
    }

    /// What another relation leads to from there: a relation of several steps, which does all that one of a single step
    /// does. Each entity at its end is there once, however many ways lead to it; one between that its filters leave out
    /// leads nowhere, as does what refers to nothing.
    ///
    /// It leads to one entity if both always do, to an `Option` if either may lead to none, and to a `Vec` if either leads
    /// to many. It may be a constant, or the beginning of a longer one; eight relations may follow one another.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// use anabranch::query::Via;
    ///
    /// # #[derive(Debug, Entity)]
    /// # #[entity(has_many(posts: Post))]
    /// # struct Author { #[entity(id)] id: i64, name: String }
    /// # #[derive(Debug, Entity)]
    /// # #[entity(has_many(tags: Tag, through = PostTag))]
    /// # struct Post { #[entity(id)] id: i64, #[entity(references = Author, index)] author_id: i64 }
    /// # #[derive(Debug, Entity)]
    /// # struct Tag { #[entity(id)] id: i64, name: String }
    /// # #[derive(Debug, Entity)]
    /// # struct PostTag { #[entity(id, references = Post)] post: i64, #[entity(id, references = Tag, index)] tag: i64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Author, Post, Tag, PostTag)>().await?;
    /// # let mut ctx = db.context();
    /// # let ada = ctx.add(Author { id: 0, name: "Ada".into() });
    /// # let tag = ctx.add(Tag { id: 0, name: "sqlite".into() });
    /// # for _ in 0..2 {
    /// #     let post = ctx.add(Post { id: 0, author_id: ctx[ada].id });
    /// #     ctx.add(PostTag { post: ctx[post].id, tag: ctx[tag].id });
    /// # }
    /// # ctx.save_changes().await?;
    /// impl Author {
    ///     const TAGS: Relation<Self, Vec<Tag>, Via<(), Vec<Post>, PostTag>> = Self::POSTS.via(Post::TAGS);
    /// }
    /// // Two posts have the same tag.
    /// let authors = Author::query().with(Author::TAGS).all(&db).await?;
    /// assert_eq!(authors[0].1.len(), 1);
    /// let asked = Author::TAGS.any(Tag::NAME.eq("sqlite")).and(Author::TAGS.count().eq(1));
    /// assert_eq!(Author::query().filter(asked).count(&db).await?, 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn via<S: Related, K: Through>(
        self,
        next: Relation<R::Entity, S, K>,
    ) -> Relation<E, R::Beyond<S>, Via<J, R, K>> {
        Relation {
            route: self.route.and(next.route),
            of: PhantomData,
        }
    }

    /// A query for those that this entity leads to, by its fields as they are.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # #[entity(has_many(lines: Line))]
    /// # struct Invoice { #[entity(id)] id: i64 }
    /// # #[derive(Debug, Entity)]
    /// # struct Line { #[entity(id)] id: i64, #[entity(references = Invoice, index)] invoice_id: i64, price: i64 }
    /// # async fn dear(db: &Database, invoice: &Invoice) -> anabranch::error::Result<u64> {
    /// Invoice::LINES.of(invoice).filter(Line::PRICE.gt(100)).count(db).await
    /// # }
    /// ```
    pub fn of(self, entity: &E) -> Query<R::Entity> {
        let query = if R::REQUIRED {
            // The one row that has to be there always is.
            Query::new().without_filters()
        } else {
            Query::new()
        };
        query.filter(match self.leads_from(entity) {
            Ok(predicate) => Condition::new(predicate),
            Err(invalid) => Condition::invalid(invalid),
        })
    }

    fn leads_from(self, entity: &E) -> Result<Predicate, Invalid> {
        let steps = self.steps_without(&Lifted::None)?;
        let [first, further @ ..] = &steps[..] else {
            return Err(Invalid::Refused("a relation leads nowhere"));
        };
        let values = first.starts_at(entity)?;
        if values.iter().any(Value::is_null) {
            return Ok(Predicate::Constant(false));
        }
        let links = first.links().into_iter();
        let equal = links.zip(values).map(|(link, value)| Predicate::Compare {
            term: link,
            comparison: Comparison::Equal,
            with: Term::Value(value),
        });
        let equal = equal.collect();
        if further.is_empty() {
            return Ok(Predicate::All(equal));
        }
        let key = Term::Several(
            R::Entity::TABLE
                .key_columns()
                .map(|it| Term::Column(it.name))
                .collect(),
        );
        Ok(Predicate::InSelect {
            term: Term::Fragment(vec![Piece::Term(key)]),
            select: Box::new(Step::ends(&steps, equal, Vec::new())),
        })
    }

    /// Reads only those that fulfil the condition. Of a relation that always leads to one nothing can be left out.
    pub fn filter(self, condition: Condition<R::Entity>) -> Fetch<E, R, J>
    where
        R: Narrowed,
    {
        self.fetch().filter(condition)
    }

    /// Reads them in this order.
    pub fn order_by(self, orders: impl Orders<R::Entity>) -> Fetch<E, R, J>
    where
        R: Narrowed,
    {
        self.fetch().order_by(orders)
    }

    /// Reads no more than this many for each row.
    pub fn limit(self, rows: u64) -> Fetch<E, R, J>
    where
        R: Narrowed,
    {
        self.fetch().limit(rows)
    }

    /// Leaves out this many at the beginning, for each row.
    pub fn offset(self, rows: u64) -> Fetch<E, R, J>
    where
        R: Narrowed,
    {
        self.fetch().offset(rows)
    }

    /// Reads also those that the filter of this name leaves out: one of the other entity, or of an entity between.
    pub fn without_filter(self, name: &'static str) -> Fetch<E, R, J> {
        self.fetch().without_filter(name)
    }

    /// Reads also those that any filter leaves out: of the other entity, and of those between.
    pub fn without_filters(self) -> Fetch<E, R, J> {
        self.fetch().without_filters()
    }

    /// Reads each with what another relation leads to from there: pairs, or tuples after several of these.
    ///
    /// Of an embedded struct `then` is a column of it: see [`Column::then`](crate::entity::Column::then).
    pub fn then<L: Selection<R::Entity>>(self, load: L) -> Fetch<E, R, J, (Whole, L)> {
        self.fetch().then(load)
    }

    /// Reads this of each of them instead of the whole.
    pub fn select<N: Selection<R::Entity>>(self, selection: N) -> Fetch<E, R, J, N> {
        self.fetch().select(selection)
    }

    /// Reads each as a struct that derives [`Projection`].
    ///
    /// ```
    /// # use anabranch::prelude::*;
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
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Customer, Order, Line)>().await?;
    /// # let mut ctx = db.context();
    /// # let ada = ctx.add(Customer { id: 0, name: "Ada".into() });
    /// # let order = ctx.add(Order { id: 0, customer_id: ctx[ada].id });
    /// # for (item, price, deleted) in [("tea", 4, false), ("cake", 7, false), ("jam", 9, true)] {
    /// #     ctx.add(Line { id: 0, order_id: ctx[order].id, item: item.into(), price, deleted });
    /// # }
    /// # ctx.save_changes().await?;
    /// #[derive(Debug, PartialEq, Projection)]
    /// #[projection(entity = Line)]
    /// struct View {
    ///     item: String,
    /// }
    ///
    /// let dearest = Order::LINES.order_by(Line::PRICE.desc()).limit(1).project::<View>();
    /// assert_eq!(Order::query().with(dearest).all(&db).await?[0].1, [View { item: "cake".into() }]);
    /// let all = Order::query().with(Order::LINES.project::<View>()).all(&db).await?;
    /// assert_eq!(all[0].1.len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn project<P: Projection<Entity = R::Entity>>(
        self,
    ) -> Fetch<E, R, J, impl Selection<R::Entity, Output = P>> {
        self.fetch().project::<P>()
    }

    /// There is one that fulfils the condition.
    pub fn any(self, condition: Condition<R::Entity>) -> Condition<E> {
        self.fetch().any(condition)
    }

    /// There is none that fulfils the condition.
    pub fn none(self, condition: Condition<R::Entity>) -> Condition<E> {
        self.fetch().none(condition)
    }

    /// There is none that does not fulfil the condition; also where there is none at all.
    pub fn all(self, condition: Condition<R::Entity>) -> Condition<E> {
        self.fetch().all(condition)
    }

    /// There is one.
    pub fn exists(self) -> Condition<E> {
        self.fetch().exists()
    }

    /// How many there are.
    #[must_use]
    pub fn count(self) -> Expr<E, i64> {
        self.fetch().count()
    }

    /// What an aggregate makes of them, such as `Order::LINES.of_all(OrderLine::PRICE.sum())`.
    pub fn of_all<V, P: Part>(self, aggregate: Column<R::Entity, V, P>) -> Expr<E, V> {
        self.fetch().of_all(aggregate)
    }

    /// An expression over the one that there is, as one over this: `Order::CUSTOMER.get(Customer::NAME)`. NULL where
    /// there is none, so of an optional relation it is an `Option`.
    ///
    /// The statement joins the other table, once however many expressions ask for it.
    pub fn get<V, P: Part>(self, expression: Column<R::Entity, V, P>) -> Expr<E, R::Value>
    where
        R: Reached<V>,
    {
        self.fetch().get(expression)
    }
}
