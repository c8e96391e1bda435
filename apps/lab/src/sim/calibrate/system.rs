//! The costs of the operating system: switches, sleeps, wakes, and fences on other CPUs.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use antiphon_linux::ticks;
use antiphon_report::failure::Failure;

use crate::pinned::{Figure, Switches, on_each};
use crate::ticks::Ticks;

/// Idle times of CPUs before they are woken, in nanoseconds.
pub const IDLE_NS: [f64; 4] = [20e3, 100e3, 500e3, 2e6];

/// The measured costs, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct System {
    /// Time to switch from one thread of a CPU to another.
    pub switch: Option<Figure>,
    /// A yield of a thread whose CPU no other thread wants.
    pub lone_yield: Option<Figure>,
    /// A hand-over by two futex calls between threads of one CPU: a wake, a sleep and a switch.
    pub hand_over: Option<Figure>,
    /// A refused sleep: the cost of the call alone.
    pub refused: Option<Figure>,
    /// The cost of a wake to the waker.
    pub wake: Option<Figure>,
    /// Time from the wake's return to the woken thread's first instruction, by the idle time of its
    /// CPU.
    pub latency: Vec<Option<Figure>>,
    /// Time for which a thread keeps a CPU that another thread wants.
    pub slice: Option<Figure>,
    /// A heavy fence, per running CPU.
    pub membarrier: Option<Figure>,
}

fn futex(word: &AtomicU32, operation: i32, value: u32) -> i64 {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    let none = std::ptr::null::<libc::timespec>();
    // SAFETY: the word outlives the call, which only reads it; no timeout or second word is passed.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, none) }
}

/// Sleeps while `word` is `value`.
fn sleep_while(word: &AtomicU32, value: u32) {
    // Acquire: pairs with the Release of the thread that changes the word.
    while word.load(Acquire) == value {
        futex(word, libc::FUTEX_WAIT, value);
    }
}

fn wake(word: &AtomicU32) -> bool {
    futex(word, libc::FUTEX_WAKE, 1) == 1
}

/// Measures on the CPUs of `places`, which are two or one.
///
/// # Errors
///
/// If one of the CPUs can't be used.
pub fn measure(watch: Ticks, places: &[usize], windows: usize) -> Result<System, Failure> {
    let here = places[0];
    let mut system = System {
        switch: switch(watch, here, windows)?,
        hand_over: hand_over(watch, here, windows)?,
        lone_yield: calls(watch, here, windows, |_| std::thread::yield_now())?,
        // No thread changes the word, so a sleep that expects another value is refused.
        refused: calls(watch, here, windows, |word| _ = futex(word, libc::FUTEX_WAIT, 1))?,
        slice: slice(watch, here, windows)?,
        membarrier: membarrier(watch, places, windows)?,
        ..System::default()
    };
    if let &[waker, sleeper, ..] = places {
        for idle_ns in IDLE_NS {
            let times = (windows / 4).max(16);
            let (wake, latency) = wakes(watch, (waker, sleeper), idle_ns, times)?;
            system.wake = system.wake.or(wake);
            system.latency.push(latency);
        }
    }
    Ok(system)
}

/// Two threads of one CPU yield to each other. The kernel counts the switches.
fn switch(watch: Ticks, place: usize, windows: usize) -> Result<Option<Figure>, Failure> {
    const YIELDS: u32 = 50;
    let stop = AtomicBool::new(false);
    let seen = on_each(&[place; 2], |number| {
        if number == 1 {
            while !stop.load(Relaxed) {
                std::thread::yield_now();
            }
            return Vec::new();
        }
        let window = |_| {
            let (before, begin) = (Switches::now(), ticks());
            for _ in 0..YIELDS {
                std::thread::yield_now();
            }
            let ns = watch.ns(begin, ticks());
            let switches = Switches::now().preempted - before.preempted;
            // Away and back again is two switches. A yield without a taker does not switch; a few
            // of these are acceptable.
            (switches > YIELDS as u64 / 2).then(|| ns / (2 * switches) as f64)
        };
        let seen: Vec<_> = (0..windows).map(window).collect();
        stop.store(true, Relaxed);
        seen
    })?;
    Ok(Figure::of(&seen[0]))
}

/// Two threads of one CPU wake each other and sleep.
fn hand_over(watch: Ticks, place: usize, windows: usize) -> Result<Option<Figure>, Failure> {
    const TRIPS: u32 = 20;
    let turn = AtomicU32::new(0);
    let seen = on_each(&[place; 2], |number| {
        let me = number as u32;
        let trip = || {
            sleep_while(&turn, 1 - me);
            // Release: pairs with the Acquire in `sleep_while`.
            turn.store(1 - me, Release);
            wake(&turn);
        };
        let window = |_| {
            let begin = ticks();
            (0..TRIPS).for_each(|_| trip());
            Some(watch.ns(begin, ticks()) / f64::from(2 * TRIPS))
        };
        (0..windows).map(window).collect::<Vec<_>>()
    })?;
    Ok(Figure::of(&seen[0]))
}

/// One thread repeats a system call; the word that it passes is 0.
fn calls(
    watch: Ticks,
    place: usize,
    windows: usize,
    call: impl Fn(&AtomicU32) + Sync,
) -> Result<Option<Figure>, Failure> {
    const CALLS: u32 = 50;
    let seen = on_each(&[place], |_| {
        let word = AtomicU32::new(0);
        let window = |_| {
            let calls = || (0..CALLS).for_each(|_| call(&word));
            watch.undisturbed(calls).map(|ns| ns / f64::from(CALLS))
        };
        (0..windows).map(window).collect::<Vec<_>>()
    })?;
    Ok(Figure::of(&seen[0]))
}

/// A thread sleeps for `idle_ns` on another CPU, and is woken. Returns the cost to the waker, and
/// the latency from then on.
fn wakes(
    watch: Ticks,
    (waker, sleeper): (usize, usize),
    idle_ns: f64,
    times: usize,
) -> Result<(Option<Figure>, Option<Figure>), Failure> {
    let shared = Wakes::default();
    let seen = on_each(&[waker, sleeper], |number| {
        let rounds = 0..times as u32;
        if number == 1 {
            rounds.for_each(|round| shared.sleep(round));
            return Vec::new();
        }
        rounds.map(|round| shared.wake(watch, round, idle_ns)).collect()
    })?;
    let of = |which: fn(&(f64, f64)) -> f64| {
        Figure::of(&seen[0].iter().map(|one| one.as_ref().map(which)).collect::<Vec<_>>())
    };
    Ok((of(|one| one.0), of(|one| one.1)))
}

/// A thread that sleeps, and one that wakes it, in rounds.
#[derive(Default)]
struct Wakes {
    /// Last round of the sleeper.
    sleeps: AtomicU32,
    /// Last round of the waker.
    woken: AtomicU32,
    /// Time at which the sleeper was back, in ticks; 0 before.
    back: AtomicU64,
}

impl Wakes {
    fn sleep(&self, round: u32) {
        self.sleeps.store(round + 1, Release);
        sleep_while(&self.woken, round);
        self.back.store(ticks().max(1), Release);
    }

    /// Returns the cost of the wake, and the latency after it. `None` if no thread slept, or this
    /// thread lost its CPU.
    fn wake(&self, watch: Ticks, round: u32, idle_ns: f64) -> Option<(f64, f64)> {
        // Acquire: pairs with the Releases of the sleeper, here and below.
        while self.sleeps.load(Acquire) != round + 1 {
            std::hint::spin_loop();
        }
        let since = ticks();
        while watch.ns(since, ticks()) < idle_ns {
            std::hint::spin_loop();
        }
        self.back.store(0, Relaxed);
        let before = Switches::now();
        let begin = ticks();
        // Release: pairs with `sleep_while`; the cleared `back` is ordered before.
        self.woken.store(round + 1, Release);
        let slept = wake(&self.woken);
        let end = ticks();
        let back = loop {
            match self.back.load(Acquire) {
                0 => std::hint::spin_loop(),
                back => break back,
            }
        };
        let undisturbed = Switches::now() == before;
        (slept && undisturbed).then(|| (watch.ns(begin, end), watch.ns(end, back)))
    }
}

/// Two threads of one CPU compute: each sees a gap while the other runs.
fn slice(watch: Ticks, place: usize, windows: usize) -> Result<Option<Figure>, Failure> {
    /// Shorter gaps are interrupts.
    const GAP_NS: f64 = 200e3;
    let long_ns = windows as f64 * 1e6;
    let seen = on_each(&[place; 2], |_| {
        let begin = ticks();
        let (mut last, mut gaps) = (begin, Vec::new());
        while watch.ns(begin, last) < long_ns {
            let now = ticks();
            let gap_ns = watch.ns(last, now);
            if gap_ns > GAP_NS {
                gaps.push(Some(gap_ns));
            }
            last = now;
        }
        gaps
    })?;
    Ok(Figure::of(&seen.concat()))
}

/// Measures a heavy fence while threads of this process run on all of `places`.
fn membarrier(watch: Ticks, places: &[usize], windows: usize) -> Result<Option<Figure>, Failure> {
    const REGISTER: i32 = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    const FENCE: i32 = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    // SAFETY: the call takes no pointers.
    let command = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0;
    if !command(REGISTER) {
        return Ok(None);
    }
    let stop = AtomicBool::new(false);
    let seen = on_each(places, |number| {
        if number > 0 {
            while !stop.load(Relaxed) {
                std::hint::spin_loop();
            }
            return Vec::new();
        }
        let window = |_| {
            let mut done = true;
            let ns = watch.undisturbed(|| done = command(FENCE));
            ns.filter(|_| done).map(|ns| ns / places.len() as f64)
        };
        let seen = (0..windows).map(window).collect();
        stop.store(true, Relaxed);
        seen
    })?;
    Ok(Figure::of(&seen[0]))
}
