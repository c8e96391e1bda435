//! One repetition: runs a case on a runtime.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cases::{Case, Cell};
use super::subjects::{self, Look, Meeting};
use crate::bench::rounds::Outcome;
use crate::bench::usage::Usage;
use crate::named::Named as _;

/// The order for one repetition.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// Name of the runtime.
    pub subject: String,
    /// The conditions.
    pub cell: Cell,
    /// Approximate length of the repetition, in seconds.
    pub seconds: f64,
    /// Path of the runtime's program, if it is another program.
    pub program: PathBuf,
}

/// The figures of a repetition; those that the case does not have are `None`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Time from the first spawn to the last join, per task.
    pub ns_per_op: Option<f64>,
    /// CPU time of all threads per task.
    pub cpu_ns_per_op: Option<f64>,
    /// Growth of the process per task.
    pub bytes_per_task: Option<f64>,
}

/// The number whose calls are tasks: large enough that a worker's start does not matter.
pub const FIBONACCI: u32 = 24;
/// Number of yields of a task in a round: large enough that creating the task does not matter.
const YIELDS: usize = 1_000;
/// Number of messages of a round.
const MESSAGES: usize = 10_000;

/// Runs one repetition.
///
/// # Errors
///
/// If the runtime is not available, or unknown.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    let Order { subject, cell, seconds, program } = order;
    if !program.as_os_str().is_empty() {
        let case = cell.case.name();
        let numbers = [cell.workers, cell.batch, FIBONACCI as usize].map(|one| one.to_string());
        let arguments = [&[case][..], &numbers, &[seconds.to_string()]].concat();
        return Err(crate::bench::pools::built::become_it(program, &arguments));
    }
    let runtime = subjects::start(subject, cell.workers)?;
    let figures = match cell.case {
        Case::SpawnJoin => {
            timed(*seconds, cell.batch, &|times| runtime.spawn_join(cell.batch, times))
        }
        Case::ForkJoin => {
            timed(*seconds, forks(FIBONACCI), &|times| runtime.fork_join(FIBONACCI, times))
        }
        Case::Yield => timed(*seconds, cell.batch * YIELDS, &|times| {
            runtime.yields(cell.batch, YIELDS * times)
        }),
        Case::Channel | Case::Across => timed(*seconds, MESSAGES, &|times| {
            let meeting = Meeting::of(if cell.case == Case::Across { 2 } else { 0 });
            runtime.channel(cell.batch, MESSAGES * times, meeting)
        }),
        Case::Select => {
            timed(*seconds, MESSAGES, &|times| runtime.select(cell.batch, MESSAGES * times))
        }
        Case::Idle => memory(cell.batch, |look| runtime.idle(cell.batch, look)),
        Case::Parked => memory(cell.batch, |look| runtime.parked(cell.batch, look)),
    };
    Ok(Outcome::Figures(figures))
}

/// Returns the time per task, from rounds of `tasks` tasks that fill the time; the first round does
/// not count.
fn timed(seconds: f64, tasks: usize, round: &dyn Fn(usize) -> Duration) -> Figures {
    let once = round(1).as_secs_f64();
    let times = (seconds / once).clamp(1.0, 1e6) as usize;
    let before = Usage::now();
    let took = round(times);
    let cpu_ns = Usage::now().since(before).cpu_ns();
    let all = tasks as f64 * times as f64;
    Figures {
        ns_per_op: Some(took.as_nanos() as f64 / all),
        cpu_ns_per_op: Some(cpu_ns as f64 / all),
        bytes_per_task: None,
    }
}

/// Returns the growth of the process when tasks are spawned.
fn memory(tasks: usize, spawn: impl FnOnce(Look<'_>)) -> Figures {
    let mut before = 0;
    let mut after = 0;
    spawn(&mut |spawned| {
        let now = if spawned { &mut after } else { &mut before };
        *now = resident();
    });
    let grown = after.saturating_sub(before) as f64 / tasks as f64;
    Figures { bytes_per_task: Some(grown), ..Figures::default() }
}

/// Returns the resident size of the process, in bytes.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|line| line.split(' ').nth(1)?.parse::<usize>().ok());
    // SAFETY: `sysconf` returns a constant.
    pages.expect("/proc/self/statm") * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize
}

/// Returns the Fibonacci number; `fork` runs the two calls of `n` as tasks.
pub fn fibonacci(n: u32, fork: impl FnOnce(u32, u32) -> (u64, u64)) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (one, other) = fork(n - 1, n - 2);
    one + other
}

/// Returns the number of forks of `fibonacci`.
fn forks(n: u32) -> usize {
    let (mut one, mut other) = (0, 0);
    for _ in 2..=n {
        (one, other) = (one + other + 1, one);
    }
    one
}

/// Returns the time of `times` runs of `work`.
pub fn took(times: usize, mut work: impl FnMut()) -> Duration {
    let begun = Instant::now();
    (0..times).for_each(|_| work());
    begun.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn forks_are_counted() {
        fn call(n: u32, forked: &Cell<usize>) -> u64 {
            fibonacci(n, |one, other| {
                forked.set(forked.get() + 1);
                (call(one, forked), call(other, forked))
            })
        }
        for n in 0..12 {
            let forked = Cell::new(0);
            call(n, &forked);
            assert_eq!(forks(n), forked.get(), "{n}");
        }
        assert_eq!(call(10, &Cell::new(0)), 55);
    }
}
