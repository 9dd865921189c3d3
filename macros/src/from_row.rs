//! `#[derive(FromRow)]`: a struct that is read from a row of raw SQL, by the names of its columns.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Path};

use crate::{
    entity::columns::Columns, errors::Errors, named_fields::named_fields, place::Place,
    settings::Settings,
};

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let named = named_fields(
        input,
        "a row is read as a struct with named fields: by position it is read as a tuple, `raw::<(A, B)>(...)`",
    )?;
    let mut errors = Errors::default();
    errors.refuse_parameters(
        &input.generics,
        "a struct of a row has no parameters: write one for each type",
    );
    if named.named.is_empty() {
        errors.push(
            &input.ident,
            "a struct without fields reads nothing: add one",
        );
    }
    let settings = Settings::parse(&input.attrs, Place::Row, &mut errors);
    let case = settings.case(&mut errors);
    let krate = settings.krate(&mut errors);
    let columns = Columns::parse(&named.named, Place::RowField, case, &mut errors);
    errors.finish(()).map(|()| expand(input, &columns, &krate))
}

fn expand(input: &DeriveInput, columns: &Columns, krate: &Path) -> TokenStream {
    let name = &input.ident;
    let (constants, definitions) = columns.definitions(krate);
    let decoded = columns.decoded(krate, None);
    let items = quote! {
        #[automatically_derived]
        #[allow(deprecated, reason = "a deprecated field is still read")]
        impl #krate::query::FromRow for #name {
            fn from_row(row: &dyn #krate::value::Row) -> #krate::error::Result<Self> {
                // The parameter has a name that no field's type has.
                fn decode<__Row: #krate::value::Row + ?::core::marker::Sized>(
                    row: &__Row,
                ) -> ::core::result::Result<#name, (usize, #krate::value::ValueError)> {
                    ::core::result::Result::Ok(#name { #decoded })
                }
                const COLUMNS: &[#krate::entity::ColumnDef] = #definitions;
                #krate::query::by_names(row, COLUMNS, |row| decode(row))
            }
        }
    };
    columns.enclosed(&constants, items)
}
