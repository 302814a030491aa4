//! Repositories to test with, and candidates as a run finds them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use cargo_httpbench::build::{self, RunFolder, ServerExecutable};
use cargo_httpbench::cargo::{Cargo, CargoOptions, RunCargo, SupervisedCargo};
use cargo_httpbench::discover::{ServerTarget, Workspace};
use cargo_httpbench::environment::{self, Environment};
use cargo_httpbench::error::Result;
use cargo_httpbench::interrupt::Interrupt;
use cargo_httpbench::revision::{
    Against, Checkout, Counterpart, Git, NoServer, Revision, RevisionServer, WhichCommit, check_out, resolve,
};

static COMMITS: AtomicU32 = AtomicU32::new(0);

/// A repository in a folder with a space in its name.
pub(crate) struct Repository {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) variables: Vec<(String, OsString)>,
}

impl Repository {
    /// With a first commit of these files and the lock file that goes with them, on `main`.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let repository = Self::bare_of_files();
        repository.write(files);
        repository.write(&[(".gitignore", "target\n.env\n*.db\n/local\n")]);
        if repository.root.join("Cargo.toml").is_file() {
            let status = Command::new("cargo")
                .args(["generate-lockfile", "--offline", "--quiet"])
                .current_dir(&repository.root)
                .status();
            assert!(status.expect("cargo runs").success());
        }
        repository.commit();
        repository
    }

    pub(crate) fn bare_of_files() -> Self {
        let dir = tempfile::Builder::new().prefix("httpbench test ").tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("it exists").join("shop it");
        fs::create_dir(&root).expect("a folder");
        let repository = Self { dir, root, variables: Vec::new() };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    /// A package `shop` that prints one word.
    pub(crate) fn shop(word: &str) -> Self {
        Self::new(&[("Cargo.toml", &package("shop", "")), ("src/main.rs", &prints(word))])
    }

    /// A workspace whose server `shop` prints the number that its library `price` holds.
    pub(crate) fn with_library(number: u32) -> Self {
        Self::new(&[
            ("Cargo.toml", "[workspace]\nmembers = [\"shop\", \"price\"]\nresolver = \"3\"\n"),
            ("shop/Cargo.toml", &package("shop", "[dependencies]\nprice = { path = \"../price\" }\n")),
            ("shop/src/main.rs", "fn main() { println!(\"{}\", price::price()) }"),
            ("price/Cargo.toml", &package("price", "")),
            ("price/src/lib.rs", &price(number)),
        ])
    }

    pub(crate) fn write(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.root.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("written");
        }
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.root, args)
    }

    pub(crate) fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        // Commits of one second with the same content would be one commit.
        let message = format!("change {}", COMMITS.fetch_add(1, Ordering::Relaxed));
        self.git(&["commit", "--quiet", "--allow-empty", "--message", &message]);
        self.head()
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn environment(&self) -> Environment {
        let mut own = environment::users_own(&Environment::inherited(), std::env::current_exe().ok().as_deref());
        for name in ["CARGO_TARGET_DIR", "RUSTFLAGS"] {
            own.remove(name);
        }
        own.set("GIT_CONFIG_GLOBAL", "/dev/null");
        for (name, value) in &self.variables {
            own.set(name, value);
        }
        own
    }

    pub(crate) fn caller(&self) -> Git {
        Git::new(&self.environment(), deaf())
    }

    pub(crate) fn resolve(&self, rev: &str, commit: WhichCommit) -> Result<Revision> {
        resolve(&self.root, &Against { rev: rev.to_owned(), commit }, &self.caller())
    }

    pub(crate) fn cargo(&self) -> Cargo {
        Cargo::new(
            &self.root,
            self.environment(),
            CargoOptions { profile: "dev".to_owned(), ..CargoOptions::default() },
        )
    }

    pub(crate) fn check_out(&self, rev: &str) -> Checkout {
        let revision = self.resolve(rev, WhichCommit::Exact).expect("resolved");
        check_out(&revision, &self.root.join("target/httpbench"), &self.caller()).expect("checked out")
    }

    pub(crate) fn records(&self) -> usize {
        self.git(&["worktree", "list", "--porcelain"]).lines().filter(|line| line.starts_with("worktree ")).count()
    }

    /// Everything of the user's that must stay as it is.
    pub(crate) fn untouchable(&self) -> (String, Vec<u8>, Vec<u8>, Vec<u8>, String) {
        let read = |name: &str| fs::read(self.root.join(".git").join(name)).expect("readable");
        let status = self.git(&["--no-optional-locks", "status", "--porcelain=v2", "--branch"]);
        (status, read("index"), read("HEAD"), read("config"), self.git(&["for-each-ref"]))
    }
}

pub(crate) fn git_in(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

pub(crate) fn package(name: &str, more: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{more}")
}

pub(crate) fn prints(word: &str) -> String {
    format!("fn main() {{ println!(\"{word}\") }}")
}

pub(crate) fn price(number: u32) -> String {
    format!("pub fn price() -> u32 {{ {number} }}")
}

pub(crate) fn deaf() -> &'static Interrupt {
    static DEAF: LazyLock<Interrupt> = LazyLock::new(|| {
        cargo_httpbench::process::use_executable(env!("CARGO_BIN_EXE_cargo-httpbench"));
        Interrupt::deaf().expect("a pipe")
    });
    &DEAF
}

pub(crate) fn runner() -> SupervisedCargo<'static> {
    SupervisedCargo::new(deaf())
}

/// What a candidate consists of, as a run finds it.
pub(crate) struct Candidate {
    pub(crate) workspace: Workspace,
    pub(crate) server: ServerTarget,
    pub(crate) folder: RunFolder,
}

impl Candidate {
    pub(crate) fn of(cargo: &Cargo) -> Self {
        let workspace = Workspace::read(cargo, &mut runner()).expect("a workspace");
        let selected = workspace.selected(&cargo.options).expect("packages");
        let package = selected.iter().find(|package| package.name.as_str() == "shop").expect("the shop");
        let server = workspace.server(&cargo.options, &selected, package, None).expect("a server");
        let folder = RunFolder::create(&workspace.results()).expect("a folder");
        Self { server, folder, workspace }
    }

    pub(crate) fn build(&self, cargo: &Cargo) -> ServerExecutable {
        build::server(cargo, &mut runner(), &self.server, &self.folder).expect("it builds")
    }

    pub(crate) fn revision(
        &self,
        checkout: &Checkout,
        cargo: &Cargo,
        runner: &mut dyn RunCargo,
    ) -> Result<RevisionServer, NoServer> {
        let counterpart =
            Counterpart { workspace_root: self.workspace.root(), package: &self.server.package, server: &self.server };
        checkout.build_server(cargo, runner, counterpart, &self.folder)
    }
}

/// The revision's server, built with the options of `cargo`.
pub(crate) fn built(repository: &Repository, rev: &str, cargo: &Cargo) -> Result<(RevisionServer, String), NoServer> {
    let candidate = Candidate::of(cargo);
    let checkout = repository.check_out(rev);
    let server = candidate.revision(&checkout, cargo, &mut runner())?;
    let said = output(&server.executable.path);
    Ok((server, said))
}

pub(crate) fn output(program: &Path) -> String {
    let output = Command::new(program).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}
