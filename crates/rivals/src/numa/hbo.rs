//! The hierarchical backoff lock (HBO): a test-and-set lock whose waiters back off for longer if
//! the owner is on another socket.
//!
//! Source: Z. Radović, E. Hagersten, "Hierarchical Backoff Locks for Nonuniform Communication
//! Architectures", HPCA 2003: HBO; without the throttling of HBO_GT and the detection of starvation
//! of HBO_GT_SD, which need a word for each socket.
//!
//! ```text
//! holder   0 free; otherwise the owner's socket plus 1
//!
//!   exchange 0 for our socket ──► was 0: owner
//!        ▲            │
//!        └─ stay away ┘ for longer each time; from the first, shorter one, if the owner is now
//!                       on our socket and was not
//! ```
//!
//! The first NUMA-aware lock, and the smallest: it only lets neighbours come back sooner. It gives
//! no guarantee to the others.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use crate::classic::stay_away;

const FREE: u16 = 0;

/// The longest pause is the first one, doubled this many times.
const DOUBLINGS: u32 = 6;

/// An HBO lock, 2 bytes. The first backoff is `NEAR_NS` nanoseconds long if the owner is on the
/// same socket, and `FAR_NS` if it is not.
#[repr(transparent)]
pub struct Hbo<P: Platform, const NEAR_NS: u32 = 100, const FAR_NS: u32 = 1_000> {
    holder: P::U16,
}

impl<P: Platform, const NEAR_NS: u32, const FAR_NS: u32> Hbo<P, NEAR_NS, FAR_NS> {
    /// A free lock.
    pub const NEW: Self = Self { holder: P::U16::ZERO };

    /// Acquires the lock: retries with backoff until the caller has it.
    pub fn lock(&self) {
        let mine = mine::<P>();
        let (mut was_near, mut ns) = (false, 0);
        while let Err(holder) = self.take(mine) {
            let near = holder == mine;
            let first_ns = if near { NEAR_NS } else { FAR_NS };
            let again = ns > 0 && near == was_near;
            ns = if again { (2 * ns).min(first_ns << DOUBLINGS) } else { first_ns };
            was_near = near;
            stay_away::<P>(ns);
        }
    }

    /// Acquires the lock if it is free; never blocks.
    pub fn try_lock(&self) -> bool {
        self.take(mine::<P>()).is_ok()
    }

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        // Release: pairs with the acquire of the next owner.
        self.holder.store(FREE, Release);
    }

    /// # Errors
    ///
    /// The holder of the lock.
    fn take(&self, mine: u16) -> Result<u16, u16> {
        // Acquire: pairs with the release in `unlock`.
        self.holder.compare_exchange(FREE, mine, Acquire, Relaxed)
    }
}

/// Returns the value of `holder` if the caller has the lock. Sockets whose numbers differ by 65 535
/// are mistaken for each other.
fn mine<P: Platform>() -> u16 {
    (P::socket().0 % u32::from(u16::MAX)) as u16 + 1
}

antiphon_sync::impl_lock!(
    unsafe [P: Platform, const NEAR_NS: u32, const FAR_NS: u32] Hbo<P, NEAR_NS, FAR_NS>
);
