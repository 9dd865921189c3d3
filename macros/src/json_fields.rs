//! `#[derive(JsonFields)]`: a constant for each field of a struct that serde writes as JSON.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{
    Attribute, DeriveInput, Expr, ExprLit, Ident, Lit, Meta, Path, Token, ext::IdentExt,
    punctuated::Punctuated,
};

use crate::{
    entity::field::{at, option_of},
    errors::Errors,
    named_fields::named_fields,
    names::{Case, constant_case},
    place::Place,
    settings::Settings,
};

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let named = named_fields(
        input,
        "fields of JSON are those of a struct with named fields: ask for others with `path`",
    )?;
    let mut errors = Errors::default();
    errors.refuse_parameters(
        &input.generics,
        "a struct of JSON has no parameters: write one for each type",
    );
    let krate = Settings::parse(&input.attrs, Place::Json, &mut errors).krate(&mut errors);
    let of_struct = Serde::parse(&input.attrs, &mut errors);
    of_struct.refuse(
        "transparent",
        "a transparent struct is written as what it holds: derive `JsonFields` on that",
        &mut errors,
    );
    of_struct.refuse(
        "into",
        "a struct that is written as another type has that one's fields: derive `JsonFields` on it",
        &mut errors,
    );
    let constants: TokenStream = (named.named.iter())
        .filter_map(|field| constant(input, field, &of_struct, &krate, &mut errors))
        .collect();
    let name = &input.ident;
    errors.finish(quote! {
        #[automatically_derived]
        #[allow(dead_code, deprecated, private_interfaces, reason = "offered for every field, used as needed")]
        impl #name {
            #constants
        }

        #[automatically_derived]
        impl #krate::query::JsonPart for #name {
            type Column = #krate::value::Json<Self>;
        }
    })
}

/// The constant of a field, if it has one.
fn constant(
    input: &DeriveInput,
    field: &syn::Field,
    of_struct: &Serde,
    krate: &Path,
    errors: &mut Errors,
) -> Option<TokenStream> {
    let member = field.ident.as_ref()?;
    let serde = Serde::parse(&field.attrs, errors);
    serde.refuse(
        "flatten",
        "the fields of a flattened one stand beside the others, where the compiler does not know them: remove `flatten`, or `JsonFields`",
        errors,
    );
    if [
        "skip",
        "skip_serializing",
        "with",
        "serialize_with",
        "flatten",
    ]
    .into_iter()
    .any(|name| serde.has(name))
    {
        return None;
    }
    let name = member.unraw().to_string();
    let written = match (serde.text("rename"), of_struct.case()) {
        (Some(rename), _) => rename,
        (None, Some(case)) => written_in(case, &name),
        (None, None) => name.clone(),
    };
    let ty = &field.ty;
    let may_be_missing =
        of_struct.has("default") || serde.has("default") || serde.has("skip_serializing_if");
    let part = if may_be_missing && option_of(ty).is_none() {
        quote_spanned!(at(ty)=> ::core::option::Option<#ty>)
    } else {
        quote!(#ty)
    };
    let constant = Ident::new(&constant_case(&name), at(member));
    let (visibility, step) = (&input.vis, step(&written));
    let doc = format!("The field `{written}`.");
    Some(quote! {
        #[doc = #doc]
        #visibility const #constant: #krate::query::JsonField<Self, #part> =
            #krate::query::JsonField::new(#step);
    })
}

/// What stands in `#[serde(...)]`.
struct Serde(Vec<Meta>);

impl Serde {
    fn parse(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let attributes = attributes.iter().filter(|it| it.path().is_ident("serde"));
        let items = attributes.filter_map(|attribute| {
            let parsed = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            errors.take(parsed)
        });
        Self(items.flatten().collect())
    }

    fn find(&self, name: &str) -> Option<&Meta> {
        self.0.iter().find(|item| item.path().is_ident(name))
    }

    fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn refuse(&self, name: &str, why: &str, errors: &mut Errors) {
        if let Some(item) = self.find(name) {
            errors.push(item, why);
        }
    }

    /// `name = "text"`, or that of `name(serialize = "text")`: it is what is written that queries find.
    fn text(&self, name: &str) -> Option<String> {
        match self.find(name)? {
            Meta::List(list) => {
                let items = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
                Self(items.ok()?.into_iter().collect()).text("serialize")
            }
            Meta::NameValue(pair) => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            Meta::Path(_) => None,
        }
    }

    /// How names are written. Of a word that is none serde complains.
    fn case(&self) -> Option<Case> {
        let written = self.text("rename_all")?;
        let mut known = Case::ALL.into_iter();
        known
            .find(|(name, _)| *name == written)
            .map(|(_, case)| case)
    }
}

/// A field's name as serde writes it, to which every field is in snake case, whatever it looks like.
fn written_in(case: Case, name: &str) -> String {
    let pascal = || -> String {
        let words = name.split('_').map(|word| {
            let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            first.to_ascii_uppercase() + rest
        });
        words.collect()
    };
    match case {
        Case::Lower | Case::Snake => name.to_owned(),
        Case::Upper | Case::ScreamingSnake => name.to_ascii_uppercase(),
        Case::Pascal => pascal(),
        Case::Camel => {
            let pascal = pascal();
            let (first, rest) = pascal.split_at(pascal.chars().next().map_or(0, char::len_utf8));
            first.to_ascii_lowercase() + rest
        }
        Case::Kebab => name.replace('_', "-"),
        Case::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
    }
}

/// The step of a path, as one would write it: in quotation marks only if it has to be.
fn step(key: &str) -> String {
    let is_plain = |ch: char| !matches!(ch, '.' | '[' | '"' | '\\') && !ch.is_control();
    if !key.is_empty() && key.chars().all(is_plain) {
        return format!(".{key}");
    }
    let mut quoted = String::from(".\"");
    for ch in key.chars() {
        match ch {
            '"' | '\\' => quoted.extend(['\\', ch]),
            ch if ch.is_ascii_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(ch))),
            ch => quoted.push(ch),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::{step, written_in};
    use crate::names::Case;

    #[test]
    fn fields_are_written_as_serde_writes_them() {
        let written = |name| Case::ALL.map(|(_, case)| written_in(case, name));
        assert_eq!(
            written("main_colour"),
            [
                "main_colour",
                "MAIN_COLOUR",
                "MainColour",
                "mainColour",
                "main_colour",
                "MAIN_COLOUR",
                "main-colour",
                "MAIN-COLOUR"
            ]
        );
        assert_eq!(
            written("oddName_2x")[2..5],
            ["OddName2x", "oddName2x", "oddName_2x"]
        );
    }

    #[test]
    fn only_keys_that_need_it_are_quoted() {
        assert_eq!(step("colour"), ".colour");
        assert_eq!(step("line-height"), ".line-height");
        assert_eq!(step("größe"), ".größe");
        assert_eq!(step("a.b"), r#"."a.b""#);
        assert_eq!(step("a\"b\\"), r#"."a\"b\\""#);
        assert_eq!(step(""), r#"."""#);
    }
}
