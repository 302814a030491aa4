//! The `#[http_bench]` attribute of `cargo httpbench`.
//!
//! Three steps, one file each: `args` reads the attribute's tokens, `check` and `signature` turn tokens and function into
//! a scenario whose every value is right (`values` reads the literals, `metric` knows which metric takes what), `expand`
//! writes the registration. Everything wrong in one attribute is reported at once, each error on its own token.
//!
//! This crate knows no type of the engine: what it writes names only the `__private` module of `httpbench-core`, which is
//! also where the attribute is documented and exported for users.

mod args;
mod check;
mod expand;
mod metric;
mod signature;
mod values;

use proc_macro::TokenStream;

/// Makes a function a scenario. Documented where users import it: `httpbench_core::http_bench`.
#[proc_macro_attribute]
pub fn http_bench(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    match scenario(attribute.into(), item.clone()) {
        Ok(expanded) => expanded.into(),
        Err(error) => {
            // The function stays, so that its callers do not fail as well.
            let mut tokens = error.into_compile_error();
            tokens.extend(item);
            tokens.into()
        }
    }
}

fn scenario(
    attribute: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> syn::Result<proc_macro2::TokenStream> {
    let mut errors = args::Errors::default();
    let function = errors.keep(signature::function(item));
    let options = args::parse(attribute, &mut errors);
    let options = check::options(options, function.as_ref(), &mut errors);
    errors.finish()?;
    Ok(function.map(|function| expand::expand(&function, &options)).unwrap_or_default())
}
