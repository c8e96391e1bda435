//! Builds a mutant's models and runs them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::fate::Fate;
use super::mutant::Mutant;
use super::scratch::Scratch;
use crate::Failure;
use crate::metadata::Metadata;

/// The package whose models are run, and which of its tests those are.
const PACKAGE: &str = "antiphon-models";
const MODELS: &str = "model_*";

/// A copy of the tree whose models pass.
pub struct Bench {
    scratch: Scratch,
    release: bool,
    /// After so long a model is given up.
    limit: Duration,
}

/// The program of one model.
struct Model {
    name: String,
    program: PathBuf,
}

/// How one model ended.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    /// This test failed.
    Failed(String),
    TimedOut,
}

impl Bench {
    /// Copies the tree and runs its models as they are.
    ///
    /// # Errors
    ///
    /// If they don't build or don't pass: then no mutant says anything.
    pub fn set_up(root: &Path, limit: Option<Duration>, release: bool) -> Result<Self, Failure> {
        let directory = Metadata::read(root)?.target_directory.join("mutants");
        let scratch = Scratch::of(root, &directory)?;
        let mut bench = Self { scratch, release, limit: Duration::from_secs(3600) };
        let models = bench.build()?.map_err(|error| format!("the models don't build:\n{error}"))?;
        if models.is_empty() {
            return Err(format!("{PACKAGE} has no tests `{MODELS}`").into());
        }
        let mut slowest = Duration::ZERO;
        for model in &models {
            let start = Instant::now();
            let verdict = bench.run(model, None)?;
            if verdict != Verdict::Passed {
                return Err(format!("{} fails without a mutant: {verdict:?}", model.name).into());
            }
            slowest = slowest.max(start.elapsed());
        }
        // A mutant may well have more executions than the code as it is.
        bench.limit = limit.unwrap_or(Duration::from_secs(30) + 5 * slowest);
        println!("{} models pass, the slowest in {slowest:.1?}", models.len());
        Ok(bench)
    }

    /// Tries one mutant.
    pub fn try_one(&self, mutant: &Mutant) -> Result<Fate, Failure> {
        self.scratch.with(mutant, || match self.build()? {
            Err(error) => Ok(Fate::Unbuildable(first_error(&error))),
            Ok(models) if mutant.killed_by.is_empty() => self.any_fails(&models),
            Ok(models) => self.all_fail(&models, &mutant.killed_by),
        })
    }

    /// The first model that fails kills the mutant.
    fn any_fails(&self, models: &[Model]) -> Result<Fate, Failure> {
        let mut undecided = None;
        for model in models {
            match self.run(model, None)? {
                Verdict::Passed => {}
                Verdict::Failed(test) => return Ok(Fate::Killed(test)),
                Verdict::TimedOut => undecided = Some(model.name.clone()),
            }
        }
        Ok(undecided.map_or(Fate::Survived, Fate::Undecided))
    }

    /// Each of the named tests has to kill the mutant.
    fn all_fail(&self, models: &[Model], tests: &[String]) -> Result<Fate, Failure> {
        for name in tests {
            let (binary, test) = match name.split_once("::") {
                Some((binary, test)) => (binary, Some(test)),
                None => (name.as_str(), None),
            };
            let model = models
                .iter()
                .find(|model| model.name == binary)
                .ok_or_else(|| format!("no model {binary}, which `killed_by` names"))?;
            match self.run(model, test)? {
                Verdict::Passed => return Ok(Fate::Survived),
                Verdict::Failed(_) => {}
                Verdict::TimedOut => return Ok(Fate::Undecided(name.clone())),
            }
        }
        Ok(Fate::Killed(tests.join(", ")))
    }

    /// The models, or what the compiler says.
    fn build(&self) -> Result<Result<Vec<Model>, String>, Failure> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["test", "--no-run", "--quiet", "--message-format=json-render-diagnostics"])
            .args(["--package", PACKAGE, "--test", MODELS])
            .args(self.release.then_some("--release"))
            .current_dir(self.scratch.tree())
            .env("CARGO_TARGET_DIR", self.scratch.builds())
            // A mutant leaves imports unused.
            .env("RUSTFLAGS", "--cap-lints=warn")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        let output = command.output()?;
        if output.status.success() {
            Ok(Ok(executables(&String::from_utf8_lossy(&output.stdout))))
        } else {
            Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()))
        }
    }

    /// Runs one test of a model, or all of them.
    fn run(&self, model: &Model, test: Option<&str>) -> Result<Verdict, Failure> {
        let log = self.scratch.builds().join("model.log");
        let output = File::create(&log)?;
        let mut child = Command::new(&model.program)
            .args(test.into_iter().flat_map(|test| [test, "--exact"]))
            .current_dir(self.scratch.tree())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        let end = Instant::now() + self.limit;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() >= end {
                child.kill()?;
                child.wait()?;
                return Ok(Verdict::TimedOut);
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        if status.success() {
            return Ok(Verdict::Passed);
        }
        let log = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
        let test = failed_test(&log).map(|test| format!("{}::{test}", model.name));
        Ok(Verdict::Failed(test.unwrap_or_else(|| format!("{} ({status})", model.name))))
    }
}

/// The test programs that cargo's messages name.
fn executables(messages: &str) -> Vec<Model> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
        target: Option<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter_map(|message| {
            Some(Model { name: message.target?.name, program: message.executable? })
        })
        .collect()
}

/// The first failed test of a test program's output.
fn failed_test(log: &str) -> Option<&str> {
    log.lines().find_map(|line| line.strip_prefix("test ")?.split_once(" ... FAILED")).map(|t| t.0)
}

fn first_error(output: &str) -> String {
    let is_error = |line: &&str| line.starts_with("error");
    output.lines().find(is_error).unwrap_or("no error was printed").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_read_from_messages() {
        let messages = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"lib\"},\
                        \"executable\":null}\n{\"reason\":\"compiler-artifact\",\"target\":\
                        {\"name\":\"model_a\"},\"executable\":\"/x/model_a\"}\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        let models = executables(messages);
        assert_eq!(models.len(), 1);
        assert_eq!(models[0].name, "model_a");
        assert_eq!(models[0].program, Path::new("/x/model_a"));
    }

    #[test]
    fn a_failed_test_and_a_compiler_error_are_named() {
        let log = "running 2 tests\ntest a ... ok\ntest b::c ... FAILED\n\nfailures:\n";
        assert_eq!(failed_test(log), Some("b::c"));
        assert_eq!(failed_test("test a ... ok\n"), None);
        assert_eq!(first_error("warning: x\nerror[E1]: y\n"), "error[E1]: y");
    }
}
