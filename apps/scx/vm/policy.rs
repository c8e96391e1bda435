//! Cases of one CPU, whose clock counts its instructions: the policy, against the one in Rust where
//! the latter decides the same, and beside the kernel's other schedulers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread::scope;
use std::time::Duration;

use antiphon_hints::{Hints, now_ns};
use antiphon_scx::loader::Failure;

use crate::scheduler::under;
use crate::start::Case;
use crate::thread::{
    Policy, become_of, exact_timers, hog, jain, own_cpu_ns, sleep_until, spin_until, stay_on,
    stop_after, work,
};
use crate::{cost, cpus, locks, pure, seats, weights};

pub const CASES: &[Case] = &[
    ("order", order),
    ("shares", shares),
    ("police", police),
    ("group", crate::groups::importance),
    ("sections", sections),
    ("wake-up", wake_up),
    ("replay", crate::replay::turns),
    ("players", players),
    ("loops", crate::loops::loops),
    ("loops of a group", crate::loops::group),
    ("figures 7, 8 and 10", crate::figures::fairness),
    ("figure 12", crate::figures::misbehaving),
    ("slot of another thread", seats::slot),
    ("policy of a thread that leaves", seats::policy),
    ("control groups", weights::control_groups),
    ("switch", cost::switch),
    ("switch in a control group", cost::switch_in_group),
    ("crowd", cost::crowd),
    ("renice", cpus::renice),
    ("silent poll", crate::silent::poll),
    ("preempted holders, spinlock", locks::spinlock),
    ("preempted holders, mutex", locks::mutex),
    ("spinners that tell nothing", locks::bare),
];

/// A thread of plain fair scheduling, and one of ours.
pub const EXT: Policy = Policy::Ext { nice: 0 };
pub const FAIR: Policy = Policy::Fair { nice: 0, slice_ns: 0 };
/// The kernel's shortest slice.
const SHORT: Policy = Policy::Fair { nice: 0, slice_ns: 100_000 };

/// Threads that are due run in the order of their releases, whatever the order of their wake-ups:
/// as the policy in Rust says.
fn order() -> Result<String, Failure> {
    order_on(None)
}

/// The same on one CPU of several.
pub fn order_on(cpu: Option<usize>) -> Result<String, Failure> {
    const THREADS: usize = 8;
    const ROUNDS: usize = 5;
    // A CPU of several is emulated, and stops when the host does something else.
    let options = if cpu.is_some() { &["patient"][..] } else { &[] };
    under(options, |scheduler| {
        let hints = scheduler.connect()?;
        for round in 0..ROUNDS {
            // A permutation: 5 and 8 have no common divisor.
            let rank = |thread: usize| (thread * 5 + round * 3) % THREADS;
            let ran = run_in_order(&hints, cpu, rank)?;
            let expected = pure::order(THREADS, rank);
            if ran != expected {
                return Err(format!("round {round}: ran {ran:?}, not {expected:?}").into());
            }
        }
        Ok(format!("{ROUNDS} rounds of {THREADS} threads as in the policy in Rust"))
    })
}

/// Wakes threads that are due, one after the other, while none can run. Returns the order in which
/// they run then.
fn run_in_order(
    hints: &Hints,
    cpu: Option<usize>,
    rank: impl Fn(usize) -> usize + Sync,
) -> Result<Vec<usize>, Failure> {
    cpu.map_or(Ok(()), stay_on)?;
    let ran = Mutex::new(Vec::new());
    let failures = Mutex::new(Vec::new());
    let (base, together) = (AtomicU64::new(0), Barrier::new(9));
    scope(|threads| {
        for id in 0..8 {
            let (ran, failures, rank) = (&ran, &failures, &rank);
            let (base, together) = (&base, &together);
            threads.spawn(move || {
                let play = || -> std::io::Result<()> {
                    let begun = become_of(FAIR)
                        .and_then(|()| cpu.map_or(Ok(()), stay_on))
                        .and_then(|()| hints.register());
                    exact_timers();
                    // What follows blocks no more: a thread that blocks after its poll is demoted,
                    // in a page fault, too, while others of its process start.
                    sleep_until(now_ns());
                    together.wait();
                    together.wait();
                    let (thread, base) = (begun?, base.load(Ordering::Relaxed));
                    thread.poll(Some(base + 1_000 * rank(id) as u64), None);
                    // All wake while the conductor has the CPU, in another order than that of
                    // their releases.
                    sleep_until(base + 1_000_000 + 50_000 * id as u64);
                    Ok(())
                };
                match play() {
                    Ok(()) => ran.lock().expect("no panic").push(id),
                    Err(error) => failures.lock().expect("no panic").push(error),
                }
            });
        }
        together.wait();
        let begin = now_ns() + 100_000_000;
        // Relaxed: the second wait orders it before the loads.
        base.store(begin, Ordering::Relaxed);
        together.wait();
        sleep_until(begin + 900_000);
        // A CPU that was idle may have given its timers to another one, which is slower.
        spin_until(begin + 30_000_000);
    });
    match failures.into_inner()?.pop() {
        Some(error) => Err(error.into()),
        None => Ok(ran.into_inner()?),
    }
}

/// Three threads that always want the CPU have it by their weights, as in the policy in Rust.
fn shares() -> Result<String, Failure> {
    // As `sched_prio_to_weight` has them.
    const WEIGHTS: [(i32, u32); 3] = [(0, 1_024), (-5, 3_121), (5, 335)];
    const TIME: Duration = Duration::from_secs(4);
    let ran = under(&[], |_| hogs(&WEIGHTS.map(|(nice, _)| Policy::Ext { nice }), TIME))?;
    let pure = pure::shares(&WEIGHTS.map(|(_, weight)| weight), TIME.as_nanos() as u64);
    let all: u64 = ran.iter().sum();
    let weights: u32 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    let (mut told, mut worst) = (Vec::new(), 0.0_f64);
    for (((nice, weight), ran), pure) in WEIGHTS.iter().zip(&ran).zip(pure) {
        let (is, due) = (*ran as f64 / all as f64, f64::from(*weight) / f64::from(weights));
        told.push(format!("nice {nice}: {is:.3} of {due:.3}, in Rust {pure:.3}"));
        worst = worst.max((is - due).abs()).max((is - pure).abs());
    }
    let told = told.join("; ");
    if worst < 0.01 { Ok(told) } else { Err(told.into()) }
}

/// Runs a thread of each policy that always wants the CPU. Returns how much each has had.
pub fn hogs(policies: &[Policy], time: Duration) -> Result<Vec<u64>, Failure> {
    let stop = AtomicBool::new(false);
    scope(|threads| {
        let all: Vec<_> = policies
            .iter()
            .map(|policy| threads.spawn(|| become_of(*policy).map(|()| hog(&stop))))
            .collect();
        stop_after(time, &stop);
        let ran = all.into_iter().map(|one| one.join().map_err(|_| "a thread panicked"));
        ran.map(|one| Ok(one??)).collect()
    })
}

/// How long the liar of `police` runs before it yields.
const LIE_NS: u64 = 300_000;
/// How long it is watched.
const POLICED: Duration = Duration::from_millis(1_500);

/// A thread that says that it is due for ever: without policing it takes all, with it its share.
fn police() -> Result<String, Failure> {
    let [free, policed] = [&["no-police"][..], &[]].map(|options| {
        under(options, |scheduler| {
            let hints = scheduler.connect()?;
            let stop = AtomicBool::new(false);
            let ran = scope(|threads| -> Result<_, Failure> {
                let liar = threads.spawn(|| lie(&hints, &stop));
                let honest = threads.spawn(|| become_of(EXT).map(|()| hog(&stop)));
                stop_after(POLICED, &stop);
                let panicked = "a thread panicked";
                Ok((liar.join().map_err(|_| panicked)??, honest.join().map_err(|_| panicked)??))
            })?;
            Ok((ran.0 as f64 / (ran.0 + ran.1) as f64, scheduler.count("demoted_share")?))
        })
    });
    let ((free, none), (policed, demoted)) = (free?, policed?);
    let [pure_free, pure_policed] =
        [false, true].map(|is| pure::liar(is, LIE_NS, POLICED.as_nanos() as u64));
    let told = format!(
        "the liar's share: {free:.3} without policing (in Rust {pure_free:.3}), {policed:.3} with \
         it ({pure_policed:.3}; {demoted} demotions)"
    );
    // Its advantage is the threshold, once. Without policing, the little that it does not get is
    // the cost of its switches, which the policy in Rust does not have.
    let is_fair = (policed - pure_policed).abs() < 0.02 && demoted > 0 && none == 0;
    if free > 0.9 && pure_free > 0.9 && is_fair { Ok(told) } else { Err(told.into()) }
}

/// Is always due, and always yields in time: only its virtual time tells that it lies.
fn lie(hints: &Hints, stop: &AtomicBool) -> std::io::Result<u64> {
    become_of(FAIR)?;
    let thread = hints.register()?;
    let before = own_cpu_ns();
    // Relaxed: the flag says nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        thread.poll(Some(1), None);
        work(LIE_NS);
        std::thread::yield_now();
    }
    Ok(own_cpu_ns() - before)
}

/// A thread that is often in short critical sections is preempted outside of them.
fn sections() -> Result<String, Failure> {
    let [without, with] = [&["no-grace"][..], &[]].map(|options| {
        under(options, |scheduler| {
            let hints = scheduler.connect()?;
            let stop = AtomicBool::new(false);
            scope(|threads| -> Result<_, Failure> {
                let holder = threads.spawn(|| hold(&hints, &stop));
                let timer = threads.spawn(|| periodic(Some(&hints), EXT, 100, 3_100_000));
                threads.spawn(|| become_of(EXT).map(|()| hog(&stop)));
                let late = timer.join();
                stop.store(true, Ordering::Relaxed);
                let inside = holder.join().map_err(|_| "a thread panicked")??;
                Ok((inside, late.map_err(|_| "a thread panicked")??))
            })
        })
    });
    let (((inside, all, _), late), ((with, with_all, graces), with_late)) = (without?, with?);
    let told = format!(
        "preempted within sections {inside} of {all} times without grace (p50 of the timer {} us), \
         {with} of {with_all} with it ({graces} graces, p50 {} us)",
        late.p50_us, with_late.p50_us
    );
    if inside > 20 && with * 10 <= inside && graces > 0 { Ok(told) } else { Err(told.into()) }
}

/// Is in a section of 20 us for most of the time. Returns how often it was preempted within one and
/// in all, and how often that was put off.
fn hold(hints: &Hints, stop: &AtomicBool) -> std::io::Result<(u32, u32, u32)> {
    become_of(FAIR)?;
    let thread = hints.register()?;
    // Relaxed: the flag says nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        thread.enter();
        spin_until(now_ns() + 20_000);
        thread.leave();
        spin_until(now_ns() + 2_000);
    }
    let told = thread.answer();
    Ok((told.preempted_inside, told.preempted, told.graces))
}

/// How late the turns of a timer were.
#[derive(Clone, Copy, Debug)]
struct Late {
    p50_us: u64,
    p90_us: u64,
    p99_us: u64,
    max_us: u64,
}

impl Late {
    fn of(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        let at = |percent: usize| samples[(samples.len() - 1) * percent / 100] / 1_000;
        Self { p50_us: at(50), p90_us: at(90), p99_us: at(99), max_us: at(100) }
    }
}

impl std::fmt::Display for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "p50 {} p90 {} p99 {} max {} us",
            self.p50_us, self.p90_us, self.p99_us, self.max_us
        )
    }
}

/// Turns that do not count: a thread may be preempted between its policy and its first sleep, for
/// the turns of both hogs.
const UNCOUNTED: usize = 3;

/// A thread that is due each `period_ns`, and does little then. Returns how late it ran.
fn periodic(
    hints: Option<&Hints>,
    policy: Policy,
    turns: usize,
    period_ns: u64,
) -> std::io::Result<Late> {
    Ok(Late::of(turns_of(hints, policy, turns, period_ns)?))
}

fn turns_of(
    hints: Option<&Hints>,
    policy: Policy,
    turns: usize,
    period_ns: u64,
) -> std::io::Result<Vec<u64>> {
    become_of(FAIR)?;
    exact_timers();
    let thread = hints.map(Hints::register).transpose()?;
    if thread.is_none() {
        become_of(policy)?;
    }
    let mut at = now_ns() + period_ns;
    let mut late = Vec::with_capacity(turns + UNCOUNTED);
    for _ in 0..turns + UNCOUNTED {
        if let Some(thread) = &thread {
            thread.poll(Some(at), None);
        }
        sleep_until(at);
        late.push(now_ns() - at);
        at += period_ns;
    }
    Ok(late.split_off(UNCOUNTED))
}

/// The time from a timer to its thread, against two threads that always want the CPU.
fn wake_up() -> Result<String, Failure> {
    const DEADLINE: Policy = Policy::Deadline { runtime_ns: 1_000_000, period_ns: 7_300_000 };
    for (name, policy) in [
        ("EEVDF, default slice", FAIR),
        ("EEVDF, slice of 0.1 ms", SHORT),
        ("SCHED_FIFO", Policy::Fifo(10)),
        ("SCHED_DEADLINE", DEADLINE),
    ] {
        println!("figure wake-up {name}: {}", against_hogs(None, policy, FAIR)?);
    }
    let [unkicked, kicked] = [&["no-kick"][..], &[]].map(|options| {
        under(options, |scheduler| against_hogs(Some(&scheduler.connect()?), EXT, EXT))
    });
    let (unkicked, kicked) = (unkicked?, kicked?);
    println!("figure wake-up antiphon without kicks: {unkicked}");
    println!("figure wake-up antiphon: {kicked}");
    let told = format!("p50 {} us, without kicks {} us", kicked.p50_us, unkicked.p50_us);
    if kicked.p50_us * 50 <= unkicked.p50_us { Ok(told) } else { Err(told.into()) }
}

fn against_hogs(hints: Option<&Hints>, timer: Policy, hogs: Policy) -> Result<Late, Failure> {
    let stop = AtomicBool::new(false);
    scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| become_of(hogs).map(|()| hog(&stop)));
        }
        let late = threads.spawn(|| periodic(hints, timer, 100, 7_300_000));
        let late = late.join();
        stop.store(true, Ordering::Relaxed);
        Ok(late.map_err(|_| "a thread panicked")??)
    })
}

/// Eight players, each with a timer for its frames and work in between, and four threads that
/// always want the CPU.
fn players() -> Result<String, Failure> {
    for (name, policy) in [("default slice", FAIR), ("slice of 0.1 ms", SHORT)] {
        println!("figure players EEVDF, {name}: {}", overload(None, policy)?);
    }
    let short = overload(None, SHORT)?;
    let ours = under(&[], |scheduler| overload(Some(&scheduler.connect()?), EXT))?;
    println!("figure players antiphon: {ours}");
    let told = format!(
        "p99 {} us of {} us of EEVDF with its shortest slice, Jain's index {:.4}",
        ours.late.p99_us, short.late.p99_us, ours.jain
    );
    let is_timely = ours.late.p99_us * 10 <= short.late.p99_us * 3;
    if is_timely && ours.jain >= 0.98 { Ok(told) } else { Err(told.into()) }
}

/// How late the frames of all players were, and how evenly the CPU was shared.
struct Overload {
    late: Late,
    /// Of the CPU times of all threads.
    jain: f64,
    /// Frames that were later than 16.6 ms.
    missed: usize,
}

impl std::fmt::Display for Overload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { late, jain, missed } = self;
        write!(f, "{late}, {missed} frames missed, Jain's index {jain:.4}")
    }
}

fn overload(hints: Option<&Hints>, policy: Policy) -> Result<Overload, Failure> {
    let (others, stop) = (if hints.is_some() { EXT } else { FAIR }, &AtomicBool::new(false));
    scope(|threads| {
        // Their periods have no common multiple that is short.
        let players: Vec<_> = (0..8_u64)
            .map(|id| threads.spawn(move || play(hints, policy, 16_600_000 + 130_000 * id, stop)))
            .collect();
        let hogs: Vec<_> =
            (0..4).map(|_| threads.spawn(move || become_of(others).map(|()| hog(stop)))).collect();
        stop_after(Duration::from_secs(3), stop);
        let panicked = "a thread panicked";
        let (mut late, mut ran) = (Vec::new(), Vec::new());
        for player in players {
            let (of_one, cpu_ns) = player.join().map_err(|_| panicked)??;
            late.extend(of_one);
            ran.push(cpu_ns);
        }
        for one in hogs {
            ran.push(one.join().map_err(|_| panicked)??);
        }
        let missed = late.iter().filter(|late| **late > 16_600_000).count();
        Ok(Overload { late: Late::of(late), jain: jain(&ran), missed })
    })
}

/// A player: a frame of 0.1 ms each period, when it is due, and pieces of other work of 0.2 ms,
/// more than there is time for. Returns how late its frames were, and its CPU time.
pub fn play(
    hints: Option<&Hints>,
    policy: Policy,
    period_ns: u64,
    stop: &AtomicBool,
) -> std::io::Result<(Vec<u64>, u64)> {
    become_of(FAIR)?;
    exact_timers();
    let thread = hints.map(Hints::register).transpose()?;
    if thread.is_none() {
        become_of(policy)?;
    }
    let (before, mut late, mut at) = (own_cpu_ns(), Vec::new(), now_ns() + period_ns);
    // Relaxed: the flag says nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        let now = now_ns();
        if now >= at {
            late.push(now - at);
            work(100_000);
            at += period_ns;
        } else {
            work(200_000);
        }
        if let Some(thread) = &thread {
            thread.poll(Some(at), None);
            let (now, told) = (now_ns(), thread.answer());
            // The fast path: two loads, and no system call while no thread is due.
            if now >= told.until_ns || told.next_release_ns.is_some_and(|at| at <= now) {
                std::thread::yield_now();
            }
        }
    }
    // The first frame may have been due before the thread had its policy.
    Ok((late.split_off(1.min(late.len())), own_cpu_ns() - before))
}
