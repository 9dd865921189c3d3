//! `#[derive(EntityNewtype)]`: a type of its own around one that a column can hold.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Data, DataStruct, DeriveInput, Fields, Type};

use crate::{
    entity::field::{Wrapper, at, option_of},
    errors::Errors,
    place::Place,
    settings::Settings,
};

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let inner = inner_type(input)?;
    let mut errors = Errors::default();
    errors.refuse_parameters(
        &input.generics,
        "a newtype in a column has no parameters: write one for each type",
    );
    if option_of(inner).is_some() {
        errors.push(
            inner,
            "a newtype is never NULL: remove the Option here, and write it on the field",
        );
    }
    let settings = Settings::parse(&input.attrs, Place::Newtype, &mut errors);
    let krate = settings.krate(&mut errors);
    let is_key = settings.flag("key", &mut errors);
    let wrapper = Wrapper::parse(&settings, &mut errors);
    if let (Some((_, name)), Some(at)) = (wrapper, settings.name("key")) {
        errors.push(
            at,
            format!("a key is stored as it is: remove `key` or `{name}`"),
        );
    }
    let wrapper = wrapper.map(|(wrapper, _)| wrapper);
    errors
        .finish(())
        .map(|()| expand(input, inner, &krate, is_key, wrapper))
}

fn inner_type(input: &DeriveInput) -> syn::Result<&Type> {
    if let Data::Struct(DataStruct {
        fields: Fields::Unnamed(fields),
        ..
    }) = &input.data
        && fields.unnamed.len() == 1
    {
        return Ok(&fields.unnamed[0].ty);
    }
    Err(syn::Error::new_spanned(
        &input.ident,
        "a newtype is a struct around one value, such as `struct OrderId(i64);`: for several values derive `EntityEmbed`",
    ))
}

fn expand(
    input: &DeriveInput,
    inner: &Type,
    krate: &syn::Path,
    is_key: bool,
    wrapper: Option<Wrapper>,
) -> TokenStream {
    let name = &input.ident;
    let column_type = wrapper.map_or_else(|| quote!(#inner), |wrapper| wrapper.of(inner, krate));
    let of = quote_spanned!(at(inner)=> <#column_type as #krate::value::ColumnType>);
    let (encoded, decoded) = if let Some(wrapper) = wrapper {
        let wrapper = wrapper.path(krate);
        (
            quote!(#wrapper::encode_ref(&self.0)),
            quote!(#of::decode(value).map(|wrapped| Self(wrapped.0))),
        )
    } else {
        (
            quote!(#of::encode(&self.0)),
            quote!(#of::decode(value).map(Self)),
        )
    };
    let from_json = wrapper.map_or_else(
        || quote!(#of::from_json(json).map(Self)),
        |_| quote!(#of::from_json(json).map(|wrapped| Self(wrapped.0))),
    );
    let key = is_key.then(|| key(input, inner, krate));
    let text = is_text(inner).then(|| {
        quote! {
            #[automatically_derived]
            impl #krate::query::Text for #name {}
        }
    });
    quote! {
        #[automatically_derived]
        impl #krate::value::Scalar for #name {}

        #[automatically_derived]
        impl #krate::value::ColumnType for #name {
            const STORAGE: #krate::value::Storage = {
                const fn is_scalar<T: #krate::value::Scalar>() {}
                is_scalar::<#column_type>();
                #of::STORAGE
            };
            const LARGE: bool = #of::LARGE;
            const RANGE: ::core::option::Option<(i64, i64)> = #of::RANGE;
            const ONE_OF: #krate::value::OneOf = #of::ONE_OF;

            fn encode(&self) -> ::core::result::Result<#krate::value::Value, #krate::value::ValueError> {
                #encoded
            }

            fn decode(
                value: #krate::value::ValueRef<'_>,
            ) -> ::core::result::Result<Self, #krate::value::ValueError> {
                #decoded
            }

            fn from_json(
                json: &#krate::value::JsonValue,
            ) -> ::core::result::Result<Self, #krate::value::ValueError> {
                #from_json
            }
        }

        #key
        #text
    }
}

fn key(input: &DeriveInput, inner: &Type, krate: &syn::Path) -> TokenStream {
    let name = &input.ident;
    let of = quote_spanned!(at(inner)=> <#inner as #krate::value::KeyColumn>);
    quote! {
        #[automatically_derived]
        impl #krate::value::KeyColumn for #name {
            const ORIGIN: #krate::value::KeyOrigin = #of::ORIGIN;

            fn is_unset(&self) -> bool {
                #of::is_unset(&self.0)
            }

            fn generate() -> ::core::option::Option<Self> {
                ::core::option::Option::map(#of::generate(), Self)
            }

            fn from_integer(key: i64) -> ::core::option::Option<Self> {
                ::core::option::Option::map(#of::from_integer(key), Self)
            }
        }
    }
}

/// Whether it is a `String`, by the look of it: then it is text that can be searched.
fn is_text(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "String"))
}
