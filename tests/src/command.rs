//! Runs the real command, with a deadline, and signals it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, process};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::outcome::Outcome;
#[cfg(target_os = "linux")]
use crate::platform::forbid_filters;
use crate::platform::heed_interrupts;
use crate::processes::{RUN_VARIABLE, kill_all_of, processes_of};
use crate::project::Project;
use crate::turns::{self, Turn};
use crate::{wait_until, workspace};

/// Includes the first build of the engine in the shared target directory.
const DEADLINE: Duration = Duration::from_secs(300);

/// After the end of a run: the kernel needs a moment to take away what was killed.
const GRACE: Duration = Duration::from_secs(3);

/// What a run inherits from this test would change what it does.
const NOT_INHERITED: [&str; 12] = [
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_TARGET_TMPDIR",
    "CI",
    "CLICOLOR_FORCE",
    "DATABASE_URL",
    "HOST",
    "LD_LIBRARY_PATH",
    "NO_COLOR",
    "PORT",
    "RUSTFLAGS",
];

/// A run of `cargo httpbench` in preparation.
#[derive(Debug)]
pub struct Httpbench<'a> {
    project: &'a Project,
    command: Command,
    id: String,
    deadline: Duration,
    stdout: Option<File>,
    stderr: Option<File>,
    stdin: Option<File>,
}

impl<'a> Httpbench<'a> {
    pub(crate) fn new(project: &'a Project) -> Self {
        let httpbench = Self::of(project, workspace::executable());
        httpbench.arg("httpbench") // As cargo calls it.
    }

    fn of(project: &'a Project, program: &Path) -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(program);
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if NOT_INHERITED.contains(&&*text) || text.starts_with("CARGO_PKG_") || text.starts_with("HTTPBENCH_") {
                command.env_remove(name);
            }
        }
        command
            .env("CARGO", workspace::cargo())
            .env("CARGO_TARGET_DIR", workspace::fixtures_target())
            .env("TMPDIR", project.temporary())
            .env(RUN_VARIABLE, &id)
            .current_dir(project.root());
        Self { project, command, id, deadline: DEADLINE, stdout: None, stderr: None, stdin: None }
    }

    /// Calls the executable without the word `httpbench`, as nobody but a person does.
    #[must_use]
    pub fn without_subcommand(self) -> Self {
        let program = self.command.get_program().to_owned();
        self.with_program(Command::new(program))
    }

    /// Calls cargo, which then looks for the command itself. Before any argument.
    #[must_use]
    pub fn through_cargo(self) -> Self {
        let folder = workspace::executable().parent().expect("an executable lies in a folder").to_owned();
        let before = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(std::iter::once(folder).chain(env::split_paths(&before))).expect("no colon in it");
        self.with_program(Command::new(workspace::cargo())).env("PATH", path).arg("httpbench")
    }

    /// The same environment and folder for another program, without arguments.
    fn with_program(mut self, mut program: Command) -> Self {
        program.current_dir(self.project.root());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => program.env(name, value),
                None => program.env_remove(name),
            };
        }
        self.command = program;
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Adds what makes it short.
    #[must_use]
    pub fn short(self) -> Self {
        self.args(crate::SHORT)
    }

    /// Sets an environment variable, of the command and so of the server.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Takes an environment variable away.
    #[must_use]
    pub fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs it where no program can set filters on system calls, as in some sandboxes: no port can be redirected there.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn without_filters(mut self) -> Self {
        forbid_filters(&mut self.command);
        self
    }

    /// Runs it in another folder than the project's.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.command.current_dir(folder.into());
        self
    }

    /// The longest time that the run may take.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sends standard output to a file or device; the outcome's is empty then.
    #[must_use]
    pub fn stdout_to(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let file = File::options().write(true).create(true).truncate(true).open(path);
        self.stdout = Some(file.unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display())));
        self
    }

    /// Runs it on a terminal, of which this is the end for programs; both streams of the outcome are empty then.
    #[must_use]
    pub fn on_terminal(mut self, slave: File) -> Self {
        self.stdout = Some(slave.try_clone().expect("a descriptor can be copied"));
        self.stderr = Some(slave);
        self
    }

    /// Lets it read a file as standard input; without, there is nothing to read.
    #[must_use]
    pub fn stdin_from(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let file = File::open(path);
        self.stdin = Some(file.unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display())));
        self
    }

    /// Runs it to its end.
    #[track_caller]
    #[must_use]
    pub fn run(self) -> Outcome {
        self.start().wait()
    }

    /// Starts it, in a process group of its own, as a shell does.
    #[track_caller]
    #[must_use]
    pub fn start(mut self) -> Run<'a> {
        let turn = turns::take();
        heed_interrupts();
        self.project.stamp();
        let words: Vec<OsString> =
            std::iter::once("cargo".into()).chain(self.command.get_args().map(OsStr::to_owned)).collect();
        let command = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let run_folders = workspace::run_folders();
        let started = Instant::now();
        let mut child = self
            .command
            .process_group(0)
            .stdin(self.stdin.map_or_else(Stdio::null, Stdio::from))
            .stdout(self.stdout.map_or_else(Stdio::piped, Stdio::from))
            .stderr(self.stderr.map_or_else(Stdio::piped, Stdio::from))
            .spawn()
            .expect("the command can be started");
        let stdout = child.stdout.take().map_or_else(Stream::absent, Stream::read);
        let stderr = child.stderr.take().map_or_else(Stream::absent, Stream::read);
        Run {
            project: self.project,
            child,
            id: self.id,
            command,
            stdout,
            stderr,
            started,
            deadline: self.deadline,
            status: None,
            run_folders,
            _turn: turn,
        }
    }
}

/// A run that goes on. What is left of it is killed when this is dropped.
#[derive(Debug)]
pub struct Run<'a> {
    project: &'a Project,
    child: Child,
    id: String,
    command: String,
    stdout: Stream,
    stderr: Stream,
    started: Instant,
    deadline: Duration,
    status: Option<ExitStatus>,
    run_folders: Vec<PathBuf>,
    _turn: Turn,
}

impl Run<'_> {
    /// The command's process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process ids are positive 32-bit numbers")
    }

    /// What identifies its processes to [`processes_of`].
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits until either stream contains the text.
    #[track_caller]
    pub fn wait_for_text(&mut self, text: &str) {
        self.wait_for(text, |run| run.stdout.so_far().contains(text) || run.stderr.so_far().contains(text));
    }

    /// Waits until a file is there, such as the mark of a fixture server.
    #[track_caller]
    pub fn wait_for_file(&mut self, path: &Path) {
        self.wait_for(&path.display().to_string(), |_| path.exists());
    }

    #[track_caller]
    fn wait_for(&mut self, what: &str, mut answer: impl FnMut(&Self) -> bool) {
        let end = self.started + self.deadline;
        while !answer(self) {
            let over = self.status().is_some();
            let told = || format!("stdout:\n{}\nstderr:\n{}", self.stdout.so_far(), self.stderr.so_far());
            assert!(!over || answer(self), "it ended without {what}\n{}", told());
            assert!(Instant::now() < end, "still waiting for {what}\n{}", told());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal to the command alone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("the command is there");
    }

    /// Sends a signal to the command's process group, as a terminal does at Ctrl-C.
    pub fn signal_group(&self, signal: Signal) {
        killpg(Pid::from_raw(self.pid()), signal).expect("the command's group is there");
    }

    fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("a child can be waited for");
        }
        self.status
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        self.status().is_some()
    }

    /// Closes the reading end of standard output, as `head` does when it has enough.
    pub fn close_stdout(&mut self) {
        self.stdout.close();
    }

    /// Waits for its end.
    #[track_caller]
    #[must_use]
    pub fn wait(mut self) -> Outcome {
        let end = self.started + self.deadline;
        let status = loop {
            if let Some(status) = self.status() {
                break status;
            }
            if Instant::now() > end {
                let told = format!("stdout:\n{}\nstderr:\n{}", self.stdout.so_far(), self.stderr.so_far());
                let alive = processes_of(&self.id);
                panic!("$ {}\nstill runs after {:?}: {alive:#?}\n{told}", self.command, self.deadline);
            }
            thread::sleep(Duration::from_millis(10));
        };
        let elapsed = self.started.elapsed();
        let left = self.left();
        // A process that is left may hold the other end of a pipe for ever: what has come so far must do.
        let patience = Instant::now() + GRACE;
        let stdout = self.stdout.finish(patience);
        let stderr = self.stderr.finish(patience);
        Outcome { command: self.command.clone(), status, stdout, stderr, elapsed, left }
    }

    /// Processes, temporary files and run folders that are there although the command has ended.
    fn left(&self) -> Vec<String> {
        let end = Instant::now() + GRACE;
        loop {
            let processes = processes_of(&self.id).into_iter().map(|it| format!("process {}: {}", it.pid, it.command));
            let files = self.project.temporary_files().into_iter().map(|path| format!("file {}", path.display()));
            let folders = workspace::run_folders().into_iter().filter(|path| !self.run_folders.contains(path));
            let folders = folders.map(|path| format!("run folder {}", path.display()));
            let left: Vec<String> = processes.chain(files).chain(folders).collect();
            if left.is_empty() || Instant::now() > end {
                return left;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until no process of the run is left; panics when the deadline has passed.
    #[track_caller]
    pub fn wait_until_gone(&mut self, deadline: Duration) {
        _ = self.status(); // Else the command itself may stay as a zombie.
        wait_until("the end of all processes of the run", deadline, || processes_of(&self.id).is_empty());
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if self.status().is_none() {
            _ = self.child.kill();
            _ = self.child.wait();
        }
        kill_all_of(&self.id);
    }
}

/// One of the command's output streams, read by a thread so that the command never waits for us.
#[derive(Debug)]
struct Stream {
    state: Arc<Mutex<StreamState>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct StreamState {
    bytes: Vec<u8>,
    close: bool,
}

impl Stream {
    fn absent() -> Self {
        Self { state: Arc::default(), thread: None }
    }

    fn read(mut pipe: impl Read + Send + 'static) -> Self {
        let state = Arc::new(Mutex::new(StreamState::default()));
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            loop {
                let count = match pipe.read(&mut buffer) {
                    Ok(0) | Err(_) => return,
                    Ok(count) => count,
                };
                let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
                state.bytes.extend_from_slice(&buffer[..count]);
                if state.close {
                    return;
                }
            }
        });
        Self { state, thread: Some(thread) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.state.lock().unwrap_or_else(PoisonError::into_inner).bytes).into_owned()
    }

    /// The pipe is closed after the next bytes.
    fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).close = true;
    }

    fn finish(&mut self, patience: Instant) -> String {
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < patience {
            thread::sleep(Duration::from_millis(5));
        }
        if let Some(thread) = self.thread.take().filter(JoinHandle::is_finished) {
            _ = thread.join();
        }
        self.so_far()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kit itself, with a shell in place of the command.
    fn shell<'a>(project: &'a Project, script: &str) -> Httpbench<'a> {
        Httpbench::of(project, Path::new("/bin/sh")).args(["-c", script]).deadline(Duration::from_secs(20))
    }

    #[test]
    fn streams_and_exit_code_are_kept_apart() {
        let project = Project::copy("plain");
        let outcome = shell(&project, "echo out; echo err >&2; exit 3").run();
        outcome.assert_code(3);
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn process_that_is_left_is_seen_and_ended() {
        let project = Project::copy("plain");
        let run = shell(&project, "setsid sleep 300 & echo started").start();
        let id = run.id().to_owned();
        let outcome = run.wait();
        assert!(outcome.left.iter().any(|left| left.ends_with("sleep 300")), "{:?}", outcome.left);
        assert_eq!(outcome.stdout, "started\n");
        wait_until("the end of what was left", Duration::from_secs(5), || processes_of(&id).is_empty());
    }

    #[test]
    fn temporary_file_that_is_left_is_seen() {
        let project = Project::copy("plain");
        let outcome = shell(&project, "echo x > \"$TMPDIR/half\"").run();
        assert!(outcome.left.iter().any(|left| left.ends_with("/tmp/half")), "{:?}", outcome.left);
    }

    #[test]
    fn group_signal_reaches_children_and_the_signal_is_told() {
        let project = Project::copy("plain");
        let mut run = shell(&project, "echo ready; sleep 300").start();
        run.wait_for_text("ready");
        run.signal_group(Signal::SIGINT);
        let outcome = run.wait();
        outcome.assert_nothing_left();
        assert_eq!((outcome.code(), outcome.signal()), (None, Some(2)));
    }

    #[test]
    fn deadline_ends_the_run_and_fails_the_test() {
        let project = Project::copy("plain");
        let run = shell(&project, "sleep 300").deadline(Duration::from_millis(100)).start();
        let id = run.id().to_owned();
        let failure = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.wait())).unwrap_err();
        assert!(failure.downcast_ref::<String>().unwrap().contains("still runs after"));
        wait_until("the end of the run", Duration::from_secs(5), || processes_of(&id).is_empty());
    }

    #[test]
    fn closed_standard_output_breaks_the_writer() {
        let project = Project::copy("plain");
        let mut run = shell(&project, "trap '' PIPE; while echo x; do :; done 2>/dev/null; exit 5").start();
        run.close_stdout();
        run.wait().assert_code(5);
    }
}
