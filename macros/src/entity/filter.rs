//! Named filters, which every query of an entity has unless it lifts them.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Ident, Path, ext::IdentExt};

use crate::{entity::field::at, errors::Errors, settings::Settings};

/// A named filter.
pub(crate) struct Filter {
    name: Ident,
    /// The function that makes its condition.
    condition: Path,
}

impl Filter {
    /// Every `filter(name = path)` of a struct.
    pub(crate) fn parse_all(settings: &Settings, errors: &mut Errors) -> Vec<Self> {
        let mut filters: Vec<Self> = Vec::new();
        for (name, condition) in settings.named_paths("filter", errors) {
            if filters.iter().any(|earlier| earlier.name == name) {
                errors.push(
                    &name,
                    format!("there is a filter `{name}` already: choose another name"),
                );
            }
            filters.push(Self { name, condition });
        }
        filters
    }

    /// A `FilterDef`.
    pub(crate) fn definition(&self, krate: &Path) -> TokenStream {
        let (name, condition) = (self.name.unraw().to_string(), &self.condition);
        // Coerced at the path, so that a function of another type is told there.
        let function = quote_spanned! {at(condition)=>
            let condition: fn() -> #krate::query::Condition<Self> = #condition;
        };
        quote! {
            #krate::entity::FilterDef {
                name: #name,
                condition: || {
                    #function
                    ::std::boxed::Box::new(condition())
                },
            }
        }
    }
}
