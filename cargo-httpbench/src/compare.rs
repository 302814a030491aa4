//! The story with two servers: pilot → gated cells → looks → confirmation.

use std::time::Duration;

use httpbench_core::model::Nanos;

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::measure::{Campaign, MeasuredPackage, Stage};
use crate::numbers_only::NumbersOnly;
use crate::verdict::{ALPHA, Comparison, Family, Looks, SUPPORT, Unsupported, fewest_rounds, first_exceeded};

/// Fresh rounds for what the looks found. At least five are needed to show anything at 5 %; eight find again what is there.
const CONFIRMATION_ROUNDS: u32 = 8;

/// A second look is worth its share of α only if it comes this many rounds after the first one.
const ROUNDS_BETWEEN_LOOKS: u32 = 3;

/// Cells that a scenario has at most where nobody wrote a tolerance for more.
const CELLS_OF_A_SCENARIO: usize = 4;

/// The rounds that the scenarios' loaded time is spread over: as many as asked for, and at least as many as can decide for so many
/// scenarios. The plan itself is made after the pilot, when the cells are known; a round's length must be known before.
#[must_use]
pub fn rounds_that_decide(asked: u32, scenarios: usize, share: f64) -> u32 {
    asked.max(fewest_rounds(scenarios * CELLS_OF_A_SCENARIO, 1, ALPHA * share))
}

/// What the rounds are judged by.
#[derive(Clone, Copy, Debug)]
pub enum Judge<'run> {
    /// Two arms that take turns.
    Arms,
    /// One arm beside the reference server, and what was kept of another.
    Numbers(&'run NumbersOnly),
}

impl Judge<'_> {
    fn look(self, package: &MeasuredPackage, family: &Family, looks: Looks) -> Comparison {
        match self {
            Self::Arms => Comparison::look(package, family, looks),
            Self::Numbers(numbers) => Comparison::look_at_numbers(&numbers.beside(package), family, looks),
        }
    }
}

/// Measures until every cell is settled or the rounds are used up, and confirms what changed.
///
/// `rounds` is what the plan holds ([`rounds_that_decide`]); should that decide nothing for so many cells, it grows to what can. `share` is this
/// package's part of α, and `left_out` its scenarios that the baseline does not have (see [`Family::fix`]).
///
/// # Errors
///
/// When a signal came, a server did not get ready, or the user's tolerances cannot be supported (96).
pub fn compare(
    campaign: &mut Campaign<'_>,
    rounds: u32,
    share: f64,
    left_out: &[String],
    judge: Judge<'_>,
) -> Result<Comparison> {
    campaign.pilot()?;
    let family = Family::fix(campaign.measured(), share, left_out).map_err(|unsupported| refuse(&unsupported))?;
    let family = match judge {
        Judge::Arms => family,
        Judge::Numbers(_) => family.for_numbers(),
    };
    let plan = plan_looks(family.cells.len(), rounds, family.alpha);
    let planned = u32::try_from(plan.len()).unwrap_or(1);
    let all: Vec<usize> = (0..campaign.measured().scenarios.len()).collect();
    let mut looks = Looks::first_of(planned);
    let mut done = 0;
    for until in plan {
        campaign.run(until - done, Stage::First, &all)?;
        done = until;
        match looks.next() {
            Some(next) if !judge.look(campaign.measured(), &family, looks).is_settled() => looks = next,
            _ => break,
        }
    }
    let first = judge.look(campaign.measured(), &family, looks);
    let mut concerned = first.changed_scenarios();
    let exceeded = |index: &usize| !first_exceeded(&campaign.measured().scenarios[*index]).is_empty();
    concerned.extend(all.into_iter().filter(exceeded));
    concerned.sort_unstable();
    concerned.dedup();
    campaign.run(CONFIRMATION_ROUNDS, Stage::Fresh, &concerned)?;
    campaign.tell_measured()?;
    Ok(judge.look(campaign.measured(), &family, looks))
}

/// The numbers of rounds after which is looked: one or two.
fn plan_looks(cells: usize, rounds: u32, alpha: f64) -> Vec<u32> {
    let last = rounds.max(fewest_rounds(cells, 1, alpha));
    let first = fewest_rounds(cells, 2, alpha);
    if first + ROUNDS_BETWEEN_LOOKS <= last { vec![first, last] } else { vec![last] }
}

pub(crate) fn refuse(unsupported: &[Unsupported]) -> Error {
    let lines = unsupported.iter().map(|refused| {
        format!(
            "`{}`: {} rests on {:.0} slower exchanges in a round; duration = \"{}\" would do",
            refused.scenario,
            refused.metric,
            refused.beyond,
            humantime::format_duration(rounded(refused.duration))
        )
    });
    Error::new(
        ExitCode::Configuration,
        format!("a tolerance stands on a quantile that fewer than {SUPPORT} exchanges of a round lie beyond"),
    )
    .details("tolerances that cannot be judged", lines)
    .help("give those scenarios that `duration`, or leave their tolerance out: a lower quantile is then judged in its place")
}

fn rounded(duration: Nanos) -> Duration {
    Duration::from_secs(Duration::from(duration).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_rounds_are_looked_at_twice() {
        assert_eq!(plan_looks(4, 16, ALPHA), [8, 16]);
        assert_eq!(plan_looks(20, 16, ALPHA), [10, 16]);
    }

    #[test]
    fn loaded_time_is_spread_over_the_rounds_that_decide() {
        assert_eq!(rounds_that_decide(16, 4, 1.0), 16);
        assert_eq!(rounds_that_decide(1, 1, 1.0), 7, "4 cells");
        assert_eq!(rounds_that_decide(1, 5, 0.5), 10, "20 cells with half of α");
        assert_eq!(plan_looks(20, rounds_that_decide(1, 5, 0.5), ALPHA * 0.5), [10], "the plan does not outgrow it");
    }

    #[test]
    fn too_few_rounds_grow_to_what_can_decide_at_one_look() {
        assert_eq!(plan_looks(4, 1, ALPHA), [7]);
        assert_eq!(plan_looks(20, 10, ALPHA), [10]);
    }
}
