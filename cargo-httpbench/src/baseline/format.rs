//! What a stored baseline is, and its JSON text.
//!
//! The text is versioned from the first day: unknown fields, metrics and error classes of a later version are passed over, a later
//! *schema* is refused by the version that it needs. Values stand in base units, and the file says which. Where the file lies and
//! how it gets there is the store's.

use std::collections::BTreeMap;

use httpbench_core::model::{Counts, Histogram, Metric, RequestSummary};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::digest::Sha256Hex;
use super::fingerprint::Fingerprint;
use super::histogram;
use super::names::BaselineName;
use super::set_up::SetUp;
use super::units::Units;
use crate::verdict::{AgainstReference, Compared, ReferenceState};

/// The schema that this version writes, and the latest that it reads. Raised with every change that an older reader would misread.
pub const SCHEMA: u32 = 1;

/// The first version that reads [`SCHEMA`]: what an older one tells its user to install.
const READ_SINCE: &str = "0.1.0";

/// A measurement that later ones are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// The schema of the text that it was read from; a save writes [`SCHEMA`].
    pub schema: u32,
    /// What the user calls it.
    pub name: BaselineName,
    /// When it was measured.
    pub saved_at: Timestamp,
    /// The package.
    pub package: String,
    /// The server's binary target.
    pub server: String,
    /// The machine and the build.
    pub fingerprint: Fingerprint,
    /// The revision; `None` outside a git repository.
    pub commit: Option<Commit>,
    /// How the server was started.
    pub set_up: SetUp,
    /// At least one, in the order of their names.
    pub scenarios: Vec<BaselineScenario>,
    /// The server's executable. A save fills it in.
    pub executable: Option<ExecutableRecord>,
}

/// A revision, and what had been changed since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its full id.
    pub sha: String,
    /// Whether that is what was built.
    pub tree: WorkingTree,
}

/// The working tree beside its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkingTree {
    /// As committed.
    Clean,
    /// With changes that are in no commit.
    Modified,
}

/// What was known of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineScenario {
    /// `module::function[arg]`.
    pub name: String,
    /// What it sent; `None` where a request is not known in advance.
    pub request: Option<RequestSummary>,
    /// Equal for equal requests under equal load: [`definition`](super::definition).
    pub definition: Sha256Hex,
    /// What each round measured.
    pub rounds: Vec<RoundValues>,
    /// Service times of good exchanges, all rounds together.
    pub service: Histogram,
    /// How the exchanges ended.
    pub counts: BaselineCounts,
    /// Starts per second, if it was an open loop.
    pub arrival_rate: Option<f64>,
    /// Each round beside the reference server; empty where it was not measured.
    pub against_reference: Vec<AgainstReference>,
}

/// What one round measured, in the metrics' base units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundValues(pub BTreeMap<Metric, f64>);

/// How exchanges ended. Without examples: they quote what a server answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineCounts {
    /// Exchanges started.
    pub started: u64,
    /// Completed with the right answer.
    pub good: u64,
    /// Completed with a wrong one.
    pub check_failures: u64,
    /// Broken, by the names of their classes.
    pub errors: BTreeMap<String, u64>,
    /// Neither when the engine stopped.
    pub in_flight: u64,
}

impl From<&Counts> for BaselineCounts {
    fn from(counts: &Counts) -> Self {
        Self {
            started: counts.started,
            good: counts.good,
            check_failures: counts.check_failures,
            errors: counts.errors.counts.iter().map(|(class, count)| (class.name().to_owned(), *count)).collect(),
            in_flight: counts.in_flight,
        }
    }
}

/// The executable that a baseline was measured with, as it was built: not stripped, because equal bytes are what proves that
/// nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutableRecord {
    /// Of all its bytes.
    pub sha256: Sha256Hex,
    /// How many those are.
    #[serde(rename = "size_bytes")]
    pub size: u64,
    /// Whether it lies beside the text.
    pub kept: Kept,
}

/// Whether an executable is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// Beside the text.
    Whole,
    /// Not: it is larger than [`EXECUTABLE_CAP`](super::EXECUTABLE_CAP).
    TooLarge,
}

/// Why a text is no baseline that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A later version wrote it.
    #[error("it has schema {schema}, and this version reads up to {SCHEMA}: it needs cargo-httpbench ≥ {needs}")]
    Newer {
        /// Its schema.
        schema: u32,
        /// The first version that reads it.
        needs: String,
    },
    /// It is damaged or something else.
    #[error("it is no baseline: {0}")]
    NotABaseline(#[from] serde_json::Error),
    /// A value cannot be understood.
    #[error("scenario `{scenario}`: {what}")]
    Value {
        /// Whose.
        scenario: String,
        /// What is wrong.
        what: String,
    },
}

/// What is read before anything else, in every schema.
#[derive(Deserialize)]
struct Head {
    schema: u32,
    #[serde(default)]
    needs_httpbench: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: u32,
    needs_httpbench: String,
    name: BaselineName,
    saved_at: Timestamp,
    package: String,
    server: String,
    #[serde(default)]
    commit: Option<Commit>,
    fingerprint: Fingerprint,
    set_up: SetUp,
    #[serde(default)]
    executable: Option<ExecutableRecord>,
    units: Units,
    scenarios: Vec<ScenarioDocument>,
}

#[derive(Serialize, Deserialize)]
struct ScenarioDocument {
    name: String,
    #[serde(default)]
    request: Option<RequestSummary>,
    definition: Sha256Hex,
    rounds: Vec<BTreeMap<String, f64>>,
    #[serde(with = "histogram", rename = "service_hdr_v2")]
    service: Histogram,
    counts: BaselineCounts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrival_rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    against_reference: Vec<AgainstDocument>,
}

/// A round beside the reference server.
#[derive(Serialize, Deserialize)]
struct AgainstDocument {
    version: u32,
    throughput_per_second: f64,
    failed: u64,
    /// Logarithms of the server's values over the reference server's.
    log_ratios: BTreeMap<String, f64>,
}

impl From<&AgainstReference> for AgainstDocument {
    fn from(against: &AgainstReference) -> Self {
        let finite = against.log_ratios.iter().filter(|(_, value)| value.is_finite());
        Self {
            version: against.reference.version,
            throughput_per_second: against.reference.throughput,
            failed: against.reference.failed,
            log_ratios: finite.map(|(compared, value)| (compared.name().to_owned(), *value)).collect(),
        }
    }
}

impl From<AgainstDocument> for AgainstReference {
    /// Cells of a later version are passed over.
    fn from(document: AgainstDocument) -> Self {
        let known = |(name, value): (String, f64)| Some((Compared::from_name(&name)?, value));
        Self {
            log_ratios: document.log_ratios.into_iter().filter_map(known).collect(),
            reference: ReferenceState {
                version: document.version,
                throughput: document.throughput_per_second,
                failed: document.failed,
            },
        }
    }
}

impl Baseline {
    /// Its text, in the current schema.
    ///
    /// # Errors
    ///
    /// When a histogram cannot be written, which no histogram of ours causes.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let scenarios = self.scenarios.iter().map(|scenario| ScenarioDocument {
            name: scenario.name.clone(),
            request: scenario.request.clone(),
            definition: scenario.definition.clone(),
            rounds: scenario.rounds.iter().map(RoundValues::to_document).collect(),
            service: scenario.service.clone(),
            counts: scenario.counts.clone(),
            arrival_rate: scenario.arrival_rate,
            against_reference: scenario.against_reference.iter().map(AgainstDocument::from).collect(),
        });
        let document = Document {
            schema: SCHEMA,
            needs_httpbench: READ_SINCE.to_owned(),
            name: self.name.clone(),
            saved_at: self.saved_at,
            package: self.package.clone(),
            server: self.server.clone(),
            commit: self.commit.clone(),
            fingerprint: self.fingerprint.clone(),
            set_up: self.set_up.clone(),
            executable: self.executable.clone(),
            units: Units::base(),
            scenarios: scenarios.collect(),
        };
        let mut text = serde_json::to_vec_pretty(&document)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Reads what this version or an earlier one wrote.
    ///
    /// # Errors
    ///
    /// When a later version wrote it in a later schema, or it is no baseline.
    pub fn from_json(text: &[u8]) -> Result<Self, FormatError> {
        let head: Head = serde_json::from_slice(text)?;
        if head.schema > SCHEMA {
            let needs = head.needs_httpbench.unwrap_or_else(|| "the version that wrote it".to_owned());
            return Err(FormatError::Newer { schema: head.schema, needs });
        }
        let document: Document = serde_json::from_slice(text)?;
        let units = &document.units;
        let scenarios = document.scenarios.into_iter().map(|scenario| {
            let rounds: Result<Vec<_>, String> =
                scenario.rounds.into_iter().map(|round| units.to_base(round).map(RoundValues)).collect();
            Ok(BaselineScenario {
                rounds: rounds.map_err(|what| FormatError::Value { scenario: scenario.name.clone(), what })?,
                name: scenario.name,
                request: scenario.request,
                definition: scenario.definition,
                service: scenario.service,
                counts: scenario.counts,
                arrival_rate: scenario.arrival_rate,
                against_reference: scenario.against_reference.into_iter().map(AgainstReference::from).collect(),
            })
        });
        Ok(Self {
            schema: head.schema,
            name: document.name,
            saved_at: document.saved_at,
            package: document.package,
            server: document.server,
            fingerprint: document.fingerprint,
            commit: document.commit,
            set_up: document.set_up,
            scenarios: scenarios.collect::<Result<_, FormatError>>()?,
            executable: document.executable,
        })
    }
}

impl RoundValues {
    /// JSON knows no infinity and no NaN: such a value was not measured.
    fn to_document(&self) -> BTreeMap<String, f64> {
        self.0
            .iter()
            .filter(|(_, value)| value.is_finite())
            .map(|(metric, value)| (metric.name().to_owned(), *value))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::sample::sample_baseline;

    fn edited(edit: impl FnOnce(&mut serde_json::Value)) -> Result<Baseline, FormatError> {
        let text = sample_baseline().to_json().expect("it can be written");
        let mut value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        edit(&mut value);
        Baseline::from_json(value.to_string().as_bytes())
    }

    #[test]
    fn everything_comes_back() {
        let baseline = sample_baseline();
        let text = baseline.to_json().expect("it can be written");
        let back = Baseline::from_json(&text).expect("it can be read");
        assert_eq!(back, baseline);
        assert_eq!(back.to_json().expect("it can be written"), text);
    }

    #[test]
    fn ratios_to_the_reference_server_come_back_and_cells_of_a_later_version_are_passed_over() {
        let mut baseline = sample_baseline();
        let reference = ReferenceState { version: 1, throughput: 91_234.5, failed: 2 };
        let log_ratios = BTreeMap::from([(Compared::Stalls, -0.25), (Compared::Metric(Metric::P99), 1.0 / 3.0)]);
        baseline.scenarios[0].against_reference = vec![AgainstReference { log_ratios, reference }];
        baseline.scenarios[1].arrival_rate = Some(2_000.0);
        let text = baseline.to_json().expect("it can be written");
        assert_eq!(Baseline::from_json(&text).expect("it can be read"), baseline);
        let later = String::from_utf8(text).expect("text").replace("\"stalls\"", "\"wobbles\"");
        let read = Baseline::from_json(later.as_bytes()).expect("it can be read");
        assert_eq!(read.scenarios[0].against_reference[0].log_ratios.len(), 1);
    }

    /// Files of this schema are in the caches of users. Where this fails, the schema has changed: read both, raise [`SCHEMA`], and
    /// keep this file as it is.
    #[test]
    fn text_of_schema_1_is_read_as_ever() {
        let text = include_bytes!("schema_1.json");
        assert_eq!(Baseline::from_json(text).expect("it can be read"), sample_baseline());
    }

    #[test]
    fn later_schema_is_refused_by_the_version_that_it_needs() {
        let error = edited(|value| {
            *value = serde_json::json!({ "schema": 2, "needs_httpbench": "0.7.0", "name": 3 });
        });
        let error = error.expect_err("it is newer").to_string();
        assert!(error.contains("schema 2") && error.contains("cargo-httpbench ≥ 0.7.0"), "{error}");
        let nameless = edited(|value| *value = serde_json::json!({ "schema": 99 })).expect_err("it is newer");
        assert!(matches!(nameless, FormatError::Newer { schema: 99, .. }));
    }

    #[test]
    fn unknown_fields_and_metrics_are_passed_over_and_optional_ones_may_be_missing() {
        let read = edited(|value| {
            value["surprise"] = serde_json::json!({ "a": 1 });
            value["fingerprint"]["surprise"] = serde_json::json!(1);
            value["scenarios"][0]["surprise"] = serde_json::json!([]);
            value["scenarios"][0]["rounds"][0]["p9999"] = serde_json::json!(1.0);
            let fields = value.as_object_mut().expect("an object");
            fields.remove("commit");
            fields.remove("executable");
        })
        .expect("it can be read");
        assert_eq!(read, Baseline { commit: None, executable: None, ..sample_baseline() });
    }

    #[test]
    fn values_of_an_older_unit_are_equal_after_reading() {
        let read = edited(|value| {
            value["units"]["p99"] = serde_json::json!("milliseconds");
            for round in value["scenarios"][0]["rounds"].as_array_mut().expect("a list") {
                round["p99"] = serde_json::json!(round["p99"].as_f64().expect("a number") / 1e6);
            }
        })
        .expect("it can be read");
        let (old, new) = (&read.scenarios[0].rounds, &sample_baseline().scenarios[0].rounds);
        for (old, new) in old.iter().zip(new) {
            assert!((old.0[&Metric::P99] - new.0[&Metric::P99]).abs() < 1e-3, "{old:?} {new:?}");
        }
    }

    #[test]
    fn value_in_an_unknown_unit_is_refused_with_its_scenario() {
        let error = edited(|value| value["units"]["p99"] = serde_json::json!("fortnights")).expect_err("unknown");
        assert!(error.to_string().contains("index") && error.to_string().contains("fortnights"), "{error}");
    }

    #[test]
    fn what_is_no_baseline_is_refused() {
        for text in ["", "{}", "[]", "{\"schema\": 1}", "{\"schema\": -1}", "not JSON"] {
            assert!(matches!(Baseline::from_json(text.as_bytes()), Err(FormatError::NotABaseline(_))), "{text}");
        }
    }

    #[test]
    fn value_that_is_no_number_is_left_out_of_the_text() {
        let mut baseline = sample_baseline();
        baseline.scenarios[0].rounds[0].0.insert(Metric::P99, f64::NAN);
        let back = Baseline::from_json(&baseline.to_json().expect("it can be written")).expect("it can be read");
        assert_eq!(back.scenarios[0].rounds[0].0.get(&Metric::P99), None);
    }
}
