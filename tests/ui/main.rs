//! Mistakes that the compiler must explain: each file beside this one fails with the message in its `.stderr`.
//! After a change that is meant, run with `TRYBUILD=overwrite` and read the difference.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("ui/*/*.rs");
}
