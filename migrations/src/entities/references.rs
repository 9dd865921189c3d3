//! Which foreign keys are references to entities, and the types that both sides must share.

use crate::entities::{
    catalog::{ForeignKey, Table},
    draft::Draft,
    notes::{Notes, shown},
};

/// A foreign key from one draft to another. Columns are named by their positions in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The columns that refer, in the order of the other's key.
    pub(crate) columns: Vec<usize>,
    /// The position of the draft that is referred to.
    pub(crate) target: usize,
    pub(crate) on_delete: Option<&'static str>,
    pub(crate) on_update: Option<&'static str>,
}

/// The more rounds, the longer the chains of references that can pass a type on.
const ROUNDS: usize = 16;

/// The references of each draft. Those that refer get the type of the key they hold.
pub(crate) fn resolve(
    drafts: &mut [Draft],
    tables: &[String],
    notes: &mut Notes,
) -> Vec<Vec<Reference>> {
    let mut resolved: Vec<Vec<Reference>> = (drafts.iter())
        .map(|draft| {
            let mut references: Vec<Reference> = Vec::new();
            for key in &draft.table.foreign_keys {
                match reference(drafts, tables, draft, key) {
                    Ok(reference) if references.contains(&reference) => {}
                    Ok(reference) => references.push(reference),
                    Err(why) => note(&draft.table, key, &why, notes),
                }
            }
            references
        })
        .collect();
    share_types(drafts, &resolved);
    for (at, references) in resolved.iter_mut().enumerate() {
        references.retain(|reference| {
            let fits = pairs(drafts, reference).all(|(from, to)| {
                drafts[at].columns[from].rust_type == drafts[reference.target].columns[to].rust_type
            });
            if !fits {
                let why = "the columns of the two tables hold values of different types";
                let target = &drafts[reference.target].table.name;
                note_columns(&drafts[at].table, &reference.columns, target, why, notes);
            }
            fits
        });
        for reference in references {
            drop_what_cannot_happen(&drafts[at], reference, notes);
            // It has the type of the key, so it is no enum.
            for &column in &reference.columns {
                drafts[at].columns[column].choices = None;
            }
        }
    }
    resolved
}

fn reference(
    drafts: &[Draft],
    tables: &[String],
    draft: &Draft,
    key: &ForeignKey,
) -> Result<Reference, String> {
    let is_it = |name: &str| name.eq_ignore_ascii_case(&key.table);
    let Some(target) = drafts.iter().position(|draft| is_it(&draft.table.name)) else {
        return Err(if tables.iter().any(|name| is_it(name)) {
            "that table has no entity here".to_owned()
        } else {
            "there is no such table".to_owned()
        });
    };
    let other = &drafts[target];
    let to: Vec<_> = if key.to.is_empty() {
        other.table.primary_key()
    } else {
        (key.to.iter())
            .map(|name| other.table.column(name).ok_or("there is no such column"))
            .collect::<Result<_, _>>()?
    };
    if to.len() != key.from.len() {
        return Err("it has not as many columns as the key of that table".to_owned());
    }
    let from = |wanted: usize| {
        let at = to.iter().position(|&column| column == wanted)?;
        draft.table.column(&key.from[at])
    };
    let columns: Option<Vec<_>> = other.key.iter().map(|&column| from(column)).collect();
    let columns = columns.filter(|columns| columns.len() == to.len());
    let columns = columns.ok_or("it refers to other columns than the key of that entity")?;
    if columns
        .iter()
        .any(|&column| draft.columns[column].rust_type.is_none())
    {
        return Err("a column of it is left out".to_owned());
    }
    Ok(Reference {
        columns,
        target,
        on_delete: action(&key.on_delete),
        on_update: action(&key.on_update),
    })
}

fn action(sql: &str) -> Option<&'static str> {
    match sql.to_ascii_uppercase().as_str() {
        "CASCADE" => Some("Cascade"),
        "SET NULL" => Some("SetNull"),
        "SET DEFAULT" => Some("SetDefault"),
        "RESTRICT" => Some("Restrict"),
        _ => None,
    }
}

/// The columns that refer, each with the one it refers to.
fn pairs<'a>(
    drafts: &'a [Draft],
    reference: &'a Reference,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let key = drafts[reference.target].key.iter().copied();
    reference.columns.iter().copied().zip(key)
}

/// A column that refers gets the type of the key, which may be a reference itself.
fn share_types(drafts: &mut [Draft], resolved: &[Vec<Reference>]) {
    for _ in 0..ROUNDS {
        let mut changed = false;
        for (at, references) in resolved.iter().enumerate() {
            for reference in references {
                let pairs: Vec<_> = pairs(drafts, reference).collect();
                for (from, to) in pairs {
                    let wanted = drafts[reference.target].columns[to].rust_type;
                    let Some(wanted) = wanted else { continue };
                    if drafts[at].columns[from].rust_type != Some(wanted) {
                        changed |= drafts[at].retype(from, wanted);
                    }
                }
            }
        }
        if !changed {
            return;
        }
    }
}

/// Some actions of SQL would fail whenever they took place.
fn drop_what_cannot_happen(draft: &Draft, reference: &mut Reference, notes: &mut Notes) {
    let columns = &reference.columns;
    let sets_null = columns.iter().all(|&column| draft.is_optional(column));
    let is_single = columns.len() == 1;
    let sets_default =
        (columns.iter()).all(|&column| draft.table.columns[column].default.is_some() || !is_single);
    for action in [&mut reference.on_delete, &mut reference.on_update] {
        let why = match action {
            Some("SetNull") if !sets_null => "it is SET NULL, and a column of it is NOT NULL",
            Some("SetDefault") if !sets_default => "it is SET DEFAULT, and there is no default",
            _ => continue,
        };
        *action = None;
        for &column in columns {
            notes.of_column(
                &draft.table,
                column,
                &format!("{why}: the action is left out"),
            );
        }
    }
}

fn note(table: &Table, key: &ForeignKey, why: &str, notes: &mut Notes) {
    let columns: Vec<_> = (key.from.iter())
        .filter_map(|name| table.column(name))
        .collect();
    note_columns(table, &columns, &key.table, why, notes);
}

fn note_columns(table: &Table, columns: &[usize], target: &str, why: &str, notes: &mut Notes) {
    let names: Vec<_> = (columns.iter())
        .map(|&column| table.columns[column].name.as_str())
        .collect();
    notes.add(
        &format!("{}.{}", table.name, names.join(", ")),
        &format!("the reference to {} is left out: {why}", shown(target)),
    );
}
