//! Forms of the mutex with small numbers.

use antiphon_check::Check;
use antiphon_platform::Budget;
use antiphon_sync::lock::{Form, ShflMutex};
use antiphon_sync::policy;

/// Small numbers, so that a few threads reach every edge; no spins, so that all of them sleep.
pub struct Sleepy;

impl Form for Sleepy {
    const HEAD_SLEEPS: bool = true;
    const GROUP: u32 = 3;
    const PATIENCE: u32 = 1;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::NONE;
    const HEAD_SPIN: Budget = Budget::NONE;
    const BACKSTOP_NS: u64 = 0;
}

/// As [`Sleepy`], but with spins in the queue, which end in any way they may.
pub struct Spinning;

impl Form for Spinning {
    const HEAD_SLEEPS: bool = true;
    const GROUP: u32 = 3;
    const PATIENCE: u32 = 1;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::ns(1);
    const HEAD_SPIN: Budget = Budget::ns(1);
    const BACKSTOP_NS: u64 = 0;
}

/// As [`Sleepy`], but waiters look now and then whether the lock is free and nobody takes it.
pub struct Backed;

impl Form for Backed {
    const HEAD_SLEEPS: bool = true;
    const GROUP: u32 = 3;
    const PATIENCE: u32 = 1;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::NONE;
    const HEAD_SPIN: Budget = Budget::NONE;
    const BACKSTOP_NS: u64 = 1;
}

/// The mutex whose waiters all sleep.
pub type Mutex = ShflMutex<Check, policy::None, Sleepy>;
