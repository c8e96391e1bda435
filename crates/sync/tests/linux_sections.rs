//! Critical sections as locks tell them, on a pretended machine that counts what it is told
//! (SECTION-3, SECTION-6): each way to acquire a lock, each way to release it, and each sleep, all
//! of them within the section of an outer lock.
//!
//! A program of its own, because what a process tells, it tells for good.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Barrier, Once};
use std::thread;

use antiphon_linux::pretend::{Machine, Sections, pretend, sections};
use antiphon_linux::section::{Listener, enable_sections};
use antiphon_linux::{Linux, U32, U64, park_begin, park_end};
use antiphon_platform::{
    Atomic, Clock, Clocks as _, Deadline, Parked, Platform, SharedWait as _, Waiter, WordWaits as _,
};
use antiphon_sync::lock::{Form, RwForm, ShflMutex, ShflOwned, ShflRwLock, ShflSpin};
use antiphon_sync::policy::Numa;
use antiphon_sync::wait::Condvar;

type Mutex = ShflMutex<Linux>;
type Rw = ShflRwLock<Linux>;

/// Call this before a lock is used.
fn tell() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        pretend(Some(Machine { cpus: 16, sockets: 8, crowded_one_in: 0 }));
        assert_eq!(enable_sections(), Ok(Listener::Pretended));
    });
    // SAFETY: no pointer involved. A test that hangs ends the program.
    unsafe { libc::alarm(120) };
}

fn in_ms(ms: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + ms * 1_000_000 }
}

/// Checks the depth, and that the listener knows whether it is 0.
#[track_caller]
fn is_deep(depth: u32) {
    assert_eq!(sections(), Sections { depth, told: depth.min(1) });
}

/// Acquires and releases a lock that is free, without a section and within one.
#[track_caller]
fn nests(acquire: &dyn Fn() -> bool, release: &dyn Fn()) {
    let outer = Mutex::NEW;
    let inner = |depth| {
        is_deep(depth);
        assert!(acquire());
        is_deep(depth + 1);
        release();
        is_deep(depth);
    };
    inner(0);
    outer.lock();
    inner(1);
    inner(1);
    // SAFETY: locked above.
    unsafe { outer.unlock() };
    is_deep(0);
}

/// Fails to acquire a lock, within a section.
#[track_caller]
fn fails(acquire: &dyn Fn() -> bool, slept: bool) {
    let outer = Mutex::NEW;
    outer.lock();
    is_deep(1);
    assert!(!acquire());
    // SECTION-3.
    is_deep(u32::from(!slept));
    // SAFETY: locked above.
    unsafe { outer.unlock() };
    is_deep(0);
}

/// Waits for a lock that another thread holds, until that thread has gone to `release` it.
#[track_caller]
fn waits(hold: impl Fn() + Sync, let_go: impl Fn() + Sync, acquire: &dyn Fn(), release: &dyn Fn()) {
    let (held, waited) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            hold();
            held.wait();
            while !waited.load(Relaxed) {
                thread::yield_now();
            }
            // Long enough for the other thread to sleep; nothing depends on it.
            thread::sleep(std::time::Duration::from_millis(5));
            let_go();
            is_deep(0);
        });
        held.wait();
        waited.store(true, Relaxed);
        acquire();
        is_deep(1);
        release();
        is_deep(0);
    });
}

#[test]
fn mutexes_of_each_call() {
    tell();
    let lock = Mutex::NEW;
    // SAFETY: called by owners.
    let unlock = || unsafe { lock.unlock() };
    nests(&|| (lock.lock(), true).1, &unlock);
    nests(&|| lock.try_lock(), &unlock);
    nests(&|| lock.lock_until(in_ms(0)), &unlock);
    nests(&|| lock.lock_uncontended_told(), &unlock);
    nests(&|| (lock.lock_taken(), true).1, &unlock);
    lock.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            fails(&|| lock.try_lock(), false);
            fails(&|| lock.lock_uncontended_told(), false);
            fails(&|| lock.lock_until(in_ms(20)), true);
        });
    });
    unlock();
    waits(|| lock.lock(), unlock, &|| lock.lock(), &unlock);
    waits(|| lock.lock(), unlock, &|| assert!(lock.lock_until(in_ms(100_000))), &unlock);
}

#[test]
fn mutexes_with_an_owner_and_spinlocks() {
    tell();
    let lock = ShflOwned::<Linux>::NEW;
    // SAFETY: called by owners.
    let unlock = || unsafe { lock.unlock() };
    nests(&|| (lock.lock(), true).1, &unlock);
    nests(&|| lock.try_lock(), &unlock);
    nests(&|| lock.lock_until(in_ms(0)), &unlock);
    waits(|| lock.lock(), unlock, &|| lock.lock(), &unlock);
    let spin = ShflSpin::<Linux>::NEW;
    // SAFETY: as above.
    let unlock = || unsafe { spin.unlock() };
    nests(&|| (spin.lock(), true).1, &unlock);
    nests(&|| spin.try_lock(), &unlock);
    waits(|| spin.lock(), unlock, &|| spin.lock(), &unlock);
}

#[test]
fn writers_of_each_call() {
    tell();
    let lock = Rw::NEW;
    // SAFETY: called by writers.
    let unlock = || unsafe { lock.unlock_write() };
    nests(&|| (lock.write(), true).1, &unlock);
    nests(&|| lock.try_write(), &unlock);
    nests(&|| lock.write_until(in_ms(0)), &unlock);
    nests(&|| lock.write_at_once_told(), &unlock);
    lock.write();
    thread::scope(|scope| {
        scope.spawn(|| {
            fails(&|| lock.try_write(), false);
            fails(&|| lock.write_at_once_told(), false);
            fails(&|| lock.try_read().is_ok(), false);
            fails(&|| lock.write_until(in_ms(20)), true);
        });
    });
    unlock();
    waits(|| lock.write(), unlock, &|| lock.write(), &unlock);
    waits(|| lock.write(), unlock, &|| assert!(lock.write_until(in_ms(100_000))), &unlock);
}

/// Readers tell nothing, and what a reader becomes or a writer was is told.
#[test]
fn readers_and_what_they_become() {
    tell();
    let lock = Rw::NEW;
    // SAFETY: called by readers.
    let unlock_read = || unsafe { lock.unlock_read() };
    assert_eq!(lock.read(), Ok(()));
    is_deep(0);
    unlock_read();
    lock.write();
    is_deep(1);
    // SAFETY: acquired so by the call before.
    unsafe { lock.downgrade() };
    is_deep(0);
    unlock_read();
    lock.upgradable();
    is_deep(0);
    // SAFETY: acquired so by the call before.
    unsafe { lock.upgrade() };
    is_deep(1);
    // SAFETY: acquired so by the call before.
    unsafe { lock.downgrade_to_upgradable() };
    is_deep(0);
    // SAFETY: acquired so by the call before.
    assert!(unsafe { lock.try_upgrade() });
    is_deep(1);
    // SAFETY: acquired so by the call before.
    unsafe { lock.unlock_write() };
    is_deep(0);
    lock.upgradable();
    // SAFETY: acquired so by the call before.
    assert!(unsafe { lock.upgrade_until(in_ms(0)) });
    is_deep(1);
    // SAFETY: acquired so by the call before.
    unsafe { lock.unlock_write() };
    is_deep(0);
}

/// A form in which readers are counted by socket from the second on, and a turn of writers is
/// short.
struct Spread;

impl Form for Spread {}

impl RwForm for Spread {
    const REST: u32 = 0;
    const CROWD: u32 = 1;
    const TURNS: u8 = 2;
}

/// Writers that wait for each other in the indicator's mutex, which is a part of the lock.
#[test]
fn writers_that_take_turns() {
    tell();
    let lock = ShflRwLock::<Linux, Numa, Spread>::NEW;
    let read_by_many = || {
        for _ in 0..8 {
            assert_eq!(lock.read(), Ok(()));
        }
        for _ in 0..8 {
            // SAFETY: acquired above.
            unsafe { lock.unlock_read() };
        }
    };
    // SAFETY: called by writers.
    let unlock = || unsafe { lock.unlock_write() };
    let outer = Mutex::NEW;
    read_by_many();
    outer.lock();
    lock.gather();
    is_deep(1);
    // SAFETY: locked above.
    unsafe { outer.unlock() };
    read_by_many();
    outer.lock();
    lock.write();
    is_deep(2);
    unlock();
    is_deep(1);
    lock.write();
    is_deep(2);
    // SAFETY: acquired above.
    unsafe { lock.downgrade() };
    is_deep(1);
    // SAFETY: a reader since.
    unsafe { lock.unlock_read() };
    is_deep(1);
    // SAFETY: locked above.
    unsafe { outer.unlock() };
    is_deep(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    lock.write();
                    is_deep(1);
                    unlock();
                    is_deep(0);
                }
            });
        }
    });
    lock.gather();
    is_deep(0);
}

/// A waiter that was notified, one that was moved into the mutex's queue, and one that gave up.
#[test]
fn waits_for_a_condition() {
    tell();
    let (lock, cond, waiters) = (Mutex::NEW, Condvar::<Linux>::NEW, AtomicU32::new(0));
    let outer = Mutex::NEW;
    outer.lock();
    lock.lock();
    is_deep(2);
    // SAFETY: the caller owns the mutex.
    let notified = unsafe { cond.wait_with(&lock, Some(in_ms(10))) };
    assert!(!notified);
    // SECTION-3, and the mutex again.
    is_deep(1);
    // SAFETY: locked again.
    unsafe { lock.unlock() };
    // SAFETY: locked above.
    unsafe { outer.unlock() };
    is_deep(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                lock.lock();
                waiters.fetch_add(1, Relaxed);
                // SAFETY: the caller owns the mutex.
                unsafe { cond.wait_with(&lock, None) };
                is_deep(1);
                // SAFETY: locked again.
                unsafe { lock.unlock() };
                is_deep(0);
            });
        }
        while waiters.load(Relaxed) != 4 {
            thread::yield_now();
        }
        lock.lock();
        cond.notify_one();
        cond.notify_all();
        is_deep(1);
        // SAFETY: locked above.
        unsafe { lock.unlock() };
        is_deep(0);
    });
}

/// SECTION-3, for each sleep of the platform.
#[test]
fn sleeps_end_all_sections() {
    tell();
    let waiter = Waiter::<Linux>::NEW;
    let (word, shared) = (U64::ZERO, U32::ZERO);
    let past = Some(Deadline { clock: Clock::Monotonic, ns: 1 });
    let halves = || {
        let sleep = park_begin(&waiter);
        assert!(sleep.is_some());
        is_deep(0);
        assert!(!park_end(&waiter));
    };
    let sleeps: [&dyn Fn(); 4] = [
        &|| assert_eq!(Linux::park(&waiter, past), Parked::TimedOut),
        &halves,
        &|| assert_eq!(Linux::wait_on(&word, 0, 0, past), Parked::TimedOut),
        &|| assert_eq!(Linux::wait_shared(&shared, 0, past), Parked::TimedOut),
    ];
    for sleep in sleeps {
        let outer = [Mutex::NEW, Mutex::NEW];
        outer.iter().for_each(Mutex::lock);
        is_deep(2);
        sleep();
        is_deep(0);
        // SAFETY: locked above.
        outer.iter().for_each(|lock| unsafe { lock.unlock() });
        is_deep(0);
    }
}
