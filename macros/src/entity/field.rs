//! A field of an entity: its column, its role, its reference.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    GenericArgument, Ident, LitStr, Path, PathArguments, Type, ext::IdentExt, spanned::Spanned,
};

use crate::{
    errors::Errors,
    names::{constant_case, nearest},
    settings::{Place, Settings},
};

/// What a field is to the library, beyond a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Id,
    Version,
    CommitSeq,
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Id, Self::Version, Self::CommitSeq];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Version => "version",
            Self::CommitSeq => "commit_seq",
        }
    }
}

/// How the field's type becomes a column type.
pub(crate) enum Form {
    /// It is one.
    Plain,
    /// `T` in a wrapper, as `Json<T>`.
    Wrapped(Wrapper),
    /// `Option<T>` as `Option<Json<T>>`; holds `T`.
    OptionalWrapped(Wrapper, Box<Type>),
}

/// The column types for what is none itself: `Json<T>`, `Scaled<T, 2>`, `Padded<T>`.
#[derive(Clone, Copy)]
pub(crate) enum Wrapper {
    Json,
    Scaled(u32),
    Padded,
}

impl Wrapper {
    const NAMES: [&'static str; 3] = ["json", "scale", "padded"];

    /// The wrapped type.
    pub(crate) fn of(self, ty: &Type, krate: &Path) -> TokenStream {
        let krate = moved(krate, at(ty));
        match self {
            Self::Json => quote_spanned!(at(ty)=> #krate::value::Json<#ty>),
            Self::Scaled(scale) => quote_spanned!(at(ty)=> #krate::value::Scaled<#ty, #scale>),
            Self::Padded => quote_spanned!(at(ty)=> #krate::value::Padded<#ty>),
        }
    }

    /// The wrapper alone, for a function of it: what is wrapped is left to inference, whose messages are better.
    pub(crate) fn path(self, krate: &Path) -> TokenStream {
        match self {
            Self::Json => quote!(#krate::value::Json),
            Self::Scaled(scale) => quote!(#krate::value::Scaled::<_, #scale>),
            Self::Padded => quote!(#krate::value::Padded),
        }
    }

    /// The one that is asked for, and the name of its attribute.
    fn parse(settings: &Settings, errors: &mut Errors) -> Option<(Self, &'static str)> {
        let json = settings.flag("json", errors).then_some(Self::Json);
        let scale = settings.integer("scale", 0..=18, errors);
        let padded = settings.flag("padded", errors).then_some(Self::Padded);
        let mut asked = [json, scale.map(Self::Scaled), padded]
            .into_iter()
            .zip(Self::NAMES)
            .filter_map(|(wrapper, name)| Some((wrapper?, name)));
        let first = asked.next()?;
        for (_, other) in asked {
            errors.push(
                settings.name(other),
                format!(
                    "`{}` says how the field is stored already: remove `{other}`",
                    first.1
                ),
            );
        }
        Some(first)
    }
}

/// A foreign key.
pub(crate) struct Reference {
    pub(crate) entity: Path,
    pub(crate) on_delete: Ident,
    pub(crate) on_update: Ident,
}

/// One field.
pub(crate) struct Field {
    pub(crate) member: Ident,
    pub(crate) constant: Ident,
    pub(crate) column: String,
    /// Where the column's name stands.
    pub(crate) column_at: TokenStream,
    pub(crate) ty: Type,
    pub(crate) form: Form,
    pub(crate) role: Option<Role>,
    pub(crate) unique: bool,
    pub(crate) index: bool,
    pub(crate) check: Option<LitStr>,
    pub(crate) default: Option<LitStr>,
    pub(crate) references: Option<Reference>,
}

impl Field {
    /// Reads a field; `None` when its attributes are so wrong that no more can be said about it.
    pub(crate) fn parse(field: &syn::Field, errors: &mut Errors) -> Option<Self> {
        let member = field.ident.clone()?;
        let mut found = Errors::default();
        let settings = Settings::parse(&field.attrs, Place::Field, &mut found);
        let name = member.unraw().to_string();
        let column = settings.string("column", &mut found);
        let wrapper = Wrapper::parse(&settings, &mut found);
        let parsed = Self {
            constant: Ident::new(
                &constant_case(&name),
                member.span().resolved_at(Span::call_site()),
            ),
            column_at: column
                .as_ref()
                .map_or_else(|| quote!(#member), |text| quote!(#text)),
            column: column.map_or(name, |text| text.value()),
            form: form(&field.ty, wrapper.map(|(wrapper, _)| wrapper)),
            role: role(&settings, &mut found),
            unique: settings.flag("unique", &mut found),
            index: settings.flag("index", &mut found),
            check: settings.string("check", &mut found),
            default: settings.string("default", &mut found),
            references: reference(&settings, &mut found),
            ty: field.ty.clone(),
            member,
        };
        let wrapped = wrapper.map(|(_, name)| name);
        parsed.check_role(&settings, wrapped, &mut found);
        parsed.check_index(&settings, &mut found);
        if let (Some(name), Some(_)) = (wrapped, &parsed.references) {
            found.push(
                settings.name(name),
                format!("a reference is stored as the key is: remove `{name}`"),
            );
        }
        errors.take(found.finish(parsed))
    }

    /// What goes into `Column<_, T>`, and whose `ColumnType` is asked.
    pub(crate) fn column_type(&self, krate: &Path) -> TokenStream {
        let ty = &self.ty;
        match &self.form {
            Form::Plain => quote!(#ty),
            Form::Wrapped(wrapper) => wrapper.of(ty, krate),
            Form::OptionalWrapped(wrapper, of) => {
                let wrapped = wrapper.of(of, krate);
                quote_spanned!(at(ty)=> ::core::option::Option<#wrapped>)
            }
        }
    }

    fn check_role(&self, settings: &Settings, wrapped: Option<&str>, errors: &mut Errors) {
        let Some(role) = self.role else { return };
        let role_name = role.as_str();
        if let Some(name) = wrapped {
            errors.push(
                settings.name(name),
                format!("`{role_name}` has a type of its own: remove `{name}`"),
            );
        } else if option_of(&self.ty).is_some() {
            errors.push(
                &self.ty,
                format!("`{role_name}` is never NULL: remove the Option"),
            );
        }
        if role != Role::Id
            && let Some(references) = settings.name("references")
        {
            errors.push(
                references,
                format!("`{role_name}` is kept by the library and refers to nothing: remove `references`"),
            );
        }
    }

    fn check_index(&self, settings: &Settings, errors: &mut Errors) {
        let (redundant, why) = match (self.role, self.unique) {
            (Some(Role::Id), true) => ("unique", "a key is unique already"),
            (Some(Role::Id), false) => ("index", "a key is indexed already"),
            (_, true) => ("index", "a unique column is indexed already"),
            (_, false) => return,
        };
        if let Some(name) = settings.name(redundant) {
            errors.push(name, format!("{why}: remove `{redundant}`"));
        }
    }
}

/// The place of the tokens, for messages; lints still see code that was not written by hand.
pub(crate) fn at(tokens: &impl Spanned) -> Span {
    tokens.span().resolved_at(Span::call_site())
}

/// The same tokens at another place: a message about a type begins where the type's first token is.
fn moved(tokens: impl ToTokens, to: Span) -> TokenStream {
    let tokens = tokens.into_token_stream().into_iter();
    tokens
        .map(|mut token| {
            token.set_span(to);
            token
        })
        .collect()
}

fn form(ty: &Type, wrapper: Option<Wrapper>) -> Form {
    match (wrapper, option_of(ty)) {
        (None, _) => Form::Plain,
        (Some(wrapper), Some(ty)) => Form::OptionalWrapped(wrapper, Box::new(ty.clone())),
        (Some(wrapper), None) => Form::Wrapped(wrapper),
    }
}

/// `T` of `Option<T>`, by the look of it: a derive sees names, not types.
fn option_of(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path
        .path
        .segments
        .last()
        .filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}

fn role(settings: &Settings, errors: &mut Errors) -> Option<Role> {
    let mut roles = Role::ALL
        .into_iter()
        .filter(|role| settings.flag(role.as_str(), errors))
        .collect::<Vec<_>>()
        .into_iter();
    let first = roles.next()?;
    for other in roles {
        errors.push(
            settings.name(other.as_str()),
            format!(
                "`{}` and `{}` are fields of their own: remove one",
                first.as_str(),
                other.as_str()
            ),
        );
    }
    Some(first)
}

fn reference(settings: &Settings, errors: &mut Errors) -> Option<Reference> {
    let entity = settings.path("references", "Customer", errors);
    let on_delete = action("on_delete", settings, errors);
    let on_update = action("on_update", settings, errors);
    let Some(entity) = entity else {
        if settings.name("references").is_none() {
            for name in ["on_delete", "on_update"] {
                if let Some(at) = settings.name(name) {
                    errors.push(
                        at,
                        format!("`{name}` needs a reference: add `references = Customer`, or remove `{name}`"),
                    );
                }
            }
        }
        return None;
    };
    for action in [&on_delete, &on_update] {
        if action == "SetDefault" && settings.name("default").is_none() {
            errors.push(
                action,
                "`SetDefault` needs a default: add `default = \"...\"`, the key to fall back to",
            );
        }
    }
    Some(Reference {
        entity,
        on_delete,
        on_update,
    })
}

fn action(name: &str, settings: &Settings, errors: &mut Errors) -> Ident {
    const ACTIONS: [&str; 5] = ["Cascade", "SetNull", "SetDefault", "Restrict", "NoAction"];
    let none = || Ident::new("NoAction", Span::call_site());
    let Some(path) = settings.path(name, "Cascade", errors) else {
        return none();
    };
    let written = path.to_token_stream().to_string();
    match path.get_ident() {
        Some(action) if ACTIONS.contains(&written.as_str()) => action.clone(),
        _ => {
            let choose = nearest(&written, &ACTIONS).map_or_else(
                || format!("choose one of {}", ACTIONS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            errors.push(
                path,
                format!("`{written}` is no action for `{name}`: {choose}"),
            );
            none()
        }
    }
}
