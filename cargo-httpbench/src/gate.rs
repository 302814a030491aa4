//! The only place that decides whether a run passes.

use crate::exit_code::ExitCode;

/// The codes that a finished run may end with, the weightiest first. A server that died outweighs a limit, because what
/// was measured beside it is doubtful; an exceeded limit outweighs an invalid measurement, because it is certain.
const PRECEDENCE: [ExitCode; 5] = [
    ExitCode::Unexpected,
    ExitCode::OutputFailed,
    ExitCode::ServerFailed,
    ExitCode::Regression,
    ExitCode::InvalidMeasurement,
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
