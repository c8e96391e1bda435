//! Models of the classic comparison locks, exhaustively within the stated bounds.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, Atomics};
use antiphon_rivals::classic::{self, Clh, Futex, Mcs, McsStp, Ttas};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::program::{Program, destruction, exclusion, tries, unlock};

const PLAIN: Bounds = Bounds::PLAIN;
/// One spurious wake, one timeout and one shortened spin for each thread.
const ANY: Bounds = PLAIN.spurious(1).timeouts(1).expiries(1);

/// The models of one lock.
macro_rules! models {
    ($subject:literal: $lock:ty, $bounds:expr) => {
        [
            Entry::new(concat!($subject, "/excludes-2x1"), exclusion::<$lock>(2, 1), $bounds),
            Entry::new(concat!($subject, "/excludes-2x2"), exclusion::<$lock>(2, 2), $bounds),
            Entry::new(concat!($subject, "/excludes-3x1"), exclusion::<$lock>(3, 1), $bounds),
            Entry::new(concat!($subject, "/tries-1+1"), tries::<$lock>(1), $bounds)
                .reaches(&["busy"]),
            Entry::new(concat!($subject, "/destroyed-1+1"), destruction::<$lock>(), $bounds)
                .reaches(&["retired"]),
        ]
    };
}

/// The models of each lock of the registry.
macro_rules! each {
    (classic: $(
        $name:literal: $file:ident::$lock:ident, $bytes:literal,
        $memory:ident, $waits:literal, $order:literal, ($bounds:ident $(, $small:literal)*);
    )+) => {
        [$(models!($name: classic::$lock<Check $(, $small)*>, $bounds)),+]
    };
}

pub fn entries() -> Vec<Entry> {
    // Without a spin, all waiters sleep.
    type Sleepy = McsStp<Check, 0>;
    // First, and by lot: if the ordering that it tests is missing, the other models do not
    // terminate.
    let passes_over = Entry::new("futex/passes-over-1+2", passed_over(), PLAIN).by_lot(10_000);
    let mut entries = vec![passes_over];
    entries.extend(antiphon_rivals::locks!(classic => each).into_iter().flatten());
    let one_node = PLAIN.nodes(1).mortal(1);
    entries.extend([
        Entry::new("ttas/shipped-3x1", exclusion::<Ttas<Check>>(3, 1), ANY),
        Entry::new("mcs-stp/spurious-2x2", exclusion::<Sleepy>(2, 2), ANY),
        Entry::new("mcs-stp/shipped-2x2", exclusion::<McsStp<Check>>(2, 2), ANY),
        Entry::new("futex/spurious-2x2", exclusion::<Futex<Check>>(2, 2), ANY),
        Entry::new("mcs-stp/spurious-3x2", exclusion::<Sleepy>(3, 2), ANY).by_lot(5_000),
        Entry::new("futex/spurious-3x2", exclusion::<Futex<Check>>(3, 2), ANY).by_lot(5_000),
        // One thread must wait until the other is dead and its node is found.
        Entry::new("mcs/exhausted-2x1", exclusion::<Mcs<Check>>(2, 1), one_node),
        Entry::new("clh/exhausted-2x1", exclusion::<Clh<Check>>(2, 1), one_node),
        Entry::new("futex/exhausted-2x1", exclusion::<Futex<Check>>(2, 1), PLAIN.nodes(0)),
        Entry::new("futex/exhausted-3x1", exclusion::<Futex<Check>>(3, 1), PLAIN.nodes(1)),
    ]);
    entries
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
        let lock = scope.share(Futex::<Check>::NEW);
        let data = scope.share(Data::new(0));
        let add = move || {
            data.set(data.get() + 1);
            unlock(lock);
        };
        lock.lock();
        scope.spawn(move || {
            joined(lock, 2);
            add();
            lock.lock();
            add();
        });
        for before in 0..2 {
            scope.spawn(move || {
                joined(lock, before);
                lock.lock();
                add();
            });
        }
        scope.finally(move || assert_eq!(data.get(), 4));
    })
}
