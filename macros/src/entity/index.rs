//! Indexes and foreign keys of several columns.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Ident, LitStr};

use crate::{
    entity::field::{Reference, reference},
    errors::Errors,
    place::Place,
    settings::{FieldPath, Settings},
};

/// What an index says beside what it is on.
pub(crate) struct IndexOptions {
    name: Option<LitStr>,
    pub(crate) unique: bool,
    filter: Option<LitStr>,
}

/// An index on a struct.
pub(crate) struct Index {
    pub(crate) on: IndexOn,
    pub(crate) options: IndexOptions,
}

pub(crate) enum IndexOn {
    Columns(Vec<FieldPath>),
    Expressions(LitStr),
}

/// A foreign key of several columns.
pub(crate) struct ForeignKey {
    pub(crate) columns: Vec<FieldPath>,
    pub(crate) reference: Reference,
    /// What its relation is called, if it has one.
    pub(crate) relation: Option<Ident>,
}

impl IndexOptions {
    fn parse(settings: &Settings, errors: &mut Errors) -> Self {
        Self {
            name: settings.string("name", errors),
            unique: settings.flag("unique", errors),
            filter: settings.string("where", errors),
        }
    }

    /// `index(...)` of a field.
    pub(crate) fn of_field(settings: &Settings, errors: &mut Errors) -> Option<Self> {
        let (_, list) = settings.lists("index", Place::FieldIndex, errors).pop()?;
        let options = Self::parse(&list, errors);
        options.is_special().then_some(options)
    }

    const fn is_special(&self) -> bool {
        self.name.is_some() || self.unique || self.filter.is_some()
    }

    /// An `IndexDef`, given what it is on.
    pub(crate) fn definition(&self, on: &TokenStream, krate: &syn::Path) -> TokenStream {
        let (unique, some) = (self.unique, |text: &Option<LitStr>| match text {
            Some(text) => quote!(::core::option::Option::Some(#text)),
            None => quote!(::core::option::Option::None),
        });
        let (name, filter) = (some(&self.name), some(&self.filter));
        quote! {
            #krate::entity::IndexDef {
                name: #name,
                on: #on,
                unique: #unique,
                filter: #filter,
            }
        }
    }
}

impl Index {
    /// Every `index(...)` of a struct.
    pub(crate) fn parse_all(settings: &Settings, errors: &mut Errors) -> Vec<Self> {
        let lists = settings.lists("index", Place::Index, errors);
        let parse = |(at, list): (Ident, Settings)| {
            let options = IndexOptions::parse(&list, errors);
            let columns = list.fields("columns", errors);
            let expressions = list.string("on", errors);
            let on = match (columns, expressions) {
                (Some(columns), None) => IndexOn::Columns(columns),
                (None, Some(expressions)) => {
                    if options.name.is_none() {
                        errors.push(
                            &at,
                            "an index on expressions needs a name: add `name = \"...\"`",
                        );
                    }
                    IndexOn::Expressions(expressions)
                }
                (Some(_), Some(_)) => {
                    errors.push(
                        &at,
                        "an index is on `columns` or on expressions: remove `columns` or `on`",
                    );
                    return None;
                }
                (None, None) if list.name("columns").is_some() || list.name("on").is_some() => {
                    return None;
                }
                (None, None) => {
                    errors.push(&at, "write what the index is on: `index(columns(one, another))` or `index(on = \"lower(name)\", name = \"...\")`");
                    return None;
                }
            };
            Some(Self { on, options })
        };
        lists.into_iter().filter_map(parse).collect()
    }
}

impl ForeignKey {
    /// Every `foreign_key(...)` of a struct.
    pub(crate) fn parse_all(settings: &Settings, errors: &mut Errors) -> Vec<Self> {
        let lists = settings.lists("foreign_key", Place::ForeignKey, errors);
        let parse = |(at, list): (Ident, Settings)| {
            let columns = list.fields("columns", errors);
            let reference = reference(&list, errors);
            if list.name("columns").is_none() || list.name("references").is_none() {
                errors.push(
                    &at,
                    "write the fields, and whose key they hold: `foreign_key(columns(one, another), references = Customer)`",
                );
            }
            let relation = list.ident("relation", "line", errors);
            Some(Self {
                columns: columns?,
                reference: reference?,
                relation,
            })
        };
        lists.into_iter().filter_map(parse).collect()
    }
}
