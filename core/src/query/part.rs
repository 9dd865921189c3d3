//! What of a column a condition looks at.

use crate::{
    query::{JsonLength, JsonPath},
    sql::Term,
    value::ValueError,
};

/// What of a column is asked: all of it, which is `()`, what stands at a [`JsonPath`], or the [`JsonLength`].
///
/// There are no others: what the method returns cannot be named elsewhere.
pub trait Part {
    /// The part of the column with this name.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "so that nobody else implements it")]
    fn term(self, column: &'static str) -> Result<Term, ValueError>;
}

#[allow(private_interfaces, reason = "as in the trait")]
impl Part for () {
    fn term(self, column: &'static str) -> Result<Term, ValueError> {
        Ok(Term::Column(column))
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl Part for JsonPath {
    fn term(self, column: &'static str) -> Result<Term, ValueError> {
        Ok(Term::Path {
            column,
            path: self.checked()?,
        })
    }
}

#[allow(private_interfaces, reason = "as in the trait")]
impl Part for JsonLength {
    fn term(self, column: &'static str) -> Result<Term, ValueError> {
        Ok(Term::Length(column))
    }
}
