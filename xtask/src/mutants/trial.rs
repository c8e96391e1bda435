//! Builds the models with mutants and runs them.
//!
//! One program has all mutants that can be chosen at run time ([`schemata`]); the others are built
//! one by one. Each test is run separately, in an order that follows from earlier results: first
//! the tests that have killed a mutant of the same file, then the fastest. So a mutant that is
//! killed is killed in seconds. A test that does not come to the place of a mutant on the unchanged
//! code is not run with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Output;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::budget::Budget;
use super::cases::{self, Case, Verdict};
use super::fate::Fate;
use super::mutant::Mutant;
use super::schemata::{self, Schema};
use super::scratch::Scratch;
use crate::metadata::Metadata;
use crate::{Failure, suite};

/// The package whose models are run, and its test program that runs them.
const PACKAGE: &str = "antiphon-models";
const PROGRAM: &str = "models";

/// The time limit of a test on the unchanged code.
const BASELINE: Duration = Duration::from_secs(3600);

/// A copy of the tree, in which mutants can be tried once its models have passed.
pub struct Bench {
    scratch: Scratch,
    release: bool,
    budget: Budget,
    /// Only tests whose names begin so are run.
    prefix: String,
    /// The time after which a test is given up, if one is set.
    limit: Option<Duration>,
    /// How long each test takes on the unchanged code, by name.
    times: BTreeMap<String, Duration>,
    /// The places of mutants that each test comes to, by its name, as far as they are known.
    places: BTreeMap<String, BTreeSet<u32>>,
    /// Number of mutants of a file that each test has killed.
    kills: Mutex<BTreeMap<(String, String), u32>>,
}

/// A program with mutants to choose from; without a choice it has none of them.
pub struct Mixed {
    cases: Vec<Case>,
    /// The place of each mutant, by its number.
    places: BTreeMap<u32, u32>,
}

impl Mixed {
    /// Whether the program has the mutant with this number.
    pub fn has(&self, number: u32) -> bool {
        self.places.contains_key(&number)
    }

    /// Number of mutants in the program.
    pub fn len(&self) -> usize {
        self.places.len()
    }
}

/// The result of building the copy.
enum Built {
    Cases(Vec<Case>),
    /// The compiler rejected it; its output.
    Refused(Output),
    /// The time is over.
    Late,
}

impl Bench {
    /// Copies the tree. Tests in `times` are known to pass on the unchanged code, and are not run
    /// on it again.
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
        let (places, kills) = (BTreeMap::new(), Mutex::default());
        Ok(Self { scratch, release, budget, prefix, limit, times, places, kills })
    }

    /// Builds the program with as many of `mutants` as possible, by their numbers. `None` if the
    /// time is over before.
    ///
    /// # Errors
    ///
    /// If the models don't build for a reason other than a mutant.
    pub fn mix(&self, mutants: &BTreeMap<u32, &Mutant>) -> Result<Option<Mixed>, Failure> {
        let mut left: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in mutants {
            left.entry(&mutant.file).or_default().push((*number, mutant));
        }
        loop {
            let mut schemata = BTreeMap::new();
            for (&file, mutants) in &left {
                schemata.insert(file, Schema::of(&self.scratch.text(file)?, mutants));
            }
            let texts = self.texts(&schemata)?;
            let output = match self.scratch.with(&texts, || self.build())? {
                Built::Cases(cases) => {
                    // The next build replaces the program.
                    let cases = Case::copied(cases, &self.scratch.builds().join("mixed"))?;
                    let places = schemata.into_values().flat_map(|schema| schema.places).collect();
                    return Ok(Some(Mixed { cases, places }));
                }
                Built::Late => return Ok(None),
                Built::Refused(output) => output,
            };
            let mut blamed: BTreeSet<u32> = BTreeSet::new();
            for (file, at) in errors(&output) {
                if let Some(schema) = schemata.get(file.as_str()) {
                    blamed.extend(schema.blamed(at));
                }
            }
            if blamed.is_empty() {
                return Err(not_built(&output));
            }
            for mutants in left.values_mut() {
                mutants.retain(|(number, _)| !blamed.contains(number));
            }
        }
    }

    /// The files with schemata, and the file with the function that returns the chosen mutant.
    fn texts(
        &self,
        schemata: &BTreeMap<&str, Schema>,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let texts = schemata.iter().map(|(file, schema)| ((*file).to_owned(), schema.text.clone()));
        let mut texts: BTreeMap<_, _> = texts.collect();
        let root = match texts.remove(schemata::ROOT) {
            Some(text) => text,
            None => self.scratch.text(schemata::ROOT)?,
        };
        let places = schemata.values().flat_map(|schema| schema.places.values());
        let last = places.copied().max().unwrap_or(0);
        texts.insert(schemata::ROOT.to_owned(), root + &schemata::root(last));
        Ok(texts)
    }

    /// Runs the models that `mutants` need on the unchanged code, unless they have been run. False
    /// if the time is over before they have passed.
    ///
    /// # Errors
    ///
    /// If they don't build or don't pass: then no mutant proves anything.
    pub fn pass(&mut self, mutants: &[&Mutant], mixed: &Mixed) -> Result<bool, Failure> {
        if mixed.cases.is_empty() {
            let prefix = &self.prefix;
            return Err(format!("{PACKAGE} has no tests `{PROGRAM}` called `{prefix}…`").into());
        }
        let is_needed = |case: &&Case| {
            mutants.iter().any(|mutant| {
                let names = &mutant.killed_by;
                names.is_empty() || names.iter().any(|name| case.is_called(name))
            })
        };
        let known = |case: &&Case| self.times.contains_key(&case.name);
        let directory = self.scratch.builds().join("places");
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => std::fs::create_dir_all(&directory)?,
        }
        let file = |number: usize| directory.join(number.to_string());
        let needed = mixed.cases.iter().filter(|case| !known(case) && is_needed(case));
        let cases: Vec<_> =
            needed.enumerate().map(|(number, case)| case.noting(file(number))).collect();
        let ran = self.run(&cases, cpus(), BASELINE, |_| false)?;
        for (number, (case, (verdict, took))) in cases.iter().zip(ran).enumerate() {
            match verdict {
                Verdict::Passed => {
                    self.times.insert(case.name.clone(), took);
                    self.places.insert(case.name.clone(), noted(&file(number))?);
                }
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

    /// A mutant may have many more executions than the unchanged code.
    fn limit(&self) -> Duration {
        self.limit.unwrap_or_else(|| Duration::from_secs(30) + 5 * self.slowest())
    }

    fn run(
        &self,
        cases: &[Case],
        workers: usize,
        limit: Duration,
        enough: impl Fn(&Verdict) -> bool + Sync,
    ) -> Result<Vec<(Verdict, Duration)>, Failure> {
        cases::run(cases, workers, &self.scratch, limit, self.budget, enough)
    }

    /// Tries a mutant of a program, by one test at a time.
    pub fn choose(&self, mutant: &Mutant, number: u32, mixed: &Mixed) -> Result<Fate, Failure> {
        let place = mixed.places[&number];
        // The tests that an entry names are run in any case: one that does not come there is an
        // error in the table.
        let is_idle = |case: &&Case| {
            let places = self.places.get(&case.name);
            mutant.killed_by.is_empty() && places.is_some_and(|places| !places.contains(&place))
        };
        let cases = mixed.cases.iter().filter(|case| !is_idle(case));
        self.judge(mutant, cases.map(|case| case.with(number)).collect(), 1)
    }

    /// Builds the program with one mutant and tries it.
    pub fn build_and_try(&self, mutant: &Mutant) -> Result<Fate, Failure> {
        let text = mutant.apply(&self.scratch.text(&mutant.file)?);
        self.scratch.with(&BTreeMap::from([(mutant.file.clone(), text)]), || {
            match self.build()? {
                Built::Refused(output) => Ok(Fate::Unbuildable(first_error(&output))),
                Built::Late => Ok(Fate::Skipped),
                Built::Cases(cases) => self.judge(mutant, cases, cpus()),
            }
        })
    }

    fn judge(&self, mutant: &Mutant, cases: Vec<Case>, workers: usize) -> Result<Fate, Failure> {
        if mutant.killed_by.is_empty() {
            self.any_fails(cases, workers, &mutant.file)
        } else {
            self.all_fail(&cases, workers, &mutant.killed_by)
        }
    }

    /// The first test that fails kills the mutant of `file`.
    fn any_fails(&self, mut cases: Vec<Case>, workers: usize, file: &str) -> Result<Fate, Failure> {
        let kills = || self.kills.lock().unwrap_or_else(PoisonError::into_inner);
        let key = |name: &str| (file.to_owned(), name.to_owned());
        let known = kills().clone();
        cases.sort_by_key(|case| {
            let kills = known.get(&key(&case.name)).copied().unwrap_or(0);
            (std::cmp::Reverse(kills), self.times.get(&case.name).copied())
        });
        let failed = |verdict: &Verdict| *verdict == Verdict::Failed;
        let ran = self.run(&cases, workers, self.limit(), failed)?;
        let named = |wanted| {
            let found = cases.iter().zip(&ran).find(|(_, (verdict, _))| *verdict == wanted);
            found.map(|(case, _)| case.name.clone())
        };
        if let Some(name) = named(Verdict::Failed) {
            *kills().entry(key(&name)).or_default() += 1;
            return Ok(Fate::Killed(name));
        }
        if named(Verdict::NotRun).is_some() {
            return Ok(Fate::Skipped);
        }
        Ok(named(Verdict::TimedOut).map_or(Fate::Survived, Fate::Undecided))
    }

    /// Each of the named tests, or one test of each named subject, must kill the mutant.
    fn all_fail(&self, cases: &[Case], workers: usize, names: &[String]) -> Result<Fate, Failure> {
        for name in names {
            let meant: Vec<Case> =
                cases.iter().filter(|case| case.is_called(name)).cloned().collect();
            if meant.is_empty() {
                return Err(format!("no test {name}, which `killed_by` names").into());
            }
            let failed = |verdict: &Verdict| *verdict == Verdict::Failed;
            let ran = self.run(&meant, workers, self.limit(), failed)?;
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

    /// Builds the copy; returns its tests, or the compiler's output.
    fn build(&self) -> Result<Built, Failure> {
        let Some(mut command) = self.budget.command(Instant::now(), &cargo()) else {
            return Ok(Built::Late);
        };
        command
            .args(["test", "--no-run", "--quiet", "--message-format=json"])
            .args(["--package", PACKAGE, "--test", PROGRAM])
            .args(self.release.then_some("--release"))
            .current_dir(self.scratch.tree())
            .env("CARGO_TARGET_DIR", self.scratch.builds())
            // Debug information and optimisation would only delay the verdict.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            // Builds differ by a few lines only.
            .env("CARGO_INCREMENTAL", "1")
            // Mutants may leave imports unused.
            .env("RUSTFLAGS", "--cap-lints=warn")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        let output = command.output()?;
        if self.budget.is_spent(Instant::now()) {
            return Ok(Built::Late);
        }
        if !output.status.success() {
            return Ok(Built::Refused(output));
        }
        let mut all = Vec::new();
        for program in suite::executables(&String::from_utf8_lossy(&output.stdout)) {
            all.extend(cases::of(&program.executable)?);
            all.retain(|case| case.name.starts_with(&self.prefix));
        }
        Ok(Built::Cases(all))
    }
}

/// The places that a test has noted in this file; none if it came to none.
fn noted(file: &Path) -> Result<BTreeSet<u32>, Failure> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.lines().map(str::parse).collect::<Result<_, _>>()?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error.into()),
    }
}

/// The number of tests that run at a time.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A message of the compiler, as cargo passes it on.
#[derive(Deserialize)]
struct Message {
    message: Diagnostic,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    byte_start: usize,
    is_primary: bool,
}

/// The errors among the compiler's messages.
fn diagnostics(output: &Output) -> Vec<Diagnostic> {
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    messages.map(|one| one.message).filter(|one| one.level.starts_with("error")).collect()
}

/// The places of the compiler's errors: files, relative to the root of the tree, and bytes.
fn errors(output: &Output) -> Vec<(String, usize)> {
    let spans = diagnostics(output).into_iter().flat_map(|one| one.spans);
    let primary = spans.filter(|span| span.is_primary);
    primary.map(|span| (span.file_name, span.byte_start)).collect()
}

fn first_error(output: &Output) -> String {
    let first = diagnostics(output).into_iter().next();
    first.map_or_else(|| "no error was printed".to_owned(), |error| error.message)
}

fn not_built(output: &Output) -> Failure {
    let words = String::from_utf8_lossy(&output.stderr);
    format!("the models don't build: {}\n{words}", first_error(output)).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn an_error_has_its_words_and_its_place() {
        let message = |level: &str, at: u32, is_primary: bool| {
            format!(
                "{{\"reason\":\"compiler-message\",\"message\":{{\"level\":\"{level}\",\
                 \"message\":\"at {at}\",\"spans\":[{{\"file_name\":\"a.rs\",\
                 \"byte_start\":{at},\"is_primary\":{is_primary}}}]}}}}\n"
            )
        };
        let stdout = [
            message("warning", 1, true),
            message("error", 2, true),
            message("error", 3, false),
            "{\"reason\":\"build-finished\"}\n".to_owned(),
        ];
        let status = ExitStatus::from_raw(1);
        let output = Output { status, stdout: stdout.concat().into_bytes(), stderr: Vec::new() };
        assert_eq!(errors(&output), [("a.rs".to_owned(), 2)]);
        assert_eq!(first_error(&output), "at 2");
    }
}
