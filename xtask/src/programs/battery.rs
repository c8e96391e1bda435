//! The battery: stock programs and servers, run with and without `antiphon`, in all modes. What can
//! be observed of a run from outside must be the same.
//!
//! `xtask/programs/battery.toml` lists the cases; a case is a shell command, or a server with a
//! client. Each run has its own empty directory, always at the same path. The observations are
//!
//! | of | observations |
//! |---|---|
//! | a program | exit code or signal, stdout, stderr without the report, the files that it leaves |
//! | a server | a client's answer; after SIGTERM: exit code, PID file, whether it still answers |
//! | both | processes that still run |
//!
//! | module | does |
//! |---|---|
//! | [`case`] | the entries of the list |
//! | [`mode`] | the ways to run `antiphon` |
//! | [`trial`] | one run of a case |
//! | [`workers`] | several cases at a time |
//! | [`process`] | starts processes, waits for them, and ends those that are left |
//! | [`seen`] | the observations of a run, and how two runs differ |
//!
//! A difference is checked against a second run without `antiphon`: a program that differs from
//! itself is skipped, and reported as skipped.

mod case;
mod mode;
mod process;
mod seen;
mod trial;
mod workers;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::finding::Outcome;
use crate::metadata::Metadata;
use crate::tree;
use case::{Case, List};
use mode::Mode;
use trial::Place;

const LIST: &str = "xtask/programs/battery.toml";
const SOURCES: &str = "xtask/programs/c";

/// The caller's options.
#[derive(Default)]
struct Options {
    only: Vec<String>,
    modes: Vec<&'static Mode>,
    /// Whether to run only the cases that take little time and few packages.
    quick: bool,
    /// Whether to install missing packages.
    install: bool,
    /// The path of the command; it is built if this is not set.
    antiphon: Option<PathBuf>,
    /// The path of another list of cases.
    list: Option<PathBuf>,
    /// The number of cases that run at a time.
    jobs: Option<usize>,
}

impl Options {
    fn parse(mut arguments: lexopt::Parser) -> Result<Self, Failure> {
        use lexopt::prelude::*;
        let mut options = Self::default();
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("only") => {
                    let list = arguments.value()?.string()?;
                    options.only.extend(list.split(',').map(str::to_owned));
                }
                Long("mode") => {
                    for name in arguments.value()?.string()?.split(',') {
                        options.modes.push(Mode::named(name)?);
                    }
                }
                Long("quick") => options.quick = true,
                Long("install") => options.install = true,
                Long("antiphon") => options.antiphon = Some(arguments.value()?.into()),
                Long("list") => options.list = Some(arguments.value()?.into()),
                Long("jobs") => options.jobs = Some(arguments.value()?.parse()?),
                other => return Err(other.unexpected().into()),
            }
        }
        if options.modes.is_empty() {
            options.modes = mode::ALL.iter().collect();
        }
        Ok(options)
    }

    /// The number of cases that run at a time: as many as there are CPUs, unless set.
    fn jobs(&self) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(cpus).max(1)
    }
}

/// `cargo xtask programs [--only LIST] [--mode LIST] [--quick] [--install] [--antiphon PATH]
/// [--list F] [--jobs N]`.
///
/// Prints a line for each case and mode: `passed`, `failed` or `skipped`, and for the last two the
/// reason.
pub fn run(arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    let options = Options::parse(arguments)?;
    let root = tree::root()?;
    let cases = chosen(&root, &options)?;
    if options.install {
        install(&cases)?;
    }
    let antiphon = match &options.antiphon {
        Some(path) => path.canonicalize()?,
        None => build(&root)?,
    };
    let place = Place::new(&antiphon, &root.join(SOURCES))?;
    let tally = match options.jobs() {
        1 => check_all(&cases, &options.modes, &place)?,
        jobs => workers::check_all(&cases, &options, jobs, place.antiphon())?,
    };
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    Ok(if tally.failed == 0 { Outcome::Clean } else { Outcome::Found })
}

/// Number of lines of each verdict.
#[derive(Default)]
struct Tally {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Tally {
    /// Prints the lines of a worker, whose last line is its own sum, and counts them.
    fn add_lines(&mut self, lines: &str) {
        for line in lines.lines() {
            let count = match line.split_once(": ").map(|(verdict, _)| verdict) {
                Some("passed") => &mut self.passed,
                Some("failed") => &mut self.failed,
                Some("skipped") => &mut self.skipped,
                _ => continue,
            };
            *count += 1;
            println!("{line}");
        }
    }

    fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    fn passed(&mut self, case: &Case, mode: &Mode) {
        self.passed += 1;
        println!("passed: {} {}", case.name, mode.name);
    }

    fn failed(&mut self, case: &Case, mode: &Mode, why: &str) {
        self.failed += 1;
        println!("failed: {} {}: {why}", case.name, mode.name);
    }

    fn skipped(&mut self, case: &Case, why: &str) {
        self.skipped += 1;
        println!("skipped: {}: {why}", case.name);
    }
}

/// Runs all cases, one after the other.
fn check_all(cases: &[Case], modes: &[&'static Mode], place: &Place) -> Result<Tally, Failure> {
    process::adopt_orphans()?;
    let mut tally = Tally::default();
    for case in cases {
        check(case, modes, place, &mut tally)?;
    }
    Ok(tally)
}

/// Runs one case in all modes.
fn check(
    case: &Case,
    modes: &[&'static Mode],
    place: &Place,
    tally: &mut Tally,
) -> Result<(), Failure> {
    if let Some(why) = case.obstacle() {
        tally.skipped(case, &why);
        return Ok(());
    }
    if let Some(why) = place.prepare(case)? {
        tally.skipped(case, &format!("it can't be prepared: {why}"));
        return Ok(());
    }
    let plain = place.run(case, None)?;
    if let Some(why) = plain.trouble() {
        tally.skipped(case, &format!("without antiphon, too: {why}"));
        return Ok(());
    }
    for mode in modes {
        let with = place.run(case, Some(mode))?;
        let Some(difference) = plain.difference(&with) else {
            tally.passed(case, mode);
            continue;
        };
        match plain.difference(&place.run(case, None)?) {
            Some(own) => tally.skipped(case, &format!("differs from itself: {own}")),
            None => tally.failed(case, mode, &difference),
        }
    }
    Ok(())
}

fn chosen(root: &Path, options: &Options) -> Result<Vec<Case>, Failure> {
    let path = options.list.clone().unwrap_or_else(|| root.join(LIST));
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let list: List = toml::from_str(&text).map_err(|error| wrong(&error))?;
    let known = |name: &String| list.case.iter().any(|case| case.name == *name);
    if let Some(unknown) = options.only.iter().find(|name| !known(name)) {
        let names: Vec<_> = list.case.iter().map(|case| &*case.name).collect();
        return Err(format!("no case {unknown:?}; there are {}", names.join(", ")).into());
    }
    let wanted = |case: &Case| {
        (case.quick || !options.quick)
            && (options.only.is_empty() || options.only.contains(&case.name))
    };
    Ok(list.case.into_iter().filter(wanted).collect())
}

/// Builds the command in the tests' profile: nothing is timed here.
fn build(root: &Path) -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--quiet", "--package", "antiphon-cli"];
    if !Command::new(cargo).args(arguments).current_dir(root).status()?.success() {
        return Err("the command does not build".into());
    }
    Ok(Metadata::read(root)?.target_directory.join("debug/antiphon"))
}

/// Installs the packages of cases whose programs are missing, one by one: not every release has all
/// of them. Cases that still miss a program are skipped.
fn install(cases: &[Case]) -> Result<(), Failure> {
    let mut packages: Vec<_> = cases
        .iter()
        .filter(|case| case.missing().is_some())
        .flat_map(|case| &case.packages)
        .collect();
    packages.sort();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    if !process::is_root() {
        return Err("--install needs root".into());
    }
    for package in packages {
        eprintln!("programs: installing {package}");
        // The policy: no service may be started.
        let script = "
            test -e /usr/sbin/policy-rc.d || {
                printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d
                chmod +x /usr/sbin/policy-rc.d
                trap 'rm -f /usr/sbin/policy-rc.d' EXIT
            }
            export DEBIAN_FRONTEND=noninteractive
            apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends \"$0\" \
                > /dev/null";
        let status = Command::new("sh").args(["-c", script]).arg(package).status()?;
        if !status.success() {
            eprintln!("programs: {package} can't be installed (apt-get update?)");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_workers_are_counted() {
        let mut tally = Tally::default();
        tally.add_lines("passed: a light\nfailed: a record: exit\n1 passed, 1 failed, 0 skipped\n");
        tally.add_lines("passed: b light\nskipped: c: no b\n");
        let mut all = Tally::default();
        all.add(&tally);
        assert_eq!((all.passed, all.failed, all.skipped), (2, 1, 1));
    }

    #[test]
    fn the_list_is_sound() {
        let root = tree::root().expect("a tree");
        let cases = chosen(&root, &Options::default()).expect("a list");
        assert!(cases.len() > 50, "{}", cases.len());
        let mut names: Vec<_> = cases.iter().map(|case| &case.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), cases.len(), "a name twice");
        for case in &cases {
            let server = [case.ready.is_some(), case.ask.is_some()];
            assert!(server[0] == server[1], "{}: ready and ask come together", case.name);
            assert!(server[0] || !case.daemon, "{}: a daemon is a server", case.name);
            assert!(!case.daemon || case.pid_file.is_some(), "{}: no pid_file", case.name);
            assert_ne!(case.command()[0], "exec", "{}: without a shell", case.name);
        }
        let quick = Options { quick: true, ..Options::default() };
        assert!(chosen(&root, &quick).expect("a list").len() >= 15);
        let once =
            |name: &str| cases.iter().any(|case| case.name == name && case.is_prepared_once());
        assert!(once("signals") && once("mariadb") && !once("nginx") && !once("redis"));
        let only = Options { only: vec!["nothing".to_owned()], ..Options::default() };
        assert!(chosen(&root, &only).is_err_and(|why| why.to_string().contains("no case")));
    }
}
