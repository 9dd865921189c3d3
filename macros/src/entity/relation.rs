//! Relations between entities: a constant for each, and by which field an entity refers to another.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Ident, Path, Visibility, ext::IdentExt};

use crate::{
    entity::{
        columns::Columns,
        field::{Field, at, moved, option_of},
        index::ForeignKey,
    },
    errors::Errors,
    names::constant_case,
    place::Place,
    settings::{FieldPath, Settings},
};

/// A relation that has a constant.
pub(crate) struct Relation {
    /// What it is called, or the field that it is called after.
    name: Ident,
    /// Whether nobody wrote the name down.
    is_implied: bool,
    constant: Ident,
    entity: Path,
    end: End,
}

/// What is at the other end, and how it is found.
enum End {
    /// The entity that this one refers to, by the column at this position.
    Parent { by: TokenStream, is_optional: bool },
    /// The only entity that refers to this one; by this field, if more than one could.
    Child(Option<Ident>),
    /// All that refer to this one.
    Children(Option<Ident>),
    /// All that another entity connects with this one; by this field it refers to this one, and by that to them.
    Through(Path, Option<Ident>, Option<Ident>),
}

impl Relation {
    /// Those that references make, and those on the struct.
    pub(crate) fn parse_all(
        settings: &Settings,
        columns: &Columns,
        foreign_keys: &[ForeignKey],
        krate: &Path,
        errors: &mut Errors,
    ) -> Vec<Self> {
        let parents = (columns.fields.iter().enumerate())
            .filter_map(|(index, field)| Self::of_field(field, columns.position(index)));
        let composite = (foreign_keys.iter()).filter_map(|key| {
            let by = columns.position_of(distinct_column(key, columns, foreign_keys)?, krate);
            let mut fields = key
                .columns
                .iter()
                .filter_map(|path| columns.find(&path.field));
            let is_optional = fields.any(|(_, field)| option_of(&field.ty).is_some());
            let entity = key.reference.entity.clone();
            let end = End::Parent { by, is_optional };
            Some(Self::named(key.relation.clone()?, entity, end))
        });
        let mut relations: Vec<_> = parents.chain(composite).collect();
        for (relation, rest) in settings.relations("has_one", Place::HasOne, errors) {
            let end = End::Child(rest.ident("by", "order_id", errors));
            relations.push(Self::named(relation.name, relation.entity, end));
        }
        for (relation, rest) in settings.relations("has_many", Place::HasMany, errors) {
            let end = many(&rest, errors);
            relations.push(Self::named(relation.name, relation.entity, end));
        }
        check_names(&relations, &columns.fields, errors);
        relations
    }

    fn named(name: Ident, entity: Path, end: End) -> Self {
        Self {
            is_implied: false,
            constant: constant(&name, &constant_case(&name.unraw().to_string())),
            name,
            entity,
            end,
        }
    }

    /// That of a reference of one field; called after the field if its name says so.
    fn of_field(field: &Field, by: TokenStream) -> Option<Self> {
        let entity = field.references.as_ref()?.entity.clone();
        let is_optional = option_of(&field.ty).is_some();
        let end = End::Parent { by, is_optional };
        if let Some(name) = &field.relation {
            return Some(Self::named(name.clone(), entity, end));
        }
        let column = field.constant.to_string();
        let name = column.strip_suffix("_ID")?;
        if name.trim_matches('_').is_empty() {
            return None;
        }
        Some(Self {
            name: field.member.clone(),
            is_implied: true,
            constant: constant(&field.member, name),
            entity,
            end,
        })
    }

    /// The constant.
    pub(crate) fn definition(&self, krate: &Path, visibility: &Visibility) -> TokenStream {
        let (constant, entity) = (&self.constant, &self.entity);
        let span = at(entity);
        let relation = quote_spanned!(span=> #krate::query::Relation);
        let many = quote_spanned!(span=> ::std::vec::Vec<#entity>);
        let optional = quote_spanned!(span=> ::core::option::Option<#entity>);
        let (other, kind, made) = match &self.end {
            End::Parent { by, is_optional } => {
                let other = if *is_optional {
                    optional
                } else {
                    quote!(#entity)
                };
                (other, None, quote_spanned!(span=> belongs_to(#by)))
            }
            End::Child(by) => {
                let by = position(entity, &quote!(Self), by.as_ref(), krate);
                (optional, None, quote_spanned!(span=> has(#by)))
            }
            End::Children(by) => {
                let by = position(entity, &quote!(Self), by.as_ref(), krate);
                (many, None, quote_spanned!(span=> has(#by)))
            }
            End::Through(join, by, to) => {
                let by = position(join, &quote!(Self), by.as_ref(), krate);
                let to = position(join, &quote!(#entity), to.as_ref(), krate);
                (
                    many,
                    Some(quote!(, #join)),
                    quote_spanned!(span=> through(#by, #to)),
                )
            }
        };
        let doc = self.doc();
        quote! {
            #[doc = #doc]
            #visibility const #constant: #krate::query::Relation<Self, #other #kind> =
                #relation::<Self, #other #kind>::#made;
        }
    }

    fn doc(&self) -> String {
        let entity = written(&self.entity);
        match &self.end {
            End::Parent { .. } if self.is_implied => {
                format!("The `{entity}` that `{}` refers to.", self.name)
            }
            End::Parent { .. } => format!("The `{entity}` that it refers to as `{}`.", self.name),
            End::Child(_) => format!("The `{entity}` that refers to it."),
            End::Children(_) => format!("Every `{entity}` that refers to it."),
            End::Through(join, ..) => {
                format!(
                    "Every `{entity}` that a `{}` connects with it.",
                    written(join)
                )
            }
        }
    }
}

/// `has_many(...)` after the other entity.
fn many(rest: &Settings, errors: &mut Errors) -> End {
    let by = rest.ident("by", "order_id", errors);
    let to = rest.ident("to", "tag_id", errors);
    if let Some(join) = rest.path("through", "PostTag", errors) {
        return End::Through(join, by, to);
    }
    if let Some(at) = rest.name("to")
        && rest.name("through").is_none()
    {
        errors.push(
            at,
            "`to` is a field of the entity that stands between two others: add `through = PostTag`, or remove `to`",
        );
    }
    End::Children(by)
}

/// The position of the column by which an entity refers to another: of a field that is named, or of the only one.
fn position(
    entity: &Path,
    referred: &TokenStream,
    by: Option<&Ident>,
    krate: &Path,
) -> TokenStream {
    let Some(by) = by else {
        return quote_spanned!(at(entity)=> <#entity as #krate::entity::References<#referred>>::BY);
    };
    let constant = constant(by, &constant_case(&by.unraw().to_string()));
    let (entity, krate) = (moved(entity, at(by)), moved(krate, at(by)));
    let column =
        quote_spanned!(at(by)=> #krate::entity::Column::<#entity, _>::index(<#entity>::#constant));
    quote_spanned! {at(by)=>
        <#entity as #krate::entity::demand::ReferencesBy<#referred, { #column }>>::BY
    }
}

/// By what an entity refers to others: `impl References` for each that one reference names and no other, and
/// `impl ReferencesBy` for each of the columns, unless it is in several references to one entity.
pub(crate) fn references(
    name: &Ident,
    columns: &Columns,
    foreign_keys: &[ForeignKey],
    krate: &Path,
) -> TokenStream {
    let mut all = Vec::new();
    let mut by_column = Vec::new();
    for (index, field) in columns.fields.iter().enumerate() {
        if let Some(reference) = &field.references {
            let to = (called(&reference.entity), &reference.entity);
            all.push((to.clone(), columns.position(index)));
            by_column.push(((to.0, index), to.1));
        }
    }
    for key in foreign_keys {
        let to = (called(&key.reference.entity), &key.reference.entity);
        if let Some(path) = distinct_column(key, columns, foreign_keys) {
            all.push((to.clone(), columns.position_of(path, krate)));
        }
        for path in key.columns.iter().filter(|path| path.inner.is_empty()) {
            if let Some((index, _)) = columns.find(&path.field) {
                by_column.push(((to.0.clone(), index), to.1));
            }
        }
    }
    let is_only = |to: &str| {
        all.iter()
            .filter(|((other, _), _)| other == to)
            .nth(1)
            .is_none()
    };
    let references = all
        .iter()
        .filter(|((to, _), _)| is_only(to))
        .map(|((_, entity), by)| {
            let references = quote_spanned!(at(entity)=> #krate::entity::References<#entity>);
            implementation(&references, name, &quote!(const BY: usize = #by;))
        });
    let is_only = |one| {
        by_column
            .iter()
            .filter(|(other, _)| other == one)
            .nth(1)
            .is_none()
    };
    let by_column = by_column
        .iter()
        .filter(|(one, _)| is_only(one))
        .map(|((_, index), entity)| {
            let by = columns.position(*index);
            let references = quote_spanned! {at(entity)=>
                #krate::entity::demand::ReferencesBy<#entity, { #by }>
            };
            implementation(&references, name, &TokenStream::new())
        });
    references.chain(by_column).collect()
}

/// What tells entities apart: two paths that end in one name may lead to one entity.
fn called(entity: &Path) -> String {
    let last = entity.segments.last();
    last.map_or_else(String::new, |last| last.ident.unraw().to_string())
}

fn implementation(of: &TokenStream, name: &Ident, items: &TokenStream) -> TokenStream {
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(deprecated, reason = "a deprecated entity is still referred to")]
        impl #of for #name {
            #items
        }
    }
}

/// Of the columns of a foreign key one that is in no other, if there is such: by it the foreign key is found.
fn distinct_column<'k>(
    key: &'k ForeignKey,
    columns: &Columns,
    foreign_keys: &[ForeignKey],
) -> Option<&'k FieldPath> {
    let is_same =
        |one: &FieldPath, other: &FieldPath| one.field == other.field && one.inner == other.inner;
    let is_distinct = |path: &FieldPath| {
        let keys = foreign_keys.iter().flat_map(|key| &key.columns);
        let refers = |(_, field): (usize, &Field)| field.references.is_some();
        keys.filter(|other| is_same(path, other)).count() == 1
            && !columns.find(&path.field).is_some_and(refers)
    };
    (key.columns.iter().find(|path| is_distinct(path))).or_else(|| key.columns.first())
}

/// A relation has a name of its own, among columns and relations.
fn check_names(relations: &[Relation], fields: &[Field], errors: &mut Errors) {
    for (index, relation) in relations.iter().enumerate() {
        let constant = &relation.constant;
        let column = fields.iter().find(|field| field.constant == *constant);
        let earlier = relations[..index]
            .iter()
            .find(|it| it.constant == *constant);
        let owner = match (column, earlier) {
            (Some(field), _) => format!("the column `{}`", field.path),
            (None, Some(earlier)) if earlier.is_implied => {
                format!("the relation of `{}`", earlier.name)
            }
            (None, Some(_)) => "another relation".to_owned(),
            (None, None) => continue,
        };
        let instead = if relation.is_implied {
            "say what the relation is called, with `relation = another_name`"
        } else {
            "choose another name"
        };
        errors.push(
            &relation.name,
            format!("the constant `{constant}` belongs to {owner} already: {instead}"),
        );
    }
}

fn constant(name: &Ident, text: &str) -> Ident {
    Ident::new(text, name.span().resolved_at(Span::call_site()))
}

/// A path as one writes it.
fn written(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}
