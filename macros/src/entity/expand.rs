//! The code that `#[derive(Entity)]` writes.
//!
//! All paths are absolute, nothing relies on a trait in scope, and the code is straight-line: reading a row is
//! one struct expression with one value a column.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Path, ext::IdentExt};

use crate::{
    entity::{
        Entity,
        field::{Field, Reference, Role, at, moved},
        index::{ForeignKey, Index, IndexOn},
        relation,
    },
    settings::SqlOrRust,
};

impl Entity {
    pub(crate) fn expand(&self) -> TokenStream {
        let (name, krate) = (&self.name, &self.krate);
        let (constants, columns) = self.columns.definitions(krate);
        let inherent = self.inherent_items();
        let table = self.table(&columns);
        let key = self.key_items();
        let encode = self.columns.encode(krate);
        let assign = self.columns.assign(krate);
        let assign_from = self.columns.assign_from(krate, None);
        let encode_json = self.columns.encode_json(krate);
        let decoded = self.columns.decoded(krate, None);
        let column_types = self.columns.types(krate);
        let references = relation::references(name, &self.columns, &self.foreign_keys, krate);
        let items = quote! {
            #[automatically_derived]
            #[allow(dead_code, deprecated, private_interfaces, reason = "offered for every field, used as needed")]
            impl #name {
                #inherent
            }

            #[automatically_derived]
            #[allow(deprecated, private_interfaces, reason = "a deprecated field is still a column")]
            impl #krate::entity::Entity for #name {
                #table
                #column_types
                #key
                #encode
                #assign
                #assign_from
                #encode_json

                // The parameter has a name that no field's type has.
                fn decode<__Row: #krate::value::Row + ?::core::marker::Sized>(
                    row: &__Row,
                ) -> ::core::result::Result<Self, (usize, #krate::value::ValueError)> {
                    ::core::result::Result::Ok(Self { #decoded })
                }
            }

            #references

            // Looked at by `cargo check` too, so that what is wrong with it is told there.
            const _: &#krate::entity::TableDef = <#name as #krate::entity::Entity>::TABLE;
        };
        self.columns.enclosed(&constants, items)
    }

    /// A constant for each column and each relation, `query` and `find`.
    fn inherent_items(&self) -> TokenStream {
        let (krate, visibility) = (&self.krate, &self.visibility);
        let constants = self.columns.constants(krate, visibility);
        let relations = (self.relations.iter()).map(|it| it.definition(krate, visibility));
        let or_hidden = if self.filters.is_empty() {
            ""
        } else {
            ", or a filter leaves it out"
        };
        let find_doc = format!(
            "Reads the row with this key from `{}`; `None` if there is none{or_hidden}.",
            self.table
        );
        let query_doc = format!("A query for the rows of `{}`.", self.table);
        quote! {
            #constants
            #(#relations)*

            #[doc = #query_doc]
            #visibility fn query() -> #krate::query::Query<Self> {
                #krate::query::Query::<Self>::new()
            }

            /// A query for the rows that SQL of the application selects, with `{}` where each argument stands.
            #visibility fn from_sql(
                sql: &'static str,
                args: impl #krate::query::Arguments<Self>,
            ) -> #krate::query::Query<Self> {
                #krate::query::Query::<Self>::from_sql(sql, args)
            }

            #[doc = #find_doc]
            ///
            /// # Errors
            ///
            /// When the database cannot be read, or a stored value does not fit its field.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future stops the read.
            #[track_caller]
            #visibility fn find<'c>(
                executor: impl #krate::sql::Executor<'c>,
                key: impl ::core::convert::Into<<Self as #krate::entity::Entity>::Key>,
            ) -> impl ::core::future::Future<
                Output = #krate::error::Result<::core::option::Option<Self>>,
            > + ::core::marker::Send {
                #krate::query::find::<Self>(executor, ::core::convert::Into::into(key))
            }
        }
    }

    /// The table's definition, preceded by what is demanded of the fields' types.
    fn table(&self, columns: &TokenStream) -> TokenStream {
        let (krate, table, strict, checks) = (&self.krate, &self.table, self.strict, &self.checks);
        let entity = self.name.unraw().to_string();
        let fields = &self.columns.fields;
        let demands = fields.iter().map(|field| demands(field, krate));
        let key = self.key().map(|(index, _)| self.columns.position(index));
        let key_type = self.key_type();
        let span = self
            .key()
            .next()
            .map_or_else(Span::call_site, |(_, field)| at(&field.ty));
        let origin = quote_spanned!(span=> <#key_type as #krate::value::PrimaryKey>::ORIGIN);
        let (without_rowid, tombstones) = (self.without_rowid, self.tombstones);
        let autoincrement = fields.iter().any(|field| field.autoincrement);
        let role = |role| {
            option(
                self.position(role)
                    .map(|index| self.columns.position(index)),
            )
        };
        let (version, commit_seq) = (role(Role::Version), role(Role::CommitSeq));
        let (created_at, updated_at) = (role(Role::CreatedAt), role(Role::UpdatedAt));
        let foreign_keys = self.foreign_keys.iter().map(|key| self.foreign_key(key));
        let key_demands = self
            .foreign_keys
            .iter()
            .map(|key| self.foreign_key_demands(key));
        let indexes = self.indexes();
        let filters = self.filters.iter().map(|filter| filter.definition(krate));
        quote! {
            const TABLE: &'static #krate::entity::TableDef = {
                #(#demands)*
                #(#key_demands)*
                &#krate::entity::TableDef {
                    name: #table,
                    entity: #entity,
                    strict: #strict,
                    without_rowid: #without_rowid,
                    autoincrement: #autoincrement,
                    columns: #columns,
                    checks: &[#(#checks),*],
                    key: &[#(#key),*],
                    key_origin: #origin,
                    version: #version,
                    commit_seq: #commit_seq,
                    tombstones: #tombstones,
                    created_at: #created_at,
                    updated_at: #updated_at,
                    foreign_keys: &[#(#foreign_keys),*],
                    indexes: &[#(#indexes),*],
                    filters: &[#(#filters),*],
                }
            };
        }
    }

    /// The indexes that are more than one plain column: of fields first, then of the struct.
    fn indexes(&self) -> Vec<TokenStream> {
        let krate = &self.krate;
        let by_columns = |columns: Vec<TokenStream>| quote!(#krate::entity::IndexedBy::Columns(&[#(#columns),*]));
        let of_fields = (self.columns.fields.iter().enumerate()).filter_map(|(index, field)| {
            let on = by_columns(vec![self.columns.position(index)]);
            Some(field.special_index.as_ref()?.definition(&on, krate))
        });
        let of_struct = self.indexes.iter().map(|Index { on, options }| {
            let on = match on {
                IndexOn::Columns(columns) => by_columns(
                    (columns.iter())
                        .map(|path| self.columns.position_of(path, krate))
                        .collect(),
                ),
                IndexOn::Expressions(expressions) => {
                    quote!(#krate::entity::IndexedBy::Expressions(#expressions))
                }
            };
            options.definition(&on, krate)
        });
        of_fields.chain(of_struct).collect()
    }

    fn foreign_key(&self, key: &ForeignKey) -> TokenStream {
        let krate = &self.krate;
        let columns = key
            .columns
            .iter()
            .map(|path| self.columns.position_of(path, krate));
        let reference = reference(&key.reference, krate);
        quote! {
            #krate::entity::ForeignKey {
                columns: &[#(#columns),*],
                reference: #reference,
            }
        }
    }

    /// Together the fields have the type of the key that they hold, as far as they are fields of this struct.
    fn foreign_key_demands(&self, key: &ForeignKey) -> TokenStream {
        let krate = &self.krate;
        let entity = &key.reference.entity;
        let types: Option<Vec<_>> = (key.columns.iter())
            .map(|path| {
                Some(&self.columns.find(&path.field)?.1.ty).filter(|_| path.inner.is_empty())
            })
            .collect();
        let Some(types) = types else {
            return TokenStream::new();
        };
        let ty = match types[..] {
            [ty] => quote!(#ty),
            // The message about all of them stands where they were put together.
            _ => {
                let types = types.iter().map(|ty| moved(ty, at(entity)));
                quote_spanned!(at(entity)=> (#(#types,)*))
            }
        };
        let reference = &key.reference;
        let key = quote_spanned!(at(entity)=> <#entity as #krate::entity::Entity>::Key);
        let mut demands = quote_spanned! {at(entity)=>
            let () = <#ty as #krate::entity::demand::ReferenceType<#key>>::MET;
        };
        if reference.sets_null() {
            for ty in types {
                demands.extend(quote_spanned! {at(ty)=>
                    let () = <#ty as #krate::entity::demand::NullableType>::MET;
                });
            }
        }
        demands
    }

    fn key_items(&self) -> TokenStream {
        let ty = self.key_type();
        let members: Vec<_> = self.key().map(|(_, field)| &field.member).collect();
        let (get, set) = if let [member] = members[..] {
            (
                quote!(::core::clone::Clone::clone(&self.#member)),
                quote!(self.#member = key;),
            )
        } else {
            let parts = (0..members.len()).map(syn::Index::from);
            (
                quote!((#(::core::clone::Clone::clone(&self.#members),)*)),
                quote!(#(self.#members = key.#parts;)*),
            )
        };
        quote! {
            type Key = #ty;

            fn key(&self) -> Self::Key {
                #get
            }

            fn set_key(&mut self, key: Self::Key) {
                #set
            }
        }
    }
}

/// What the compiler is to check of a field's type, with a message of ours if it is not so.
fn demands(field: &Field, krate: &Path) -> TokenStream {
    let mut wanted = Vec::new();
    match field.role {
        Some(Role::Version) => wanted.push(quote!(VersionType)),
        Some(Role::CommitSeq) => wanted.push(quote!(CommitSeqType)),
        Some(Role::CreatedAt | Role::UpdatedAt) => wanted.push(quote!(TimestampType)),
        Some(Role::Id) | None => {}
    }
    if let Some(reference) = &field.references {
        let entity = &reference.entity;
        let key = quote_spanned!(at(entity)=> <#entity as #krate::entity::Entity>::Key);
        wanted.push(quote!(ReferenceType<#key>));
        if reference.sets_null() {
            wanted.push(quote!(NullableType));
        }
    }
    let ty = &field.ty;
    let mut demands: TokenStream = (wanted.iter())
        .map(|demand| quote_spanned!(at(ty)=> let () = <#ty as #krate::entity::demand::#demand>::MET;))
        .collect();
    if field.autoincrement {
        demands.extend(quote_spanned! {at(ty)=>
            ::core::assert!(
                ::core::matches!(
                    <#ty as #krate::value::KeyColumn>::ORIGIN,
                    #krate::value::KeyOrigin::Writer
                ),
                "`autoincrement` is of a key that is an `i64`: remove it",
            );
        });
    }
    demands
}

impl Field {
    /// The `ColumnDef` of a field that is one column.
    pub(crate) fn definition(&self, krate: &Path) -> TokenStream {
        let (name, column_type, path) = (&self.column, self.column_type(krate), &self.path);
        let deferred = self.deferred;
        let (unique, index) = (self.unique, self.index && self.special_index.is_none());
        let collate = option(self.collate.as_ref());
        let check = option(self.check.as_ref());
        let default = option(
            self.default
                .as_ref()
                .map(|default| self.default_value(default, krate)),
        );
        let generated = option(self.generated.as_ref().map(|generated| {
            let (expression, stored) = (&generated.expression, generated.stored);
            quote!(#krate::entity::Generated { expression: #expression, stored: #stored })
        }));
        let references = option(self.references.as_ref().map(|it| reference(it, krate)));
        let trait_of = quote_spanned!(at(&self.ty)=> <#column_type as #krate::value::ColumnType>);
        let storage = quote_spanned!(at(&self.ty)=> #trait_of::STORAGE);
        let nullable = quote_spanned!(at(&self.ty)=> #trait_of::NULLABLE);
        let large = quote_spanned!(at(&self.ty)=> #trait_of::LARGE);
        let one_of = quote_spanned!(at(&self.ty)=> #trait_of::ONE_OF);
        quote! {
            #krate::entity::ColumnDef {
                name: #name,
                field: #path,
                storage: #storage,
                nullable: #nullable,
                large: #large,
                deferred: #deferred,
                unique: #unique,
                index: #index,
                collate: #collate,
                check: #check,
                default: #default,
                generated: #generated,
                references: #references,
                one_of: #one_of,
                group: #krate::entity::Group { before: 0, after: 0 },
            }
        }
    }

    fn default_value(&self, default: &SqlOrRust, krate: &Path) -> TokenStream {
        let ty = &self.ty;
        match default {
            SqlOrRust::Sql(sql) => quote!(#krate::entity::DefaultValue::Sql(#sql)),
            SqlOrRust::Rust(expression) => {
                let encoded = self.encoded_value(krate, &quote!(&value));
                quote! {
                    #krate::entity::DefaultValue::Value(|| {
                        let value: #ty = #expression;
                        #encoded
                    })
                }
            }
        }
    }
}

fn reference(reference: &Reference, krate: &Path) -> TokenStream {
    let (entity, on_delete, on_update) = (
        &reference.entity,
        &reference.on_delete,
        &reference.on_update,
    );
    let table = quote_spanned!(at(entity)=> <#entity as #krate::entity::Entity>::TABLE);
    quote! {
        #krate::entity::Reference {
            table: || #table,
            on_delete: #krate::entity::ForeignKeyAction::#on_delete,
            on_update: #krate::entity::ForeignKeyAction::#on_update,
        }
    }
}

fn option(value: Option<impl quote::ToTokens>) -> TokenStream {
    value.map_or_else(
        || quote!(::core::option::Option::None),
        |value| quote!(::core::option::Option::Some(#value)),
    )
}
