//! A loop of events inside Tokio: on the thread of a runtime, beside its tasks. Timers are those of
//! the loop, to the nanosecond; Tokio's are of whole milliseconds.
//!
//! `cargo run --release -p antiphon-coop --example loop_in_tokio`

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use antiphon_coop::event_loop::{End, Event, Loop, Step, now_ns};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Runs a loop to its end; other tasks of the thread go on meanwhile.
async fn run_async(events: &mut Loop) -> io::Result<End> {
    // Another name of the same file, which Tokio has for itself.
    let file = events.as_fd().try_clone_to_owned()?;
    // SAFETY: an open file, which the `AsyncFd` owns and has open until it is dropped.
    let file = unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) };
    let file = file.map_err(io::Error::from)?;
    loop {
        let turn = events.turn(64);
        if let Some(end) = turn.end {
            return Ok(end);
        }
        // Tokio is notified of an edge: only when nothing was left to be called there is another.
        if turn.called > 0 || turn.next_ns == Some(0) {
            tokio::task::yield_now().await;
        } else {
            file.readable().await?.clear_ready();
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("loop_in_tokio: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut events = Loop::new()?;
    let first_ns = now_ns() + 1_500_000;
    let mut beats = 0;
    let beat = Event::timer_in_steps(first_ns, move |context| {
        beats += 1;
        let next_ns = context.release_ns().expect("a timer") + 1_500_000;
        if beats < 400 { Step::At(next_ns) } else { Step::Done }
    });
    events.submit(beat.named("a beat of 1.5 ms"));
    let done = Rc::new(Cell::new(false));
    let late = runtime.block_on(async {
        let tokios = async {
            let (mut late, mut at) = (Vec::new(), tokio::time::Instant::now());
            while !done.get() {
                at += Duration::from_micros(1_500);
                tokio::time::sleep_until(at).await;
                late.push(at.elapsed().as_nanos() as u64);
            }
            late.sort_unstable();
            late
        };
        let ours = async {
            let end = run_async(&mut events).await;
            done.set(true);
            end
        };
        let (end, late) = tokio::join!(ours, tokios);
        end.map(|_| late)
    })?;
    let of = &events.stats()[0].tardiness;
    println!("{:24} {:>7} {:>9} {:>9}", "how late, in µs", "times", "p50", "p99");
    let row = |name: &str, times: usize, p50: u64, p99: u64| {
        println!("{name:24} {times:7} {:9.1} {:9.1}", p50 as f64 / 1e3, p99 as f64 / 1e3);
    };
    let ours = [50_000, 99_000].map(|share| of.percentile_ns(share));
    row("the loop, inside Tokio", of.count() as usize, ours[0], ours[1]);
    let at = |share: usize| late.get(late.len() * share / 100).copied().unwrap_or(0);
    row("Tokio's own timers", late.len(), at(50), at(99));
    Ok(())
}
