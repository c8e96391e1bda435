//! Forms of the mutex with small constants.

use antiphon_check::Check;
use antiphon_platform::{Budget, Platform};
use antiphon_sync::lock::{Form, RwForm, ShflMutex};
use antiphon_sync::policy;
use antiphon_sync::wait::CrowdForm;

/// Small numbers, so that a few threads reach every edge: spins in the queue of `SPIN` nanoseconds,
/// which may end in any way; a first check whether the head is stuck after `BACKSTOP_NS`; a
/// signalled head that may be overtaken for `PATIENCE_NS`.
pub struct Small<const SPIN: u32, const BACKSTOP_NS: u64, const PATIENCE_NS: u32>;

impl<const SPIN: u32, const BACKSTOP_NS: u64, const PATIENCE_NS: u32> Form
    for Small<SPIN, BACKSTOP_NS, PATIENCE_NS>
{
    const GROUP: u32 = 3;
    const PATIENCE_NS: u32 = PATIENCE_NS;
    const LOOK: u32 = 1;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::ns(SPIN);
    const HEAD_SPIN: Budget = Budget::ns(SPIN);
    const LINGER: Budget = Budget::NONE;
    const BACKSTOP_NS: u64 = BACKSTOP_NS;
}

impl<const SPIN: u32, const BACKSTOP_NS: u64, const PATIENCE_NS: u32> RwForm
    for Small<SPIN, BACKSTOP_NS, PATIENCE_NS>
{
    const REST: u32 = 0;
    const CROWD: u32 = u32::MAX;
}

/// A waker that releases two sleepers leaves one of them for the other to wake.
impl<const SPIN: u32, const BACKSTOP_NS: u64, const PATIENCE_NS: u32> CrowdForm
    for Small<SPIN, BACKSTOP_NS, PATIENCE_NS>
{
    const ALONE: u32 = 1;

    fn event_spin_ns<P: Platform>() -> u32 {
        SPIN
    }
}

const FOR_EVER: u32 = u32::MAX;

/// The form for spare CPUs: waiters spin, and owners hand over, `COHORT` times in a row within a
/// socket. The backstop is `BACKSTOP_NS`.
pub struct Handing<const COHORT: u16, const BACKSTOP_NS: u64>;

impl<const COHORT: u16, const BACKSTOP_NS: u64> Form for Handing<COHORT, BACKSTOP_NS> {
    const GROUP: u32 = 3;
    const PATIENCE_NS: u32 = FOR_EVER;
    const LOOK: u32 = 1;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::ns(1);
    const HEAD_SPIN: Budget = Budget::ns(1);
    const LINGER: Budget = Budget::ns(1);
    const COHORT: u16 = COHORT;
    const BACKSTOP_NS: u64 = BACKSTOP_NS;
}

/// All waiters sleep, and the head's patience never ends.
pub type Sleepy = Small<0, 0, FOR_EVER>;

/// [`Sleepy`] with spins.
pub type Spinning = Small<1, 0, FOR_EVER>;

/// [`Sleepy`] with a backstop: waiters sometimes check whether the lock is free and no thread takes
/// it.
pub type Backed = Small<0, 1, FOR_EVER>;

/// [`Sleepy`] in which a head that was signalled and overtaken requests a hand-off at once.
pub type Insistent = Small<0, 0, 0>;

/// [`Insistent`] with waiters that may leave the queue before their turn.
pub type Overtaken = Small<0, 1, 0>;

/// The mutex whose waiters all sleep.
pub type Mutex = ShflMutex<Check, policy::None, Sleepy>;
