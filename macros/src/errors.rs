//! Collects mistakes, so that the compiler shows all of them at once.

use quote::ToTokens;
use syn::Generics;

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds a mistake, shown at these tokens.
    pub(crate) fn push(&mut self, at: impl ToTokens, message: impl std::fmt::Display) {
        self.add(syn::Error::new_spanned(at, message));
    }

    /// Refuses the parameters of a type, if it has any.
    pub(crate) fn refuse_parameters(&mut self, generics: &Generics, message: &str) {
        if !generics.params.is_empty() || generics.where_clause.is_some() {
            self.push(generics, message);
        }
    }

    /// Unwraps a result, keeping its error.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// The value, if there was no mistake.
    pub(crate) fn finish<T>(self, value: T) -> syn::Result<T> {
        self.0.map_or(Ok(value), Err)
    }

    fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }
}
