//! Deadlines in the clocks that the program sees, where those are not the kernel's.
//!
//! The C library's `clock_gettime` may be replaced by another library (libfaketime, datefudge) or
//! by the program, as in a test. The program then computes its deadlines from clocks that the
//! kernel doesn't know. So where the first `clock_gettime` in the search order is not the C
//! library's, a deadline is one of [`Clock::SeenMonotonic`] or [`Clock::SeenRealtime`], and
//! `antiphon_linux` asks the program's clock between short sleeps.
//!
//! | in front of the C library's function | a deadline is judged by |
//! |---|---|
//! | nothing | the kernel's clock, as usual |
//! | X in front of `clock_gettime` | X's clock, which may have any rate, jump or be set |
//! | … and it stands still | the kernel's, for as long as was left when the wait began |
//! | … and X is in front of this very function of ours, too | the kernel's: X has converted it |
//!
//! The last row is what libfaketime does for `pthread_cond_timedwait` where it is preloaded before
//! us: it calls us with a time of the kernel's clock. Other libraries in front of us, such as a
//! tracer, convert nothing. So the two functions must be of the same library.
//!
//! A call that we forward keeps its deadline: it goes to the next definition, libfaketime's or the
//! C library's, as it would without us.

use core::ffi::CStr;
use core::hint::spin_loop;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use antiphon_linux::{Linux, each_image, see_clocks_by};
use antiphon_platform::{Clock, Clocks as _, Deadline};
use libc::timespec;

use crate::{abi, sys};

/// The function that the program gave the deadline to.
#[derive(Clone, Copy)]
pub(crate) enum By {
    MutexTimed,
    MutexClock,
    ReadTimed,
    ReadClock,
    WriteTimed,
    WriteClock,
    CondTimed,
    CondClock,
}

/// The names of the functions, in the order of `By`.
const NAMES: [&CStr; 8] = [
    c"pthread_mutex_timedlock",
    c"pthread_mutex_clocklock",
    c"pthread_rwlock_timedrdlock",
    c"pthread_rwlock_clockrdlock",
    c"pthread_rwlock_timedwrlock",
    c"pthread_rwlock_clockwrlock",
    c"pthread_cond_timedwait",
    c"pthread_cond_clockwait",
];

/// 0: the program sees the kernel's clocks. Otherwise `OTHERS`, and a bit for each function whose
/// deadlines are converted before they come here.
static SEEN: AtomicU32 = AtomicU32::new(0);
const OTHERS: u32 = 1 << 31;

/// Finds out which clocks the program sees. Called at load, when the loader has loaded all objects
/// that the program starts with: a library that is loaded later is searched after the C library.
pub(crate) fn find() {
    // The object that defines each, by the address where it is mapped; 0 is none.
    let (mut library, mut clock, mut functions) = (0, 0, [0; NAMES.len()]);
    each_image(|image| {
        let first = |file: &mut usize, name| {
            if *file == 0 && image.find(name).is_some() {
                // Plus one, because the base of a program at fixed addresses is 0.
                *file = image.base() + 1;
            }
        };
        first(&mut library, c"gnu_get_libc_version");
        first(&mut clock, c"clock_gettime");
        for (function, name) in functions.iter_mut().zip(NAMES) {
            first(function, name);
        }
    });
    if library == 0 || clock == 0 || clock == library {
        return;
    }
    see_clocks_by(now);
    let converted = functions.iter().enumerate().filter(|(_, file)| **file == clock);
    let bits = converted.fold(OTHERS, |bits, (function, _)| bits | 1 << function);
    // Relaxed: the clock that belongs to it is code, and is read only by threads that have such a
    // deadline.
    SEEN.store(bits, Relaxed);
}

/// The time as the program sees it, in nanoseconds: by the `clock_gettime` that the loader finds
/// for every object.
fn now(clock: Clock) -> u64 {
    let id = match clock {
        Clock::SeenMonotonic | Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::SeenRealtime | Clock::Realtime => libc::CLOCK_REALTIME,
    };
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is ours to write.
    sys::errno_kept(|| unsafe { libc::clock_gettime(id, &raw mut time) });
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.cast_unsigned())
}

/// The deadline at `until`, which the program gave to the function `by`; `None` if `until` is
/// invalid, as by [`abi::deadline`].
#[inline]
pub(crate) fn deadline(clock: Clock, until: &timespec, by: By) -> Option<Deadline> {
    let deadline = abi::deadline(clock, until)?;
    let seen = SEEN.load(Relaxed);
    if seen == 0 || seen & 1 << by as u32 != 0 { Some(deadline) } else { Some(as_seen(deadline)) }
}

#[cold]
#[inline(never)]
fn as_seen(deadline: Deadline) -> Deadline {
    let (clock, last) = match deadline.clock {
        Clock::Monotonic | Clock::SeenMonotonic => (Clock::SeenMonotonic, &LAST[0]),
        Clock::Realtime | Clock::SeenRealtime => (Clock::SeenRealtime, &LAST[1]),
    };
    match last.stands_still(clock) {
        None => Deadline { clock, ns: deadline.ns },
        Some(seen_ns) => {
            let left_ns = deadline.ns.saturating_sub(seen_ns);
            let ns = Linux::now(Clock::Monotonic).saturating_add(left_ns);
            Deadline { clock: Clock::Monotonic, ns }
        }
    }
}

/// The latest time read from a clock of the program, and when that value was first seen.
struct Last {
    seen_ns: AtomicU64,
    since_ns: AtomicU64,
}

static LAST: [Last; 2] =
    [const { Last { seen_ns: AtomicU64::new(0), since_ns: AtomicU64::new(0) } }; 2];

/// A clock that shows the same time for this long stands still.
const STILL_NS: u64 = 20_000;

impl Last {
    /// The time that the clock shows if it stands still, otherwise `None`. A deadline of a clock
    /// that stands still would never come. The first call takes [`STILL_NS`] to find out.
    fn stands_still(&self, clock: Clock) -> Option<u64> {
        loop {
            let (seen_ns, now_ns) = (now(clock), Linux::now(Clock::Monotonic));
            // Acquire: `since_ns` as stored with it, or a later time; pairs with the release below.
            let last_ns = self.seen_ns.load(Acquire);
            if last_ns != seen_ns {
                self.since_ns.store(now_ns, Relaxed);
                // Release: pairs with the acquire above.
                self.seen_ns.store(seen_ns, Release);
                if last_ns != 0 {
                    return None;
                }
            } else if now_ns.saturating_sub(self.since_ns.load(Relaxed)) >= STILL_NS {
                return Some(seen_ns);
            }
            spin_loop();
        }
    }
}
