//! Models of the classic comparison locks, exhaustively within the stated bounds.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::Check;
use antiphon_platform::{Atomic, Atomics};
use antiphon_rivals::classic::{self, Clh, Futex, Mcs, McsStp, Ttas};
use antiphon_sync::lock::Lock;

use crate::bounds::{Bounds, PLAIN, SPURIOUS};
use crate::entry::{Entry, Subject, all_of, model};
use crate::program::{Program, destruction, exclusion, finish, guarded, section, tries};

/// One spurious wake, one timeout and one shortened spin for each thread.
const ANY: Bounds = SPURIOUS.timeouts(1).expiries(1);

/// The models of one lock.
fn models<L: Lock>(subject: &'static str, bounds: Bounds) -> Vec<Entry> {
    Subject(subject).models([
        model("excludes-2x1", exclusion::<L>(2, 1), bounds),
        model("excludes-2x2", exclusion::<L>(2, 2), bounds),
        model("excludes-3x1", exclusion::<L>(3, 1), bounds),
        model("tries-1+1", tries::<L>(1), bounds).reaches(&["busy"]),
        model("destroyed-1+1", destruction::<L>(), bounds).reaches(&["retired"]),
    ])
}

/// The models of each lock of the registry.
macro_rules! each {
    (classic: $(
        $name:literal: $file:ident::$lock:ident, $bytes:literal,
        $memory:ident, $waits:literal, $order:literal, ($bounds:ident $(, $small:literal)*);
    )+) => {
        [$(models::<classic::$lock<Check $(, $small)*>>($name, $bounds)),+]
    };
}

pub fn entries() -> Vec<Entry> {
    // Without a spin, all waiters sleep.
    type Sleepy = McsStp<Check, 0>;
    let one_node = PLAIN.nodes(1).mortal(1);
    all_of([
        Subject("futex").models([
            // First, and by lot: if the ordering that it tests is missing, the other models do not
            // terminate.
            model("passes-over-1+2", passed_over(), PLAIN).by_lot(10_000),
        ]),
        all_of(antiphon_rivals::locks!(classic => each)),
        Subject("ttas").models([model("shipped-3x1", exclusion::<Ttas<Check>>(3, 1), ANY)]),
        Subject("mcs-stp").models([
            model("spurious-2x2", exclusion::<Sleepy>(2, 2), ANY),
            model("shipped-2x2", exclusion::<McsStp<Check>>(2, 2), ANY),
            model("spurious-3x2", exclusion::<Sleepy>(3, 2), ANY).by_lot(5_000),
        ]),
        // One thread must wait until the other is dead and its node is found.
        Subject("mcs").models([model("exhausted-2x1", exclusion::<Mcs<Check>>(2, 1), one_node)]),
        Subject("clh").models([model("exhausted-2x1", exclusion::<Clh<Check>>(2, 1), one_node)]),
        Subject("futex").models([
            model("spurious-2x2", exclusion::<Futex<Check>>(2, 2), ANY),
            model("spurious-3x2", exclusion::<Futex<Check>>(3, 2), ANY).by_lot(5_000),
            model("exhausted-2x1", exclusion::<Futex<Check>>(2, 1), PLAIN.nodes(0)),
            model("exhausted-3x1", exclusion::<Futex<Check>>(3, 1), PLAIN.nodes(1)),
        ]),
    ])
}

/// Layout of the words of a [`Futex`].
#[repr(C)]
struct Words {
    word: <Check as Atomics>::U32,
    oldest: <Check as Atomics>::U32,
}

const _: () = assert!(size_of::<Words>() == size_of::<Futex<Check>>());

/// Two waiters have joined the queue when the lock is released and taken again: the first of them
/// finds that it was woken too early, and joins the queue again behind the other.
fn passed_over() -> Program {
    /// Waits until the last waiter that has joined has the index `index`.
    fn joined(lock: &Futex<Check>, index: u32) {
        // SAFETY: `Words` has the layout that the lock's file defines.
        let words = unsafe { &*std::ptr::from_ref(lock).cast::<Words>() };
        words.word.wait_while(Relaxed, |word| word >> 2 != index);
    }
    Program::new(3, 4, |scope| {
        let (lock, data) = guarded::<Futex<Check>>(scope);
        lock.lock();
        scope.spawn(move || {
            joined(lock, 2);
            finish(lock, data);
            section(lock, data);
        });
        scope.spawn_each(0..2, move |before| {
            joined(lock, before);
            section(lock, data);
        });
        scope.finally(move || assert_eq!(data.get(), 4));
    })
}
