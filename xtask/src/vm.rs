//! `vm`: the scheduler of sched_ext in a virtual machine.
//!
//! A Debian kernel with sched_ext boots in QEMU, without KVM, from an archive with one file: the
//! static program `antiphon-scx-vm` of `apps/scx`, which is the machine's init. It runs its cases
//! and tells their results on the serial line.
//!
//! | module | does |
//! |---|---|
//! | [`needs`] | what must be installed |
//! | [`archive`] | Debian's archive, by an apt configuration of its own |
//! | [`kernel`] | chooses a kernel, checks its type information, keeps it |
//! | [`image`] | the parts of a kernel's file |
//! | [`initramfs`] | builds the program and the archive that the kernel starts it from |
//! | [`boot`] | starts the machine and reads what it says |

mod archive;
mod boot;
mod image;
mod initramfs;
mod kernel;
mod needs;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::finding::{Finding, Outcome, report};
use crate::metadata::Metadata;
use crate::{Failure, tree};
use boot::{Machine, Report};

/// The caller's options.
struct Options {
    /// Only this machine.
    suite: Option<String>,
    /// Only cases whose names begin so.
    case: Option<String>,
    /// How long a machine may take.
    limit: Duration,
    /// A kernel's file, instead of Debian's.
    kernel: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: lexopt::Parser) -> Result<Self, Failure> {
        use lexopt::prelude::*;
        let mut options =
            Self { suite: None, case: None, limit: Duration::from_secs(600), kernel: None };
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("suite") => {
                    let name = arguments.value()?.string()?;
                    if Machine::ALL.iter().all(|machine| machine.name != name) {
                        return Err(format!("no suite {name:?}; there are one, many").into());
                    }
                    options.suite = Some(name);
                }
                Long("case") => options.case = Some(arguments.value()?.string()?),
                Long("limit") => {
                    options.limit = Duration::from_secs(arguments.value()?.parse()?);
                }
                Long("kernel") => options.kernel = Some(arguments.value()?.into()),
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(options)
    }
}

/// `cargo xtask vm [--suite one|many] [--case NAME] [--limit SECONDS] [--kernel FILE]`.
pub fn run(arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    let options = Options::parse(arguments)?;
    needs::check()?;
    let begin = Instant::now();
    let root = tree::root()?;
    let target = Metadata::read(&root)?.target_directory;
    let folder = target.join("vm");
    std::fs::create_dir_all(&folder)?;
    let kernel = match &options.kernel {
        Some(file) => kernel::own(&folder, file)?,
        None => kernel::of_debian(&folder)?,
    };
    let initramfs = initramfs::make(&root, &target, &folder)?;
    println!("ready after {} s", begin.elapsed().as_secs());
    let mut findings = Vec::new();
    for machine in &Machine::ALL {
        if options.suite.as_deref().is_some_and(|name| name != machine.name) {
            continue;
        }
        let started = Instant::now();
        let case = options.case.as_deref();
        let report = machine.boot(&kernel, &initramfs, options.limit, case)?;
        println!("{} ({} s)", machine.what, started.elapsed().as_secs());
        findings.extend(tell(machine, &report));
    }
    println!("{} s in all", begin.elapsed().as_secs());
    Ok(report(findings))
}

/// Prints what a machine reported. Returns what is wrong with it.
fn tell(machine: &Machine, report: &Report) -> Vec<Finding> {
    for figure in &report.figures {
        println!("       {figure}");
    }
    for case in &report.cases {
        println!("  {} {}: {}", if case.passed { "PASS" } else { "FAIL" }, case.name, case.seen);
    }
    let find = |what: String| Finding::of("apps/scx/vm", format!("{}: {what}", machine.name));
    let failed = report.cases.iter().filter(|case| !case.passed);
    let mut findings: Vec<_> =
        failed.map(|case| find(format!("{} failed: {}", case.name, case.seen))).collect();
    if !report.complete {
        let last = report.log.lines().rev().take(12).collect::<Vec<_>>();
        let last: Vec<_> = last.into_iter().rev().collect();
        println!("the end of what it said:\n{}", last.join("\n"));
        findings.push(find("the machine did not come to its end".to_owned()));
    }
    findings
}
