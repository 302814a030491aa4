//! Where the server listens and where its database is, from arguments and environment.

use std::env;
use std::path::PathBuf;

const USAGE: &str = "usage: todo-axum [--database PATH]

environment: HOST (127.0.0.1), PORT (3000), DATABASE_PATH (todo.db)";

/// Everything that can be set from outside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: PathBuf,
}

impl Config {
    /// Reads the arguments and the environment of this process.
    pub(crate) fn from_process() -> Result<Self, String> {
        Self::read(env::args().skip(1), |name| env::var(name).ok())
    }

    fn read(
        mut arguments: impl Iterator<Item = String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let mut database = None;
        while let Some(argument) = arguments.next() {
            database = match argument.as_str() {
                "--database" => Some(arguments.next().ok_or("--database needs a path")?.into()),
                other => match other.strip_prefix("--database=") {
                    Some(path) => Some(path.into()),
                    None => return Err(format!("unknown argument `{other}`\n{USAGE}")),
                },
            };
        }
        // HTTPBENCH_DIR goes before DATABASE_PATH: a benchmark must not write to the database of the shell it is run in.
        let database = database
            .or_else(|| Some(PathBuf::from(variable("HTTPBENCH_DIR")?).join("todo.db")))
            .or_else(|| variable("DATABASE_PATH").map(PathBuf::from))
            .unwrap_or_else(|| "todo.db".into());
        let port = match variable("PORT") {
            Some(text) => text.parse().map_err(|_| format!("PORT is `{text}`, which is no port from 0 to 65535"))?,
            None => 3000,
        };
        Ok(Self { host: variable("HOST").unwrap_or_else(|| "127.0.0.1".into()), port, database })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Config, String> {
        Config::read(arguments.iter().map(ToString::to_string), |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn without_arguments_and_environment_it_is_a_local_server_on_port_3000() {
        let config = read(&[], &[]).expect("a configuration");
        assert_eq!(config, Config { host: "127.0.0.1".into(), port: 3000, database: "todo.db".into() });
    }

    #[test]
    fn argument_wins_over_bench_folder_and_bench_folder_over_database_path() {
        let variables = [("DATABASE_PATH", "/home/me/real.db"), ("HTTPBENCH_DIR", "/tmp/a")];
        assert_eq!(read(&["--database", "x.db"], &variables).expect("a configuration").database, PathBuf::from("x.db"));
        assert_eq!(read(&["--database=y.db"], &variables).expect("a configuration").database, PathBuf::from("y.db"));
        assert_eq!(read(&[], &variables).expect("a configuration").database, PathBuf::from("/tmp/a/todo.db"));
        assert_eq!(read(&[], &variables[..1]).expect("a configuration").database, PathBuf::from("/home/me/real.db"));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        assert!(read(&["--databse", "x"], &[]).unwrap_err().contains("`--databse`"));
        assert!(read(&["--database"], &[]).unwrap_err().contains("needs a path"));
        assert!(read(&[], &[("PORT", "70000")]).unwrap_err().contains("`70000`"));
    }
}
