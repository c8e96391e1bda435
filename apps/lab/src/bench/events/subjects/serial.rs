//! A broadcast that notifies the threads one by one.

use super::{Broadcast, Mechanism};

/// A mechanism for each thread.
pub struct Serial<M>(Vec<M>);

impl<M: Mechanism> Broadcast for Serial<M> {
    fn new(waiters: usize) -> Result<Self, String> {
        (0..waiters).map(|_| M::new()).collect::<Result<_, _>>().map(Self)
    }

    fn enter(&self, waiter: usize) {
        self.0[waiter].enter();
    }

    fn tell(&self, _: u32) {
        self.0.iter().for_each(M::signal);
    }

    fn wait(&self, waiter: usize, _: u32) {
        self.0[waiter].wait();
    }
}
