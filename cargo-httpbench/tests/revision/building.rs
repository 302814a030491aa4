//! The revision's executable: whose sources, flags, lock file and features it is made of.

use std::cell::Cell;
use std::fs;

use cargo_httpbench::cargo::{Cargo, CargoCall, RunCargo};
use cargo_httpbench::error::Error;
use cargo_httpbench::exit_code::ExitCode;
use cargo_httpbench::revision::{LockOrigin, NoServer};

use crate::repository::{Candidate, Repository, built, output, package, price, prints, runner};

#[test]
fn library_of_the_workspace_is_each_revisions_own_in_both_orders_and_wherever_cargo_builds() {
    for elsewhere in [None, Some("CARGO_TARGET_DIR"), Some("CARGO_BUILD_BUILD_DIR")] {
        let mut repository = Repository::with_library(1);
        repository.write(&[("price/src/lib.rs", &price(2))]);
        if let Some(name) = elsewhere {
            let shared = repository.dir.path().join("shared target");
            repository.variables.push((name.to_owned(), shared.into_os_string()));
        }
        let cargo = repository.cargo();
        let candidate = Candidate::of(&cargo);
        let checkout = repository.check_out("HEAD");
        let there = |what: &str| {
            let server = candidate.revision(&checkout, &cargo, &mut runner()).expect("built");
            assert_eq!(output(&server.executable.path), "1", "{what} {elsewhere:?}");
            assert_eq!(server.package_root, checkout.root().join("shop"));
        };
        let here = |number: &str| assert_eq!(output(&candidate.build(&cargo).path), number, "{elsewhere:?}");
        there("first");
        here("2");
        fs::remove_dir_all(repository.root.join("target/httpbench/revisions/cache")).expect("forgotten");
        there("second");
        here("2");
        drop(checkout);
        // The other way round: what was the candidate is now the revision.
        repository.commit();
        repository.write(&[("price/src/lib.rs", &price(3))]);
        let (server, said) = built(&repository, "HEAD", &cargo).expect("built");
        assert_eq!((said.as_str(), server.lock), ("2", LockOrigin::Revision));
        here("3");
        let (_, said) = built(&repository, "HEAD~1", &cargo).expect("built");
        assert_eq!(said, "1");
        let target = repository.root.join("target/httpbench/revisions/0000000000000000/target");
        assert!(server.executable.built.starts_with(target), "{}", server.executable.built.display());
    }
}

#[test]
fn equal_sources_give_equal_executables() {
    let repository = Repository::with_library(1);
    let main = r#"mod made { include!(concat!(env!("OUT_DIR"), "/made.rs")); }
        fn main() { println!("{}", made::pick(price::price() as usize)) }"#;
    let script = r#"fn main() {
        let folder = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
        std::fs::write(folder.join("made.rs"), "pub fn pick(at: usize) -> u8 { [1, 2, 3][at] }").unwrap();
    }"#;
    let config = "[build]\nrustflags = [\"--cfg\", \"special\"]\n";
    let root = fs::read_to_string(repository.root.join("Cargo.toml")).expect("readable");
    let root = format!("{root}\n[profile.release]\ndebug = true\n");
    repository.write(&[
        ("shop/src/main.rs", main),
        ("shop/build.rs", script),
        (".cargo/config.toml", config),
        ("Cargo.toml", &root),
    ]);
    repository.commit();
    let mut cargo = repository.cargo();
    cargo.options.profile = "release".to_owned();
    let candidate = Candidate::of(&cargo);
    let here = candidate.build(&cargo);
    let checkout = repository.check_out("HEAD");
    let there = candidate.revision(&checkout, &cargo, &mut runner()).expect("built");
    assert_eq!(output(&there.executable.path), "2");
    let (here, there) = (fs::read(here.path).expect("readable"), fs::read(there.executable.path).expect("readable"));
    assert!(here == there, "{} and {} bytes", here.len(), there.len());
}

#[test]
fn revision_that_was_built_before_costs_no_cargo_call() {
    let repository = Repository::shop("old");
    repository.write(&[("src/main.rs", &prints("new"))]);
    let cargo = repository.cargo();
    let calls = Cell::new(0);
    let mut counting = |call: &CargoCall| {
        if !call.program.ends_with("rustc") {
            calls.set(calls.get() + 1);
        }
        runner().run(call)
    };
    let candidate = Candidate::of(&cargo);
    let mut build = |cargo: &Cargo| {
        calls.set(0);
        let checkout = repository.check_out("HEAD");
        let server = candidate.revision(&checkout, cargo, &mut counting).expect("built");
        assert_eq!(output(&server.executable.path), "old");
        assert!(server.executable.path.starts_with(candidate.folder.path()));
        (calls.get(), server.environment, server.executable.linked)
    };
    let first = build(&cargo);
    assert!(first.0 > 0);
    let second = build(&cargo);
    assert_eq!((second.0, &second.1, &second.2), (0, &first.1, &first.2));
    let mut flags = cargo.clone();
    flags.environment.set("RUSTFLAGS", "--cfg other");
    assert!(build(&flags).0 > 0);
    let mut profile = cargo.clone();
    profile.options.profile = "release".to_owned();
    assert!(build(&profile).0 > 0);
    assert_eq!(build(&cargo).0, 0);
}

#[test]
fn executable_that_depends_on_more_than_the_commit_is_not_kept() {
    let elsewhere = Repository::shop("x");
    elsewhere.write(&[("Cargo.toml", &package("price", "")), ("src/lib.rs", &price(1))]);
    let outside = format!("[dependencies]\nprice = {{ path = \"{}\" }}\n", elsewhere.root.display());
    let plain = "fn main() { println!(\"{}\", 1) }";
    let script = |what: &str| format!("fn main() {{ {what} }}");
    let writes_beside_sources = script(r#"std::fs::write("made.txt", "1").unwrap();"#);
    let writes =
        script(r#"std::fs::write(std::path::Path::new(&std::env::var("OUT_DIR").unwrap()).join("a"), "1").unwrap();"#);
    let reads_what_was_built =
        r#"fn main() { println!("{}", std::fs::read_to_string(concat!(env!("OUT_DIR"), "/a")).unwrap()) }"#;
    let embeds = r#"fn main() { println!("{}", include_str!(concat!(env!("OUT_DIR"), "/a"))) }"#;
    let uses = "fn main() { println!(\"{}\", price::price()) }";
    for (name, more, main, script, is_kept) in [
        ("path dependency elsewhere", outside.as_str(), uses, "fn main() {}", false),
        ("assets beside the sources", "", plain, writes_beside_sources.as_str(), false),
        ("files of the build folder", "", reads_what_was_built, writes.as_str(), false),
        ("embedded files of the build folder", "", embeds, writes.as_str(), true),
        ("nothing", "", plain, "fn main() {}", true),
    ] {
        let repository =
            Repository::new(&[("Cargo.toml", &package("shop", more)), ("src/main.rs", main), ("build.rs", script)]);
        assert_eq!(built(&repository, "HEAD", &repository.cargo()).expect("built").1, "1", "{name}");
        let kept = fs::read_dir(repository.root.join("target/httpbench/revisions/cache")).map_or(0, Iterator::count);
        assert_eq!(kept == 1, is_kept, "{name}");
    }
}

#[test]
fn revision_without_such_a_server_says_what_it_has() {
    let repository = Repository::new(&[("Cargo.toml", &package("store", "")), ("src/main.rs", &prints("x"))]);
    let rev = |repository: &Repository, rev: &str| built(repository, rev, &repository.cargo()).expect_err("no server");
    repository.write(&[("Cargo.toml", &package("shop", "")), ("src/bin/shop.rs", "fn main( {")]);
    fs::remove_file(repository.root.join("src/main.rs")).expect("removed");
    repository.git(&["rm", "--quiet", "--cached", "Cargo.lock"]);
    repository.commit();
    repository.write(&[("src/bin/shop.rs", &prints("x"))]);
    let Some(NoServer::NoSuchPackage { package: name, there }) = Some(rev(&repository, "HEAD~1")) else {
        panic!("it has no such package")
    };
    assert_eq!((name.as_str(), there.as_slice()), ("shop", &["store".to_owned()][..]));

    let NoServer::DoesNotBuild(error) = rev(&repository, "HEAD") else { panic!("it does not build") };
    assert_eq!(error.exit, ExitCode::BuildFailed);
    let error = NoServer::DoesNotBuild(error).into_error("1a2b");
    assert!(error.what.starts_with("1a2b does not build: cargo could not build server `shop`"), "{error}");

    repository.write(&[("src/bin/shop.rs", &prints("x"))]);
    repository.commit();
    fs::rename(repository.root.join("src/bin/shop.rs"), repository.root.join("src/bin/front.rs")).expect("renamed");
    let NoServer::NoSuchBinary { bin, there, .. } = rev(&repository, "HEAD") else { panic!("it has no such binary") };
    assert_eq!((bin.as_str(), there.as_slice()), ("front", &["shop".to_owned()][..]));
}

#[test]
fn revision_without_a_lock_file_gets_the_candidates() {
    let repository = Repository::with_library(1);
    repository.git(&["rm", "--quiet", "--cached", "Cargo.lock"]);
    repository.git(&["commit", "--quiet", "--message", "no lock file"]);
    let lock = fs::read(repository.root.join("Cargo.lock")).expect("readable");
    // Its list of packages is not the revision's: cargo adapts it.
    repository.write(&[("price/Cargo.toml", &package("price", "").replace("0.1.0", "0.2.0"))]);
    let cargo = repository.cargo();
    let (server, said) = built(&repository, "HEAD", &cargo).expect("built");
    assert_eq!((said.as_str(), server.lock), ("1", LockOrigin::Candidate));
    assert_eq!(server.warnings.iter().map(|warning| warning.code()).collect::<Vec<_>>(), ["revision-without-lock"]);
    assert_eq!(fs::read(repository.root.join("Cargo.lock")).expect("readable"), lock);
}

#[test]
fn stale_lock_file_of_a_revision_is_not_mended_behind_its_back() {
    let repository = Repository::with_library(1);
    repository.write(&[("price/Cargo.toml", &package("price", "").replace("0.1.0", "0.2.0"))]);
    repository.commit();
    let NoServer::DoesNotBuild(_) = built(&repository, "HEAD", &repository.cargo()).expect_err("--locked") else {
        panic!("it does not build")
    };
}

#[test]
fn features_that_a_revision_does_not_have_are_left_out_and_said() {
    let repository = Repository::shop("old");
    repository
        .write(&[("Cargo.toml", &package("shop", "[features]\nregression = []\n")), ("src/main.rs", &prints("new"))]);
    let mut cargo = repository.cargo();
    cargo.options.features = vec!["regression".to_owned()];
    let (server, said) = built(&repository, "HEAD", &cargo).expect("built");
    assert_eq!(said, "old");
    assert_eq!(server.warnings.iter().map(|warning| warning.code()).collect::<Vec<_>>(), ["revision-without-features"]);
}

#[test]
fn each_revision_has_the_flags_of_its_own_configuration_but_ignored_files_are_the_machines() {
    let print = r#"fn main() {
        println!("{}{}{}", if cfg!(old) { "old" } else { "" }, if cfg!(new) { "new" } else { "" }, if cfg!(machine) { " machine" } else { "" })
    }"#;
    let config = |flag: &str| format!("[build]\nrustflags = [\"--cfg\", \"{flag}\"]\n");
    let repository = Repository::new(&[
        ("Cargo.toml", "[workspace]\nmembers = [\"shop\"]\nresolver = \"3\"\n"),
        ("shop/Cargo.toml", &package("shop", "[lints.rust]\nunexpected_cfgs = \"allow\"\n")),
        ("shop/src/main.rs", print),
        (".cargo/config.toml", &config("old")),
        (".gitignore", "target\n/shop/.cargo\n"),
    ]);
    repository.write(&[(".cargo/config.toml", &config("new")), ("shop/.cargo/config.toml", &config("machine"))]);
    repository.write(&[(".gitignore", "target\n/shop/.cargo\n")]);
    let mut cargo = repository.cargo();
    cargo.current_dir = repository.root.join("shop");
    let candidate = Candidate::of(&cargo);
    assert_eq!(output(&candidate.build(&cargo).path), "new machine");
    let (_, said) = built(&repository, "HEAD", &cargo).expect("built");
    assert_eq!(said, "old machine");
}

#[test]
fn root_package_that_became_a_workspace_is_built_as_it_was() {
    let repository = Repository::shop("alone");
    repository.write(&[
        ("Cargo.toml", &package("shop", "[workspace]\nmembers = [\"price\"]\n")),
        ("price/Cargo.toml", &package("price", "")),
        ("price/src/lib.rs", ""),
    ]);
    assert_eq!(built(&repository, "HEAD", &repository.cargo()).expect("built").1, "alone");
}

#[test]
fn failure_that_is_not_the_revisions_ends_the_run() {
    let signal = NoServer::from(Error::new(ExitCode::Signal(2), "interrupted"));
    assert_eq!(signal.into_error("1a2b").exit, ExitCode::Signal(2));
}
