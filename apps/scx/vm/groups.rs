//! Groups: members share a part of the CPU, by how important their work is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::Duration;

use antiphon_hints::Hints;

use crate::policy::{EXT, FAIR};
use crate::pure;
use crate::scheduler::under;
use crate::start::Failure;
use crate::thread::{become_of, hog, own_cpu_ns, stay_on, stop_after, work};

/// A piece of a member's work.
const PIECE_NS: u64 = 300_000;
const TIME: Duration = Duration::from_secs(3);

/// Two members whose importance grows with what they have had, one twice as fast, and a thread
/// beside them: as in the policy in Rust.
pub fn importance() -> Result<String, Failure> {
    const FACTORS: [u64; 2] = [1, 2];
    let ran = under(&[], |scheduler| {
        let hints = scheduler.connect()?;
        let stop = AtomicBool::new(false);
        scope(|threads| {
            let members = FACTORS.map(|factor| {
                let (hints, stop) = (&hints, &stop);
                threads.spawn(move || member(hints, factor, stop))
            });
            let other = threads.spawn(|| become_of(EXT).map(|()| hog(&stop)));
            stop_after(TIME, &stop);
            let all = members.into_iter().chain([other]);
            let ran = all.map(|one| Ok(one.join().map_err(|_| "a thread panicked")??));
            ran.collect::<Result<Vec<_>, Failure>>()
        })
    })?;
    let pure = pure::group(FACTORS, PIECE_NS, TIME.as_nanos() as u64);
    let all: u64 = ran.iter().sum();
    let is: Vec<_> = ran.iter().map(|one| *one as f64 / all as f64).collect();
    let worst = is.iter().zip(pure).map(|(is, pure)| (is - pure).abs()).fold(0.0, f64::max);
    let told = format!(
        "members {:.3} and {:.3}, the other {:.3}; in Rust {:.3}, {:.3}, {:.3}",
        is[0], is[1], is[2], pure[0], pure[1], pure[2]
    );
    if worst < 0.02 { Ok(told) } else { Err(told.into()) }
}

/// Works in pieces, and yields when its turn is over or another member's work is more important.
fn member(hints: &Hints, factor: u64, stop: &AtomicBool) -> std::io::Result<u64> {
    become_of(FAIR)?;
    let thread = hints.register()?;
    thread.share(1);
    let before = own_cpu_ns();
    // Relaxed: the flag says nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        let importance = 1 + (own_cpu_ns() - before) * factor;
        thread.poll(None, Some(importance));
        std::thread::yield_now();
        work(PIECE_NS);
    }
    Ok(own_cpu_ns() - before)
}

/// Two threads join and leave one group, each on a CPU of its own, and stop for a while in between:
/// no run of a member is charged to a group that is gone, and no key is told twice.
pub fn changes() -> Result<String, Failure> {
    let (changes, strays) = under(&["hesitant"], |scheduler| {
        let hints = scheduler.connect()?;
        let stop = AtomicBool::new(false);
        let changes = scope(|threads| {
            let (hints, stop) = (&hints, &stop);
            let all = [0, 1].map(|cpu| threads.spawn(move || change(hints, cpu, stop)));
            stop_after(TIME, stop);
            let changes = all.into_iter().map(|one| Ok(one.join().map_err(|_| "a panic")??));
            changes.sum::<Result<u64, Failure>>()
        })?;
        Ok((changes, scheduler.count("strays")?))
    })?;
    let told = format!("{changes} changes of groups on two CPUs; {strays} strays");
    if changes > 100 && strays == 0 { Ok(told) } else { Err(told.into()) }
}

/// Is in the group and outside in turn. Returns how often.
fn change(hints: &Hints, cpu: usize, stop: &AtomicBool) -> std::io::Result<u64> {
    become_of(FAIR)?;
    stay_on(cpu)?;
    let thread = hints.register()?;
    let mut changes = 0;
    // Relaxed: the flag says nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        thread.share(1 - changes as u32 % 2);
        // The scheduler looks.
        std::thread::yield_now();
        changes += 1;
    }
    Ok(changes)
}
