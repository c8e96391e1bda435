//! A table of actions: each is a function and the word that is its argument.
//!
//! An action has a [name](crate::names). While its entry is being registered or unregistered, or is
//! free, it has no code.
//!
//! - TABLE-1: after [`Table::unregister`] no CPU runs the action: a batch that may have seen it has
//!   ended by then (BATCH-1).
//! - TABLE-2: an action is given its own word: an entry is free again only when no batch can have
//!   seen its code any more.
//! - TABLE-3: a message to an earlier action of the same entry does not run a later one: it was
//!   taken back before the entry was free.
//! - TABLE-4: an action is unregistered once (NAME-2): a second call with a copy of its name
//!   changes nothing.

use core::mem;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Atomics};

use crate::batch::{Batch, Running};
use crate::names::{Name, Names};

/// The function of an action. Its argument is the word that was registered with it. To this crate
/// the word is a number; a function that makes an address of it relies on TABLE-1 and TABLE-2, and
/// so on the batches that [`Table::unregister`] is given: they must be those of all CPUs.
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
    names: Names<A, N>,
}

impl<A: Atomics> Entry<A> {
    const NEW: Self = Self { code: A::U64::ZERO, word: A::U64::ZERO };
}

impl<A: Atomics, const N: usize> Table<A, N> {
    /// A table without actions.
    pub const NEW: Self = Self { entries: [const { Entry::NEW }; N], names: Names::NEW };

    /// Registers an action: `code`, with the argument `word`. Returns its name, or `None` if the
    /// table is full.
    pub fn register(&self, code: Code, word: usize) -> Option<Name> {
        // TABLE-2: the batches have ended (NAME-1).
        let name = self.names.take()?;
        let entry = &self.entries[name.index()];
        // Relaxed: published by the code.
        entry.word.store(word as u64, Relaxed);
        // Release: the word, and the caller's past; pairs with the acquire in `run`.
        entry.code.store((code as *const ()).expose_provenance() as u64, Release);
        Some(name)
    }

    /// Runs an action, if it is registered.
    #[inline]
    pub fn run(&self, _: &Running, index: usize) {
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

    /// Unregisters an action: when this returns `true`, no CPU runs it. Returns `false` if that was
    /// begun before (TABLE-4). `retract` takes back messages that were sent and not seen (TABLE-3);
    /// `batches` are those of all CPUs. Called outside of batches.
    #[must_use]
    pub fn unregister<'a>(
        &self,
        name: Name,
        retract: impl FnOnce(),
        batches: impl Iterator<Item = &'a Batch<A>>,
    ) -> bool {
        // TABLE-4.
        if !self.names.leave(name) {
            return false;
        }
        // Relaxed: the fence below orders it.
        self.entries[name.index()].code.store(0, Relaxed);
        retract();
        // BATCH-1: pairs with the fence in `Batch::run`.
        A::fence(SeqCst);
        batches.for_each(Batch::wait);
        // TABLE-2: the next action sees the end of the batches (NAME-1).
        self.names.free(name);
        true
    }
}
