//! What the scheduler costs, on machines whose clocks count instructions: of a switch, and of the
//! work that players get done.

use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::scope;
use std::time::Duration;

use antiphon_hints::{Hints, now_ns};

use crate::policy::{EXT, FAIR};
use crate::scheduler::under;
use crate::start::{Case, Failure};
use crate::thread::{Policy, become_of, exact_timers, hog, own_cpu_ns, stop_after};
use crate::weights::{enter, within};

/// The nanoseconds of an instruction, as the machine counts.
const INSTRUCTION_NS: u64 = 8;
/// Switches that are measured.
const SWITCHES: u64 = 4_000;

/// Two threads wake each other through pipes: a wake-up, a switch and two system calls each.
pub fn switch() -> Result<String, Failure> {
    switch_in("")
}

/// The same in a control group of a control group, where both schedulers have more to count.
pub fn switch_in_group() -> Result<String, Failure> {
    within(&["a", "a/x"], || switch_in("a/x"))
}

fn switch_in(group: &str) -> Result<String, Failure> {
    let theirs = ping_pong(None, FAIR, group)?;
    let plain = under(&[], |_| ping_pong(None, EXT, group))?;
    let polls = under(&[], |scheduler| ping_pong(Some(&scheduler.connect()?), EXT, group))?;
    let ratio = |one: u64| one as f64 / theirs as f64;
    let told = format!(
        "{theirs} instructions by EEVDF, {plain} by antiphon ({:.2}), {polls} of threads that poll \
         ({:.2})",
        ratio(plain),
        ratio(polls)
    );
    if ratio(plain).max(ratio(polls)) <= 2.0 { Ok(told) } else { Err(told.into()) }
}

/// Returns the instructions of a switch.
fn ping_pong(hints: Option<&Hints>, policy: Policy, group: &str) -> Result<u64, Failure> {
    let (first, mut second) = (io::pipe()?, io::pipe()?);
    // The first to read has its byte already.
    second.1.write_all(&[0])?;
    let spent_ns = scope(|threads| {
        let one = threads.spawn(move || pass(hints, policy, group, first.0, second.1));
        let other = threads.spawn(move || pass(hints, policy, group, second.0, first.1));
        let panicked = "a thread panicked";
        one.join().map_err(|_| panicked)??;
        Ok::<_, Failure>(other.join().map_err(|_| panicked)??)
    })?;
    Ok(spent_ns / INSTRUCTION_NS / SWITCHES)
}

/// Passes a byte on as often as there are switches for two. Returns the time of that.
fn pass(
    hints: Option<&Hints>,
    policy: Policy,
    group: &str,
    mut from: PipeReader,
    mut to: PipeWriter,
) -> io::Result<u64> {
    enter(group)?;
    become_of(FAIR)?;
    let thread = hints.map(Hints::register).transpose()?;
    if thread.is_none() {
        become_of(policy)?;
    }
    let mut byte = [0];
    // Until both have their policies.
    let mut begun_ns = 0;
    for round in 0..SWITCHES / 2 + 100 {
        if round == 100 {
            begun_ns = now_ns();
        }
        if let Some(thread) = &thread {
            thread.poll(Some(now_ns() + 10_000_000), None);
        }
        from.read_exact(&mut byte)?;
        if let Err(error) = to.write_all(&byte) {
            // The other has had its last byte.
            if error.kind() != io::ErrorKind::BrokenPipe {
                return Err(error);
            }
        }
    }
    Ok(now_ns() - begun_ns)
}

/// Members of a group that give the CPU to each other, and how often each does.
const MEMBERS: usize = 4;
const YIELDS: u64 = 500;
/// Threads that wait meanwhile.
const CROWD: usize = 200;

/// What it costs a member of a group to give the CPU away does not grow with the threads outside
/// that wait.
pub fn crowd() -> Result<String, Failure> {
    let [alone, crowded] = [0, CROWD].map(|crowd| {
        under(&[], |scheduler| {
            let hints = scheduler.connect()?;
            yields(&hints, crowd)
        })
    });
    let (alone, crowded) = (alone?, crowded?);
    let ratio = crowded as f64 / alone as f64;
    let told = format!(
        "{alone} instructions by {MEMBERS} members alone, {crowded} while {CROWD} others wait \
         ({ratio:.2})"
    );
    if ratio <= 1.5 { Ok(told) } else { Err(told.into()) }
}

/// Returns the instructions of a member's `sched_yield`, while `crowd` threads outside its group
/// want the CPU.
fn yields(hints: &Hints, crowd: usize) -> Result<u64, Failure> {
    const FIRST: Policy = Policy::Ext { nice: -20 };
    const LAST: Policy = Policy::Ext { nice: 19 };
    let stop = &AtomicBool::new(false);
    let started = &Barrier::new(crowd + 1);
    let spent_ns = scope(|threads| {
        let crowd: Vec<_> = (0..crowd)
            .map(|_| {
                threads.spawn(|| {
                    started.wait();
                    become_of(LAST).map(|()| hog(stop))
                })
            })
            .collect();
        started.wait();
        std::thread::sleep(Duration::from_millis(500));
        let member = move || -> io::Result<u64> {
            become_of(FAIR)?;
            let thread = hints.register()?;
            become_of(FIRST)?;
            thread.share(1);
            std::thread::yield_now();
            let before = own_cpu_ns();
            for _ in 0..YIELDS {
                std::thread::yield_now();
            }
            Ok(own_cpu_ns() - before)
        };
        let all: [_; MEMBERS] = std::array::from_fn(|_| threads.spawn(member));
        let all = all.map(|one| one.join());
        // Relaxed: the flag says nothing about other memory.
        stop.store(true, Ordering::Relaxed);
        for one in crowd {
            one.join().map_err(|_| "a thread panicked")??;
        }
        let all = all.into_iter().map(|one| Ok(one.map_err(|_| "a thread panicked")??));
        all.sum::<Result<u64, Failure>>()
    })?;
    Ok(spent_ns / INSTRUCTION_NS / (MEMBERS as u64 * YIELDS))
}

pub const CASES: &[Case] = &[("work of 14 players", players)];

/// How long the players play.
const TIME: Duration = Duration::from_secs(1);
/// A piece of their work.
const TURNS: u64 = 20_000;

/// Fourteen players that always have work: how much of it they get done (the document's section
/// 5.6). Where an instruction takes 1 ns: what a switch costs beside a period is a matter of the
/// CPU's speed.
fn players() -> Result<String, Failure> {
    let theirs = work_of(None, FAIR)?;
    let ours = under(&[], |scheduler| work_of(Some(&scheduler.connect()?), EXT))?;
    let overhead = 100.0 * (1.0 - ours as f64 / theirs as f64);
    let told = format!("{overhead:.1} % less work than under EEVDF: {ours} pieces, not {theirs}");
    if overhead <= 6.0 { Ok(told) } else { Err(told.into()) }
}

fn work_of(hints: Option<&Hints>, policy: Policy) -> Result<u64, Failure> {
    let (stop, pieces) = (&AtomicBool::new(false), &AtomicU64::new(0));
    scope(|threads| {
        let play = |id: u64| play(hints, policy, 16_600_000 + 130_000 * id, stop, pieces);
        let all: Vec<_> = (0..14).map(|id| threads.spawn(move || play(id))).collect();
        stop_after(TIME, stop);
        for one in all {
            one.join().map_err(|_| "a thread panicked")??;
        }
        Ok(pieces.load(Ordering::Relaxed))
    })
}

/// A frame each period, and other work between, in pieces of [`TURNS`] turns.
fn play(
    hints: Option<&Hints>,
    policy: Policy,
    period_ns: u64,
    stop: &AtomicBool,
    pieces: &AtomicU64,
) -> io::Result<()> {
    become_of(FAIR)?;
    exact_timers();
    let thread = hints.map(Hints::register).transpose()?;
    if thread.is_none() {
        become_of(policy)?;
    }
    let mut at = now_ns() + period_ns;
    // Relaxed, both: a flag and a count that say nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        for turn in 0..TURNS {
            black_box(turn);
        }
        pieces.fetch_add(1, Ordering::Relaxed);
        if now_ns() >= at {
            at += period_ns;
        }
        if let Some(thread) = &thread {
            thread.poll(Some(at), None);
            let (now, told) = (now_ns(), thread.answer());
            if now >= told.until_ns || told.next_release_ns.is_some_and(|at| at <= now) {
                std::thread::yield_now();
            }
        }
    }
    Ok(())
}
