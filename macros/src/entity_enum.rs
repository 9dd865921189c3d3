//! `#[derive(EntityEnum)]`: an enum without data in one column.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DataEnum, DeriveInput, Fields, Ident, Path, Variant, ext::IdentExt};

use crate::{errors::Errors, names::Case, place::Place, settings::Settings};

/// An enum, ready to be written out.
struct EntityEnum {
    name: Ident,
    krate: Path,
    integer: bool,
    check: bool,
    variants: Vec<(Ident, String)>,
}

pub(crate) fn derive(input: DeriveInput) -> syn::Result<TokenStream> {
    EntityEnum::parse(input).map(|parsed| parsed.expand())
}

impl EntityEnum {
    fn parse(input: DeriveInput) -> syn::Result<Self> {
        let Data::Enum(DataEnum { variants, .. }) = &input.data else {
            return Err(syn::Error::new_spanned(
                &input.ident,
                "`EntityEnum` is for enums; for a struct derive `Entity`",
            ));
        };
        let mut errors = Errors::default();
        errors.refuse_parameters(
            &input.generics,
            "an enum in a column has no parameters: remove them",
        );
        if variants.is_empty() {
            errors.push(
                &input.ident,
                "an enum without variants has nothing to store: add one",
            );
        }
        let settings = Settings::parse(&input.attrs, Place::Enum, &mut errors);
        let integer = settings.flag("integer", &mut errors);
        let check = settings.flag("check", &mut errors);
        let case = settings.case(&mut errors);
        if let Some(at) = settings.name("rename_all").filter(|_| integer) {
            errors.push(
                at,
                "an `integer` enum stores its discriminants: remove `rename_all`, or `integer`",
            );
        }
        let parsed = Self {
            variants: variants
                .iter()
                .map(|variant| {
                    (
                        variant.ident.clone(),
                        stored_name(variant, integer, case, &mut errors),
                    )
                })
                .collect(),
            krate: settings.krate(&mut errors),
            name: input.ident,
            integer,
            check,
        };
        if !integer {
            parsed.check_names(&mut errors);
        }
        errors.finish(parsed)
    }

    fn check_names(&self, errors: &mut Errors) {
        for (index, (variant, name)) in self.variants.iter().enumerate() {
            if let Some((earlier, _)) = self.variants[..index]
                .iter()
                .find(|(_, other)| other == name)
            {
                errors.push(
                    variant,
                    format!("`{earlier}` is stored as `{name}` already: choose another name"),
                );
            }
        }
    }

    fn expand(&self) -> TokenStream {
        let (name, krate) = (&self.name, &self.krate);
        let (storage, expected) = if self.integer {
            (quote!(Integer), "an integer")
        } else {
            (quote!(Text), "text")
        };
        let constants = self.constants();
        let encoded = self.variants.iter().map(|variant| self.encoded(variant));
        let stored = self
            .variants
            .iter()
            .enumerate()
            .map(|(index, variant)| self.stored(index, variant));
        let variants: Vec<_> = self.variants.iter().map(|(variant, _)| variant).collect();
        let one_of = self.one_of();
        let unknown = format!("the stored value is no variant of {}", name.unraw());
        quote! {
            #[automatically_derived]
            impl #krate::value::Scalar for #name {}

            #[automatically_derived]
            #[allow(deprecated, reason = "a deprecated variant may still be stored")]
            impl #krate::value::ColumnType for #name {
                const STORAGE: #krate::value::Storage = #krate::value::Storage::#storage;
                #one_of

                fn encode(&self) -> ::core::result::Result<#krate::value::Value, #krate::value::ValueError> {
                    ::core::result::Result::Ok(#krate::value::Value::#storage(match self {
                        #(Self::#variants => #encoded,)*
                    }))
                }

                fn decode(
                    value: #krate::value::ValueRef<'_>,
                ) -> ::core::result::Result<Self, #krate::value::ValueError> {
                    #constants
                    match value {
                        #(#krate::value::ValueRef::#storage(#stored) => {
                            ::core::result::Result::Ok(Self::#variants)
                        })*
                        #krate::value::ValueRef::#storage(_) => {
                            ::core::result::Result::Err(#krate::value::ValueError::new(#unknown))
                        }
                        other => ::core::result::Result::Err(
                            #krate::value::ValueError::unexpected(#expected, other),
                        ),
                    }
                }
            }
        }
    }

    /// The discriminants as constants, so that they can be patterns. One of a `repr(u64)` may be too large for a
    /// column: that is said at compile time.
    fn constants(&self) -> TokenStream {
        if !self.integer {
            return TokenStream::new();
        }
        let name = &self.name;
        let constants = self
            .variants
            .iter()
            .enumerate()
            .map(|(index, (variant, _))| {
                let constant = constant(index);
                quote! {
                    const #constant: i64 = {
                        assert!(
                            #name::#variant as i128 == #name::#variant as i64 as i128,
                            "SQLite has no unsigned 64-bit integer: the discriminant is too large",
                        );
                        #name::#variant as i64
                    };
                }
            });
        quote!(#(#constants)*)
    }

    /// The values that a CHECK allows, if there is to be one.
    fn one_of(&self) -> TokenStream {
        if !self.check {
            return TokenStream::new();
        }
        let krate = &self.krate;
        let values = self.variants.iter().map(|(variant, name)| {
            if self.integer {
                quote!(Self::#variant as i64)
            } else {
                quote!(#name)
            }
        });
        let of = if self.integer {
            quote!(Integers)
        } else {
            quote!(Texts)
        };
        quote!(const ONE_OF: #krate::value::OneOf = #krate::value::OneOf::#of(&[#(#values),*]);)
    }

    fn encoded(&self, (variant, name): &(Ident, String)) -> TokenStream {
        if self.integer {
            quote!(Self::#variant as i64)
        } else {
            quote!(::std::string::String::from(#name))
        }
    }

    fn stored(&self, index: usize, (_, name): &(Ident, String)) -> TokenStream {
        if self.integer {
            let constant = constant(index);
            quote!(#constant)
        } else {
            let bytes = Literal::byte_string(name.as_bytes());
            quote!(#bytes)
        }
    }
}

fn constant(index: usize) -> Ident {
    format_ident!("DISCRIMINANT_{index}")
}

/// The text that stands for the variant; the variant is checked on the way.
fn stored_name(
    variant: &Variant,
    integer: bool,
    case: Option<Case>,
    errors: &mut Errors,
) -> String {
    let name = variant.ident.unraw().to_string();
    if !matches!(variant.fields, Fields::Unit) {
        errors.push(
            variant,
            format!("a column holds one value: remove the data of `{name}`, or derive `EntityEmbed` instead, or store the enum with #[entity(json)]"),
        );
    }
    if integer && variant.discriminant.is_none() {
        errors.push(
            &variant.ident,
            format!("the stored integer must not depend on the order of variants: write `{name} = 1`, or another number"),
        );
    }
    let settings = Settings::parse(&variant.attrs, Place::Variant, errors);
    let rename = settings.string_or_empty("rename", errors);
    if let Some(rename) = settings.name("rename").filter(|_| integer) {
        errors.push(
            rename,
            "an `integer` enum stores its discriminants: remove `rename`, or `integer` on the enum",
        );
    }
    match (rename, case) {
        (Some(rename), _) => rename,
        (None, Some(case)) => case.of_variant(&name),
        (None, None) => name,
    }
}
