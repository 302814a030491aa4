//! The arguments that cargo, nextest and people give to a bench binary, in the way of Rust's own test harness.
//!
//! Only reads them. What has no meaning for a binary that measures nothing (`--test-threads`) is accepted, because
//! `cargo test --all-targets -- …` hands the same arguments to every target, and the usage says so.

use std::ffi::OsString;

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Action {
    /// Render every selected scenario.
    #[default]
    Render,
    /// Print the names of the selected scenarios.
    List,
    /// Say how to measure.
    Explain,
    /// Print the usage.
    Help,
}

/// Which scenarios are meant, by their `ignore`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ignored {
    /// Nothing said: all are listed, those that are not ignored are rendered.
    #[default]
    Unsaid,
    /// `--ignored`
    Only,
    /// `--include-ignored`
    Included,
}

/// How a filter meets a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Matching {
    /// The name contains it.
    #[default]
    Substring,
    /// The name is it.
    Exact,
}

/// What was said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) action: Action,
    pub(super) ignored: Ignored,
    pub(super) matching: Matching,
    pub(super) filters: Vec<String>,
    pub(super) skips: Vec<String>,
}

pub(super) const USAGE: &str = "\
Usage: cargo httpbench [FILTER...]          measures the scenarios of this bench target
       cargo test --benches [-- OPTIONS]    only calls them, to see that each gives a request

Options of this executable, which starts no server and sends nothing:
  [FILTER...]          only scenarios whose name contains one of these
  --exact              filters must be whole names
  --skip FILTER        leave these scenarios out; may be repeated
  --ignored            only scenarios marked `ignore`
  --include-ignored    those as well
  --list               print the names, as `name: benchmark`
  --bench              say how to measure; `cargo bench` gives this
  --help               print this

Accepted for test runners, without effect: --test --nocapture --no-capture --show-output -q --quiet
  --format pretty|terse, --color WHEN, --test-threads N
";

impl Arguments {
    /// Reads them. `Err` tells which one is not understood.
    pub(super) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut read = Self::default();
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            let argument = text(argument)?;
            let (option, attached) = match argument.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            let takes_value = matches!(option, "--skip" | "--format" | "--color" | "--test-threads");
            if attached.is_some() && !takes_value {
                return Err(format!("`{option}` takes no value, or is unknown"));
            }
            let mut value = || match attached.clone() {
                Some(value) => Ok(value),
                None => rest.next().map(text).unwrap_or_else(|| Err(format!("`{option}` needs a value"))),
            };
            match option {
                "--list" => read.action = Action::List,
                // `cargo bench -- --list` lists.
                "--bench" if read.action == Action::Render => read.action = Action::Explain,
                "--bench" => {}
                "--help" | "-h" => return Ok(Self { action: Action::Help, ..read }),
                "--ignored" => read.ignored = Ignored::Only,
                "--include-ignored" => read.ignored = Ignored::Included,
                "--exact" => read.matching = Matching::Exact,
                "--skip" => read.skips.push(value()?),
                "--format" => match value()?.as_str() {
                    "pretty" | "terse" => {}
                    other => return Err(format!("`--format` is `pretty` or `terse` here, not `{other}`")),
                },
                "--color" | "--test-threads" => drop(value()?),
                "--test" | "--nocapture" | "--no-capture" | "--show-output" | "-q" | "--quiet" => {}
                "--" => {
                    for filter in rest.by_ref() {
                        read.filters.push(text(filter)?);
                    }
                }
                unknown if unknown.starts_with('-') => return Err(format!("`{unknown}` is unknown")),
                filter => read.filters.push(filter.to_owned()),
            }
        }
        Ok(read)
    }

    /// Whether filters and skips leave a scenario in.
    pub(super) fn selects(&self, name: &str) -> bool {
        let meets = |filter: &String| match self.matching {
            Matching::Substring => name.contains(filter.as_str()),
            Matching::Exact => name == filter,
        };
        (self.filters.is_empty() || self.filters.iter().any(meets)) && !self.skips.iter().any(meets)
    }
}

fn text(argument: OsString) -> Result<String, String> {
    argument.into_string().map_err(|argument| format!("`{}` is not UTF-8", argument.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Arguments, String> {
        Arguments::read(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn what_nextest_asks_for_is_understood() {
        let list = read("--list --format terse --ignored").expect("understood");
        assert_eq!((list.action, list.ignored), (Action::List, Ignored::Only));
        let run = read("api::page[10] --exact --nocapture").expect("understood");
        assert_eq!(run.action, Action::Render);
        assert!(run.selects("api::page[10]") && !run.selects("api::page[100]") && !run.selects("page[10]"));
    }

    #[test]
    fn bench_explains_unless_a_list_is_asked_for() {
        assert_eq!(read("--bench").expect("understood").action, Action::Explain);
        assert_eq!(read("page --bench").expect("understood").action, Action::Explain);
        assert_eq!(read("--list --bench").expect("understood").action, Action::List);
        assert_eq!(read("--bench --list").expect("understood").action, Action::List);
    }

    #[test]
    fn skips_win_over_filters() {
        let arguments = read("page --skip=[10] --skip admin").expect("understood");
        let selected = ["page[1]", "page[10]", "admin_page", "index"].map(|name| arguments.selects(name));
        assert_eq!(selected, [true, false, false, false]);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, why) in [
            ("--bogus", "`--bogus` is unknown"),
            ("-x", "`-x` is unknown"),
            ("--skip", "`--skip` needs a value"),
            ("--exact=1", "`--exact` takes no value, or is unknown"),
            ("--format json", "`--format` is `pretty` or `terse` here, not `json`"),
        ] {
            assert_eq!(read(line), Err(why.to_owned()));
        }
    }

    #[test]
    fn everything_behind_two_hyphens_is_a_filter() {
        assert_eq!(read("-- --list").expect("understood").filters, ["--list"]);
    }
}
