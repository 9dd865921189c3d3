//! Two entities as a derive would write them, for tests.

use uuid::Uuid;

use crate::{
    entity::{Column, ColumnDef, Entity, TableDef},
    sql::fixture::Memory,
    value::{ColumnType, JsonValue, KeyOrigin, Row, Storage, Value, ValueError, ValueRef},
};

/// Its table and one of its columns have names that must be quoted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) note: Option<String>,
    pub(crate) rating: Option<i64>,
    pub(crate) weight: Option<f64>,
    pub(crate) tag: Uuid,
}

impl Item {
    pub(crate) const ID: Column<Self, i64> = Column::new(0);
    pub(crate) const NAME: Column<Self, String> = Column::new(1);
    pub(crate) const NOTE: Column<Self, Option<String>> = Column::new(2);
    pub(crate) const RATING: Column<Self, Option<i64>> = Column::new(3);
    pub(crate) const WEIGHT: Column<Self, Option<f64>> = Column::new(4);
    pub(crate) const TAG: Column<Self, Uuid> = Column::new(5);

    pub(crate) fn new(id: i64, name: &str) -> Self {
        Self {
            id,
            name: name.to_owned(),
            note: None,
            rating: None,
            weight: None,
            tag: Uuid::from_u128(u128::try_from(id).unwrap()),
        }
    }
}

impl Entity for Item {
    type Key = i64;

    const TABLE: &'static TableDef = &TableDef::new(
        "order",
        "Item",
        &[
            column("id", Storage::Integer, false),
            column("name", Storage::Text, false),
            column("no\"te", Storage::Text, true),
            column("rating", Storage::Integer, true),
            column("weight", Storage::Real, true),
            column("tag", Storage::Blob, false),
        ],
        KeyOrigin::Writer,
    );

    fn key(&self) -> i64 {
        self.id
    }

    fn set_key(&mut self, key: i64) {
        self.id = key;
    }

    fn encode(&self, column: usize) -> Result<Value, ValueError> {
        match column {
            0 => self.id.encode(),
            1 => self.name.encode(),
            2 => self.note.encode(),
            3 => self.rating.encode(),
            4 => self.weight.encode(),
            _ => self.tag.encode(),
        }
    }

    fn assign(&mut self, _column: usize, _value: ValueRef<'_>) -> Result<(), ValueError> {
        unreachable!("queries assign nothing")
    }

    fn encode_json(_column: usize, _json: &JsonValue) -> Result<Value, ValueError> {
        unreachable!("queries assign nothing")
    }

    fn decode<R: Row + ?Sized>(row: &R) -> Result<Self, (usize, ValueError)> {
        Ok(Self {
            id: field(row, 0)?,
            name: field(row, 1)?,
            note: field(row, 2)?,
            rating: field(row, 3)?,
            weight: field(row, 4)?,
            tag: field(row, 5)?,
        })
    }
}

/// Has a column that may be large.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Photo {
    pub(crate) id: String,
    pub(crate) image: Vec<u8>,
}

impl Photo {
    pub(crate) const ID: Column<Self, String> = Column::new(0);
    pub(crate) const IMAGE: Column<Self, Vec<u8>> = Column::new(1);
}

impl Entity for Photo {
    type Key = String;

    const TABLE: &'static TableDef = &TableDef::new(
        "photo",
        "Photo",
        &[
            column("id", Storage::Text, false),
            ColumnDef {
                large: true,
                ..column("image", Storage::Blob, false)
            },
        ],
        KeyOrigin::Application,
    );

    fn key(&self) -> String {
        self.id.clone()
    }

    fn set_key(&mut self, key: String) {
        self.id = key;
    }

    fn encode(&self, column: usize) -> Result<Value, ValueError> {
        match column {
            0 => self.id.encode(),
            _ => self.image.encode(),
        }
    }

    fn assign(&mut self, _column: usize, _value: ValueRef<'_>) -> Result<(), ValueError> {
        unreachable!("queries assign nothing")
    }

    fn encode_json(_column: usize, _json: &JsonValue) -> Result<Value, ValueError> {
        unreachable!("queries assign nothing")
    }

    fn decode<R: Row + ?Sized>(row: &R) -> Result<Self, (usize, ValueError)> {
        Ok(Self {
            id: field(row, 0)?,
            image: field(row, 1)?,
        })
    }
}

/// A database with both tables, and these items.
pub(crate) fn memory(items: &[Item]) -> Memory {
    let memory = Memory::with_schema(
        r#"CREATE TABLE "order" (id INTEGER PRIMARY KEY, name TEXT NOT NULL, "no""te" TEXT, rating INTEGER,
             weight REAL, tag BLOB NOT NULL) STRICT;
           CREATE TABLE photo (id TEXT NOT NULL PRIMARY KEY, image BLOB NOT NULL) STRICT;"#,
    );
    for item in items {
        memory.insert(
            r#"INSERT INTO "order" VALUES (?1, ?2, ?3, ?4, ?5, ?6)"#,
            crate::entity::encode(item).unwrap(),
        );
    }
    memory
}

const fn column(name: &'static str, storage: Storage, nullable: bool) -> ColumnDef {
    ColumnDef {
        nullable,
        ..ColumnDef::new(name, storage)
    }
}

fn field<T: ColumnType, R: Row + ?Sized>(row: &R, index: usize) -> Result<T, (usize, ValueError)> {
    T::decode(row.value(index)).map_err(|error| (index, error))
}
