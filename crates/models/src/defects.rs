//! Models that would notice the defects of the published ShflLock code. The letters are those of
//! `crates/sync/src/lock/shfl/README.md`, "The published code's defects, and the tests that would
//! notice", which also lists the other defects.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Release};

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, Atomics, Platform};
use antiphon_sync::lock::{ShflMutex, ShflSpin};
use antiphon_sync::policy::{self, Policy, Waiting};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::forms::{Insistent, Sleepy};
use crate::program::{Program, unlock};

pub fn entries() -> Vec<Entry> {
    Subject("shfl-defects").models([
        model("a-b-kept-for-the-head-1+1", kept_for_the_head(), PLAIN)
            .by_lot(10_000)
            .reaches(&["had what was kept"]),
        model("f-not-overtaken-2+1", not_overtaken(), PLAIN).reaches(&["came behind a waiter"]),
    ])
}

/// Defect a: stealing, once forbidden for a waiter, stays forbidden when no thread waits. Defect b:
/// a try fails on a free lock, because stealing is forbidden.
///
/// An owner overtakes a waiter until the lock is reserved for that waiter. Must reach that a try
/// still acquires it.
fn kept_for_the_head() -> Program {
    const ROUNDS: u32 = 1;
    Program::new(2, 2, |scope| {
        let lock = scope.share(ShflMutex::<Check, policy::None, Insistent>::NEW);
        let served = scope.share(Data::new(false));
        assert!(lock.lock_uncontended());
        scope.spawn(move || {
            unlock(lock);
            for _ in 0..ROUNDS {
                if lock.lock_uncontended() {
                    unlock(lock);
                }
            }
            if lock.lock_uncontended() {
                return unlock(lock);
            }
            // Reserved for the waiter, or the waiter has it.
            if lock.try_lock() {
                if !served.get() {
                    antiphon_check::probe("had what was kept");
                }
                unlock(lock);
            }
        });
        scope.spawn(move || {
            lock.lock();
            served.set(true);
            // SAFETY: locked above.
            let at_once = unsafe { lock.unlock_uncontended() };
            assert!(at_once, "kept for one that has it");
        });
        scope.finally(move || assert!(lock.lock_uncontended(), "slow though nobody waits"));
    })
}

/// A policy that sorts no waiter, and reports when a thread that holds a [`Call`] has become the
/// head of a queue.
#[derive(Clone, Copy, Default, PartialEq)]
struct Called;

/// The means to report it.
struct Call {
    head: <Check as Atomics>::U32,
    thread: Cell<u32>,
    asked: Cell<u32>,
}

thread_local! {
    /// The call of the execution that runs on this thread.
    static CALL: Cell<*const Call> = const { Cell::new(ptr::null()) };
}

impl Policy for Called {
    /// Asked twice in a wait: before the waiter joins the queue, and when it is the head.
    fn shuffles<P: Platform>(self) -> bool {
        // SAFETY: set by `not_overtaken` for this execution.
        let call = unsafe { &*CALL.get() };
        if P::thread().0 == call.thread.get() {
            call.asked.set(call.asked.get() + 1);
            if call.asked.get() == 2 {
                // Release: pairs with the acquire of the thread that joins behind.
                call.head.store(1, Release);
            }
        }
        false
    }

    fn groups<P: Platform>(self, _: &Waiting<P>, _: &Waiting<P>) -> bool {
        false
    }
}

/// Defect f: the last waiter leaves the queue and then allows stealing again, in two steps; a
/// waiter that came in between has forbidden stealing, it is allowed nevertheless, and that waiter
/// is overtaken.
///
/// One thread waits and leaves, a second comes while it leaves, and a third comes when the second
/// waits. Must reach that.
fn not_overtaken() -> Program {
    Program::new(3, 4, |scope| {
        let lock = scope.share(ShflSpin::<Check, Called, Sleepy>::NEW);
        let served = scope.share(Data::new(false));
        let call = scope.share(Call {
            head: <Check as Atomics>::U32::ZERO,
            thread: Cell::new(0),
            asked: Cell::new(0),
        });
        CALL.set(call);
        assert!(lock.try_lock());
        scope.spawn(move || {
            lock.lock();
            unlock(lock);
        });
        scope.spawn(move || {
            unlock(lock);
            call.thread.set(Check::thread().0);
            lock.lock();
            served.set(true);
            unlock(lock);
        });
        scope.spawn(move || {
            // Acquire: pairs with the release in `Called`.
            if call.head.load(Acquire) == 1 {
                lock.lock();
                assert!(served.get(), "overtook a waiter");
                antiphon_check::probe("came behind a waiter");
                unlock(lock);
            }
        });
    })
}
