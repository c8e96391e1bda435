//! `mutants`: breaks the code that the models check, and verifies that the models fail: a model
//! that never fails proves nothing.
//!
//! There are two kinds of mutants. They are tried on a copy of the tree, most of them in one
//! program ([`schemata`]):
//!
//! - **Orderings.** Each memory ordering above `Relaxed` in `crates/sync/src`, `crates/rivals/src`
//!   and `crates/runtime/src`, in the arena, in the chunks of a recording and in what CPUs share on
//!   bare metal is weakened ([`orderings`]). A survivor says that the ordering is stronger than the
//!   models can see: weaken it in the source, teach a model, or explain it there.
//!   The explanation is a comment `// mutant: reason` on the line of the ordering, or in the
//!   comment right above it.
//! - **Invariants.** `crates/models/mutants.toml` lists replacements that break one named
//!   invariant each, and the tests that must notice ([`table`]).
//!
//! A mutant is *killed* when a model fails, and has *survived* when all pass. It is *undecided*
//! when a model reaches its time limit, and *unbuildable* when the compiler rejects it; neither
//! counts as killed. The verb succeeds if every mutant is killed or explained, and no explanation
//! is at a line whose mutants are all killed. With a time limit (`--minutes`), mutants that were
//! not reached are *skipped*, and reported as such; this is not a finding.

mod budget;
mod cases;
mod fate;
mod mutant;
mod orderings;
mod record;
mod schemata;
mod scratch;
mod table;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::finding::{Finding, Outcome, report};
use crate::{Failure, tree};
use budget::Budget;
use fate::Fate;
use mutant::Mutant;
use record::Record;
use trial::{Bench, Mixed};

const TABLE: &str = "crates/models/mutants.toml";

/// Receives the result of each mutant.
type Note<'a> = &'a mut (dyn FnMut(&Mutant, &Fate) -> Result<(), Failure> + Send);

/// The mutants to try.
enum Selection {
    All,
    /// The mutants in files that differ from a commit.
    Changed(String),
    /// The mutants in these files, and in the files of these folders.
    Files(Vec<String>),
}

/// `cargo xtask mutants [--changed BASE | --all | --file F] [--killed-by T] [--test T] [--limit S]
/// [--minutes N] [--times F] [--release] [--record F [--resume]] [--list]`.
///
/// `--file` names a file or a folder, and may be given several times. `--killed-by` selects the
/// mutants of the table that name a test with this prefix, and may be given several times: those to
/// try again after a change of that test's models. `--test` runs only the tests whose names, as
/// `SUBJECT::test`, begin so: mutants that these kill are dead, and those that survive may be
/// killed by other tests. `--limit` is the time in seconds after which a test is given up; by
/// default it is far above the time of the slowest test on the unchanged code. `--minutes` limits
/// the total time, including builds and the models on the unchanged code. `--times` names a file
/// that `cargo xtask tests --times` has written for exactly this tree: the tests in it have passed
/// on the unchanged code, and are not run on it again. `--record` writes the fates of the table's
/// mutants to a file, which `antiphon lab check` reads when it is built ([`record`]); with
/// `--resume`, only mutants of the table that the file does not have yet are tried. `--list` prints
/// the mutants and tries none.
pub fn run(mut arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    use lexopt::prelude::*;
    let start = Instant::now();
    let mut selection = Selection::All;
    let (mut limit, mut length, mut record) = (None, None, None);
    let (mut release, mut resume, mut list) = (false, false, false);
    let mut times = BTreeMap::new();
    let (mut test, mut killed_by) = (String::new(), Vec::new());
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("all") => selection = Selection::All,
            Long("changed") => selection = Selection::Changed(arguments.value()?.string()?),
            Long("file") => {
                let file = arguments.value()?.string()?;
                match &mut selection {
                    Selection::Files(files) => files.push(file),
                    _ => selection = Selection::Files(vec![file]),
                }
            }
            Long("killed-by") => killed_by.push(arguments.value()?.string()?),
            Long("limit") => limit = Some(Duration::from_secs(arguments.value()?.parse()?)),
            Long("minutes") => {
                let minutes: u32 = arguments.value()?.parse()?;
                length = Some(minutes * Duration::from_secs(60));
            }
            Long("test") => test = arguments.value()?.string()?,
            Long("times") => times = passed(Path::new(&arguments.value()?))?,
            Long("release") => release = true,
            Long("record") => record = Some(PathBuf::from(arguments.value()?)),
            Long("resume") => resume = true,
            Long("list") => list = true,
            other => return Err(other.unexpected().into()),
        }
    }

    let root = tree::root()?;
    let mut mutants = select(&root, &selection)?;
    if !killed_by.is_empty() {
        mutants.retain(|mutant| names_one_of(mutant, &killed_by));
    }
    let mut record = match record {
        Some(path) => Some(Record::open(&root, path, &of_table(&root)?)?),
        None if resume => {
            return Err("--resume needs --record FILE, the file with earlier results".into());
        }
        None => None,
    };
    if let Some(known) = record.as_ref().filter(|_| resume) {
        mutants.retain(|mutant| mutant.entry.is_some() && !known.has(mutant));
    }
    if list || mutants.is_empty() {
        for mutant in &mutants {
            println!("{mutant}");
        }
        println!("{} mutants", mutants.len());
        return Ok(Outcome::Clean);
    }
    let budget = Budget::new(start, length);
    let mut bench = Bench::set_up(&root, limit, release, test, budget, times)?;
    let mut note = |mutant: &Mutant, fate: &Fate| match &mut record {
        Some(record) => record.note(mutant, fate),
        None => Ok(()),
    };
    let fates = try_all(&mutants, &mut bench, &mut note)?;
    let skipped = fates.iter().filter(|fate| **fate == Fate::Skipped).count();
    if skipped > 0 {
        let all = selection.arguments();
        println!("skipped: {skipped} mutants, the time is over (all: cargo xtask mutants {all})");
    }
    Ok(judge(&mutants, &fates))
}

/// Whether the mutant names a test with one of these prefixes.
fn names_one_of(mutant: &Mutant, beginnings: &[String]) -> bool {
    let begins = |name: &String| beginnings.iter().any(|beginning| name.starts_with(beginning));
    mutant.killed_by.iter().any(begins)
}

/// The tests that have passed, with their times: seconds by name, as JSON.
fn passed(file: &Path) -> Result<BTreeMap<String, Duration>, Failure> {
    let read = || -> Result<_, Failure> {
        let seconds: BTreeMap<String, f64> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        let duration = |(name, seconds)| Ok((name, Duration::try_from_secs_f64(seconds)?));
        seconds.into_iter().map(duration).collect()
    };
    read().map_err(|error| format!("{}: {error}", file.display()).into())
}

impl Selection {
    /// The arguments that make this selection.
    fn arguments(&self) -> String {
        match self {
            Self::All => "--all".to_owned(),
            Self::Changed(base) => format!("--changed {base}"),
            Self::Files(files) => {
                files.iter().map(|file| format!("--file {file}")).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// The mutants of the table; empty if there is no table.
fn of_table(root: &Path) -> Result<Vec<Mutant>, Failure> {
    if !root.join(TABLE).exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(root.join(TABLE))?;
    table::mutants(TABLE, &text, |file: &str| tree::text(root, file))
}

/// Checks that each mutant of the table has its place in the source.
pub fn check(root: &Path) -> Option<Finding> {
    of_table(root).err().map(|error| Finding::of(TABLE, error.to_string()))
}

/// All mutants of the selected files: first those that name their tests, which are tried quickly,
/// then the orderings by place.
fn select(root: &Path, selection: &Selection) -> Result<Vec<Mutant>, Failure> {
    let selected = match selection {
        Selection::All => None,
        Selection::Changed(base) => Some(tree::changed_since(root, base)?),
        Selection::Files(files) => Some(files.clone()),
    };
    let files = tree::files(root)?;
    let is_within = |file: &str, selected: &str| {
        let rest = file.strip_prefix(selected.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if let Selection::Files(selected) = selection {
        for one in selected {
            if !files.iter().any(|file| is_within(file, one)) {
                return Err(format!("no file {one} in the tree").into());
            }
        }
    }
    let is_selected = |file: &String| {
        selected.as_ref().is_none_or(|all| all.iter().any(|one| is_within(file, one)))
    };

    let is_table_changed = is_selected(&TABLE.to_owned());
    let mut mutants = of_table(root)?;
    mutants.retain(|mutant| is_table_changed || is_selected(&mutant.file));
    for file in files.iter().filter(|file| orderings::covers(file) && is_selected(file)) {
        let text = tree::text(root, file)?.unwrap_or_default();
        mutants.extend(orderings::mutants(file, &text));
    }
    mutants.sort_by_key(|mutant| mutant.killed_by.is_empty());
    Ok(mutants)
}

/// Tries the mutants that name their tests, then the others, which need all tests to pass first.
fn try_all(mutants: &[Mutant], bench: &mut Bench, note: Note<'_>) -> Result<Vec<Fate>, Failure> {
    let mut trials = Trials { fates: vec![Fate::Skipped; mutants.len()], done: 0, note };
    let numbered: BTreeMap<u32, &Mutant> = (1..).zip(mutants).collect();
    let Some(mixed) = bench.mix(&numbered)? else { return Ok(trials.fates) };
    let all = mutants.len();
    println!("{} of {all} mutants are in one program", mixed.len());
    let (named, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
        numbered.into_iter().partition(|(_, mutant)| !mutant.killed_by.is_empty());
    for group in [named, others] {
        let needing: Vec<_> = group.values().copied().collect();
        if group.is_empty() || !bench.pass(&needing, &mixed)? {
            continue;
        }
        let (chosen, alone): (Vec<_>, Vec<_>) =
            group.into_iter().partition(|(number, _)| mixed.has(*number));
        choose_each(&chosen, bench, &mixed, &mut trials)?;
        for (number, mutant) in alone {
            let fate = bench.build_and_try(mutant)?;
            trials.end(number, mutant, fate)?;
        }
    }
    Ok(trials.fates)
}

/// Tries mutants of one program, as many at a time as there are CPUs.
fn choose_each(
    mutants: &[(u32, &Mutant)],
    bench: &Bench,
    mixed: &Mixed,
    trials: &mut Trials<'_>,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let trials = Mutex::new(trials);
    let work = || -> Result<(), String> {
        while let Some((number, mutant)) = mutants.get(next.fetch_add(1, Relaxed)) {
            let fate = bench.choose(mutant, *number, mixed).map_err(|error| error.to_string())?;
            let mut trials = trials.lock().unwrap_or_else(PoisonError::into_inner);
            trials.end(*number, mutant, fate).map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..trial::cpus()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers don't panic"))
    })?;
    Ok(())
}

/// The results of the mutants so far.
struct Trials<'a> {
    fates: Vec<Fate>,
    done: usize,
    note: Note<'a>,
}

impl Trials<'_> {
    /// Records and prints the fate of a mutant.
    fn end(&mut self, number: u32, mutant: &Mutant, fate: Fate) -> Result<(), Failure> {
        if fate == Fate::Skipped {
            return Ok(());
        }
        (self.note)(mutant, &fate)?;
        self.done += 1;
        let excuse = excuse(mutant, &fate);
        let name = if excuse.is_some() { "explained" } else { fate.name() };
        let detail = detail(&fate, excuse);
        println!("[{}/{}] {mutant}: {name}{detail}", self.done, self.fates.len());
        self.fates[number as usize - 1] = fate;
        Ok(())
    }
}

/// The explanation in the source, if this mutant has survived and has one.
fn excuse<'a>(mutant: &'a Mutant, fate: &Fate) -> Option<&'a str> {
    mutant.explanation.as_deref().filter(|_| *fate == Fate::Survived)
}

fn judge(mutants: &[Mutant], fates: &[Fate]) -> Outcome {
    let mut tally: BTreeMap<&str, usize> = BTreeMap::new();
    let mut findings = Vec::new();
    // Explained places, and whether a mutant survived there.
    let mut explained: BTreeMap<(&str, usize), bool> = BTreeMap::new();
    for (mutant, fate) in mutants.iter().zip(fates) {
        let excused = excuse(mutant, fate).is_some();
        if mutant.explanation.is_some() {
            let survived = !matches!(fate, Fate::Killed(_));
            *explained.entry((&mutant.file, mutant.line)).or_default() |= survived;
        }
        let name = if excused { "explained" } else { fate.name() };
        *tally.entry(name).or_default() += 1;
        if !matches!(fate, Fate::Killed(_) | Fate::Skipped) && !excused {
            findings.push(Finding::at(&mutant.file, mutant.line, format!("{mutant:#}: {name}")));
        }
    }
    let stale: BTreeSet<_> =
        explained.iter().filter(|(_, survived)| !**survived).map(|(place, _)| place).collect();
    findings.extend(stale.into_iter().map(|(file, line)| {
        Finding::at(file, *line, "a survivor is explained here, but all were killed")
    }));
    let tally: Vec<_> = tally.iter().map(|(name, count)| format!("{count} {name}")).collect();
    println!("Mutants: {} selected, {}.", mutants.len(), tally.join(", "));
    report(findings)
}

fn detail(fate: &Fate, excuse: Option<&str>) -> String {
    match (fate, excuse) {
        (_, Some(reason)) => format!(" ({reason})"),
        (Fate::Killed(by) | Fate::Undecided(by), _) => format!(" by {by}"),
        (Fate::Unbuildable(error), _) => format!(": {error}"),
        (Fate::Survived | Fate::Skipped, None) => String::new(),
    }
}
