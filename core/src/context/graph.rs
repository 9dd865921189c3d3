//! Graphs: entities that came together from elsewhere, and are tracked together.

use std::{fmt, mem, rc::Rc};

use crate::{
    context::{Context, Refers, Tracked},
    entity::{Entity, TableDef, encode_column},
    error::{Error, ErrorKind, Result},
    tracker::{Place, is_temporary},
    value::{PrimaryKey, Value},
};

/// An entity with those that refer to it, for [`Context::attach_graph`].
///
/// Every entity is a graph, as [`Graph::attach`] makes it: so children are given as they are.
#[must_use = "a graph is nothing until it is attached"]
pub struct Graph<E> {
    entity: E,
    start: Start,
    children: Branches,
}

/// What an entity of a graph is at first; one whose key is unset is added in any case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    Unchanged,
    Modified,
    Added,
}

/// A child, of whatever type, with those below it.
trait Branch: Send {
    /// Tracks the child, and notes those below it.
    fn grow(self: Box<Self>, growth: &mut Growth<'_, '_>, parent: &Parent) -> Result<()>;
    /// Those below it, taken off.
    fn cut(&mut self) -> Vec<Box<dyn Branch>>;
}

/// A child, and the position of its column that refers to the entity above it.
struct Child<C: Entity> {
    graph: Graph<C>,
    /// Or why there is none.
    reference: Result<usize>,
}

impl<C: Entity> Branch for Child<C> {
    fn grow(self: Box<Self>, growth: &mut Growth<'_, '_>, parent: &Parent) -> Result<()> {
        growth
            .grow(self.graph, Some((self.reference?, parent)))
            .map(drop)
    }

    fn cut(&mut self) -> Vec<Box<dyn Branch>> {
        mem::take(&mut self.graph.children.0)
    }
}

/// Branches that are dropped one after the other, not one inside of the other: a tree may be deep.
struct Branches(Vec<Box<dyn Branch>>);

impl Drop for Branches {
    fn drop(&mut self) {
        while let Some(mut branch) = self.0.pop() {
            self.0.extend(branch.cut());
        }
    }
}

/// Tells the interceptors of an entity.
type Tell = Box<dyn FnOnce(&Context<'_>)>;

/// What a child takes from the entity above it.
struct Parent {
    table: &'static TableDef,
    key: Vec<Value>,
}

/// A graph that is being tracked.
struct Growth<'a, 't> {
    ctx: &'a mut Context<'t>,
    /// All that is tracked so far.
    places: Vec<Place>,
    /// To be told of it, once all is tracked.
    told: Vec<Tell>,
    /// Whose turn it is; not by recursion: a tree of folders may be deep.
    rest: Vec<(Branches, Rc<Parent>)>,
}

impl<E: Entity> Graph<E> {
    /// An entity that is a row already, unless its key is unset: then it is to be inserted.
    ///
    /// A key of several columns, or one that the application gives, is never unset; but a child whose key holds that of
    /// its parent is new if the parent is, or if it does not say which parent it had. Other new ones are told by
    /// [`Graph::add`].
    pub fn attach(entity: E) -> Self {
        Self {
            entity,
            start: Start::Unchanged,
            children: Branches(Vec::new()),
        }
    }

    /// An entity whose row is to be written as a whole, as [`Context::update`] has it, unless its key is unset: then it
    /// is to be inserted.
    pub fn update(entity: E) -> Self {
        Self {
            start: Start::Modified,
            ..Self::attach(entity)
        }
    }

    /// An entity that is to be inserted, also when its key is set.
    pub fn add(entity: E) -> Self {
        Self {
            start: Start::Added,
            ..Self::attach(entity)
        }
    }

    /// Hangs children below the entity: their `reference`, a column such as `Line::ORDER_ID` or a relation such as
    /// `Order::LINES`, will be its key. Of a reference of several columns any one is
    /// named, and all are set.
    pub fn with<C: Entity>(
        mut self,
        reference: impl Refers<C>,
        children: impl IntoIterator<Item: Into<Graph<C>>>,
    ) -> Self {
        let reference = reference.position();
        for child in children {
            self.children.0.push(Box::new(Child {
                graph: child.into(),
                reference: match &reference {
                    Ok(position) => Ok(*position),
                    Err(error) => Err(error.copy()),
                },
            }));
        }
        self
    }
}

impl<E: Entity> From<E> for Graph<E> {
    fn from(entity: E) -> Self {
        Self::attach(entity)
    }
}

impl<E: Entity> fmt::Debug for Graph<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("entity", &E::TABLE.entity)
            .field("children", &self.children.0.len())
            .finish_non_exhaustive()
    }
}

impl Context<'_> {
    /// Tracks an entity with those below it, such as an order that came with its lines in a request. All or none.
    ///
    /// Each reference to the entity above is set, to a temporary key if that is new. A child that is a row already and
    /// refers to another parent, or to none, is moved: `Modified`. The handle is that of the root; the others are
    /// found with [`iter`](Context::iter) and [`find`](Context::find).
    ///
    /// ```
    /// use anabranch::{context::Graph, prelude::*};
    ///
    /// #[derive(Debug, Entity)]
    /// #[entity(table = "orders")]
    /// struct Order {
    ///     #[entity(id)]
    ///     id: i64,
    ///     item: String,
    /// }
    ///
    /// #[derive(Debug, Entity)]
    /// struct Line {
    ///     #[entity(id)]
    ///     id: i64,
    ///     #[entity(references = Order)]
    ///     order_id: i64,
    ///     amount: i64,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Order, Line)>().await?;
    /// let (order, lines) = (
    ///     Order { id: 0, item: "tea".into() },
    ///     vec![Line { id: 0, order_id: 0, amount: 1 }, Line { id: 0, order_id: 0, amount: 2 }],
    /// );
    /// let mut ctx = db.context();
    /// let order = ctx.attach_graph(Graph::attach(order).with(Line::ORDER_ID, lines))?;
    /// assert_eq!(ctx.save_changes().await?.inserted, 3);
    /// assert!(ctx.iter::<Line>().all(|(_, line)| line.order_id == ctx[order].id));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Nothing is tracked then. Kind `AlreadyTracked` if an entity with one of the keys is tracked, or two of the graph
    /// have the same; `Refused` if a column given to [`Graph::with`] does not refer to the entity above; `Value` if
    /// a field cannot hold the key, or an entity that is a row holds a temporary key.
    pub fn attach_graph<E: Entity>(&mut self, graph: impl Into<Graph<E>>) -> Result<Tracked<E>> {
        self.settle_if_answered();
        let mut growth = Growth {
            ctx: self,
            places: Vec::new(),
            told: Vec::new(),
            rest: Vec::new(),
        };
        let grown = growth.grow_all(graph.into());
        let Growth {
            ctx, places, told, ..
        } = growth;
        match grown {
            Ok(root) => {
                told.into_iter().for_each(|tell| tell(ctx));
                Ok(root)
            }
            Err(error) => {
                ctx.tracker.forget(&places);
                Err(error)
            }
        }
    }
}

impl Growth<'_, '_> {
    fn grow_all<E: Entity>(&mut self, graph: Graph<E>) -> Result<Tracked<E>> {
        let root = self.grow(graph, None)?;
        while let Some((mut branches, parent)) = self.rest.pop() {
            // The last is taken first.
            let Some(branch) = branches.0.pop() else {
                continue;
            };
            self.rest.push((branches, Rc::clone(&parent)));
            branch.grow(self, &parent)?;
        }
        Ok(root)
    }

    fn grow<E: Entity>(
        &mut self,
        graph: Graph<E>,
        above: Option<(usize, &Parent)>,
    ) -> Result<Tracked<E>> {
        let Graph {
            mut entity,
            start,
            children,
        } = graph;
        let link = above
            .map(|(column, parent)| link::<E>(column, parent))
            .transpose()?
            .unwrap_or_default();
        let adds = start == Start::Added || entity.key().is_unset() || has_new_key(&entity, &link);
        // What is part of the key says which row it is; the rest of a row's reference is a change of it.
        let (first, then): (Vec<_>, Vec<_>) =
            (link.into_iter()).partition(|(column, _)| adds || E::TABLE.is_key(*column));
        for (column, key) in first {
            refer(&mut entity, column, key)?;
        }
        let tracker = &mut self.ctx.tracker;
        let handle = match start {
            _ if adds => tracker.add_new(entity)?,
            Start::Modified => tracker.update(entity)?,
            Start::Unchanged | Start::Added => tracker.attach(entity)?,
        };
        self.places.push(handle.place);
        for (column, key) in then {
            let moves =
                (tracker.get(handle)).is_some_and(|child| child.encode(column).as_ref() != Ok(key));
            if moves && let Some(child) = tracker.get_mut(handle) {
                refer(child, column, key)?;
            }
        }
        if !self.ctx.interceptors.is_empty() {
            self.told
                .push(Box::new(move |ctx| ctx.tell_tracked(handle)));
        }
        self.plant(handle, children)?;
        Ok(handle)
    }

    /// Notes the children of an entity.
    fn plant<E: Entity>(&mut self, handle: Tracked<E>, mut children: Branches) -> Result<()> {
        if children.0.is_empty() {
            return Ok(());
        }
        let Some(entity) = self.ctx.tracker.get(handle) else {
            return Ok(());
        };
        let parent = Rc::new(Parent {
            table: E::TABLE,
            key: (E::TABLE.key.iter())
                .map(|column| encode_column(entity, *column))
                .collect::<Result<_>>()?,
        });
        children.0.reverse();
        self.rest.push((children, parent));
        Ok(())
    }
}

/// Whether a child can be no row yet, since its parent is part of its key: the parent is new, or was not set there.
fn has_new_key<E: Entity>(child: &E, link: &[(usize, &Value)]) -> bool {
    let is_unset = |column: usize| match child.encode(column) {
        Ok(Value::Integer(key)) => key == 0,
        Ok(Value::Blob(key)) => key.iter().all(|byte| *byte == 0),
        _ => false,
    };
    (link.iter())
        .any(|(column, key)| E::TABLE.is_key(*column) && (is_temporary(key) || is_unset(*column)))
}

/// The columns of a child that refer to its parent, and the values of the parent's key.
fn link<E: Entity>(column: usize, parent: &Parent) -> Result<Vec<(usize, &Value)>> {
    let foreign_key = E::TABLE.foreign_keys().find(|foreign_key| {
        foreign_key.columns.contains(&column)
            && (foreign_key.reference.table)().name == parent.table.name
    });
    let Some(foreign_key) = foreign_key else {
        return Err(Error::new(
            ErrorKind::Refused,
            "the column does not refer to the entity above it in the graph",
        )
        .with_table(E::TABLE.name)
        .with_column(E::TABLE.columns[column].name));
    };
    Ok((foreign_key.columns.iter().copied())
        .zip(&parent.key)
        .collect())
}

fn refer<E: Entity>(child: &mut E, column: usize, key: &Value) -> Result<()> {
    child
        .assign(column, key.as_ref())
        .map_err(|error| Error::value(E::TABLE.name, E::TABLE.columns[column].name, &error))
}
