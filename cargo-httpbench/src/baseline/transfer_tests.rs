//! What an archive brings, and what it must not.

use httpbench_core::model::Metric;

use super::*;
use crate::baseline::sample::sample_baseline;
use crate::baseline::store::Found;

fn named(name: &str) -> BaselineName {
    name.parse().expect("a name")
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), None);
    (folder, store)
}

/// A store with a baseline of two packages, one of them with an executable.
fn filled() -> (tempfile::TempDir, Store) {
    let (folder, store) = store();
    let server = folder.path().join("server");
    fs::write(&server, "#!/bin/sh\n").expect("written");
    store.save(&named("feature/x"), &sample_baseline(), Some(&server)).expect("saved");
    let other = Baseline { package: "Todo".to_owned(), ..sample_baseline() };
    store.save(&named("feature/x"), &other, None).expect("saved");
    (folder, store)
}

fn export(store: &Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.export(&named("feature/x"), &mut bytes).expect("exported");
    bytes
}

/// An archive of any files, as an adversary would make it.
fn archive(files: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, kind, bytes) in files {
        let mut header = Header::new_gnu();
        // The builder itself refuses such paths.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.as_old_mut().linkname[..4].copy_from_slice(b"/etc");
        }
        header.set_cksum();
        builder.append(&header, *bytes).expect("written");
    }
    builder.into_inner().expect("written")
}

fn text(edit: impl FnOnce(&mut Baseline)) -> Vec<u8> {
    let mut baseline = sample_baseline();
    edit(&mut baseline);
    baseline.to_json().expect("written")
}

fn refusal(store: &Store, bytes: &[u8]) -> String {
    let error = store.import(bytes, Replacing::No).expect_err("it must be refused");
    assert_eq!(error.exit, ExitCode::Configuration);
    assert!(error.help.is_some());
    format!("{error}: {}", error.cause.as_ref().map(ToString::to_string).unwrap_or_default())
}

#[test]
fn export_and_import_give_equal_bytes_and_an_executable_that_starts() {
    let (_here, from) = filled();
    let (_there, to) = store();
    let imported = to.import(&export(&from)[..], Replacing::No).expect("imported");
    assert_eq!(imported.len(), 2);
    for package in ["shop", "Todo"] {
        let text =
            |store: &Store| fs::read(store.folder_of(&named("feature/x"), package).join(TEXT)).expect("readable");
        assert_eq!(text(&from), text(&to));
    }
    let Found::Stored(stored) = to.load(&named("feature/x"), "shop").expect("readable") else { panic!("missing") };
    let StoredExecutable::Whole(path) = stored.executable else { panic!("{:?}", stored.executable) };
    assert!(crate::baseline::sample::run(&path).success());
    assert_eq!(export(&to), export(&from), "equal baselines are equal archives");
}

#[test]
fn import_replaces_a_baseline_only_when_told() {
    let (_here, from) = filled();
    let (_there, to) = store();
    let mut other = sample_baseline();
    other.scenarios[0].rounds[0].0.insert(Metric::Throughput, 7.0);
    to.save(&named("feature/x"), &other, None).expect("saved");
    assert!(refusal(&to, &export(&from)).contains("already"));
    let Found::Stored(kept) = to.load(&named("feature/x"), "shop").expect("readable") else { panic!("missing") };
    assert_eq!(kept.baseline.scenarios, other.scenarios);
    to.import(&export(&from)[..], Replacing::Yes).expect("imported");
    let Found::Stored(new) = to.load(&named("feature/x"), "shop").expect("readable") else { panic!("missing") };
    assert_eq!(new.baseline.scenarios, sample_baseline().scenarios);
}

#[test]
fn unreadable_baseline_is_not_replaced_even_when_told() {
    let (_here, from) = filled();
    let (_there, to) = store();
    let folder = to.folder_of(&named("feature/x"), "shop");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(TEXT), "half").expect("written");
    let error = to.import(&export(&from)[..], Replacing::Yes).expect_err("it cannot be read");
    assert_eq!(error.exit, ExitCode::Configuration);
    assert_eq!(fs::read_to_string(folder.join(TEXT)).expect("readable"), "half");
}

#[test]
fn paths_out_of_the_store_links_and_strangers_are_refused_and_nothing_is_written() {
    let (folder, to) = store();
    let good = text(|_| {});
    for (path, kind) in [
        ("../shop/baseline.json", EntryType::Regular),
        ("../../baseline.json", EntryType::Regular),
        ("/shop/baseline.json", EntryType::Regular),
        ("shop/../baseline.json", EntryType::Regular),
        ("shop/deep/baseline.json", EntryType::Regular),
        ("baseline.json", EntryType::Regular),
        ("shop/authorized_keys", EntryType::Regular),
        (".lock/baseline.json", EntryType::Regular),
        ("shop/baseline.json", EntryType::Symlink),
        ("shop/baseline.json", EntryType::Link),
        ("shop/baseline.json", EntryType::Fifo),
        ("shop", EntryType::Directory),
    ] {
        refusal(&to, &archive(&[(path, kind, &good)]));
    }
    let left: Vec<_> =
        fs::read_dir(to.folder()).expect("it was made").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [".lock"]);
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
}

#[test]
fn package_or_name_that_would_lead_elsewhere_is_refused() {
    let (_folder, to) = store();
    let regular = EntryType::Regular;
    let foreign = text(|baseline| baseline.package = "../../etc".to_owned());
    assert!(refusal(&to, &archive(&[("shop/baseline.json", regular, &foreign)])).contains("in the place of"));
    let mut unnamed: serde_json::Value = serde_json::from_slice(&text(|_| {})).expect("JSON");
    unnamed["name"] = "".into();
    let unnamed = unnamed.to_string();
    assert!(
        refusal(&to, &archive(&[("shop/baseline.json", regular, unnamed.as_bytes())])).contains("must not be empty")
    );
    // A name with dots and slashes is a name like any other: it is encoded.
    let dotted = text(|baseline| baseline.name = named("../../x"));
    let imported =
        to.import(&archive(&[("shop/baseline.json", regular, &dotted)])[..], Replacing::No).expect("imported");
    assert!(
        imported[0].folder.canonicalize().expect("it is there").starts_with(to.folder().canonicalize().expect("there"))
    );
}

#[test]
fn executable_that_does_not_have_its_hash_is_refused() {
    let (_folder, to) = store();
    let name = format!("shop/{}", Sha256Hex::of_bytes(b"server"));
    let good = text(|_| {});
    let regular = EntryType::Regular;
    let spoilt = archive(&[("shop/baseline.json", regular, &good), (&name, regular, b"serveR")]);
    assert!(refusal(&to, &spoilt).contains("damaged or changed"));
}

#[test]
fn executable_that_no_baseline_names_is_not_taken_in() {
    let (_folder, to) = store();
    let name = format!("shop/{}", Sha256Hex::of_bytes(b"server"));
    let good = text(|_| {});
    let regular = EntryType::Regular;
    let imported = to
        .import(&archive(&[("shop/baseline.json", regular, &good), (&name, regular, b"server")])[..], Replacing::No)
        .expect("imported");
    assert_eq!(imported[0].executable, None);
    assert_eq!(fs::read_dir(&imported[0].folder).expect("readable").count(), 1);
}

#[test]
fn damaged_empty_and_newer_archives_are_refused_with_the_reason() {
    let (_here, from) = filled();
    let (_there, to) = store();
    let whole = export(&from);
    refusal(&to, &whole[..whole.len() / 3]);
    assert!(refusal(&to, &[]).contains("empty"));
    refusal(&to, b"not an archive at all, but some text that is long enough to be looked at");
    let newer = br#"{"schema": 9, "needs_httpbench": "4.0.0"}"#;
    assert!(refusal(&to, &archive(&[("shop/baseline.json", EntryType::Regular, newer)])).contains("4.0.0"));
    assert!(to.list().expect("readable").is_empty());
}

#[test]
fn damaged_executable_stays_behind_and_is_told() {
    let (_here, from) = filled();
    let folder = from.folder_of(&named("feature/x"), "shop");
    let executable =
        fs::read_dir(&folder).expect("readable").flatten().find(|entry| entry.file_name() != TEXT).expect("kept");
    fs::write(executable.path(), "other").expect("written");
    let exported = from.export(&named("feature/x"), io::sink()).expect("exported");
    assert!(exported.iter().any(|part| matches!(part.executable, StoredExecutable::Corrupt { .. })));
    let (_there, to) = store();
    let imported = to.import(&export(&from)[..], Replacing::No).expect("imported");
    assert!(imported.iter().all(|part| part.executable.is_none()));
}

#[test]
fn name_that_nobody_saved_is_told_with_those_that_are_there() {
    let (_here, from) = filled();
    let error = from.export(&named("feature/y"), io::sink()).expect_err("nobody saved it");
    assert_eq!(error.exit, ExitCode::Configuration);
    assert!(error.help.as_ref().is_some_and(|help| help.contains("feature/x")), "{error:?}");
}
