//! The init program of `cargo xtask vm --kernel slice`: the kernel's time-slice extension for
//! critical sections, and restartable sequences, on kernels with it and without, under two versions
//! of glibc.
//!
//! | suite (`antiphon=` of the kernel's command line) | kernel |
//! |---|---|
//! | `slice` | one with the extension, on one CPU whose time counts instructions |
//! | `slice-many` | the same on two CPUs |
//! | `without` | one without the extension |
//!
//! What a process turns on stays on: so each case runs this program again, in a [part], and reads
//! what it says.

mod cases;
mod offender;
mod part;
#[path = "../vm/start.rs"]
mod start;
#[path = "../vm/thread.rs"]
#[allow(dead_code, reason = "the other init program uses the rest")]
mod thread;

use std::process::ExitCode;

use start::Case;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if let Some(name) = arguments.next().filter(|name| name == part::VERB) {
        return part::run(arguments.next().unwrap_or(name).as_str());
    }
    start::run(&[("debugfs", "/sys/kernel/debug")], suite)
}

/// Returns the cases of a suite.
fn suite(name: &str) -> Option<&'static [Case]> {
    match name {
        "slice" => Some(cases::WITH),
        "slice-many" => Some(cases::MANY),
        "without" => Some(cases::WITHOUT),
        _ => None,
    }
}
