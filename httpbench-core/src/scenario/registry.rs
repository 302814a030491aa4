//! The scenarios of a bench target: what `#[http_bench]` registers, and what it becomes at start.
//!
//! Registration happens before `main` and only stores constants and function pointers ([`Entry`]). [`Registry::collect`]
//! then evaluates `args`, once, and refuses two scenarios of one name.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::{self, Display};

use super::caught::caught;
use super::{Request, RequestError, WireOptions, WireRequest};
use crate::model::{Limit, Location, Metric, Nanos, Options, Ratio, ScenarioListing, Tolerance};

/// One use of `#[http_bench]`, written by its expansion.
#[derive(Debug)]
pub struct Entry {
    /// The module's path, with the crate's name in front.
    pub module: &'static str,
    /// The function's name, or what `name = …` says.
    pub name: &'static str,
    /// The doc comment.
    pub doc: &'static str,
    /// Where the function stands.
    pub file: &'static str,
    /// The line of its name.
    pub line: u32,
    /// What the attribute says.
    pub options: StaticOptions,
    /// How the function is called.
    pub calls: Calls,
}

inventory::collect!(Entry);

/// [`Options`] as a constant.
#[derive(Debug)]
pub struct StaticOptions {
    /// `connections = …`
    pub connections: Option<u32>,
    /// `arrival_rate = …`
    pub arrival_rate: Option<f64>,
    /// `duration = …`
    pub duration_ns: Option<u64>,
    /// `warm_up = …`
    pub warm_up_ns: Option<u64>,
    /// `tolerance(…)`, as fractions.
    pub tolerance: &'static [(Metric, f64)],
    /// `limit(…)`, in the metrics' own units.
    pub limit: &'static [(Metric, f64)],
    /// `ignore` or `#[ignore]`.
    pub ignore: bool,
}

/// How a scenario function is called.
#[derive(Debug)]
pub enum Calls {
    /// It has no parameter.
    Once(fn() -> Request),
    /// It has one; this evaluates `args`.
    Each(fn() -> Vec<Bound>),
}

/// A scenario function with the argument that it is called with.
pub struct Bound {
    argument: String,
    call: Call,
}

type Call = Box<dyn Fn() -> Request>;

/// Binds a scenario function to each of its arguments. Called by the expansion only.
pub fn bind<T, I>(function: impl Fn(T) -> Request + Copy + 'static, args: I) -> Vec<Bound>
where
    T: Display + Clone + 'static,
    I: IntoIterator<Item = T>,
{
    args.into_iter()
        .map(|argument| Bound {
            argument: one_line(&argument.to_string()),
            call: Box::new(move || function(argument.clone())),
        })
        .collect()
}

/// Names are printed one on a line, so that control characters in them are escaped.
fn one_line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut name, c| {
        if c.is_control() {
            name.extend(c.escape_default());
        } else {
            name.push(c);
        }
        name
    })
}

/// A scenario, ready to be called.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) doc: &'static str,
    pub(crate) location: Location,
    pub(crate) options: Options,
    call: Call,
}

/// Why a scenario gives no request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("the scenario panicked: {0}")]
    Panicked(String),
    #[error("the scenario's request cannot be sent: {}", with_sources(.0))]
    Request(#[from] RequestError),
}

/// An error's message and those of its sources, on one line.
pub(crate) fn with_sources(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| (*error).source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

impl Scenario {
    /// Calls the function once and renders what it returns, for an arm's host.
    pub(crate) fn render(&self, host: &str, options: WireOptions) -> Result<WireRequest, CallError> {
        Ok(self.request()?.render_as(host, options)?)
    }

    /// Calls the function once, and tells what it would send.
    pub(crate) fn listing(&self) -> ScenarioListing {
        let request = self.request().and_then(|request| {
            request.render("localhost")?;
            Ok(request.summary())
        });
        ScenarioListing {
            name: self.name.clone(),
            doc: self.doc.to_owned(),
            location: self.location.clone(),
            options: self.options.clone(),
            request: request.map_err(|error| error.to_string()),
        }
    }

    fn request(&self) -> Result<Request, CallError> {
        caught(|| (self.call)()).map_err(CallError::Panicked)
    }
}

/// All scenarios of the bench target, sorted by module and function; those of one function as `args` gives them.
pub(crate) struct Registry(Vec<Scenario>);

/// Why the scenarios cannot be told apart, or are not known.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RegistryError {
    #[error(
        "two scenarios are named `{name}`, at {} and {}: rename one, by its function or by `name = \"…\"`",
        Place(first),
        Place(second)
    )]
    Duplicate { name: String, first: Location, second: Location },
    #[error("`args` at {} names `{name}` twice: each argument needs a text of its own by `Display`", Place(location))]
    DuplicateArgument { name: String, location: Location },
    #[error("`args` of `{name}` at {} is empty: it needs at least one argument", Place(location))]
    NoArguments { name: String, location: Location },
    #[error("`args` of `{name}` at {} could not be evaluated, it panicked: {message}", Place(location))]
    ArgumentsPanicked { name: String, location: Location, message: String },
}

struct Place<'a>(&'a Location);

impl fmt::Display for Place<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.0.file, self.0.line)
    }
}

impl Registry {
    /// Everything that `#[http_bench]` registered in this executable.
    pub(crate) fn collect() -> Result<Self, RegistryError> {
        Self::of(inventory::iter::<Entry>)
    }

    /// The scenarios of these entries.
    pub(crate) fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Result<Self, RegistryError> {
        let mut entries: Vec<&Entry> = entries.into_iter().collect();
        // The order of registration is the linker's. Arguments keep the order in which they are given.
        entries.sort_by_key(|entry| (entry.name(), entry.file, entry.line));
        let mut scenarios = Vec::new();
        for entry in entries {
            scenarios.extend(entry.scenarios()?);
        }
        let mut seen = HashMap::new();
        for scenario in &scenarios {
            if let Some(first) = seen.insert(&scenario.name, &scenario.location) {
                let (name, second) = (scenario.name.clone(), scenario.location.clone());
                return Err(if *first == second {
                    RegistryError::DuplicateArgument { name, location: second }
                } else {
                    RegistryError::Duplicate { name, first: first.clone(), second }
                });
            }
        }
        Ok(Self(scenarios))
    }

    /// All of them, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Scenario> {
        self.0.iter()
    }

    /// The one of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Scenario> {
        self.0.iter().find(|scenario| scenario.name == name)
    }
}

impl Entry {
    /// `module::function`. Within the bench target its own name says nothing.
    fn name(&self) -> String {
        match self.module.split_once("::") {
            Some((_, module)) => format!("{}::{}", module.replace("r#", ""), self.name),
            None => self.name.to_owned(),
        }
    }

    fn scenarios(&self) -> Result<Vec<Scenario>, RegistryError> {
        let location = Location { file: self.file.to_owned(), line: self.line };
        let name = self.name();
        let scenario = |name: String, call: Call| Scenario {
            name,
            doc: self.doc,
            location: location.clone(),
            options: self.options.to_options(),
            call,
        };
        match self.calls {
            Calls::Once(function) => Ok(vec![scenario(name, Box::new(function))]),
            Calls::Each(bind) => {
                let bound = caught(bind).map_err(|message| RegistryError::ArgumentsPanicked {
                    name: name.clone(),
                    location: location.clone(),
                    message,
                })?;
                if bound.is_empty() {
                    return Err(RegistryError::NoArguments { name, location });
                }
                Ok(bound.into_iter().map(|bound| scenario(format!("{name}[{}]", bound.argument), bound.call)).collect())
            }
        }
    }
}

impl StaticOptions {
    fn to_options(&self) -> Options {
        let tolerance =
            self.tolerance.iter().map(|&(metric, ratio)| Tolerance { metric, ratio: Ratio(ratio) }).collect();
        Options {
            connections: self.connections,
            arrival_rate: self.arrival_rate,
            duration: self.duration_ns.map(Nanos),
            warm_up: self.warm_up_ns.map(Nanos),
            tolerance,
            limit: self.limit.iter().map(|&(metric, bound)| Limit { metric, bound }).collect(),
            ignore: self.ignore,
        }
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Bound").field("argument", &self.argument).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING_SAID: StaticOptions = StaticOptions {
        connections: None,
        arrival_rate: None,
        duration_ns: None,
        warm_up_ns: None,
        tolerance: &[],
        limit: &[],
        ignore: false,
    };

    fn entry(module: &'static str, name: &'static str, line: u32, calls: Calls) -> Entry {
        Entry { module, name, doc: "", file: "benches/http.rs", line, options: NOTHING_SAID, calls }
    }

    fn index() -> Request {
        Request::get("/")
    }

    fn names(entries: &[Entry]) -> Vec<String> {
        let registry = Registry::of(entries).unwrap_or_else(|error| panic!("{error}"));
        registry.iter().map(|scenario| scenario.name.clone()).collect()
    }

    fn refusal(entries: &[Entry]) -> String {
        Registry::of(entries).err().expect("refused").to_string()
    }

    #[test]
    fn names_are_module_function_and_argument_without_the_bench_target() {
        let pages = Calls::Each(|| bind::<u32, _>(|n| Request::get(format!("/{n}")), [9, 10]));
        let entries = [entry("http::api::r#type", "page", 2, pages), entry("http", "index", 1, Calls::Once(index))];
        assert_eq!(names(&entries), ["api::type::page[9]", "api::type::page[10]", "index"]);
    }

    #[test]
    fn every_argument_renders_its_own_request_each_time() {
        let pages = Calls::Each(|| bind::<String, _>(Request::get, ["/a".to_owned(), "/b".to_owned()]));
        let registry = Registry::of(&[entry("http", "page", 1, pages)]).unwrap_or_else(|error| panic!("{error}"));
        let scenario = registry.find("page[/b]").expect("it is there");
        let requests = ["h:1", "h:2"].map(|host| scenario.render(host, WireOptions::default()).expect("renders"));
        assert!(requests[0].bytes.starts_with(b"GET /b HTTP/1.1\r\nHost: h:1\r\n"));
        assert!(requests[1].bytes.starts_with(b"GET /b HTTP/1.1\r\nHost: h:2\r\n"));
    }

    #[test]
    fn duplicates_are_refused_with_both_places() {
        let entries = [entry("http", "a", 9, Calls::Once(index)), entry("http", "a", 5, Calls::Once(index))];
        assert_eq!(
            refusal(&entries),
            "two scenarios are named `a`, at benches/http.rs:5 and benches/http.rs:9: \
             rename one, by its function or by `name = \"…\"`"
        );
        let same = Calls::Each(|| bind::<u8, _>(|_| index(), [1, 1]));
        assert_eq!(
            refusal(&[entry("http", "page", 3, same)]),
            "`args` at benches/http.rs:3 names `page[1]` twice: each argument needs a text of its own by `Display`"
        );
    }

    #[test]
    fn empty_and_panicking_args_are_told() {
        let empty = Calls::Each(|| bind::<u8, _>(|_| index(), []));
        assert_eq!(
            refusal(&[entry("http", "page", 3, empty)]),
            "`args` of `page` at benches/http.rs:3 is empty: it needs at least one argument"
        );
        let error = refusal(&[entry("http", "page", 3, Calls::Each(|| panic!("no file")))]);
        assert!(error.contains("could not be evaluated, it panicked: no file ("), "{error}");
    }

    #[test]
    fn arguments_with_line_breaks_keep_to_one_line() {
        let entries = [entry("http", "p", 1, Calls::Each(|| bind::<&str, _>(|_| index(), ["a\nb\u{1b}"])))];
        assert_eq!(names(&entries), ["p[a\\nb\\u{1b}]"]);
    }

    #[test]
    fn listing_tells_panics_and_malformed_requests_instead_of_failing() {
        let entries = [
            entry("http", "bad", 1, Calls::Once(|| Request::get("no-slash"))),
            entry("http", "broken", 2, Calls::Once(|| panic!("no token"))),
            entry("http", "good", 3, Calls::Once(index)),
        ];
        let registry = Registry::of(&entries).unwrap_or_else(|error| panic!("{error}"));
        let told: Vec<_> = registry.iter().map(|scenario| scenario.listing().request).collect();
        assert!(told[0].as_ref().is_err_and(|why| why.contains("does not begin with `/`")), "{told:?}");
        assert!(told[1].as_ref().is_err_and(|why| why.starts_with("the scenario panicked: no token (")), "{told:?}");
        assert_eq!(told[2].as_ref().map(|request| request.target.as_str()), Ok("/"));
    }
}
