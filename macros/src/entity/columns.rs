//! The columns of a struct: of an entity, or of an embedded struct.

use std::ops::Range;

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, Path, Token, Visibility, punctuated::Punctuated};

use crate::{
    entity::field::{Embed, Field, Form, Parsed, Skipped, at, moved},
    errors::Errors,
    names::Case,
    place::Place,
    settings::FieldPath,
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
            match Field::parse(field, place, case, None, errors) {
                Some(Parsed::Column(field)) => columns.fields.push(*field),
                Some(Parsed::Skipped(field)) => columns.skipped.push(*field),
                None => {}
            }
        }
        columns.check_names(errors);
        columns
    }

    /// Columns without a struct of their own.
    pub(crate) const fn new(fields: Vec<Field>) -> Self {
        Self {
            fields,
            skipped: Vec::new(),
        }
    }

    /// SQLite does not tell columns apart by case, and two fields cannot share a constant.
    pub(crate) fn check_names(&self, errors: &mut Errors) {
        check_names(&self.fields, errors);
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
                let member = &field.path;
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
            quote!(const #name: usize = #krate::entity::layout::start(__PARTS, #index);)
        });
        let end = constant(self.fields.len());
        let last = self.fields.len();
        let constants = quote! {
            const __PARTS: &[#krate::entity::layout::Part] = &[#(#parts),*];
            #(#positions)*
            const #end: usize = #krate::entity::layout::start(__PARTS, #last);
            const __TEXT: &[u8; #krate::entity::layout::text_len(__PARTS)] = &#krate::entity::layout::text(__PARTS);
            const __COLUMNS: &[#krate::entity::ColumnDef; #krate::entity::layout::width(__PARTS)] =
                &#krate::entity::layout::columns(__PARTS, __TEXT);
        };
        (constants, quote!(__COLUMNS))
    }

    /// A typed constant for each field.
    pub(crate) fn constants(&self, krate: &Path, visibility: &Visibility) -> TokenStream {
        (self.fields.iter().enumerate())
            .map(|(index, field)| {
                let (constant, column_type) = (&field.constant, field.column_type(krate));
                let position = self.position(index);
                let doc = match field.embed() {
                    Some(_) => format!("The columns of `{}`.", field.path),
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

    /// `match column` arms of some fields: `found` makes one of a field with one column, `embedded` of a field with
    /// several, given the position of their first.
    fn arms(
        &self,
        fields: Range<usize>,
        found: impl Fn(usize, &Field) -> TokenStream,
        embedded: impl Fn(usize, &Embed, &TokenStream) -> TokenStream,
    ) -> TokenStream {
        fields
            .map(|index| {
                let field = &self.fields[index];
                let first = self.position(index);
                match field.embed() {
                    None => {
                        let value = found(index, field);
                        quote!(#first => #value,)
                    }
                    Some(embed) => {
                        let end = constant(index + 1);
                        let value = embedded(index, embed, &first);
                        quote!(#first..#end => #value,)
                    }
                }
            })
            .collect()
    }

    /// Where the field at `index` is, in a method of the struct.
    fn place(&self, index: usize) -> TokenStream {
        let member = &self.fields[index].member;
        quote!(self.#member)
    }

    /// Arms that encode some fields; `place` is where one is.
    pub(crate) fn encode_arms(
        &self,
        fields: Range<usize>,
        place: impl Fn(usize) -> TokenStream,
        krate: &Path,
    ) -> TokenStream {
        self.arms(
            fields,
            |index, field| {
                let place = place(index);
                field.encoded(krate, &quote!(&#place))
            },
            |index, Embed { is_optional, ty, .. }, first| {
                let krate = moved(krate, at(ty));
                let place = place(index);
                if *is_optional {
                    quote_spanned! {at(ty)=>
                        #krate::entity::optional::encode(
                            ::core::option::Option::as_ref(&#place),
                            column - #first,
                        )
                    }
                } else {
                    quote_spanned!(at(ty)=> #krate::entity::Embedded::encode(&#place, column - #first))
                }
            },
        )
    }

    /// Arms that replace some fields, and return if they fail or the field does it itself.
    pub(crate) fn assign_arms(
        &self,
        fields: Range<usize>,
        place: impl Fn(usize) -> TokenStream,
        krate: &Path,
    ) -> TokenStream {
        self.arms(
            fields,
            |index, field| {
                let place = place(index);
                let decoded = field.decoded(krate, &quote!(value));
                quote! {
                    match #decoded {
                        ::core::result::Result::Ok(value) => #place = value,
                        ::core::result::Result::Err(error) => return ::core::result::Result::Err(error),
                    }
                }
            },
            |index, Embed { is_optional, ty, .. }, first| {
                let krate = moved(krate, at(ty));
                let place = place(index);
                let assign = if *is_optional {
                    quote_spanned!(at(ty)=> #krate::entity::optional::assign)
                } else {
                    quote_spanned!(at(ty)=> #krate::entity::Embedded::assign)
                };
                quote_spanned!(at(ty)=> return #assign(&mut #place, column - #first, value))
            },
        )
    }

    /// Arms that encode what some fields are given as JSON.
    pub(crate) fn encode_json_arms(&self, fields: Range<usize>, krate: &Path) -> TokenStream {
        self.arms(
            fields,
            |_, field| {
                let column_type = field.column_type(krate);
                let trait_of =
                    quote_spanned!(at(&field.ty)=> <#column_type as #krate::value::ColumnType>);
                let encoded = quote! {
                    match #trait_of::from_json(json) {
                        ::core::result::Result::Ok(value) => #trait_of::encode(&value),
                        ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
                    }
                };
                if !field.deferred {
                    return encoded;
                }
                quote! {
                    if json.is_null() {
                        ::core::result::Result::Ok(#krate::value::Value::Unread)
                    } else {
                        #encoded
                    }
                }
            },
            |_,
             Embed {
                 ty, is_optional, ..
             },
             first| {
                let encode = if *is_optional {
                    quote_spanned!(at(ty)=> #krate::entity::optional::encode_json::<#ty>)
                } else {
                    quote_spanned!(at(ty)=> <#ty as #krate::entity::Embedded>::encode_json)
                };
                quote_spanned!(at(ty)=> #encode(column - #first, json))
            },
        )
    }

    fn all(&self) -> Range<usize> {
        0..self.fields.len()
    }

    /// `fn encode`.
    pub(crate) fn encode(&self, krate: &Path) -> TokenStream {
        let arms = self.encode_arms(self.all(), |index| self.place(index), krate);
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
        let arms = self.assign_arms(self.all(), |index| self.place(index), krate);
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

    /// `fn column_types`; of embedded structs they are not known here.
    pub(crate) fn types(&self, krate: &Path) -> TokenStream {
        let types = self.fields.iter().map(|field| match field.embed() {
            None => {
                let ty = field.column_type(krate);
                quote!(types.push(::core::option::Option::Some(::core::any::TypeId::of::<#ty>()));)
            }
            Some(Embed { ty, .. }) => {
                let columns = quote_spanned!(at(ty)=> <#ty as #krate::entity::Embedded>::COLUMNS);
                quote!(types.extend(#columns.iter().map(|_| ::core::option::Option::None));)
            }
        });
        quote! {
            fn column_types(types: &mut ::std::vec::Vec<::core::option::Option<::core::any::TypeId>>) {
                #(#types)*
            }
        }
    }

    /// `fn encode_json`.
    pub(crate) fn encode_json(&self, krate: &Path) -> TokenStream {
        let arms = self.encode_json_arms(self.all(), krate);
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

    /// `fn assign_from`, where the one of the trait does not do; `base` is added to positions.
    pub(crate) fn assign_from(&self, krate: &Path, base: Option<&TokenStream>) -> TokenStream {
        if !self.has_embedded() {
            return TokenStream::new();
        }
        let embedded = (self.all()).filter_map(|index| {
            let Embed { is_optional, ty, .. } = self.fields[index].embed()?;
            let (place, first) = (self.place(index), self.position(index));
            let krate = moved(krate, at(ty));
            let (end, start) = (constant(index + 1), based(base, &first));
            Some(if *is_optional {
                quote_spanned! {at(ty)=>
                    #first..#end => #krate::entity::optional::assign_from(&mut #place, row, #start),
                }
            } else {
                quote_spanned! {at(ty)=>
                    #first..#end => {
                        #krate::entity::Embedded::assign_from(&mut #place, column - #first, row, #start)
                    }
                }
            })
        });
        let parameter = base.map(|base| quote!(#base: usize,));
        let at = based(base, &quote!(column));
        quote! {
            fn assign_from<__Row: #krate::value::Row + ?::core::marker::Sized>(
                &mut self,
                column: usize,
                row: &__Row,
                #parameter
            ) -> ::core::result::Result<(), (usize, #krate::value::ValueError)> {
                match column {
                    #(#embedded)*
                    _ => match self.assign(column, #krate::value::Row::value(row, #at)) {
                        ::core::result::Result::Ok(()) => ::core::result::Result::Ok(()),
                        ::core::result::Result::Err(error) => ::core::result::Result::Err((#at, error)),
                    },
                }
            }
        }
    }

    /// The fields of a struct expression that reads a row; `base` is added to positions.
    pub(crate) fn decoded(&self, krate: &Path, base: Option<&TokenStream>) -> TokenStream {
        let fields = self.fields.iter().enumerate().map(|(index, field)| {
            let member = &field.member;
            let value = self.decoded_field(index, krate, base);
            quote!(#member: #value,)
        });
        let skipped = self.skipped.iter().map(|skipped| {
            let (member, value) = (&skipped.member, skipped.value());
            quote!(#member: #value,)
        });
        quote!(#(#fields)* #(#skipped)*)
    }

    /// The field at `index`, read from a row; what fails returns.
    pub(crate) fn decoded_field(
        &self,
        index: usize,
        krate: &Path,
        base: Option<&TokenStream>,
    ) -> TokenStream {
        let field = &self.fields[index];
        let position = based(base, &self.position(index));
        let Some(Embed {
            is_optional, ty, ..
        }) = field.embed()
        else {
            let value = quote!(#krate::value::Row::value(row, #position));
            let decoded = field.decoded(krate, &value);
            return quote! {
                match #decoded {
                    ::core::result::Result::Ok(value) => value,
                    ::core::result::Result::Err(error) => {
                        return ::core::result::Result::Err((#position, error));
                    }
                }
            };
        };
        let decode = if *is_optional {
            quote_spanned!(at(ty)=> #krate::entity::optional::decode::<#ty, __Row>)
        } else {
            quote_spanned!(at(ty)=> <#ty as #krate::entity::Embedded>::decode::<__Row>)
        };
        quote! {
            match #decode(row, #position) {
                ::core::result::Result::Ok(value) => value,
                ::core::result::Result::Err(error) => return ::core::result::Result::Err(error),
            }
        }
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
    /// A `Result` of the value to store, made from a reference to the field.
    fn encoded(&self, krate: &Path, place: &TokenStream) -> TokenStream {
        if !self.deferred {
            return self.encoded_value(krate, place);
        }
        let encoded = self.encoded_value(krate, &quote!(value));
        quote! {
            match #krate::value::Deferred::get(#place) {
                ::core::option::Option::Some(value) => #encoded,
                ::core::option::Option::None => ::core::result::Result::Ok(#krate::value::Value::Unread),
            }
        }
    }

    /// The same from a reference to the field's type, whether or not it is deferred.
    pub(crate) fn encoded_value(&self, krate: &Path, place: &TokenStream) -> TokenStream {
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
        let stored = match &self.form {
            Form::Wrapped(_) => quote!(#stored.map(|wrapped| wrapped.0)),
            Form::OptionalWrapped(..) => {
                quote!(#stored.map(|wrapped| wrapped.map(|wrapped| wrapped.0)))
            }
            Form::Plain | Form::Embedded(_) => stored,
        };
        if !self.deferred {
            return stored;
        }
        quote! {
            match #value {
                #krate::value::ValueRef::Unread => {
                    ::core::result::Result::Ok(::core::default::Default::default())
                }
                _ => #stored.map(#krate::value::Deferred::new),
            }
        }
    }
}

fn based(base: Option<&TokenStream>, position: &TokenStream) -> TokenStream {
    base.map_or_else(|| position.clone(), |base| quote!(#base + #position))
}

/// The position of the first column of a field behind embedded structs.
fn constant(index: usize) -> Ident {
    format_ident!("__POSITION_{index}")
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
                        earlier.column, earlier.path
                    ),
                );
            } else if field.constant == earlier.constant {
                errors.push(
                    &field.member,
                    format!(
                        "the constant `{}` belongs to `{}` already: rename one of the fields",
                        field.constant, earlier.path
                    ),
                );
            }
        }
    }
}
