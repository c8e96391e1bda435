//! The costs of a single CPU: accesses that hit the cache, polls of a waiter, the fence, the clock.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

use antiphon_linux::Linux;
use antiphon_platform::{Atomic as _, Atomics, Budget, Clock, Clocks as _};
use antiphon_report::failure::Failure;

use crate::pinned::{Figure, on_each};
use crate::ticks::Ticks;

/// Repetitions of an instruction in a window, which lasts some microseconds.
const TURNS: u32 = 1000;
/// Time that a waiter polls without success in a window, in nanoseconds.
const WAIT_NS: u32 = 10_000;

/// The measured costs, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Core {
    /// A load that hits the cache, and that the next load depends on.
    pub load: Option<Figure>,
    /// A read-modify-write that hits the cache.
    pub atomic: Option<Figure>,
    /// Time from one poll of a spinning waiter to the next.
    pub look: Option<Figure>,
    /// A store and the full fence after it.
    pub fence: Option<Figure>,
    /// Reading the monotonic clock.
    pub clock: Option<Figure>,
}

/// Measures the CPU at `place`.
///
/// # Errors
///
/// If the CPU can't be used.
pub fn measure(watch: Ticks, place: usize, windows: usize) -> Result<Core, Failure> {
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
                    // A compiler may merge fences with nothing in between.
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

/// Returns how often a waiter polls its word in `ns` nanoseconds.
fn looks_in(ns: u32) -> u32 {
    let (word, looks) = (<Linux as Atomics>::U32::ZERO, Cell::new(0));
    let in_vain = |_| {
        looks.set(looks.get() + 1);
        true
    };
    // The wait ends by its budget: no other thread knows the word.
    let _ = word.spin_while(Relaxed, Budget::ns(ns), in_vain);
    looks.get()
}

/// A chain of loads: each is from the address that the previous one returned.
fn loads(turns: u32) {
    let first: Cell<*const ()> = Cell::new(std::ptr::null());
    first.set(first.as_ptr().cast());
    let mut place = black_box(first.as_ptr()).cast_const();
    for _ in 0..turns {
        // SAFETY: the cell holds its own address, so each load returns this address again.
        place = unsafe { place.read_volatile() }.cast();
    }
    black_box(place);
}
