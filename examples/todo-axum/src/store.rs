//! The to-do items in SQLite. Blocking: callers run it on a blocking thread.
//!
//! One connection writes and several read at the same time, which the write-ahead log allows. Nothing else in this program
//! contains SQL, so a rewrite of a query stays in this file.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, named_params};
use serde::{Deserialize, Serialize};

use crate::seed;

/// Connections that only read. Queries are short and the pages are in memory: more would not answer faster.
pub(crate) const READERS: usize = 4;

const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE todo (
        id          INTEGER PRIMARY KEY AUTOINCREMENT,
        title       TEXT    NOT NULL,
        notes       TEXT    NOT NULL,
        priority    TEXT    NOT NULL CHECK (priority IN ('low', 'normal', 'high')),
        done        INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
        created_at  TEXT    NOT NULL
    ) STRICT;
";

/// What a store fails with: SQLite's own error, and during what.
#[derive(Debug)]
pub(crate) struct StoreError {
    during: &'static str,
    cause: rusqlite::Error,
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "cannot {}: {}", self.during, self.cause)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

trait During<T> {
    fn during(self, what: &'static str) -> Result<T, StoreError>;
}

impl<T> During<T> for rusqlite::Result<T> {
    fn during(self, what: &'static str) -> Result<T, StoreError> {
        self.map_err(|cause| StoreError { during: what, cause })
    }
}

/// How urgent an item is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

impl Priority {
    const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    fn from_name(name: &str) -> Self {
        match name {
            "low" => Self::Low,
            "high" => Self::High,
            _ => Self::Normal, // The table's CHECK lets nothing else in.
        }
    }
}

/// An item as a client sends it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTodo {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) notes: String,
    #[serde(default)]
    pub(crate) priority: Priority,
}

impl NewTodo {
    /// Why it is not acceptable, by field; empty if it is.
    pub(crate) fn problems(&self) -> BTreeMap<&'static str, String> {
        let mut problems = BTreeMap::new();
        match self.title.trim().chars().count() {
            0 => _ = problems.insert("title", "must not be empty".to_owned()),
            1..=120 => {}
            length => _ = problems.insert("title", format!("has {length} characters, at most 120 are accepted")),
        }
        let length = self.notes.chars().count();
        if length > 2000 {
            problems.insert("notes", format!("has {length} characters, at most 2000 are accepted"));
        }
        problems
    }
}

/// An item as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Todo {
    pub(crate) id: i64,
    pub(crate) title: String,
    pub(crate) notes: String,
    pub(crate) priority: Priority,
    pub(crate) done: bool,
    pub(crate) created_at: String,
}

impl Todo {
    const COLUMNS: &str = "id, title, notes, priority, done, created_at";

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            title: row.get(1)?,
            notes: row.get(2)?,
            priority: Priority::from_name(row.get_ref(3)?.as_str()?),
            done: row.get(4)?,
            created_at: row.get(5)?,
        })
    }
}

/// A part of all items that a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) limit: u32,
    pub(crate) offset: u32,
}

/// The items of a page, and how many there are on all pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Listing {
    pub(crate) total: i64,
    pub(crate) items: Vec<Todo>,
}

/// All items.
#[derive(Debug)]
pub(crate) struct Store {
    // Closed in this order: only a last connection that may write empties the write-ahead log and removes its file.
    readers: Readers,
    writer: Mutex<Connection>,
}

impl Store {
    /// Opens the database; a new one gets its schema and the seeded items.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut writer = Connection::open(path).during("open the database")?;
        configure(&writer).during("set up the database")?;
        migrate(&mut writer).during("create the schema")?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let readers = (0..READERS)
            .map(|_| {
                let reader = Connection::open_with_flags(path, flags)?;
                reader.busy_timeout(BUSY_TIMEOUT)?;
                Ok(reader)
            })
            .collect::<rusqlite::Result<Vec<_>>>()
            .during("open the database for reading")?;
        Ok(Self { readers: Readers::new(readers), writer: Mutex::new(writer) })
    }

    /// The newest items first.
    pub(crate) fn list(&self, page: Page) -> Result<Listing, StoreError> {
        let reader = self.readers.take();
        let query = || {
            let total = reader.prepare_cached("SELECT count(*) FROM todo")?.query_row([], |row| row.get(0))?;
            let sql = format!("SELECT {} FROM todo ORDER BY id DESC LIMIT :limit OFFSET :offset", Todo::COLUMNS);
            let items = reader
                .prepare_cached(&sql)?
                .query_map(named_params! { ":limit": page.limit, ":offset": page.offset }, Todo::from_row)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(Listing { total, items })
        };
        query().during("list the items")
    }

    /// One item by its key.
    pub(crate) fn one(&self, id: i64) -> Result<Option<Todo>, StoreError> {
        let reader = self.readers.take();
        let query = || {
            // Superfluous: the query itself tells that there is no such item.
            if cfg!(feature = "regression") {
                let exists = "SELECT EXISTS (SELECT 1 FROM todo WHERE id = ?1)";
                if !reader.prepare_cached(exists)?.query_row([id], |row| row.get(0))? {
                    return Ok(None);
                }
            }
            let sql = format!("SELECT {} FROM todo WHERE id = ?1", Todo::COLUMNS);
            reader.prepare_cached(&sql)?.query_row([id], Todo::from_row).optional()
        };
        query().during("read an item")
    }

    /// Items whose title or notes contain the text, whatever the case of ASCII letters; the newest first.
    pub(crate) fn search(&self, text: &str, page: Page) -> Result<Listing, StoreError> {
        let reader = self.readers.take();
        let pattern = like_pattern(text);
        let query = || {
            let matches = r"title LIKE :pattern ESCAPE '\' OR notes LIKE :pattern ESCAPE '\'";
            let total = reader
                .prepare_cached(&format!("SELECT count(*) FROM todo WHERE {matches}"))?
                .query_row(named_params! { ":pattern": pattern }, |row| row.get(0))?;
            let sql = format!(
                "SELECT {} FROM todo WHERE {matches} ORDER BY id DESC LIMIT :limit OFFSET :offset",
                Todo::COLUMNS
            );
            let items = reader
                .prepare_cached(&sql)?
                .query_map(
                    named_params! { ":pattern": pattern, ":limit": page.limit, ":offset": page.offset },
                    Todo::from_row,
                )?
                .collect::<rusqlite::Result<_>>()?;
            Ok(Listing { total, items })
        };
        query().during("search the items")
    }

    /// Keeps a new item and answers it with its key.
    pub(crate) fn create(&self, todo: &NewTodo) -> Result<Todo, StoreError> {
        let writer = ignore_poison(self.writer.lock());
        insert(&writer, todo, false).during("keep a new item")
    }
}

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

fn configure(writer: &Connection) -> rusqlite::Result<()> {
    writer.busy_timeout(BUSY_TIMEOUT)?;
    writer.pragma_update(None, "journal_mode", "WAL")?;
    // With a write-ahead log, NORMAL may lose the last items in a power cut but cannot corrupt the database
    // (https://www.sqlite.org/pragma.html#pragma_synchronous). A to-do list can live with that.
    writer.pragma_update(None, "synchronous", "NORMAL")
}

fn migrate(writer: &mut Connection) -> rusqlite::Result<()> {
    let transaction = writer.transaction()?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version < SCHEMA_VERSION {
        transaction.execute_batch(SCHEMA)?;
        for (todo, done) in seed::todos() {
            insert(&transaction, &todo, done)?;
        }
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    transaction.commit()
}

fn insert(writer: &Connection, todo: &NewTodo, done: bool) -> rusqlite::Result<Todo> {
    let sql = format!(
        "INSERT INTO todo (title, notes, priority, done, created_at)
         VALUES (:title, :notes, :priority, :done, strftime('%Y-%m-%dT%H:%M:%SZ', 'now')) RETURNING {}",
        Todo::COLUMNS
    );
    // Not `query_row`, which leaves the statement after its row: SQLite looks whether to empty the write-ahead log only when a
    // statement comes to its end, and the log would grow for ever.
    writer.prepare_cached(&sql)?.query_one(
        named_params! {
            ":title": todo.title.trim(),
            ":notes": todo.notes,
            ":priority": todo.priority.name(),
            ":done": done,
        },
        Todo::from_row,
    )
}

/// A LIKE pattern that finds the text literally.
fn like_pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

/// Connections that are free to read.
#[derive(Debug)]
struct Readers {
    free: Mutex<Vec<Connection>>,
    returned: Condvar,
}

impl Readers {
    fn new(connections: Vec<Connection>) -> Self {
        Self { free: Mutex::new(connections), returned: Condvar::new() }
    }

    /// Waits until one is free.
    fn take(&self) -> Reader<'_> {
        let mut free = ignore_poison(self.free.lock());
        loop {
            // The last one returned is the first one taken: its page cache and statements are warm.
            match free.pop() {
                Some(connection) => return Reader { connection: Some(connection), home: self },
                None => free = ignore_poison(self.returned.wait(free)),
            }
        }
    }
}

/// A connection that goes back when it is dropped.
struct Reader<'a> {
    connection: Option<Connection>,
    home: &'a Readers,
}

impl Deref for Reader<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is taken only by drop")
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            ignore_poison(self.home.free.lock()).push(connection);
            self.home.returned.notify_one();
        }
    }
}

/// A panic in the middle of a query leaves a connection whose transaction is rolled back: nothing is broken.
fn ignore_poison<'a, T>(guard: Result<MutexGuard<'a, T>, PoisonError<MutexGuard<'a, T>>>) -> MutexGuard<'a, T> {
    guard.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const FIRST: Page = Page { limit: 10, offset: 0 };

    /// A folder that goes away with the test.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn new() -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("todo-axum-{}-{number}", std::process::id()));
            std::fs::create_dir(&path).expect("a folder");
            Self(path)
        }

        pub(crate) fn database(&self) -> PathBuf {
            self.0.join("todo.db")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn new_todo(title: &str) -> NewTodo {
        NewTodo { title: title.into(), notes: String::new(), priority: Priority::Low }
    }

    #[test]
    fn new_database_is_seeded_once() {
        let folder = Folder::new();
        for _ in 0..2 {
            let store = Store::open(&folder.database()).expect("a database");
            assert_eq!(store.list(FIRST).expect("the database answers").total, seed::COUNT as i64);
        }
    }

    #[test]
    fn created_item_is_found_again() {
        let folder = Folder::new();
        let store = Store::open(&folder.database()).expect("a database");
        let created = store.create(&new_todo("  Feed the cat ")).expect("the database answers");
        assert_eq!((created.id, created.title.as_str()), (seed::COUNT as i64 + 1, "Feed the cat"));
        assert_eq!((created.priority, created.done), (Priority::Low, false));
        assert_eq!(store.one(created.id).expect("the database answers"), Some(created.clone()));
        drop(store);
        let reopened = Store::open(&folder.database()).expect("a database");
        assert_eq!(reopened.list(FIRST).expect("the database answers").items.first(), Some(&created));
    }

    #[test]
    fn pages_follow_each_other_without_gap_or_overlap() {
        let folder = Folder::new();
        let store = Store::open(&folder.database()).expect("a database");
        let ids =
            |page| store.list(page).expect("the database answers").items.iter().map(|todo| todo.id).collect::<Vec<_>>();
        assert_eq!(ids(FIRST), (351..=360).rev().collect::<Vec<_>>());
        assert_eq!(ids(Page { limit: 10, offset: 10 }), (341..=350).rev().collect::<Vec<_>>());
        assert!(ids(Page { limit: 10, offset: 1000 }).is_empty());
    }

    #[test]
    fn search_takes_wildcards_literally() {
        let folder = Folder::new();
        let store = Store::open(&folder.database()).expect("a database");
        store.create(&new_todo("Raise prices by 5%")).expect("the database answers");
        store.create(&new_todo("Raise prices by 5_000")).expect("the database answers");
        assert_eq!(store.search("5%", FIRST).expect("the database answers").total, 1);
        assert_eq!(store.search("5_0", FIRST).expect("the database answers").total, 1);
        assert_eq!(store.search(r"\", FIRST).expect("the database answers").total, 0);
        assert_eq!(store.search("INVOICE TO", FIRST).expect("the database answers").total, 24);
    }

    #[test]
    fn write_ahead_log_does_not_grow_for_ever() {
        let folder = Folder::new();
        let store = Store::open(&folder.database()).expect("a database");
        for _ in 0..3000 {
            store.create(&new_todo("Feed the cat")).expect("the database answers");
        }
        let log = folder.database().with_extension("db-wal");
        let bytes = std::fs::metadata(log).expect("a log").len();
        // SQLite empties it at 1000 pages of 4 KiB.
        assert!(bytes < 5_000_000, "{bytes} bytes");
    }

    #[test]
    fn readers_come_back_to_the_pool() {
        let folder = Folder::new();
        let store = Store::open(&folder.database()).expect("a database");
        for _ in 0..READERS * 3 {
            assert!(store.one(1).expect("the database answers").is_some());
        }
        assert_eq!(store.readers.free.lock().expect("no test panicked with it").len(), READERS);
    }

    #[test]
    fn titles_without_letters_or_with_too_many_are_refused() {
        assert!(new_todo("   ").problems().contains_key("title"));
        assert!(new_todo(&"ä".repeat(120)).problems().is_empty());
        assert!(new_todo(&"ä".repeat(121)).problems()["title"].contains("121"));
    }
}
