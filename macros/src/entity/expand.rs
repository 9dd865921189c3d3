//! The code that `#[derive(Entity)]` writes.
//!
//! All paths are absolute, nothing relies on a trait in scope, and the code is straight-line: reading a row is
//! one struct expression with one value a column.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Index, Path, ext::IdentExt};

use crate::entity::{
    Entity,
    field::{Field, Form, Reference, Role, at},
};

impl Entity {
    pub(crate) fn expand(&self) -> TokenStream {
        let (name, krate) = (&self.name, &self.krate);
        let inherent = self.inherent_items();
        let table = self.table();
        let key = self.key_items();
        let encode = self.encode();
        let assign = self.assign();
        let encode_json = self.encode_json();
        let decode = self.decode();
        quote! {
            #[automatically_derived]
            #[allow(dead_code, deprecated, private_interfaces, reason = "offered for every field, used as needed")]
            impl #name {
                #inherent
            }

            #[automatically_derived]
            #[allow(deprecated, private_interfaces, reason = "a deprecated field is still a column")]
            impl #krate::entity::Entity for #name {
                #table
                #key
                #encode
                #assign
                #encode_json
                #decode
            }
        }
    }

    /// A constant for each column, `query` and `find`.
    fn inherent_items(&self) -> TokenStream {
        let (krate, visibility) = (&self.krate, &self.visibility);
        let constants = self.fields.iter().enumerate().map(|(index, field)| {
            let (constant, column_type) = (&field.constant, field.column_type(krate));
            let doc = format!("The column `{}`.", field.column);
            quote! {
                #[doc = #doc]
                #visibility const #constant: #krate::entity::Column<Self, #column_type> =
                    #krate::entity::Column::new(#index);
            }
        });
        let find_doc = format!(
            "Reads the row with this key from `{}`; `None` if there is none.",
            self.table
        );
        let query_doc = format!("A query for the rows of `{}`.", self.table);
        quote! {
            #(#constants)*

            #[doc = #query_doc]
            #[must_use]
            #visibility fn query() -> #krate::query::Query<Self> {
                #krate::query::Query::<Self>::new()
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
            #visibility async fn find<'c>(
                executor: impl #krate::sql::Executor<'c>,
                key: impl ::core::convert::Into<<Self as #krate::entity::Entity>::Key>,
            ) -> #krate::error::Result<::core::option::Option<Self>> {
                #krate::query::find::<Self>(executor, ::core::convert::Into::into(key)).await
            }
        }
    }

    /// The table's definition, preceded by what is demanded of the fields' types.
    fn table(&self) -> TokenStream {
        let (krate, table, strict, checks) = (&self.krate, &self.table, self.strict, &self.checks);
        let entity = self.name.unraw().to_string();
        let demands = self.fields.iter().map(|field| demands(field, krate));
        let columns = self.fields.iter().map(|field| column(field, krate));
        let key = self.key().map(|(index, _)| index);
        let key_type = self.key_type();
        let span = self
            .key()
            .next()
            .map_or_else(Span::call_site, |(_, field)| at(&field.ty));
        let origin = quote_spanned!(span=> <#key_type as #krate::value::PrimaryKey>::ORIGIN);
        let version = option(self.position(Role::Version));
        let commit_seq = option(self.position(Role::CommitSeq));
        quote! {
            const TABLE: &'static #krate::entity::TableDef = {
                #(#demands)*
                &#krate::entity::TableDef {
                    name: #table,
                    entity: #entity,
                    strict: #strict,
                    without_rowid: false,
                    autoincrement: false,
                    columns: &[#(#columns),*],
                    checks: &[#(#checks),*],
                    key: &[#(#key),*],
                    key_origin: #origin,
                    version: #version,
                    commit_seq: #commit_seq,
                    created_at: ::core::option::Option::None,
                    updated_at: ::core::option::Option::None,
                    foreign_keys: &[],
                    indexes: &[],
                }
            };
        }
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
            let parts = (0..members.len()).map(Index::from);
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

    fn encode(&self) -> TokenStream {
        let krate = &self.krate;
        let arms = self.fields.iter().enumerate().map(|(index, field)| {
            let (ty, member) = (&field.ty, &field.member);
            let value = match &field.form {
                Form::Plain => quote_spanned!(at(ty)=> <#ty as #krate::value::ColumnType>::encode(&self.#member)),
                Form::Json => quote_spanned!(at(ty)=> #krate::value::Json::encode_ref(&self.#member)),
                Form::OptionalJson(ty) => quote_spanned! {at(ty)=>
                    match &self.#member {
                        ::core::option::Option::Some(value) => #krate::value::Json::encode_ref(value),
                        ::core::option::Option::None => ::core::result::Result::Ok(#krate::value::Value::Null),
                    }
                },
            };
            quote!(#index => #value,)
        });
        quote! {
            fn encode(
                &self,
                column: usize,
            ) -> ::core::result::Result<#krate::value::Value, #krate::value::ValueError> {
                match column {
                    #(#arms)*
                    _ => ::core::result::Result::Err(#krate::value::ValueError::new("there is no such column")),
                }
            }
        }
    }

    fn assign(&self) -> TokenStream {
        let krate = &self.krate;
        let arms = self.fields.iter().enumerate().map(|(index, field)| {
            let member = &field.member;
            let decoded = decoded(field, krate, &quote!(value));
            quote! {
                #index => match #decoded {
                    ::core::result::Result::Ok(value) => self.#member = value,
                    ::core::result::Result::Err(error) => return ::core::result::Result::Err(error),
                },
            }
        });
        quote! {
            fn assign(
                &mut self,
                column: usize,
                value: #krate::value::ValueRef<'_>,
            ) -> ::core::result::Result<(), #krate::value::ValueError> {
                match column {
                    #(#arms)*
                    _ => return ::core::result::Result::Err(
                        #krate::value::ValueError::new("there is no such column"),
                    ),
                }
                ::core::result::Result::Ok(())
            }
        }
    }

    fn encode_json(&self) -> TokenStream {
        let krate = &self.krate;
        let arms = self.fields.iter().enumerate().map(|(index, field)| {
            let column_type = field.column_type(krate);
            let trait_of =
                quote_spanned!(at(&field.ty)=> <#column_type as #krate::value::ColumnType>);
            quote! {
                #index => match #trait_of::from_json(json) {
                    ::core::result::Result::Ok(value) => #trait_of::encode(&value),
                    ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
                },
            }
        });
        quote! {
            fn encode_json(
                column: usize,
                json: &#krate::value::JsonValue,
            ) -> ::core::result::Result<#krate::value::Value, #krate::value::ValueError> {
                match column {
                    #(#arms)*
                    _ => ::core::result::Result::Err(#krate::value::ValueError::new("there is no such column")),
                }
            }
        }
    }

    fn decode(&self) -> TokenStream {
        let krate = &self.krate;
        let fields = self.fields.iter().enumerate().map(|(index, field)| {
            let member = &field.member;
            let decoded = decoded(
                field,
                krate,
                &quote!(#krate::value::Row::value(row, #index)),
            );
            quote! {
                #member: match #decoded {
                    ::core::result::Result::Ok(value) => value,
                    ::core::result::Result::Err(error) => {
                        return ::core::result::Result::Err((#index, error));
                    }
                },
            }
        });
        // The parameter has a name that no field's type has.
        quote! {
            fn decode<__Row: #krate::value::Row + ?::core::marker::Sized>(
                row: &__Row,
            ) -> ::core::result::Result<Self, (usize, #krate::value::ValueError)> {
                ::core::result::Result::Ok(Self { #(#fields)* })
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
        Some(Role::Id) | None => {}
    }
    if let Some(reference) = &field.references {
        let entity = &reference.entity;
        let key = quote_spanned!(at(entity)=> <#entity as #krate::entity::Entity>::Key);
        wanted.push(quote!(ReferenceType<#key>));
        if reference.on_delete == "SetNull" || reference.on_update == "SetNull" {
            wanted.push(quote!(NullableType));
        }
    }
    let ty = &field.ty;
    wanted
        .iter()
        .map(|demand| quote_spanned!(at(ty)=> let () = <#ty as #krate::entity::demand::#demand>::MET;))
        .collect()
}

/// One `ColumnDef`.
fn column(field: &Field, krate: &Path) -> TokenStream {
    let (name, column_type) = (&field.column, field.column_type(krate));
    let (unique, index) = (field.unique, field.index);
    let check = option(field.check.as_ref());
    let default =
        option((field.default.as_ref()).map(|sql| quote!(#krate::entity::DefaultValue::Sql(#sql))));
    let member = field.member.unraw().to_string();
    let references = option(field.references.as_ref().map(|it| reference(it, krate)));
    let trait_of = quote_spanned!(at(&field.ty)=> <#column_type as #krate::value::ColumnType>);
    let storage = quote_spanned!(at(&field.ty)=> #trait_of::STORAGE);
    let nullable = quote_spanned!(at(&field.ty)=> #trait_of::NULLABLE);
    let large = quote_spanned!(at(&field.ty)=> #trait_of::LARGE);
    quote! {
        #krate::entity::ColumnDef {
            name: #name,
            field: #member,
            storage: #storage,
            nullable: #nullable,
            large: #large,
            unique: #unique,
            index: #index,
            collate: ::core::option::Option::None,
            check: #check,
            default: #default,
            generated: ::core::option::Option::None,
            references: #references,
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

/// A `Result` of the field's own type, read from a `ValueRef`.
fn decoded(field: &Field, krate: &Path, value: &TokenStream) -> TokenStream {
    let (ty, column_type) = (&field.ty, field.column_type(krate));
    let stored =
        quote_spanned!(at(ty)=> <#column_type as #krate::value::ColumnType>::decode(#value));
    match &field.form {
        Form::Plain => stored,
        Form::Json => quote!(#stored.map(|json| json.0)),
        Form::OptionalJson(_) => quote!(#stored.map(|json| json.map(|json| json.0))),
    }
}

fn option(value: Option<impl quote::ToTokens>) -> TokenStream {
    value.map_or_else(
        || quote!(::core::option::Option::None),
        |value| quote!(::core::option::Option::Some(#value)),
    )
}
