//! A few entities, written by hand, for the tests beside the modules.

use uuid::Uuid;

use crate::{
    entity::{ColumnDef, CommitSeq, Entity, ForeignKeyAction, Reference, TableDef},
    value::{ColumnType, JsonValue, KeyColumn, Row, Storage, Value, ValueError, ValueRef},
};

macro_rules! entity {
    ($entity:ident, $table:ident, $key:ty, $($index:literal $field:ident),*) => {
        impl Entity for $entity {
            type Key = $key;
            const TABLE: &'static TableDef = &$table;

            fn key(&self) -> $key {
                self.id.clone()
            }

            fn set_key(&mut self, key: $key) {
                self.id = key;
            }

            fn encode(&self, column: usize) -> Result<Value, ValueError> {
                match column {
                    $($index => self.$field.encode(),)*
                    _ => Err(ValueError::new("no such column")),
                }
            }

            fn assign(&mut self, column: usize, value: ValueRef<'_>) -> Result<(), ValueError> {
                match column {
                    $($index => self.$field = ColumnType::decode(value)?,)*
                    _ => return Err(ValueError::new("no such column")),
                }
                Ok(())
            }

            fn encode_json(column: usize, json: &JsonValue) -> Result<Value, ValueError> {
                // The field says of which type it is.
                fn encoded<E, T: ColumnType>(
                    json: &JsonValue,
                    _field: fn(&E) -> &T,
                ) -> Result<Value, ValueError> {
                    T::from_json(json)?.encode()
                }
                match column {
                    $($index => encoded(json, |entity: &Self| &entity.$field),)*
                    _ => Err(ValueError::new("no such column")),
                }
            }

            fn decode<R: Row + ?Sized>(row: &R) -> Result<Self, (usize, ValueError)> {
                Ok(Self {
                    $($field: ColumnType::decode(row.value($index)).map_err(|error| ($index, error))?,)*
                })
            }
        }
    };
}

/// A row with a version and a unique column.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Customer {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) email: Option<String>,
    pub(crate) version: i64,
}

entity!(Customer, CUSTOMERS, i64, 0 id, 1 name, 2 email, 3 version);

static CUSTOMERS: TableDef = TableDef {
    version: Some(3),
    ..table::<i64>(
        "customers",
        "Customer",
        &[
            column("id", Storage::Integer),
            column("name", Storage::Text),
            ColumnDef {
                unique: true,
                nullable: true,
                ..column("email", Storage::Text)
            },
            column("version", Storage::Integer),
        ],
    )
};

impl Customer {
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// As it is read from the database.
    pub(crate) fn stored(id: i64, name: &str) -> Self {
        Self {
            id,
            name: name.to_owned(),
            email: Some(format!("{name}@example.org")),
            version: 3,
        }
    }
}

/// A row with a commit number that refers to a customer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Order {
    pub(crate) id: i64,
    pub(crate) customer_id: i64,
    pub(crate) item: String,
    pub(crate) total: f64,
    pub(crate) commit_seq: CommitSeq,
}

entity!(Order, ORDERS, i64, 0 id, 1 customer_id, 2 item, 3 total, 4 commit_seq);

static ORDERS: TableDef = TableDef {
    commit_seq: Some(4),
    ..table::<i64>(
        "orders",
        "Order",
        &[
            column("id", Storage::Integer),
            references("customer_id", Storage::Integer, || &CUSTOMERS),
            column("item", Storage::Text),
            column("total", Storage::Real),
            column("commit_seq", Storage::Integer),
        ],
    )
};

impl Order {
    pub(crate) fn new(customer_id: i64, item: &str) -> Self {
        Self {
            customer_id,
            item: item.to_owned(),
            ..Self::default()
        }
    }
}

/// A tree with keys that the context makes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Folder {
    pub(crate) id: Uuid,
    pub(crate) parent_id: Option<Uuid>,
}

entity!(Folder, FOLDERS, Uuid, 0 id, 1 parent_id);

static FOLDERS: TableDef = table::<Uuid>(
    "folders",
    "Folder",
    &[
        column("id", Storage::Blob),
        ColumnDef {
            nullable: true,
            ..references("parent_id", Storage::Blob, || &FOLDERS)
        },
    ],
);

/// A tree with keys that the writer gives, which also counts something.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Page {
    pub(crate) id: i64,
    pub(crate) parent_id: Option<i64>,
    pub(crate) views: i64,
}

entity!(Page, PAGES, i64, 0 id, 1 parent_id, 2 views);

static PAGES: TableDef = table::<i64>(
    "pages",
    "Page",
    &[
        column("id", Storage::Integer),
        ColumnDef {
            nullable: true,
            ..references("parent_id", Storage::Integer, || &PAGES)
        },
        column("views", Storage::Integer),
    ],
);

/// A team, whose captain is one of its players.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Team {
    pub(crate) id: String,
    pub(crate) captain_id: Option<i64>,
}

entity!(Team, TEAMS, String, 0 id, 1 captain_id);

static TEAMS: TableDef = table::<String>(
    "teams",
    "Team",
    &[
        column("id", Storage::Text),
        ColumnDef {
            nullable: true,
            ..references("captain_id", Storage::Integer, || &PLAYERS)
        },
    ],
);

/// A player, who belongs to a team.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Player {
    pub(crate) id: i64,
    pub(crate) team_id: String,
}

entity!(Player, PLAYERS, i64, 0 id, 1 team_id);

static PLAYERS: TableDef = table::<i64>(
    "players",
    "Player",
    &[
        column("id", Storage::Integer),
        references("team_id", Storage::Text, || &TEAMS),
    ],
);

/// Shares the key of its customer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Profile {
    pub(crate) id: i64,
    pub(crate) bio: String,
}

entity!(Profile, PROFILES, i64, 0 id, 1 bio);

static PROFILES: TableDef = table::<i64>(
    "profiles",
    "Profile",
    &[
        references("id", Storage::Integer, || &CUSTOMERS),
        column("bio", Storage::Text),
    ],
);

/// Somebody's address, as if it were embedded.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Place {
    pub(crate) id: i64,
    pub(crate) city: Option<String>,
    pub(crate) latitude: Option<f64>,
    pub(crate) floor: i64,
}

entity!(Place, PLACES, i64, 0 id, 1 city, 2 latitude, 3 floor);

static PLACES: TableDef = table::<i64>(
    "places",
    "Place",
    &[
        column("id", Storage::Integer),
        ColumnDef {
            field: "address.city",
            nullable: true,
            ..column("address_city", Storage::Text)
        },
        ColumnDef {
            field: "address.point.latitude",
            nullable: true,
            ..column("latitude", Storage::Real)
        },
        column("floor", Storage::Integer),
    ],
);

const fn table<K: KeyColumn>(
    name: &'static str,
    entity: &'static str,
    columns: &'static [ColumnDef],
) -> TableDef {
    TableDef::new(name, entity, columns, K::ORIGIN)
}

const fn column(name: &'static str, storage: Storage) -> ColumnDef {
    ColumnDef::new(name, storage)
}

const fn references(
    name: &'static str,
    storage: Storage,
    table: fn() -> &'static TableDef,
) -> ColumnDef {
    ColumnDef {
        references: Some(Reference {
            table,
            on_delete: ForeignKeyAction::Cascade,
            on_update: ForeignKeyAction::NoAction,
        }),
        ..column(name, storage)
    }
}
