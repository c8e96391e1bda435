//! A number under a mutex with a condition variable, of each implementation, used in one way.

use super::{Broadcast, Mechanism};

/// The number, the mutex and the condition variable of one implementation.
pub trait Guarded: Sized + Sync {
    /// Makes one whose number is 0.
    fn new() -> Self;

    /// Writes the number, under the mutex.
    fn put(&self, number: u32);

    /// Notifies one waiter, without holding the mutex.
    fn notify_one(&self);

    /// Notifies all waiters, without holding the mutex.
    fn notify_all(&self);

    /// Waits until the number is at least `enough`, and passes it to `then`.
    fn wait(&self, enough: u32, then: impl FnOnce(&mut u32));
}

/// One receiver: the number is a flag.
pub struct One<G>(G);

impl<G: Guarded> Mechanism for One<G> {
    fn new() -> Result<Self, String> {
        Ok(Self(G::new()))
    }

    #[inline]
    fn signal(&self) {
        self.0.put(1);
        self.0.notify_one();
    }

    #[inline]
    fn wait(&self) {
        self.0.wait(1, |flag| *flag = 0);
    }
}

/// Several receivers: the number is the round.
pub struct All<G>(G);

impl<G: Guarded> Broadcast for All<G> {
    fn new(_: usize) -> Result<Self, String> {
        Ok(Self(G::new()))
    }

    fn tell(&self, round: u32) {
        self.0.put(round);
        self.0.notify_all();
    }

    fn wait(&self, _: usize, round: u32) {
        self.0.wait(round, |_| ());
    }
}
