//! Actions that have a vector of their own: the processor itself finds the code, by the vector's
//! gate. So an action can't be waited for as one of a table: its handler counts nothing.
//!
//! Instead, [`Vectors::unregister`] sends each CPU an interrupt of a lower vector, a *pass*, and
//! waits until it was taken. A CPU takes the highest vector first, and takes no other interrupt
//! while it is in a handler.
//!
//! - DIRECT-1: after `unregister` no CPU runs the action. The vector's gate leads elsewhere before
//!   the passes are sent, and each CPU has taken its pass: before that, it ended any handler that
//!   it had entered by the old gate.
//! - DIRECT-2: a post to an earlier action of the same vector does not run a later one, if
//!   interrupts arrive in the order in which they were sent, the last post before the call: the CPU
//!   took it before the pass.
//! - DIRECT-3: a pass that is waited for was sent by the same caller. One that another caller has
//!   sent may be in its handler already, with a post behind it that was not taken yet.
//! - DIRECT-4: an action is unregistered once (NAME-2).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Atomics};

use crate::names::{Name, Names};

/// The vectors, by number from 0 on.
pub struct Vectors<A: Atomics, const N: usize> {
    names: Names<A, N>,
    /// 1 while a caller sends passes and waits for them.
    passing: A::U8,
}

/// Number of passes that a CPU has taken.
pub struct Passes<A: Atomics>(A::U32);

impl<A: Atomics> Passes<A> {
    /// The number of a CPU that has taken none.
    pub const NEW: Self = Self(A::U32::ZERO);

    /// Handles the interrupt of a pass. Called by the CPU itself, with interrupts off.
    #[inline]
    pub fn pass(&self) {
        // Release: DIRECT-1, what this CPU ran; pairs with the acquire in `unregister`.
        self.0.fetch_add(1, Release);
    }
}

impl<A: Atomics, const N: usize> Vectors<A, N> {
    /// Vectors without actions.
    pub const NEW: Self = Self { names: Names::NEW, passing: A::U8::ZERO };

    /// Gives the caller a free vector; the caller then sets its gate. Returns `None` if all are in
    /// use.
    pub fn register(&self) -> Option<Name> {
        self.names.take()
    }

    /// Unregisters an action: when this returns `true`, no CPU runs it. Returns `false` if that was
    /// begun before (DIRECT-4). `close` makes the vector's gate lead to code that does nothing;
    /// `cpus` are all CPUs: the number of passes of each, and a function that sends it a pass,
    /// after all earlier stores. Called with interrupts on, in no handler.
    #[must_use]
    pub fn unregister<'a>(
        &self,
        name: Name,
        close: impl FnOnce(),
        cpus: impl Iterator<Item = (&'a Passes<A>, impl FnOnce())>,
    ) -> bool {
        if !self.names.leave(name) {
            return false;
        }
        // DIRECT-1: before the passes.
        close();
        // DIRECT-3. Acquire: the passes of the caller before; pairs with the release below.
        while self.passing.swap(1, Acquire) == 1 {
            // Relaxed: the exchange checks it again.
            self.passing.wait_while(Relaxed, |passing| passing == 1);
        }
        for (passes, send) in cpus {
            // Relaxed: only the passes of this caller change it now.
            let seen = passes.0.load(Relaxed);
            send();
            // Acquire: DIRECT-1, what that CPU ran; pairs with the release in `pass`.
            passes.0.wait_while(Acquire, |now| now == seen);
        }
        // Release: our passes; pairs with the acquire above.
        self.passing.store(0, Release);
        // The next action of the vector comes after all of this (NAME-1).
        self.names.free(name);
        true
    }
}
