//! The constants of a lock's form: how long waiters spin, how fair the lock is, and whether its
//! head sleeps.

use antiphon_platform::Budget;

/// Constants of a lock's form, and whether its head may sleep. The defaults are the values of
/// [`Standard`].
pub trait Form: Send + Sync + 'static {
    /// Whether the head of the queue may sleep. In the published form it may not; unlock is then a
    /// plain store.
    const HEAD_SLEEPS: bool = true;
    /// The largest number of waiters that a shuffler gathers, and that it looks at in one call
    /// (INV-5).
    const GROUP: u32 = 1024;
    /// Minimum time for which a called head may be overtaken, in nanoseconds; `u32::MAX` is for
    /// ever.
    const PATIENCE_NS: u32 = 50_000;
    /// Number of times that a thread overtakes called heads between two looks at the clock.
    const LOOK: u32 = 16;
    /// How long an arriving waiter spins before it joins the queue.
    const SPIN: Budget = Budget::ns(1_000);
    /// How long a waiter spins in the queue before it sleeps.
    const QUEUE_SPIN: Budget = Budget::ns(2_000);
    /// How long the head spins before it sleeps.
    const HEAD_SPIN: Budget = Budget::ns(5_000);
    /// How long a waiter in the queue, or the head, spins where CPUs are to spare: about the cost
    /// of a sleep and a wake. A head then also wakes the waiter behind it, so that this waiter is
    /// awake when its turn comes. 0: both spin no longer than elsewhere, and the head wakes no
    /// waiter.
    const LINGER: Budget = Budget::ns(100_000);
    /// How many times in a row the lock is handed over within one socket while other sockets wait.
    const COHORT: u16 = 64;
    /// Whether an owner that has waited expects other waiters to come while it has the lock, and
    /// hands the lock over though no thread waits yet. If false, it does so only where CPUs are to
    /// spare.
    const EXPECTS: bool = false;
    /// Length of a waiter's first sleep, in nanoseconds, before it checks whether the lock is free
    /// and no thread takes it: the head may be stuck in a signal handler, or stopped. 0: no limit.
    const BACKSTOP_NS: u64 = 50_000_000;
}

/// Every waiter may sleep: the form to use.
pub struct Standard;

impl Form for Standard {}

/// The published form: the head never sleeps, so it is never called. For comparison.
pub struct Published;

impl Form for Published {
    const HEAD_SLEEPS: bool = false;
    const PATIENCE_NS: u32 = u32::MAX;
    const LOOK: u32 = u32::MAX;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::ns(9_000);
    const HEAD_SPIN: Budget = Budget::ns(9_000);
    const LINGER: Budget = Budget::NONE;
    const BACKSTOP_NS: u64 = 0;
}
