//! The program of a model: threads with a few operations each; and the programs that every lock
//! runs.

use antiphon_check::{Check, Data, Scope};
use antiphon_platform::{Clock, Clocks as _, Deadline};
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
    let lock = scope.share(L::NEW);
    let data = scope.share(Data::new(0));
    for _ in 0..threads {
        scope.spawn(move || {
            for _ in 0..rounds {
                lock.lock();
                data.set(data.get() + 1);
                // SAFETY: locked above.
                unsafe { lock.unlock() };
            }
        });
    }
    scope.finally(move || assert_eq!(data.get(), threads * rounds));
    lock
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
                antiphon_check::retire(lock);
                antiphon_check::probe("retired");
            }
        });
    })
}

/// Research on the published code, 1.5 b: a try on a free lock always succeeds, and a try on a held
/// lock fails. Must reach `busy`.
pub fn tries<L: Lock>(lockers: u32) -> Program {
    Program::new(lockers + 1, lockers + 1, move |scope| {
        let lock = scope.share(L::NEW);
        let data = scope.share(Data::new(0));
        for _ in 0..lockers {
            scope.spawn(move || {
                lock.lock();
                data.set(data.get() + 1);
                unlock(lock);
            });
        }
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

/// Returns a deadline that a model may let pass.
pub fn soon() -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Check::now(Clock::Monotonic) + 10 }
}
