//! An asymmetric pair of fences, and a store that goes with it: an unlock without a locked
//! instruction. By default a platform has neither.

use core::sync::atomic::Ordering;

use crate::{Atomics, Unsupported};

/// A store that a rare and expensive fence of another thread sees, at no cost to the storing
/// thread.
pub trait LightUnlock: Atomics {
    /// Stores `value` (release) in `word` unless `flag` is non-zero; says whether it stored.
    ///
    /// Atomic against [`heavy_fence`](Self::heavy_fence): once that has returned, each call that
    /// began before it has either stored already or will see a flag that was raised before it.
    /// Nothing is touched after the store. Where [`light`](Self::light) is `false` this may not be
    /// called.
    ///
    /// # Safety
    ///
    /// Both words must be valid until the store takes effect; not after it.
    unsafe fn store_unless(_word: *const Self::U8, _value: u8, _flag: *const Self::U16) -> bool {
        unreachable!("`light` is false")
    }

    /// Whether the calling thread may use [`store_unless`](Self::store_unless). Once any thread of
    /// the process got `true`, [`fenced`](Self::fenced) is `true` for good.
    fn light() -> bool {
        false
    }

    /// Whether some thread may be using `store_unless`, so that a sleeper has to fence.
    fn fenced() -> bool {
        false
    }

    /// The cheap half of the asymmetric pair: a [`heavy_fence`](Self::heavy_fence) of another
    /// thread is after what the caller has stored before this, or before what it loads after it.
    /// Costs nothing on a platform that has it: it is then a compiler fence only.
    #[inline]
    fn light_fence() {
        Self::fence(Ordering::SeqCst);
    }

    /// The expensive half of the asymmetric pair: a full fence in each running thread of the
    /// process, which restarts open [`store_unless`](Self::store_unless) sections.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] where the kernel refuses, for good or this time; a sleeper that relies on it
    /// to be woken must not sleep for long then.
    fn heavy_fence() -> Result<(), Unsupported> {
        Err(Unsupported)
    }
}
