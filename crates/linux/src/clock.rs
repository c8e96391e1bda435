//! Clocks: the kernel's, which the vDSO tells without a system call, and those that a program sees.
//!
//! A library may stand between a program and its clocks (libfaketime, datefudge, a test's own).
//! Nothing in here is its business: budgets, naps and recorded times go by the kernel's clocks,
//! which are looked up in the vDSO itself. `clock_gettime` of the C library would be whatever
//! stands in front of it, may stand still, and never let a spin end.
//!
//! A program's deadlines are times of the clocks that it sees. A caller that knows
//! these to differ says how they are read ([`see_clocks_by`]); a wait until
//! [`Clock::SeenMonotonic`] or [`Clock::SeenRealtime`] is then slept in [`Slices`].

use core::ffi::{c_int, c_void};
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Clock, Deadline};

use crate::{image, sys};

/// The vDSO's function; null is not looked for yet.
static READ: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// How the program's clocks are read; null is as the kernel's.
static SEEN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

type Read = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;
type Seen = fn(Clock) -> u64;

/// There is no vDSO, or it has no clock.
fn none() -> *mut c_void {
    without_provenance_mut(1)
}

/// Nanoseconds of `clock`; 0 if it can't be read or stands before its zero.
pub(crate) fn now(clock: Clock) -> u64 {
    match clock {
        Clock::Monotonic => read(libc::CLOCK_MONOTONIC),
        Clock::Realtime => read(libc::CLOCK_REALTIME),
        Clock::SeenMonotonic => seen(clock, libc::CLOCK_MONOTONIC),
        Clock::SeenRealtime => seen(clock, libc::CLOCK_REALTIME),
    }
}

/// From now on the clocks that the program sees are what `now` says: nanoseconds of `SeenMonotonic`
/// and `SeenRealtime`. It is called in waits, and must leave `errno` alone.
pub fn see_clocks_by(now: fn(Clock) -> u64) {
    // Relaxed: it is code.
    SEEN.store(now as *mut c_void, Relaxed);
}

fn seen(clock: Clock, id: libc::clockid_t) -> u64 {
    let now = SEEN.load(Relaxed);
    if now.is_null() {
        return read(id);
    }
    // SAFETY: `see_clocks_by` has stored a function of that type.
    let now = unsafe { core::mem::transmute::<*mut c_void, Seen>(now) };
    now(clock)
}

/// Reads a clock of the kernel's.
fn read(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut function = READ.load(Relaxed);
    if function.is_null() {
        function = find();
    }
    let told = function != none() && {
        // SAFETY: the vDSO's function of that name, which has this type.
        let function = unsafe { core::mem::transmute::<*mut c_void, Read>(function) };
        // SAFETY: `time` is ours to write.
        unsafe { function(id, &raw mut time) == 0 }
    };
    if !told {
        ask(id, &mut time);
    }
    nanoseconds(&time)
}

/// The CPU time of the calling thread, which the kernel alone knows.
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let args = [libc::CLOCK_THREAD_CPUTIME_ID as usize, (&raw mut time) as usize];
    // SAFETY: the time is ours to write. Each thread has this clock; refused, it stays zero.
    let _ = unsafe { sys::call(libc::SYS_clock_gettime, args) };
    nanoseconds(&time)
}

#[cold]
#[inline(never)]
fn ask(id: libc::clockid_t, time: &mut libc::timespec) {
    let args = [id as usize, core::ptr::from_mut(time) as usize];
    // SAFETY: the time is ours to write. All these clocks exist on every Linux; if a filter refuses
    // the call, the time stays zero.
    let _ = unsafe { sys::needed(libc::SYS_clock_gettime, args) };
}

/// From now on the kernel is asked each time: what the vDSO reads is forbidden.
pub(crate) fn ask_kernel() {
    READ.store(none(), Relaxed);
}

/// Looks into the vDSO. Racing threads find the same.
#[cold]
#[inline(never)]
fn find() -> *mut c_void {
    let name = if cfg!(target_arch = "aarch64") {
        c"__kernel_clock_gettime"
    } else {
        c"__vdso_clock_gettime"
    };
    let found = image::vdso().and_then(|vdso| vdso.find(name));
    let function = found.map_or(none(), core::ptr::with_exposed_provenance_mut);
    READ.store(function, Relaxed);
    function
}

fn nanoseconds(time: &libc::timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// A time of `ns` nanoseconds after a clock's zero, as the kernel takes it.
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

/// The longest slice: a jump of the clock is noticed after this time at the latest.
const SLICE_NS: u64 = 50_000_000;
/// How long the first slice is at most, by which the pace of the clock is learned.
const FIRST_NS: u64 = 1_000_000;

/// A wait until a time of a clock that the program sees and the kernel doesn't: cut into sleeps by
/// the kernel's monotonic clock, and between them the program's clock is asked. How fast that goes
/// is seen from slice to slice; so a clock that goes ten times as fast is met in time.
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    deadline: Deadline,
    /// The program's clock and ours when they were read last.
    asked: Option<(u64, u64)>,
}

impl Slices {
    /// A wait until `deadline`.
    #[must_use]
    pub fn new(deadline: Deadline) -> Self {
        Self { deadline, asked: None }
    }

    /// Until when the next slice is, in nanoseconds of the kernel's monotonic clock. `None`: the
    /// deadline has passed.
    pub fn next_ns(&mut self) -> Option<u64> {
        self.after(now(self.deadline.clock), now(Clock::Monotonic))
    }

    fn after(&mut self, seen_ns: u64, now_ns: u64) -> Option<u64> {
        let left_ns = self.deadline.ns.checked_sub(seen_ns).filter(|&ns| ns > 0)?;
        let slice_ns = match self.asked.replace((seen_ns, now_ns)) {
            None => left_ns.min(FIRST_NS),
            Some((then_seen, then)) => {
                let (seen, passed) = (seen_ns.saturating_sub(then_seen), now_ns - then);
                let scaled = u128::from(left_ns) * u128::from(passed);
                // A clock that stands still, or was set back, is asked now and then.
                let ns = scaled.checked_div(u128::from(seen)).unwrap_or(u128::MAX);
                u64::try_from(ns).unwrap_or(u64::MAX).clamp(FIRST_NS / 10, SLICE_NS)
            }
        };
        Some(now_ns.saturating_add(slice_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_go_back() {
        let first = now(Clock::Monotonic);
        assert!(first > 0 && now(Clock::Monotonic) >= first);
    }

    #[test]
    fn clocks_are_the_c_librarys_where_nothing_stands_in_front_of_it() {
        let theirs = |id| {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the time is ours to write.
            assert_eq!(unsafe { libc::clock_gettime(id, &raw mut time) }, 0);
            nanoseconds(&time)
        };
        for (clock, seen, id) in [
            (Clock::Monotonic, Clock::SeenMonotonic, libc::CLOCK_MONOTONIC),
            (Clock::Realtime, Clock::SeenRealtime, libc::CLOCK_REALTIME),
        ] {
            let times = [theirs(id), now(clock), now(seen), theirs(id)];
            assert!(times.is_sorted(), "{times:?}");
        }
        let mut asked = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        ask(libc::CLOCK_MONOTONIC, &mut asked);
        assert!(nanoseconds(&asked) <= now(Clock::Monotonic));
    }

    #[test]
    fn a_timespec_holds_what_it_is_made_of() {
        let time = timespec(3_000_000_007);
        assert_eq!((time.tv_sec, time.tv_nsec), (3, 7));
    }

    /// How long a wait of `left_ns` takes by the kernel's clock, if the program's goes at that
    /// pace, in percent; and in how many slices.
    fn waits(left_ns: u64, percent: u64) -> (u64, u32) {
        let mut slices = Slices::new(Deadline { clock: Clock::SeenRealtime, ns: 7 + left_ns });
        let (mut now_ns, mut count) = (100, 0);
        while let Some(until) = slices.after(7 + (now_ns - 100) * percent / 100, now_ns) {
            assert!(until > now_ns && until - now_ns <= SLICE_NS);
            (now_ns, count) = (until, count + 1);
        }
        (now_ns - 100, count)
    }

    #[test]
    fn a_wait_ends_when_the_programs_clock_says_so() {
        for percent in [1, 50, 100, 1_000, 10_000] {
            let right_ns = 1_000_000_000 * 100 / percent;
            let (took_ns, count) = waits(1_000_000_000, percent);
            assert!(took_ns >= right_ns && took_ns <= right_ns + right_ns / 10, "{took_ns}");
            assert!(u64::from(count) <= right_ns / SLICE_NS + 5, "{count}");
        }
        assert_eq!(waits(0, 100), (0, 0));
    }

    #[test]
    fn a_clock_that_stands_still_is_asked_again_and_one_that_jumps_is_believed() {
        let mut slices = Slices::new(Deadline { clock: Clock::SeenMonotonic, ns: 1_000_000_000 });
        let mut now_ns = 5;
        for _ in 0..10 {
            now_ns = slices.after(3, now_ns).expect("it has not passed");
        }
        assert!(now_ns > 8 * SLICE_NS);
        assert_eq!(slices.after(1_000_000_000, now_ns), None);
    }
}
