//! The messages after the greeting.

use serde::{Deserialize, Serialize};

use crate::model::{Recording, RoundPlan, ScenarioListing, Trace, TracePlan};

/// What the command asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Ask {
    /// Every scenario, ignored ones too.
    List,
    /// One round of one scenario.
    Run(RoundPlan),
    /// One exchange, shown as it goes over the wire.
    Trace(TracePlan),
}

/// What the bench binary answers. A request gets exactly one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", content = "of", rename_all = "kebab-case")]
pub enum Answer {
    /// To [`Ask::List`].
    Scenarios(Vec<ScenarioListing>),
    /// To [`Ask::List`]: the scenarios cannot be told apart or their arguments could not be evaluated.
    ListingFailed(String),
    /// To [`Ask::Run`].
    Recording(Box<Recording>),
    /// To [`Ask::Trace`].
    Trace(Box<Trace>),
    /// To [`Ask::Run`] and [`Ask::Trace`].
    Failed(RunFailure),
}

/// Why nothing could be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "failure", content = "of", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RunFailure {
    /// The scenario function panicked; its message.
    #[error("the scenario panicked: {0}")]
    Panicked(String),
    /// The scenario renders no request that can be sent.
    #[error("the scenario's request cannot be sent: {0}")]
    Request(String),
    /// No scenario of that name.
    #[error("there is no scenario `{0}`")]
    UnknownScenario(String),
    /// The engine could not do what the plan says.
    #[error("the load engine failed: {0}")]
    Engine(String),
}
