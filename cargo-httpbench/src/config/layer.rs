//! What each layer says, and which one wins.
//!
//! A field that nobody wrote is `None` or empty. Texts, files and flags are read elsewhere: this is precedence alone, and the
//! only place that knows the built-in values.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use httpbench_core::model::{Limit, Metric, Nanos, Options, Ratio};

use super::{BaselineSettings, LoadSettings, Ready, ServerSettings, Settings};
use crate::baseline::Saving;

/// What one file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsLayer {
    /// `[server]`
    pub server: ServerLayer,
    /// `[defaults]`
    pub load: LoadLayer,
    /// The part of `[defaults]` that is about baselines.
    pub baselines: BaselineLayer,
    /// `[tolerance]`
    pub tolerance: BTreeMap<Metric, Ratio>,
    /// `[limit]`, in the metric's base unit.
    pub limit: BTreeMap<Metric, f64>,
}

/// What one file says of the server. Lists replace those of an earlier layer, `env` is merged name by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerLayer {
    /// The binary target.
    pub bin: Option<String>,
    /// Its arguments.
    pub args: Option<Vec<String>>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Variables whose values may be shown.
    pub show_env: Option<Vec<String>>,
    /// What is copied into `{dir}`.
    pub copy: Option<Vec<PathBuf>>,
    /// Program and arguments before every start.
    pub setup: Option<Vec<String>>,
    /// Program and arguments after every stop.
    pub teardown: Option<Vec<String>>,
    /// Relative to the package.
    pub working_dir: Option<PathBuf>,
    /// When it is ready.
    pub ready: ReadyLayer,
    /// From the polite stop to the kill.
    pub stop_timeout: Option<Duration>,
}

/// What one file says of readiness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadyLayer {
    /// Path and query.
    pub path: Option<String>,
    /// The status that it must answer.
    pub status: Option<u16>,
    /// From the start of the process.
    pub timeout: Option<Duration>,
}

/// What one file or the environment says of baselines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaselineLayer {
    /// Where they are kept; a file's is relative to that file.
    pub dir: Option<PathBuf>,
    /// Whether a run for a pull request may replace one.
    pub saving: Option<Saving>,
}

/// What one file, the environment or the command line says of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadLayer {
    /// Connections to an arm, at least 1.
    pub connections: Option<u32>,
    /// Starts per second over all connections, above 0.
    pub arrival_rate: Option<f64>,
    /// Engine threads, at least 1.
    pub threads: Option<u32>,
    /// Loaded time for an arm, over all rounds.
    pub duration: Option<Duration>,
    /// Loaded time before an arm's first slice in each round.
    pub warm_up: Option<Duration>,
    /// Rounds of a run, at least 1.
    pub rounds: Option<u32>,
    /// Length of a slice.
    pub slice: Option<Duration>,
    /// From send to last byte.
    pub request_timeout: Option<Duration>,
    /// For a connection to be established.
    pub connect_timeout: Option<Duration>,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To know how fast one server is.
    #[default]
    Alone,
    /// To compare two.
    Comparison,
}

/// Everything that was said about one package's run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    /// Chooses the built-in values.
    pub purpose: Purpose,
    /// The workspace root's file.
    pub workspace: SettingsLayer,
    /// The package's file.
    pub package: SettingsLayer,
    /// `HTTPBENCH_*` variables.
    pub environment: LoadLayer,
    /// Flags.
    pub command_line: LoadLayer,
    /// `HTTPBENCH_BASELINE_DIR`.
    pub environment_baselines: BaselineLayer,
}

/// Accepted relative changes where nobody says otherwise. Another quantile that is gated stands in for one
/// of these.
const TOLERANCE: [(Metric, Ratio); 4] = [
    (Metric::Throughput, Ratio(0.03)),
    (Metric::CpuPerRequest, Ratio(0.03)),
    (Metric::P50, Ratio(0.03)),
    (Metric::P99, Ratio(0.10)),
];

impl LoadLayer {
    /// What `--quick` says: a first impression in a few seconds.
    pub const QUICK: Self = Self {
        rounds: Some(3),
        duration: Some(Duration::from_millis(1500)),
        warm_up: Some(Duration::from_millis(150)),
        connections: None,
        arrival_rate: None,
        threads: None,
        slice: None,
        request_timeout: None,
        connect_timeout: None,
    };

    /// What `--quick` says of a comparison: as few rounds as can decide.
    pub const QUICK_COMPARISON: Self = Self {
        rounds: Some(1),
        duration: Some(Duration::from_secs(4)),
        warm_up: Some(Duration::from_millis(100)),
        ..Self::QUICK
    };

    const BUILT_IN: Self = Self {
        connections: Some(64),
        arrival_rate: None,
        threads: None,
        duration: Some(Duration::from_secs(6)),
        warm_up: Some(Duration::from_millis(250)),
        rounds: Some(5),
        slice: None,
        request_timeout: Some(Duration::from_secs(10)),
        connect_timeout: Some(Duration::from_secs(3)),
    };

    /// What `self` says, and where it says nothing, what `earlier` says.
    #[must_use]
    pub fn over(self, earlier: Self) -> Self {
        Self {
            connections: self.connections.or(earlier.connections),
            arrival_rate: self.arrival_rate.or(earlier.arrival_rate),
            threads: self.threads.or(earlier.threads),
            duration: self.duration.or(earlier.duration),
            warm_up: self.warm_up.or(earlier.warm_up),
            rounds: self.rounds.or(earlier.rounds),
            slice: self.slice.or(earlier.slice),
            request_timeout: self.request_timeout.or(earlier.request_timeout),
            connect_timeout: self.connect_timeout.or(earlier.connect_timeout),
        }
    }

    /// Two arms take turns, so the same certainty needs more rounds; what is warmed up is warmed up twice.
    const BUILT_IN_COMPARISON: Self = Self {
        rounds: Some(16),
        duration: Some(Duration::from_secs(12)),
        warm_up: Some(Duration::from_millis(150)),
        ..Self::BUILT_IN
    };

    fn of_attribute(options: &Options) -> Self {
        Self {
            connections: options.connections,
            arrival_rate: options.arrival_rate,
            duration: options.duration.map(Duration::from),
            warm_up: options.warm_up.map(Duration::from),
            ..Self::default()
        }
    }
}

impl ServerLayer {
    /// What `self` says, and where it says nothing, what `earlier` says.
    fn over(self, earlier: Self) -> Self {
        let mut env = earlier.env;
        env.extend(self.env);
        Self {
            bin: self.bin.or(earlier.bin),
            args: self.args.or(earlier.args),
            env,
            show_env: self.show_env.or(earlier.show_env),
            copy: self.copy.or(earlier.copy),
            setup: self.setup.or(earlier.setup),
            teardown: self.teardown.or(earlier.teardown),
            working_dir: self.working_dir.or(earlier.working_dir),
            ready: ReadyLayer {
                path: self.ready.path.or(earlier.ready.path),
                status: self.ready.status.or(earlier.ready.status),
                timeout: self.ready.timeout.or(earlier.ready.timeout),
            },
            stop_timeout: self.stop_timeout.or(earlier.stop_timeout),
        }
    }
}

impl Layers {
    /// The settings of the package's run, and the load of a scenario whose attribute says nothing.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let server = self.package.server.clone().over(self.workspace.server.clone());
        Settings {
            server: ServerSettings {
                bin: server.bin,
                args: server.args.unwrap_or_default(),
                env: server.env,
                show_env: server.show_env.unwrap_or_default(),
                copy: server.copy.unwrap_or_default(),
                setup: server.setup,
                teardown: server.teardown,
                working_dir: server.working_dir,
                ready: Ready {
                    path: server.ready.path.unwrap_or_else(|| "/".to_owned()),
                    status: server.ready.status,
                    timeout: server.ready.timeout.unwrap_or(Duration::from_secs(30)),
                },
                stop_timeout: server.stop_timeout.unwrap_or(Duration::from_secs(5)),
            },
            load: self.for_scenario(&Options::default()),
            rounds: self.load(&Options::default()).rounds.expect("the built-in layer says how many rounds"),
        }
    }

    /// Where baselines are kept, and who may replace them.
    #[must_use]
    pub fn baselines(&self) -> BaselineSettings {
        let later_first = [&self.environment_baselines, &self.package.baselines, &self.workspace.baselines];
        BaselineSettings {
            dir: later_first.iter().find_map(|layer| layer.dir.clone()),
            saving: later_first.iter().find_map(|layer| layer.saving).unwrap_or_default(),
        }
    }

    /// The load of one scenario, with its attribute between the files and the environment.
    #[must_use]
    pub fn for_scenario(&self, options: &Options) -> LoadSettings {
        let load = self.load(options);
        let said = |duration: Option<Duration>| Nanos::from(duration.expect("the built-in layer says every duration"));
        let mut written = self.workspace.tolerance.clone();
        written.extend(&self.package.tolerance);
        written.extend(options.tolerance.iter().map(|tolerance| (tolerance.metric, tolerance.ratio)));
        let mut tolerance = BTreeMap::from(TOLERANCE);
        tolerance.extend(&written);
        let mut bounds = self.workspace.limit.clone();
        bounds.extend(&self.package.limit);
        bounds.extend(options.limit.iter().map(|limit| (limit.metric, limit.bound)));
        LoadSettings {
            connections: load.connections.expect("the built-in layer says how many connections"),
            arrival_rate: load.arrival_rate,
            threads: load.threads,
            duration: said(load.duration),
            warm_up: said(load.warm_up),
            slice: load.slice.map(Nanos::from),
            request_timeout: said(load.request_timeout),
            connect_timeout: said(load.connect_timeout),
            tolerance,
            tolerance_written: written.into_keys().collect(),
            limits: bounds.into_iter().map(|(metric, bound)| Limit { metric, bound }).collect(),
        }
    }

    fn load(&self, options: &Options) -> LoadLayer {
        let built_in = match self.purpose {
            Purpose::Alone => LoadLayer::BUILT_IN,
            Purpose::Comparison => LoadLayer::BUILT_IN_COMPARISON,
        };
        [self.workspace.load, self.package.load, LoadLayer::of_attribute(options), self.environment, self.command_line]
            .into_iter()
            .fold(built_in, |earlier, later| later.over(earlier))
    }
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::Tolerance;

    use super::*;

    fn connections(number: u32) -> LoadLayer {
        LoadLayer { connections: Some(number), ..LoadLayer::default() }
    }

    #[test]
    fn built_in_values_are_those_that_the_documents_promise() {
        let settings = Layers::default().settings();
        assert_eq!(settings.rounds, 5);
        assert_eq!(settings.load.connections, 64);
        assert_eq!(settings.load.threads, None);
        assert_eq!(settings.load.duration, Nanos::from_secs(6));
        assert_eq!(settings.load.warm_up, Nanos::from_millis(250));
        assert_eq!(settings.load.slice, None);
        assert_eq!(settings.load.request_timeout, Nanos::from_secs(10));
        assert_eq!(settings.load.connect_timeout, Nanos::from_secs(3));
        assert_eq!(settings.load.tolerance, BTreeMap::from(TOLERANCE));
        assert_eq!(settings.load.limits, []);
        assert_eq!(settings.server.ready.path, "/");
        assert_eq!(settings.server.ready.status, None);
        assert_eq!(settings.server.ready.timeout, Duration::from_secs(30));
        assert_eq!(settings.server.stop_timeout, Duration::from_secs(5));
    }

    #[test]
    fn comparison_has_more_rounds_and_time_unless_somebody_says_otherwise() {
        let mut layers = Layers { purpose: Purpose::Comparison, ..Layers::default() };
        assert_eq!((layers.settings().rounds, layers.settings().load.duration), (16, Nanos::from_secs(12)));
        layers.workspace.load.rounds = Some(20);
        assert_eq!(layers.settings().rounds, 20);
    }

    #[test]
    fn each_layer_wins_over_all_before_it() {
        let mut layers = Layers::default();
        let silent = Options::default();
        let attribute = Options { connections: Some(3), ..Options::default() };
        layers.workspace.load = connections(1);
        assert_eq!(layers.for_scenario(&silent).connections, 1);
        layers.package.load = connections(2);
        assert_eq!(layers.for_scenario(&silent).connections, 2);
        assert_eq!(layers.for_scenario(&attribute).connections, 3);
        layers.environment = connections(4);
        assert_eq!(layers.for_scenario(&attribute).connections, 4);
        layers.command_line = connections(5);
        assert_eq!(layers.for_scenario(&attribute).connections, 5);
    }

    #[test]
    fn attribute_says_durations_too_and_leaves_the_rest_to_the_files() {
        let mut layers = Layers::default();
        layers.package.load =
            LoadLayer { rounds: Some(7), warm_up: Some(Duration::from_secs(1)), ..LoadLayer::default() };
        let options = Options { duration: Some(Nanos::from_secs(2)), ..Options::default() };
        let load = layers.for_scenario(&options);
        assert_eq!((load.duration, load.warm_up), (Nanos::from_secs(2), Nanos::from_secs(1)));
        assert_eq!(layers.settings().rounds, 7);
    }

    #[test]
    fn arrival_rate_has_the_same_precedence_and_none_is_a_closed_loop() {
        let at = |per_second| LoadLayer { arrival_rate: Some(per_second), ..LoadLayer::default() };
        let mut layers = Layers::default();
        let silent = Options::default();
        let attribute = Options { arrival_rate: Some(3.0), ..Options::default() };
        assert_eq!(layers.for_scenario(&silent).arrival_rate, None);
        layers.package.load = at(2.0);
        assert_eq!(layers.for_scenario(&silent).arrival_rate, Some(2.0));
        assert_eq!(layers.for_scenario(&attribute).arrival_rate, Some(3.0));
        layers.environment = at(4.0);
        assert_eq!(layers.for_scenario(&attribute).arrival_rate, Some(4.0));
        layers.command_line = at(5.0);
        assert_eq!(layers.for_scenario(&attribute).arrival_rate, Some(5.0));
    }

    #[test]
    fn baselines_are_kept_where_the_latest_layer_says() {
        let mut layers = Layers::default();
        assert_eq!(layers.baselines(), BaselineSettings { dir: None, saving: Saving::FromTheDefaultBranch });
        layers.workspace.baselines = BaselineLayer { dir: Some("/w".into()), saving: Some(Saving::FromAnywhere) };
        assert_eq!(layers.baselines(), BaselineSettings { dir: Some("/w".into()), saving: Saving::FromAnywhere });
        layers.package.baselines = BaselineLayer { dir: Some("/p".into()), saving: Some(Saving::FromTheDefaultBranch) };
        layers.environment_baselines.dir = Some("/e".into());
        assert_eq!(
            layers.baselines(),
            BaselineSettings { dir: Some("/e".into()), saving: Saving::FromTheDefaultBranch }
        );
    }

    #[test]
    fn tolerances_and_limits_are_merged_metric_by_metric() {
        let mut layers = Layers::default();
        layers.workspace.tolerance = BTreeMap::from([(Metric::P99, Ratio(0.2)), (Metric::P50, Ratio(0.2))]);
        layers.package.tolerance = BTreeMap::from([(Metric::P99, Ratio(0.3))]);
        layers.workspace.limit = BTreeMap::from([(Metric::P99, 1.0), (Metric::Errors, 0.5)]);
        let options = Options {
            tolerance: vec![Tolerance { metric: Metric::P95, ratio: Ratio(0.4) }],
            limit: vec![Limit { metric: Metric::P99, bound: 2.0 }],
            ..Options::default()
        };
        let load = layers.for_scenario(&options);
        assert_eq!(load.tolerance[&Metric::P50], Ratio(0.2));
        assert_eq!(load.tolerance[&Metric::P99], Ratio(0.3));
        assert_eq!(load.tolerance[&Metric::P95], Ratio(0.4));
        assert_eq!(load.tolerance[&Metric::Throughput], Ratio(0.03));
        assert_eq!(
            load.limits,
            [Limit { metric: Metric::P99, bound: 2.0 }, Limit { metric: Metric::Errors, bound: 0.5 }]
        );
    }

    #[test]
    fn package_replaces_lists_and_adds_to_the_environment() {
        let mut layers = Layers::default();
        layers.workspace.server.args = Some(vec!["a".to_owned()]);
        layers.workspace.server.env =
            BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "1".to_owned())]);
        layers.workspace.server.ready.path = Some("/health".to_owned());
        layers.package.server.args = Some(Vec::new());
        layers.package.server.env = BTreeMap::from([("B".to_owned(), "2".to_owned())]);
        layers.package.server.ready.status = Some(204);
        let server = layers.settings().server;
        assert_eq!(server.args, Vec::<String>::new());
        assert_eq!(server.env, BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())]));
        assert_eq!((server.ready.path.as_str(), server.ready.status), ("/health", Some(204)));
    }

    #[test]
    fn explicit_flag_wins_over_quick_whatever_their_order() {
        let layer = LoadLayer { rounds: Some(9), ..LoadLayer::default() }.over(LoadLayer::QUICK);
        assert_eq!(layer.rounds, Some(9));
        assert_eq!(layer.duration, Some(Duration::from_millis(1500)));
    }
}
