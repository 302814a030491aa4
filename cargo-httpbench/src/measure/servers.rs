//! The fresh servers of a round: one for every arm.

use httpbench_core::model::{ArmPlan, ArmRecording, Recording};

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::process::tree::descendants;
use crate::server::{Memory, Server, ServerSpec};
use crate::warning::Warning;

/// How many lines of a server's output are told with failures.
const LAST_LINES: usize = 10;

/// A running server for every arm, in the order of the arms.
#[derive(Debug)]
pub(super) struct Servers(Vec<Server>);

/// Which arm starts first. The one that starts first has the colder machine, so they take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartOrder {
    /// As the arms stand.
    Forward,
    /// The other way round.
    Backward,
}

impl Servers {
    /// Starts every arm, one after the other, so that none is slowed down by another's start.
    pub(super) fn start(arms: &[&ServerSpec], order: StartOrder, interrupt: &Interrupt) -> Result<Self> {
        let start = |arm: &&ServerSpec| Server::start(arm, interrupt);
        let servers: Result<Vec<Server>> = match order {
            StartOrder::Forward => arms.iter().map(start).collect(),
            StartOrder::Backward => arms.iter().rev().map(start).collect(),
        };
        let mut servers = servers?;
        if order == StartOrder::Backward {
            servers.reverse();
        }
        Ok(Self(servers))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Server> {
        self.0.iter()
    }

    /// What the engine is told of them.
    pub(super) fn plans(&self) -> Vec<ArmPlan> {
        let plan = |server: &Server| ArmPlan {
            host: server.host(),
            root_pid: Some(server.root_pid()),
            ..ArmPlan::plain(server.address())
        };
        self.0.iter().map(plan).collect()
    }

    /// Every process of every arm.
    pub(super) fn processes(&self) -> Vec<u32> {
        self.0.iter().flat_map(|server| descendants(server.root_pid())).map(|member| member.pid).collect()
    }

    /// What the first of them had written last with which exchanges failed: a panic in a handler closes the connection, and is told
    /// there.
    pub(super) fn last_lines_after_failures(&self, recording: &Recording) -> Vec<String> {
        let failed = |arm: &ArmRecording| arm.counts.failed() + arm.warm_up.failed() > 0;
        let server = self.0.iter().zip(&recording.arms).find_map(|(server, arm)| failed(arm).then_some(server));
        server.map(|server| server.log().last(LAST_LINES)).unwrap_or_default()
    }

    /// The first one that has died, told as an error.
    pub(super) fn died(&self) -> Option<Error> {
        self.0.iter().find_map(Server::died)
    }

    pub(super) fn reset_peak_memory(&self) {
        self.0.iter().for_each(Server::reset_peak_memory);
    }

    pub(super) fn memory(&self) -> Vec<Option<Memory>> {
        self.0.iter().map(Server::memory).collect()
    }

    /// Stops every one of them, whatever becomes of the others.
    pub(super) fn stop(self) -> Result<Vec<Warning>> {
        let stopped: Vec<Result<Vec<Warning>>> = self.0.into_iter().map(Server::stop).collect();
        stopped.into_iter().collect::<Result<Vec<_>>>().map(|warnings| warnings.into_iter().flatten().collect())
    }
}
