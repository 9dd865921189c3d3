//! The source text.

use crate::entities::{
    choices::Choices,
    indexes::Indexes,
    model::{Entity, Field, FieldType, NamedReference},
    names,
    notes::shown,
    text::{attributes, comment, literal},
    values::RustType,
};

/// The page of all entities; `command` is what makes it.
pub(crate) fn page(entities: &[Entity], indexes: &[Indexes], command: &str) -> String {
    let mut source = String::new();
    let tables: Vec<_> = (entities.iter())
        .map(|entity| format!("`{}`", shown(&entity.draft.table.name)))
        .collect();
    let about = match &tables[..] {
        [] => "No entities: no table could be one.".to_owned(),
        [table] => format!("The entity of the table {table}."),
        [tables @ .., last] => format!("Entities of the tables {} and {last}.", tables.join(", ")),
    };
    comment(&mut source, "//!", &about);
    source.push_str("//!\n");
    comment(
        &mut source,
        "//!",
        &format!("Made by `{}`.", shown(command)),
    );
    // clippy takes a column that is in two indexes for a mistake.
    if indexes.iter().any(|indexes| indexes.of_struct.len() > 1) {
        source.push_str(
            "#![allow(clippy::duplicated_attributes, reason = \"a column of two indexes\")]\n",
        );
    }
    source.push_str(&imports(entities));
    for (entity, indexes) in entities.iter().zip(indexes) {
        for field in &entity.fields {
            if let FieldType::Enum { name, choices } = &field.ty {
                let table = &entity.draft.table;
                let about = format!("What `{}` can be.", table.columns[field.column].name);
                write_enum(&mut source, name, choices, &about);
            }
        }
        write_entity(&mut source, entities, entity, indexes);
    }
    source
}

fn imports(entities: &[Entity]) -> String {
    if entities.is_empty() {
        return String::new();
    }
    let has = |wanted: RustType| {
        let mut fields = entities.iter().flat_map(|entity| &entity.fields);
        fields.any(|field| matches!(field.ty, FieldType::Plain(rust_type) if rust_type == wanted))
    };
    let mut lines = vec![
        if has(RustType::Any) {
            "use anabranch::{prelude::*, value::Value};"
        } else {
            "use anabranch::prelude::*;"
        }
        .to_owned(),
    ];
    let chrono: Vec<_> = [
        (RustType::DateTime, "DateTime"),
        (RustType::Date, "NaiveDate"),
        (RustType::Time, "NaiveTime"),
        (RustType::DateTime, "Utc"),
    ]
    .into_iter()
    .filter_map(|(rust_type, name)| has(rust_type).then_some(name))
    .collect();
    match &chrono[..] {
        [] => {}
        [name] => lines.push(format!("use chrono::{name};")),
        names => lines.push(format!("use chrono::{{{}}};", names.join(", "))),
    }
    if has(RustType::Uuid) {
        lines.push("use uuid::Uuid;".to_owned());
    }
    format!("\n{}\n", lines.join("\n"))
}

fn write_enum(source: &mut String, name: &str, choices: &Choices, about: &str) {
    let variants = choices.variants();
    source.push('\n');
    comment(source, "///", &shown(about));
    source.push_str("#[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]\n");
    let mut items = vec!["check".to_owned()];
    let mut lines = String::new();
    match choices {
        Choices::Integers(integers) => {
            items.push("integer".to_owned());
            for (variant, integer) in variants.iter().zip(integers) {
                lines.push_str(&format!("    {variant} = {integer},\n"));
            }
        }
        Choices::Texts(texts) => {
            let case = variant_case(&variants, texts);
            items.extend(case.map(|(name, _)| format!("rename_all = \"{name}\"")));
            for (variant, text) in variants.iter().zip(texts) {
                let by_rule = case.map_or_else(|| variant.clone(), |(_, case)| case(variant));
                if by_rule != *text {
                    attributes(&mut lines, "    ", &[format!("rename = {}", literal(text))]);
                }
                lines.push_str(&format!("    {variant},\n"));
            }
        }
    }
    attributes(source, "", &items);
    source.push_str(&format!("pub enum {name} {{\n{lines}}}\n"));
}

/// How a name is written in the database, by the words of `rename_all`.
type Case = (&'static str, fn(&str) -> String);

/// How all variants are written, if it is one way and not their own.
fn variant_case(variants: &[String], texts: &[String]) -> Option<Case> {
    const CASES: [Case; 6] = [
        ("snake_case", names::snake_case),
        ("lowercase", |name| names::snake_case(name).replace('_', "")),
        ("UPPERCASE", |name| {
            names::snake_case(name).replace('_', "").to_uppercase()
        }),
        ("SCREAMING_SNAKE_CASE", |name| {
            names::snake_case(name).to_uppercase()
        }),
        ("kebab-case", |name| {
            names::snake_case(name).replace('_', "-")
        }),
        ("camelCase", |name| camel_case(&names::snake_case(name))),
    ];
    if variants == texts {
        return None;
    }
    let is_all = |case: fn(&str) -> String| {
        (variants.iter().zip(texts)).all(|(variant, text)| case(variant) == *text)
    };
    CASES.into_iter().find(|(_, case)| is_all(*case))
}

/// How most columns are written, if it is not as the fields are.
fn field_case(entity: &Entity) -> Option<Case> {
    const CASES: [Case; 3] = [
        ("PascalCase", |name| {
            names::pascal_case(&names::snake_case(name))
        }),
        ("camelCase", |name| camel_case(&names::snake_case(name))),
        ("UPPERCASE", |name| name.to_uppercase()),
    ];
    let columns = &entity.draft.table.columns;
    let count = |case: fn(&str) -> String| {
        let fields = entity.fields.iter();
        fields
            .filter(|field| case(&field.name) == columns[field.column].name)
            .count()
    };
    let plain = count(str::to_owned);
    let (most, case) = (CASES.into_iter())
        .map(|case| (count(case.1), case))
        .reduce(|best, other| if other.0 > best.0 { other } else { best })?;
    (most > plain).then_some(case)
}

fn camel_case(snake: &str) -> String {
    let pascal = names::pascal_case(snake);
    let mut letters = pascal.chars();
    let first = letters.next().map(char::to_lowercase);
    first.into_iter().flatten().chain(letters).collect()
}

fn write_entity(source: &mut String, entities: &[Entity], entity: &Entity, indexes: &Indexes) {
    let table = &entity.draft.table;
    let case = field_case(entity);
    source.push('\n');
    comment(
        source,
        "///",
        &format!("A row of `{}`.", shown(&table.name)),
    );
    source.push_str("#[derive(Debug, Clone, PartialEq, Entity)]\n");
    attributes(source, "", &struct_items(entity, case));
    for item in &indexes.of_struct {
        attributes(source, "", std::slice::from_ref(item));
    }
    for named in entity.references.iter().filter(|named| named.on_struct) {
        let columns = entity.written_fields(&named.reference.columns);
        let mut items = vec![format!("columns({columns})")];
        items.extend(reference_items(entities, named));
        attributes(source, "", &[format!("foreign_key({})", items.join(", "))]);
    }
    for check in &table.checks {
        attributes(source, "", &[format!("check = {}", literal(check))]);
    }
    for relation in &entity.relations {
        attributes(source, "", std::slice::from_ref(relation));
    }
    source.push_str(&format!("pub struct {} {{\n", entity.name));
    for field in &entity.fields {
        let items = field_items(entities, entity, field, indexes, case);
        attributes(source, "    ", &items);
        let ty = match &field.ty {
            FieldType::Plain(rust_type) => rust_type.as_str(),
            FieldType::Enum { name, .. } => name,
        };
        let ty = if entity.draft.is_optional(field.column) {
            format!("Option<{ty}>")
        } else {
            ty.to_owned()
        };
        source.push_str(&format!("    pub {}: {ty},\n", names::written(&field.name)));
    }
    source.push_str("}\n");
}

fn struct_items(entity: &Entity, case: Option<Case>) -> Vec<String> {
    let table = &entity.draft.table;
    let mut items = Vec::new();
    if names::snake_case(&entity.name) != table.name || !table.name.is_ascii() {
        items.push(format!("table = {}", literal(&table.name)));
    }
    if !table.strict {
        items.push("strict = false".to_owned());
    }
    if table.without_rowid {
        items.push("without_rowid".to_owned());
    }
    items.extend(case.map(|(name, _)| format!("rename_all = \"{name}\"")));
    items
}

fn field_items(
    entities: &[Entity],
    entity: &Entity,
    field: &Field,
    indexes: &Indexes,
    case: Option<Case>,
) -> Vec<String> {
    let column = &entity.draft.table.columns[field.column];
    let mut items = Vec::new();
    if entity.draft.key.contains(&field.column) {
        items.push("id".to_owned());
        if entity.draft.table.autoincrement {
            items.push("autoincrement".to_owned());
        }
    }
    let by_rule = case.map_or_else(|| field.name.clone(), |(_, case)| case(&field.name));
    // The compiler may take other characters of Unicode for the same.
    if by_rule != column.name || !column.name.is_ascii() {
        items.push(format!("column = {}", literal(&column.name)));
    }
    items.extend(indexes.of_column[field.column].clone());
    items.extend((column.collate.as_deref()).map(|name| format!("collate = {}", literal(name))));
    let is_enum = matches!(field.ty, FieldType::Enum { .. });
    match &column.checks[..] {
        _ if is_enum => {}
        [] => {}
        [check] => items.push(format!("check = {}", literal(check))),
        checks => {
            let all = format!("({})", checks.join(") AND ("));
            items.push(format!("check = {}", literal(&all)));
        }
    }
    items.extend((column.default.as_deref()).map(|sql| format!("default = {}", literal(sql))));
    if let Some(generated) = &column.generated {
        items.push(format!("generated = {}", literal(&generated.expression)));
        if generated.stored {
            items.push("stored".to_owned());
        }
    }
    let mut references = entity.field_references();
    if let Some((_, named)) = references.find(|(column, _)| *column == field.column) {
        items.extend(reference_items(entities, named));
    }
    items
}

fn reference_items(entities: &[Entity], named: &NamedReference) -> Vec<String> {
    let reference = &named.reference;
    let mut items = vec![format!("references = {}", entities[reference.target].name)];
    items.extend(
        (named.relation.as_deref()).map(|name| format!("relation = {}", names::written(name))),
    );
    items.extend(
        reference
            .on_delete
            .map(|action| format!("on_delete = {action}")),
    );
    items.extend(
        reference
            .on_update
            .map(|action| format!("on_update = {action}")),
    );
    items
}
