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
//! | [`source`] | builds a kernel with the time-slice extension |
//! | [`glibc`] | the C libraries that are tried on it |
//! | [`mod@boot`] | starts the machine and reads what it says |

mod archive;
mod boot;
mod glibc;
mod image;
mod initramfs;
mod kernel;
mod needs;
mod source;

use std::path::{Path, PathBuf};
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
    /// Which kernel runs.
    kernel: Kernel,
}

/// A kernel, and with it the cases that run on it.
enum Kernel {
    /// Debian's.
    Debian,
    /// A file.
    Own(PathBuf),
    /// One with the time-slice extension: other cases.
    Slice,
}

impl Options {
    fn parse(mut arguments: lexopt::Parser) -> Result<Self, Failure> {
        use lexopt::prelude::*;
        let limit = Duration::from_secs(600);
        let mut options = Self { suite: None, case: None, limit, kernel: Kernel::Debian };
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("suite") => {
                    options.suite = Some(arguments.value()?.string()?);
                }
                Long("case") => options.case = Some(arguments.value()?.string()?),
                Long("limit") => {
                    options.limit = Duration::from_secs(arguments.value()?.parse()?);
                }
                Long("kernel") => {
                    let value = arguments.value()?;
                    let is_slice = value == "slice";
                    options.kernel =
                        if is_slice { Kernel::Slice } else { Kernel::Own(value.into()) };
                }
                other => return Err(other.unexpected().into()),
            }
        }
        if let Some(name) = &options.suite {
            let names = options.suites();
            if !names.contains(&name.as_str()) {
                return Err(format!("no suite {name:?}; there are {}", names.join(", ")).into());
            }
        }
        Ok(options)
    }

    /// The names of the machines.
    fn suites(&self) -> Vec<&'static str> {
        match self.kernel {
            Kernel::Slice => Machine::OF_SLICES.iter().map(|(machine, _)| machine.name).collect(),
            _ => Machine::ALL.iter().map(|machine| machine.name).collect(),
        }
    }

    fn wants(&self, machine: &Machine) -> bool {
        self.suite.as_ref().is_none_or(|name| name == machine.name)
    }
}

/// `cargo xtask vm [--suite NAME] [--case NAME] [--limit SECONDS] [--kernel slice|FILE]`.
pub fn run(arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    let options = Options::parse(arguments)?;
    needs::check(matches!(options.kernel, Kernel::Slice))?;
    let begin = Instant::now();
    let root = tree::root()?;
    let target = Metadata::read(&root)?.target_directory;
    let folder = target.join("vm");
    std::fs::create_dir_all(&folder)?;
    let mut findings = Vec::new();
    if let Kernel::Slice = options.kernel {
        let kernels = [kernel::of_debian(&folder)?, source::kernel(&folder)?];
        let files = glibc::files(&folder)?;
        let initramfs = initramfs::make_for_slices(&root, &target, &folder, files)?;
        println!("ready after {} s", begin.elapsed().as_secs());
        for (machine, has_extension) in &Machine::OF_SLICES {
            let kernel = &kernels[usize::from(*has_extension)];
            findings.extend(boot(&options, machine, kernel, &initramfs)?);
        }
    } else {
        let kernel = match &options.kernel {
            Kernel::Own(file) => kernel::own(&folder, file)?,
            _ => kernel::of_debian(&folder)?,
        };
        let initramfs = initramfs::make(&root, &target, &folder)?;
        println!("ready after {} s", begin.elapsed().as_secs());
        for machine in &Machine::ALL {
            findings.extend(boot(&options, machine, &kernel, &initramfs)?);
        }
    }
    println!("{} s in all", begin.elapsed().as_secs());
    Ok(report(findings))
}

/// Starts a machine, if it is wanted, and prints what it reports. Returns what is wrong with it.
fn boot(
    options: &Options,
    machine: &Machine,
    kernel: &Path,
    initramfs: &Path,
) -> Result<Vec<Finding>, Failure> {
    if !options.wants(machine) {
        return Ok(Vec::new());
    }
    let started = Instant::now();
    let report = machine.boot(kernel, initramfs, options.limit, options.case.as_deref())?;
    println!("{} ({} s)", machine.what, started.elapsed().as_secs());
    Ok(tell(machine, &report))
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
