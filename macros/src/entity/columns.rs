//! The columns of a struct: of an entity, or of an embedded struct.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, Path, Token, Visibility, punctuated::Punctuated};

use crate::{
    entity::field::{Embed, Field, Form, Parsed, Skipped, at},
    errors::Errors,
    names::Case,
    settings::{FieldPath, Place},
};

/// The fields that are columns, and those that are none.
pub(crate) struct Columns {
    pub(crate) fields: Vec<Field>,
    skipped: Vec<Skipped>,
}

impl Columns {
    pub(crate) fn parse(
        named: &Punctuated<syn::Field, Token![,]>,
        place: Place,
        case: Option<Case>,
        errors: &mut Errors,
    ) -> Self {
        let mut columns = Self {
            fields: Vec::new(),
            skipped: Vec::new(),
        };
        for field in named {
            match Field::parse(field, place, case, errors) {
                Some(Parsed::Column(field)) => columns.fields.push(*field),
                Some(Parsed::Skipped(field)) => columns.skipped.push(field),
                None => {}
            }
        }
        check_names(&columns.fields, errors);
        columns
    }

    /// How many fields were understood.
    pub(crate) fn len(&self) -> usize {
        self.fields.len() + self.skipped.len()
    }

    /// The field of this name, and its place among the fields.
    pub(crate) fn find(&self, name: &Ident) -> Option<(usize, &Field)> {
        (self.fields.iter().enumerate()).find(|(_, field)| field.member == *name)
    }

    /// Whether positions depend on structs that the derive cannot see.
    pub(crate) fn has_embedded(&self) -> bool {
        self.fields.iter().any(|field| field.embed().is_some())
    }

    /// The position of the first column of a field: a number, or a constant where embedded structs stand before it.
    pub(crate) fn position(&self, index: usize) -> TokenStream {
        if self.fields[..index]
            .iter()
            .any(|field| field.embed().is_some())
        {
            let name = constant(index);
            quote!(#name)
        } else {
            quote!(#index)
        }
    }

    /// The position of the column at the end of a path.
    pub(crate) fn position_of(&self, path: &FieldPath, krate: &Path) -> TokenStream {
        let Some((index, field)) = self.find(&path.field) else {
            return TokenStream::new();
        };
        let position = self.position(index);
        match field.embed() {
            Some(Embed { ty, .. }) => {
                let inner = &path.inner;
                quote! {
                    #position + #krate::entity::layout::position(
                        <#ty as #krate::entity::Embedded>::COLUMNS,
                        #inner,
                    )
                }
            }
            None => position,
        }
    }

    /// The definitions of all columns, a `&'static [ColumnDef]`, and the constants that it and the positions need.
    pub(crate) fn definitions(&self, krate: &Path) -> (TokenStream, TokenStream) {
        let fields = self.fields.iter();
        if !self.has_embedded() {
            let columns = fields.map(|field| field.definition(krate));
            return (TokenStream::new(), quote!(&[#(#columns),*]));
        }
        let parts = fields.map(|field| match field.embed() {
            None => {
                let definition = field.definition(krate);
                quote!(#krate::entity::layout::Part::Column(#definition))
            }
            Some(Embed {
                ty,
                is_optional,
                prefix,
            }) => {
                let member = field.name();
                let columns = quote_spanned!(at(ty)=> <#ty as #krate::entity::Embedded>::COLUMNS);
                quote! {
                    #krate::entity::layout::Part::Embedded {
                        field: #member,
                        prefix: #prefix,
                        columns: #columns,
                        is_optional: #is_optional,
                    }
                }
            }
        });
        let positions = (0..self.fields.len()).map(|index| {
            let name = constant(index);
            quote!(const #name: usize = #krate::entity::layout::start(PARTS, #index);)
        });
        let end = constant(self.fields.len());
        let last = self.fields.len();
        let constants = quote! {
            const PARTS: &[#krate::entity::layout::Part] = &[#(#parts),*];
            #(#positions)*
            const #end: usize = #krate::entity::layout::start(PARTS, #last);
            const TEXT: &[u8; #krate::entity::layout::text_len(PARTS)] = &#krate::entity::layout::text(PARTS);
            const COLUMNS: &[#krate::entity::ColumnDef; #krate::entity::layout::width(PARTS)] =
                &#krate::entity::layout::columns(PARTS, TEXT);
        };
        (constants, quote!(COLUMNS))
    }

    /// A typed constant for each field.
    pub(crate) fn constants(&self, krate: &Path, visibility: &Visibility) -> TokenStream {
        (self.fields.iter().enumerate())
            .map(|(index, field)| {
                let (constant, column_type) = (&field.constant, field.column_type(krate));
                let position = self.position(index);
                let doc = match field.embed() {
                    Some(_) => format!("The columns of `{}`.", field.name()),
                    None => format!("The column `{}`.", field.column),
                };
                quote! {
                    #[doc = #doc]
                    #visibility const #constant: #krate::entity::Column<Self, #column_type> =
                        #krate::entity::Column::new(#position);
                }
            })
            .collect()
    }

    /// `match column` arms: `found` makes one of a field with one column, `embedded` of a field with several, given
    /// the position of their first.
    fn arms(
        &self,
        found: impl Fn(&Field) -> TokenStream,
        embedded: impl Fn(&Field, &Embed, &TokenStream) -> TokenStream,
    ) -> TokenStream {
        (self.fields.iter().enumerate())
            .map(|(index, field)| {
                let first = self.position(index);
                match field.embed() {
                    None => {
                        let value = found(field);
                        quote!(#first => #value,)
                    }
                    Some(embed) => {
                        let end = constant(index + 1);
                        let value = embedded(field, embed, &first);
                        quote!(#first..#end => #value,)
                    }
                }
            })
            .collect()
    }

    /// `fn encode`.
    pub(crate) fn encode(&self, krate: &Path) -> TokenStream {
        let arms = self.arms(
            |field| {
                let member = &field.member;
                field.encoded(krate, &quote!(&self.#member))
            },
            |field, Embed { is_optional, .. }, first| {
                let member = &field.member;
                if *is_optional {
                    quote! {
                        #krate::entity::optional::encode(
                            ::core::option::Option::as_ref(&self.#member),
                            column - #first,
                        )
                    }
                } else {
                    quote!(#krate::entity::Embedded::encode(&self.#member, column - #first))
                }
            },
        );
        quote! {
            fn encode(
                &self,
                column: usize,
            ) -> ::core::result::Result<#krate::value::Value, #krate::value::ValueError> {
                match column {
                    #arms
                    _ => ::core::result::Result::Err(#krate::value::ValueError::new("there is no such column")),
                }
            }
        }
    }

    /// `fn assign`.
    pub(crate) fn assign(&self, krate: &Path) -> TokenStream {
        let arms = self.arms(
            |field| {
                let member = &field.member;
                let decoded = field.decoded(krate, &quote!(value));
                quote! {
                    match #decoded {
                        ::core::result::Result::Ok(value) => self.#member = value,
                        ::core::result::Result::Err(error) => return ::core::result::Result::Err(error),
                    }
                }
            },
            |field, Embed { is_optional, .. }, first| {
                let member = &field.member;
                if *is_optional {
                    quote!(return #krate::entity::optional::assign(&mut self.#member, column - #first, value))
                } else {
                    quote!(return #krate::entity::Embedded::assign(&mut self.#member, column - #first, value))
                }
            },
        );
        quote! {
            fn assign(
                &mut self,
                column: usize,
                value: #krate::value::ValueRef<'_>,
            ) -> ::core::result::Result<(), #krate::value::ValueError> {
                match column {
                    #arms
                    _ => return ::core::result::Result::Err(
                        #krate::value::ValueError::new("there is no such column"),
                    ),
                }
                #[allow(unreachable_code, reason = "all fields may be embedded structs")]
                ::core::result::Result::Ok(())
            }
        }
    }

    /// `fn encode_json`.
    pub(crate) fn encode_json(&self, krate: &Path) -> TokenStream {
        let arms = self.arms(
            |field| {
                let column_type = field.column_type(krate);
                let trait_of =
                    quote_spanned!(at(&field.ty)=> <#column_type as #krate::value::ColumnType>);
                quote! {
                    match #trait_of::from_json(json) {
                        ::core::result::Result::Ok(value) => #trait_of::encode(&value),
                        ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
                    }
                }
            },
            |_,
             Embed {
                 ty, is_optional, ..
             },
             first| {
                let encode = if *is_optional {
                    quote!(#krate::entity::optional::encode_json::<#ty>)
                } else {
                    quote!(<#ty as #krate::entity::Embedded>::encode_json)
                };
                quote!(#encode(column - #first, json))
            },
        );
        quote! {
            fn encode_json(
                column: usize,
                json: &#krate::value::JsonValue,
            ) -> ::core::result::Result<#krate::value::Value, #krate::value::ValueError> {
                match column {
                    #arms
                    _ => ::core::result::Result::Err(#krate::value::ValueError::new("there is no such column")),
                }
            }
        }
    }

    /// The fields of a struct expression that reads a row; `base` is added to positions.
    pub(crate) fn decoded(&self, krate: &Path, base: Option<&TokenStream>) -> TokenStream {
        let fields = self.fields.iter().enumerate().map(|(index, field)| {
            let member = &field.member;
            let position = self.position(index);
            let position = base.map_or_else(|| position.clone(), |base| quote!(#base + #position));
            let Some(Embed {
                is_optional, ty, ..
            }) = field.embed()
            else {
                let value = quote!(#krate::value::Row::value(row, #position));
                let decoded = field.decoded(krate, &value);
                return quote! {
                    #member: match #decoded {
                        ::core::result::Result::Ok(value) => value,
                        ::core::result::Result::Err(error) => {
                            return ::core::result::Result::Err((#position, error));
                        }
                    },
                };
            };
            let decode = if *is_optional {
                quote!(#krate::entity::optional::decode::<#ty, __Row>)
            } else {
                quote!(<#ty as #krate::entity::Embedded>::decode::<__Row>)
            };
            quote! {
                #member: match #decode(row, #position) {
                    ::core::result::Result::Ok(value) => value,
                    ::core::result::Result::Err(error) => return ::core::result::Result::Err(error),
                },
            }
        });
        let skipped = self
            .skipped
            .iter()
            .map(|Skipped { member }| quote!(#member: ::core::default::Default::default(),));
        quote!(#(#fields)* #(#skipped)*)
    }

    /// The whole of it, where constants stand beside: in a constant without a name.
    pub(crate) fn enclosed(&self, constants: &TokenStream, items: TokenStream) -> TokenStream {
        if !self.has_embedded() {
            return items;
        }
        quote! {
            const _: () = {
                #constants
                #items
            };
        }
    }
}

impl Field {
    /// The field's name, without `r#`.
    pub(crate) fn name(&self) -> String {
        syn::ext::IdentExt::unraw(&self.member).to_string()
    }

    /// A `Result` of the value to store, made from a reference to the field's type.
    pub(crate) fn encoded(&self, krate: &Path, place: &TokenStream) -> TokenStream {
        let ty = &self.ty;
        match &self.form {
            Form::Plain | Form::Embedded(_) => {
                quote_spanned!(at(ty)=> <#ty as #krate::value::ColumnType>::encode(#place))
            }
            Form::Wrapped(wrapper) => {
                let wrapper = wrapper.path(krate);
                quote_spanned!(at(ty)=> #wrapper::encode_ref(#place))
            }
            Form::OptionalWrapped(wrapper, ty) => {
                let wrapper = wrapper.path(krate);
                quote_spanned! {at(ty)=>
                    match #place {
                        ::core::option::Option::Some(value) => #wrapper::encode_ref(value),
                        ::core::option::Option::None => ::core::result::Result::Ok(#krate::value::Value::Null),
                    }
                }
            }
        }
    }

    /// A `Result` of the field's own type, read from a `ValueRef`.
    fn decoded(&self, krate: &Path, value: &TokenStream) -> TokenStream {
        let (ty, column_type) = (&self.ty, self.column_type(krate));
        let stored =
            quote_spanned!(at(ty)=> <#column_type as #krate::value::ColumnType>::decode(#value));
        match &self.form {
            Form::Wrapped(_) => quote!(#stored.map(|wrapped| wrapped.0)),
            Form::OptionalWrapped(..) => {
                quote!(#stored.map(|wrapped| wrapped.map(|wrapped| wrapped.0)))
            }
            Form::Plain | Form::Embedded(_) => stored,
        }
    }
}

/// The position of the first column of a field behind embedded structs.
fn constant(index: usize) -> Ident {
    format_ident!("POSITION_{index}")
}

/// SQLite does not tell columns apart by case, and two fields cannot share a constant.
fn check_names(fields: &[Field], errors: &mut Errors) {
    for (index, field) in fields.iter().enumerate() {
        for earlier in &fields[..index] {
            let are_columns = field.embed().is_none() && earlier.embed().is_none();
            if are_columns && field.column.eq_ignore_ascii_case(&earlier.column) {
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
