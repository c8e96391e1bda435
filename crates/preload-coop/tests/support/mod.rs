//! Common parts of the tests: the library as it is shipped, C programs, and running them in a
//! domain.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_record::coop::{CPU, DOMAIN, LoopRow, PAGE_BYTES, REPORT, TIER, read};

/// Time limit of a program, in seconds.
const LIMIT_S: &str = "600";

/// The library, built as it is shipped.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "-p", "antiphon-preload-coop", "--profile", "preload"])
            .arg("--target-dir")
            .arg(&target)
            .status();
        assert!(built.is_ok_and(|status| status.success()), "the library does not build");
        target.join("preload/libantiphon_preload_coop.so")
    })
}

/// A test's directory, domain and report. The directory is removed when it is dropped.
pub struct Stage {
    directory: PathBuf,
    domain: String,
    page: PathBuf,
}

impl Stage {
    pub fn new(name: &str) -> Self {
        static STAGES: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only a unique number is needed.
        let number = STAGES.fetch_add(1, Relaxed);
        let domain = format!("{name}-{}-{number}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("coop-{domain}"));
        std::fs::create_dir_all(&directory).expect("a directory");
        let page = directory.join("page");
        let file = File::create(&page).expect("a file");
        file.set_len(PAGE_BYTES as u64).expect("its size");
        Self { directory, domain, page }
    }

    /// Compiles the C file of that name, with these arguments.
    pub fn compile(&self, file: &str, arguments: &[&str]) -> PathBuf {
        let crate_ = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = self.directory.join(format!("{file}{}", arguments.concat().len()));
        let status = Command::new("gcc")
            .args(["-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
            .arg(crate_.join("include"))
            .args(arguments)
            .arg("-o")
            .arg(&program)
            .arg(crate_.join("tests/c").join(file))
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{file} does not compile");
        program
    }

    /// A command whose loops are in the stage's domain, in that tier; killed when it takes too
    /// long. It runs on the first available CPU.
    pub fn under(&self, tier: &str, program: impl AsRef<OsStr>) -> Command {
        let cpu = first_cpu().to_string();
        let mut command = Command::new("timeout");
        command.args(["-k", "5", LIMIT_S, "taskset", "-c", &cpu, "env"]);
        command.arg(format!("LD_PRELOAD={}", library().display()));
        command.env(TIER, tier).env(DOMAIN, &self.domain).env(CPU, cpu).env(REPORT, &self.page);
        command.arg(program);
        command
    }

    /// The rows of all loops so far.
    pub fn loops(&self) -> Vec<LoopRow> {
        read(&File::open(&self.page).expect("the page")).expect("a page").0
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A directory that can't be removed is not an error.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A loop that has work for a number of milliseconds after it is told to begin. It runs from the
/// creation of this object, and is killed when it is dropped.
pub struct Spins {
    child: Child,
    said: BufReader<ChildStdout>,
    /// The program, a child of `timeout`; `None` once it has ended.
    pid: Option<i32>,
}

impl Spins {
    pub fn new(stage: &Stage, program: &Path, tier: &str, ms: u32) -> Self {
        let mut command = stage.under(tier, program);
        let child =
            command.arg(ms.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        Self { child, said, pid: Some(line.trim().parse().expect("its number")) }
    }

    pub fn begin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for the end. Returns the loop's CPU time in microseconds, and the number of its waits.
    pub fn end(mut self) -> (f64, u64) {
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("it says what it had");
        self.pid = None;
        assert!(self.child.wait().expect("it ends").success());
        let mut words = said.split_whitespace();
        let mut next = || words.next().expect("a number").parse::<u64>().expect("a number");
        (next() as f64, next())
    }

    pub fn signal(&mut self, signal: i32) {
        let pid = self.pid.expect("it has not ended");
        // SAFETY: the process has not ended, because it has work for longer than the test.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        // The process id may be reused soon.
        self.pid = self.pid.filter(|_| signal != libc::SIGKILL);
    }
}

impl Drop for Spins {
    fn drop(&mut self) {
        if self.pid.is_some() {
            self.signal(libc::SIGKILL);
        }
        // If waiting fails, the child no longer exists.
        let _ = self.child.wait();
    }
}

/// The first CPU that this process may use.
fn first_cpu() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let digits: String =
        list.unwrap_or("0").trim().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a CPU")
}

/// A command without the library, which is killed when it takes too long.
pub fn plain(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", LIMIT_S]).arg(program);
    command
}

/// Runs the command and fails unless it ends with 0.
#[track_caller]
pub fn succeeds(command: &mut Command) -> Output {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?}: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    output
}

/// Returns whether a program is installed. If not, prints that, past the capture of the test
/// harness.
pub fn installed(program: &str) -> bool {
    let found = Command::new("which").arg(program).output().is_ok_and(|out| out.status.success());
    if !found {
        let said = writeln!(io::stderr(), "skipped: {program} is missing");
        assert!(said.is_ok());
    }
    found
}
