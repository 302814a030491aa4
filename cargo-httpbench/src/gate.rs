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
    use super::*;

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
