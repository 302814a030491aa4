//! Reads the tokens within `#[http_bench(…)]`: names, values and lists, whatever they mean.
//!
//! Which options there are is for `check` to know. After a syntax error reading goes on behind the next comma, so that one
//! mistake does not hide another.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Expr, Token, parenthesized, token};

/// One `name`, `name = value` or `name(…)`.
pub(crate) struct RawOption {
    pub(crate) name: Ident,
    pub(crate) value: RawValue,
}

/// What follows an option's name.
pub(crate) enum RawValue {
    Nothing,
    Expr(Box<Expr>),
    /// `()`
    EmptyList,
    /// What could be read of a list; what could not is among the errors.
    List(Vec<RawOption>),
}

/// Everything that is wrong, in the order in which it was found.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Adds one.
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// The value, or one more error.
    pub(crate) fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// All errors as one.
    pub(crate) fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Reads an attribute's options, as far as they can be read.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Vec<RawOption> {
    let mut options = Vec::new();
    let parsed = (|input: ParseStream<'_>| {
        options = list(input, errors);
        Ok(())
    })
    .parse2(tokens);
    errors.keep(parsed);
    options
}

fn list(input: ParseStream<'_>, errors: &mut Errors) -> Vec<RawOption> {
    let mut options = Vec::new();
    while !input.is_empty() {
        match option(input, errors) {
            Ok(option) => {
                options.push(option);
                if !input.is_empty() && !input.peek(Token![,]) {
                    errors.push(input.error("expected a comma between options"));
                    skip_to_comma(input);
                }
            }
            Err(error) => {
                errors.push(error);
                skip_to_comma(input);
            }
        }
        // Absent only at the end.
        let _ = input.parse::<Token![,]>();
    }
    options
}

fn option(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<RawOption> {
    if !input.peek(syn::Ident::peek_any) {
        return Err(input.error("expected the name of an option, such as `connections = 64`"));
    }
    let name = input.call(Ident::parse_any)?;
    if input.peek(Token![-]) {
        return Err(hyphenated(name, input));
    }
    let value = if input.peek(token::Paren) {
        let content;
        parenthesized!(content in input);
        if content.is_empty() { RawValue::EmptyList } else { RawValue::List(list(&content, errors)) }
    } else if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        if input.is_empty() || input.peek(Token![,]) {
            return Err(Error::new(name.span(), format!("`{name} =` lacks its value")));
        }
        RawValue::Expr(Box::new(input.parse()?))
    } else {
        RawValue::Nothing
    };
    Ok(RawOption { name, value })
}

/// `cpu-per-request`, as it is written in `httpbench.toml`.
fn hyphenated(first: Ident, input: ParseStream<'_>) -> Error {
    let mut name = first.to_string();
    while input.parse::<Token![-]>().is_ok() {
        let Ok(part) = input.call(Ident::parse_any) else { break };
        name.push('_');
        name.push_str(&part.to_string());
    }
    Error::new(first.span(), format!("names have underscores in the attribute: write `{name}`"))
}

fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}
