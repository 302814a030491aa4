//! The only place that decides whether a run passes.

use crate::baseline_arm::OneSided;
use crate::cli::{ComparisonOptions, OnInconclusive, OnMissing, OnRegression};
use crate::exit_code::ExitCode;
use crate::verdict::{Comparison, Verdict};

/// The codes that a finished run may end with, the weightiest first. A server that died outweighs a limit, because what
/// was measured beside it is doubtful; an exceeded limit outweighs an invalid measurement, because it is certain.
const PRECEDENCE: [ExitCode; 6] = [
    ExitCode::Unexpected,
    ExitCode::OutputFailed,
    ExitCode::ServerFailed,
    ExitCode::Regression,
    ExitCode::InvalidMeasurement,
    ExitCode::NothingCompared,
];

/// The code to exit with, from everything that was found. Nothing found is a success; a signal ends a run as it does any program,
/// whatever else was found until then.
#[must_use]
pub fn decide(findings: &[ExitCode]) -> ExitCode {
    let signal = || findings.iter().copied().find(|code| matches!(code, ExitCode::Signal(_)));
    PRECEDENCE
        .into_iter()
        .find(|code| findings.contains(code))
        .filter(|_| signal().is_none())
        .or_else(signal)
        .or_else(|| findings.iter().copied().find(|&code| code != ExitCode::Success))
        .unwrap_or(ExitCode::Success)
}

/// What a comparison adds to the findings, as the policy has it.
#[must_use]
pub fn of_comparison(comparison: &Comparison, one_sided: &OneSided, policy: &ComparisonOptions) -> Vec<ExitCode> {
    let any = |verdict| comparison.cells.iter().any(|cell| cell.verdict == verdict);
    let mut findings = Vec::new();
    if any(Verdict::Regressed) && policy.on_regression == OnRegression::Fail {
        findings.push(ExitCode::Regression);
    }
    if any(Verdict::Invalid) {
        findings.push(ExitCode::InvalidMeasurement);
    }
    let undecided = any(Verdict::Inconclusive) && policy.on_inconclusive == OnInconclusive::Fail;
    let missing = comparison.cells.is_empty() || !one_sided.removed.is_empty();
    if undecided || (missing && policy.on_missing == OnMissing::Fail) {
        findings.push(ExitCode::NothingCompared);
    }
    findings
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::{Metric, Ratio};

    use super::*;
    use crate::baseline_arm::Removed;
    use crate::verdict::{ALPHA, CellReport, Compared, Decision, Gated, Looks};

    fn comparison(verdicts: &[Verdict]) -> Comparison {
        let gated =
            Gated { scenario: 0, compared: Compared::Metric(Metric::P99), tolerance: Ratio(0.1), stands_for: None };
        let cell = |&verdict: &Verdict| CellReport {
            gated,
            baseline: None,
            candidate: None,
            rounds: 0,
            fresh_rounds: 0,
            decision: Decision { verdict, estimate: None, interval: None, p_worse: None, p_better: None },
            verdict,
            reason: None,
            detectable: None,
            order_effect: None,
        };
        Comparison {
            cells: verdicts.iter().map(cell).collect(),
            not_gated: Vec::new(),
            looks: Looks::ONLY,
            alpha: ALPHA,
        }
    }

    fn found(verdicts: &[Verdict], policy: &ComparisonOptions) -> ExitCode {
        decide(&of_comparison(&comparison(verdicts), &OneSided::default(), policy))
    }

    #[test]
    fn regression_fails_unless_it_is_only_to_be_told() {
        let verdicts = [Verdict::Unchanged, Verdict::Regressed];
        assert_eq!(found(&verdicts, &ComparisonOptions::default()), ExitCode::Regression);
        let tell = ComparisonOptions { on_regression: OnRegression::Tell, ..ComparisonOptions::default() };
        assert_eq!(found(&verdicts, &tell), ExitCode::Success);
    }

    #[test]
    fn inconclusive_passes_unless_the_policy_says_that_it_fails() {
        let verdicts = [Verdict::Unchanged, Verdict::Inconclusive];
        assert_eq!(found(&verdicts, &ComparisonOptions::default()), ExitCode::Success);
        let fail = ComparisonOptions { on_inconclusive: OnInconclusive::Fail, ..ComparisonOptions::default() };
        assert_eq!(found(&verdicts, &fail), ExitCode::NothingCompared);
    }

    #[test]
    fn invalid_fails_and_a_regression_beside_it_outweighs_it() {
        let policy = ComparisonOptions::default();
        assert_eq!(found(&[Verdict::Invalid, Verdict::Improved], &policy), ExitCode::InvalidMeasurement);
        assert_eq!(found(&[Verdict::Invalid, Verdict::Regressed], &policy), ExitCode::Regression);
    }

    #[test]
    fn nothing_compared_and_removed_scenarios_fail_only_where_missing_ones_do() {
        let removed = Removed { name: "list".to_owned(), looks_renamed_to: None };
        let removed = OneSided { removed: vec![removed], ..OneSided::default() };
        let new = OneSided { new: vec!["list".to_owned()], ..OneSided::default() };
        for (on_missing, expected) in [
            (OnMissing::Fail, ExitCode::NothingCompared),
            (OnMissing::Warn, ExitCode::Success),
            (OnMissing::Ignore, ExitCode::Success),
        ] {
            let policy = ComparisonOptions { on_missing, ..ComparisonOptions::default() };
            assert_eq!(found(&[], &policy), expected, "{on_missing:?}");
            let unchanged = comparison(&[Verdict::Unchanged]);
            assert_eq!(decide(&of_comparison(&unchanged, &removed, &policy)), expected, "{on_missing:?}");
            assert_eq!(decide(&of_comparison(&unchanged, &new, &policy)), ExitCode::Success, "{on_missing:?}");
        }
    }

    #[test]
    fn nothing_found_passes() {
        assert_eq!(decide(&[]), ExitCode::Success);
    }

    #[test]
    fn weightier_findings_come_first_whatever_their_order() {
        use ExitCode::{InvalidMeasurement, OutputFailed, Regression, ServerFailed};
        assert_eq!(decide(&[InvalidMeasurement, Regression]), Regression);
        assert_eq!(decide(&[Regression, ServerFailed]), ServerFailed);
        assert_eq!(decide(&[ServerFailed, OutputFailed, Regression]), OutputFailed);
    }

    #[test]
    fn signal_outweighs_everything() {
        assert_eq!(decide(&[ExitCode::Regression, ExitCode::Signal(2)]), ExitCode::Signal(2));
    }

    #[test]
    fn finding_outside_the_order_still_fails() {
        assert_eq!(decide(&[ExitCode::ListingFailed]), ExitCode::ListingFailed);
    }
}
