//! What most derives are written on: a struct with named fields.

use syn::{Data, DataStruct, DeriveInput, Fields, FieldsNamed};

/// Its fields; of anything else the message, shown at the name.
pub(crate) fn named_fields<'a>(
    input: &'a DeriveInput,
    message: &str,
) -> syn::Result<&'a FieldsNamed> {
    match &input.data {
        Data::Struct(DataStruct {
            fields: Fields::Named(named),
            ..
        }) => Ok(named),
        _ => Err(syn::Error::new_spanned(&input.ident, message)),
    }
}
