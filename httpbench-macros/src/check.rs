//! Turns what `args` read into options whose every value is right.
//!
//! An option that is wrong is reported and left out; the others are still judged.

use std::collections::HashMap;

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, Expr, Path};

use crate::args::{Errors, RawOption, RawValue};
use crate::metric::{Comparable, METRICS, Metric};
use crate::signature::Function;
use crate::values::{self, Zero};

const OPTIONS: [&str; 10] =
    ["name", "args", "connections", "arrival_rate", "duration", "warm_up", "tolerance", "limit", "ignore", "crate"];

/// What the attribute says.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) args: Option<Expr>,
    pub(crate) connections: Option<u32>,
    pub(crate) arrival_rate: Option<f64>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) warm_up_ns: Option<u64>,
    pub(crate) tolerance: Vec<MetricValue>,
    pub(crate) limit: Vec<MetricValue>,
    pub(crate) ignore: bool,
    pub(crate) krate: Option<Path>,
}

/// A number that is said of a metric.
pub(crate) struct MetricValue {
    pub(crate) metric: &'static Metric,
    pub(crate) value: f64,
}

/// Judges every option, and whether `args` and the function's parameter belong together.
pub(crate) fn options(raw: Vec<RawOption>, function: Option<&Function>, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    let mut seen = HashMap::new();
    for option in raw {
        let name = option.name.unraw().to_string();
        if seen.insert(name.clone(), option.name.span()).is_some() {
            errors.push(Error::new(option.name.span(), format!("`{name}` is given twice: keep one of them")));
            continue;
        }
        let judged = options.judge(&name, option, errors);
        errors.keep(judged);
    }
    if let Some(function) = function {
        errors.keep(parameter_and_args(function, seen.get("args").copied()));
    }
    options
}

impl Options {
    fn judge(&mut self, name: &str, option: RawOption, errors: &mut Errors) -> syn::Result<()> {
        match name {
            "name" => self.name = Some(labelled(name, values::name(&value(option, "name = \"landing-page\"")?))?),
            "args" => self.args = Some(value(option, "args = [1, 10, 100]")?),
            "connections" => {
                self.connections = Some(labelled(name, values::count(&value(option, "connections = 64")?))?);
            }
            "arrival_rate" => {
                let value = value(option, "arrival_rate = 2000")?;
                self.arrival_rate = Some(labelled(name, values::arrival_rate(&value))?);
            }
            "duration" => {
                let value = value(option, "duration = \"6s\"")?;
                self.duration_ns = Some(labelled(name, values::duration(&value, Zero::Refused))?);
            }
            "warm_up" => {
                let value = value(option, "warm_up = \"300ms\"")?;
                self.warm_up_ns = Some(labelled(name, values::duration(&value, Zero::Accepted))?);
            }
            "tolerance" => {
                let items = items(option, "tolerance(throughput = \"3%\", p99 = \"10%\")")?;
                self.tolerance = metrics(Family::Tolerance, items, errors);
            }
            "limit" => {
                let items = items(option, "limit(p99 = \"20ms\", errors = \"0.1%\")")?;
                self.limit = metrics(Family::Limit, items, errors);
            }
            "ignore" => {
                nothing(&option)?;
                self.ignore = true;
            }
            "crate" => self.krate = Some(path(&value(option, "crate = ::httpbench_core")?)?),
            _ => return Err(unknown(&option.name, "option", OPTIONS)),
        }
        Ok(())
    }
}

/// Which list of metrics is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Tolerance,
    Limit,
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Self::Tolerance => "tolerance",
            Self::Limit => "limit",
        }
    }

    fn accepts(self, metric: &Metric) -> bool {
        self == Self::Limit || metric.comparable == Comparable::Yes
    }
}

fn metrics(family: Family, items: Vec<RawOption>, errors: &mut Errors) -> Vec<MetricValue> {
    let mut said: Vec<MetricValue> = Vec::new();
    for item in items {
        match metric_value(family, item, &said) {
            Ok(value) => said.push(value),
            Err(error) => errors.push(error),
        }
    }
    said
}

fn metric_value(family: Family, item: RawOption, said: &[MetricValue]) -> syn::Result<MetricValue> {
    let word = item.name.unraw().to_string();
    let span = item.name.span();
    let accepted = || METRICS.iter().filter(|metric| family.accepts(metric)).map(|metric| metric.name);
    let Some(metric) = METRICS.iter().find(|metric| metric.name == word) else {
        return Err(unknown(&item.name, "metric", accepted()));
    };
    if !family.accepts(metric) {
        return Err(Error::new(
            span,
            format!(
                "`{word}` is not compared by a ratio, so it takes a `limit(…)` only; a tolerance takes {}",
                or(accepted())
            ),
        ));
    }
    if said.iter().any(|other| other.metric.name == word) {
        return Err(Error::new(span, format!("the {} of `{word}` is given twice: keep one of them", family.name())));
    }
    let value = match family {
        Family::Tolerance => values::ratio(&value(item, &format!("{word} = \"3%\""))?),
        Family::Limit => values::bound(&value(item, &format!("{word} = \"…\""))?, metric.bound),
    };
    Ok(MetricValue { metric, value: labelled(&word, value)? })
}

fn parameter_and_args(function: &Function, args: Option<Span>) -> syn::Result<()> {
    match (&function.parameter, args) {
        (Some(parameter), None) => Err(Error::new(
            parameter.span(),
            "the parameter needs its values: write `#[http_bench(args = […])]`, with any iterator over this type",
        )),
        (None, Some(args)) => Err(Error::new(
            args,
            format!(
                "`args` needs a parameter to take its values: write `fn {}(value: T) -> Request`",
                function.item.sig.ident
            ),
        )),
        _ => Ok(()),
    }
}

fn value(option: RawOption, example: &str) -> syn::Result<Expr> {
    match option.value {
        RawValue::Expr(value) => Ok(*value),
        RawValue::Nothing | RawValue::EmptyList | RawValue::List(_) => {
            Err(Error::new(option.name.span(), format!("`{}` needs a value: write `{example}`", option.name)))
        }
    }
}

fn items(option: RawOption, example: &str) -> syn::Result<Vec<RawOption>> {
    match option.value {
        RawValue::List(items) => Ok(items),
        _ => {
            Err(Error::new(option.name.span(), format!("`{}` takes a list of metrics: write `{example}`", option.name)))
        }
    }
}

fn nothing(option: &RawOption) -> syn::Result<()> {
    match &option.value {
        RawValue::Nothing => Ok(()),
        RawValue::Expr(_) | RawValue::EmptyList | RawValue::List(_) => {
            Err(Error::new(option.name.span(), format!("`{0}` takes no value: write `{0}` alone", option.name)))
        }
    }
}

fn path(expr: &Expr) -> syn::Result<Path> {
    match expr {
        Expr::Path(path) if path.qself.is_none() => Ok(path.path.clone()),
        Expr::Group(group) => path(&group.expr),
        _ => Err(Error::new(
            expr.span(),
            "`crate` takes the path to `httpbench-core` without quotes, such as `crate = my_facade::httpbench_core`",
        )),
    }
}

/// Puts the option's name before what is wrong with its value.
fn labelled<T>(name: &str, result: syn::Result<T>) -> syn::Result<T> {
    result.map_err(|error| Error::new(error.span(), format!("`{name}` {error}")))
}

fn unknown<'a>(word: &Ident, what: &str, accepted: impl IntoIterator<Item = &'a str> + Clone) -> Error {
    let text = word.unraw().to_string();
    let hint = nearest(&text, accepted.clone()).map_or_else(String::new, |name| format!("did you mean `{name}`? "));
    Error::new(word.span(), format!("unknown {what} `{text}`: {hint}accepted are {}", or(accepted)))
}

/// The name that was meant, if it is one: at most a third of the word is mistyped, and no other name is as near.
fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut near: Vec<_> = names.into_iter().map(|name| (distance(word, name), name)).collect();
    near.sort_unstable();
    match near.as_slice() {
        [first, second, ..] if first.0 == second.0 => None,
        [(edits, name), ..] if *edits <= (word.len() / 3).max(1) => Some(name),
        _ => None,
    }
}

fn or<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// How many letters must be put in, taken out or replaced to make one word of the other (Levenshtein 1966), by the usual
/// table of which only one row is kept.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, letter) in left.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (column, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("connections", "conections"), 1);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn only_one_near_name_is_suggested() {
        assert_eq!(nearest("conections", OPTIONS), Some("connections"));
        assert_eq!(nearest("crates", OPTIONS), Some("crate"));
        assert_eq!(nearest("p98", ["p50", "p90", "p95", "p99"]), None, "three are as near");
        assert_eq!(nearest("users", OPTIONS), None);
    }

    #[test]
    fn lists_of_names_read_like_a_sentence() {
        assert_eq!(or(["a"]), "`a`");
        assert_eq!(or(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
