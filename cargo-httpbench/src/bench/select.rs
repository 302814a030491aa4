//! Which scenarios are run.
//!
//! Pure, with libtest's rules: a filter is a part of the name, several are joined by "or", `--exact` concerns filters and skips.

use httpbench_core::model::ScenarioListing;

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::nearest;

/// What the user chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Any of these; empty takes all.
    pub filters: Vec<String>,
    /// How filters and skips are compared.
    pub matching: Matching,
    /// None of these.
    pub skip: Vec<String>,
    /// What becomes of scenarios that are marked `ignore`.
    pub ignored: Ignored,
}

/// How a filter is compared with a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// It is a part of it.
    #[default]
    Substring,
    /// It equals it.
    Exact,
}

/// What becomes of scenarios that are marked `ignore`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    /// They are left out.
    #[default]
    LeftOut,
    /// Only they are taken.
    Only,
    /// They are taken too.
    Included,
}

impl Selection {
    /// Whether a scenario is selected.
    #[must_use]
    pub fn takes(&self, scenario: &ScenarioListing) -> bool {
        let ignored = match self.ignored {
            Ignored::LeftOut => !scenario.options.ignore,
            Ignored::Only => scenario.options.ignore,
            Ignored::Included => true,
        };
        ignored && self.takes_name(&scenario.name)
    }

    /// Whether filters and skips select a scenario of this name.
    #[must_use]
    pub fn takes_name(&self, name: &str) -> bool {
        let matches = |filter: &String| match self.matching {
            Matching::Substring => name.contains(filter.as_str()),
            Matching::Exact => name == *filter,
        };
        (self.filters.is_empty() || self.filters.iter().any(matches)) && !self.skip.iter().any(matches)
    }

    /// The error for a selection that takes none of `scenarios`.
    #[must_use]
    pub fn takes_none<'s>(&self, scenarios: impl IntoIterator<Item = &'s ScenarioListing>) -> Error {
        let scenarios: Vec<&ScenarioListing> = scenarios.into_iter().collect();
        let error = |what: String| Error::new(ExitCode::NothingSelected, what);
        if scenarios.is_empty() {
            return error("the bench target holds no scenario".to_owned())
                .help("write `#[http_bench]` above a function that returns a `Request`");
        }
        let all_but_ignored = Self { ignored: Ignored::Included, ..self.clone() };
        let hidden = scenarios.iter().filter(|scenario| all_but_ignored.takes(scenario)).count();
        if hidden > 0 {
            return match self.ignored {
                Ignored::Only => error(format!("none of the {hidden} scenarios that match is marked `ignore`"))
                    .help("leave out `--ignored`"),
                _ => error(format!("every scenario that matches ({hidden}) is marked `ignore`"))
                    .help("add `--include-ignored`"),
            };
        }
        if self.filters.is_empty() {
            return error(format!("`--skip` leaves out all of the {} scenarios", scenarios.len()));
        }
        let filters: Vec<String> = self.filters.iter().map(|filter| format!("`{filter}`")).collect();
        let without_skip = Self { skip: Vec::new(), ..all_but_ignored };
        if scenarios.iter().any(|scenario| without_skip.takes(scenario)) {
            return error(format!("`--skip` leaves out every scenario that matches {}", filters.join(", ")));
        }
        let error = error(match self.matching {
            Matching::Substring => format!("no scenario's name contains {}", filters.join(" or ")),
            Matching::Exact => format!("no scenario is called {}", filters.join(" or ")),
        });
        let names = || scenarios.iter().map(|scenario| scenario.name.as_str());
        let mut close: Vec<String> = Vec::new();
        for filter in &self.filters {
            for name in nearest::several(filter, names(), 3) {
                if !close.iter().any(|known| known == name) {
                    close.push(name.to_owned());
                }
            }
        }
        match &close[..] {
            [] => error
                .details("scenarios", names().take(20).map(str::to_owned))
                .help("choose one of them; `cargo httpbench list` prints them all"),
            [one] => {
                let help = format!("did you mean `{one}`?");
                error.help(help)
            }
            _ => error.details("scenarios with a similar name", close).help("did you mean one of these?"),
        }
    }
}

/// The one scenario that `name` means: the one that is called so, else the only one whose name contains it. Ignored ones count.
///
/// # Errors
///
/// When there is none or there are several: exit code 4 with the names.
pub fn find_one<'s>(
    name: &str,
    scenarios: impl IntoIterator<Item = &'s ScenarioListing>,
) -> Result<&'s ScenarioListing> {
    let scenarios: Vec<&ScenarioListing> = scenarios.into_iter().collect();
    if let Some(exact) = scenarios.iter().find(|scenario| scenario.name == name) {
        return Ok(exact);
    }
    let selection = Selection { filters: vec![name.to_owned()], ignored: Ignored::Included, ..Selection::default() };
    let found: Vec<&ScenarioListing> = scenarios.iter().copied().filter(|scenario| selection.takes(scenario)).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(selection.takes_none(scenarios)),
        _ => Err(Error::new(ExitCode::NothingSelected, format!("several scenarios' names contain `{name}`"))
            .details("scenarios", found.iter().map(|scenario| scenario.name.clone()))
            .help("write the whole name of one of them")),
    }
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::{Location, Options};

    use super::*;

    fn scenario(name: &str, ignore: bool) -> ScenarioListing {
        ScenarioListing {
            name: name.to_owned(),
            doc: String::new(),
            location: Location { file: "benches/http.rs".to_owned(), line: 1 },
            options: Options { ignore, ..Options::default() },
            request: Err("not rendered".to_owned()),
        }
    }

    fn all() -> Vec<ScenarioListing> {
        vec![
            scenario("http::list", false),
            scenario("http::search[1]", false),
            scenario("http::search[10]", false),
            scenario("http::slow", true),
        ]
    }

    fn taken(selection: &Selection) -> Vec<String> {
        all().into_iter().filter(|scenario| selection.takes(scenario)).map(|scenario| scenario.name).collect()
    }

    fn filters(filters: &[&str]) -> Selection {
        Selection { filters: filters.iter().map(|&filter| filter.to_owned()).collect(), ..Selection::default() }
    }

    #[test]
    fn any_filter_takes_and_any_skip_leaves_out() {
        assert_eq!(taken(&filters(&[])), ["http::list", "http::search[1]", "http::search[10]"]);
        assert_eq!(taken(&filters(&["list", "[10]"])), ["http::list", "http::search[10]"]);
        assert_eq!(taken(&Selection { skip: vec!["search".to_owned()], ..filters(&[]) }), ["http::list"]);
    }

    #[test]
    fn exact_concerns_filters_and_skips() {
        let exact = Selection { matching: Matching::Exact, ..filters(&["http::search[1]", "list"]) };
        assert_eq!(taken(&exact), ["http::search[1]"]);
        let exact = Selection { matching: Matching::Exact, skip: vec!["list".to_owned()], ..filters(&[]) };
        assert_eq!(taken(&exact).len(), 3);
    }

    #[test]
    fn ignored_scenarios_are_left_out_alone_or_included() {
        assert_eq!(taken(&Selection { ignored: Ignored::Only, ..filters(&[]) }), ["http::slow"]);
        assert_eq!(taken(&Selection { ignored: Ignored::Included, ..filters(&[]) }).len(), 4);
    }

    #[test]
    fn empty_selection_says_why_and_what_would_do() {
        let scenarios = all();
        for (selection, what, help) in [
            (filters(&["serch"]), "no scenario's name contains `serch`", "did you mean one of these?"),
            (filters(&["lst"]), "no scenario's name contains `lst`", "did you mean `http::list`?"),
            (
                filters(&["zzz"]),
                "no scenario's name contains `zzz`",
                "choose one of them; `cargo httpbench list` prints them all",
            ),
            (filters(&["slow"]), "every scenario that matches (1) is marked `ignore`", "add `--include-ignored`"),
            (
                Selection { ignored: Ignored::Only, ..filters(&["list"]) },
                "none of the 1 scenarios that match is marked `ignore`",
                "leave out `--ignored`",
            ),
            (
                Selection { matching: Matching::Exact, ..filters(&["list"]) },
                "no scenario is called `list`",
                "did you mean `http::list`?",
            ),
        ] {
            let error = selection.takes_none(&scenarios);
            assert_eq!(error.exit, ExitCode::NothingSelected);
            assert_eq!((error.what.as_str(), error.help.as_deref()), (what, Some(help)));
        }
        let skipped = Selection { skip: vec!["list".to_owned()], ..filters(&["list"]) }.takes_none(&scenarios);
        assert_eq!(skipped.what, "`--skip` leaves out every scenario that matches `list`");
        assert_eq!(filters(&[]).takes_none([]).what, "the bench target holds no scenario");
    }

    #[test]
    fn one_scenario_is_found_by_its_name_or_a_part_that_no_other_has() {
        let scenarios = all();
        assert_eq!(find_one("slow", &scenarios).expect("one").name, "http::slow");
        assert_eq!(find_one("http::search[1]", &scenarios).expect("one").name, "http::search[1]");
        let error = find_one("search", &scenarios).expect_err("two");
        assert_eq!((error.exit, error.details[0].lines.len()), (ExitCode::NothingSelected, 2));
        assert_eq!(find_one("lst", &scenarios).expect_err("none").help.as_deref(), Some("did you mean `http::list`?"));
    }
}
