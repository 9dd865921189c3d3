//! Rows whose columns are found by their names.

use crate::{
    entity::ColumnDef,
    error::{Error, ErrorKind, Result},
    value::{Row, ValueError, ValueRef},
};

/// A row of a statement as that of a struct: its columns are those of the fields, in their order.
struct Named<'a> {
    row: &'a dyn Row,
    places: &'a [usize],
}

impl Row for Named<'_> {
    fn width(&self) -> usize {
        self.places.len()
    }

    fn value(&self, index: usize) -> ValueRef<'_> {
        match self.places.get(index) {
            Some(place) => self.row.value(*place),
            None => ValueRef::Null,
        }
    }
}

/// Makes a struct of such a row, or says which column does not fit its field.
type Decode<T> = fn(&dyn Row) -> Result<T, (usize, ValueError)>;

/// Reads a struct with these columns; what the code of a derive needs.
#[doc(hidden)]
pub fn by_names<T>(row: &dyn Row, columns: &[ColumnDef], decode: Decode<T>) -> Result<T> {
    let undecoded = |message| Error::new(ErrorKind::Decode, message);
    let places = row
        .places(&|names| find(columns, names))
        .map_err(|error| undecoded(error.to_string()))?;
    decode(&Named { row, places }).map_err(|(column, error)| {
        let name = columns.get(column).map_or("?", |column| column.name);
        undecoded(format!("column `{name}` of the result: {error}"))
    })
}

/// SQL does not tell names apart by case.
fn find(columns: &[ColumnDef], names: &[&str]) -> Result<Vec<usize>, ValueError> {
    let find = |column: &ColumnDef| {
        let mut places = (names.iter().enumerate())
            .filter(|(_, name)| name.eq_ignore_ascii_case(column.name))
            .map(|(place, _)| place);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (None, _) => Err(ValueError::new(format!(
                "the statement gives no column `{}`, only `{}`: name it so with AS",
                column.name,
                names.join("`, `")
            ))),
            (Some(_), Some(_)) => Err(ValueError::new(format!(
                "the statement gives several columns `{}`: name those apart with AS",
                column.name
            ))),
        }
    };
    columns.iter().map(find).collect()
}
