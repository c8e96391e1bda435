//! The init program of `cargo xtask vm`: runs the cases of the machine that it was started on, and
//! tells their results on the console.
//!
//! | suite (`antiphon=` of the kernel's command line) | machine | cases |
//! |---|---|---|
//! | `one` | one CPU, whose time counts instructions | `policy`: order, shares, tardiness |
//! | `many` | several CPUs | `life`: deaths, unprivileged and hostile processes |
//!
//! A line `case NAME pass: …` or `case NAME fail: …` for each, `figure …` lines for the docs, and
//! `result pass` or `result fail` at the end.

mod client;
mod life;
mod loops;
mod policy;
mod pure;
mod scheduler;
mod thread;

use std::ffi::CString;
use std::fs;
use std::io;
use std::process::ExitCode;
use std::ptr;
use std::time::Duration;

use antiphon_scx::loader::{Failure, Scope, Setup};
use antiphon_scx::server;

/// A case: its name, and what runs it. It returns what it has seen.
type Case = (&'static str, fn() -> Result<String, Failure>);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(scheduler::VERB) => return schedule(arguments),
        Some(client::VERB) => return client::run(arguments.next()),
        _ => {}
    }
    let passed = match prepare() {
        Ok((suite, only)) => run(suite, &only),
        Err(failure) => {
            println!("case start fail: {failure}");
            false
        }
    };
    println!("result {}", if passed { "pass" } else { "fail" });
    // SAFETY: writes out what is cached; and ends the machine, whose only program this is.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    ExitCode::FAILURE
}

/// The scheduler's program, with the options of a case.
fn schedule(arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut setup = Setup { watchdog_ms: 30_000, ..Setup::default() };
    for argument in arguments {
        match argument.as_str() {
            "full" => setup.scope = Scope::Full,
            "no-police" => setup.parameters.police = 0,
            "no-kick" => setup.parameters.kick = 0,
            "no-grace" => setup.parameters.grace_ns = 0,
            "patient" => setup.parameters.slack_ns = 500_000_000,
            // Fewer than an emulated CPU wakes a thread up.
            "few-kicks" => setup.parameters.kick_ns = 20_000_000,
            "stall" => (setup.parameters.stall, setup.watchdog_ms) = (1, 1_000),
            other => {
                eprintln!("no option {other}");
                return ExitCode::FAILURE;
            }
        }
    }
    match server::run(&setup) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("the scheduler: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(suite: &[Case], only: &str) -> bool {
    let mut passed = true;
    for (name, case) in suite.iter().filter(|(name, _)| name.replace(' ', "_").starts_with(only)) {
        match case() {
            Ok(seen) => println!("case {name} pass: {seen}"),
            Err(failure) => {
                println!("case {name} fail: {failure}");
                passed = false;
            }
        }
    }
    passed
}

/// Mounts what the cases need. Returns the suite that the command line names, and how the names of
/// its cases must begin (`antiphon.case=`).
fn prepare() -> Result<(&'static [Case], String), Failure> {
    for (kind, at) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run")]
    {
        fs::create_dir_all(at)?;
        mount(kind, at)?;
    }
    thread::become_conductor()?;
    let line = fs::read_to_string("/proc/cmdline")?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    println!("figure kernel {}", kernel.trim());
    settle()?;
    let word = |head| line.split_whitespace().find_map(|word| word.strip_prefix(head));
    let only = word("antiphon.case=").unwrap_or_default().to_owned();
    match word("antiphon=") {
        Some("one") => Ok((policy::CASES, only)),
        Some("many") => Ok((life::CASES, only)),
        other => Err(format!("no suite {other:?}").into()),
    }
}

/// Waits until the kernel has done what it does after its start: until its CPUs are idle for nearly
/// all of half a second.
fn settle() -> Result<(), Failure> {
    const HALF: Duration = Duration::from_millis(500);
    let idle = || -> Result<u64, Failure> {
        let all = fs::read_to_string("/proc/stat")?;
        // In hundredths of a second, of all CPUs.
        Ok(all.split_whitespace().nth(4).ok_or("no idle time in /proc/stat")?.parse()?)
    };
    let cpus = std::thread::available_parallelism()?.get() as u64;
    for _ in 0..40 {
        let before = idle()?;
        std::thread::sleep(HALF);
        if idle()? - before >= 45 * cpus {
            return Ok(());
        }
    }
    // On a host under load it may never look idle. The cases say then what they see.
    Ok(())
}

fn mount(kind: &str, at: &str) -> Result<(), Failure> {
    let (kind, at) = (CString::new(kind)?, CString::new(at)?);
    // SAFETY: both are texts with an end; no options.
    let done = unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), 0, ptr::null()) };
    let error = io::Error::last_os_error();
    // The kernel may have mounted its devices itself.
    if done != 0 && error.raw_os_error() != Some(libc::EBUSY) {
        return Err(error.into());
    }
    Ok(())
}
