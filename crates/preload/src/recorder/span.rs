//! The span of a thread from one event to the next: its length, and the CPU time in it. The module
//! [`events`](super::events) says when the kernel is asked for that.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::{sys, ticks};

/// A longer span may have been interrupted: twice the shortest time of a switch to another thread
/// and back, and some hundred times less than a time slice.
pub(super) const LONG_NS: u64 = 5_000;

/// If the span exceeds its CPU time by less than this, it was not interrupted: the two clocks are
/// not read at the same instant, and leaving a CPU and coming back takes longer.
const LEAST_OFF_NS: u64 = 2_000;

/// The times of a thread; `shim.c` has the same size, as words. All zero at first.
#[repr(C)]
pub(crate) struct Span {
    /// The time of the last event, in ticks.
    pub(super) last: AtomicU64,
    /// The time when the span began: that of the event or, if the kernel was asked, the end of that
    /// query.
    pub(super) began: AtomicU64,
    /// CPU time of the thread at the last query, in nanoseconds.
    ran_ns: AtomicU64,
    /// The ticks of that query and of all spans after it that were too short for another.
    short: AtomicU64,
    /// The thread's number of voluntary context switches at the last query.
    left: AtomicU32,
    /// Whether the last event begins a wait: then the CPU time of the span doesn't matter.
    pub(super) waits: AtomicU32,
    /// Number of events until the next one that is timed.
    pub(super) untimed: AtomicU32,
    _padding: u32,
}

/// The answer of the kernel at the end of a span.
pub(super) enum Asked {
    Nothing,
    /// The kernel was asked, and as far as is known the thread had its CPU all the time.
    Idly,
    /// CPU time of the thread in nanoseconds, and its number of voluntary context switches.
    Ran(u64, u32),
}

impl Span {
    /// Returns whether no event was written yet.
    pub(super) fn is_first(&self) -> bool {
        self.last.load(Relaxed) == 0
    }

    /// Ends the span that began with the last event. If the kernel is not asked, the next span
    /// begins.
    #[inline]
    pub(super) fn ends(&self, now: u64) -> Asked {
        let first = self.is_first();
        let ticks = now.saturating_sub(self.began.load(Relaxed));
        self.last.store(now, Relaxed);
        self.began.store(now, Relaxed);
        if !first && ticks::to_ns(ticks) < LONG_NS {
            self.is_short(ticks);
            return Asked::Nothing;
        }
        let ran = self.ask(ticks::to_ns(ticks)).filter(|_| !first);
        ran.map_or(Asked::Idly, |(ns, left)| Asked::Ran(ns, left))
    }

    /// Begins the next span, after the kernel was asked. Returns the ticks that the query took;
    /// `None` if it took so long that other threads may have had the CPU. Then the query is part of
    /// the span, for which the kernel will be asked.
    pub(super) fn begins(&self, now: u64) -> Option<u64> {
        let ticks = now.saturating_sub(self.last.load(Relaxed));
        if ticks::to_ns(ticks) >= LONG_NS {
            return None;
        }
        self.began.store(now, Relaxed);
        self.is_short(ticks);
        Some(ticks)
    }

    fn is_short(&self, ticks: u64) {
        self.short.store(self.short.load(Relaxed).wrapping_add(ticks), Relaxed);
    }

    /// Asks the kernel; `None` if it doesn't answer.
    #[cold]
    fn ask(&self, span_ns: u64) -> Option<(u64, u32)> {
        let ran_ns = ran_ns()?;
        let known_ns = self.ran_ns.swap(ran_ns, Relaxed);
        let short_ns = ticks::to_ns(self.short.swap(0, Relaxed));
        let here_ns = ran_ns.saturating_sub(known_ns).saturating_sub(short_ns);
        if here_ns.saturating_add(LEAST_OFF_NS) > span_ns {
            return None;
        }
        let left = left_cpu()?;
        Some((here_ns, left.wrapping_sub(self.left.swap(left, Relaxed))))
    }
}

/// CPU time of the calling thread, in nanoseconds.
fn ran_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let args = [libc::CLOCK_THREAD_CPUTIME_ID as usize, (&raw mut time) as usize, 0, 0];
    // SAFETY: the kernel writes the structure, which lives for the call.
    unsafe { sys::call(libc::SYS_clock_gettime, args) }?;
    Some(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

/// Number of voluntary context switches of the calling thread.
fn left_cpu() -> Option<u32> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let args = [libc::RUSAGE_THREAD as usize, usage.as_mut_ptr() as usize, 0, 0];
    // SAFETY: the kernel writes the structure, which lives for the call.
    unsafe { sys::call(libc::SYS_getrusage, args) }?;
    // SAFETY: written above, and zero is valid for all fields.
    Some(unsafe { usage.assume_init() }.ru_nvcsw as u32)
}
