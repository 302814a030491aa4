//! Writes the registration of a checked scenario beside its function.
//!
//! What is written names only `__private` of `httpbench-core` and `::core`, by absolute paths, so it means the same in
//! every module. Tokens that the compiler may find fault with (the return type, the parameter's type, `args`) carry the
//! user's own spans.

use proc_macro_crate::FoundCrate;
use proc_macro2::{Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

use crate::check::{MetricValue, Options};
use crate::signature::Function;

/// The function as it was, and its registration.
pub(crate) fn expand(function: &Function, options: &Options) -> TokenStream {
    let item = &function.item;
    let ident = &item.sig.ident;
    let private = private(options);
    // Only a `cfg` below `#[http_bench]` is still here; one above it has been judged already.
    let cfg = item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    let name = options.name.clone().unwrap_or_else(|| ident.unraw().to_string());
    let doc = doc(&item.attrs);
    let line = quote_spanned!(ident.span()=> ::core::line!());
    let calls = calls(function, options, &private);
    let options = static_options(function, options, &private);
    quote! {
        #item

        #(#cfg)*
        const _: () = {
            #private::submit! {
                #private::Entry {
                    module: ::core::module_path!(),
                    name: #name,
                    doc: #doc,
                    file: ::core::file!(),
                    line: #line,
                    options: #options,
                    calls: #calls,
                }
            }
        };
    }
}

/// The path to `httpbench_core::__private`.
fn private(options: &Options) -> TokenStream {
    if let Some(path) = &options.krate {
        return quote!(#path::__private);
    }
    let name = match proc_macro_crate::crate_name("httpbench-core") {
        Ok(FoundCrate::Name(name)) => format_ident!("{name}"),
        // In the documentation tests and benches of `httpbench-core` itself, and wherever no Cargo.toml can be read.
        Ok(FoundCrate::Itself) | Err(_) => format_ident!("httpbench_core"),
    };
    quote!(::#name::__private)
}

fn calls(function: &Function, options: &Options, private: &TokenStream) -> TokenStream {
    let ident = &function.item.sig.ident;
    // The user's place, but the macro's hygiene: a mismatch points at the return type, and lints leave it alone.
    let span = function.output.span().resolved_at(Span::mixed_site());
    let (Some(parameter), Some(args)) = (&function.parameter, &options.args) else {
        let call = quote_spanned!(span=> { let request: #private::Request = #ident(); request });
        return quote!(#private::Calls::Once(|| #call));
    };
    let call = quote_spanned!(span=> { let request: #private::Request = #ident(argument); request });
    let argument = quote_spanned!(span=> argument);
    quote! {
        #private::Calls::Each(|| #private::bind::<#parameter, _>(|#argument: #parameter| #call, #args))
    }
}

fn static_options(function: &Function, options: &Options, private: &TokenStream) -> TokenStream {
    let connections = option(options.connections.map(Literal::u32_suffixed));
    let arrival_rate = option(options.arrival_rate.map(Literal::f64_suffixed));
    let duration_ns = option(options.duration_ns.map(Literal::u64_suffixed));
    let warm_up_ns = option(options.warm_up_ns.map(Literal::u64_suffixed));
    let tolerance = options.tolerance.iter().map(|said| pair(said, private));
    let limit = options.limit.iter().map(|said| pair(said, private));
    let always = options.ignore || function.ignore.always;
    let predicates = &function.ignore.predicates;
    quote! {
        #private::StaticOptions {
            connections: #connections,
            arrival_rate: #arrival_rate,
            duration_ns: #duration_ns,
            warm_up_ns: #warm_up_ns,
            tolerance: &[#(#tolerance),*],
            limit: &[#(#limit),*],
            ignore: #always #(|| ::core::cfg!(#predicates))*,
        }
    }
}

fn option(value: Option<Literal>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn pair(said: &MetricValue, private: &TokenStream) -> TokenStream {
    let variant = format_ident!("{}", said.metric.variant);
    let value = Literal::f64_suffixed(said.value);
    quote!((#private::Metric::#variant, #value))
}

/// The doc comment without the spaces around its lines.
fn doc(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    lines.iter().flat_map(|text| text.split('\n')).map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}
