//! The entities, with all their names, ready to be written.

use crate::entities::{
    choices::Choices,
    draft::Draft,
    names::{self, Taken},
    references::Reference,
    values::RustType,
};

/// An entity.
#[derive(Debug)]
pub(crate) struct Entity {
    pub(crate) draft: Draft,
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) references: Vec<NamedReference>,
    /// `has_many(...)` and `has_one(...)`.
    pub(crate) relations: Vec<String>,
    /// The names of fields and relations: their constants must differ.
    pub(crate) taken: Taken,
}

/// A field.
#[derive(Debug)]
pub(crate) struct Field {
    /// The position of its column in the table.
    pub(crate) column: usize,
    /// Its name, without `r#`.
    pub(crate) name: String,
    pub(crate) ty: FieldType,
}

#[derive(Debug)]
pub(crate) enum FieldType {
    Plain(RustType),
    Enum { name: String, choices: Choices },
}

/// A reference, with what the derive calls it.
#[derive(Debug)]
pub(crate) struct NamedReference {
    pub(crate) reference: Reference,
    /// Whether it is an attribute of the struct, since it has several columns or its column has another already.
    pub(crate) on_struct: bool,
    /// The name of the relation, if the derive does not find it by itself.
    pub(crate) relation: Option<String>,
}

/// Names everything but the relations.
pub(crate) fn entities(drafts: Vec<Draft>, references: Vec<Vec<Reference>>) -> Vec<Entity> {
    let mut types = Taken::default();
    let mut entities: Vec<_> = (drafts.into_iter().zip(references))
        .map(|(draft, references)| Entity {
            name: types.type_name(&names::entity(&draft.table.name)),
            fields: Vec::new(),
            references: named(references),
            relations: Vec::new(),
            taken: Taken::default(),
            draft,
        })
        .collect();
    for entity in &mut entities {
        entity.name_fields(&mut types);
    }
    entities
}

/// The first reference of a single column stands on its field.
fn named(references: Vec<Reference>) -> Vec<NamedReference> {
    let mut on_field = Vec::new();
    let named = references.into_iter().map(|reference| {
        let is_first = reference.columns.len() == 1 && !on_field.contains(&reference.columns[0]);
        if is_first {
            on_field.push(reference.columns[0]);
        }
        NamedReference {
            reference,
            on_struct: !is_first,
            relation: None,
        }
    });
    named.collect()
}

impl Entity {
    /// The fields in the order of the columns; those of the key in the order of the key, which the derive takes from
    /// the fields.
    fn name_fields(&mut self, types: &mut Taken) {
        let draft = &self.draft;
        let mut key = draft.key.iter().copied();
        let columns = (0..draft.columns.len()).filter_map(|column| {
            if draft.key.contains(&column) {
                key.next()
            } else {
                Some(column).filter(|&column| draft.columns[column].rust_type.is_some())
            }
        });
        let columns: Vec<_> = columns.collect();
        // A column that is a name of Rust already keeps it.
        let mut given = vec![None; draft.columns.len()];
        for is_exact in [true, false] {
            for &column in &columns {
                let own = &draft.table.columns[column].name;
                let name = names::field(own);
                if given[column].is_none() && (name == *own) == is_exact {
                    given[column] = Some(self.taken.field(&name));
                }
            }
        }
        for column in columns {
            let (Some(name), Some(rust_type)) =
                (given[column].take(), draft.columns[column].rust_type)
            else {
                continue;
            };
            let ty = match draft.columns[column].choices.clone() {
                None => FieldType::Plain(rust_type),
                Some(choices) => FieldType::Enum {
                    name: types.type_name(&format!("{}{}", self.name, names::pascal_case(&name))),
                    choices,
                },
            };
            self.fields.push(Field { column, name, ty });
        }
    }

    /// The field of a column that is not left out.
    pub(crate) fn field(&self, column: usize) -> Option<&Field> {
        self.fields.iter().find(|field| field.column == column)
    }

    /// The names of fields as they are written, with commas.
    pub(crate) fn written_fields(&self, columns: &[usize]) -> String {
        let names: Vec<_> = (columns.iter())
            .filter_map(|&column| self.field(column))
            .map(|field| names::written(&field.name))
            .collect();
        names.join(", ")
    }

    /// The references that stand on fields, with the position of their column.
    pub(crate) fn field_references(&self) -> impl Iterator<Item = (usize, &NamedReference)> {
        (self.references.iter())
            .filter(|named| !named.on_struct)
            .map(|named| (named.reference.columns[0], named))
    }
}
