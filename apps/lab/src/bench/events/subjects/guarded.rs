//! A number under a mutex, and a condition variable: of each make, told and waited for in one way.

use super::{Broadcast, Mechanism};

/// The number, the mutex and the condition variable of some make.
pub trait Guarded: Sized + Sync {
    /// The number is 0.
    fn new() -> Self;

    /// Writes the number, under the mutex.
    fn put(&self, number: u32);

    /// Tells one that waits, without the mutex.
    fn notify_one(&self);

    /// Tells all that wait, without the mutex.
    fn notify_all(&self);

    /// Waits for a number that is enough, and lets `then` have it.
    fn wait(&self, enough: u32, then: impl FnOnce(&mut u32));
}

/// The number is a flag.
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

/// The number is the round.
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
