//! What a URL's load came to: the engine's recording, and the numbers and findings that rest on it.

use httpbench_core::model::{ArmRecording, Counts, ErrorClass, Histogram, Load, Nanos, Recording};

use super::target::Driven;
use crate::error::Error;
use crate::exit_code::ExitCode;
use crate::report::quantity;

/// How a URL's load ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEnd {
    /// As asked.
    Complete,
    /// Early, by this signal.
    Interrupted(u8),
    /// Early, because nobody listens there.
    NobodyListens,
}

/// One URL, loaded.
#[derive(Clone, Debug)]
pub struct LoadMeasured {
    /// What was loaded.
    pub driven: Driven,
    /// The method that was sent.
    pub method: String,
    /// How.
    pub load: Load,
    /// What came back: one arm, one slice.
    pub recording: Recording,
    /// How it ended.
    pub end: LoadEnd,
    /// Whether the command was suspended by Ctrl-Z meanwhile.
    pub suspended: bool,
}

impl LoadMeasured {
    /// The recording's only arm.
    #[must_use]
    pub fn arm(&self) -> &ArmRecording {
        &self.recording.arms[0]
    }

    /// How the exchanges ended.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.arm().counts
    }

    /// From the first start to the end that throughput is counted to.
    #[must_use]
    pub fn span(&self) -> Nanos {
        self.recording.slices.iter().map(|slice| slice.span).sum()
    }

    /// From the first start until the last exchange had ended.
    #[must_use]
    pub fn elapsed(&self) -> Nanos {
        self.recording.engine.wall
    }

    /// Good exchanges per second; `None` without one, for a throughput of nothing says nothing.
    #[must_use]
    pub fn throughput(&self) -> Option<f64> {
        throughput(&self.recording)
    }

    /// The times that the load is judged by: from the intended start in an open loop, from the send in a closed one.
    #[must_use]
    pub fn main_times(&self) -> &Histogram {
        if self.load.schedule.is_open() { &self.arm().response } else { &self.arm().service }
    }

    /// The share of their time that the engine's threads were busy.
    #[must_use]
    pub fn engine_busy(&self) -> Option<f64> {
        engine_busy(&self.recording)
    }

    /// Exchanges that this machine's limits broke, with the first such class.
    #[must_use]
    pub fn broken_by_this_machine(&self) -> Option<(ErrorClass, u64)> {
        let ours = || self.counts().errors.counts.iter().filter(|(class, _)| class.is_ours());
        ours().next().map(|(class, _)| (*class, ours().map(|(_, count)| count).sum()))
    }

    /// What decides the exit code. An interrupted load has nothing to be blamed for.
    #[must_use]
    pub fn findings(&self) -> Option<ExitCode> {
        let counts = self.counts();
        if matches!(self.end, LoadEnd::Interrupted(_)) {
            None
        } else if counts.good == 0 || self.broken_by_this_machine().is_some() {
            Some(ExitCode::InvalidMeasurement)
        } else {
            (counts.failed() > 0).then_some(ExitCode::Regression)
        }
    }

    /// The finding in words, with what to do.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        let exit = self.findings()?;
        let (url, counts) = (self.driven.url.as_str(), self.counts());
        let failed = quantity::count(counts.failed());
        if let Some((class, count)) = self.broken_by_this_machine() {
            let count = quantity::count(count);
            return Some(
                Error::new(exit, format!("limits of this machine broke {count} exchanges with `{url}` (`{class}`)"))
                    .help(remedy(class)),
            );
        }
        if counts.good > 0 {
            let started = quantity::count(counts.started);
            return Some(
                Error::new(exit, format!("{failed} of {started} exchanges with `{url}` failed"))
                    .help("the report names them by kind, each with an example"),
            );
        }
        let error = Error::new(exit, format!("nothing good came back from `{url}` ({})", self.driven.address()));
        Some(error.help(self.advice_on_nothing()))
    }

    fn advice_on_nothing(&self) -> String {
        let refused = self.counts().errors.counts.contains_key(&ErrorClass::Refused);
        if refused || self.end == LoadEnd::NobodyListens {
            let mut text = format!("start the server, and check that it listens at {}", self.driven.address());
            if let Some(other) = self.driven.other_addresses.first() {
                text.push_str(&format!("; the name stands for {other} too: `--connect-to {other}`"));
            }
            return text;
        }
        if self.counts().errors.counts.contains_key(&ErrorClass::Tls) {
            return "trust the server's authority with `--cacert FILE`, or verify nothing, in a test, with `--insecure`"
                .to_owned();
        }
        match self.arm().first_answer.as_ref().filter(|_| self.counts().check_failures > 0) {
            Some(answer) => format!(
                "every answer was wrong, the first had status {0}: check the URL, or say that it is right with `--check-status {0}`",
                answer.status
            ),
            None => "the report names the failures by kind, each with an example".to_owned(),
        }
    }
}

fn remedy(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::NoLocalPort => {
            "keep connections alive, ask for fewer of them, or widen `net.ipv4.ip_local_port_range` (sysctl)"
        }
        ErrorClass::FileTableFull => "raise `fs.file-max` (sysctl), or ask for fewer connections",
        _ => "raise the hard limit of open files (`ulimit -Hn`), or ask for fewer connections",
    }
}

pub(crate) fn throughput(recording: &Recording) -> Option<f64> {
    let good: u64 = recording.slices.iter().map(|slice| slice.good).sum();
    let span: Nanos = recording.slices.iter().map(|slice| slice.span).sum();
    #[expect(clippy::cast_precision_loss, reason = "a count below 2^52")]
    (good > 0 && span > Nanos::ZERO).then(|| good as f64 / span.as_secs_f64())
}

pub(crate) fn engine_busy(recording: &Recording) -> Option<f64> {
    let engine = &recording.engine;
    (engine.wall > Nanos::ZERO && engine.threads > 0)
        .then(|| engine.cpu.as_secs_f64() / engine.wall.as_secs_f64() / f64::from(engine.threads))
}

/// All loads as one: counts and times are added, one after the other.
#[must_use]
pub(crate) fn together(all: &[LoadMeasured]) -> Recording {
    let mut sum = Recording {
        arms: vec![ArmRecording::default()],
        slices: Vec::new(),
        engine: httpbench_core::model::EngineUsage::default(),
    };
    for measured in all {
        sum.slices.extend(measured.recording.slices.iter().cloned());
        sum.engine.cpu += measured.recording.engine.cpu;
        sum.engine.wall += measured.recording.engine.wall;
        sum.engine.threads = sum.engine.threads.max(measured.recording.engine.threads);
        sum.arms[0].merge(measured.arm());
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::sample::measured;

    #[test]
    fn one_failure_fails_the_load_and_nothing_good_makes_it_invalid() {
        let mut load = measured(100, 0);
        assert_eq!(load.findings(), None);
        load = measured(99, 1);
        assert_eq!(load.findings(), Some(ExitCode::Regression));
        assert!(load.failure().expect("a failure").what.contains("1 of 100 exchanges"), "{load:?}");
        load = measured(0, 100);
        assert_eq!(load.findings(), Some(ExitCode::InvalidMeasurement));
        assert_eq!(measured(0, 0).findings(), Some(ExitCode::InvalidMeasurement));
        load.end = LoadEnd::Interrupted(2);
        assert_eq!((load.findings(), load.failure().is_none()), (None, true));
    }

    #[test]
    fn limits_of_this_machine_are_not_blamed_on_the_server() {
        let mut load = measured(99, 0);
        load.recording.arms[0].counts.started += 1;
        load.recording.arms[0].counts.errors.add(ErrorClass::NoLocalPort, || "no port".to_owned());
        let failure = load.failure().expect("a failure");
        assert_eq!(failure.exit, ExitCode::InvalidMeasurement);
        assert!(failure.what.contains("limits of this machine"), "{failure}");
        assert!(failure.help.expect("help").contains("ip_local_port_range"));
    }

    #[test]
    fn without_a_good_exchange_there_is_no_throughput() {
        assert_eq!(measured(0, 3).throughput(), None);
        assert_eq!(measured(30, 3).throughput(), Some(15.0));
    }

    #[test]
    fn loads_add_up() {
        let sum = together(&[measured(10, 1), measured(20, 2)]);
        let counts = &sum.arms[0].counts;
        assert_eq!((counts.started, counts.good, counts.check_failures), (33, 30, 3));
        assert!(counts.balances());
        assert_eq!((sum.arms[0].service.count(), throughput(&sum)), (30, Some(7.5)));
    }
}
