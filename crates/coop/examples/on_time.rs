//! A timer at 60 Hz on a loop that computes all the time: how late it is, by how work is cut up;
//! and the costs of events.
//!
//! `cargo run --release -p antiphon-coop --example on_time [SECONDS]`; start some `yes > /dev/null`
//! beside it, pinned to the same CPU, to see what a loop alone can't help.

use std::hint::black_box;
use std::io;
use std::process::ExitCode;

use antiphon_coop::event_loop::{Context, Event, Loop, Stats, Step, now_ns};

const PERIOD_NS: u64 = 1_000_000_000 / 60;

/// A piece of work of about a microsecond.
fn piece(sum: u64) -> u64 {
    (0..400).fold(sum, |sum, n| black_box(sum.wrapping_mul(31).wrapping_add(n)))
}

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).map_or(Ok(2), |word| word.parse());
    let Ok(seconds @ 1..=3600) = seconds else {
        eprintln!("on_time [SECONDS]: how many seconds? a number from 1 to 3600");
        return ExitCode::from(2);
    };
    match all(seconds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("on_time: {error}");
            ExitCode::FAILURE
        }
    }
}

fn all(seconds: u64) -> io::Result<()> {
    println!("{:28} {:>7} {:>9} {:>9} {:>9}", "how late, in µs", "times", "p50", "p99", "longest");
    let steps = |context: &mut Context<'_>| {
        while !context.is_over() {
            black_box(piece(0));
        }
    };
    on_time("steps of as long as there is", seconds, steps)?;
    let pieces = |_: &mut Context<'_>| _ = black_box((0..250).fold(0, |sum, _| piece(sum)));
    on_time("steps of 250 pieces", seconds, pieces)?;
    let many = |_: &mut Context<'_>| _ = black_box((0..5000).fold(0, |sum, _| piece(sum)));
    on_time("steps of 5000 pieces", seconds, many)?;
    println!("\nwhat an event costs, in ns of CPU time");
    costs()
}

fn on_time(
    name: &'static str,
    seconds: u64,
    mut step: impl FnMut(&mut Context<'_>) + 'static,
) -> io::Result<()> {
    let mut events = Loop::new()?;
    let begun_ns = now_ns();
    let end_ns = begun_ns + seconds * 1_000_000_000;
    let timer = Event::timer_in_steps(begun_ns + PERIOD_NS, move |context| {
        let next_ns = context.release_ns().expect("a timer") + PERIOD_NS;
        if next_ns < end_ns {
            return Step::At(next_ns);
        }
        context.stop();
        Step::Done
    });
    events.submit(timer.named(name));
    events.submit(Event::best_effort_in_steps(0, move |context| {
        step(context);
        Step::More(0)
    }));
    let _ = events.run();
    print(&events.stats()[0]);
    Ok(())
}

fn print(stats: &Stats) {
    let late = &stats.tardiness;
    let [median, p99] = [50_000, 99_000].map(|share| late.percentile_ns(share) as f64 / 1e3);
    let (times, longest) = (late.count(), late.max_ns() as f64 / 1e3);
    println!("{:28} {times:7} {median:9.1} {p99:9.1} {longest:9.1}", stats.name);
}

const TIMES: u64 = 200_000;

/// The CPU time that the process has had, in nanoseconds.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours to write.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn costs() -> io::Result<()> {
    let mut events = Loop::new()?;
    let each = |name, begun: u64| {
        println!("{:28} {:7.0}", name, (cpu_ns() - begun) as f64 / TIMES as f64);
    };
    let (begun, mut left) = (cpu_ns(), TIMES);
    events.submit(Event::best_effort_in_steps(0, move |_| {
        left -= 1;
        if left == 0 { Step::Done } else { Step::More(0) }
    }));
    let _ = events.run();
    each("a step of one event", begun);

    let (begun, mut left) = (cpu_ns(), TIMES);
    events.submit(Event::timer_in_steps(0, move |_| {
        left -= 1;
        if left == 0 { Step::Done } else { Step::At(0) }
    }));
    let _ = events.run();
    each("a timer that is always due", begun);

    let (begun, handle) = (cpu_ns(), events.handle());
    let other = std::thread::spawn(move || {
        (0..TIMES).for_each(|_| _ = handle.submit(Event::best_effort(0, |_| {})));
    });
    let _ = events.run();
    each("from another thread", begun);
    other.join().map_err(|_| io::Error::other("the other thread has panicked"))?;

    let begun = cpu_ns();
    events.submit(Event::task(0, async |task| {
        for _ in 0..TIMES {
            task.yield_now().await;
        }
    }));
    let _ = events.run();
    each("a task that yields", begun);

    // Last: a program that has freed so large a memory at once is slower for a while.
    let begun = cpu_ns();
    (0..TIMES).for_each(|n| _ = events.submit(Event::best_effort(n % 7, |_| {})));
    let _ = events.run();
    each("best effort, all at once", begun);
    Ok(())
}
