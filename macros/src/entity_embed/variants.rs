//! `#[derive(EntityEmbed)]` on an enum: a column for which variant it is, and the columns of all variants' fields.

use std::ops::Range;

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};
use syn::{
    DataEnum, DeriveInput, Fields, Ident, Index, LitStr, Member, Path, Variant, ext::IdentExt,
    parse::Parser,
};

use crate::{
    entity::{
        columns::Columns,
        field::{Field, Parsed, Skipped},
    },
    errors::Errors,
    names::{Case, snake_case},
    place::Place,
    settings::Settings,
};

/// An enum with data, ready to be written out.
pub(crate) struct EmbeddedEnum<'a> {
    input: &'a DeriveInput,
    krate: Path,
    check: bool,
    /// The kind, then the fields of the variants.
    columns: Columns,
    kinds: Vec<Kind>,
}

/// A variant.
struct Kind {
    variant: Ident,
    /// The text that is stored for it.
    stored: String,
    /// The members that are columns; they are these fields.
    members: Vec<Member>,
    fields: Range<usize>,
    skipped: Vec<(Member, Skipped)>,
}

impl<'a> EmbeddedEnum<'a> {
    pub(crate) fn parse(input: &'a DeriveInput, data: &DataEnum) -> syn::Result<Self> {
        let mut errors = Errors::default();
        errors.refuse_parameters(
            &input.generics,
            "an embedded enum has no parameters: write one for each type",
        );
        if (data.variants.iter()).all(|variant| variant.fields.is_empty()) {
            errors.push(
                &input.ident,
                "an enum without data is one column: derive `EntityEnum` instead",
            );
        }
        let settings = Settings::parse(&input.attrs, Place::EmbeddedEnum, &mut errors);
        let krate = settings.krate(&mut errors);
        let check = settings.flag("check", &mut errors);
        let case = settings.case(&mut errors);
        let mut fields: Vec<_> = kind_field(&settings, &mut errors).into_iter().collect();
        let kinds = (data.variants.iter())
            .map(|variant| Kind::parse(variant, case, &mut fields, &mut errors))
            .collect();
        let parsed = Self {
            input,
            krate,
            check,
            columns: Columns::new(fields),
            kinds,
        };
        parsed.columns.check_names(&mut errors);
        parsed.check_kinds(&mut errors);
        errors.finish(parsed)
    }

    fn check_kinds(&self, errors: &mut Errors) {
        for (index, kind) in self.kinds.iter().enumerate() {
            if let Some(earlier) =
                (self.kinds[..index].iter()).find(|earlier| earlier.stored == kind.stored)
            {
                errors.push(
                    &kind.variant,
                    format!(
                        "`{}` is stored as `{}` already: choose another name",
                        earlier.variant, kind.stored
                    ),
                );
            }
        }
    }

    pub(crate) fn expand(&self) -> TokenStream {
        let (name, visibility, krate) = (&self.input.ident, &self.input.vis, &self.krate);
        let (constants, definitions) = self.columns.definitions(krate);
        let typed = self.columns.constants(krate, visibility);
        let (encode, assign) = (self.encode(), self.assign());
        let (encode_json, decode) = (self.encode_json(), self.decode());
        let kinds = self.kinds.iter().map(|kind| &kind.stored);
        let one_of = if self.check {
            quote!(#krate::value::OneOf::Texts(&[#(#kinds),*]))
        } else {
            quote!(#krate::value::OneOf::Any)
        };
        let items = quote! {
            #[automatically_derived]
            #[allow(dead_code, deprecated, private_interfaces, reason = "offered for every field, used as needed")]
            impl #name {
                #typed
            }

            #[automatically_derived]
            #[allow(deprecated, private_interfaces, reason = "a deprecated field is still a column")]
            impl #krate::entity::Embedded for #name {
                const COLUMNS: &'static [#krate::entity::ColumnDef] =
                    &#krate::entity::layout::of_variants(*#definitions, #one_of);

                #encode
                #assign
                #encode_json
                #decode
            }
        };
        self.columns.enclosed(&constants, items)
    }

    /// How many columns there are.
    fn count(&self) -> TokenStream {
        let krate = &self.krate;
        quote!(<Self as #krate::entity::Embedded>::COLUMNS.len())
    }

    fn encode(&self) -> TokenStream {
        let (krate, count) = (&self.krate, self.count());
        let variants = self.kinds.iter().map(|kind| {
            let (pattern, stored) = (kind.pattern(), &kind.stored);
            let arms = (self.columns).encode_arms(kind.fields.clone(), place, krate);
            quote! {
                #pattern => match column {
                    0 => ::core::result::Result::Ok(
                        #krate::value::Value::Text(::std::string::String::from(#stored)),
                    ),
                    #arms
                    _ => #krate::entity::variant::encode_other(column, #count),
                },
            }
        });
        quote! {
            fn encode(
                &self,
                column: usize,
            ) -> ::core::result::Result<#krate::value::Value, #krate::value::ValueError> {
                match self {
                    #(#variants)*
                }
            }
        }
    }

    /// `assign`, which never changes the variant, and `assign_from`, which may.
    fn assign(&self) -> TokenStream {
        let (krate, count) = (&self.krate, self.count());
        let variants = self.kinds.iter().map(|kind| {
            let (pattern, stored) = (kind.pattern(), &kind.stored);
            let arms = (self.columns).assign_arms(kind.fields.clone(), place, krate);
            quote! {
                #pattern => match column {
                    0 => return #krate::entity::variant::assign_kind(#stored, value),
                    #arms
                    _ => return #krate::entity::variant::assign_other(column, #count, value),
                },
            }
        });
        quote! {
            fn assign(
                &mut self,
                column: usize,
                value: #krate::value::ValueRef<'_>,
            ) -> ::core::result::Result<(), #krate::value::ValueError> {
                match self {
                    #(#variants)*
                }
                #[allow(unreachable_code, reason = "all fields may be embedded structs")]
                ::core::result::Result::Ok(())
            }

            fn assign_from<__Row: #krate::value::Row + ?::core::marker::Sized>(
                &mut self,
                _column: usize,
                row: &__Row,
                first: usize,
            ) -> ::core::result::Result<(), (usize, #krate::value::ValueError)> {
                match <Self as #krate::entity::Embedded>::decode::<__Row>(row, first) {
                    ::core::result::Result::Ok(whole) => {
                        *self = whole;
                        ::core::result::Result::Ok(())
                    }
                    ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
                }
            }
        }
    }

    fn encode_json(&self) -> TokenStream {
        let (krate, count) = (&self.krate, self.count());
        let kinds = self.kinds.iter().map(|kind| &kind.stored);
        let fields = 1..self.columns.len();
        let arms = self.columns.encode_json_arms(fields, krate);
        quote! {
            fn encode_json(
                column: usize,
                json: &#krate::value::JsonValue,
            ) -> ::core::result::Result<#krate::value::Value, #krate::value::ValueError> {
                match column {
                    0 => #krate::entity::variant::encode_kind(&[#(#kinds),*], json),
                    // Any column is NULL in some variant; whether in this one is seen when it is assigned.
                    _ if json.is_null() => #krate::entity::variant::encode_other(column, #count),
                    #arms
                    _ => ::core::result::Result::Err(#krate::value::ValueError::new("there is no such column")),
                }
            }
        }
    }

    fn decode(&self) -> TokenStream {
        let (krate, count) = (&self.krate, self.count());
        let unknown = format!(
            "the stored value is no variant of {}",
            self.input.ident.unraw()
        );
        let base = quote!(first);
        let variants = self.kinds.iter().map(|kind| {
            let stored = Literal::byte_string(kind.stored.as_bytes());
            let (variant, members) = (&kind.variant, &kind.members);
            let skipped = kind.skipped.iter().map(|(member, skipped)| {
                let value = skipped.value();
                quote!(#member: #value,)
            });
            let values = (kind.fields.clone())
                .map(|index| self.columns.decoded_field(index, krate, Some(&base)));
            let start = self.columns.position(kind.fields.start);
            let end = self.columns.position(kind.fields.end);
            quote! {
                #krate::value::ValueRef::Text(#stored) => {
                    match #krate::entity::variant::check_others::<__Row>(row, first, #start..#end, #count) {
                        ::core::result::Result::Ok(()) => ::core::result::Result::Ok(Self::#variant {
                            #(#members: #values,)*
                            #(#skipped)*
                        }),
                        ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
                    }
                }
            }
        });
        quote! {
            fn decode<__Row: #krate::value::Row + ?::core::marker::Sized>(
                row: &__Row,
                first: usize,
            ) -> ::core::result::Result<Self, (usize, #krate::value::ValueError)> {
                match #krate::value::Row::value(row, first) {
                    #(#variants)*
                    #krate::value::ValueRef::Text(_) => {
                        ::core::result::Result::Err((first, #krate::value::ValueError::new(#unknown)))
                    }
                    other => ::core::result::Result::Err(
                        (first, #krate::value::ValueError::unexpected("text", other)),
                    ),
                }
            }
        }
    }
}

impl Kind {
    /// Reads a variant, and adds its fields to those of the enum.
    fn parse(
        variant: &Variant,
        case: Option<Case>,
        fields: &mut Vec<Field>,
        errors: &mut Errors,
    ) -> Self {
        let settings = Settings::parse(&variant.attrs, Place::EmbeddedVariant, errors);
        let name = variant.ident.unraw().to_string();
        let prefix = snake_case(&name);
        if matches!(&variant.fields, Fields::Unnamed(unnamed) if unnamed.unnamed.len() > 1) {
            errors.push(
                &variant.ident,
                format!(
                    "only one field needs no name: write `{name} {{ one: ..., another: ... }}`"
                ),
            );
        }
        let start = fields.len();
        let (mut members, mut skipped) = (Vec::new(), Vec::new());
        for (index, field) in variant.fields.iter().enumerate() {
            let (field, member, within) = match &field.ident {
                Some(ident) => (field.clone(), Member::from(ident.clone()), Some(&prefix)),
                None if index > 0 => break,
                // A field without a name has the variant's.
                None => {
                    let mut named = field.clone();
                    named.ident = Some(Ident::new(&prefix, variant.ident.span()));
                    (named, Member::from(Index::from(index)), None)
                }
            };
            let within = within.map(String::as_str);
            match Field::parse(&field, Place::VariantField, None, within, errors) {
                Some(Parsed::Column(field)) => {
                    members.push(member);
                    fields.push(*field);
                }
                Some(Parsed::Skipped(field)) => skipped.push((member, *field)),
                None => {}
            }
        }
        Self {
            stored: match (settings.string("rename", errors), case) {
                (Some(rename), _) => rename.value(),
                (None, Some(case)) => case.of_variant(&name),
                (None, None) => name,
            },
            variant: variant.ident.clone(),
            members,
            fields: start..fields.len(),
            skipped,
        }
    }

    /// The pattern of the variant, in which each column has a name of its own.
    fn pattern(&self) -> TokenStream {
        let (variant, members) = (&self.variant, &self.members);
        let names = self.fields.clone().map(binding);
        quote!(Self::#variant { #(#members: #names,)* .. })
    }
}

/// The column that says which variant it is.
fn kind_field(settings: &Settings, errors: &mut Errors) -> Option<Field> {
    let tag = settings.string("tag", errors);
    let name = tag.as_ref().map_or_else(
        || Some(format_ident!("kind")),
        |tag| errors.take(tag.parse_with(Ident::parse_any).map_err(|_| bad_tag(tag))),
    )?;
    let field = syn::Field::parse_unnamed.parse2(quote!(::std::string::String));
    let mut field = errors.take(field)?;
    field.ident = Some(name);
    match Field::parse(&field, Place::VariantField, None, None, errors) {
        Some(Parsed::Column(field)) => Some(*field),
        _ => None,
    }
}

fn bad_tag(tag: &LitStr) -> syn::Error {
    syn::Error::new_spanned(
        tag,
        "the tag is named like a field, and its constant after it: write `tag = \"kind\"`",
    )
}

/// The name of the field at `index` in patterns.
fn binding(index: usize) -> Ident {
    format_ident!("field_{index}")
}

fn place(index: usize) -> TokenStream {
    let name = binding(index);
    quote!(*#name)
}
