//! Which functions can be scenarios: `fn() -> Request` and, with `args`, `fn(T) -> Request`.
//!
//! Only the shape is judged here; that the return type really is `Request` is for the compiler, on the tokens that
//! `expand` gives it.

use proc_macro2::{Span, TokenStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Item, ItemFn, Meta, ReturnType, Safety, Signature, Token, Type};

use crate::args::Errors;

const FORMS: &str = "a scenario is `fn() -> Request`, or `fn(T) -> Request` with `args = […]`";

/// A function that can be a scenario.
pub(crate) struct Function {
    /// As the user wrote it, but for `#[ignore]`.
    pub(crate) item: ItemFn,
    /// The type of its only parameter.
    pub(crate) parameter: Option<Type>,
    /// The type after the arrow.
    pub(crate) output: Type,
    /// When `#[ignore]` holds: never, always, or where one of these `cfg` predicates is true.
    pub(crate) ignore: Ignore,
}

/// What the function's own `#[ignore]` attributes say.
#[derive(Default)]
pub(crate) struct Ignore {
    pub(crate) always: bool,
    pub(crate) predicates: Vec<Meta>,
}

/// Reads the item and judges its shape. All that is wrong is in the error.
pub(crate) fn function(tokens: TokenStream) -> syn::Result<Function> {
    let first = tokens.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span());
    let item = match syn::parse2::<Item>(tokens) {
        Ok(Item::Fn(item)) => item,
        Ok(other) => return Err(Error::new(keyword(&other).unwrap_or(first), not_a_function())),
        Err(_) => return Err(Error::new(first, not_a_function())),
    };
    let mut errors = Errors::default();
    shape(&item.sig, &mut errors);
    let parameter = errors.keep(parameter(&item.sig)).flatten();
    let output = errors.keep(output(&item.sig));
    errors.finish()?;
    let output = output.expect("a missing return type is one of the errors");
    Ok(scenario(item, parameter, output))
}

fn scenario(mut item: ItemFn, parameter: Option<Type>, output: Type) -> Function {
    let mut ignore = Ignore::default();
    item.attrs.retain(|attribute| {
        let is_ignore = attribute.path().is_ident("ignore");
        ignore.always |= is_ignore;
        ignore.predicates.extend(conditional_ignore(attribute));
        !is_ignore
    });
    Function { item, parameter, output, ignore }
}

/// The predicate of a `#[cfg_attr(predicate, ignore)]` that the compiler has not expanded yet, because it stands below
/// `#[http_bench]`.
fn conditional_ignore(attribute: &Attribute) -> Option<Meta> {
    if !attribute.path().is_ident("cfg_attr") {
        return None;
    }
    let parts = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
    let mut parts = parts.into_iter();
    let predicate = parts.next()?;
    parts.any(|meta| meta.path().is_ident("ignore")).then_some(predicate)
}

fn shape(signature: &Signature, errors: &mut Errors) {
    if let Some(token) = &signature.asyncness {
        errors.push(Error::new(
            token.span(),
            format!("an `async fn` cannot be a scenario (the load engine sends the request): {FORMS}"),
        ));
    }
    if let Safety::Unsafe(token) = &signature.safety {
        errors.push(Error::new(token.span(), format!("an `unsafe fn` cannot be a scenario: {FORMS}")));
    }
    if let Some(abi) = &signature.abi {
        errors.push(Error::new(abi.span(), format!("an `extern fn` cannot be a scenario: {FORMS}")));
    }
    if let Some(first) = signature.generics.params.first() {
        errors.push(Error::new(first.span(), format!("a generic function cannot be a scenario: {FORMS}")));
    }
    if let Some(clause) = &signature.generics.where_clause {
        errors.push(Error::new(clause.where_token.span(), format!("a scenario cannot have a `where` clause: {FORMS}")));
    }
    if let Some(variadic) = &signature.variadic {
        errors.push(Error::new(variadic.dots.span(), format!("a variadic function cannot be a scenario: {FORMS}")));
    }
}

fn parameter(signature: &Signature) -> syn::Result<Option<Type>> {
    let mut inputs = signature.inputs.iter();
    let parameter = match inputs.next() {
        None => return Ok(None),
        Some(FnArg::Receiver(receiver)) => {
            return Err(Error::new(
                receiver.self_token.span(),
                format!("a method cannot be a scenario, only a free function: {FORMS}"),
            ));
        }
        Some(FnArg::Typed(parameter)) => parameter,
    };
    if let Some(second) = inputs.next() {
        return Err(Error::new(
            second.span(),
            format!(
                "a scenario has at most one parameter (a tuple, or a type of your own, holds several values): {FORMS}"
            ),
        ));
    }
    match &*parameter.ty {
        Type::ImplTrait(generic) => {
            Err(Error::new(generic.span(), format!("a generic function cannot be a scenario: {FORMS}")))
        }
        concrete => Ok(Some(concrete.clone())),
    }
}

fn output(signature: &Signature) -> syn::Result<Type> {
    match &signature.output {
        ReturnType::Type(_, output) => Ok((**output).clone()),
        ReturnType::Default => {
            Err(Error::new(signature.ident.span(), format!("lacks its return type `-> Request`: {FORMS}")))
        }
    }
}

fn not_a_function() -> String {
    format!("`#[http_bench]` belongs on a free function with a body: {FORMS}")
}

/// The word that says what an item is.
fn keyword(item: &Item) -> Option<Span> {
    Some(match item {
        Item::Const(item) => item.const_token.span(),
        Item::Enum(item) => item.enum_token.span(),
        Item::Impl(item) => item.impl_token.span(),
        Item::Mod(item) => item.mod_token.span(),
        Item::Static(item) => item.static_token.span(),
        Item::Struct(item) => item.struct_token.span(),
        Item::Trait(item) => item.trait_token.span(),
        Item::Type(item) => item.type_token.span(),
        Item::Union(item) => item.union_token.span(),
        Item::Use(item) => item.use_token.span(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn told(tokens: TokenStream) -> Vec<String> {
        function(tokens).err().into_iter().flatten().map(|error| error.to_string()).collect()
    }

    #[test]
    fn every_fault_of_a_signature_is_told_at_once() {
        let told = told(quote! { async unsafe extern "C" fn f<T>(left: T, right: T, ...) where T: Copy {} });
        let faults =
            ["async", "unsafe", "extern", "generic", "where", "variadic", "at most one parameter", "return type"];
        assert_eq!(told.len(), faults.len(), "{told:?}");
        for (fault, text) in faults.iter().zip(&told) {
            assert!(text.contains(fault) && text.contains(FORMS), "{fault}: {text}");
        }
    }

    #[test]
    fn what_is_no_function_is_told() {
        for tokens in [
            quote!(
                struct S;
            ),
            quote!(
                fn without_body() -> Request;
            ),
            quote!(let x = || 1;),
            quote!(),
        ] {
            let told = told(tokens);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].starts_with("`#[http_bench]` belongs on a free function"), "{told:?}");
        }
    }

    #[test]
    fn ignore_is_taken_off_the_function_and_kept_with_its_conditions() {
        let function = function(quote! {
            #[ignore = "slow"]
            #[cfg_attr(windows, ignore, doc = "x")]
            #[cfg_attr(unix, inline)]
            pub(crate) fn f(n: u8) -> Request {}
        })
        .expect("a scenario");
        assert!(function.ignore.always);
        assert_eq!(function.ignore.predicates.len(), 1);
        assert_eq!(function.item.attrs.len(), 2);
        assert!(function.parameter.is_some());
    }
}
