//! Runners of tasks, and how tasks are given to them.

/// Runs tasks.
pub trait Runner: Sync + 'static {
    /// Runs `work`, at once or later.
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static);

    /// Runs a task of this kind, for policies that distinguish kinds.
    fn spawn_as(&'static self, _kind: Kind, work: impl FnOnce() + Send + 'static) {
        self.spawn(work);
    }

    /// Runs `step` repeatedly, each time as a task, until it returns false.
    fn repeat(&'static self, kind: Kind, mut step: impl FnMut() -> bool + Send + 'static) {
        self.spawn_as(kind, move || {
            if step() {
                self.repeat(kind, step);
            }
        });
    }
}

/// The properties of a task that a policy may use.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Stage, from 0; a task that begins work has the lowest.
    pub stage: u64,
    /// Level of urgency; 0 is the most urgent.
    pub level: u64,
    /// Time by which the task should be done, in nanoseconds of the monotonic clock.
    pub due_ns: u64,
}

/// Stage of the tasks that follow the first one of a long chain.
pub const LONG_STAGE: u64 = 1;

/// A run of some work; the tasks that `R` runs refer to it.
pub struct Run<R: 'static, W: 'static> {
    /// The runner of the tasks.
    pub runner: &'static R,
    /// The tasks.
    pub work: &'static W,
}

impl<R, W> Clone for Run<R, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, W> Copy for Run<R, W> {}
