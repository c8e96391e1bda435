//! `fork-join`: the Fibonacci numbers, a fork for each call, on the pool.
//!
//! | figure | counts |
//! |---|---|
//! | `call.per_1000` | calls without forks: the cost of the work itself |
//! | `fork.per_1000` | forks that become tasks when a worker is idle, as `antiphon::pool::join` |
//! | `spawn.per_1000` | tasks, one for each fork: spawned, run and joined |
//!
//! Each is the time of 1000 forks, in instructions with `--exact`, otherwise in ticks. On several
//! CPUs an exact run counts the instructions of all of them. Each leaf pauses, because the CPUs of
//! an exact run take turns only when they pause.
//!
//! `beat_us=N` is the time after which a fork may become a task again, in microseconds; by default
//! it is five times the platform's estimate of the cost of a wake.
//!
//! `.result` and `.joins` are counted by the run itself and must be those of `n` (20 by default);
//! `.steals` are searches that found a task of another worker.

use core::hint::spin_loop;

use antiphon_metal::options::Options;
use antiphon_metal::println;
use antiphon_metal::x86::cpu::tsc;
use antiphon_metal::x86::power::Outcome;

use crate::programs::fibonacci::{Counted, expected, fork_with};
use crate::programs::pool::{Pool, join, join_task, set_beat_ns, spawn};

/// Largest `n`: each level takes a part of the stack of 64 KiB.
const MOST: u64 = 30;

/// A way to run the tree for `n` on a worker.
type Part = fn(u32) -> Counted;

pub fn run(options: Options<'_>) -> Outcome {
    let n = match options.number("n", 20) {
        Ok(n) if n <= MOST => n as u32,
        _ => {
            println!("`n` is a number up to {MOST}");
            return Outcome::Misused;
        }
    };
    let Ok(beat_us) = options.number("beat_us", 0) else {
        println!("`beat_us` is a number of microseconds");
        return Outcome::Misused;
    };
    set_beat_ns(beat_us * 1000);
    let Ok(pool) = Pool::start() else { return Outcome::Failed };
    let mut right = true;
    let parts: [(&str, Part); 3] = [("call", call), ("fork", fork), ("spawn", spawning)];
    for (name, part) in parts {
        let before = pool.stats();
        let began = tsc();
        let counted = pool.run(move || part(n));
        let took = tsc() - began;
        let after = pool.stats();
        let expected = expected(n);
        println!("{name}.per_1000={}", took * 1000 / expected.joins.max(1));
        println!("{name}.result={}", counted.result);
        println!("{name}.joins={}", counted.joins);
        println!("{name}.steals={}", after.steals - before.steals);
        println!("{name}.rests={}", after.rests - before.rests);
        right &= counted == expected;
    }
    pool.stop();
    if right { Outcome::Passed } else { Outcome::Failed }
}

/// Calls without forks.
fn call(n: u32) -> Counted {
    fork_with(n, spin_loop, |one, other| (call(one), call(other)))
}

/// Forks that may become tasks.
fn fork(n: u32) -> Counted {
    fork_with(n, spin_loop, |one, other| join(|| fork(one), || fork(other)))
}

/// A task for each fork.
fn spawning(n: u32) -> Counted {
    fork_with(n, spin_loop, |one, other| {
        let other = spawn(move || spawning(other));
        (spawning(one), join_task(other))
    })
}
