//! A form of the mutex that exposes lost wakes.

use antiphon_platform::Budget;
use antiphon_sync::lock::{Form, RwForm};
use antiphon_sync::wait::CrowdForm;

/// All waiters sleep at once and have no backstop, so a lost wake is a hang.
pub struct Sound;

impl Form for Sound {
    const PATIENCE_NS: u32 = 200_000;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::NONE;
    const HEAD_SPIN: Budget = Budget::NONE;
    const LINGER: Budget = Budget::NONE;
    const BACKSTOP_NS: u64 = 0;
}

impl RwForm for Sound {}

/// A woken waiter wakes others.
impl CrowdForm for Sound {
    const ALONE: u32 = 1;
}
