//! The costs of one CPU by itself: accesses that hit, looks of a waiter, the fence, the clock.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

use antiphon_linux::Linux;
use antiphon_platform::{Atomic as _, Atomics, Budget, Clock, Clocks as _};
use antiphon_report::failure::Failure;

use crate::pinned::{Figure, Stopwatch, on_each};

/// How often an instruction is repeated in a window: some microseconds.
const TURNS: u32 = 1000;
/// How long a waiter looks in vain in a window, in nanoseconds.
const WAIT_NS: u32 = 10_000;

/// Nanoseconds of each.
#[derive(Clone, Copy, Debug)]
pub struct Core {
    /// A load that hits, whose result the next one waits for.
    pub load: Option<Figure>,
    /// A read-modify-write that hits.
    pub atomic: Option<Figure>,
    /// The time from one look of a spinning waiter to the next.
    pub look: Option<Figure>,
    /// A store and the full fence behind it.
    pub fence: Option<Figure>,
    /// A reading of the monotonic clock.
    pub clock: Option<Figure>,
}

/// Measures the CPU at `place`.
///
/// # Errors
///
/// If it can't be used.
pub fn measure(watch: Stopwatch, place: usize, windows: usize) -> Result<Core, Failure> {
    let measured = on_each(&[place], |_| {
        let each = |mut body: &mut dyn FnMut(u32)| {
            let body = &mut body;
            let window = |_| watch.undisturbed(|| body(TURNS)).map(|ns| ns / f64::from(TURNS));
            Figure::of(&(0..windows).map(window).collect::<Vec<_>>())
        };
        let word = AtomicU64::new(0);
        let look = |_| {
            let mut looks = 0;
            let ns = watch.undisturbed(|| looks = looks_in(WAIT_NS));
            ns.filter(|_| looks > 0).map(|ns| ns / f64::from(looks))
        };
        Core {
            load: each(&mut loads),
            atomic: each(&mut |turns| {
                for _ in 0..turns {
                    word.fetch_add(1, Relaxed);
                }
            }),
            look: Figure::of(&(0..windows).map(look).collect::<Vec<_>>()),
            fence: each(&mut |turns| {
                for turn in 0..turns {
                    // Fences with nothing in between are one to a compiler.
                    word.store(u64::from(turn), Relaxed);
                    fence(SeqCst);
                }
            }),
            clock: each(&mut |turns| {
                for _ in 0..turns {
                    black_box(Linux::now(Clock::Monotonic));
                }
            }),
        }
    })?;
    Ok(measured[0])
}

/// How often a waiter looks at its word in `ns`.
fn looks_in(ns: u32) -> u32 {
    let (word, looks) = (<Linux as Atomics>::U32::ZERO, Cell::new(0));
    let in_vain = |_| {
        looks.set(looks.get() + 1);
        true
    };
    // It ends by its budget: no other thread knows the word.
    let _ = word.spin_while(Relaxed, Budget::ns(ns), in_vain);
    looks.get()
}

/// A chain: each load is of the place that the one before has said.
fn loads(turns: u32) {
    let first: Cell<*const ()> = Cell::new(std::ptr::null());
    first.set(first.as_ptr().cast());
    let mut place = black_box(first.as_ptr()).cast_const();
    for _ in 0..turns {
        // SAFETY: the cell holds its own address, so that is what each load gives again.
        place = unsafe { place.read_volatile() }.cast();
    }
    black_box(place);
}
