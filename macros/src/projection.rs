//! `#[derive(Projection)]`: a struct that is read from part of an entity, and from what belongs to it.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{DeriveInput, Ident, Index, Path, Type, ext::IdentExt};

use crate::{
    entity::field::{Form, Wrapper, argument_of, at, option_of},
    errors::Errors,
    named_fields::named_fields,
    names::constant_case,
    place::Place,
    settings::Settings,
};

/// A selection is a tuple of at most so many.
const LARGEST_TUPLE: usize = 8;

/// A field, and what it is read from.
struct Part {
    member: Ident,
    ty: Type,
    form: Form,
    source: Source,
}

/// What a field is read from.
enum Source {
    /// The column of its name.
    Column,
    /// An expression of the entity.
    Expression(TokenStream),
    /// A relation, whose entities are read as other projections.
    Nested(TokenStream),
}

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let named = named_fields(
        input,
        "a projection is a struct with named fields: each is read from a column, an expression or a relation",
    )?;
    let mut errors = Errors::default();
    errors.refuse_parameters(
        &input.generics,
        "a projection has no parameters: write a struct for each type",
    );
    if named.named.is_empty() {
        errors.push(
            &input.ident,
            "a projection without fields reads nothing: add one",
        );
    }
    let settings = Settings::parse(&input.attrs, Place::Projection, &mut errors);
    let entity = settings.path("entity", "Order", &mut errors);
    if settings.name("entity").is_none() {
        errors.push(
            &input.ident,
            "say which entity it is read from: write #[projection(entity = Order)] on the struct",
        );
    }
    let krate = settings.krate(&mut errors);
    let fields = named.named.iter();
    let parts = fields
        .filter_map(|field| Part::parse(field, &mut errors))
        .collect::<Vec<_>>();
    let expanded = entity.map(|entity| expand(input, &entity, &parts, &krate));
    errors.finish(expanded.unwrap_or_default())
}

impl Part {
    fn parse(field: &syn::Field, errors: &mut Errors) -> Option<Self> {
        let settings = Settings::parse(&field.attrs, Place::ProjectionField, errors);
        let wrapper = Wrapper::parse(&settings, errors);
        let from = settings.expression("from", "Order::ITEM", errors);
        let nested = settings.expression("nested", "Order::LINES", errors);
        if let Some(at) = settings.name("nested") {
            if settings.name("from").is_some() {
                errors.push(
                    at,
                    "a field is read from an expression or from a relation: remove `from` or `nested`",
                );
            }
            if let Some((_, name)) = wrapper {
                errors.push(
                    settings.name(name),
                    format!("`{name}` says how a column is stored, and a relation is none: remove `{name}`"),
                );
            }
        }
        Some(Self {
            member: field.ident.clone()?,
            ty: field.ty.clone(),
            form: Form::of(&field.ty, wrapper.map(|(wrapper, _)| wrapper)),
            source: match (from, nested) {
                (_, Some(nested)) => Source::Nested(nested),
                (Some(from), None) => Source::Expression(from),
                (None, None) => Source::Column,
            },
        })
    }

    /// What is selected for it.
    fn selection(&self, entity: &Path, krate: &Path) -> TokenStream {
        let (member, ty) = (&self.member, self.form.column_type(&self.ty, krate));
        let selected = match &self.source {
            Source::Column => {
                let text = constant_case(&member.unraw().to_string());
                let constant = Ident::new(&text, at(member));
                quote_spanned!(at(member)=> <#entity>::#constant)
            }
            Source::Expression(expression) => expression.clone(),
            Source::Nested(relation) => {
                let element = argument_of(&self.ty, "Vec").or_else(|| option_of(&self.ty));
                let element = element.unwrap_or(&self.ty);
                quote_spanned!(at(element)=> (#relation).project::<#element>())
            }
        };
        quote_spanned!(at(&self.ty)=> __selected::<#ty, _>(#selected))
    }

    /// The field's value, made from what was read.
    fn value(&self, read: &TokenStream) -> TokenStream {
        match self.form {
            Form::Plain | Form::Embedded(_) => read.clone(),
            Form::Wrapped(_) => quote!(#read.0),
            Form::OptionalWrapped(..) => {
                quote!(::core::option::Option::map(#read, |wrapped| wrapped.0))
            }
        }
    }
}

fn expand(input: &DeriveInput, entity: &Path, parts: &[Part], krate: &Path) -> TokenStream {
    let name = &input.ident;
    let types = parts
        .iter()
        .map(|part| part.form.column_type(&part.ty, krate));
    let types = nested_tuple(types.collect());
    let selection = nested_tuple(
        parts
            .iter()
            .map(|part| part.selection(entity, krate))
            .collect(),
    );
    let members = parts.iter().map(|part| &part.member);
    let values = (parts.iter().zip(places(parts.len()))).map(|(part, place)| part.value(&place));
    quote! {
        #[automatically_derived]
        #[allow(deprecated, private_interfaces, reason = "a deprecated field is still read")]
        impl #krate::query::Projection for #name {
            type Entity = #entity;

            fn selection() -> impl #krate::query::Selection<Self::Entity, Output = Self> {
                // So that the compiler says of which field the type is wrong.
                fn __selected<__Type, __Selection>(selection: __Selection) -> __Selection
                where
                    __Selection: #krate::query::Selection<#entity, Output = __Type>,
                {
                    selection
                }
                struct __Make;
                impl #krate::query::Make<#types> for __Make {
                    type Made = #name;

                    fn make(parts: #types) -> #name {
                        #name { #(#members: #values,)* }
                    }
                }
                #krate::query::made::<#entity, _, __Make>(#selection)
            }
        }
    }
}

/// A tuple, whose elements are tuples if there are too many for one.
fn nested_tuple(mut items: Vec<TokenStream>) -> TokenStream {
    while items.len() > LARGEST_TUPLE {
        let tuples = items
            .chunks(LARGEST_TUPLE)
            .map(|items| quote!((#(#items,)*)));
        items = tuples.collect();
    }
    quote!((#(#items,)*))
}

/// Where the elements are in such a tuple, named `parts`.
fn places(count: usize) -> Vec<TokenStream> {
    let mut places: Vec<TokenStream> = vec![TokenStream::new(); count];
    let mut width = 1;
    while count.div_ceil(width) > LARGEST_TUPLE {
        for (index, place) in places.iter_mut().enumerate() {
            let inner = unsuffixed(index / width % LARGEST_TUPLE);
            *place = quote!(.#inner #place);
        }
        width *= LARGEST_TUPLE;
    }
    (places.iter().enumerate())
        .map(|(index, place)| {
            let outer = unsuffixed(index / width);
            quote!(parts.#outer #place)
        })
        .collect()
}

fn unsuffixed(index: usize) -> Index {
    Index {
        index: u32::try_from(index).unwrap_or(u32::MAX),
        span: Span::call_site(),
    }
}

#[cfg(test)]
mod tests {
    use quote::{format_ident, quote};

    use super::{nested_tuple, places};

    /// What is at each place is what was put there.
    #[test]
    fn fields_are_found_again_in_nested_tuples() {
        for (count, first, last) in [
            (1, "parts . 0", "parts . 0"),
            (8, "parts . 0", "parts . 7"),
            (9, "parts . 0 . 0", "parts . 1 . 0"),
            (64, "parts . 0 . 0", "parts . 7 . 7"),
            (65, "parts . 0 . 0 . 0", "parts . 1 . 0 . 0"),
        ] {
            let places = places(count);
            assert_eq!(places[0].to_string(), first);
            assert_eq!(places[count - 1].to_string(), last);
        }
        let ten = (0..10)
            .map(|at| format_ident!("t{at}"))
            .map(|name| quote!(#name));
        let ten = nested_tuple(ten.collect()).to_string();
        assert_eq!(
            ten,
            "((t0 , t1 , t2 , t3 , t4 , t5 , t6 , t7 ,) , (t8 , t9 ,) ,)"
        );
    }
}
