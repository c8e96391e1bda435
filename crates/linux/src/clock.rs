//! Clocks: those of the kernel, read through the vDSO without a system call, and those that a
//! program sees.
//!
//! A library may stand between a program and its clocks (libfaketime, datefudge, a test's own). The
//! runtime's own times must not depend on it: budgets, naps and recorded times use the kernel's
//! clocks, which are looked up in the vDSO itself. `clock_gettime` of the C library may be
//! interposed by such a library; its clock may stand still, and a spin would never end.
//!
//! A program's deadlines are times of the clocks that it sees. A caller that knows that these
//! differ sets how they are read ([`see_clocks_by`]); a wait until [`Clock::SeenMonotonic`] or
//! [`Clock::SeenRealtime`] then sleeps in [`Slices`].

use core::ffi::{c_int, c_void};
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Clock, Deadline};

use crate::{image, sys};

/// The vDSO's function; null if it was not looked up yet.
static READ: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// The function that reads the program's clocks; null if they are the kernel's.
static SEEN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

type Read = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;
type Seen = fn(Clock) -> u64;

/// The value of [`READ`] when there is no vDSO, or it has no clock.
fn none() -> *mut c_void {
    without_provenance_mut(1)
}

/// The time of `clock`, in nanoseconds; 0 if it can't be read or is before its zero.
pub(crate) fn now(clock: Clock) -> u64 {
    match clock {
        Clock::Monotonic => read(libc::CLOCK_MONOTONIC),
        Clock::Realtime => read(libc::CLOCK_REALTIME),
        Clock::SeenMonotonic => seen(clock, libc::CLOCK_MONOTONIC),
        Clock::SeenRealtime => seen(clock, libc::CLOCK_REALTIME),
    }
}

/// Sets `now` as the function that reads the clocks as the program sees them: it returns
/// nanoseconds of `SeenMonotonic` and `SeenRealtime`. It is called in waits, and must leave `errno`
/// alone.
pub fn see_clocks_by(now: fn(Clock) -> u64) {
    // Relaxed: the pointer is to code, which needs no publication.
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

/// Reads a clock of the kernel.
fn read(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut function = READ.load(Relaxed);
    if function.is_null() {
        function = find();
    }
    let told = function != none() && {
        // SAFETY: the vDSO's function of that name, which has this type.
        let function = unsafe { core::mem::transmute::<*mut c_void, Read>(function) };
        // SAFETY: `time` is a local that the kernel may write.
        unsafe { function(id, &raw mut time) == 0 }
    };
    if !told {
        ask(id, &mut time);
    }
    nanoseconds(&time)
}

/// The CPU time of the calling thread, in nanoseconds. Always a system call: only the kernel knows
/// it.
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let args = [libc::CLOCK_THREAD_CPUTIME_ID as usize, (&raw mut time) as usize];
    // SAFETY: `time` is a local that the kernel may write. Each thread has this clock; if the call
    // is refused, the time stays zero.
    let _ = unsafe { sys::call(libc::SYS_clock_gettime, args) };
    nanoseconds(&time)
}

#[cold]
#[inline(never)]
fn ask(id: libc::clockid_t, time: &mut libc::timespec) {
    let args = [id as usize, core::ptr::from_mut(time) as usize];
    // SAFETY: `time` is the caller's, and the kernel may write it. All these clocks exist on every
    // Linux; if a filter refuses the call, the time stays zero.
    let _ = unsafe { sys::needed(libc::SYS_clock_gettime, args) };
}

/// Makes each later reading a system call, because the counter that the vDSO reads is forbidden.
pub(crate) fn ask_kernel() {
    READ.store(none(), Relaxed);
}

/// Looks up the clock function in the vDSO. Racing threads find the same function.
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

/// The kernel's representation of the time `ns` nanoseconds after a clock's zero.
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

/// The longest slice: a jump of the clock is noticed at most this much later.
const SLICE_NS: u64 = 50_000_000;
/// The longest first slice, which measures the rate of the clock.
const FIRST_NS: u64 = 1_000_000;

/// A wait until a time of a clock that the program sees and the kernel doesn't. It is cut into
/// sleeps by the kernel's monotonic clock, and the program's clock is read between them. Each slice
/// measures the rate of that clock, so a deadline is met in time even if the clock runs ten times
/// as fast.
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    deadline: Deadline,
    /// The last readings of the program's clock and of the kernel's.
    asked: Option<(u64, u64)>,
}

impl Slices {
    /// A wait until `deadline`.
    #[must_use]
    pub fn new(deadline: Deadline) -> Self {
        Self { deadline, asked: None }
    }

    /// The end of the next slice, in nanoseconds of the kernel's monotonic clock. `None` if the
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
                // A clock that stands still, or was set back, is read again after each slice.
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
            // SAFETY: the time is a local that the C library may write.
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

    /// The length of a wait of `left_ns` by the kernel's clock, if the program's clock runs at
    /// `percent` of its rate; and the number of slices.
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
