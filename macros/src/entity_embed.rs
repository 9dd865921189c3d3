//! `#[derive(EntityEmbed)]`: a struct, or an enum with data, whose fields are columns of the entity that it is part of.

mod variants;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput};

use crate::{
    entity::columns::Columns, entity_embed::variants::EmbeddedEnum, errors::Errors,
    named_fields::named_fields, place::Place, settings::Settings,
};

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    if let Data::Enum(variants) = &input.data {
        return EmbeddedEnum::parse(input, variants).map(|parsed| parsed.expand());
    }
    let named = named_fields(
        input,
        "an embedded struct has named fields: for a type around one value derive `EntityNewtype`",
    )?;
    let mut errors = Errors::default();
    errors.refuse_parameters(
        &input.generics,
        "an embedded struct has no parameters: write one for each type",
    );
    let settings = Settings::parse(&input.attrs, Place::Embedded, &mut errors);
    let case = settings.case(&mut errors);
    let krate = settings.krate(&mut errors);
    let columns = Columns::parse(&named.named, Place::EmbeddedField, case, &mut errors);
    if named.named.is_empty() {
        errors.push(
            &input.ident,
            "an embedded struct without fields has no columns: add one",
        );
    }
    errors.finish(()).map(|()| expand(input, &columns, &krate))
}

fn expand(input: &DeriveInput, columns: &Columns, krate: &syn::Path) -> TokenStream {
    let (name, visibility) = (&input.ident, &input.vis);
    let (constants, definitions) = columns.definitions(krate);
    let typed = columns.constants(krate, visibility);
    let encode = columns.encode(krate);
    let assign = columns.assign(krate);
    let assign_from = columns.assign_from(krate, Some(&quote!(first)));
    let encode_json = columns.encode_json(krate);
    let decoded = columns.decoded(krate, Some(&quote!(first)));
    let items = quote! {
        #[automatically_derived]
        #[allow(dead_code, deprecated, private_interfaces, reason = "offered for every field, used as needed")]
        impl #name {
            #typed
        }

        #[automatically_derived]
        #[allow(deprecated, private_interfaces, reason = "a deprecated field is still a column")]
        impl #krate::entity::Embedded for #name {
            const COLUMNS: &'static [#krate::entity::ColumnDef] = #definitions;

            #encode
            #assign
            #assign_from
            #encode_json

            // The parameter has a name that no field's type has.
            fn decode<__Row: #krate::value::Row + ?::core::marker::Sized>(
                row: &__Row,
                first: usize,
            ) -> ::core::result::Result<Self, (usize, #krate::value::ValueError)> {
                ::core::result::Result::Ok(Self { #decoded })
            }
        }
    };
    columns.enclosed(&constants, items)
}
