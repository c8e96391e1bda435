//! The system under the program in an image: the kernel.

use core::fmt::Arguments;

use antiphon_metal::kernel::{command_line, cpu, schedule};
use antiphon_metal::options::Options;
use antiphon_metal::println;
use antiphon_metal::x86::cpu::tsc;
use antiphon_metal::x86::power::Outcome;
use ported_crossbeam_deque as crossbeam_deque;
use ported_crossbeam_epoch as crossbeam_epoch;

use crate::fibonacci::Counted;
use crate::pool::{Pool, set_beat_ns};

pub use crate::pool::join;

antiphon_metal::program!(main);

/// The size of the tree.
pub const SIZE: u64 = 18;
/// How long a thread runs while others of its CPU wait, in nanoseconds.
const SLICE_NS: u64 = 100_000;

fn main() -> Outcome {
    let options = command_line::options();
    let Ok(beat_us) = options.number("beat_us", 0) else { return Outcome::Misused };
    set_beat_ns(beat_us * 1000);
    match crate::measure(options) {
        Some(true) => Outcome::Passed,
        Some(false) => Outcome::Failed,
        None => Outcome::Misused,
    }
}

pub fn print(line: &Arguments<'_>) {
    println!("{line}");
}

pub fn now() -> u64 {
    tsc()
}

/// The CPUs of an exact run take turns when they pause.
#[inline]
pub fn pause() {
    core::hint::spin_loop();
}

/// The CPU: each worker has its own.
pub fn thread() -> u64 {
    cpu::number().into()
}

/// One on each CPU.
pub fn workers(_: Options<'_>) -> usize {
    cpu::count() as usize
}

/// Lets threads of one CPU take turns, as they do on Linux: chili's beats come from a thread.
pub fn share_cpus() {
    schedule::set_slice_ns(SLICE_NS);
}

/// How the crates were ported: their lines, and how many of these were changed or left out.
pub fn print_ports() {
    for (name, [lines, changed, left_out]) in [
        ("chili", chili::PORTED),
        ("rayon-core", rayon_core::PORTED),
        ("crossbeam-deque", crossbeam_deque::PORTED),
        ("crossbeam-epoch", crossbeam_epoch::PORTED),
    ] {
        println!("{name}.lines={lines}");
        println!("{name}.changed={changed}");
        println!("{name}.left_out={left_out}");
    }
}

/// Our pool.
pub struct Ours(Option<Pool>);

impl Ours {
    pub fn start(_: usize) -> Option<Self> {
        Pool::start().ok().map(|pool| Self(Some(pool)))
    }

    pub fn run(&self, tree: impl FnOnce() -> Counted + Send + 'static) -> Counted {
        self.0.as_ref().map_or_else(Counted::default, |pool| pool.run(tree))
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            pool.stop();
        }
    }
}
