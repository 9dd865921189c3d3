//! A field of an entity: its column, its role, its reference.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    GenericArgument, Ident, LitStr, Path, PathArguments, Type, ext::IdentExt, spanned::Spanned,
};

use crate::{
    entity::index::IndexOptions,
    errors::Errors,
    names::{Case, constant_case, nearest},
    place::Place,
    settings::{Settings, SqlOrRust},
};

/// What a field is to the library, beyond a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Id,
    Version,
    CommitSeq,
    CreatedAt,
    UpdatedAt,
}

impl Role {
    pub(crate) const ALL: [Self; 5] = [
        Self::Id,
        Self::Version,
        Self::CommitSeq,
        Self::CreatedAt,
        Self::UpdatedAt,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Version => "version",
            Self::CommitSeq => "commit_seq",
            Self::CreatedAt => "created_at",
            Self::UpdatedAt => "updated_at",
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
    /// The columns of an embedded struct.
    Embedded(Embed),
}

impl Form {
    /// Of a type that is wrapped, or is not.
    pub(crate) fn of(ty: &Type, wrapper: Option<Wrapper>) -> Self {
        match (wrapper, option_of(ty)) {
            (None, _) => Self::Plain,
            (Some(wrapper), Some(ty)) => Self::OptionalWrapped(wrapper, Box::new(ty.clone())),
            (Some(wrapper), None) => Self::Wrapped(wrapper),
        }
    }

    /// The type of the column, for a field of type `ty`.
    pub(crate) fn column_type(&self, ty: &Type, krate: &Path) -> TokenStream {
        match self {
            Self::Plain | Self::Embedded(_) => quote!(#ty),
            Self::Wrapped(wrapper) => wrapper.of(ty, krate),
            Self::OptionalWrapped(wrapper, of) => {
                let wrapped = wrapper.of(of, krate);
                quote_spanned!(at(ty)=> ::core::option::Option<#wrapped>)
            }
        }
    }
}

/// An embedded struct.
pub(crate) struct Embed {
    /// Its type, without the Option.
    pub(crate) ty: Box<Type>,
    pub(crate) is_optional: bool,
    /// What its columns' names begin with.
    pub(crate) prefix: String,
}

/// A column that the database computes.
pub(crate) struct Generated {
    pub(crate) expression: LitStr,
    pub(crate) stored: bool,
}

/// A field that is no column.
pub(crate) struct Skipped {
    pub(crate) member: Ident,
    ty: Type,
}

impl Skipped {
    /// What it is in an entity that was read.
    pub(crate) fn value(&self) -> TokenStream {
        let ty = &self.ty;
        quote_spanned!(at(ty)=> <#ty as ::core::default::Default>::default())
    }
}

/// What a field turns out to be.
pub(crate) enum Parsed {
    Column(Box<Field>),
    Skipped(Box<Skipped>),
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
    pub(crate) fn parse(settings: &Settings, errors: &mut Errors) -> Option<(Self, &'static str)> {
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

impl Reference {
    /// `Self` by its name, which means the same everywhere.
    pub(crate) fn name_self(&mut self, name: &Ident) {
        if let Some(written) = self.entity.get_ident().filter(|written| *written == "Self") {
            let mut name = name.clone();
            name.set_span(written.span());
            self.entity = name.into();
        }
    }

    /// Whether the database may make it NULL.
    pub(crate) fn sets_null(&self) -> bool {
        self.on_delete == "SetNull" || self.on_update == "SetNull"
    }
}

/// One field.
pub(crate) struct Field {
    pub(crate) member: Ident,
    /// Its name, without `r#`; after that of its variant and a dot if it has one.
    pub(crate) path: String,
    pub(crate) constant: Ident,
    pub(crate) column: String,
    /// Where the column's name stands.
    pub(crate) column_at: TokenStream,
    /// Its type; of a deferred field what it defers.
    pub(crate) ty: Type,
    /// Whether it is a `Deferred` of the type.
    pub(crate) deferred: bool,
    pub(crate) form: Form,
    pub(crate) role: Option<Role>,
    pub(crate) unique: bool,
    pub(crate) index: bool,
    /// An index with more to say than that it is there.
    pub(crate) special_index: Option<IndexOptions>,
    pub(crate) autoincrement: bool,
    pub(crate) collate: Option<LitStr>,
    pub(crate) check: Option<LitStr>,
    pub(crate) default: Option<SqlOrRust>,
    pub(crate) generated: Option<Generated>,
    pub(crate) references: Option<Reference>,
    /// What the relation is called that its reference makes, if it says so.
    pub(crate) relation: Option<Ident>,
}

impl Field {
    /// Reads a field; `None` when its attributes are so wrong that no more can be said about it. `within` is the
    /// variant that it is a field of, in snake case.
    pub(crate) fn parse(
        field: &syn::Field,
        place: Place,
        case: Option<Case>,
        within: Option<&str>,
        errors: &mut Errors,
    ) -> Option<Parsed> {
        let member = field.ident.clone()?;
        let mut found = Errors::default();
        let settings = Settings::parse(&field.attrs, place, &mut found);
        if settings.flag("skip", &mut found) {
            settings.alone("skip", "it is no column", &mut found);
            return errors.take(found.finish(Parsed::Skipped(Box::new(Skipped {
                member,
                ty: field.ty.clone(),
            }))));
        }
        let name = member.unraw().to_string();
        let path = within.map_or_else(|| name.clone(), |variant| format!("{variant}.{name}"));
        let name = within.map_or_else(|| name.clone(), |variant| format!("{variant}_{name}"));
        let written = case.map_or_else(|| name.clone(), |case| case.of_field(&name));
        let column = settings.string("column", &mut found);
        let wrapper = Wrapper::parse(&settings, &mut found);
        let deferred = argument_of(&field.ty, "Deferred");
        let ty = deferred.unwrap_or(&field.ty);
        let parsed = Self {
            constant: Ident::new(
                &constant_case(&name),
                member.span().resolved_at(Span::call_site()),
            ),
            column_at: column
                .as_ref()
                .map_or_else(|| quote!(#member), |text| quote!(#text)),
            form: form(ty, wrapper, &settings, &written, &mut found),
            column: column.map_or(written, |text| text.value()),
            role: role(&settings, &mut found),
            unique: settings.flag("unique", &mut found),
            index: settings.name("index").is_some(),
            special_index: IndexOptions::of_field(&settings, &mut found),
            autoincrement: settings.flag("autoincrement", &mut found),
            collate: settings.string("collate", &mut found),
            check: settings.string("check", &mut found),
            default: settings.sql_or_rust("default", &mut found),
            generated: generated(&settings, &mut found),
            references: reference(&settings, &mut found),
            relation: settings.ident("relation", "buyer", &mut found),
            ty: ty.clone(),
            deferred: deferred.is_some(),
            path,
            member,
        };
        let wrapped = wrapper.map(|(_, name)| name);
        parsed.check_role(&settings, wrapped, &mut found);
        parsed.check_index(&settings, &mut found);
        parsed.check_embedded(&settings, &mut found);
        parsed.check_generated(&settings, &mut found);
        parsed.check_deferred(&field.ty, place, &settings, &mut found);
        if let (Some(name), Some(_)) = (wrapped, &parsed.references) {
            found.push(
                settings.name(name),
                format!("a reference is stored as the key is: remove `{name}`"),
            );
        }
        errors.take(found.finish(Parsed::Column(Box::new(parsed))))
    }

    /// The embedded struct that the field is, if it is one.
    pub(crate) const fn embed(&self) -> Option<&Embed> {
        match &self.form {
            Form::Embedded(embed) => Some(embed),
            _ => None,
        }
    }

    /// What goes into `Column<_, T>`, and whose `ColumnType` is asked.
    pub(crate) fn column_type(&self, krate: &Path) -> TokenStream {
        self.form.column_type(&self.ty, krate)
    }

    fn check_role(&self, settings: &Settings, wrapped: Option<&str>, errors: &mut Errors) {
        let Some(role) = self.role else { return };
        let role_name = role.as_str();
        if let Some(name) = wrapped {
            errors.push(
                settings.name(name),
                format!("`{role_name}` has a type of its own: remove `{name}`"),
            );
        } else if option_of(&self.ty).is_some()
            && !matches!(role, Role::CreatedAt | Role::UpdatedAt)
        {
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

    /// An embedded struct says the rest itself, at its own fields.
    fn check_embedded(&self, settings: &Settings, errors: &mut Errors) {
        if self.embed().is_some() {
            for name in settings.names_but(&["embed", "prefix"]) {
                let message = if Place::EmbeddedField.takes(&name.to_string()) {
                    format!(
                        "`{name}` belongs on a field of the embedded struct: an embedded struct is several columns"
                    )
                } else {
                    format!(
                        "`{name}` is of one column, and an embedded struct is several: remove `{name}`"
                    )
                };
                errors.push(name, message);
            }
        } else if let Some(prefix) = settings.name("prefix") {
            errors.push(
                prefix,
                "`prefix` is of an embedded struct: add `embed`, or use `column` to name the column",
            );
        }
    }

    fn check_generated(&self, settings: &Settings, errors: &mut Errors) {
        if self.generated.is_none() {
            return;
        }
        if let Some(role) = self.role {
            errors.push(
                settings.name("generated"),
                format!(
                    "`{}` is written by the library: remove `generated`",
                    role.as_str()
                ),
            );
        }
        if let Some(default) = settings.name("default") {
            errors.push(
                default,
                "a generated column has no default: remove `default`",
            );
        }
    }

    /// What a save or another row needs is always read.
    fn check_deferred(&self, ty: &Type, place: Place, settings: &Settings, errors: &mut Errors) {
        if !self.deferred {
            return;
        }
        if place != Place::Field {
            errors.push(
                ty,
                "what is embedded is read as a whole: remove `Deferred`, or move the field to the entity",
            );
        }
        let roles = Role::ALL.map(Role::as_str);
        for name in roles
            .into_iter()
            .chain(["references", "generated", "unique", "embed"])
        {
            if let Some(at) = settings.name(name) {
                errors.push(
                    at,
                    format!("a deferred column may not be there when it is needed: remove `Deferred` or `{name}`"),
                );
            }
        }
        if (self.special_index.as_ref()).is_some_and(|index| index.unique) {
            errors.push(
                settings.name("index"),
                "a deferred column may not be there when it is needed: remove `Deferred` or `unique`",
            );
        }
    }

    fn check_index(&self, settings: &Settings, errors: &mut Errors) {
        if self.unique
            && let Some(index) = settings.name("index")
        {
            errors.push(index, "a unique column is indexed already: remove `index`");
        }
    }
}

/// The place of the tokens, for messages; lints still see code that was not written by hand.
pub(crate) fn at(tokens: &impl Spanned) -> Span {
    tokens.span().resolved_at(Span::call_site())
}

/// The same tokens at another place: a message about a type begins where the type's first token is.
pub(crate) fn moved(tokens: impl ToTokens, to: Span) -> TokenStream {
    let tokens = tokens.into_token_stream().into_iter();
    tokens
        .map(|mut token| {
            token.set_span(to);
            token
        })
        .collect()
}

fn form(
    ty: &Type,
    wrapper: Option<(Wrapper, &str)>,
    settings: &Settings,
    name: &str,
    errors: &mut Errors,
) -> Form {
    if settings.flag("embed", errors) {
        let prefix = settings.string_or_empty("prefix", errors);
        return Form::Embedded(Embed {
            ty: Box::new(option_of(ty).unwrap_or(ty).clone()),
            is_optional: option_of(ty).is_some(),
            prefix: prefix.unwrap_or_else(|| format!("{name}_")),
        });
    }
    Form::of(ty, wrapper.map(|(wrapper, _)| wrapper))
}

/// `T` of `Option<T>`, by the look of it: a derive sees names, not types.
pub(crate) fn option_of(ty: &Type) -> Option<&Type> {
    argument_of(ty, "Option")
}

/// `T` of `Name<T>`, by the look of it.
pub(crate) fn argument_of<'t>(ty: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(path) = ty else { return None };
    let last = path
        .path
        .segments
        .last()
        .filter(|last| last.ident == name)?;
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

fn generated(settings: &Settings, errors: &mut Errors) -> Option<Generated> {
    let expression = settings.string("generated", errors);
    let stored = settings.flag("stored", errors);
    if let Some(at) = settings.name("stored")
        && settings.name("generated").is_none()
    {
        errors.push(
            at,
            "`stored` is of a generated column: add `generated = \"...\"`, or remove `stored`",
        );
    }
    Some(Generated {
        expression: expression?,
        stored,
    })
}

/// The reference of a field, or of a foreign key of several columns.
pub(crate) fn reference(settings: &Settings, errors: &mut Errors) -> Option<Reference> {
    let entity = settings.path("references", "Customer", errors);
    let on_delete = action("on_delete", settings, errors);
    let on_update = action("on_update", settings, errors);
    let Some(entity) = entity else {
        if settings.name("references").is_none() {
            for name in ["on_delete", "on_update", "relation"] {
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
        if action == "SetDefault"
            && settings.name("default").is_none()
            && settings.name("columns").is_none()
        {
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
