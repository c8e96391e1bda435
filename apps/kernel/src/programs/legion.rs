//! `legion`: logical processors that sleep until a task is published, as in the runtime Legion.
//!
//! Each CPU but the first has a logical processor: a thread that is bound to it and sleeps while
//! there is no task. The first CPU publishes tasks, one at a time, in one of these ways:
//!
//! | way | the publisher | the task is claimed by |
//! |---|---|---|
//! | `broadcast` | notifies all, like Legion, and all wake at once | one of them, under a mutex |
//! | `moved` | notifies all, and they wake one after the other | one of them, under the mutex |
//! | `one` | notifies one | the processor that has woken, under the mutex |
//! | `message` | posts a message to a CPU whose processor sleeps | the action, which wakes it |
//! | `direct` | posts likewise | the action, which runs the task itself |
//!
//! Between two tasks the publisher sleeps until all processors sleep again. Figures of a way, over
//! `tasks=N` tasks (100 by default), in instructions with `--exact`, otherwise in
//! ticks:
//!
//! | figure | contents |
//! |---|---|
//! | (none) | median from before a task is published until it runs |
//! | `.quiet` | median from there until all processors that have woken are about to sleep |
//! | `.wakes` | number of times that processors have woken |
//! | `.claims`, `.twice` | number of tasks that were claimed, and of these, more than once |
//!
//! In an exact run `.quiet` is the work that all CPUs do for a task.
//!
//! After Hale and Dinda, "An Evaluation of Asynchronous Software Events on Modern Hardware", III-B
//! and IV-B.

mod processors;
mod queue;
mod sleepers;

use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_metal::kernel::{cpu, thread};
use antiphon_metal::options::Options;
use antiphon_metal::println;
use antiphon_metal::statistics::Summary;
use antiphon_metal::x86::cpu::tsc_unordered;
use antiphon_metal::x86::power::Outcome;

use processors::{Processors, Way};
use queue::{Queue, Wake};
use sleepers::Sleepers;

/// Time that the publisher sleeps before it checks whether all others sleep, in nanoseconds.
const SETTLE_NS: u64 = 100_000;

pub fn run(options: Options<'_>) -> Outcome {
    let tasks = match options.number("tasks", 100) {
        Ok(tasks @ 1..=100_000) => tasks as usize,
        _ => {
            println!("`tasks` is a number from 1 to 100000");
            return Outcome::Misused;
        }
    };
    if !(2..=64).contains(&cpu::count()) {
        println!("`legion` takes 2 to 64 CPUs");
        return Outcome::Misused;
    }
    let measured = [
        measure("broadcast", tasks, Queue::new(Wake::All)),
        measure("moved", tasks, Queue::new(Wake::AllMoved)),
        measure("one", tasks, Queue::new(Wake::One)),
        Sleepers::new(false).map(|way| measure("message", tasks, way)).unwrap_or_default(),
        Sleepers::new(true).map(|way| measure("direct", tasks, way)).unwrap_or_default(),
    ];
    let right = measured.iter().all(|one| one.is_right);
    let [broadcast, _, _, message, direct] = measured;
    for (name, figures) in [("message", message), ("direct", direct)] {
        println!("{name}.percent_of_broadcast={}", percent(figures.ran, broadcast.ran));
        println!("{name}.quiet.percent_of_broadcast={}", percent(figures.quiet, broadcast.quiet));
    }
    if right { Outcome::Passed } else { Outcome::Failed }
}

fn percent(one: u64, other: u64) -> u64 {
    one * 100 / other.max(1)
}

/// The figures of a way.
#[derive(Clone, Copy, Default)]
struct Figures {
    ran: u64,
    quiet: u64,
    /// Returns whether each task was claimed once.
    is_right: bool,
}

fn measure<W: Way>(name: &str, tasks: usize, way: W) -> Figures {
    let Some(processors) = Processors::start(tasks, way) else { return Figures::default() };
    let (mut ran, mut quiet) = (Vec::with_capacity(tasks), Vec::with_capacity(tasks));
    settle(&processors);
    for task in 0..tasks {
        let began = tsc_unordered();
        processors.publish(task);
        // The CPUs of an exact run take turns when they pause.
        core::hint::spin_loop();
        settle(&processors);
        ran.push(processors.ran.load(Relaxed) - began);
        quiet.push(processors.quiet.load(Relaxed) - began);
    }
    let (claims, twice) = processors.claims();
    let wakes = processors.wakes.load(Relaxed);
    processors.stop();
    let median = |samples: &mut [u64]| Summary::of(samples).map_or(0, |summary| summary.median);
    let (ran, quiet) = (median(&mut ran), median(&mut quiet));
    println!("{name}={ran}");
    println!("{name}.quiet={quiet}");
    println!("{name}.wakes={wakes}");
    println!("{name}.claims={claims}");
    println!("{name}.twice={twice}");
    Figures { ran, quiet, is_right: claims == tasks && twice == 0 }
}

/// Sleeps until there is no task, and all processors sleep.
fn settle<W: Way>(processors: &Processors<W>) {
    loop {
        thread::sleep_ns(SETTLE_NS);
        if processors.all_sleep() {
            return;
        }
    }
}
