//! Drives one URL: the engine on threads of its own, this one looks after signals, progress and a server that is not there.
//!
//! Nothing here is on the way of an exchange. The engine is asked for its progress ten times a second at most, and what is
//! drawn is one line, twice a second.

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use httpbench_core::engine::{EngineError, Progress, Watch, run_watched};
use httpbench_core::model::{Endpoint, Nanos, RoundPlan, SlicePlan};
use httpbench_core::scenario::WireRequest;

use super::measured::{LoadEnd, LoadMeasured};
use super::options::{LoadOptions, Period};
use super::target::Driven;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::process::Woken;
use crate::report::quantity;
use crate::shell::Shell;
use crate::warning::Warning;

/// How often the progress is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// The longest slice, for loads that only a count ends: ten years.
const ENDLESS: Nanos = Nanos::from_secs(10 * 365 * 24 * 3_600);
/// How long a count of requests goes on against an address at which nobody listens, for a server that is just starting.
const HOPE: Nanos = Nanos::from_secs(2);
/// For the answer to the one trial connection, which is made only after connections failed.
const TRIAL: Duration = Duration::from_millis(200);

/// Loads a target until its time or count is over, a signal comes, or nobody listens there.
///
/// # Errors
///
/// When the engine refuses the load, or breaks.
pub(super) fn drive(
    driven: Driven,
    request: WireRequest,
    options: &LoadOptions,
    shell: &mut Shell,
    interrupt: &Interrupt,
) -> Result<LoadMeasured> {
    let plan = plan(&driven, options);
    shell.status("Loading", &format!("{} at {}", driven.url.as_str(), driven.address()));
    let watch = Watch::new();
    let suspensions = interrupt.suspensions();
    let mut method = request.bytes.split(|byte| *byte == b' ').next().map(String::from_utf8_lossy);
    let method = method.take().unwrap_or_default().into_owned();
    let (finished, done) = io::pipe().map_err(|cause| Error::unexpected("cannot create a pipe", cause))?;
    let (result, end) = thread::scope(|scope| {
        let engine = thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, || {
            // Closed when the engine has ended, also by a panic.
            let _done = done;
            run_watched(&plan, vec![request], &watch)
        });
        let engine = engine.map_err(|cause| Error::unexpected("cannot start a thread", cause))?;
        let looked = Lookout::new(&driven, options).watch(&watch, &finished, shell, interrupt);
        if looked.is_err() {
            watch.stop();
        }
        let result = engine.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((result, looked?))
    })?;
    let recording = result.map_err(refused)?;
    let suspended = interrupt.suspensions() != suspensions;
    Ok(LoadMeasured { driven, method, load: options.load.clone(), recording, end, suspended })
}

fn plan(driven: &Driven, options: &LoadOptions) -> RoundPlan {
    let Period { requests, duration, warm_up } = options.period;
    let slice = SlicePlan { arm: 0, length: duration.unwrap_or(ENDLESS), lead_in: Nanos::ZERO, requests };
    RoundPlan {
        scenario: driven.url.as_str().to_owned(),
        arms: vec![driven.arm.clone()],
        load: options.load.clone(),
        warm_up,
        slices: vec![slice],
    }
}

/// What the engine cannot execute is asked for wrongly; what this machine does not grant makes the measurement invalid.
fn refused(error: EngineError) -> Error {
    match &error {
        EngineError::Plan(why) => {
            Error::new(ExitCode::Usage, format!("the load engine cannot do what is asked for: {why}"))
                .help("leave one of the options that contradict each other out; see `cargo httpbench load --help`")
        }
        EngineError::Tls(_) => {
            Error::new(ExitCode::Usage, error.to_string()).help("check the files of `--cacert`, `--cert` and `--key`")
        }
        EngineError::Descriptors { .. } => Error::new(ExitCode::InvalidMeasurement, error.to_string()),
        _ => Error::unexpected("the load engine failed", error),
    }
}

/// Looks after a load while it runs.
struct Lookout<'run> {
    driven: &'run Driven,
    period: Period,
    drawn: Nanos,
    /// Tenths of the load that a log has been told.
    tenths: u32,
    last: Progress,
    trial: Trial,
}

/// What is known about a server of which nothing has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    NotMade,
    NobodyListens,
    SomebodyListens,
}

impl<'run> Lookout<'run> {
    fn new(driven: &'run Driven, options: &LoadOptions) -> Self {
        let period = options.period;
        Self { driven, period, drawn: Nanos::ZERO, tenths: 0, last: Progress::default(), trial: Trial::NotMade }
    }

    /// Until the engine has ended or a signal comes.
    fn watch(
        mut self,
        watch: &Watch,
        finished: &impl AsFd,
        shell: &mut Shell,
        interrupt: &Interrupt,
    ) -> Result<LoadEnd> {
        let mut end = LoadEnd::Complete;
        let signal = loop {
            match interrupt.wait_for(&[finished.as_fd()], Some(LOOK)) {
                Ok(Woken::Readable) => return Ok(end),
                Ok(Woken::TimedOut) => {}
                Err(signal) => break signal,
            }
            let progress = watch.progress();
            self.tell(&progress, shell);
            if progress.completed == 0 && progress.failed > 0 && self.nobody_listens(shell)? {
                // A count is a promise of exactly so many starts; a time is not.
                let patience = self.period.requests.map_or(Nanos::ZERO, |_| HOPE);
                if progress.elapsed >= patience && !watch.is_stopped() {
                    watch.stop();
                    end = LoadEnd::NobodyListens;
                }
            }
        };
        watch.stop();
        let ExitCode::Signal(number) = signal.exit else { return Err(signal) };
        shell.end_progress();
        shell.status("Stopping", &format!("({}); a second signal ends it at once, without a report", signal.what));
        Ok(LoadEnd::Interrupted(number))
    }

    /// Asks the system once, after connections have failed and nothing has come back: then it costs nobody an exchange.
    fn nobody_listens(&mut self, shell: &mut Shell) -> Result<bool> {
        if self.trial == Trial::NotMade {
            let refused = match &self.driven.arm.endpoint {
                Endpoint::Tcp(address) => is_refused(TcpStream::connect_timeout(address, TRIAL)),
                Endpoint::Unix(path) => is_refused(UnixStream::connect(path)),
            };
            self.trial = if refused { Trial::NobodyListens } else { Trial::SomebodyListens };
            if refused {
                shell.warning(&Warning::NobodyListens { address: self.driven.address() })?;
            }
        }
        Ok(self.trial == Trial::NobodyListens)
    }

    fn tell(&mut self, progress: &Progress, shell: &mut Shell) {
        let share = self.share(progress);
        if progress.elapsed == Nanos::ZERO {
            let doing = if self.period.warm_up > Nanos::ZERO { "connecting, warming up" } else { "connecting" };
            shell.live("Loading", 0.0, doing);
            return;
        }
        let now = progress.elapsed;
        if now - self.drawn < Nanos::from_millis(450) && self.drawn > Nanos::ZERO {
            return;
        }
        let text = self.line(progress);
        shell.live("Loading", share, &text);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share from 0 to 1")]
        let tenths = (share * 10.0) as u32;
        if tenths > self.tenths {
            self.tenths = tenths;
            shell.verbose_milestone("Loaded", &format!("{}0 %: {text}", tenths));
        }
        (self.drawn, self.last) = (now, *progress);
    }

    /// How much of the load is over, from 0 to 1: by its count or its time, whichever is nearer to its end.
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
    fn share(&self, progress: &Progress) -> f64 {
        let by_count = self.period.requests.map(|requests| progress.started as f64 / requests as f64);
        let by_time = self.period.duration.map(|all| progress.elapsed.as_secs_f64() / all.as_secs_f64());
        by_count.into_iter().chain(by_time).fold(0.0, f64::max).min(1.0)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
    fn line(&self, progress: &Progress) -> String {
        let span = (progress.elapsed - self.last.elapsed).as_secs_f64();
        let answers = progress.completed.saturating_sub(self.last.completed);
        let pace = if span > 0.0 { quantity::per_second(answers as f64 / span) } else { String::new() };
        let mut text = format!("{} answers, {pace}", quantity::count(progress.completed));
        if progress.failed > 0 {
            text.push_str(&format!(", {} failed", quantity::count(progress.failed)));
        }
        text.push_str(&format!(", {}", quantity::time(Nanos(progress.elapsed.0 / 100_000_000 * 100_000_000))));
        text
    }
}

fn is_refused<T>(tried: io::Result<T>) -> bool {
    tried.is_err_and(|error| matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::sample::{measured, options};

    fn lookout<'a>(driven: &'a Driven, period: Period) -> Lookout<'a> {
        let mut options = options("http://127.0.0.1:8080/");
        options.period = period;
        Lookout::new(driven, &options)
    }

    #[test]
    fn share_follows_count_or_time_whichever_is_nearer_to_its_end() {
        let driven = measured(1, 0).driven;
        let progress = |started, secs| Progress { started, elapsed: Nanos::from_secs(secs), ..Progress::default() };
        let share = |requests, duration: Option<u64>, progress| {
            let period = Period { requests, duration: duration.map(Nanos::from_secs), warm_up: Nanos::ZERO };
            lookout(&driven, period).share(&progress)
        };
        assert_eq!(share(Some(100), None, progress(25, 9)), 0.25);
        assert_eq!(share(None, Some(10), progress(25, 5)), 0.5);
        assert_eq!(share(Some(100), Some(10), progress(75, 5)), 0.75);
        assert_eq!(share(None, Some(10), progress(25, 15)), 1.0);
    }

    #[test]
    fn line_tells_answers_pace_and_failures() {
        let driven = measured(1, 0).driven;
        let period = Period { requests: None, duration: Some(Nanos::from_secs(10)), warm_up: Nanos::ZERO };
        let progress = Progress { started: 3_000, completed: 2_990, failed: 7, elapsed: Nanos::from_millis(2_040) };
        let mut lookout = lookout(&driven, period);
        lookout.last = Progress { completed: 1_990, elapsed: Nanos::from_millis(1_540), ..Progress::default() };
        assert_eq!(lookout.line(&progress), "2,990 answers, 2,000/s, 7 failed, 2.00 s");
    }

    #[test]
    fn engine_that_cannot_do_it_is_wrong_usage_and_a_machine_that_cannot_is_invalid() {
        assert_eq!(refused(EngineError::Plan("x".to_owned())).exit, ExitCode::Usage);
        let error = refused(EngineError::Descriptors { connections: 9, needed: 99, hard: 64 });
        assert_eq!((error.exit, error.what.contains("99")), (ExitCode::InvalidMeasurement, true));
    }
}
