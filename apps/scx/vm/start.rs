//! What an init program does: it mounts what its cases need, runs them, tells their results on the
//! console, and ends the machine.

use std::error::Error;
use std::ffi::CString;
use std::fs;
use std::io;
use std::process::ExitCode;
use std::ptr;
use std::time::Duration;

use crate::thread;

/// Why a case failed.
pub type Failure = Box<dyn Error>;

/// A case: its name, and what runs it. It returns what it has seen.
pub type Case = (&'static str, fn() -> Result<String, Failure>);

/// Runs the suite that the kernel's command line names, and ends the machine. `mounts` is what is
/// mounted besides the usual: a kind of file system, and a place.
pub fn run(mounts: &[(&str, &str)], suite: fn(&str) -> Option<&'static [Case]>) -> ExitCode {
    let passed = match prepare(mounts, suite) {
        Ok((suite, only)) => run_all(suite, &only),
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

fn run_all(suite: &[Case], only: &str) -> bool {
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
fn prepare(
    mounts: &[(&str, &str)],
    suite: fn(&str) -> Option<&'static [Case]>,
) -> Result<(&'static [Case], String), Failure> {
    let usual = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run")];
    for (kind, at) in usual.iter().chain(mounts) {
        fs::create_dir_all(at)?;
        mount(kind, at)?;
    }
    thread::become_conductor()?;
    let line = fs::read_to_string("/proc/cmdline")?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    println!("figure kernel {}", kernel.trim());
    settle()?;
    let word = |head| line.split_whitespace().find_map(|word| word.strip_prefix(head));
    let (name, only) = (word("antiphon="), word("antiphon.case=").unwrap_or_default());
    let suite = name.and_then(suite).ok_or_else(|| format!("no suite {name:?}"))?;
    Ok((suite, only.to_owned()))
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

/// Mounts a file system.
pub fn mount(kind: &str, at: &str) -> Result<(), Failure> {
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
