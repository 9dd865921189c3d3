//! What stands in `#[entity(...)]` and `#[projection(...)]`: a list of `name` and `name = value`.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, Expr, Ident, Lit, LitStr, Meta, Path, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream, Parser},
    punctuated::Punctuated,
    token::Paren,
};

use crate::{errors::Errors, names::Case, place::Place};

/// One item of the list.
struct Setting {
    name: Ident,
    value: Option<SettingValue>,
}

enum SettingValue {
    Literal(Lit),
    Path(Path),
    Expression(Expr),
    Parenthesized(TokenStream),
}

impl Setting {
    /// The value as an expression, if it can be one.
    fn expression(&self) -> Option<TokenStream> {
        match self.value.as_ref()? {
            SettingValue::Literal(literal) => Some(literal.to_token_stream()),
            SettingValue::Path(path) => Some(path.to_token_stream()),
            SettingValue::Expression(expression) => Some(expression.to_token_stream()),
            SettingValue::Parenthesized(_) => None,
        }
    }
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let value = if input.parse::<Option<Token![=]>>()?.is_some() {
            let expression = input
                .parse::<Expr>()
                .map_err(|error| syn::Error::new(error.span(), "expected a literal or a name"))?;
            Some(match ungrouped(expression) {
                Expr::Lit(literal) => SettingValue::Literal(literal.lit),
                Expr::Path(path) if path.qself.is_none() => SettingValue::Path(path.path),
                other => SettingValue::Expression(other),
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

/// Without the group that a `macro_rules!` puts around what it was given.
fn ungrouped(expression: Expr) -> Expr {
    match expression {
        Expr::Group(group) => ungrouped(*group.expr),
        other => other,
    }
}

impl ToTokens for Setting {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.name.to_tokens(tokens);
        match &self.value {
            Some(SettingValue::Literal(literal)) => literal.to_tokens(tokens),
            Some(SettingValue::Path(path)) => path.to_tokens(tokens),
            Some(SettingValue::Expression(expression)) => expression.to_tokens(tokens),
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
        let name = place.attribute();
        for attribute in attributes.iter().filter(|it| it.path().is_ident(name)) {
            for setting in errors.take(items(attribute, name)).unwrap_or_default() {
                add(&mut settings, setting, place, errors);
            }
        }
        Self(settings)
    }

    /// Every `name(...)`, with where it stands and what is in it; a `name` alone has nothing in it.
    pub(crate) fn lists(
        &self,
        name: &str,
        place: Place,
        errors: &mut Errors,
    ) -> Vec<(Ident, Self)> {
        let mut lists = Vec::new();
        for setting in self.0.iter().filter(|setting| setting.name == name) {
            let mut settings = Vec::new();
            match &setting.value {
                None => {}
                Some(SettingValue::Parenthesized(list)) => {
                    let parser = Punctuated::<Setting, Token![,]>::parse_terminated;
                    for setting in errors.take(parser.parse2(list.clone())).unwrap_or_default() {
                        add(&mut settings, setting, place, errors);
                    }
                }
                Some(_) => errors.push(
                    setting,
                    format!("`{name}` takes a list: write `{name}(...)`"),
                ),
            }
            lists.push((setting.name.clone(), Self(settings)));
        }
        lists
    }

    /// Every `name(relation: Entity, ...)`, with the rest of the list.
    pub(crate) fn relations(
        &self,
        name: &str,
        place: Place,
        errors: &mut Errors,
    ) -> Vec<(RelationName, Self)> {
        let example = match place {
            Place::HasOne => "profile: Profile",
            _ => "lines: OrderLine",
        };
        let mut relations = Vec::new();
        for setting in self.0.iter().filter(|setting| setting.name == name) {
            let Some(SettingValue::Parenthesized(list)) = &setting.value else {
                errors.push(
                    setting,
                    format!("`{name}` takes a name and an entity: write `{name}({example})`"),
                );
                continue;
            };
            let Ok((relation, rest)) = split_relation.parse2(list.clone()) else {
                errors.push(
                    setting,
                    format!("`{name}` begins with a name and an entity: write `{name}({example})`"),
                );
                continue;
            };
            let mut settings = Vec::new();
            let parser = Punctuated::<Setting, Token![,]>::parse_terminated;
            for setting in errors.take(parser.parse2(rest)).unwrap_or_default() {
                add(&mut settings, setting, place, errors);
            }
            relations.push((relation, Self(settings)));
        }
        relations
    }

    /// Every `name(one = path, another = path)`.
    pub(crate) fn named_paths(&self, name: &str, errors: &mut Errors) -> Vec<(Ident, Path)> {
        let mut paths = Vec::new();
        for setting in self.0.iter().filter(|setting| setting.name == name) {
            let parser = Punctuated::<Setting, Token![,]>::parse_terminated;
            let list = match &setting.value {
                Some(SettingValue::Parenthesized(list)) => parser.parse2(list.clone()).ok(),
                _ => None,
            };
            let named = list.and_then(|list| {
                let named = list.into_iter().map(|it| match it.value {
                    Some(SettingValue::Path(path)) => Some((it.name, path)),
                    _ => None,
                });
                named.collect::<Option<Vec<_>>>()
            });
            match named {
                Some(named) if !named.is_empty() => paths.extend(named),
                _ => errors.push(
                    setting,
                    format!(
                        "`{name}` takes a name and a function: write `{name}(live = Order::live)`"
                    ),
                ),
            }
        }
        paths
    }

    /// `name(a, b.c)`: fields, and paths to fields of embedded structs.
    pub(crate) fn fields(&self, name: &str, errors: &mut Errors) -> Option<Vec<FieldPath>> {
        let setting = self.find(name)?;
        let Some(SettingValue::Parenthesized(list)) = &setting.value else {
            errors.push(
                setting,
                format!("`{name}` takes a list of fields: write `{name}(one, another)`"),
            );
            return None;
        };
        let parser = Punctuated::<FieldPath, Token![,]>::parse_terminated;
        let Ok(fields) = parser.parse2(list.clone()) else {
            errors.push(
                setting,
                format!("`{name}` takes fields, without quotes: write `{name}(one, another)`"),
            );
            return None;
        };
        if fields.is_empty() {
            errors.push(setting, format!("`{name}` is empty: name its fields"));
        }
        Some(fields.into_iter().collect())
    }

    /// `name = "text"` as SQL, or any other expression as Rust.
    pub(crate) fn sql_or_rust(&self, name: &str, errors: &mut Errors) -> Option<SqlOrRust> {
        let setting = self.find(name)?;
        if let Some(SettingValue::Literal(Lit::Str(_))) = &setting.value {
            return self.string(name, errors).map(SqlOrRust::Sql);
        }
        let expression = setting.expression();
        if expression.is_none() {
            errors.push(
                setting,
                format!("`{name}` takes SQL as a text, or a Rust expression: write `{name} = \"0\"` or `{name} = Status::New`"),
            );
        }
        expression.map(SqlOrRust::Rust)
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

    /// `name = "text"`, which may be empty.
    pub(crate) fn string_or_empty(&self, name: &str, errors: &mut Errors) -> Option<String> {
        match &self.find(name)?.value {
            Some(SettingValue::Literal(Lit::Str(text))) if text.value().is_empty() => {
                Some(String::new())
            }
            _ => self.string(name, errors).map(|text| text.value()),
        }
    }

    /// The names of all items but these.
    pub(crate) fn names_but(&self, known: &[&str]) -> impl Iterator<Item = &Ident> {
        (self.0.iter().map(|setting| &setting.name))
            .filter(|name| !known.iter().any(|known| *name == known))
    }

    /// The item is the only one.
    pub(crate) fn alone(&self, name: &str, why: &str, errors: &mut Errors) {
        for other in self.names_but(&[name]) {
            errors.push(
                other,
                format!("`{name}` stands alone, since {why}: remove `{other}`"),
            );
        }
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

    /// `name = one_word`; `example` is what could stand there.
    pub(crate) fn ident(&self, name: &str, example: &str, errors: &mut Errors) -> Option<Ident> {
        let path = self.path(name, example, errors)?;
        let ident = path.get_ident().cloned();
        if ident.is_none() {
            errors.push(
                path,
                format!("`{name}` takes one word: write `{name} = {example}`"),
            );
        }
        ident
    }

    /// `name = an + expression`.
    pub(crate) fn expression(
        &self,
        name: &str,
        example: &str,
        errors: &mut Errors,
    ) -> Option<TokenStream> {
        let setting = self.find(name)?;
        let expression = setting.expression();
        if expression.is_none() {
            errors.push(
                setting,
                format!("`{name}` takes an expression: write `{name} = {example}`"),
            );
        }
        expression
    }

    /// `rename_all = "camelCase"`.
    pub(crate) fn case(&self, errors: &mut Errors) -> Option<Case> {
        let text = self.string("rename_all", errors)?;
        let value = text.value();
        let known = Case::ALL.iter().find(|(name, _)| *name == value);
        if known.is_none() {
            let names = Case::ALL.map(|(name, _)| name).join(", ");
            errors.push(
                &text,
                format!("`{value}` is no way to write names: choose one of {names}"),
            );
        }
        known.map(|(_, case)| *case)
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

/// A field, or the path to one in embedded structs: `address.city`.
pub(crate) struct FieldPath {
    pub(crate) field: Ident,
    /// The rest of the path; empty for a field of the entity itself.
    pub(crate) inner: String,
}

impl Parse for FieldPath {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let field = input.call(Ident::parse_any)?;
        let mut inner = Vec::new();
        while input.parse::<Option<Token![.]>>()?.is_some() {
            inner.push(input.call(Ident::parse_any)?.unraw().to_string());
        }
        Ok(Self {
            field,
            inner: inner.join("."),
        })
    }
}

/// `lines: OrderLine`, with which a relation begins.
pub(crate) struct RelationName {
    pub(crate) name: Ident,
    pub(crate) entity: Path,
}

fn split_relation(input: ParseStream<'_>) -> syn::Result<(RelationName, TokenStream)> {
    let name = input.call(Ident::parse_any)?;
    input.parse::<Token![:]>()?;
    let entity = input.parse()?;
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok((RelationName { name, entity }, input.parse()?))
}

/// What can be written as SQL or in Rust.
pub(crate) enum SqlOrRust {
    Sql(LitStr),
    Rust(TokenStream),
}

fn add(settings: &mut Vec<Setting>, setting: Setting, place: Place, errors: &mut Errors) {
    let name = setting.name.to_string();
    if !place.takes(&name) {
        errors.push(&setting.name, place.unknown(&name));
    } else if !place.may_repeat(&name) && settings.iter().any(|it| it.name == name) {
        errors.push(
            &setting.name,
            format!("`{name}` is given twice: remove one"),
        );
    } else {
        settings.push(setting);
    }
}

fn items(attribute: &Attribute, name: &str) -> syn::Result<Punctuated<Setting, Token![,]>> {
    match &attribute.meta {
        Meta::List(list) => list.parse_args_with(Punctuated::parse_terminated),
        other => Err(syn::Error::new_spanned(
            other,
            format!("write `#[{name}(...)]`"),
        )),
    }
}
