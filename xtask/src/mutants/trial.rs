//! Builds a mutant's models and runs them.
//!
//! Each test is run by itself, several at a time, and those that failed or did not fail before say
//! which come first: those that have killed a mutant of the same file, then the fastest. So a
//! mutant that dies does so in seconds, and only one that survives costs the time of all models.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use super::budget::Budget;
use super::cases::{self, Case, Verdict};
use super::fate::Fate;
use super::mutant::Mutant;
use super::scratch::Scratch;
use crate::metadata::Metadata;
use crate::{Failure, suite};

/// The package whose models are run, and its test program that runs them.
const PACKAGE: &str = "antiphon-models";
const PROGRAM: &str = "models";

/// The limit of a test on the code as it is.
const BASELINE: Duration = Duration::from_secs(3600);

/// A copy of the tree, to be tried with mutants once its models have passed.
pub struct Bench {
    scratch: Scratch,
    release: bool,
    budget: Budget,
    /// Tests whose names begin otherwise are not run.
    prefix: String,
    /// The time after which a test is given up, if it was given.
    limit: Option<Duration>,
    /// How long each test takes on the code as it is, by name.
    times: BTreeMap<String, Duration>,
    /// How many mutants of a file each test has killed.
    kills: RefCell<BTreeMap<(String, String), u32>>,
}

/// The compiler's result for the copy.
enum Built {
    Cases(Vec<Case>),
    /// The compiler refused it, with these words.
    Refused(String),
    /// The time is over.
    Late,
}

impl Bench {
    /// Copies the tree. Those tests are not run first that are known to pass on the code as it is:
    /// their `times` say so.
    ///
    /// # Errors
    ///
    /// If another process has the copy, or a file can't be copied.
    pub fn set_up(
        root: &Path,
        limit: Option<Duration>,
        release: bool,
        prefix: String,
        budget: Budget,
        times: BTreeMap<String, Duration>,
    ) -> Result<Self, Failure> {
        let directory = Metadata::read(root)?.target_directory.join("mutants");
        let scratch = Scratch::of(root, &directory)?;
        Ok(Self { scratch, release, budget, prefix, limit, times, kills: RefCell::default() })
    }

    /// Runs the models that `mutants` need as they are, if they have not been. False if the time
    /// is over before they have passed.
    ///
    /// # Errors
    ///
    /// If they don't build or don't pass: then no mutant says anything.
    pub fn pass(&mut self, mutants: &[Mutant]) -> Result<bool, Failure> {
        let mut cases = match self.build()? {
            Built::Cases(cases) => cases,
            Built::Refused(error) => return Err(format!("the models don't build:\n{error}").into()),
            Built::Late => return Ok(false),
        };
        if cases.is_empty() {
            let prefix = &self.prefix;
            return Err(format!("{PACKAGE} has no tests `{PROGRAM}` called `{prefix}…`").into());
        }
        let needs = |mutant: &Mutant, case: &Case| {
            let names = &mutant.killed_by;
            names.is_empty() || names.iter().any(|name| case.is_called(name))
        };
        cases.retain(|case| !self.times.contains_key(&case.name));
        cases.retain(|case| mutants.iter().any(|mutant| needs(mutant, case)));
        let ran = cases::run(&cases, &self.scratch, BASELINE, self.budget, |_| false)?;
        for (case, (verdict, took)) in cases.iter().zip(ran) {
            match verdict {
                Verdict::Passed => self.times.insert(case.name.clone(), took),
                Verdict::NotRun => return Ok(false),
                _ => {
                    return Err(format!("{} fails without a mutant: {verdict:?}", case.name).into());
                }
            };
        }
        println!("{} tests pass, the slowest in {:.1?}", self.times.len(), self.slowest());
        Ok(true)
    }

    fn slowest(&self) -> Duration {
        self.times.values().max().copied().unwrap_or_default()
    }

    /// A mutant may well have more executions than the code as it is.
    fn limit(&self) -> Duration {
        self.limit.unwrap_or_else(|| Duration::from_secs(30) + 5 * self.slowest())
    }

    /// Tries one mutant.
    pub fn try_one(&self, mutant: &Mutant) -> Result<Fate, Failure> {
        self.scratch.with(mutant, || match self.build()? {
            Built::Refused(error) => Ok(Fate::Unbuildable(first_error(&error))),
            Built::Late => Ok(Fate::Skipped),
            Built::Cases(cases) if mutant.killed_by.is_empty() => {
                self.any_fails(cases, &mutant.file)
            }
            Built::Cases(cases) => self.all_fail(&cases, &mutant.killed_by),
        })
    }

    /// The first test that fails kills the mutant of `file`.
    fn any_fails(&self, mut cases: Vec<Case>, file: &str) -> Result<Fate, Failure> {
        let key = |name: &str| (file.to_owned(), name.to_owned());
        cases.sort_by_key(|case| {
            let kills = self.kills.borrow().get(&key(&case.name)).copied().unwrap_or(0);
            (std::cmp::Reverse(kills), self.times.get(&case.name).copied())
        });
        let failed = |verdict: &Verdict| *verdict == Verdict::Failed;
        let ran = cases::run(&cases, &self.scratch, self.limit(), self.budget, failed)?;
        let named = |wanted| {
            let found = cases.iter().zip(&ran).find(|(_, (verdict, _))| *verdict == wanted);
            found.map(|(case, _)| case.name.clone())
        };
        if let Some(name) = named(Verdict::Failed) {
            *self.kills.borrow_mut().entry(key(&name)).or_default() += 1;
            return Ok(Fate::Killed(name));
        }
        if named(Verdict::NotRun).is_some() {
            return Ok(Fate::Skipped);
        }
        Ok(named(Verdict::TimedOut).map_or(Fate::Survived, Fate::Undecided))
    }

    /// Each of the named tests, or one of each named subject, has to kill the mutant.
    fn all_fail(&self, cases: &[Case], names: &[String]) -> Result<Fate, Failure> {
        for name in names {
            let meant: Vec<Case> =
                cases.iter().filter(|case| case.is_called(name)).cloned().collect();
            if meant.is_empty() {
                return Err(format!("no test {name}, which `killed_by` names").into());
            }
            let failed = |verdict: &Verdict| *verdict == Verdict::Failed;
            let ran = cases::run(&meant, &self.scratch, self.limit(), self.budget, failed)?;
            let has = |wanted| ran.iter().any(|(verdict, _)| *verdict == wanted);
            if !has(Verdict::Failed) {
                return Ok(match (has(Verdict::NotRun), has(Verdict::TimedOut)) {
                    (true, _) => Fate::Skipped,
                    (_, true) => Fate::Undecided(name.clone()),
                    _ => Fate::Survived,
                });
            }
        }
        Ok(Fate::Killed(names.join(", ")))
    }

    /// The tests, or what the compiler says.
    fn build(&self) -> Result<Built, Failure> {
        let Some(mut command) = self.budget.command(Instant::now(), &cargo()) else {
            return Ok(Built::Late);
        };
        command
            .args(["test", "--no-run", "--quiet", "--message-format=json-render-diagnostics"])
            .args(["--package", PACKAGE, "--test", PROGRAM])
            .args(self.release.then_some("--release"))
            .current_dir(self.scratch.tree())
            .env("CARGO_TARGET_DIR", self.scratch.builds())
            // Only a verdict is wanted, and soon.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            // Each further build differs from the one before by one line.
            .env("CARGO_INCREMENTAL", "1")
            // A mutant leaves imports unused.
            .env("RUSTFLAGS", "--cap-lints=warn")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        let output = command.output()?;
        if self.budget.is_spent(Instant::now()) {
            return Ok(Built::Late);
        }
        if !output.status.success() {
            return Ok(Built::Refused(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let mut all = Vec::new();
        for program in suite::executables(&String::from_utf8_lossy(&output.stdout)) {
            all.extend(cases::of(&program.executable)?);
            all.retain(|case| case.name.starts_with(&self.prefix));
        }
        Ok(Built::Cases(all))
    }
}

fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn first_error(output: &str) -> String {
    let is_error = |line: &&str| line.starts_with("error");
    output.lines().find(is_error).unwrap_or("no error was printed").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_error_is_named() {
        assert_eq!(first_error("warning: x\nerror[E1]: y\n"), "error[E1]: y");
    }
}
