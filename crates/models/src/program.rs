//! The program of a model: threads with a few operations each; and the programs that every lock
//! runs.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, Scope};
use antiphon_platform::{Atomic as _, Atomics, Clock, Clocks as _, Deadline};
use antiphon_sync::lock::Lock;

type Body = Box<dyn for<'scope> Fn(&'scope Scope<'scope, 'static>) + Send + Sync>;

/// Makes a value usable by actions and tasks, which may run on any thread.
pub struct Anywhere<T>(pub T);

// SAFETY: threads of a model run one at a time, on one OS thread.
unsafe impl<T> Send for Anywhere<T> {}
// SAFETY: threads of a model run one at a time, on one OS thread.
unsafe impl<T> Sync for Anywhere<T> {}

/// A program and its size.
pub struct Program {
    /// Number of threads that it spawns.
    pub threads: u32,
    /// Number of acquisitions, tries, waits, notifications or uses of a node by all threads
    /// together.
    pub operations: u32,
    /// Spawns the threads.
    pub body: Body,
}

impl Program {
    /// Creates a program whose `body` spawns `threads` threads, which do `operations` operations in
    /// all.
    pub fn new<F>(threads: u32, operations: u32, body: F) -> Self
    where
        F: for<'scope> Fn(&'scope Scope<'scope, 'static>) + Send + Sync + 'static,
    {
        Self { threads, operations, body: Box::new(body) }
    }
}

/// `threads` threads lock, touch plain data, and unlock, `rounds` times each. A lost wake is a
/// deadlock, a missing ordering a data race.
pub fn exclusion<L: Lock>(threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        contend::<L>(scope, threads, rounds);
    })
}

/// The body of [`exclusion`]; returns the lock.
pub fn contend<'scope, L: Lock>(
    scope: &'scope Scope<'scope, '_>,
    threads: u32,
    rounds: u32,
) -> &'scope L {
    let (lock, data) = guarded::<L>(scope);
    scope.spawn_each(0..threads, move |_| {
        for _ in 0..rounds {
            lock.lock();
            data.set(data.get() + 1);
            // SAFETY: locked above.
            unsafe { lock.unlock() };
        }
    });
    scope.finally(move || assert_eq!(data.get(), threads * rounds));
    lock
}

/// Shares a lock, and data that it guards.
pub fn guarded<'scope, L: Lock>(
    scope: &'scope Scope<'scope, '_>,
) -> (&'scope L, &'scope Data<u32>) {
    (scope.share(L::NEW), scope.share(Data::new(0)))
}

/// MUTEX-3: the next owner may free the lock while the last owner is still in `unlock`. Must reach
/// `retired`.
pub fn destruction<L: Lock>() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(L::NEW);
        let data = scope.share(Data::new(false));
        scope.spawn(move || {
            lock.lock();
            data.set(true);
            unlock(lock);
        });
        scope.spawn(move || {
            lock.lock();
            let last = data.get();
            unlock(lock);
            if last {
                retire(lock);
            }
        });
    })
}

/// A reader comes in by `visit`, which calls its argument inside, and the writer that comes after
/// it may free the lock while the reader is still in its release. Must reach `retired`.
pub fn left_for_good<L: Lock>(
    share: for<'scope> fn(&'scope Scope<'scope, 'static>) -> &'scope L,
    visit: fn(&L, &dyn Fn()),
) -> Program {
    Program::new(2, 2, move |scope| {
        let lock = share(scope);
        let data = scope.share(Data::new(()));
        let read_once = scope.share(Cell::new(false));
        scope.spawn_on(0, move || {
            visit(lock, &|| {
                data.get();
                read_once.set(true);
            });
        });
        scope.spawn(move || {
            lock.lock();
            data.set(());
            let last = read_once.get();
            unlock(lock);
            if last {
                retire(lock);
            }
        });
    })
}

/// Research on the published code, 1.5 b: a try on a free lock always succeeds, and a try on a held
/// lock fails. Must reach `busy`.
pub fn tries<L: Lock>(lockers: u32) -> Program {
    Program::new(lockers + 1, lockers + 1, move |scope| {
        let (lock, data) = guarded::<L>(scope);
        scope.spawn_each(0..lockers, move |_| {
            lock.lock();
            data.set(data.get() + 1);
            unlock(lock);
        });
        scope.spawn(move || {
            if lock.try_lock() {
                data.set(data.get() + 1);
                unlock(lock);
            } else {
                antiphon_check::probe("busy");
            }
        });
        scope.finally(move || assert!(lock.try_lock(), "a free lock can't be tried"));
    })
}

/// Unlocks what the caller has locked.
pub fn unlock(lock: &impl Lock) {
    // SAFETY: each caller owns the lock.
    unsafe { lock.unlock() }
}

/// Locks, adds one to the data that the lock guards, and unlocks.
pub fn section(lock: &impl Lock, data: &Data<u32>) {
    lock.lock();
    finish(lock, data);
}

/// The rest of [`section`], for a caller that owns the lock.
pub fn finish(lock: &impl Lock, data: &Data<u32>) {
    data.set(data.get() + 1);
    unlock(lock);
}

/// Frees an object that no other thread may touch any more. Passes the probe `retired`.
pub fn retire<T>(object: &T) {
    antiphon_check::retire(object);
    antiphon_check::probe("retired");
}

/// Takes one of `count`, if there is one, without an order.
pub fn take_one(count: &<Check as Atomics>::U32) -> bool {
    let mut seen = count.load(Relaxed);
    while seen > 0 {
        match count.compare_exchange(seen, seen - 1, Relaxed, Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
    false
}

/// The probe of a thread that gave up.
pub const GAVE_UP: &[&str] = &["gave up"];

/// Returns a deadline that a model may let pass.
pub fn soon() -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Check::now(Clock::Monotonic) + 10 }
}
