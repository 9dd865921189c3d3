//! The entities of the model, and what the model itself knows of their tables.

use std::ops::Range;

use anabranch::{prelude::*, value::Value};
use chrono::{DateTime, NaiveDateTime, Utc};

/// A row, or an entity as a row: the values of all columns.
pub(crate) type Row = Vec<Value>;
/// Every key here is of integers.
pub(crate) type Key = Vec<i64>;

/// With a version, times, a computed column, a unique one, a CHECK, an optional struct and a reference to itself.
#[derive(Debug, Clone, PartialEq, Entity)]
pub(crate) struct Node {
    #[entity(id, autoincrement)]
    id: i64,
    mark: i64,
    #[entity(unique)]
    name: String,
    #[entity(references = Node, on_delete = SetNull)]
    parent: Option<i64>,
    #[entity(check = "score >= 0")]
    score: i64,
    #[entity(embed)]
    place: Option<Place>,
    #[entity(generated = "score * 2")]
    double: i64,
    #[entity(created_at)]
    created: DateTime<Utc>,
    #[entity(updated_at)]
    updated: DateTime<Utc>,
    #[entity(version)]
    version: i64,
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
pub(crate) struct Place {
    x: i64,
    label: Option<String>,
}

/// Without a version: only what differs may be written, or two writers would overwrite each other.
#[derive(Debug, Clone, PartialEq, Entity)]
pub(crate) struct Leaf {
    #[entity(id, autoincrement)]
    id: i64,
    mark: i64,
    #[entity(references = Node, on_delete = Cascade)]
    node: i64,
    #[entity(references = Leaf, on_delete = SetNull)]
    friend: Option<i64>,
    weight: f64,
}

/// Its key is given by the application, and contains a reference.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(without_rowid)]
pub(crate) struct Part {
    #[entity(id, references = Leaf, on_delete = Cascade)]
    leaf: i64,
    #[entity(id)]
    number: i64,
    note: String,
    #[entity(version)]
    version: i64,
}

/// Keeps rows from being deleted.
#[derive(Debug, Clone, PartialEq, Entity)]
pub(crate) struct Tag {
    #[entity(id)]
    id: i64,
    mark: i64,
    #[entity(references = Node)]
    node: Option<i64>,
    #[entity(references = Leaf, on_delete = Restrict)]
    leaf: Option<i64>,
    text: String,
}

/// All of them.
pub(crate) type Tables = (Node, Leaf, Part, Tag);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDelete {
    Cascade,
    SetNull,
    Refuse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) column: usize,
    pub(crate) target: usize,
    pub(crate) on_delete: OnDelete,
}

/// What the model knows of a table, written by hand.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) key: &'static [usize],
    /// The serial number by which a row is found again whose key is not known yet.
    pub(crate) mark: Option<usize>,
    pub(crate) references: &'static [Reference],
    pub(crate) unique: Option<usize>,
    /// Never below zero.
    pub(crate) score: Option<usize>,
    /// Twice the score.
    pub(crate) double: Option<usize>,
    pub(crate) created: Option<usize>,
    pub(crate) updated: Option<usize>,
    pub(crate) version: Option<usize>,
}

pub(crate) const NODE: usize = 0;
pub(crate) const LEAF: usize = 1;
pub(crate) const PART: usize = 2;
pub(crate) const TAG: usize = 3;

const fn reference(column: usize, target: usize, on_delete: OnDelete) -> Reference {
    Reference {
        column,
        target,
        on_delete,
    }
}

pub(crate) static SPECS: [Spec; 4] = [
    Spec {
        name: "node",
        columns: &[
            "id",
            "mark",
            "name",
            "parent",
            "score",
            "place_x",
            "place_label",
            "double",
            "created",
            "updated",
            "version",
        ],
        key: &[0],
        mark: Some(1),
        references: &[reference(3, NODE, OnDelete::SetNull)],
        unique: Some(2),
        score: Some(4),
        double: Some(7),
        created: Some(8),
        updated: Some(9),
        version: Some(10),
    },
    Spec {
        name: "leaf",
        columns: &["id", "mark", "node", "friend", "weight"],
        key: &[0],
        mark: Some(1),
        references: &[
            reference(2, NODE, OnDelete::Cascade),
            reference(3, LEAF, OnDelete::SetNull),
        ],
        unique: None,
        score: None,
        double: None,
        created: None,
        updated: None,
        version: None,
    },
    Spec {
        name: "part",
        columns: &["leaf", "number", "note", "version"],
        key: &[0, 1],
        mark: None,
        references: &[reference(0, LEAF, OnDelete::Cascade)],
        unique: None,
        score: None,
        double: None,
        created: None,
        updated: None,
        version: Some(3),
    },
    Spec {
        name: "tag",
        columns: &["id", "mark", "node", "leaf", "text"],
        key: &[0],
        mark: Some(1),
        references: &[
            reference(2, NODE, OnDelete::Refuse),
            reference(3, LEAF, OnDelete::Refuse),
        ],
        unique: None,
        score: None,
        double: None,
        created: None,
        updated: None,
        version: None,
    },
];

impl Spec {
    /// Not the application's to change.
    pub(crate) fn keeps(&self, column: usize) -> bool {
        self.key.contains(&column) || self.version == Some(column) || self.double == Some(column)
    }

    /// The columns of the optional struct, of which this one is part.
    pub(crate) fn group(&self, column: usize) -> Range<usize> {
        let place = self.columns.iter().position(|name| *name == "place_x");
        match place {
            Some(first) if (first..first + 2).contains(&column) => first..first + 2,
            _ => column..column + 1,
        }
    }

    pub(crate) fn key_of(&self, row: &[Value]) -> Key {
        self.key
            .iter()
            .map(|column| integer(&row[*column]))
            .collect()
    }

    /// Puts into place what the database computes.
    pub(crate) fn compute(&self, row: &mut Row) {
        if let (Some(double), Some(score)) = (self.double, self.score) {
            row[double] = Value::Integer(integer(&row[score]) * 2);
        }
    }
}

/// A handle of any type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handle {
    Node(Tracked<Node>),
    Leaf(Tracked<Leaf>),
    Part(Tracked<Part>),
    Tag(Tracked<Tag>),
}

impl Handle {
    pub(crate) const fn table(self) -> usize {
        match self {
            Self::Node(_) => NODE,
            Self::Leaf(_) => LEAF,
            Self::Part(_) => PART,
            Self::Tag(_) => TAG,
        }
    }
}

/// Does something with a handle of whatever type.
macro_rules! typed {
    ($handle:expr, $typed:ident => $body:expr) => {
        match $handle {
            $crate::tables::Handle::Node($typed) => $body,
            $crate::tables::Handle::Leaf($typed) => $body,
            $crate::tables::Handle::Part($typed) => $body,
            $crate::tables::Handle::Tag($typed) => $body,
        }
    };
}

/// Does something with the entity of a row, of whatever type.
macro_rules! of_row {
    ($table:expr, $row:expr, $entity:ident => $body:expr) => {
        match $table {
            $crate::tables::NODE => {
                let $entity = <$crate::tables::Node as $crate::tables::Kept>::from_row($row);
                $body
            }
            $crate::tables::LEAF => {
                let $entity = <$crate::tables::Leaf as $crate::tables::Kept>::from_row($row);
                $body
            }
            $crate::tables::PART => {
                let $entity = <$crate::tables::Part as $crate::tables::Kept>::from_row($row);
                $body
            }
            _ => {
                let $entity = <$crate::tables::Tag as $crate::tables::Kept>::from_row($row);
                $body
            }
        }
    };
}

pub(crate) use {of_row, typed};

/// An entity to and from its row, without the library.
pub(crate) trait Kept: Entity + Clone + PartialEq + std::fmt::Debug {
    fn from_row(row: &[Value]) -> Self;
    fn to_row(&self) -> Row;
    fn handle(handle: Tracked<Self>) -> Handle;

    fn put(&mut self, changes: &[(usize, Value)]) {
        let mut row = self.to_row();
        for (column, value) in changes {
            row[*column] = value.clone();
        }
        *self = Self::from_row(&row);
    }
}

pub(crate) const EPOCH: &str = "1970-01-01 00:00:00.000000000";
const TIME: &str = "%Y-%m-%d %H:%M:%S%.9f";

pub(crate) fn integer(value: &Value) -> i64 {
    reference_of(value).unwrap_or_else(|| panic!("{value:?} is no integer"))
}

pub(crate) const fn reference_of(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(value) => Some(*value),
        _ => None,
    }
}

pub(crate) fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn string(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => panic!("{other:?} is no text"),
    }
}

fn time(value: &Value) -> DateTime<Utc> {
    NaiveDateTime::parse_from_str(&string(value), TIME)
        .unwrap()
        .and_utc()
}

fn moment(time: DateTime<Utc>) -> Value {
    Value::Text(time.format(TIME).to_string())
}

fn maybe(value: Option<i64>) -> Value {
    value.map_or(Value::Null, Value::Integer)
}

impl Kept for Node {
    fn from_row(row: &[Value]) -> Self {
        Self {
            id: integer(&row[0]),
            mark: integer(&row[1]),
            name: string(&row[2]),
            parent: reference_of(&row[3]),
            score: integer(&row[4]),
            place: reference_of(&row[5]).map(|x| Place {
                x,
                label: (row[6] != Value::Null).then(|| string(&row[6])),
            }),
            double: integer(&row[7]),
            created: time(&row[8]),
            updated: time(&row[9]),
            version: integer(&row[10]),
        }
    }

    fn to_row(&self) -> Row {
        let place = self.place.as_ref();
        let label = place.and_then(|place| place.label.clone());
        vec![
            Value::Integer(self.id),
            Value::Integer(self.mark),
            Value::Text(self.name.clone()),
            maybe(self.parent),
            Value::Integer(self.score),
            maybe(place.map(|place| place.x)),
            label.map_or(Value::Null, Value::Text),
            Value::Integer(self.double),
            moment(self.created),
            moment(self.updated),
            Value::Integer(self.version),
        ]
    }

    fn handle(handle: Tracked<Self>) -> Handle {
        Handle::Node(handle)
    }
}

impl Kept for Leaf {
    fn from_row(row: &[Value]) -> Self {
        let Value::Real(weight) = row[4] else {
            panic!("{:?} is no real", row[4]);
        };
        Self {
            id: integer(&row[0]),
            mark: integer(&row[1]),
            node: integer(&row[2]),
            friend: reference_of(&row[3]),
            weight,
        }
    }

    fn to_row(&self) -> Row {
        vec![
            Value::Integer(self.id),
            Value::Integer(self.mark),
            Value::Integer(self.node),
            maybe(self.friend),
            Value::Real(self.weight),
        ]
    }

    fn handle(handle: Tracked<Self>) -> Handle {
        Handle::Leaf(handle)
    }
}

impl Kept for Part {
    fn from_row(row: &[Value]) -> Self {
        Self {
            leaf: integer(&row[0]),
            number: integer(&row[1]),
            note: string(&row[2]),
            version: integer(&row[3]),
        }
    }

    fn to_row(&self) -> Row {
        vec![
            Value::Integer(self.leaf),
            Value::Integer(self.number),
            Value::Text(self.note.clone()),
            Value::Integer(self.version),
        ]
    }

    fn handle(handle: Tracked<Self>) -> Handle {
        Handle::Part(handle)
    }
}

impl Kept for Tag {
    fn from_row(row: &[Value]) -> Self {
        Self {
            id: integer(&row[0]),
            mark: integer(&row[1]),
            node: reference_of(&row[2]),
            leaf: reference_of(&row[3]),
            text: string(&row[4]),
        }
    }

    fn to_row(&self) -> Row {
        vec![
            Value::Integer(self.id),
            Value::Integer(self.mark),
            maybe(self.node),
            maybe(self.leaf),
            Value::Text(self.text.clone()),
        ]
    }

    fn handle(handle: Tracked<Self>) -> Handle {
        Handle::Tag(handle)
    }
}
