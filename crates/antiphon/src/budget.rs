//! The budget of a fiber: how long it may run without a break, if it computes, or if its waits are
//! always over at once.
//!
//! Locks, events and channels count their steps here, and need to know nothing else about fibers.
//! The fiber runtime [registers](register) the function to call when a fiber's budget is used up.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_runtime::flight::Pace;

use crate::local;

/// How long a fiber may run before a [checkpoint](crate::fiber::checkpoint) lets others run, in
/// nanoseconds: many times the cost of a turn, and no more than a deadline may be late.
pub(crate) const SLICE_NS: u64 = 100_000;
/// Approximate time between two readings of the clock, in nanoseconds.
const LOOK_NS: u64 = SLICE_NS / 4;
/// Maximum number of checkpoints between two readings of the clock.
const LOOK_EVERY: u32 = 1024;
/// Number of possibly ready steps, by the fibers of the thread, after which others run. Tokio's
/// number.
const TIRING: u32 = 128;

/// The slice of the fiber that runs on the thread.
#[derive(Clone, Copy)]
struct Slice {
    pace: Pace,
    /// Number of checkpoints from one reading of the clock to the next.
    turns: u32,
    /// The turn of the fiber at the last reading, and when that turn was first seen.
    turn: u32,
    began_ns: u64,
}

/// The functions of the fiber runtime that the budget calls. Both are called rarely.
pub(crate) struct Fibers {
    /// Returns the number of the calling fiber's turn; `None` if the caller is not a fiber.
    pub(crate) turn: fn() -> Option<u32>,
    /// Lets other fibers of the thread run.
    pub(crate) yield_now: fn(),
}

/// The fiber runtime. Null until it is registered, which is before the first fiber runs.
static FIBERS: AtomicPtr<Fibers> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    static SLICE: Cell<Slice> = const {
        Cell::new(Slice { pace: Pace::new(LOOK_NS, LOOK_EVERY), turns: 1, turn: 0, began_ns: 0 })
    };
}

/// Registers the fiber runtime. A single store, so that the child of a fork never finds it half
/// done.
pub(crate) fn register(fibers: &'static Fibers) {
    // Release: pairs with the acquire in `fibers`.
    FIBERS.store(ptr::from_ref(fibers).cast_mut(), Release);
}

fn fibers() -> Option<&'static Fibers> {
    // Acquire: pairs with the release in `register`.
    let fibers = FIBERS.load(Acquire);
    // SAFETY: null, or a `'static` reference; nothing writes through it.
    unsafe { fibers.as_ref() }
}

/// A [checkpoint](crate::fiber::checkpoint) before a step that may not have to wait; also lets
/// others run at each 128th such step. It is called before the step, so that a lock or value which
/// the step takes is not held while others run.
#[doc(hidden)] // Public for `antiphon-capi`.
#[inline]
pub fn may_be_ready() {
    if is_tiring() {
        others_go_on();
    }
}

/// Out of line: it is called once in many steps, so the cost of another call does not matter.
#[cold]
#[inline(never)]
fn others_go_on() {
    if let Some(fibers) = fibers() {
        (fibers.yield_now)();
    }
}

/// Returns whether the calling fiber has run for longer than its slice, at the last reading of the
/// clock.
#[inline]
pub(crate) fn is_over() -> bool {
    let left = local::with(|own| {
        let left = own.left.get().checked_sub(1);
        own.left.set(left.unwrap_or(0));
        left
    });
    left.is_none() && look()
}

/// Returns whether a fiber that may not have had to wait should let others run: because
/// [`is_over`], or by the count of its steps. Without the count, a fiber whose steps are always
/// ready would keep the thread for the whole of each slice. On a thread that runs no fiber, costs
/// one load.
#[inline]
pub(crate) fn is_tiring() -> bool {
    let ready = local::with(|own| {
        own.fiber.get()?;
        let ready = own.ready.get() + 1;
        own.ready.set(ready % TIRING);
        Some(ready)
    });
    ready.is_some_and(|ready| is_over() || ready == TIRING)
}

/// Not inlined, so that it runs on one thread from beginning to end.
#[cold]
#[inline(never)]
fn look() -> bool {
    let Some(turn) = fibers().and_then(|fibers| (fibers.turn)()) else {
        local::with(|own| own.left.set(LOOK_EVERY));
        return false;
    };
    let (mut slice, now_ns) = (SLICE.get(), Linux::now(Clock::Monotonic));
    // If others have run meanwhile, not all of the time was the fiber's: the next reading is
    // earlier.
    slice.turns = slice.pace.look(now_ns, slice.turns);
    if turn != slice.turn {
        (slice.turn, slice.began_ns) = (turn, now_ns);
    }
    local::with(|own| own.left.set(slice.turns - 1));
    SLICE.set(slice);
    now_ns.saturating_sub(slice.began_ns) >= SLICE_NS
}
