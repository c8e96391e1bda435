//! An asymmetric pair of fences, and a store that pairs with it: an unlock without a locked
//! instruction. By default a platform has neither.

use core::sync::atomic::Ordering;

use crate::{Atomics, Unsupported};

/// A store that is ordered by a rare and expensive fence of another thread, at no cost to the
/// storing thread.
pub trait LightUnlock: Atomics {
    /// Stores `value` (release) in `word` unless `flag` is non-zero; returns whether it stored.
    ///
    /// Atomic against [`heavy_fence`](Self::heavy_fence): once the fence has returned, each call
    /// that began before the fence has either stored already or will see a flag that was raised
    /// before the fence. The function accesses no memory after the store. Must not be called where
    /// [`light`](Self::light) is `false`.
    ///
    /// # Safety
    ///
    /// Both words must be valid until the store takes effect; they need not be after it.
    unsafe fn store_unless(_word: *const Self::U8, _value: u8, _flag: *const Self::U16) -> bool {
        unreachable!("`light` is false")
    }

    /// Returns whether the calling thread may use [`store_unless`](Self::store_unless). Once any
    /// thread of the process got `true`, [`fenced`](Self::fenced) returns `true` for good.
    fn light() -> bool {
        false
    }

    /// Returns whether some thread may be using `store_unless`, so that a sleeper must fence.
    fn fenced() -> bool {
        false
    }

    /// The cheap half of the asymmetric pair: a [`heavy_fence`](Self::heavy_fence) of another
    /// thread comes either after the caller's earlier stores or before its later loads. Costs
    /// nothing on a platform that has the pair: it is then only a compiler fence.
    #[inline]
    fn light_fence() {
        Self::fence(Ordering::SeqCst);
    }

    /// The expensive half of the asymmetric pair: a full fence in each running thread of the
    /// process, which restarts open [`store_unless`](Self::store_unless) sections.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] where the kernel refuses, for good or this time; a sleeper whose wake
    /// depends on the fence must then not sleep for long.
    fn heavy_fence() -> Result<(), Unsupported> {
        Err(Unsupported)
    }
}
