//! The mailbox of one CPU: a node of the arena, in which one client at a time posts its section.
//!
//! | field of the node | meaning |
//! |---|---|
//! | `queue` | name of the section, 0 if the box is empty; its lowest bit is `ASLEEP` |
//!
//! ```text
//!           post                 the client sleeps
//!   empty ────────► section ───────────────────────► section + ASLEEP
//!     ▲                │ was run                        │ was run: wakes it
//!     └────────────────┴────────────────────────────────┘
//! ```
//!
//! - BOX-1: a client that has found the box empty by its exchange has it until the server empties
//!   it. The server empties it once for each section, after running the section.
//! - BOX-2: a client that sleeps has left the name of its node before `ASLEEP`: in its section and
//!   not in the box, which another client may have by then. The server reads that name before it
//!   empties the box.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, WaiterId};

use super::section::Name;
use super::spin;
use crate::arena;
use crate::classic::node::Node;

const ASLEEP: u64 = 1;

/// A mailbox.
pub(super) struct Mailbox<P: Platform>(Node<P>);

impl<P: Platform> Mailbox<P> {
    /// Returns the box that `word` names; `None` if there is none, or a parent process has left it.
    pub(super) fn at(word: &P::U32) -> Option<Self> {
        // Acquire: pairs with the release in `of`.
        Self::named(word.load(Acquire))
    }

    fn named(bits: u32) -> Option<Self> {
        let id = WaiterId::from_bits(bits)?;
        Some(Self(Node { id, waiter: arena::<P>().resolve(id)? }))
    }

    /// Returns the box that `word` names, after making it if there is none; `None` if no node is
    /// free for it.
    pub(super) fn of(word: &P::U32) -> Option<Self> {
        // Acquire: as in `at`.
        let mut seen = word.load(Acquire);
        loop {
            if let Some(made) = Self::named(seen) {
                return Some(made);
            }
            let new = Node::<P>::try_take()?;
            // Relaxed: published with the name.
            new.waiter.queue.store(0, Relaxed);
            // Release: the empty box; pairs with the acquires in this function and in `at`.
            match word.compare_exchange(seen, new.bits(), Release, Acquire) {
                Ok(_) => return Some(Self(new)),
                Err(now) => {
                    new.give();
                    seen = now;
                }
            }
        }
    }

    /// Gives the box back; no thread may use it.
    pub(super) fn give(self) {
        self.0.give();
    }

    /// Posts a section if the box is empty; returns whether it was.
    pub(super) fn post(&self, section: Name) -> bool {
        let word = &self.0.waiter.queue;
        // Relaxed: a check, so that the exchange seldom fails. Release: the section; pairs with the
        // acquire in `section`.
        word.load(Relaxed) == 0
            && word.compare_exchange(0, section.bits(), Release, Relaxed).is_ok()
    }

    /// Waits until the caller's section was run: spins for at most `spin_ns` nanoseconds, then
    /// leaves the name of its node in the section's `sleeper` and sleeps.
    pub(super) fn wait(&self, section: Name, sleeper: &P::U32, spin_ns: u32) {
        let word = &self.0.waiter.queue;
        let here = section.bits();
        // Acquire, in there: pairs with the release in `empty`.
        if spin::<P, u64>(word, spin_ns, |seen| seen == here).is_ok() {
            return;
        }
        let me = Node::take();
        // Relaxed: published by the exchange.
        sleeper.store(me.bits(), Relaxed);
        // Release: the name of our node; pairs with the acquires in `section` and `empty`. Acquire
        // where it fails: our section was run; pairs with the release in `empty`.
        let sleeps = word.compare_exchange(here, here | ASLEEP, Release, Acquire);
        // Acquire: pairs with the release in `empty`.
        while sleeps.is_ok() && word.load(Acquire) == here | ASLEEP {
            // The reason for the return does not matter: the loop checks the word.
            let _ = P::park(me.waiter, None);
        }
        me.give();
    }

    /// Returns the content of the box; `None` if it is empty.
    pub(super) fn section(&self) -> Option<Posted> {
        // Acquire: pairs with the releases in `post` and `wait`.
        let word = self.0.waiter.queue.load(Acquire);
        (word != 0).then_some(Posted(word))
    }

    /// Empties the box after its section was run, and wakes its client if it sleeps.
    pub(super) fn empty(&self, posted: Posted) {
        let Posted(mut seen) = posted;
        loop {
            // SAFETY: BOX-1: the section's owner waits until the box is empty.
            let sleeper = || unsafe { Posted(seen).name().sleeper::<P>() };
            let client = if seen & ASLEEP == 0 { None } else { Node::<P>::at(sleeper()) };
            let client = client.and_then(|client| client.reference());
            // Release: what the section has done and returned; pairs with the acquires in `wait`.
            // Acquire where it fails: the client sleeps by now, as in `section`.
            match self.0.waiter.queue.compare_exchange(seen, 0, Release, Acquire) {
                Ok(_) => {
                    if let Some(client) = client {
                        P::unpark(client);
                    }
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }
}

/// Content that the server has found in a box.
#[derive(Clone, Copy)]
pub(super) struct Posted(u64);

impl Posted {
    /// The section.
    pub(super) fn name(self) -> Name {
        Name::from_bits(self.0 & !ASLEEP)
    }
}
