//! The `HTTPBENCH_*` environment variables, a layer between attribute and command line.
//!
//! A pure function of the variables that it is given.

use std::path::PathBuf;

use super::{LoadLayer, value};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::nearest::nearest;
use crate::warning::Warning;

/// Every variable that the command reads.
pub const VARIABLES: [&str; 10] = [
    "HTTPBENCH_CONNECTIONS",
    "HTTPBENCH_ARRIVAL_RATE",
    "HTTPBENCH_THREADS",
    "HTTPBENCH_DURATION",
    "HTTPBENCH_WARM_UP",
    "HTTPBENCH_ROUNDS",
    "HTTPBENCH_SLICE",
    "HTTPBENCH_REQUEST_TIMEOUT",
    "HTTPBENCH_CONNECT_TIMEOUT",
    BASELINE_DIR,
];

const BASELINE_DIR: &str = "HTTPBENCH_BASELINE_DIR";

/// Variables that the command sets for its children and never reads from its own environment.
const SET_FOR_CHILDREN: [&str; 2] = [httpbench_core::protocol::CONTROL_VARIABLE, "HTTPBENCH_DIR"];

/// Whether a variable belongs to the command, so that a server must not inherit it.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    VARIABLES.contains(&name) || SET_FOR_CHILDREN.contains(&name)
}

/// Reads the layer from what this process inherited (not from [`users_own`](crate::environment::users_own), which has none of these
/// variables left), and warns of variables that were probably meant to be part of it. An empty variable says nothing.
///
/// # Errors
///
/// When a variable's value is not what it must be: exit code 96.
pub fn read_variables(inherited: &Environment) -> Result<(LoadLayer, Vec<Warning>)> {
    let mut layer = LoadLayer::default();
    let mut warnings = Vec::new();
    for (name, value) in inherited.iter() {
        let Some(name) = name.to_str().filter(|name| name.starts_with("HTTPBENCH_")) else { continue };
        let value = value.to_string_lossy();
        if value.is_empty() {
            continue;
        }
        let wrong = |error: value::ValueError| {
            Error::new(ExitCode::Configuration, format!("environment variable `{name}`: {error}"))
        };
        match name {
            "HTTPBENCH_CONNECTIONS" => layer.connections = Some(value::positive(&value).map_err(wrong)?),
            "HTTPBENCH_ARRIVAL_RATE" => layer.arrival_rate = Some(value::arrival_rate(&value).map_err(wrong)?),
            "HTTPBENCH_THREADS" => layer.threads = Some(value::positive(&value).map_err(wrong)?),
            "HTTPBENCH_DURATION" => layer.duration = Some(value::duration(&value).map_err(wrong)?),
            "HTTPBENCH_WARM_UP" => layer.warm_up = Some(value::duration_or_zero(&value).map_err(wrong)?),
            "HTTPBENCH_ROUNDS" => layer.rounds = Some(value::positive(&value).map_err(wrong)?),
            "HTTPBENCH_SLICE" => layer.slice = Some(value::slice(&value).map_err(wrong)?),
            "HTTPBENCH_REQUEST_TIMEOUT" => layer.request_timeout = Some(value::duration(&value).map_err(wrong)?),
            "HTTPBENCH_CONNECT_TIMEOUT" => layer.connect_timeout = Some(value::duration(&value).map_err(wrong)?),
            // Not a part of the load: `baseline_dir_variable` reads it.
            BASELINE_DIR => {}
            // The user's own variables may share the prefix, so only a near miss is worth a word.
            other => warnings.extend(
                nearest(other.trim_start_matches("HTTPBENCH_"), VARIABLES.map(|name| &name["HTTPBENCH_".len()..]))
                    .filter(|_| !is_ours(other))
                    .map(|nearest| Warning::UnknownVariable {
                        name: other.to_owned(),
                        nearest: format!("HTTPBENCH_{nearest}"),
                    }),
            ),
        }
    }
    Ok((layer, warnings))
}

/// Where baselines are kept, if the environment says so. An empty variable says nothing.
#[must_use]
pub fn baseline_dir_variable(inherited: &Environment) -> Option<PathBuf> {
    inherited.get(BASELINE_DIR).filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<(LoadLayer, Vec<Warning>)> {
        read_variables(&variables.iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    #[test]
    fn every_variable_lands_in_its_own_field() {
        let (layer, warnings) = read(&[
            ("HTTPBENCH_CONNECTIONS", "1"),
            ("HTTPBENCH_ARRIVAL_RATE", "1.5"),
            ("HTTPBENCH_THREADS", "2"),
            ("HTTPBENCH_DURATION", "3s"),
            ("HTTPBENCH_WARM_UP", "0s"),
            ("HTTPBENCH_ROUNDS", "5"),
            ("HTTPBENCH_SLICE", "60ms"),
            ("HTTPBENCH_REQUEST_TIMEOUT", "7s"),
            ("HTTPBENCH_CONNECT_TIMEOUT", "8s"),
            ("HTTPBENCH_BASELINE_DIR", "b"),
        ])
        .expect("all are right");
        assert_eq!(
            layer,
            LoadLayer {
                connections: Some(1),
                arrival_rate: Some(1.5),
                threads: Some(2),
                duration: Some(Duration::from_secs(3)),
                warm_up: Some(Duration::ZERO),
                rounds: Some(5),
                slice: Some(Duration::from_millis(60)),
                request_timeout: Some(Duration::from_secs(7)),
                connect_timeout: Some(Duration::from_secs(8)),
            }
        );
        assert_eq!(warnings, []);
    }

    #[test]
    fn folder_of_baselines_is_read_apart_from_the_load() {
        let read = |value: &str| baseline_dir_variable(&[(BASELINE_DIR.into(), value.into())].into_iter().collect());
        assert_eq!((read("b"), read("")), (Some("b".into()), None));
        assert!(is_ours(BASELINE_DIR));
    }

    #[test]
    fn wrong_value_names_its_variable() {
        let error = read(&[("HTTPBENCH_ROUNDS", "0")]).expect_err("zero rounds");
        assert_eq!(error.exit, ExitCode::Configuration);
        assert!(error.what.starts_with("environment variable `HTTPBENCH_ROUNDS`: `0` is not"), "{}", error.what);
    }

    #[test]
    fn near_miss_is_warned_of_and_strangers_and_empty_values_are_left_alone() {
        let (layer, warnings) = read(&[
            ("HTTPBENCH_CONECTIONS", "3"),
            ("HTTPBENCH_XYZ", "3"),
            ("HTTPBENCH_DIR", "/x"),
            ("HTTPBENCH_SLICE", ""),
        ])
        .expect("nothing is wrong");
        assert_eq!(layer, LoadLayer::default());
        assert_eq!(
            warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["unknown environment variable `HTTPBENCH_CONECTIONS` is not used; did you mean `HTTPBENCH_CONNECTIONS`?"]
        );
    }
}
