//! Detection of crowding, which makes spinning useless: `hint`, `crowded` and `roomy`.
//!
//! Four signs, none of which needs privilege; any of them means "crowded":
//!
//! - `spinners`: one more spinner leaves no CPU for the thread that is waited for. Spinners count
//!   themselves, at the cost of an atomic add at the beginning and the end of a spin.
//! - `preempted`: a waiter of this process lost its CPU while it spun, in the last 10 ms. Detected
//!   by gaps in its readings of the time-stamp counter ([`crate::spin`]), at no extra cost.
//! - `switched`: the calling thread lost its CPU, and an eighth of its time with it (unless it
//!   slept too: then the cause is not known). Read by `getrusage`, at most every 4 ms.
//! - `coming up`: more threads were woken by one call than there are CPUs, so short a time ago that
//!   not all of them can have had one.
//!
//! Accuracy of the first three: the share of "yes" among the answers after each spin of 20 µs. One
//! thread of the process computes all the time, and the second column says what the waiters do
//! between two spins. "Had" is the share of a CPU that each waiter got: near 100 % in the rows
//! where `no` is the right answer.
//!
//! | neighbours | waiters, between two spins | spinners | preempted | switched | any | had |
//! |---|---|---|---|---|---|---|
//! | 0 | 1, nothing | 0 % | 7 to 9 % | 3 to 12 % | 8 to 14 % | 89 to 97 % |
//! | 0 | 1, work for 200 µs | 0 % | 0 to 2 % | 8 to 13 % | 8 to 13 % | 90 to 92 % |
//! | 0 | 1, sleep for 50 µs | 0 % | 0 % | 1 to 4 % | 1 to 4 % | 26 % |
//! | 0 | 3, nothing | 77 % | 91 % | 95 % | 100 % | 48 % |
//! | 0 | 3, work for 200 µs | 8 % | 11 % | 100 % | 100 % | 47 % |
//! | 0 | 3, sleep for 50 µs | 19 % | 12 % | 5 % | 31 % | 22 % |
//! | 2 | 1, nothing | 0 % | 65 % | 100 % | 100 % | 50 % |
//! | 2 | 1, work for 200 µs | 0 % | 0 % | 98 % | 98 % | 49 % |
//! | 2 | 1, sleep for 50 µs | 0 % | 9 % | 5 % | 10 % | 26 % |
//! | 8 | 1, nothing | 0 % | 50 % | 97 % | 98 % | 19 % |
//! | 8 | 1, work for 200 µs | 0 % | 0 % | 100 % | 100 % | 19 % |
//! | 8 | 1, sleep for 50 µs | 0 % | 0 % | 0 % | 0 % | 13 % |
//!
//! 2026-11-20, 2 virtual AMD EPYC CPUs, Linux 6.18.44, glibc 2.36: `cargo run --release -p
//! antiphon-linux --example crowded`, in a session of autogroup nice −20, as other work shared the
//! machine (which used up to a quarter of a CPU in the first two rows). Ranges are over three runs;
//! the other rows are single runs. `crowded()` took 22 ns there, and both hints of a spin 11 ns.
//!
//! With the fourth sign, repeated broadcasts to 8 waiters take 1.0 times as long as with
//! `pthread_cond_broadcast` until all are awake, and to 64 waiters 1.0 to 1.1 times; without it,
//! 2.4 and 2.7 times, because each woken waiter spins on the CPU that the next one needs (`antiphon
//! bench events --case broadcast-8,broadcast-64 --subject broadcast --against pthread-cond`,
//! 2026-11-22, 2 virtual Intel Xeon CPUs).
//!
//! A thread whose sections the scheduler of `antiphon sched` heeds is told whether threads wait for
//! a CPU, and needs no signs but the first.
//!
//! In summary, about one answer in ten is a false alarm, and there are hardly any misses where
//! waiters or workers use up their CPUs. No sign covers the rows of sleepers with neighbours: a
//! thread that mostly sleeps gets its CPU at once when it wakes, while the holder, which computes,
//! loses its own; and only the kernel knows of the holder's losses.
//!
//! Tried and dropped: gaps of 15 to 200 µs (the timer tick and the kernel's own threads cause some
//! 350 and 20 of them a second on an idle machine), and involuntary switches regardless of the time
//! that they cost (up to 39 % false alarms, for the same reason).

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Hint;

use crate::identity::process;
use crate::local::{self, Thread};
use crate::{cpus, fiber, pretend, random, rank, section, sleep, sys, tsc};

/// The time for which a lost CPU counts.
const RECENT_NS: u32 = 10_000_000;
/// The shortest time between two counts of a thread's switches, and the time for which a count is
/// valid.
const COUNT_EVERY_NS: u32 = 4_000_000;
const COUNT_GOOD_FOR_NS: u32 = 50_000_000;
/// A thread that has not slept counts as crowded if it lost more than one part in `LOSS` of its
/// time.
const LOSS: u64 = 8;

/// The signals behind [`crowded`](antiphon_platform::Hints::crowded), for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowding {
    /// The caller, if it spins, leaves no CPU for the thread that it waits for.
    pub spinners: bool,
    /// A spinning waiter of this process has lost its CPU lately.
    pub preempted: bool,
    /// The kernel has taken the CPU from the calling thread lately.
    pub switched: bool,
    /// More threads than CPUs were woken at once, and some of them can't be up yet.
    pub coming_up: bool,
}

/// The current signals. Does not block.
#[must_use]
pub fn crowding() -> Crowding {
    Crowding {
        spinners: too_many_spinners(1),
        preempted: lately_preempted(),
        switched: lately_switched(),
        coming_up: many_come_up(),
    }
}

/// See [`Hints::hint`](antiphon_platform::Hints::hint).
pub(crate) fn hint(hint: Hint) {
    let step = match hint {
        Hint::SpinBegin => {
            section::wait_begins();
            1
        }
        Hint::SpinEnd => -1,
        Hint::Owns => return,
        Hint::SectionBegin => return section::begin(),
        Hint::SectionEnd => return section::end(),
        Hint::Released => return section::released(),
        Hint::LooksAgain { at_ns } => return fiber::looks_again(at_ns),
    };
    // No need for one instruction: a signal handler in between ends the spins that it begins.
    local::with(|thread| thread.spins.store(thread.spins.load(Relaxed) + step, Relaxed));
    process().spinners.fetch_add(step, Relaxed);
}

/// See [`Hints::crowded`](antiphon_platform::Hints::crowded).
pub(crate) fn crowded() -> bool {
    are_short_of_cpus(1)
}

/// See [`Hints::roomy`](antiphon_platform::Hints::roomy).
pub(crate) fn roomy() -> bool {
    !are_short_of_cpus(2)
}

/// Returns whether threads lack CPUs, or would lack them with `more` threads besides the spinners.
fn are_short_of_cpus(more: u32) -> bool {
    if let Some(machine) = pretend::machine() {
        let one_in = u32::from(machine.crowded_one_in);
        return too_many_spinners(more) || one_in != 0 && random::next().is_multiple_of(one_in);
    }
    if let Some(wait) = section::threads_wait() {
        return wait || too_many_spinners(more);
    }
    too_many_spinners(more) || lately_preempted() || many_come_up() || lately_switched()
}

/// Notes that a spinning waiter lost its CPU at `now`.
#[cold]
pub(crate) fn preempted(now: u64) {
    process().preempted.store(now, Relaxed);
}

/// Calls `wake`, which wakes up to `count` threads at once, and returns the number that it has
/// woken. If there are more of these than CPUs, this is remembered until all of them can be up.
pub(crate) fn wake_many(count: u32, wake: impl FnOnce() -> u32) -> u32 {
    let cpus = cpus::available();
    if count <= cpus {
        return wake();
    }
    let coming_up = |ns| process().coming_up.store(tsc::ticks() + tsc::from_ns(ns), Relaxed);
    // Woken threads may wait again before the others have been woken.
    coming_up(RECENT_NS);
    let woken = wake();
    coming_up(up_within(woken, cpus, sleep::cost_ns()));
    woken
}

/// The time in nanoseconds until `woken` threads that were woken at once are up, if it takes one of
/// them `cost_ns`; 0 if each has a CPU of its own.
fn up_within(woken: u32, cpus: u32, cost_ns: u32) -> u32 {
    // Before the next thread on its CPU, each thread runs for as long as its wake took.
    let rounds = if woken > cpus { woken / cpus } else { 0 };
    rounds.saturating_mul(2 * cost_ns).min(RECENT_NS)
}

fn many_come_up() -> bool {
    is_ahead(process().coming_up.load(Relaxed), tsc::ticks())
}

/// Returns whether `until`, 0 for never, is in the future, and not stale from a counter that went
/// back.
fn is_ahead(until: u64, now: u64) -> bool {
    let left = if until == 0 { 0 } else { tsc::since(now, until) };
    left > 0 && left <= tsc::from_ns(RECENT_NS)
}

/// Returns whether there are too few CPUs for the spinners, including the caller, and `more`
/// running threads.
fn too_many_spinners(more: u32) -> bool {
    let own = local::with(|thread| thread.spins.load(Relaxed)).max(0);
    // At least zero: in the child of a fork, the missing threads of the parent could make the count
    // negative.
    let others = process().spinners.load(Relaxed).saturating_sub(own).max(0);
    others.cast_unsigned() + more >= cpus::available()
}

fn lately_preempted() -> bool {
    is_recent(process().preempted.load(Relaxed), tsc::ticks())
}

/// Returns whether an event at `last`, 0 for never, still counts at `now`.
fn is_recent(last: u64, now: u64) -> bool {
    last != 0 && tsc::since(last, now) < tsc::from_ns(RECENT_NS)
}

fn lately_switched() -> bool {
    local::with(|thread| {
        let now = tsc::ticks();
        let age = tsc::since(thread.counted_at.load(Relaxed), now);
        if age >= tsc::from_ns(COUNT_EVERY_NS) {
            count_switches(thread, now, age);
        }
        thread.switched.load(Relaxed) != 0
    })
}

#[cold]
fn count_switches(thread: &Thread, now: u64, age: u64) {
    thread.counted_at.store(now, Relaxed);
    rank::look();
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    let args = [libc::RUSAGE_THREAD as usize, usage.as_mut_ptr() as usize];
    // SAFETY: the kernel fills in a `rusage`, which is a local.
    if unsafe { sys::call(libc::SYS_getrusage, args) }.is_err() {
        return;
    }
    // SAFETY: it was zeroed and then filled; any bytes are a valid `rusage`.
    let usage = unsafe { usage.assume_init() };
    let ran = microseconds(usage.ru_utime).wrapping_add(microseconds(usage.ru_stime));
    let (taken, given) = (usage.ru_nivcsw as u32, usage.ru_nvcsw as u32);
    let ran = ran.wrapping_sub(thread.ran_us.swap(ran, Relaxed));
    let taken = taken.wrapping_sub(thread.taken.swap(taken, Relaxed));
    let given = given.wrapping_sub(thread.given.swap(given, Relaxed));
    let switched = age < tsc::from_ns(COUNT_GOOD_FOR_NS)
        && taken > 0
        // For a thread that has also slept, it is unknown how long it was without its CPU.
        && (given > 0 || tsc::from_ns(ran.saturating_mul(1000)) < age - age / LOSS);
    thread.switched.store(u32::from(switched), Relaxed);
}

fn microseconds(time: libc::timeval) -> u32 {
    // The low 32 bits, an hour, are enough for a difference.
    (time.tv_sec as u32).wrapping_mul(1_000_000).wrapping_add(time.tv_usec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn two_cpus_are_never_roomy() {
        assert!(!roomy() || cpus::available() > 2);
        assert!(!(roomy() && crowded()), "a spinner more makes no room");
    }

    #[test]
    fn as_many_spinners_as_cpus_are_too_many() {
        let own_spin_does_not_count = |expected| {
            hint(Hint::SpinBegin);
            assert_eq!(too_many_spinners(1), expected);
            hint(Hint::SpinEnd);
            assert_eq!(too_many_spinners(1), expected);
        };
        own_spin_does_not_count(cpus::available() == 1);
        let others = cpus::available() as usize;
        let (begun, over) = (Barrier::new(others + 1), Barrier::new(others + 1));
        std::thread::scope(|scope| {
            for _ in 0..others {
                scope.spawn(|| {
                    hint(Hint::SpinBegin);
                    begun.wait();
                    over.wait();
                    hint(Hint::SpinEnd);
                });
            }
            begun.wait();
            own_spin_does_not_count(true);
            over.wait();
        });
        own_spin_does_not_count(cpus::available() == 1);
    }

    #[test]
    fn more_than_there_are_cpus_for_come_up_in_turns() {
        assert_eq!([0, 1, 2].map(|woken| up_within(woken, 2, 5_000)), [0, 0, 0]);
        assert_eq!(up_within(8, 2, 5_000), 40_000);
        assert_eq!(up_within(u32::MAX, 1, 20_000), RECENT_NS);
    }

    #[test]
    fn what_is_to_come_is_ahead_for_a_while() {
        let window = tsc::from_ns(RECENT_NS);
        assert!(is_ahead(9 + window, 9) && is_ahead(10, 9));
        assert!(!is_ahead(9, 9) && !is_ahead(9, 10));
        assert!(!is_ahead(10 + window, 9), "the counter went back");
        assert!(!is_ahead(0, u64::MAX), "never is not ahead");
    }

    #[test]
    fn whoever_is_woken_is_counted() {
        let many = 100 * cpus::available();
        assert_eq!([1, many].map(|count| wake_many(count, || count)), [1, many]);
    }

    #[test]
    fn a_lost_cpu_counts_for_a_while() {
        let window = tsc::from_ns(RECENT_NS);
        assert!(is_recent(5, 5 + window / 2));
        assert!(!is_recent(5, 5 + 2 * window));
        assert!(!is_recent(0, window / 2), "never is not recent");
    }
}
