//! `table`: measures the time to tell one CPU, or all others, by each mechanism, as in the tables
//! of the Nemo paper. A receiver notes the time as soon as it knows.
//!
//! | figure | from | to |
//! |---|---|---|
//! | `M.unicast` | before a CPU is told | it knows; measured for all other CPUs |
//! | `M.source` | as above | the sender has done its part |
//! | `M.own` | as above, if the receiver is on the sender's CPU | it knows |
//! | `M.broadcast` | before all others are told | the last of them knows |
//! | `M.broadcast_source` | as above | the sender has done its part |
//! | `M.sigma` | | the standard deviation of the times at which they know |
//!
//! Each has `.min`, `.median` and `.p99`. In an `--exact` run the CPUs take turns, so `broadcast`
//! and `sigma` contain the work of all CPUs, one after the other.
//!
//! | mechanism | receiver |
//! |---|---|
//! | `raw_ipi` | an interrupt's handler, which notes the time in its first instructions |
//! | `raw_each` | the same, by one interrupt for each CPU |
//! | `direct`, `slot`, `bitmap` | an action of a message, by its form |
//! | `condvar_queue`, `_kick`, `_batched`, `_watch` | a thread that waits, by the way it is woken |
//! | `condvar_percpu` | a thread that waits for the kernel's own condition variable |
//! | `mwait` | a CPU that watches a line (MONITOR, MWAIT) |
//! | `spin` | a CPU that polls a line |

mod condvars;
mod interrupts;
mod lines;
mod mechanism;
mod messages;

use antiphon_metal::kernel::condvar::Condvar as PerCpu;
use antiphon_metal::kernel::cpu;
use antiphon_metal::kernel::schedule::{self, Idle};
use antiphon_metal::kernel::wake::{self, Wake};
use antiphon_metal::options::Options;
use antiphon_metal::x86::power::Outcome;
use antiphon_metal::{Metal, println};
use antiphon_sync::wait::Condvar;

use condvars::Condvars;
use interrupts::Raw;
use lines::{Line, Wait};
use mechanism::measure;
use messages::{Bitmap, Direct, Slot};

/// The condition variable of `antiphon-sync`.
type Listed = Condvars<Condvar<Metal>>;

pub fn run(options: Options<'_>) -> Outcome {
    let (Ok(trials), Ok(tick_us)) = (options.number("trials", 100), options.number("tick_us", 100))
    else {
        println!("`trials` and `tick_us` are numbers");
        return Outcome::Misused;
    };
    if cpu::count() < 2 {
        println!("`table` needs two CPUs: a sender and a receiver");
        return Outcome::Misused;
    }
    let trials = trials.clamp(1, 100_000) as usize;
    measure("raw_ipi", &Raw { at_once: true }, trials);
    measure("raw_each", &Raw { at_once: false }, trials);
    measure("direct", &Direct::new(), trials);
    measure("slot", &Slot::new(), trials);
    measure("bitmap", &Bitmap::new(), trials);
    wake::set(Wake::Kick);
    measure("condvar_kick", &Listed::new(trials, 0), trials);
    measure("condvar_percpu", &Condvars::<PerCpu>::new(trials, 0), trials);
    wake::set(Wake::Batched);
    measure("condvar_batched", &Listed::new(trials, 0), trials);
    wake::set(Wake::Queue);
    measure("condvar_queue", &Listed::new(trials, tick_us * 1000), trials);
    wake::set(Wake::Kick);
    if schedule::set_idle(Idle::Watch) {
        measure("condvar_watch", &Listed::new(trials, 0), trials);
        schedule::set_idle(Idle::Halt);
        measure("mwait", &Line::new(Wait::Watch, trials), trials);
    }
    measure("spin", &Line::new(Wait::Poll, trials), trials);
    Outcome::Passed
}
