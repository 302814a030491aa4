//! Databases that every start of a server shares, because nothing gives each its own.
//!
//! Two revisions on one database migrate each other, and the arm that answers faster inserts more rows and then looks slower. Names are
//! told, never values: they hold passwords.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::ServerSpec;

/// How the address of a database begins, whatever its variable is called. A `sqlite:` address names a file.
const SCHEMES: [&str; 12] = [
    "postgres:",
    "postgresql:",
    "mysql:",
    "mariadb:",
    "mssql:",
    "sqlserver:",
    "mongodb:",
    "mongodb+srv:",
    "redis:",
    "rediss:",
    "amqp:",
    "sqlite:",
];

/// What a database's variable is called, whatever its value looks like.
const NAME: &str = "DATABASE_URL";

/// The variables that name a database, in the server's environment and in the `.env` file that it would read; none if something
/// prepares each start's own state: `copy`, `setup`, or `{dir}` in an argument or a variable.
#[must_use]
pub fn shared_databases(spec: &ServerSpec) -> Vec<String> {
    let settings = &spec.settings;
    let own_folder = |text: &String| text.contains("{dir}");
    let isolated = !settings.copy.is_empty()
        || settings.setup.is_some()
        || settings.args.iter().any(own_folder)
        || settings.env.values().any(own_folder);
    if isolated {
        return Vec::new();
    }
    let text = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
    let inherited = spec.base_env.iter().map(|(name, value)| (text(name), text(value)));
    let configured = settings.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    let folder = spec.package_root.join(settings.working_dir.as_deref().unwrap_or(Path::new("")));
    let names: BTreeSet<String> = inherited
        .chain(configured)
        .chain(dot_env(&folder))
        .filter(|(name, value)| names_a_database(name, value))
        .map(|(name, _)| name)
        .collect();
    names.into_iter().collect()
}

fn names_a_database(name: &str, value: &str) -> bool {
    name.ends_with(NAME) || SCHEMES.iter().any(|scheme| value.to_ascii_lowercase().starts_with(scheme))
}

/// The assignments of the nearest `.env` at or above a folder: where the usual libraries look for it.
fn dot_env(folder: &Path) -> Vec<(String, String)> {
    let Some(text) = folder.ancestors().find_map(|folder| fs::read_to_string(folder.join(".env")).ok()) else {
        return Vec::new();
    };
    text.lines()
        .filter_map(|line| {
            let line = line.trim();
            let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
            let value = value.trim().trim_matches(['"', '\'']);
            (!name.starts_with('#')).then(|| (name.trim().to_owned(), value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::sample::server_spec;

    #[test]
    fn databases_are_named_by_their_variables_in_the_environment_and_in_dot_env() {
        let folder = tempfile::tempdir().expect("a folder");
        let package = folder.path().join("shop");
        fs::create_dir(&package).expect("created");
        let text = "# CACHE=redis://secret\nexport SHOP_DATABASE_URL=\"x\"\nCACHE = 'Redis://:secret@cache/0'\nRUST_LOG=warn\n";
        fs::write(folder.path().join(".env"), text).expect("written");
        let mut spec = server_spec(&package);
        spec.base_env.insert("QUEUE".into(), "amqp://guest@queue".into());
        spec.base_env.insert("HOMEPAGE".into(), "https://example.org/postgres:".into());
        assert_eq!(shared_databases(&spec), ["CACHE", "QUEUE", "SHOP_DATABASE_URL"]);
    }

    #[test]
    fn nothing_is_shared_where_each_start_has_its_own_state() {
        let mut spec = server_spec(Path::new("/nowhere"));
        spec.settings.copy = Vec::new();
        spec.settings.setup = None;
        spec.settings.args = Vec::new();
        spec.settings.env = [("DATABASE_URL".to_owned(), "sqlite:todo.db".to_owned())].into();
        assert_eq!(shared_databases(&spec), ["DATABASE_URL"]);
        let mut own = spec.clone();
        own.settings.env = [("DATABASE_URL".to_owned(), "sqlite:{dir}/todo.db".to_owned())].into();
        assert!(shared_databases(&own).is_empty());
        let mut copied = spec.clone();
        copied.settings.copy = vec!["todo.db".into()];
        assert!(shared_databases(&copied).is_empty());
        spec.settings.setup = Some(vec!["seed".to_owned()]);
        assert!(shared_databases(&spec).is_empty());
    }
}
