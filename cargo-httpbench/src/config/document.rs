//! One TOML table, `httpbench.toml` or a `metadata.httpbench` section, to one [`SettingsLayer`].
//!
//! Values are read from the parsed document with their positions, so that every complaint names file and line. A key that is
//! not known is a warning and never stops a run; a value that is not understood always does.

use std::path::{Path, PathBuf};

use httpbench_core::model::{Metric, Ratio};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::value::{self, ValueError};
use super::{ReadyLayer, SettingsLayer};
use crate::baseline::Saving;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::nearest::nearest;
use crate::server::near_misses;
use crate::warning::Warning;

const SECTIONS: [&str; 4] = ["server", "defaults", "tolerance", "limit"];
const SERVER: [&str; 10] =
    ["bin", "args", "env", "show-env", "copy", "setup", "teardown", "working-dir", "ready", "stop-timeout"];
const READY: [&str; 3] = ["path", "status", "timeout"];
const DEFAULTS: [&str; 11] = [
    "connections",
    "arrival-rate",
    "threads",
    "duration",
    "warm-up",
    "rounds",
    "slice",
    "request-timeout",
    "connect-timeout",
    "baseline-dir",
    "allow-save-in-ci",
];

const TEXT: &str = "a text";
const TEXTS: &str = "a list of texts";
const TABLE: &str = "a table";

/// Where a document comes from, and what was odd about it.
pub(super) struct Document<'t> {
    file: &'t Path,
    text: &'t str,
    /// In the order of the document's tables.
    pub(super) warnings: Vec<Warning>,
}

impl<'t> Document<'t> {
    pub(super) fn new(file: &'t Path, text: &'t str) -> Self {
        Self { file, text, warnings: Vec::new() }
    }

    /// Parses the text.
    ///
    /// # Errors
    ///
    /// When it is not TOML.
    pub(super) fn parse(&self) -> Result<Spanned<DeTable<'t>>> {
        DeTable::parse(self.text).map_err(|error| {
            let line = error.span().map_or(1, |span| self.line(span.start));
            Error::new(
                ExitCode::Configuration,
                format!("{}:{line}: not TOML: {}", self.file.display(), error.message()),
            )
        })
    }

    /// The table that stands at `path`, if it is there.
    pub(super) fn section<'d>(&self, root: &'d DeTable<'t>, path: &[&str]) -> Result<Option<&'d DeTable<'t>>> {
        let mut table = root;
        for (depth, key) in path.iter().enumerate() {
            let Some(value) = table.get(*key) else { return Ok(None) };
            table = self.table(&path[..=depth].join("."), value)?;
        }
        Ok(Some(table))
    }

    /// Reads the keys of `httpbench.toml`.
    pub(super) fn layer(&mut self, root: &DeTable<'_>) -> Result<SettingsLayer> {
        let mut layer = SettingsLayer::default();
        for (key, value) in root {
            let name = key.get_ref().as_ref();
            match name {
                "server" => self.server(&mut layer, self.table(name, value)?)?,
                "defaults" => self.defaults(&mut layer, self.table(name, value)?)?,
                "tolerance" => self.tolerance(&mut layer, self.table(name, value)?)?,
                "limit" => self.limit(&mut layer, self.table(name, value)?)?,
                _ => self.unknown("", key, SECTIONS),
            }
        }
        Ok(layer)
    }

    fn server(&mut self, layer: &mut SettingsLayer, table: &DeTable<'_>) -> Result<()> {
        let server = &mut layer.server;
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("server.{name}");
            match name {
                "bin" => server.bin = Some(self.text(&path, value)?),
                "args" => {
                    server.args = Some(self.texts(&path, value)?);
                    self.check_placeholders(&path, value);
                }
                "env" => {
                    for (name, value) in self.table(&path, value)? {
                        let name = name.get_ref().to_string();
                        let path = format!("{path}.{name}");
                        self.check_placeholders(&path, value);
                        let value = self.text(&path, value)?;
                        server.env.insert(name, value);
                    }
                }
                "show-env" => server.show_env = Some(self.texts(&path, value)?),
                "copy" => {
                    server.copy = Some(self.texts(&path, value)?.into_iter().map(PathBuf::from).collect());
                }
                "setup" => {
                    server.setup = Some(self.command(&path, value)?);
                    self.check_placeholders(&path, value);
                }
                "teardown" => {
                    server.teardown = Some(self.command(&path, value)?);
                    self.check_placeholders(&path, value);
                }
                "working-dir" => server.working_dir = Some(PathBuf::from(self.text(&path, value)?)),
                "ready" => server.ready = self.ready(self.table(&path, value)?)?,
                "stop-timeout" => server.stop_timeout = Some(self.quantity(&path, value, value::duration_or_zero)?),
                _ => self.unknown("server.", key, SERVER),
            }
        }
        Ok(())
    }

    fn ready(&mut self, table: &DeTable<'_>) -> Result<ReadyLayer> {
        let mut ready = ReadyLayer::default();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("server.ready.{name}");
            match name {
                "path" => {
                    let text = self.text(&path, value)?;
                    if !text.starts_with('/')
                        || text.contains(|letter: char| letter.is_whitespace() || letter.is_control())
                    {
                        return Err(self.wrong(
                            &path,
                            value,
                            "a path that begins with `/` and has no spaces, such as \"/health\"",
                        ));
                    }
                    ready.path = Some(text);
                }
                "status" => {
                    let status = self
                        .integer(value)
                        .filter(|status| (200..=599).contains(status))
                        .ok_or_else(|| self.wrong(&path, value, "an HTTP status from 200 to 599"))?;
                    ready.status = u16::try_from(status).ok();
                }
                "timeout" => ready.timeout = Some(self.quantity(&path, value, value::duration)?),
                _ => self.unknown("server.ready.", key, READY),
            }
        }
        Ok(ready)
    }

    fn defaults(&mut self, layer: &mut SettingsLayer, table: &DeTable<'_>) -> Result<()> {
        let load = &mut layer.load;
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("defaults.{name}");
            match name {
                "connections" => load.connections = Some(self.count(&path, value)?),
                "arrival-rate" => load.arrival_rate = Some(self.arrival_rate(&path, value)?),
                "threads" => load.threads = Some(self.count(&path, value)?),
                "rounds" => load.rounds = Some(self.count(&path, value)?),
                "duration" => load.duration = Some(self.quantity(&path, value, value::duration)?),
                "warm-up" => load.warm_up = Some(self.quantity(&path, value, value::duration_or_zero)?),
                "slice" => load.slice = Some(self.quantity(&path, value, value::slice)?),
                "request-timeout" => load.request_timeout = Some(self.quantity(&path, value, value::duration)?),
                "connect-timeout" => load.connect_timeout = Some(self.quantity(&path, value, value::duration)?),
                "baseline-dir" => {
                    let folder = self.file.parent().unwrap_or(Path::new(""));
                    layer.baselines.dir = Some(folder.join(self.path(&path, value)?));
                }
                "allow-save-in-ci" => {
                    let allowed =
                        value.get_ref().as_bool().ok_or_else(|| self.wrong(&path, value, "`true` or `false`"))?;
                    layer.baselines.saving =
                        Some(if allowed { Saving::FromAnywhere } else { Saving::FromTheDefaultBranch });
                }
                _ => self.unknown("defaults.", key, DEFAULTS),
            }
        }
        Ok(())
    }

    fn tolerance(&mut self, layer: &mut SettingsLayer, table: &DeTable<'_>) -> Result<()> {
        // Errors are judged by their number, never by their change.
        let metrics = Metric::ALL.into_iter().filter(|metric| *metric != Metric::Errors);
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("tolerance.{name}");
            match metrics.clone().find(|metric| metric.name() == name) {
                Some(metric) => {
                    let ratio = value.get_ref().as_str().and_then(|text| text.parse::<Ratio>().ok());
                    let ratio =
                        ratio.ok_or_else(|| self.wrong(&path, value, "a percentage such as \"3%\" or \"0.5%\""))?;
                    layer.tolerance.insert(metric, ratio);
                }
                None => self.unknown("tolerance.", key, metrics.clone().map(Metric::name)),
            }
        }
        Ok(())
    }

    fn limit(&mut self, layer: &mut SettingsLayer, table: &DeTable<'_>) -> Result<()> {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("limit.{name}");
            match Metric::ALL.into_iter().find(|metric| metric.name() == name) {
                Some(metric) => {
                    let bound = self.quantity(&path, value, |text| value::bound(metric, text))?;
                    layer.limit.insert(metric, bound);
                }
                None => self.unknown("limit.", key, Metric::ALL.map(Metric::name)),
            }
        }
        Ok(())
    }

    fn table<'d, 'i>(&self, path: &str, value: &'d Spanned<DeValue<'i>>) -> Result<&'d DeTable<'i>> {
        value.get_ref().as_table().ok_or_else(|| self.wrong(path, value, TABLE))
    }

    /// Warns of words in braces that are nearly one of ours. Any other may be the server's own, and stays as it is.
    fn check_placeholders(&mut self, path: &str, value: &Spanned<DeValue<'_>>) {
        let texts: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => vec![value],
        };
        for value in texts {
            let Some(text) = value.get_ref().as_str() else { continue };
            for (word, nearest) in near_misses(text) {
                self.warnings.push(Warning::UnknownPlaceholder {
                    file: self.file.to_owned(),
                    line: self.line(value.span().start),
                    key: path.to_owned(),
                    placeholder: word.to_owned(),
                    nearest,
                });
            }
        }
    }

    fn text(&self, path: &str, value: &Spanned<DeValue<'_>>) -> Result<String> {
        value.get_ref().as_str().map(str::to_owned).ok_or_else(|| self.wrong(path, value, TEXT))
    }

    fn path(&self, path: &str, value: &Spanned<DeValue<'_>>) -> Result<PathBuf> {
        match self.text(path, value)? {
            empty if empty.is_empty() => Err(self.wrong(path, value, "the path of a folder, such as \"baselines\"")),
            text => Ok(PathBuf::from(text)),
        }
    }

    fn texts(&self, path: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>> {
        let list = value.get_ref().as_array().ok_or_else(|| self.wrong(path, value, TEXTS))?;
        list.iter()
            .map(|item| item.get_ref().as_str().map(str::to_owned).ok_or_else(|| self.wrong(path, item, TEXTS)))
            .collect()
    }

    fn command(&self, path: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>> {
        let accepted = "a program and its arguments, such as [\"sh\", \"seed.sh\"]";
        match self.texts(path, value) {
            Ok(command) if command.first().is_some_and(|program| !program.is_empty()) => Ok(command),
            _ => Err(self.wrong(path, value, accepted)),
        }
    }

    fn integer(&self, value: &Spanned<DeValue<'_>>) -> Option<u64> {
        value.get_ref().as_integer().and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok())
    }

    fn count(&self, path: &str, value: &Spanned<DeValue<'_>>) -> Result<u32> {
        self.integer(value)
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| *number > 0)
            .ok_or_else(|| self.wrong(path, value, "a whole number of at least 1"))
    }

    fn arrival_rate(&self, path: &str, value: &Spanned<DeValue<'_>>) -> Result<f64> {
        let text = match value.get_ref() {
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            _ => return Err(self.wrong(path, value, "a number of starts per second, such as 2000 or 0.5")),
        };
        value::arrival_rate(&text).map_err(|error| self.at(value, format!("`{path}`: {error}")))
    }

    fn quantity<T>(
        &self,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        read: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Result<T> {
        // For a number or a boolean the reader still knows best what is accepted.
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            other => return Err(self.wrong(path, value, &format!("a text with its unit, not a {}", other.type_str()))),
        };
        let read = read(&text);
        if value.get_ref().is_str() {
            read.map_err(|error| self.at(value, format!("`{path}`: {error}")))
        } else {
            Err(match read {
                Ok(_) => self.wrong(path, value, "a text in quotes"),
                Err(error) => self.at(value, format!("`{path}`: {error}")),
            })
        }
    }

    fn wrong(&self, path: &str, value: &Spanned<DeValue<'_>>, accepted: &str) -> Error {
        self.at(value, format!("`{path}` must be {accepted}"))
    }

    fn at(&self, value: &Spanned<DeValue<'_>>, what: String) -> Error {
        let line = self.line(value.span().start);
        Error::new(ExitCode::Configuration, format!("{}:{line}: {what}", self.file.display()))
    }

    fn unknown<'k>(
        &mut self,
        prefix: &str,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        self.warnings.push(Warning::UnknownKey {
            file: self.file.to_owned(),
            line: self.line(key.span().start),
            key: format!("{prefix}{}", key.get_ref()),
            nearest: nearest(key.get_ref(), known).map(str::to_owned),
        });
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(text: &str) -> Result<(SettingsLayer, Vec<String>)> {
        let mut document = Document::new(Path::new("/w/httpbench.toml"), text);
        let root = document.parse()?;
        let layer = document.layer(root.get_ref())?;
        Ok((layer, document.warnings.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn every_documented_key_is_read() {
        let (layer, warnings) = read(
            r#"
[server]
bin = "shop"
args = ["--listen", "127.0.0.1:{port}"]
env = { RUST_LOG = "warn" }
show-env = ["RUST_LOG"]
copy = ["todo.db"]
setup = ["sh", "seed.sh"]
teardown = ["true"]
working-dir = "run"
ready = { path = "/health", status = 200, timeout = "30s" }
stop-timeout = "0s"
[defaults]
connections = 8
arrival-rate = 2000
threads = 2
duration = "3s"
warm-up = "0s"
rounds = 4
slice = "60ms"
request-timeout = "5s"
connect-timeout = "1s"
baseline-dir = "kept"
allow-save-in-ci = true
[tolerance]
cpu-per-request = "4%"
[limit]
p99 = "20ms"
errors = "0.1%"
throughput = "1000/s"
peak-memory = "200MB"
"#,
        )
        .expect("all is right");
        assert_eq!(warnings, Vec::<String>::new());
        let server = &layer.server;
        assert_eq!(server.bin.as_deref(), Some("shop"));
        assert_eq!(server.args.as_deref(), Some(&["--listen".to_owned(), "127.0.0.1:{port}".to_owned()][..]));
        assert_eq!(server.env["RUST_LOG"], "warn");
        assert_eq!(server.copy.as_deref(), Some(&[PathBuf::from("todo.db")][..]));
        assert_eq!(server.setup.as_deref(), Some(&["sh".to_owned(), "seed.sh".to_owned()][..]));
        assert_eq!(server.teardown.as_deref(), Some(&["true".to_owned()][..]));
        assert_eq!(server.working_dir.as_deref(), Some(Path::new("run")));
        assert_eq!(
            server.ready,
            ReadyLayer { path: Some("/health".to_owned()), status: Some(200), timeout: Some(Duration::from_secs(30)) }
        );
        assert_eq!(server.stop_timeout, Some(Duration::ZERO));
        assert_eq!(layer.load.arrival_rate, Some(2000.0));
        assert_eq!((layer.load.connections, layer.load.threads, layer.load.rounds), (Some(8), Some(2), Some(4)));
        assert_eq!(layer.load.duration, Some(Duration::from_secs(3)));
        assert_eq!(layer.load.warm_up, Some(Duration::ZERO));
        assert_eq!(layer.load.slice, Some(Duration::from_millis(60)));
        assert_eq!(layer.load.request_timeout, Some(Duration::from_secs(5)));
        assert_eq!(layer.load.connect_timeout, Some(Duration::from_secs(1)));
        assert_eq!(server.show_env.as_deref(), Some(&["RUST_LOG".to_owned()][..]));
        assert_eq!(layer.baselines.dir.as_deref(), Some(Path::new("/w/kept")));
        assert_eq!(layer.baselines.saving, Some(Saving::FromAnywhere));
        assert_eq!(layer.tolerance[&Metric::CpuPerRequest], Ratio(0.04));
        assert_eq!(layer.limit[&Metric::P99], 2e7);
        assert_eq!(layer.limit[&Metric::Errors], 0.001);
        assert_eq!(layer.limit[&Metric::Throughput], 1000.0);
        assert_eq!(layer.limit[&Metric::PeakMemory], 2e8);
    }

    #[test]
    fn unknown_keys_are_warned_of_with_line_and_nearest_key() {
        let text = "[server]\nbni = \"x\"\n\n[servers.nginx]\ncommand = []\n[defaults]\nxyzzy = 1\n[tolerance]\nerrors = \"1%\"\n";
        let (_, warnings) = read(text).expect("only warnings");
        let mut warnings = warnings;
        warnings.sort();
        assert_eq!(
            warnings,
            [
                "/w/httpbench.toml:2: unknown key `server.bni` is not used; did you mean `bin`?",
                "/w/httpbench.toml:4: unknown key `servers` is not used; did you mean `server`?",
                "/w/httpbench.toml:7: unknown key `defaults.xyzzy` is not used",
                "/w/httpbench.toml:9: unknown key `tolerance.errors` is not used",
            ]
        );
    }

    #[test]
    fn placeholder_that_is_nearly_one_of_ours_is_warned_of() {
        let text = "[server]\nargs = [\"--listen\",\n\"{hots}:{prot}\"]\nenv = { LOG = \"{name} {port}\", DB = \"{dri}/a\" }\n";
        let (_, warnings) = read(text).expect("only warnings");
        assert_eq!(
            warnings,
            [
                "/w/httpbench.toml:3: `{hots}` in `server.args` is not filled in; did you mean `{host}`?",
                "/w/httpbench.toml:3: `{prot}` in `server.args` is not filled in; did you mean `{port}`?",
                "/w/httpbench.toml:4: `{dri}` in `server.env.DB` is not filled in; did you mean `{dir}`?",
            ]
        );
    }

    #[test]
    fn misspelt_limit_is_warned_of_as_what_is_not_judged() {
        let mut document =
            Document::new(Path::new("/w/httpbench.toml"), "[limit]\np9 = \"20ms\"\n[limts]\np99 = \"20ms\"\n");
        let root = document.parse().expect("TOML");
        document.layer(root.get_ref()).expect("only warnings");
        assert_eq!(document.warnings.len(), 2);
        assert!(document.warnings.iter().all(Warning::is_gap), "{:?}", document.warnings);
    }

    #[test]
    fn wrong_value_names_file_line_and_what_is_accepted() {
        for (text, expected) in [
            ("[server]\nbin = 3", ":2: `server.bin` must be a text"),
            ("[server]\nargs = \"x\"", ":2: `server.args` must be a list of texts"),
            ("[server]\nargs = [\n\"a\",\n3]", ":4: `server.args` must be a list of texts"),
            ("[server]\nsetup = []", ":2: `server.setup` must be a program and its arguments, such as"),
            ("[server]\nready = \"/\"", ":2: `server.ready` must be a table"),
            ("[server.ready]\npath = \"health\"", ":2: `server.ready.path` must be a path that begins with `/`"),
            ("[server.ready]\nstatus = 99", ":2: `server.ready.status` must be an HTTP status from 200 to 599"),
            ("[defaults]\nconnections = 0", ":2: `defaults.connections` must be a whole number of at least 1"),
            ("[defaults]\nconnections = \"64\"", ":2: `defaults.connections` must be a whole number of at least 1"),
            (
                "[defaults]\narrival-rate = 0",
                ":2: `defaults.arrival-rate`: `0` is not an arrival rate: write starts per",
            ),
            ("[defaults]\narrival-rate = -2.5", ":2: `defaults.arrival-rate`: `-2.5` is not an arrival rate: write"),
            ("[defaults]\narrival-rate = nan", ":2: `defaults.arrival-rate`: `nan` is not an arrival rate: write"),
            ("[defaults]\narrival-rate = \"9\"", ":2: `defaults.arrival-rate` must be a number of starts per second"),
            ("[defaults]\nduration = 6", ":2: `defaults.duration`: `6` is not a duration: write a number and its unit"),
            ("[defaults]\nduration = \"0s\"", ":2: `defaults.duration`: zero is too short"),
            ("[defaults]\nduration = true", ":2: `defaults.duration` must be a text with its unit, not a boolean"),
            ("[tolerance]\np99 = \"10\"", ":2: `tolerance.p99` must be a percentage such as \"3%\""),
            ("[limit]\nthroughput = 1000", ":2: `limit.throughput`: `1000` is not a bound for `throughput`: write"),
            ("server = 3", ":1: `server` must be a table"),
        ] {
            let error = read(text).expect_err(text);
            assert_eq!(error.exit, ExitCode::Configuration);
            assert!(error.what.starts_with(&format!("/w/httpbench.toml{expected}")), "{}", error.what);
        }
    }

    #[test]
    fn text_that_is_not_toml_names_its_line() {
        let error = read("[server]\nbin = \n").expect_err("no value");
        assert!(error.what.starts_with("/w/httpbench.toml:2: not TOML: "), "{}", error.what);
    }

    #[test]
    fn duration_type_is_checked_too() {
        let (layer, _) = read("[server]\nready.timeout = \"1m 30s\"").expect("dotted keys are tables");
        assert_eq!(layer.server.ready.timeout, Some(Duration::from_secs(90)));
    }
}
