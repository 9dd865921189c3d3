//! What stands in `#[entity(...)]`: a list of `name` and `name = value`.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, Ident, Lit, LitStr, Meta, Path, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    token::Paren,
};

use crate::{errors::Errors, names::nearest};

/// Where an attribute stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Struct,
    Field,
    Enum,
    Variant,
}

impl Place {
    /// The attributes that are known here.
    const fn known(self) -> &'static [&'static str] {
        match self {
            Self::Struct => &["table", "strict", "check", "crate"],
            Self::Field => &[
                "id",
                "column",
                "json",
                "scale",
                "padded",
                "version",
                "commit_seq",
                "unique",
                "index",
                "check",
                "default",
                "references",
                "on_delete",
                "on_update",
            ],
            Self::Enum => &["integer", "crate"],
            Self::Variant => &["rename"],
        }
    }

    fn may_repeat(self, name: &str) -> bool {
        self == Self::Struct && name == "check"
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Struct => "a struct",
            Self::Field => "a field",
            Self::Enum => "an enum",
            Self::Variant => "a variant",
        }
    }

    /// The place that a derive of this place also has, for an attribute that was put on the wrong one.
    const fn counterpart(self) -> Self {
        match self {
            Self::Struct => Self::Field,
            Self::Field => Self::Struct,
            Self::Enum => Self::Variant,
            Self::Variant => Self::Enum,
        }
    }
}

/// One item of the list.
struct Setting {
    name: Ident,
    value: Option<SettingValue>,
}

enum SettingValue {
    Literal(Lit),
    Path(Path),
    Parenthesized(TokenStream),
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let value = if input.parse::<Option<Token![=]>>()?.is_some() {
            Some(if input.peek(Lit) {
                SettingValue::Literal(input.parse()?)
            } else {
                SettingValue::Path(Path::parse_mod_style(input).map_err(|error| {
                    syn::Error::new(error.span(), "expected a literal or a name")
                })?)
            })
        } else if input.peek(Paren) {
            let list;
            syn::parenthesized!(list in input);
            Some(SettingValue::Parenthesized(list.parse()?))
        } else {
            None
        };
        Ok(Self { name, value })
    }
}

impl ToTokens for Setting {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.name.to_tokens(tokens);
        match &self.value {
            Some(SettingValue::Literal(literal)) => literal.to_tokens(tokens),
            Some(SettingValue::Path(path)) => path.to_tokens(tokens),
            Some(SettingValue::Parenthesized(list)) => list.to_tokens(tokens),
            None => {}
        }
    }
}

/// All items on one struct, field, enum or variant; each is known there.
pub(crate) struct Settings(Vec<Setting>);

impl Settings {
    /// Reads the attributes; unknown, misplaced and repeated ones are mistakes.
    pub(crate) fn parse(attributes: &[Attribute], place: Place, errors: &mut Errors) -> Self {
        let mut settings: Vec<Setting> = Vec::new();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("entity")) {
            for setting in errors.take(items(attribute)).unwrap_or_default() {
                let name = setting.name.to_string();
                if !place.known().contains(&name.as_str()) {
                    errors.push(&setting.name, unknown(&name, place));
                } else if !place.may_repeat(&name) && settings.iter().any(|it| it.name == name) {
                    errors.push(
                        &setting.name,
                        format!("`{name}` is given twice: remove one"),
                    );
                } else {
                    settings.push(setting);
                }
            }
        }
        Self(settings)
    }

    /// The name as written, if the item is there: where to show a mistake.
    pub(crate) fn name(&self, name: &str) -> Option<&Ident> {
        self.find(name).map(|setting| &setting.name)
    }

    /// An item without a value: whether it is there.
    pub(crate) fn flag(&self, name: &str, errors: &mut Errors) -> bool {
        if let Some(setting) = self.find(name)
            && setting.value.is_some()
        {
            errors.push(
                setting,
                format!("`{name}` takes no value: write `{name}` alone"),
            );
        }
        self.find(name).is_some()
    }

    /// `name = true` or `name = false`.
    pub(crate) fn boolean(&self, name: &str, errors: &mut Errors) -> Option<bool> {
        let setting = self.find(name)?;
        match &setting.value {
            Some(SettingValue::Literal(Lit::Bool(literal))) => Some(literal.value),
            _ => {
                errors.push(
                    setting,
                    format!("write `{name} = true` or `{name} = false`"),
                );
                None
            }
        }
    }

    /// `name = 2`, within the range.
    pub(crate) fn integer(
        &self,
        name: &str,
        range: RangeInclusive<u32>,
        errors: &mut Errors,
    ) -> Option<u32> {
        let setting = self.find(name)?;
        let given = match &setting.value {
            Some(SettingValue::Literal(Lit::Int(literal))) => literal.base10_parse().ok(),
            _ => None,
        };
        let given = given.filter(|given| range.contains(given));
        if given.is_none() {
            let (least, most) = range.into_inner();
            errors.push(
                setting,
                format!("`{name}` takes a number from {least} to {most}: write `{name} = 2`"),
            );
        }
        given
    }

    /// `name = "text"`, not empty.
    pub(crate) fn string(&self, name: &str, errors: &mut Errors) -> Option<LitStr> {
        self.strings(name, errors).into_iter().next()
    }

    /// Every `name = "text"`, none of them empty.
    pub(crate) fn strings(&self, name: &str, errors: &mut Errors) -> Vec<LitStr> {
        let mut strings = Vec::new();
        for setting in self.0.iter().filter(|setting| setting.name == name) {
            match &setting.value {
                Some(SettingValue::Literal(Lit::Str(text))) if text.value().trim().is_empty() => {
                    errors.push(
                        text,
                        format!("`{name}` is empty: write a text, or leave `{name}` out"),
                    );
                }
                Some(SettingValue::Literal(Lit::Str(text))) if text.value().contains('\0') => {
                    errors.push(
                        text,
                        format!("`{name}` contains a NUL character: SQLite would cut it"),
                    );
                }
                Some(SettingValue::Literal(Lit::Str(text))) => strings.push(text.clone()),
                _ => errors.push(
                    setting,
                    format!("`{name}` takes a text: write `{name} = \"...\"`"),
                ),
            }
        }
        strings
    }

    /// `name = SomeName`; `example` is what could stand there.
    pub(crate) fn path(&self, name: &str, example: &str, errors: &mut Errors) -> Option<Path> {
        let setting = self.find(name)?;
        match &setting.value {
            Some(SettingValue::Path(path)) => Some(path.clone()),
            _ => {
                errors.push(
                    setting,
                    format!("`{name}` takes a name: write `{name} = {example}`"),
                );
                None
            }
        }
    }

    /// The path of the crate `anabranch`, as the generated code names it.
    pub(crate) fn krate(&self, errors: &mut Errors) -> Path {
        self.string("crate", errors)
            .and_then(|text| errors.take(text.parse_with(Path::parse_mod_style)))
            .unwrap_or_else(|| syn::parse_quote!(::anabranch))
    }

    fn find(&self, name: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.name == name)
    }
}

fn items(attribute: &Attribute) -> syn::Result<Punctuated<Setting, Token![,]>> {
    match &attribute.meta {
        Meta::List(list) => list.parse_args_with(Punctuated::parse_terminated),
        other => Err(syn::Error::new_spanned(other, "write `#[entity(...)]`")),
    }
}

fn unknown(name: &str, place: Place) -> String {
    let known = place.known();
    if place.counterpart().known().contains(&name) {
        return format!(
            "`{name}` belongs on {}, not on {}",
            place.counterpart().as_str(),
            place.as_str()
        );
    }
    if let Some(near) = nearest(name, known) {
        return format!("unknown attribute `{name}`: did you mean `{near}`?");
    }
    format!(
        "unknown attribute `{name}`: {} takes {}",
        place.as_str(),
        known
            .iter()
            .map(|known| format!("`{known}`"))
            .collect::<Vec<_>>()
            .join(", ")
    )
}
