//! Runs the command of an entry, with a time limit.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Failure;

/// The verbs of `antiphon` that belong to the laboratory, a separate program.
const LABORATORY: [&str; 5] = ["bench", "sim", "validate", "metal", "lab"];
/// The interval at which a running command is checked.
const PERIOD: Duration = Duration::from_millis(20);

/// The package of the program with this verb.
pub fn package_of(verb: &str) -> &'static str {
    if LABORATORY.contains(&verb) { "antiphon-lab" } else { "antiphon-cli" }
}

fn program_of(verb: &str) -> &'static str {
    if LABORATORY.contains(&verb) { "antiphon-lab" } else { "antiphon" }
}

/// Runs commands in the tree at `root`, with programs that are already built.
pub struct Runner<'a> {
    pub root: &'a Path,
    pub target_directory: &'a Path,
    pub limit: Duration,
}

/// The result of a command.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Runner<'_> {
    /// Prepares the program, or `cargo`, with its arguments; `json` adds the request for JSON.
    ///
    /// # Errors
    ///
    /// If a program is not built; the text says what to build.
    pub fn prepare(&self, command: &str, json: bool) -> Result<Command, Failure> {
        let words: Vec<_> = command.split_whitespace().collect();
        let mut prepared = match words[..] {
            ["antiphon", verb, ..] => {
                let mut prepared = Command::new(self.program(verb)?);
                prepared.args(&words[1..]);
                // Pages that it writes are left there, not in the tree.
                prepared.current_dir(self.scratch()?);
                prepared
            }
            ["cargo", ..] => {
                let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                let mut prepared = Command::new(cargo);
                prepared.args(&words[1..]).current_dir(self.root);
                prepared
            }
            _ => return Err(format!("not a command that can be run: {command}").into()),
        };
        if json && !words.contains(&"--json") {
            prepared.arg("--json");
        }
        Ok(prepared)
    }

    /// The release build of the program with this verb; if there is none, the debug build.
    fn program(&self, verb: &str) -> Result<PathBuf, Failure> {
        let name = program_of(verb);
        ["release", "debug"]
            .iter()
            .map(|profile| self.target_directory.join(profile).join(name))
            .find(|path| path.is_file())
            .ok_or_else(|| {
                let (package, folder) = (package_of(verb), self.target_directory.display());
                format!("no {name} in {folder}: cargo build --release -p {package}").into()
            })
    }

    fn scratch(&self) -> Result<PathBuf, Failure> {
        let folder = self.target_directory.join("claims");
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Runs a command to its end; `None` if it exceeded the limit and was killed.
    ///
    /// # Errors
    ///
    /// If it can't be started.
    pub fn run(&self, mut command: Command) -> Result<Option<Ended>, Failure> {
        // Several threads may run commands at once.
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let run = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Relaxed));
        let scratch = self.scratch()?;
        let [stdout, stderr] =
            ["stdout", "stderr"].map(|name| scratch.join(format!("{name}-{run}")));
        command.stdin(Stdio::null()).stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
        let mut child = command.process_group(0).spawn()?;
        let status = wait(&mut child, self.limit)?;
        let [output, errors] = [&stdout, &stderr].map(std::fs::read);
        for file in [&stdout, &stderr] {
            std::fs::remove_file(file)?;
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (stdout, stderr) = (text(output?), text(errors?));
        Ok(status.map(|status| Ended { status, stdout, stderr }))
    }
}

impl Ended {
    /// The JSON object that the command has printed.
    ///
    /// # Errors
    ///
    /// If it failed, or printed something else.
    pub fn json(&self) -> Result<Value, String> {
        self.success()?;
        serde_json::from_str(&self.stdout).map_err(|error| format!("it printed no JSON: {error}"))
    }

    /// Checks that the command succeeded: that its tests passed, or its models are as expected.
    ///
    /// # Errors
    ///
    /// If it failed, or ran no test although it should have; the text has its last line.
    pub fn success(&self) -> Result<(), String> {
        if !self.status.success() {
            let lines = || self.stderr.lines().chain(self.stdout.lines());
            let last = lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing printed");
            return Err(format!("{}: {last}", self.status));
        }
        match tests_passed(&self.stdout) {
            Some(0) => Err("it ran no test".to_owned()),
            _ => Ok(()),
        }
    }
}

/// The number of tests that have passed, if the text is the output of test programs.
fn tests_passed(text: &str) -> Option<u64> {
    let passed = text.lines().filter_map(|line| {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        counts.split_once(" passed")?.0.parse::<u64>().ok()
    });
    passed.fold(None, |sum, count| Some(sum.unwrap_or(0) + count))
}

/// Waits for the command; kills it and all of its children if it takes longer than `limit`.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>, Failure> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() >= limit {
            let group = libc::pid_t::try_from(child.id())?;
            // SAFETY: takes no pointer. The child leads the group and has not been waited for, so
            // the id is still its own.
            unsafe { libc::kill(-group, libc::SIGKILL) };
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(PERIOD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("claims-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn runner(folder: &Path) -> Runner<'_> {
        Runner { root: folder, target_directory: folder, limit: Duration::from_secs(20) }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_missing_program_says_what_to_build() {
        let folder = folder("missing");
        let error = |command| runner(&folder).prepare(command, true).unwrap_err().to_string();
        assert!(error("antiphon sim locks").ends_with("cargo build --release -p antiphon-lab"));
        assert!(error("antiphon locks").ends_with("cargo build --release -p antiphon-cli"));
        assert!(error("make it").contains("make it"));

        std::fs::create_dir_all(folder.join("debug")).unwrap();
        std::fs::write(folder.join("debug/antiphon-lab"), "").unwrap();
        let command = runner(&folder).prepare("antiphon sim locks", true).unwrap();
        assert_eq!(command.get_program(), folder.join("debug/antiphon-lab"));
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["sim", "locks", "--json"]);
        std::fs::create_dir_all(folder.join("release")).unwrap();
        std::fs::write(folder.join("release/antiphon-lab"), "").unwrap();
        let command = runner(&folder).prepare("antiphon sim locks --json", true).unwrap();
        assert_eq!(command.get_program(), folder.join("release/antiphon-lab"));
        assert_eq!(command.get_args().count(), 3);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn output_failures_and_the_limit_are_seen() {
        let folder = folder("runs");
        let runner = runner(&folder);
        let run = |script| runner.run(shell(script)).unwrap().unwrap();
        assert_eq!(run("echo '{\"a\": 2}'").json().unwrap()["a"], 2);
        assert!(run("echo text").json().unwrap_err().contains("no JSON"));
        let error = run("echo out; echo broken >&2; exit 3").success().unwrap_err();
        assert!(error.contains('3') && error.contains("out"), "{error}");
        assert!(run("echo 'test result: ok. 0 passed; 0 failed'").success().is_err());
        assert!(run("echo 'test result: ok. 2 passed; 0 failed'").success().is_ok());

        let short = Runner { limit: Duration::from_millis(50), ..runner };
        assert!(short.run(shell("sleep 60 & sleep 60")).unwrap().is_none());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
