//! The mechanisms by which waiters wait and are notified: the code that runs on Linux.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_sim::{OwnLine, Sim, now};
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::policy::Distance;
use antiphon_sync::wait::{Broadcast, Condvar, CrowdForm, Event, EventCount};

/// A mechanism with its waiters.
pub trait Wakes: 'static {
    /// Makes the mechanism for `waiters` waiters.
    fn new(waiters: usize) -> Self;

    /// Waits until notified. Returns the time of the notification. Calls `ready` once a later
    /// [`wake`](Self::wake) can't be missed.
    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64;

    /// Notifies all waiters, each of which is ready.
    fn wake(&self);

    /// Whether each waiter's CPU has a second thread, which handles its interrupts.
    const HANDLES: bool = false;

    /// Handles an interrupt of the waiter's CPU.
    fn handle(&self, _waiter: usize) {}
}

/// One event for each waiter, set one by one.
impl<F: CrowdForm> Wakes for Vec<OwnLine<Event<Sim, Distance, F>>> {
    fn new(waiters: usize) -> Self {
        (0..waiters).map(|_| OwnLine(Event::NEW)).collect()
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        ready();
        self[waiter].0.wait();
        now()
    }

    fn wake(&self) {
        self.iter().for_each(|event| event.0.set());
    }
}

impl<F: CrowdForm> Wakes for Broadcast<Sim, F> {
    fn new(_: usize) -> Self {
        Self::NEW
    }

    fn wait(&self, _: usize, ready: impl FnOnce()) -> u64 {
        let seen = self.now();
        ready();
        self.wait(seen);
        now()
    }

    fn wake(&self) {
        self.send();
    }
}

/// A list of waiters, which the notifier wakes in a loop.
impl Wakes for Condvar<Sim> {
    fn new(_: usize) -> Self {
        Self::NEW
    }

    fn wait(&self, _: usize, ready: impl FnOnce()) -> u64 {
        self.wait(None, ready, || {});
        now()
    }

    fn wake(&self) {
        self.notify_all();
    }
}

/// A word that the waiters poll.
pub struct Polled(Told);

impl Wakes for Polled {
    fn new(_: usize) -> Self {
        Self(OwnLine(Atomic::ZERO))
    }

    fn wait(&self, _: usize, ready: impl FnOnce()) -> u64 {
        // Relaxed: the waiter's own last wait orders it.
        let seen = self.0.load(Relaxed);
        ready();
        // Acquire: pairs with the Release in `wake`.
        self.0.wait_while(Acquire, |told| told == seen);
        now()
    }

    fn wake(&self) {
        // Release: the work before; pairs with the Acquire in `wait`.
        self.0.fetch_add(1, Release);
    }
}

/// The word of a condition: the number of notifications.
pub type Told = OwnLine<<Sim as Atomics>::U32>;

/// A condition under a mutex, as programs have it: a waiter that returns holds the mutex.
pub struct Condition {
    mutex: OwnLine<ShflMutex<Sim>>,
    told: Told,
}

impl Condition {
    pub fn new() -> Self {
        Self { mutex: OwnLine(ShflMutex::NEW), told: OwnLine(Atomic::ZERO) }
    }

    /// Waits until it changes, by `sleep`, which releases the mutex meanwhile. Returns the time of
    /// the notification.
    pub fn wait(&self, ready: impl FnOnce(), mut sleep: impl FnMut(&ShflMutex<Sim>)) -> u64 {
        // Relaxed, here and below: the mutex orders it.
        self.mutex.lock();
        let seen = self.told.load(Relaxed);
        ready();
        while self.told.load(Relaxed) == seen {
            sleep(&self.mutex);
        }
        let told_ns = now();
        // SAFETY: this thread has locked the mutex above, and each sleep has locked it again.
        unsafe { self.mutex.unlock() };
        told_ns
    }

    /// Changes it.
    pub fn change(&self) {
        self.mutex.lock();
        self.told.fetch_add(1, Relaxed);
        // SAFETY: this thread has locked the mutex above.
        unsafe { self.mutex.unlock() };
    }
}

/// A condition variable, and its condition.
pub struct WithMutex {
    condition: Condition,
    changed: OwnLine<Condvar<Sim>>,
}

impl Wakes for WithMutex {
    fn new(_: usize) -> Self {
        Self { condition: Condition::new(), changed: OwnLine(Condvar::NEW) }
    }

    fn wait(&self, _: usize, ready: impl FnOnce()) -> u64 {
        // SAFETY: this thread has locked the mutex.
        self.condition.wait(ready, |mutex| unsafe {
            self.changed.wait_with(mutex, None);
        })
    }

    fn wake(&self) {
        self.condition.change();
        self.changed.notify_all();
    }
}

/// An event count, and the condition that its waiters check.
pub struct Counted {
    count: OwnLine<EventCount<Sim>>,
    told: Told,
}

impl Wakes for Counted {
    fn new(_: usize) -> Self {
        Self { count: OwnLine(EventCount::NEW), told: OwnLine(Atomic::ZERO) }
    }

    fn wait(&self, _: usize, ready: impl FnOnce()) -> u64 {
        // Relaxed: the waiter's own last wait orders it.
        let seen = self.told.load(Relaxed);
        ready();
        // Acquire, here and below: pairs with the Release in `wake`.
        while self.told.load(Acquire) == seen {
            let key = self.count.prepare();
            if self.told.load(Acquire) != seen {
                key.cancel();
                break;
            }
            key.wait(None);
        }
        now()
    }

    fn wake(&self) {
        // Release: the work before; pairs with the Acquire in `wait`.
        self.told.fetch_add(1, Release);
        self.count.notify_all();
    }
}
