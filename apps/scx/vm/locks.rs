//! Locks that tell their critical sections, with more threads than CPUs: how often holders are
//! preempted, for how long the others wait for that, and what it costs.
//!
//! What a process turns on stays on: so each measurement is a process of its own.

use std::io::{self, Read as _};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use antiphon_hints::now_ns;
use antiphon_linux::Linux;
use antiphon_linux::section::{Listener, enable_sections};
use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin};

use crate::client;
use crate::life::{forgets, wait_for};
use crate::policy::{EXT, FAIR};
use crate::scheduler::{Scheduler, under};
use crate::start::Failure;
use crate::thread::{Policy, become_conductor, become_of, hog, spin_until, stop_after};

/// The argument by which this program measures.
pub const VERB: &str = "measure";

/// The time of a section, and of what is between two.
const SECTION_NS: u64 = 20_000;
/// What a section takes longer than that is a stall, if it is more than this: an interrupt and a
/// grace take less, and a turn of another thread more.
const GAP_NS: u64 = 500_000;
/// Threads for each CPU.
const CROWD: usize = 4;

/// What the threads of a lock did in two seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    sections: u64,
    stalls: u64,
    stalled_us: u64,
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.sections, self.stalls, self.stalled_us)
    }
}

impl Seen {
    fn read(told: &str) -> Option<Self> {
        let mut numbers = told.split_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { sections: next()?, stalls: next()?, stalled_us: next()? })
    }
}

/// Waiters of the spinlock want the CPU themselves.
pub fn spinlock() -> Result<String, Failure> {
    compare("spinlock", 0)
}

/// Those of the mutex sleep: here another thread wants the CPU.
pub fn mutex() -> Result<String, Failure> {
    compare("mutex", 1)
}

/// Holders stall others at most a tenth as often as under the kernel's own scheduler, and the lock
/// does at least 0.9 of the work that it does with one thread for each CPU.
fn compare(lock: &str, hogs: usize) -> Result<String, Failure> {
    let fair = start(lock, "fair", CROWD, hogs)?;
    let untold = under(&["full"], |_| start(lock, "untold", CROWD, hogs))?;
    let (few, told) = under(&["full"], |_| {
        Ok((start(lock, "told", 1, hogs)?, start(lock, "told", CROWD, hogs)?))
    })?;
    let row = |name: &str, seen: Seen| {
        println!(
            "figure {lock} {name}: {} sections, {} stalls, {} us in them",
            seen.sections, seen.stalls, seen.stalled_us
        );
    };
    let bare = under(&["full", "no-grace"], |_| start(lock, "told", CROWD, hogs))?;
    row("EEVDF, 4 threads", fair);
    row("antiphon, untold, 4 threads", untold);
    row("antiphon, told, 4 threads", told);
    row("antiphon, told, 1 thread", few);
    row("antiphon, told, 4 threads, no preemption put off", bare);
    let ratio = told.sections as f64 / few.sections as f64;
    let seen = format!(
        "{} stalls of holders under EEVDF ({} us), {} with sections told ({} us); {ratio:.3} of \
         the sections of one thread",
        fair.stalls, fair.stalled_us, told.stalls, told.stalled_us
    );
    if fair.stalls > 10 && told.stalls * 10 <= fair.stalls && ratio >= 0.9 {
        Ok(seen)
    } else {
        Err(seen.into())
    }
}

/// Threads that tell nothing, and spin without giving their CPU away: with the option, the holder
/// gets theirs.
pub fn bare() -> Result<String, Failure> {
    let fair = start("bare", "fair", CROWD, 0)?;
    let without = under(&["full"], |_| start("bare", "untold", CROWD, 0))?;
    let (with, given) = under(&["full", "spinners"], |scheduler| {
        Ok((start("bare", "untold", CROWD, 0)?, scheduler.count("spun_for")?))
    })?;
    for (name, seen) in [("EEVDF", fair), ("antiphon", without), ("with the option", with)] {
        println!(
            "figure bare spinlock {name}: {} sections, {} stalls, {} us in them",
            seen.sections, seen.stalls, seen.stalled_us
        );
    }
    let seen = format!(
        "stalls of {} us without the option, {} us with it; {} and {} sections; the CPU was given \
         {given} times",
        without.stalled_us, with.stalled_us, without.sections, with.sections
    );
    if given > 0 && with.sections > without.sections { Ok(seen) } else { Err(seen.into()) }
}

/// A spinlock of a program that knows nothing of schedulers.
struct Bare(AtomicBool);

// SAFETY: a thread has the lock from its exchange of `false` by `true` to its store of `false`.
unsafe impl Lock for Bare {
    const NEW: Self = Self(AtomicBool::new(false));

    fn lock(&self) {
        while !self.try_lock() {
            while self.0.load(Ordering::Relaxed) {
                std::hint::black_box(());
            }
        }
    }

    fn try_lock(&self) -> bool {
        !self.0.swap(true, Ordering::Acquire)
    }

    unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

fn start(lock: &str, how: &str, threads: usize, hogs: usize) -> Result<Seen, Failure> {
    let mut command = Command::new("/proc/self/exe");
    command.args([VERB, lock, how, &threads.to_string(), &hogs.to_string()]);
    let output = command.output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    Seen::read(&told).filter(|_| output.status.success()).ok_or_else(|| {
        let error = String::from_utf8_lossy(&output.stderr);
        format!("{lock}, {how}: {}: {told}{error}", output.status).into()
    })
}

/// Measures, and says what it has seen.
pub fn run(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut next = || arguments.next().unwrap_or_default();
    let (lock, how, threads, hogs) = (next(), next(), next(), next());
    let counts = threads.parse().ok().zip(hogs.parse().ok());
    let counts = counts.ok_or_else(|| Failure::from("no number of threads"));
    match counts.and_then(|(threads, hogs)| measure(&lock, &how, threads, hogs)) {
        Ok(seen) => {
            println!("{seen}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(lock: &str, how: &str, threads: usize, hogs: usize) -> Result<Seen, Failure> {
    let policy = match how {
        "fair" => FAIR,
        "untold" | "told" => EXT,
        other => return Err(format!("no way {other:?}").into()),
    };
    if how == "told" && enable_sections() != Ok(Listener::Scheduler) {
        return Err("the scheduler does not heed sections".into());
    }
    match lock {
        "spinlock" => crowd::<ShflSpin<Linux>>(policy, threads, hogs),
        "mutex" => crowd::<ShflMutex<Linux>>(policy, threads, hogs),
        "bare" => crowd::<Bare>(policy, threads, hogs),
        other => Err(format!("no lock {other:?}").into()),
    }
}

fn crowd<L: Lock>(policy: Policy, count: usize, hogs: usize) -> Result<Seen, Failure> {
    become_conductor()?;
    let (lock, stop) = (L::NEW, AtomicBool::new(false));
    scope(|threads| {
        let work = || become_of(policy).map(|()| hold(&lock, &stop));
        let all: Vec<_> = (0..count).map(|_| threads.spawn(work)).collect();
        let others = || become_of(policy).map(|()| hog(&stop));
        let others: Vec<_> = (0..hogs).map(|_| threads.spawn(others)).collect();
        stop_after(Duration::from_secs(2), &stop);
        let mut sum = Seen::default();
        for one in all {
            let own = one.join().map_err(|_| "a thread panicked")??;
            sum.sections += own.sections;
            sum.stalls += own.stalls;
            sum.stalled_us += own.stalled_us;
        }
        for one in others {
            one.join().map_err(|_| "a thread panicked")??;
        }
        Ok(sum)
    })
}

fn hold<L: Lock>(lock: &L, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    // A thread asks in its first section for what heeds its sections.
    let own = L::NEW;
    own.lock();
    // SAFETY: locked above.
    unsafe { own.unlock() };
    // Relaxed: the flag says nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        lock.lock();
        let begin = now_ns();
        spin_until(begin + SECTION_NS);
        let more_ns = now_ns() - begin - SECTION_NS;
        // SAFETY: locked above.
        unsafe { lock.unlock() };
        seen.sections += 1;
        if more_ns > GAP_NS {
            seen.stalls += 1;
            seen.stalled_us += more_ns / 1_000;
        }
        spin_until(now_ns() + SECTION_NS);
    }
    seen
}

/// The part of a process whose threads tell their sections, and sleep while they wait.
pub const PART: &str = "locks";

/// How many threads it has.
const WAITERS: u64 = 2;

/// The scheduler of such threads is killed, and started again: they register again by themselves.
pub fn life() -> Result<String, Failure> {
    let scheduler = Scheduler::start(&["full"])?;
    let mut child = client::start(PART)?;
    let told = restarts(scheduler);
    // The end of its input ends it.
    drop(child.stdin.take());
    let status = child.wait()?;
    let (scheduler, told) = told?;
    if !status.success() {
        return Err(format!("the client failed: {status}").into());
    }
    forgets(&scheduler)?;
    scheduler.stop()?;
    Ok(told)
}

fn restarts(mut scheduler: Scheduler) -> Result<(Scheduler, String), Failure> {
    let mut registered_ms = Vec::new();
    for turn in 0..4 {
        if turn > 0 {
            scheduler.kill()?;
            scheduler = Scheduler::start(&["full"])?;
        }
        let begin_ns = now_ns();
        // The main thread, which waits for no lock, registers only with the first scheduler.
        let all = || scheduler.count("registered").is_ok_and(|count| count >= WAITERS);
        wait_for(all, "the threads did not register")?;
        registered_ms.push((now_ns() - begin_ns) / 1_000_000);
    }
    Ok((scheduler, format!("registered {registered_ms:?} ms after each start")))
}

/// Plays that part.
pub fn client() -> Result<(), Failure> {
    if enable_sections() != Ok(Listener::Scheduler) {
        return Err("the scheduler does not heed sections".into());
    }
    let (lock, stop) = (ShflMutex::<Linux>::NEW, AtomicBool::new(false));
    let take_turns = || {
        // Relaxed: the flag says nothing about other memory.
        while !stop.load(Ordering::Relaxed) {
            lock.lock();
            sleep(Duration::from_millis(2));
            // SAFETY: locked above.
            unsafe { lock.unlock() };
            sleep(Duration::from_millis(1));
        }
    };
    scope(|threads| {
        for _ in 0..WAITERS {
            threads.spawn(take_turns);
        }
        let read = io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
        Ok(read.map(drop)?)
    })
}
