//! Entries of a table that have one owner at a time, and the names by which owners give them back.
//!
//! | state of an entry | meaning |
//! |---|---|
//! | 4 × generation | free |
//! | … + 1 | it has an owner, whose name has this generation |
//! | … + 2 | the owner is giving it back; then it is free, with the next generation |
//!
//! - NAME-1: an entry has one owner at a time. All that was done until it was given back comes
//!   before all that its next owner does.
//! - NAME-2: an entry is given back once: the name says which owner it is, so a copy of the name is
//!   refused afterwards, also when the entry has another owner.
//!
//! A generation has thirty bits: a copy that is kept while its entry has 2^30 further owners is not
//! recognized.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Atomics};

const PHASES: u32 = 4;
const FREE: u32 = 0;
const OWNED: u32 = 1;
const LEAVING: u32 = 2;

/// The name of an entry and of its owner: the number of the entry in the low half, and in the high
/// half its state while it is free, before it is given to this owner. One word, because a sender
/// keeps it in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(u64);

/// The states of the entries.
pub struct Names<A: Atomics, const N: usize>([A::U32; N]);

impl Name {
    #[inline]
    fn new(index: u16, free: u32) -> Self {
        Self(u64::from(free) << 32 | u64::from(index))
    }

    /// Returns the number of the entry.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        (self.0 & u64::from(u16::MAX)) as usize
    }

    fn free(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl<A: Atomics, const N: usize> Names<A, N> {
    /// Free entries.
    pub const NEW: Self = {
        assert!(N <= 1 << 16, "a name has sixteen bits for the number");
        Self([const { A::U32::ZERO }; N])
    };

    /// Makes the caller the owner of a free entry. Returns `None` if there is none.
    pub fn take(&self) -> Option<Name> {
        self.0.iter().zip(0..=u16::MAX).find_map(|(state, index)| {
            // Relaxed: the exchange checks it again.
            let mut seen = state.load(Relaxed);
            while seen % PHASES == FREE {
                // Acquire: NAME-1; pairs with the release in `free`.
                match state.compare_exchange(seen, seen + OWNED, Acquire, Relaxed) {
                    Ok(free) => return Some(Name::new(index, free)),
                    Err(now) => seen = now,
                }
            }
            None
        })
    }

    /// Begins to give an entry back. Returns `false` if the owner of that name has done so before
    /// (NAME-2). The caller of the one call that returns `true` then [frees](Self::free) the entry.
    #[must_use]
    pub fn leave(&self, name: Name) -> bool {
        let state = &self.0[name.index()];
        // Relaxed: the owner's past came with the name.
        state.compare_exchange(name.free() + OWNED, name.free() + LEAVING, Relaxed, Relaxed).is_ok()
    }

    /// Makes the entry free, after [`leave`](Self::leave).
    pub fn free(&self, name: Name) {
        // Release: NAME-1, the end of the uses; pairs with the acquire in `take`.
        self.0[name.index()].store(name.free().wrapping_add(PHASES), Release);
    }
}
