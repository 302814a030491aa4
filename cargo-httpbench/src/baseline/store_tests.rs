//! The store's promises: whole at every moment, one writer, and nothing overwritten that cannot be read.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, process, thread};

use httpbench_core::model::Metric;

use super::*;
use crate::baseline::format::Kept;
use crate::baseline::sample::{sample_baseline, scenario};

/// Names the step at which a save of this process ends as `kill -9` would end it: without a destructor.
const DIE_AT: &str = "HTTPBENCH_TEST_DIE_AT";

/// The folder of the test that plays the saver.
const SAVER: &str = "HTTPBENCH_TEST_SAVER";

pub(super) fn reached(step: Step) {
    if env::var(DIE_AT).is_ok_and(|at| at == format!("{step:?}")) {
        let own = nix::unistd::Pid::this();
        nix::sys::signal::kill(own, nix::sys::signal::Signal::SIGKILL).expect("a process may kill itself");
        process::abort();
    }
}

/// A store in a folder that goes away.
struct Place {
    folder: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), None);
        Self { folder, store }
    }

    fn server(&self, bytes: &str) -> PathBuf {
        let path = self.folder.path().join("server");
        fs::write(&path, bytes).expect("written");
        path
    }

    fn save(&self, name: &str, throughput: f64, server: Option<&str>) -> Saved {
        let server = server.map(|bytes| self.server(bytes));
        self.store.save(&named(name), &measured(throughput), server.as_deref()).expect("saved")
    }

    fn stored(&self, name: &str) -> StoredBaseline {
        match self.store.load(&named(name), "shop").expect("readable") {
            Found::Stored(stored) => *stored,
            Found::Missing(missing) => panic!("{missing:?}"),
        }
    }

    fn text(&self, name: &str) -> PathBuf {
        self.store.folder_of(&named(name), "shop").join(TEXT)
    }

    /// Every file below the store, but for the lock.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.store.folder().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else if entry.file_name() != ".lock" {
                    files.push(entry.path());
                }
            }
        }
        files.sort();
        files
    }
}

fn named(name: &str) -> BaselineName {
    name.parse().expect("a name")
}

fn measured(throughput: f64) -> Baseline {
    let mut baseline = sample_baseline();
    baseline.scenarios[0].rounds[0].0.insert(Metric::Throughput, throughput);
    baseline
}

fn throughput(baseline: &Baseline) -> f64 {
    baseline.scenarios[0].rounds[0].0[&Metric::Throughput]
}

fn whole_bytes(stored: &StoredBaseline) -> String {
    match &stored.executable {
        StoredExecutable::Whole(path) => fs::read_to_string(path).expect("readable"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn saved_baseline_comes_back_with_its_name_and_its_executable() {
    let place = Place::new();
    let saved = place.save("feature/x", 1.0, Some("server 1"));
    assert_eq!(saved.replaced, None);
    assert!(saved.folder.starts_with(place.folder.path().join("baselines/feature%2fx")));
    let stored = place.stored("feature/x");
    assert_eq!(whole_bytes(&stored), "server 1");
    let expected = Baseline { name: named("feature/x"), executable: saved.executable.clone(), ..measured(1.0) };
    assert_eq!(stored.baseline, expected);
    assert_eq!(saved.executable.map(|record| record.kept), Some(Kept::Whole));
}

#[test]
fn names_that_differ_do_not_touch_each_other() {
    let place = Place::new();
    let names = ["main", "Main", "MAIN", "..", "../main", "feature/x", "feature%2fx", "mäin"];
    for (index, name) in names.iter().enumerate() {
        place.save(name, index as f64, Some(name));
    }
    for (index, name) in names.iter().enumerate() {
        let stored = place.stored(name);
        assert_eq!((throughput(&stored.baseline), whole_bytes(&stored).as_str()), (index as f64, *name));
    }
    let mut listed: Vec<_> = place.store.list().expect("readable").into_iter().map(|listed| listed.name).collect();
    let mut expected = names.map(str::to_owned);
    expected.sort();
    listed.sort();
    assert_eq!(listed, expected);
    let outside: Vec<_> =
        fs::read_dir(place.folder.path()).expect("readable").flatten().map(|e| e.file_name()).collect();
    assert_eq!(outside.len(), 2, "only the store and the server: {outside:?}");
}

#[test]
fn packages_of_a_workspace_share_a_name_and_keep_their_own() {
    let place = Place::new();
    place.save("main", 1.0, Some("shop"));
    let other = Baseline { package: "todo".to_owned(), ..measured(2.0) };
    place.store.save(&named("main"), &other, None).expect("saved");
    assert_eq!(throughput(&place.stored("main").baseline), 1.0);
    let Found::Stored(todo) = place.store.load(&named("main"), "todo").expect("readable") else { panic!("missing") };
    assert_eq!((throughput(&todo.baseline), &todo.executable), (2.0, &StoredExecutable::NotStored));
    assert_eq!(place.store.remove(&named("main")).expect("removed"), ["shop", "todo"]);
    assert_eq!(place.files(), Vec::<PathBuf>::new());
}

#[test]
fn missing_baseline_says_where_it_was_looked_for_what_is_there_and_how_to_save_one() {
    let place = Place::new();
    place.save("release", 1.0, None);
    let other = Baseline { package: "todo".to_owned(), ..measured(2.0) };
    place.store.save(&named("main"), &other, None).expect("saved");
    let Found::Missing(missing) = place.store.load(&named("main"), "shop").expect("readable") else {
        panic!("it is there");
    };
    assert_eq!(
        (missing.existing.as_slice(), missing.other_packages.as_slice()),
        (&[named("release")][..], &["todo".to_owned()][..])
    );
    let error = missing.error(ExitCode::Configuration);
    let all = format!("{} {:?} {:?}", error.what, error.details, error.help);
    for text in [
        "no baseline `main` of package `shop`",
        &place.store.folder().display().to_string(),
        "release",
        "todo",
        "cargo httpbench --save-baseline main",
    ] {
        assert!(all.contains(text), "`{text}` is not in: {all}");
    }
}

#[test]
fn empty_folder_and_no_folder_at_all_are_missing() {
    let place = Place::new();
    assert!(matches!(place.store.load(&named("main"), "shop"), Ok(Found::Missing(_))));
    assert!(place.store.list().expect("nothing").is_empty());
    fs::create_dir_all(place.store.folder_of(&named("main"), "shop")).expect("a folder");
    assert!(matches!(place.store.load(&named("main"), "shop"), Ok(Found::Missing(_))));
    assert!(place.store.list().expect("nothing").is_empty());
    place.save("main", 1.0, None);
}

#[test]
fn baseline_without_scenarios_is_not_saved_and_the_old_one_stays() {
    let place = Place::new();
    place.save("main", 1.0, None);
    let empty = Baseline { scenarios: Vec::new(), ..measured(2.0) };
    let error = place.store.save(&named("main"), &empty, None).expect_err("nothing was measured");
    assert_eq!(error.exit, ExitCode::Configuration);
    assert_eq!(throughput(&place.stored("main").baseline), 1.0);
}

#[test]
fn save_tells_what_it_replaced_and_which_scenarios_are_lost() {
    let place = Place::new();
    place.save("main", 1.0, Some("server 1"));
    let fewer = Baseline { scenarios: vec![scenario("http::index", "/"), scenario("new", "/new")], ..measured(2.0) };
    let saved = place.store.save(&named("main"), &fewer, None).expect("saved");
    let replaced = saved.replaced.expect("there was one");
    assert_eq!(replaced.lost, ["http::search"]);
    assert_eq!(replaced.saved_at, sample_baseline().saved_at);
}

#[test]
fn executables_are_kept_once_and_the_one_before_goes() {
    let place = Place::new();
    place.save("main", 1.0, Some("server 1"));
    assert_eq!(place.files().len(), 2);
    place.save("main", 2.0, Some("server 1"));
    assert_eq!(place.files().len(), 2);
    place.save("main", 3.0, Some("server 2"));
    assert_eq!(place.files().len(), 2);
    assert_eq!(whole_bytes(&place.stored("main")), "server 2");
    place.save("main", 4.0, None);
    assert_eq!(place.files(), [place.text("main")]);
}

#[test]
fn damaged_executable_leaves_the_numbers_and_says_both_hashes() {
    let place = Place::new();
    let saved = place.save("main", 1.0, Some("server"));
    let record = saved.executable.expect("kept");
    fs::write(saved.folder.join(record.sha256.as_str()), "serveR").expect("written");
    let stored = place.stored("main");
    assert_eq!(throughput(&stored.baseline), 1.0);
    let found = Sha256Hex::of_bytes(b"serveR");
    assert_eq!(stored.executable, StoredExecutable::Corrupt { expected: record.sha256.clone(), found });
    fs::remove_file(saved.folder.join(record.sha256.as_str())).expect("removed");
    assert_eq!(place.stored("main").executable, StoredExecutable::Missing);
}

#[test]
fn unreadable_and_newer_baselines_are_refused_and_never_overwritten() {
    let place = Place::new();
    place.save("main", 1.0, None);
    for (text, says) in [
        ("half a ba", "restore the file"),
        ("{}", "restore the file"),
        (r#"{"schema": 7, "needs_httpbench": "3.2.1"}"#, "update cargo-httpbench to 3.2.1 or later"),
    ] {
        fs::write(place.text("main"), text).expect("written");
        let server = place.server("other");
        for error in [
            place.store.load(&named("main"), "shop").expect_err("unreadable"),
            place.store.check_writable(&named("main"), "shop").expect_err("unreadable"),
            place.store.save(&named("main"), &measured(2.0), Some(&server)).expect_err("unreadable"),
        ] {
            assert_eq!(error.exit, ExitCode::Configuration);
            let help = error.help.as_ref().expect("help");
            assert!(help.contains(says) && help.contains("baseline rm main"), "{help}");
        }
        assert_eq!(fs::read_to_string(place.text("main")).expect("readable"), text);
        assert_eq!(place.files(), [place.text("main")]);
    }
    let listed = place.store.list().expect("readable");
    assert_eq!((listed[0].name.as_str(), listed[0].baseline.is_err()), ("main", true));
    place.store.remove(&named("main")).expect("removed");
    place.save("main", 3.0, None);
}

#[test]
fn folder_that_cannot_be_written_fails_before_anything_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), "").expect("written");
    let store = Store::open(folder.path(), Some(&folder.path().join("file/baselines")));
    let error = store.check_writable(&named("main"), "shop").expect_err("a file is no folder");
    assert_eq!(error.exit, ExitCode::OutputFailed);
    assert!(error.help.is_some_and(|help| help.contains("HTTPBENCH_BASELINE_DIR")));
    let error = store.save(&named("main"), &measured(1.0), None).expect_err("a file is no folder");
    assert_eq!(error.exit, ExitCode::OutputFailed);
}

#[test]
fn check_leaves_nothing_behind() {
    let place = Place::new();
    place.store.check_writable(&named("main"), "shop").expect("writable");
    assert_eq!(place.files(), Vec::<PathBuf>::new());
    assert!(!place.store.folder_of(&named("main"), "shop").exists());
    place.save("main", 1.0, None);
    place.store.check_writable(&named("main"), "shop").expect("writable");
    assert_eq!(place.files(), [place.text("main")]);
}

#[test]
fn loading_writes_nothing_and_needs_no_right_to_write() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.save("main", 1.0, Some("server"));
    fs::remove_file(place.store.folder().join(".lock")).expect("removed");
    let folders = [place.store.folder().to_owned(), place.store.folder_of(&named("main"), "shop")];
    let right =
        |mode| folders.iter().for_each(|f| fs::set_permissions(f, fs::Permissions::from_mode(mode)).expect("set"));
    right(0o555);
    let stored = place.stored("main");
    assert_eq!(whole_bytes(&stored), "server");
    assert!(!place.store.folder().join(".lock").exists());
    // Root may write all the same; everybody else is told before measuring.
    let may_all_the_same = File::create(folders[1].join("probe")).is_ok();
    if !may_all_the_same {
        let error = place.store.check_writable(&named("main"), "shop").expect_err("read-only");
        assert_eq!(error.exit, ExitCode::OutputFailed);
    }
    right(0o755);
}

#[test]
fn saving_one_name_leaves_the_bytes_of_another() {
    let place = Place::new();
    place.save("main", 1.0, Some("server 1"));
    let before = fs::read(place.text("main")).expect("readable");
    place.save("feature", 2.0, Some("server 2"));
    assert_eq!(fs::read(place.text("main")).expect("readable"), before);
    assert_eq!(whole_bytes(&place.stored("main")), "server 1");
}

/// Not a test: what other tests start as a process of its own. Saves again and again, or once and dies.
#[test]
#[ignore = "is started by other tests, as a process of its own"]
fn saver() {
    let Ok(folder) = env::var(SAVER) else { return };
    let store = Store::open(Path::new(&folder), None);
    let times = if env::var(DIE_AT).is_ok() { 1 } else { 100_000 };
    let own = process::id();
    let start = Instant::now();
    for index in 0..times {
        if start.elapsed() > Duration::from_secs(60) {
            return; // Whoever started it has gone.
        }
        let server = Path::new(&folder).join(format!("server {own}"));
        // Long enough to be killed in the middle of.
        let number = f64::from(index % 7 + 2);
        fs::write(&server, number.to_string().repeat(200_000)).expect("written");
        store.save(&named("main"), &measured(number), Some(&server)).expect("saved");
    }
}

/// A saver that ends with the test, however that ends.
struct Saver(process::Child);

impl Drop for Saver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_saver(folder: &Path, die_at: Option<Step>) -> Saver {
    let mut command = Command::new(env::current_exe().expect("this test"));
    command
        .args(["--exact", "baseline::store::tests::saver", "--ignored", "--nocapture"])
        .env(SAVER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(step) = die_at {
        command.env(DIE_AT, format!("{step:?}"));
    }
    Saver(command.spawn().expect("it starts"))
}

/// What a saver writes: number and executable belong together.
fn assert_complete(place: &Place, accepted: impl Fn(f64) -> bool) {
    let copy = place.folder.path().join("copy");
    let Found::Stored(stored) = place.store.check_out(&named("main"), "shop", &copy).expect("readable") else {
        panic!("it is missing");
    };
    let number = throughput(&stored.baseline);
    assert!(accepted(number), "{number}");
    let expected = if number == 1.0 { "server 1".to_owned() } else { number.to_string().repeat(200_000) };
    assert!(whole_bytes(&stored) == expected, "the executable is not that of {number}");
}

#[test]
fn save_that_is_killed_at_any_step_leaves_the_old_baseline_or_the_new_one_whole() {
    for (step, expected) in [
        (Step::BeforeText, 1.0),
        (Step::HalfOfText, 1.0),
        (Step::BeforeRename, 1.0),
        (Step::AfterRename, 2.0),
        (Step::Done, 2.0),
    ] {
        let place = Place::new();
        place.save("main", 1.0, Some("server 1"));
        let status = start_saver(place.folder.path(), Some(step)).0.wait().expect("it ends");
        assert_eq!(status.signal(), Some(9), "{step:?}");
        assert_complete(&place, |number| number == expected);
        // The next save works and tidies up.
        place.save("main", 1.0, Some("server 1"));
        assert_complete(&place, |number| number == 1.0);
        assert_eq!(place.files().len(), 2, "{step:?}: {:?}", place.files());
    }
}

#[test]
fn first_save_that_is_killed_leaves_no_baseline_or_a_whole_one() {
    let place = Place::new();
    let status = start_saver(place.folder.path(), Some(Step::BeforeRename)).0.wait().expect("it ends");
    assert_eq!(status.signal(), Some(9));
    assert!(matches!(place.store.load(&named("main"), "shop"), Ok(Found::Missing(_))));
    assert!(place.store.list().expect("readable").is_empty());
}

#[test]
fn two_savers_at_once_that_are_killed_at_any_moment_leave_one_complete_baseline() {
    let place = Place::new();
    place.save("main", 1.0, Some("server 1"));
    for moment in 0..6 {
        let mut savers = [start_saver(place.folder.path(), None), start_saver(place.folder.path(), None)];
        // Readers at the same time never see half of anything.
        for _ in 0..10 + moment * 3 {
            assert_complete(&place, |_| true);
            thread::sleep(Duration::from_millis(7));
        }
        for saver in &mut savers {
            assert!(saver.0.try_wait().expect("it can be asked").is_none(), "a saver failed");
            saver.0.kill().expect("it can be killed");
            saver.0.wait().expect("it ends");
        }
        assert_complete(&place, |_| true);
    }
    place.save("main", 1.0, Some("server 1"));
    assert_eq!(place.files().len(), 2, "{:?}", place.files());
}
