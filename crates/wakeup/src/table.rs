//! A table of actions: each is a function and the word that is its argument.
//!
//! | `taken` | `code` | meaning |
//! |---|---|---|
//! | 0 | 0 | free |
//! | 1 | 0 | being registered, or being unregistered |
//! | 1 | address | registered |
//!
//! - TABLE-1: after [`Table::unregister`] no CPU runs the action: a batch that may have seen it has
//!   ended by then (BATCH-1).
//! - TABLE-2: an action is given its own word: an entry is free again only when no batch can have
//!   seen its code any more.
//! - TABLE-3: a message to an earlier action of the same entry does not run a later one: it was
//!   taken back before the entry was free.

use core::mem;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Atomics};

use crate::batch::Batch;

/// The function of an action. Its argument is the word that was registered with it.
pub type Code = fn(usize);

struct Entry<A: Atomics> {
    /// The address of a [`Code`], or 0.
    code: A::U64,
    word: A::U64,
}

/// The actions that can be sent, by number.
pub struct Table<A: Atomics, const N: usize> {
    entries: [Entry<A>; N],
    /// Apart from the entries, which the path of a message reads.
    taken: [A::U8; N],
}

impl<A: Atomics> Entry<A> {
    const NEW: Self = Self { code: A::U64::ZERO, word: A::U64::ZERO };
}

impl<A: Atomics, const N: usize> Table<A, N> {
    /// A table without actions.
    pub const NEW: Self =
        Self { entries: [const { Entry::NEW }; N], taken: [const { A::U8::ZERO }; N] };

    /// Registers an action: `code`, with the argument `word`. Returns its number, or `None` if the
    /// table is full.
    pub fn register(&self, code: Code, word: usize) -> Option<usize> {
        // Acquire: TABLE-2, the end of the batches; pairs with the release in `unregister`.
        let take = |taken: &A::U8| taken.compare_exchange(0, 1, Acquire, Relaxed).is_ok();
        let index = self.taken.iter().position(take)?;
        let entry = &self.entries[index];
        // Relaxed: published by the code.
        entry.word.store(word as u64, Relaxed);
        // Release: the word, and the caller's past; pairs with the acquire in `run`.
        entry.code.store((code as *const ()).expose_provenance() as u64, Release);
        Some(index)
    }

    /// Runs an action, if it is registered. Called in a batch.
    #[inline]
    pub fn run(&self, index: usize) {
        let entry = &self.entries[index];
        // Acquire: the word; pairs with the release in `register`.
        let code = entry.code.load(Acquire);
        if code == 0 {
            return;
        }
        let code = ptr::with_exposed_provenance::<()>(code as usize);
        // SAFETY: `register` has stored a `Code` there.
        let code = unsafe { mem::transmute::<*const (), Code>(code) };
        // Relaxed: acquired with the code.
        code(entry.word.load(Relaxed) as usize);
    }

    /// Unregisters an action: when this returns, no CPU runs it. `retract` takes back messages that
    /// were sent and not seen (TABLE-3); `batches` are those of all CPUs. Called outside of
    /// batches.
    pub fn unregister<'a>(
        &self,
        index: usize,
        retract: impl FnOnce(),
        batches: impl Iterator<Item = &'a Batch<A>>,
    ) {
        // Relaxed: the fence below orders it.
        self.entries[index].code.store(0, Relaxed);
        retract();
        // BATCH-1: pairs with the fence in `Batch::run`.
        A::fence(SeqCst);
        batches.for_each(Batch::wait);
        // Release: TABLE-2, the end of the batches; pairs with the acquire in `register`.
        self.taken[index].store(0, Release);
    }
}
