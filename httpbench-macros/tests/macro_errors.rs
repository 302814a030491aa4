//! Every misuse of `#[http_bench]` is an error on the token that is wrong, and says what is accepted.

#[test]
fn misuse_of_the_attribute_is_told_on_the_offending_token() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/macro_errors/item.rs");
    cases.compile_fail("tests/macro_errors/signature.rs");
    cases.compile_fail("tests/macro_errors/option.rs");
    cases.compile_fail("tests/macro_errors/value.rs");
    cases.compile_fail("tests/macro_errors/metric.rs");
    cases.compile_fail("tests/macro_errors/args.rs");
}
