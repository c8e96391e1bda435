//! Runners of tasks, and how tasks are given to them.

/// Runs tasks.
pub trait Runner: Sync + 'static {
    /// Runs `work`, some time or at once.
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static);

    /// Runs a task of some kind, where the policy tells kinds apart.
    fn spawn_as(&'static self, _kind: Kind, work: impl FnOnce() + Send + 'static) {
        self.spawn(work);
    }

    /// Runs `step` as a task again and again, each time until it says that there is no more.
    fn repeat(&'static self, kind: Kind, mut step: impl FnMut() -> bool + Send + 'static) {
        self.spawn_as(kind, move || {
            if step() {
                self.repeat(kind, step);
            }
        });
    }
}

/// The properties of a task that a policy may want to know.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its stage, from 0 on; what is begun first has the lowest.
    pub stage: u64,
    /// How urgent it is, 0 the most.
    pub level: u64,
    /// The time when it is to be done, in nanoseconds of the monotonic clock.
    pub due_ns: u64,
}
