//! The span of a thread from one event to the next: how long it was, and how much of it the thread
//! ran. The module of [`events`](super::events) says when the kernel is asked for that.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::{sys, ticks};

/// A span that is longer may have been interrupted: twice what a switch to another thread and back
/// takes at the least, and some hundred times less than a slice.
pub(super) const LONG_NS: u64 = 5_000;

/// A span of whose time the thread ran all but less than this was not interrupted: the two clocks
/// are not read at once, and leaving a CPU and coming back takes longer.
const LEAST_OFF_NS: u64 = 2_000;

/// The times of a thread; `shim.c` has the same, as words. All zero at first.
#[repr(C)]
pub(crate) struct Span {
    /// The time of the last event, in ticks.
    pub(super) last: AtomicU64,
    /// The time when the thread went on from there: that of the event, or when the kernel had been
    /// asked.
    pub(super) began: AtomicU64,
    /// The time that the thread had run when the kernel was asked last, in nanoseconds.
    ran_ns: AtomicU64,
    /// The ticks of that asking and of all spans after it that were too short to ask.
    short: AtomicU64,
    /// The number of times that the thread had left the CPU of its own accord when the kernel was
    /// asked last.
    left: AtomicU32,
    /// Whether the last event begins a wait: then the span is no work, whatever it was.
    pub(super) waits: AtomicU32,
    /// How many events are left until one is timed.
    pub(super) untimed: AtomicU32,
    _padding: u32,
}

/// The answer of the kernel at the end of a span.
pub(super) enum Asked {
    Nothing,
    /// The kernel was asked, and the thread had its CPU all the time, as far as is known.
    Idly,
    /// The time that the thread ran, in nanoseconds, and how often it left the CPU of its own
    /// accord.
    Ran(u64, u32),
}

impl Span {
    /// Whether no event was written yet.
    pub(super) fn is_first(&self) -> bool {
        self.last.load(Relaxed) == 0
    }

    /// The span that began with the event before ends, and if nothing is asked, the next begins.
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

    /// Begins the next span, after the kernel was asked. Returns how many ticks that took. If it
    /// took so long that others may have had the CPU, the span has begun before, and the kernel
    /// will tell: `None`.
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

    /// Asks the kernel; `None` if it doesn't say.
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

/// The time that the calling thread has run, in nanoseconds.
fn ran_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let args = [libc::CLOCK_THREAD_CPUTIME_ID as usize, (&raw mut time) as usize, 0, 0];
    // SAFETY: the kernel writes the structure, which is there for the call.
    unsafe { sys::call(libc::SYS_clock_gettime, args) }?;
    Some(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

/// The number of times that the calling thread has left its CPU of its own accord.
fn left_cpu() -> Option<u32> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let args = [libc::RUSAGE_THREAD as usize, usage.as_mut_ptr() as usize, 0, 0];
    // SAFETY: the kernel writes the structure, which is there for the call.
    unsafe { sys::call(libc::SYS_getrusage, args) }?;
    // SAFETY: written above, and zero is a value of all fields.
    Some(unsafe { usage.assume_init() }.ru_nvcsw as u32)
}
