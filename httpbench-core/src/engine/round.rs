//! A round from the outside: checks the plan, starts the threads, and puts their recordings together.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::Mutex;

use super::EngineError;
#[cfg(feature = "http2")]
use super::carrier;
use super::carrier::{Carrier, Security, Transport, Way};
use super::clock::Clock;
use super::driver::Driver;
#[cfg(feature = "http2")]
use super::driver::http2;
use super::driver::pipeline::{self, Pipeline};
use super::driver::raw::{ContinueDriver, RawDriver, Stream, expects_continue};
use super::driver::shared::{Link, SharedDriver};
#[cfg(feature = "tls")]
use super::driver::tls::{self, TlsStream};
use super::follow::{FollowDriver, Names};
use super::observer::Observer;
use super::pacing::{Arrivals, Part};
use super::sessions::Calls;
use super::setup::{bind_to_core, reserve_descriptors};
use super::slices::{Agreement, Ending, OpenLoop, Thread, ThreadArm, ThreadRecording, ThreadSlice, share};
use super::timer::Timer;
use super::watch::{Post, Watch};
use super::worker::{Arm, Judging};
use crate::model::{
    ArmRecording, EngineUsage, Late, Nanos, Recording, Reuse, RoundPlan, Schedule, SlicePlan, SliceRecording,
};
use crate::scenario::WireRequest;

/// The highest arrival rate per second: beyond any engine, and far enough from endless.
const MOST_ARRIVALS: f64 = 1e7;

/// Executes one round: every arm warmed up, then the slices in their order.
///
/// `requests` holds one request for each arm of the plan. Blocks until the last slice has drained; must not be called
/// from within an asynchronous task.
///
/// # Errors
///
/// When the plan contradicts itself, or the operating system refuses threads, descriptors or core bindings.
pub fn run_round(plan: &RoundPlan, requests: Vec<WireRequest>) -> Result<Recording, EngineError> {
    execute(plan, &requests, None)
}

/// Executes one round as [`run_round`] does, while `watch` sees how far it has come and may end it early.
///
/// # Errors
///
/// As [`run_round`]. To be stopped is none: the recording is complete as far as it went, slices that never began hold
/// nothing.
pub fn run_watched(plan: &RoundPlan, requests: Vec<WireRequest>, watch: &Watch) -> Result<Recording, EngineError> {
    execute(plan, &requests, Some(watch))
}

fn execute(plan: &RoundPlan, requests: &[WireRequest], watch: Option<&Watch>) -> Result<Recording, EngineError> {
    check(plan, requests)?;
    let carrier = Carrier::of(plan, requests)?;
    let threads = plan.load.threads.min(plan.load.connections);
    // A connection that follows redirects may hold another one to another server.
    let each = if plan.load.redirects == 0 { 1 } else { 2 };
    let whole = Part { thread: 0, threads: 1 };
    let connections = (0..plan.arms.len()).map(|arm| connections(plan, arm, whole) * each).sum();
    reserve_descriptors(connections, u64::from(threads))?;
    let clock = Clock::new();
    let posts = watch.map(|watch| watch.posts(threads));
    let agreement = Arc::new(Agreement::new(threads));
    let recordings = thread::scope(|scope| {
        // No thread may wait for one that could not be set up: all report first, then all are let go.
        let (report, reports) = mpsc::channel();
        let mut handles = Vec::new();
        let mut go = Vec::new();
        for index in 0..threads {
            let (start, started) = mpsc::channel::<()>();
            let (agreement, report) = (Arc::clone(&agreement), report.clone());
            let carrier = &carrier;
            let part = Part { thread: index, threads };
            let post = posts.as_ref().map(|posts| posts[index as usize].clone());
            let body = move || -> Result<Option<ThreadRecording>, EngineError> {
                let (runtime, open_loop) = match set_up(plan, clock, part) {
                    Ok(granted) => granted,
                    Err(error) => {
                        let _ = report.send(Err(error));
                        return Ok(None);
                    }
                };
                let _ = report.send(Ok(()));
                if started.recv().is_err() {
                    return Ok(None);
                }
                let share = Share { part, clock, agreement, post };
                runtime.block_on(share.run(plan, requests, open_loop, carrier)).map(Some)
            };
            handles.push(thread::Builder::new().name(format!("httpbench-{index}")).spawn_scoped(scope, body)?);
            go.push(start);
        }
        drop(report);
        for _ in 0..threads {
            reports.recv().map_err(|_| EngineError::ThreadLost)??;
        }
        go.iter().for_each(|start| {
            let _ = start.send(());
        });
        let joined = handles.into_iter().map(|handle| match handle.join() {
            Ok(recorded) => recorded?.ok_or(EngineError::ThreadLost),
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Result<Vec<_>, EngineError>>()
    })?;
    put_together(plan, recordings)
}

fn check(plan: &RoundPlan, requests: &[WireRequest]) -> Result<(), EngineError> {
    let wrong = |text: String| Err(EngineError::Plan(text));
    let load = &plan.load;
    if plan.arms.is_empty() || plan.arms.len() != requests.len() {
        return wrong(format!("{} requests for {} arms", requests.len(), plan.arms.len()));
    }
    if load.connections == 0 || load.threads == 0 {
        return wrong(format!("{} connections on {} threads", load.connections, load.threads));
    }
    if load.request_timeout == Nanos::ZERO || load.connect_timeout == Nanos::ZERO {
        return wrong("a timeout of zero lets no exchange end".to_owned());
    }
    match load.schedule {
        Schedule::Closed => {}
        Schedule::Constant { per_second } | Schedule::Poisson { per_second, .. } if is_possible(per_second) => {}
        Schedule::Ramp { from, to, .. }
            if [from, to].iter().all(|end| *end == 0.0 || is_possible(*end)) && from + to > 0.0 => {}
        Schedule::Sessions { per_second, calls } if is_possible(per_second) && calls > 0 => {}
        schedule => return wrong(format!("the schedule {schedule:?}")),
    }
    if load.late == Late::Drop && !load.schedule.is_open() {
        return wrong("nothing is late in a closed loop, so that nothing can be dropped".to_owned());
    }
    if let Schedule::Sessions { calls, .. } = load.schedule {
        if load.depth > 1 {
            return wrong(format!("sessions make their calls one after the other, not {} at once", load.depth));
        }
        if load.reuse == Reuse::Close && calls > 1 {
            return wrong(format!("{calls} calls in a session, and connections that carry one exchange"));
        }
    }
    for (index, slice) in plan.slices.iter().enumerate() {
        if slice.arm >= plan.arms.len() {
            return wrong(format!("slice {index} loads arm {} of {}", slice.arm, plan.arms.len()));
        }
        if slice.requests == Some(0) {
            return wrong(format!("slice {index} has no requests"));
        }
        if slice.lead_in >= slice.length {
            return wrong(format!("the lead-in of slice {index} leaves nothing of it"));
        }
    }
    Ok(())
}

/// Whether there can be so many starts per second.
fn is_possible(per_second: f64) -> bool {
    per_second > 0.0 && per_second <= MOST_ARRIVALS
}

/// Everything of a thread that the operating system can refuse.
fn set_up(plan: &RoundPlan, clock: Clock, part: Part) -> Result<(LocalRuntime, Option<OpenLoop>), EngineError> {
    let cores = &plan.load.cores;
    if !cores.is_empty() {
        bind_to_core(cores[part.thread as usize % cores.len()])?;
    }
    let runtime = Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
    let Some(arrivals) = Arrivals::of(plan.load.schedule) else { return Ok((runtime, None)) };
    let timer = Rc::new(Mutex::new(runtime.block_on(async { Timer::new(clock) })?));
    let (late, drain) = (plan.load.late, plan.load.request_timeout);
    Ok((runtime, Some(OpenLoop { arrivals, calls: plan.load.schedule.calls(), late, timer, drain })))
}

/// Which part of the round a thread has.
struct Share {
    part: Part,
    clock: Clock,
    agreement: Arc<Agreement>,
    post: Option<Post>,
}

impl Share {
    /// Goes through the round with the driver that carries the plan: chosen here, and called statically from here on.
    async fn run(
        self,
        plan: &RoundPlan,
        requests: &[WireRequest],
        open_loop: Option<OpenLoop>,
        carrier: &Carrier,
    ) -> Result<ThreadRecording, EngineError> {
        let endpoint = |index: usize| plan.arms[index].endpoint.clone();
        match (&carrier.way, carrier.transport) {
            (Way::Raw(Security::None), Transport::Tcp) => {
                self.raw::<TcpStream>(plan, requests, open_loop, endpoint).await
            }
            (Way::Raw(Security::None), Transport::Unix) => {
                self.raw::<UnixStream>(plan, requests, open_loop, endpoint).await
            }
            (Way::Pipelined(routes), _) => {
                let common = |index: usize| pipeline::Common::new(routes[index].clone(), &requests[index]);
                self.shared::<Pipeline>(plan, requests, open_loop, common).await
            }
            #[cfg(feature = "http2")]
            (Way::Http2(translated), _) => {
                let common = |index: usize| {
                    let carrier::Translated { route, request } = &translated[index];
                    let keeps_body = requests[index].check.needs_body();
                    http2::Common::new(route.clone(), Arc::clone(request), keeps_body, plan.load.reuse)
                };
                self.shared::<http2::Http2>(plan, requests, open_loop, common).await
            }
            #[cfg(feature = "tls")]
            (Way::Raw(Security::Tls(settings)), transport) => {
                let clock = self.clock;
                let target =
                    |index: usize| tls::Target { transport: endpoint(index), settings: settings[index].clone(), clock };
                match transport {
                    Transport::Tcp => self.raw::<TlsStream<TcpStream>>(plan, requests, open_loop, target).await,
                    Transport::Unix => self.raw::<TlsStream<UnixStream>>(plan, requests, open_loop, target).await,
                }
            }
        }
    }

    /// Over HTTP/1, one exchange at a time on a connection; by wrapped drivers where bodies wait or redirects are followed.
    async fn raw<S: Stream>(
        self,
        plan: &RoundPlan,
        requests: &[WireRequest],
        open_loop: Option<OpenLoop>,
        target: impl Fn(usize) -> S::Target,
    ) -> Result<ThreadRecording, EngineError> {
        let (clock, load) = (self.clock, &plan.load);
        let raw = |index: usize| RawDriver::<S>::new(target(index), &requests[index], load.reuse, clock);
        let waits = requests.iter().any(|request| expects_continue(&request.bytes).is_some());
        if load.redirects == 0 && !waits {
            return self.thread(plan, requests, open_loop, raw).run(plan).await;
        }
        let names = Rc::new(Names::default());
        let driver = |index: usize| {
            let home = ContinueDriver::new(raw(index), load.request_timeout);
            FollowDriver::new(home, plan.arms[index].tls.is_some(), load, &names, clock)
        };
        self.thread(plan, requests, open_loop, driver).run(plan).await
    }

    /// Several exchanges at a time on a connection.
    async fn shared<L: Link>(
        self,
        plan: &RoundPlan,
        requests: &[WireRequest],
        open_loop: Option<OpenLoop>,
        common: impl Fn(usize) -> L::Common,
    ) -> Result<ThreadRecording, EngineError> {
        let part = self.part;
        let driver =
            |index: usize| SharedDriver::<L>::new(common(index), connections(plan, index, part), plan.load.depth);
        self.thread(plan, requests, open_loop, driver).run(plan).await
    }

    /// Within the thread's runtime. `driver` is asked for that of each arm, by its index.
    fn thread<D: Driver>(
        self,
        plan: &RoundPlan,
        requests: &[WireRequest],
        open_loop: Option<OpenLoop>,
        driver: impl Fn(usize) -> D,
    ) -> Thread<D> {
        let load = &plan.load;
        let arms = requests.iter().enumerate().map(|(index, request)| {
            let arm = Arm {
                clock: self.clock,
                driver: driver(index),
                request: request.clone(),
                judging: if request.check.needs_body() { Judging::Body } else { Judging::Status },
                reuse: load.reuse,
                redos: load.depth,
                connect_timeout: load.connect_timeout.into(),
                request_timeout: load.request_timeout,
            };
            ThreadArm::new(arm, exchanges(plan, index, self.part))
        });
        let roots = plan.arms.iter().filter(|_| self.part.thread == 0).map(|arm| arm.root_pid);
        Thread {
            clock: self.clock,
            agreement: self.agreement,
            arms: arms.collect(),
            part: self.part,
            gate: Rc::default(),
            post: self.post,
            open_loop,
            observers: roots.map(Observer::new).collect(),
        }
    }
}

/// How many connections to an arm a part of the round needs: never more than it has exchanges.
fn connections(plan: &RoundPlan, arm: usize, part: Part) -> u64 {
    share(plan.load.connections.into(), part).min(exchanges(plan, arm, part))
}

/// How many exchanges with an arm a part of the round may have outstanding.
fn exchanges(plan: &RoundPlan, arm: usize, part: Part) -> u64 {
    let places = share(plan.load.connections.into(), part) * u64::from(plan.load.depth);
    let slices = plan.slices.iter().filter(|slice| slice.arm == arm);
    // `None` stands for no bound; without slices, connections are opened for their own sake.
    let starts = |slice: &SlicePlan| match plan.load.schedule.calls() {
        Some(calls) => slice.requests.map(|requests| Calls::sessions(calls, requests)),
        None => slice.requests,
    };
    let starts = slices.map(starts).reduce(|most, starts| Some(most?.max(starts?))).flatten();
    match starts {
        Some(starts) if plan.warm_up == Nanos::ZERO => places.min(share(starts, part)),
        _ => places,
    }
}

fn put_together(plan: &RoundPlan, threads: Vec<ThreadRecording>) -> Result<Recording, EngineError> {
    let mut arms = vec![ArmRecording::default(); plan.arms.len()];
    let mut slices: Vec<_> = plan
        .slices
        .iter()
        .map(|slice| SliceRecording {
            arm: slice.arm,
            good: 0,
            span: Nanos::ZERO,
            completed: 0,
            scheduled: 0,
            begun: 0,
            wall: Nanos::ZERO,
            cpu: Vec::new(),
            engine_cpu: Nanos::ZERO,
        })
        .collect();
    for (index, (slice, plan)) in slices.iter_mut().zip(&plan.slices).enumerate() {
        slice.span = end(plan, threads.iter().map(|thread| &thread.slices[index])) - plan.lead_in;
    }
    let mut engine = EngineUsage { threads: threads.len() as u32, ..EngineUsage::default() };
    for thread in threads {
        for (arm, (warm_up, recorded)) in arms.iter_mut().zip(thread.arms) {
            warm_up.add_as_warm_up(arm);
            recorded.add_as_slices(arm);
        }
        for (slice, part) in slices.iter_mut().zip(thread.slices) {
            slice.good += part.good;
            slice.completed += part.completed;
            slice.scheduled += part.scheduled;
            slice.begun += part.begun;
            slice.engine_cpu += part.engine_cpu;
            slice.wall = slice.wall.max(part.wall);
            if slice.cpu.is_empty() {
                slice.cpu = part.cpu;
            }
        }
    }
    for slice in &slices {
        engine.cpu += slice.engine_cpu;
        engine.wall += slice.wall;
    }
    for (index, arm) in arms.iter().enumerate() {
        for counts in [&arm.counts, &arm.warm_up] {
            if !counts.balances() {
                return Err(EngineError::Unbalanced { arm: index, counts: Box::new(counts.clone()) });
            }
        }
    }
    Ok(Recording { arms, slices, engine })
}

/// How long a slice lasted, as its throughput is concerned: its length, but where all threads were done before, until the
/// last exchange completed, whatever became of others afterwards.
fn end<'a>(plan: &SlicePlan, threads: impl Iterator<Item = &'a ThreadSlice> + Clone) -> Nanos {
    if threads.clone().any(|thread| thread.ending == Ending::Length) {
        return plan.length;
    }
    let last = threads.clone().map(|thread| thread.last).max().unwrap_or_default();
    let drained = threads.map(|thread| thread.wall).max().unwrap_or_default();
    (if last == Nanos::ZERO { drained } else { last }).min(plan.length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::recorder::Recorder;
    use crate::model::Load;

    #[test]
    fn exchange_that_is_lost_fails_the_round() {
        let address = ([127, 0, 0, 1], 80).into();
        let plan = RoundPlan {
            scenario: "lost".to_owned(),
            arms: vec![crate::model::ArmPlan::plain(address)],
            load: Load {
                connections: 1,
                threads: 1,
                cores: Vec::new(),
                request_timeout: Nanos(1),
                connect_timeout: Nanos(1),
                ..Load::default()
            },
            warm_up: Nanos::ZERO,
            slices: Vec::new(),
        };
        let mut slices = Recorder::default();
        slices.started(());
        let thread = ThreadRecording { arms: vec![(Recorder::default(), slices)], slices: Vec::new() };
        let error = put_together(&plan, vec![thread]).expect_err("one exchange has no end");
        assert!(matches!(error, EngineError::Unbalanced { arm: 0, .. }), "{error}");
    }
}
