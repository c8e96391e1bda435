//! How long a fiber may run without a break, for fibers that compute, and for fibers that never
//! have to wait.
//!
//! Locks, events and channels count their steps here, and know nothing else of fibers. The runtime
//! of fibers [registers](register) what is done when the budget of one is used up.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_runtime::flight::Pace;

use crate::local;

/// How long a fiber may run before a [checkpoint](crate::fiber::checkpoint) lets others run, in
/// nanoseconds: many times the cost of a turn, and as little as a deadline may be late.
pub(crate) const SLICE_NS: u64 = 100_000;
/// Time between two looks at the clock, in nanoseconds, about.
const LOOK_NS: u64 = SLICE_NS / 4;
/// The greatest number of checkpoints between two looks at the clock.
const LOOK_EVERY: u32 = 1024;
/// Steps that may have been ready, of fibers of the thread, of which the last lets others run.
/// Tokio's number.
const TIRING: u32 = 128;

/// The slice of the fiber that runs on the thread.
#[derive(Clone, Copy)]
struct Slice {
    pace: Pace,
    /// Checkpoints from one look to the next.
    turns: u32,
    /// The turn of the fiber at the last look, and when it was first seen.
    turn: u32,
    began_ns: u64,
}

/// The functions of the fiber runtime that the budget calls. Both are called rarely.
pub(crate) struct Fibers {
    /// The number of the turn that the calling fiber has; `None` if the caller is no fiber.
    pub(crate) turn: fn() -> Option<u32>,
    /// Lets other fibers of the thread run.
    pub(crate) yield_now: fn(),
}

/// The runtime of fibers. Null until it is registered, which is before the first fiber runs.
static FIBERS: AtomicPtr<Fibers> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    static SLICE: Cell<Slice> = const {
        Cell::new(Slice { pace: Pace::new(LOOK_NS, LOOK_EVERY), turns: 1, turn: 0, began_ns: 0 })
    };
}

/// Registers the runtime of fibers. A store, so that the child of a fork never finds it half done.
pub(crate) fn register(fibers: &'static Fibers) {
    // Release: pairs with the acquire in `fibers`.
    FIBERS.store(ptr::from_ref(fibers).cast_mut(), Release);
}

fn fibers() -> Option<&'static Fibers> {
    // Acquire: pairs with the release in `register`.
    let fibers = FIBERS.load(Acquire);
    // SAFETY: null, or a reference that is good for ever; nothing writes through it.
    unsafe { fibers.as_ref() }
}

/// A [checkpoint](crate::fiber::checkpoint) before a step that may not have to wait; also lets
/// others run at each 128th such step. It is called before the step, so what the step takes is not
/// held while others run.
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

/// Whether the calling fiber has run for longer than its slice, as far as it was looked.
#[inline]
pub(crate) fn is_over() -> bool {
    let left = local::with(|own| {
        let left = own.left.get().checked_sub(1);
        own.left.set(left.unwrap_or(0));
        left
    });
    left.is_none() && look()
}

/// As [`is_over`], of a fiber that may not have had to wait; or it is time for others by the count:
/// a fiber whose steps are always ready would have the thread for the whole of each slice. On a
/// thread that runs no fiber it is a look at one word.
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

/// Not inlined, so that it runs on one thread from its beginning to its end.
#[cold]
#[inline(never)]
fn look() -> bool {
    let Some(turn) = fibers().and_then(|fibers| (fibers.turn)()) else {
        local::with(|own| own.left.set(LOOK_EVERY));
        return false;
    };
    let (mut slice, now_ns) = (SLICE.get(), Linux::now(Clock::Monotonic));
    // Where others have run meanwhile, not all of the time was its own: the next look is earlier.
    slice.turns = slice.pace.look(now_ns, slice.turns);
    if turn != slice.turn {
        (slice.turn, slice.began_ns) = (turn, now_ns);
    }
    local::with(|own| own.left.set(slice.turns - 1));
    SLICE.set(slice);
    now_ns.saturating_sub(slice.began_ns) >= SLICE_NS
}
