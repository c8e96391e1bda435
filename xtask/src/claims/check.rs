//! `claims --check`: runs the commands of entries, and compares their output with the expected
//! figures.
//!
//! An entry's bounds must hold whatever its status: those of a refuted entry keep the figure away
//! from the claim. For an entry without bounds, a test or a model must succeed; other commands are
//! skipped, because no output is specified.
//!
//! Commands that compute their figures run at once, one on each CPU. Those that measure, and those
//! that run tests, follow one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use super::entries::{By, Claim, Status};
use super::expect::{Expect, shown};
use super::record;
use super::run::{Ended, Runner};
use super::select::{self, Part};
use crate::Failure;
use crate::finding::Outcome;
use crate::metadata::Metadata;

/// How long a command may take unless `--limit` says otherwise.
const LIMIT: Duration = Duration::from_secs(600);

/// The options of `--check`. Entries are selected by any of the first four.
#[derive(Debug)]
pub struct Options {
    /// Prefixes of the ids to check.
    names: Vec<String>,
    /// Whether to check all entries.
    all: bool,
    /// The part of the judged entries to check: `--part 3/10`.
    part: Option<Part>,
    /// A commit: entries that differ from it are checked, and those built from files that have
    /// changed after it.
    changed: Option<String>,
    /// Whether the tests have passed before, on a shared machine: then commands that test or
    /// measure are skipped.
    tested: bool,
    /// How long each command may take.
    limit: Duration,
    /// The file to which the table is written.
    record: Option<PathBuf>,
}

impl Options {
    /// Parses the remaining arguments.
    pub fn parse(arguments: &mut lexopt::Parser) -> Result<Self, Failure> {
        use lexopt::prelude::*;
        let mut options = Self {
            names: Vec::new(),
            all: false,
            part: None,
            changed: None,
            tested: false,
            limit: LIMIT,
            record: None,
        };
        while let Some(argument) = arguments.next()? {
            match argument {
                Value(name) => options.names.push(name.string()?),
                Long("all") => options.all = true,
                Long("part") => options.part = Some(Part::parse(&arguments.value()?.string()?)?),
                Long("changed") => options.changed = Some(arguments.value()?.string()?),
                Long("tested") => options.tested = true,
                Long("limit") => {
                    options.limit = Duration::from_secs(arguments.value()?.parse()?);
                }
                Long("record") => options.record = Some(arguments.value()?.into()),
                other => return Err(other.unexpected().into()),
            }
        }
        let has_selection = options.all
            || !options.names.is_empty()
            || options.part.is_some()
            || options.changed.is_some();
        match has_selection {
            true => Ok(options),
            false => Err("--check: which? NAME…, --all, --part N/M or --changed BASE".into()),
        }
    }
}

/// The result of checking one entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Checked {
    pub verdict: Verdict,
    /// The figures, or the behaviour of the command.
    pub figure: String,
    /// The bounds, with the claim.
    pub bound: String,
}

/// Whether an entry agrees with the output of its command.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    Contradicted,
    /// Nothing was compared, for this reason.
    Skipped(&'static str),
}

impl Verdict {
    pub fn name(&self) -> String {
        match self {
            Self::Ok => "ok".to_owned(),
            Self::Contradicted => "contradicted".to_owned(),
            Self::Skipped(why) => format!("skipped: {why}"),
        }
    }
}

impl Checked {
    fn skipped(why: &'static str) -> Self {
        Self { verdict: Verdict::Skipped(why), figure: String::new(), bound: String::new() }
    }
}

/// Runs the commands of the selected entries, and prints a line for each.
///
/// # Errors
///
/// If a program is not built, or a command can't be started.
pub fn run(root: &Path, claims: &[Claim], options: &Options) -> Result<Outcome, Failure> {
    let metadata = Metadata::read(root)?;
    let ids = selected(root, &metadata, claims, options)?;
    let claims: Vec<_> = claims.iter().filter(|claim| ids.contains(claim.id.as_str())).collect();
    let runner =
        Runner { root, target_directory: &metadata.target_directory, limit: options.limit };
    // All programs are checked before the first one runs.
    let (mut timeless, mut alone) = (Vec::new(), Vec::new());
    for (command, json) in commands(&claims, options.tested) {
        let jobs = if is_timeless(&claims, command) { &mut timeless } else { &mut alone };
        jobs.push((command, runner.prepare(command, json)?));
    }

    let begun = Instant::now();
    let mut results: BTreeMap<&str, Checked> = BTreeMap::new();
    for claim in claims.iter() {
        if let Err(why) = is_run(claim, options.tested) {
            results.insert(&claim.id, show(claim, Checked::skipped(why)));
        }
    }
    let results = Mutex::new(results);
    let note = |command: &str, ended: Option<&Ended>| {
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        for claim in claims.iter().filter(|claim| claim.command.as_deref() == Some(command)) {
            if !results.contains_key(claim.id.as_str()) {
                results.insert(&claim.id, show(claim, compare(claim, ended)));
            }
        }
    };
    run_all(&runner, timeless, available_parallelism().map_or(1, usize::from), &note)?;
    run_all(&runner, alone, 1, &note)?;
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let count = |is: fn(&Verdict) -> bool| results.values().filter(|r| is(&r.verdict)).count();
    let contradicted = count(|verdict| *verdict == Verdict::Contradicted);
    let summary = format!(
        "{} entries: {} ok, {contradicted} contradicted, {} skipped; {:.0} s",
        results.len(),
        count(|verdict| *verdict == Verdict::Ok),
        count(|verdict| matches!(verdict, Verdict::Skipped(_))),
        begun.elapsed().as_secs_f64().ceil(),
    );
    println!("{summary}");
    if let Some(file) = &options.record {
        std::fs::write(file, record::page(&claims, &results, &summary)?)?;
    }
    Ok(if contradicted == 0 { Outcome::Clean } else { Outcome::Found })
}

/// Runs the commands, `workers` at a time; `note` receives the end of each.
fn run_all<'a>(
    runner: &Runner<'_>,
    jobs: Vec<(&'a str, Command)>,
    workers: usize,
    note: &(impl Fn(&'a str, Option<&Ended>) + Sync),
) -> Result<(), Failure> {
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<(), String> {
        while let Some((command, prepared)) = next() {
            let ended = runner.run(prepared).map_err(|error| format!("{command}: {error}"))?;
            note(command, ended.as_ref());
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().map_err(|_| Failure::from("a worker has panicked"))?.map_err(Into::into)
        })
    })
}

fn selected<'a>(
    root: &Path,
    metadata: &Metadata,
    claims: &'a [Claim],
    options: &Options,
) -> Result<BTreeSet<&'a str>, Failure> {
    let mut ids = select::named(claims, &options.names)?;
    if options.all {
        ids.extend(claims.iter().map(|claim| claim.id.as_str()));
    }
    if let Some(part) = options.part {
        ids.extend(select::part(claims, part));
    }
    if let Some(base) = &options.changed {
        ids.extend(select::changed(root, metadata, claims, base)?);
    }
    Ok(ids)
}

/// Each command to run, once, and whether it must print JSON.
fn commands<'a>(claims: &[&'a Claim], tested: bool) -> Vec<(&'a str, bool)> {
    let mut commands: Vec<(&str, bool)> = Vec::new();
    for claim in claims.iter().filter(|claim| is_run(claim, tested).is_ok()) {
        let Some(command) = &claim.command else { continue };
        let json = !claim.expect.is_empty();
        match commands.iter_mut().find(|(known, _)| known == command) {
            Some((_, known)) => *known |= json,
            None => commands.push((command, json)),
        }
    }
    commands
}

/// Whether the command computes its figures, so that it does not matter what runs beside it.
fn is_timeless(claims: &[&Claim], command: &str) -> bool {
    let mut users = claims.iter().filter(|claim| claim.command.as_deref() == Some(command));
    !is_test(command)
        && users
            .all(|claim| matches!(claim.by, Some(By::Simulated | By::Modelled | By::VirtualTime)))
}

/// Whether the command runs tests, or models, which are tests, too.
fn is_test(command: &str) -> bool {
    command.starts_with("cargo test ") || command.starts_with("antiphon lab check")
}

/// Checks that something is compared for this entry; the error is the reason why not.
fn is_run(claim: &Claim, tested: bool) -> Result<(), &'static str> {
    match (claim.status, &claim.command) {
        (Status::Open, _) => Err("open"),
        (Status::NotApplicable, _) => Err("not applicable"),
        (_, None) => Err("it has no command"),
        (_, Some(command)) if is_test(command) && tested => Err("the tests have passed before"),
        (_, Some(command)) if is_test(command) => Ok(()),
        _ if tested && claim.by == Some(By::Measured) => Err("measured: this machine is shared"),
        _ if claim.expect.is_empty() => Err("it has no `expect`"),
        _ => Ok(()),
    }
}

/// Compares a command's output with an entry; `None`: the command took too long.
fn compare(claim: &Claim, ended: Option<&Ended>) -> Checked {
    let bounds: Vec<_> = claim.expect.iter().map(Expect::to_string).collect();
    let bound = if bounds.is_empty() { "it succeeds".to_owned() } else { bounds.join("; ") };
    let failed = |figure| Checked { verdict: Verdict::Contradicted, figure, bound: bound.clone() };
    let Some(ended) = ended else { return failed("not done within the limit".to_owned()) };
    if claim.expect.is_empty() {
        return match ended.success() {
            Ok(()) => Checked { verdict: Verdict::Ok, figure: "succeeded".to_owned(), bound },
            Err(why) => failed(why),
        };
    }
    let figures = ended.json().and_then(|json| {
        claim.expect.iter().map(|expect| expect.figure(&json)).collect::<Result<Vec<_>, _>>()
    });
    let figures = match figures {
        Ok(figures) => figures,
        Err(why) => return failed(why),
    };
    let holds = claim.expect.iter().zip(&figures).all(|(expect, &figure)| expect.holds(figure));
    let verdict = if holds { Verdict::Ok } else { Verdict::Contradicted };
    let figure = figures.iter().map(|&figure| shown(figure)).collect::<Vec<_>>().join("; ");
    Checked { verdict, figure, bound }
}

/// Prints the line of an entry.
fn show(claim: &Claim, checked: Checked) -> Checked {
    let (id, status, verdict) = (&claim.id, claim.status.name(), checked.verdict.name());
    match checked.verdict {
        Verdict::Skipped(_) if !claim.is_judged() => println!("{id}: {status}: skipped"),
        Verdict::Skipped(_) => println!("{id}: {status}: {verdict}"),
        _ => println!("{id}: {status}: {}, {}: {verdict}", checked.figure, checked.bound),
    }
    checked
}

#[cfg(test)]
mod tests {
    use super::super::entries;
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    fn claim(more: &str) -> Claim {
        let text = format!(
            "[[claim]]\nid = \"cst-a\"\ndocument = \"004\"\nwhere = \"x\"\nkind = \"claim\"\n\
             words = \"w\"\n{more}\n"
        );
        entries::parse(&text).unwrap().remove(0)
    }

    fn ended(code: i32, stdout: &str) -> Ended {
        let status = ExitStatus::from_raw(code << 8);
        Ended { status, stdout: stdout.to_owned(), stderr: String::new() }
    }

    const RATIO: &str = "status = \"refuted\"\nby = \"simulated\"\nresult = \"r\"\n\
        command = \"antiphon sim locks\"\nexpect = [\n\
        { value = \"a\", over = \"b\", at_most = 2, claimed = \"5 times\" },\n\
        { value = \"a\", at_least = 1, claimed = \"1\" },\n]";

    #[test]
    fn bounds_decide_and_all_of_them_must_hold() {
        let claim = claim(RATIO);
        let good = compare(&claim, Some(&ended(0, "{\"a\": 3, \"b\": 2}")));
        assert_eq!((good.verdict, good.figure.as_str()), (Verdict::Ok, "1.50; 3.00"));
        assert!(good.bound.contains("5 times"), "{}", good.bound);
        for output in ["{\"a\": 3, \"b\": 1}", "{\"a\": 0.5, \"b\": 2}", "{\"a\": 3}", "no"] {
            let bad = compare(&claim, Some(&ended(0, output)));
            assert_eq!(bad.verdict, Verdict::Contradicted, "{output}");
        }
        let failed = compare(&claim, Some(&ended(1, "{\"a\": 3, \"b\": 2}")));
        assert_eq!(failed.verdict, Verdict::Contradicted);
        let late = compare(&claim, None);
        assert!(late.verdict == Verdict::Contradicted && late.figure.contains("limit"));
    }

    #[test]
    fn a_test_has_to_succeed() {
        let judged = "status = \"reproduced\"\nby = \"tested\"\nresult = \"r\"\n";
        let claim = claim(&format!("{judged}command = \"cargo test -p a\""));
        assert_eq!(compare(&claim, Some(&ended(0, ""))).verdict, Verdict::Ok);
        assert_eq!(compare(&claim, Some(&ended(101, ""))).verdict, Verdict::Contradicted);
        assert_eq!(is_run(&claim, false), Ok(()));
        assert!(is_run(&claim, true).is_err());
    }

    #[test]
    fn what_says_nothing_is_skipped_and_equal_commands_run_once() {
        let judged = "status = \"reproduced\"\nby = \"measured\"\nresult = \"r\"\n";
        let silent = claim(&format!("{judged}command = \"antiphon sim locks\""));
        let model = claim(&format!("{judged}command = \"antiphon lab check crew\""));
        let open = claim("status = \"open\"");
        let ratio = claim(RATIO);
        assert!(is_run(&silent, false).is_err() && is_run(&open, false).is_err());
        let found = commands(&[&ratio, &silent, &model, &open, &model, &ratio], false);
        assert_eq!(found, [("antiphon sim locks", true), ("antiphon lab check crew", false)]);
    }

    #[test]
    fn what_measures_or_tests_runs_alone() {
        let judged = |by, command| {
            claim(&format!(
                "status = \"reproduced\"\nresult = \"r\"\nby = \"{by}\"\ncommand = \"{command}\""
            ))
        };
        let simulated = judged("simulated", "antiphon sim locks");
        let measured = judged("measured", "antiphon bench locks");
        let checked = judged("model-checker", "antiphon lab check crew");
        // One command that gives a figure of either kind.
        let (model, figure) = (judged("modelled", "antiphon x"), judged("measured", "antiphon x"));
        let claims = [&simulated, &measured, &checked, &model, &figure];
        let timeless = |command| is_timeless(&claims, command);
        assert!(timeless("antiphon sim locks"));
        for command in ["antiphon bench locks", "antiphon lab check crew", "antiphon x"] {
            assert!(!timeless(command), "{command}");
        }
    }

    #[test]
    fn something_has_to_be_selected() {
        let parse = |words: &[&str]| Options::parse(&mut lexopt::Parser::from_args(words));
        for words in
            [&["cst-a"][..], &["--all"], &["--part", "1/10"], &["--changed", "HEAD", "--tested"]]
        {
            assert!(parse(words).is_ok(), "{words:?}");
        }
        assert_eq!(parse(&["--all", "--limit", "5"]).unwrap().limit, Duration::from_secs(5));
        for words in [&[][..], &["--tested"], &["--part", "11/10"], &["--odd"]] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
