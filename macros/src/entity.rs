//! `#[derive(Entity)]`: what the struct says, checked as far as tokens go.

pub(crate) mod columns;
mod expand;
pub(crate) mod field;
mod filter;
mod index;
mod relation;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Data, DataStruct, DeriveInput, Fields, Ident, LitStr, Path, Token, Visibility, ext::IdentExt,
    punctuated::Punctuated,
};

use crate::{
    entity::{
        columns::Columns,
        field::{Field, Role},
        filter::Filter,
        index::{ForeignKey, Index, IndexOn},
        relation::Relation,
    },
    errors::Errors,
    names::{nearest, snake_case},
    place::Place,
    settings::{FieldPath, Settings},
};

/// A row tells in the bits of one integer, which is not negative, which of them were read.
const MOST_DEFERRED: usize = 63;

/// An entity, ready to be written out.
struct Entity {
    name: Ident,
    visibility: Visibility,
    krate: Path,
    table: String,
    strict: bool,
    without_rowid: bool,
    tombstones: bool,
    checks: Vec<LitStr>,
    indexes: Vec<Index>,
    foreign_keys: Vec<ForeignKey>,
    relations: Vec<Relation>,
    filters: Vec<Filter>,
    columns: Columns,
}

pub(crate) fn derive(input: DeriveInput) -> syn::Result<TokenStream> {
    Entity::parse(input).map(|entity| entity.expand())
}

impl Entity {
    fn parse(input: DeriveInput) -> syn::Result<Self> {
        let named = named_fields(&input)?;
        let mut errors = Errors::default();
        errors.refuse_parameters(
            &input.generics,
            "an entity is one table: write a struct without parameters for each",
        );
        let settings = Settings::parse(&input.attrs, Place::Struct, &mut errors);
        let case = settings.case(&mut errors);
        let mut columns = Columns::parse(named, Place::Field, case, &mut errors);
        // A field that failed may have been the key: no second complaint about that.
        if columns.len() == named.len() {
            check_key(&input.ident, &columns.fields, &mut errors);
        }
        check_roles(&columns.fields, &mut errors);
        let krate = settings.krate(&mut errors);
        let mut foreign_keys = ForeignKey::parse_all(&settings, &mut errors);
        let of_fields = columns
            .fields
            .iter_mut()
            .filter_map(|field| field.references.as_mut());
        let of_keys = foreign_keys.iter_mut().map(|key| &mut key.reference);
        of_fields
            .chain(of_keys)
            .for_each(|reference| reference.name_self(&input.ident));
        let entity = Self {
            table: table_name(&input.ident, &settings, &mut errors),
            strict: settings.boolean("strict", &mut errors).unwrap_or(true),
            without_rowid: settings.flag("without_rowid", &mut errors),
            tombstones: settings.flag("tombstones", &mut errors),
            checks: settings.strings("check", &mut errors),
            indexes: Index::parse_all(&settings, &mut errors),
            relations: Relation::parse_all(&settings, &columns, &foreign_keys, &krate, &mut errors),
            filters: Filter::parse_all(&settings, &mut errors),
            foreign_keys,
            krate,
            name: input.ident,
            visibility: input.vis,
            columns,
        };
        entity.check_paths(&mut errors);
        entity.check_deferred(&mut errors);
        entity.check_rowid(&settings, &mut errors);
        errors.finish(entity)
    }

    /// The fields of the primary key, with their positions.
    fn key(&self) -> impl Iterator<Item = (usize, &Field)> {
        (self.columns.fields.iter().enumerate()).filter(|(_, field)| field.role == Some(Role::Id))
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
        (self.columns.fields.iter()).position(|field| field.role == Some(role))
    }

    /// Indexes and foreign keys name fields that are there.
    fn check_paths(&self, errors: &mut Errors) {
        let indexes = self.indexes.iter().filter_map(|index| match &index.on {
            IndexOn::Columns(columns) => Some(columns),
            IndexOn::Expressions(_) => None,
        });
        let foreign_keys = self.foreign_keys.iter().map(|key| &key.columns);
        for path in indexes.chain(foreign_keys).flatten() {
            self.columns.check_path(path, errors);
        }
    }

    /// What a save needs to know is always read.
    fn check_deferred(&self, errors: &mut Errors) {
        let unique = (self.indexes.iter()).filter(|index| index.options.unique);
        let unique = unique.filter_map(|index| match &index.on {
            IndexOn::Columns(columns) => Some(columns),
            IndexOn::Expressions(_) => None,
        });
        let foreign_keys = self.foreign_keys.iter().map(|key| &key.columns);
        for path in unique.chain(foreign_keys).flatten() {
            if (self.columns.find(&path.field)).is_some_and(|(_, field)| field.deferred) {
                errors.push(
                    &path.field,
                    "a deferred column may not be there when it is needed: a unique index or a foreign key cannot have it",
                );
            }
        }
        let mut deferred = self.columns.fields.iter().filter(|field| field.deferred);
        if let Some(field) = deferred.nth(MOST_DEFERRED) {
            errors.push(
                &field.member,
                format!(
                    "an entity has {MOST_DEFERRED} deferred columns at most: remove `Deferred`"
                ),
            );
        }
    }

    /// What needs a rowid, and what a rowid is.
    fn check_rowid(&self, settings: &Settings, errors: &mut Errors) {
        let autoincrement = self.columns.fields.iter().find(|field| field.autoincrement);
        if self.without_rowid {
            if let Some(at) = self.position(Role::CommitSeq) {
                errors.push(
                    &self.columns.fields[at].member,
                    "rows get their commit number by their rowid: remove `without_rowid` or `commit_seq`",
                );
            }
            if autoincrement.is_some() {
                errors.push(
                    settings.name("without_rowid"),
                    "AUTOINCREMENT is of a rowid: remove `without_rowid` or `autoincrement`",
                );
            }
        }
        if self.tombstones && self.position(Role::CommitSeq).is_none() {
            errors.push(
                settings.name("tombstones"),
                "a deletion is kept with the number of its commit: add a field `#[entity(commit_seq, index)] seq: CommitSeq`",
            );
        }
        if let Some(field) = autoincrement
            && (field.role != Some(Role::Id) || self.key().count() > 1)
        {
            errors.push(
                &field.member,
                "`autoincrement` is of a key that is one `i64`: move it to the field with `id`, or remove it",
            );
        }
    }
}

pub(crate) fn named_fields(input: &DeriveInput) -> syn::Result<&Punctuated<syn::Field, Token![,]>> {
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

/// `PrimaryKey` is implemented for tuples of so many.
const MOST_KEY_COLUMNS: usize = 12;

fn check_key(name: &Ident, fields: &[Field], errors: &mut Errors) {
    let key: Vec<_> = (fields.iter())
        .filter(|field| field.role == Some(Role::Id))
        .collect();
    if key.is_empty() {
        errors.push(
            name,
            "no field is the key: write #[entity(id)] on one of type `i64`, `Uuid` or `String`, or on several",
        );
    } else if let Some(excess) = key.get(MOST_KEY_COLUMNS) {
        errors.push(
            &excess.member,
            "a key has at most twelve columns: remove `id` here, or give the entity a key of its own and a unique index",
        );
    }
    // Of several columns each may be unique, or be looked for, by itself.
    if let [only] = key[..] {
        if only.unique {
            errors.push(&only.member, "a key is unique already: remove `unique`");
        } else if only.index {
            errors.push(&only.member, "a key is indexed already: remove `index`");
        }
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

impl Columns {
    /// A path begins with a field that is a column, and goes on only in an embedded struct.
    fn check_path(&self, path: &FieldPath, errors: &mut Errors) {
        let field = self.find(&path.field);
        let (is_embedded, is_path) = match field {
            None => {
                let names: Vec<_> = self.fields.iter().map(|field| &field.path[..]).collect();
                let name = path.field.unraw().to_string();
                let instead = nearest(&name, &names).map_or_else(
                    || "name a field of this struct".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                errors.push(&path.field, format!("there is no such column: {instead}"));
                return;
            }
            Some((_, field)) => (field.embed().is_some(), !path.inner.is_empty()),
        };
        if is_embedded && !is_path {
            errors.push(
                &path.field,
                format!(
                    "`{0}` is several columns: name one of them, as in `{0}.city`",
                    path.field
                ),
            );
        } else if is_path && !is_embedded {
            errors.push(
                &path.field,
                format!(
                    "`{}` is no embedded struct: write its name alone",
                    path.field
                ),
            );
        }
    }
}
