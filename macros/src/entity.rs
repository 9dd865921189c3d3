//! `#[derive(Entity)]`: what the struct says, checked as far as tokens go.

mod expand;
mod field;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DataStruct, DeriveInput, Fields, Ident, LitStr, Path, Visibility, ext::IdentExt};

use crate::{
    entity::field::{Field, Role},
    errors::Errors,
    names::snake_case,
    settings::{Place, Settings},
};

/// An entity, ready to be written out.
struct Entity {
    name: Ident,
    visibility: Visibility,
    krate: Path,
    table: String,
    strict: bool,
    checks: Vec<LitStr>,
    fields: Vec<Field>,
}

pub(crate) fn derive(input: DeriveInput) -> syn::Result<TokenStream> {
    Entity::parse(input).map(|entity| entity.expand())
}

impl Entity {
    fn parse(input: DeriveInput) -> syn::Result<Self> {
        let named = named_fields(&input)?;
        let mut errors = Errors::default();
        if !input.generics.params.is_empty() || input.generics.where_clause.is_some() {
            errors.push(
                &input.generics,
                "an entity is one table: write a struct without parameters for each",
            );
        }
        let settings = Settings::parse(&input.attrs, Place::Struct, &mut errors);
        let fields: Vec<Field> = named
            .iter()
            .filter_map(|field| Field::parse(field, &mut errors))
            .collect();
        // A field that failed may have been the key: no second complaint about that.
        if fields.len() == named.len() {
            check_key(&input.ident, &fields, &mut errors);
        }
        check_roles(&fields, &mut errors);
        check_names(&fields, &mut errors);
        let entity = Self {
            table: table_name(&input.ident, &settings, &mut errors),
            strict: settings.boolean("strict", &mut errors).unwrap_or(true),
            checks: settings.strings("check", &mut errors),
            krate: settings.krate(&mut errors),
            name: input.ident,
            visibility: input.vis,
            fields,
        };
        errors.finish(entity)
    }

    /// The fields of the primary key, with their positions.
    fn key(&self) -> impl Iterator<Item = (usize, &Field)> {
        (self.fields.iter().enumerate()).filter(|(_, field)| field.role == Some(Role::Id))
    }

    /// The type of the primary key: a field's, or a tuple of theirs.
    fn key_type(&self) -> TokenStream {
        let types: Vec<_> = self.key().map(|(_, field)| &field.ty).collect();
        match types[..] {
            [ty] => quote!(#ty),
            _ => quote!((#(#types,)*)),
        }
    }

    /// The position of the field with this role.
    fn position(&self, role: Role) -> Option<usize> {
        self.fields
            .iter()
            .position(|field| field.role == Some(role))
    }
}

fn named_fields(
    input: &DeriveInput,
) -> syn::Result<&syn::punctuated::Punctuated<syn::Field, syn::Token![,]>> {
    let message = match &input.data {
        Data::Struct(DataStruct {
            fields: Fields::Named(fields),
            ..
        }) => return Ok(&fields.named),
        Data::Struct(_) => "an entity is a struct with named fields: each field is a column",
        Data::Enum(_) => {
            "an entity is a struct; for an enum that is stored in one column derive `EntityEnum`"
        }
        Data::Union(_) => "an entity is a struct, not a union",
    };
    Err(syn::Error::new_spanned(&input.ident, message))
}

fn table_name(name: &Ident, settings: &Settings, errors: &mut Errors) -> String {
    let Some(given) = settings.string("table", errors) else {
        return snake_case(&name.unraw().to_string());
    };
    let table = given.value();
    let folded = table.to_ascii_lowercase();
    for prefix in ["sqlite_", "anabranch_"] {
        if folded.starts_with(prefix) {
            errors.push(
                &given,
                format!("names that begin with `{prefix}` are reserved: choose another"),
            );
        }
    }
    table
}

fn check_key(name: &Ident, fields: &[Field], errors: &mut Errors) {
    if !fields.iter().any(|field| field.role == Some(Role::Id)) {
        errors.push(
            name,
            "no field is the key: write #[entity(id)] on one of type `i64`, `Uuid` or `String`",
        );
    }
}

fn check_roles(fields: &[Field], errors: &mut Errors) {
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Id) {
        let mut with_role = fields.iter().filter(|field| field.role == Some(role));
        let first = with_role.next();
        for second in with_role {
            let already = first
                .map(|field| field.member.to_string())
                .unwrap_or_default();
            errors.push(
                &second.member,
                format!(
                    "`{already}` is marked `{role}` already: an entity has one, remove the other",
                    role = role.as_str()
                ),
            );
        }
    }
}

/// SQLite does not tell columns apart by case, and two fields cannot share a constant.
fn check_names(fields: &[Field], errors: &mut Errors) {
    for (index, field) in fields.iter().enumerate() {
        for earlier in &fields[..index] {
            if field.column.eq_ignore_ascii_case(&earlier.column) {
                errors.push(
                    &field.column_at,
                    format!(
                        "the column `{}` belongs to `{}` already (case does not count): choose another name",
                        earlier.column, earlier.member
                    ),
                );
            } else if field.constant == earlier.constant {
                errors.push(
                    &field.member,
                    format!(
                        "the constant `{}` belongs to `{}` already: rename one of the fields",
                        field.constant, earlier.member
                    ),
                );
            }
        }
    }
}
