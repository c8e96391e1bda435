//! The posters' end of a mailbox.

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::Ordering::{Release, SeqCst};

use antiphon_platform::{AtomicInteger, Deadline, Notify, Platform};
use antiphon_sync::nap;
use antiphon_sync::wait::{End, Entry};

use super::mailbox::{CLOSED, Shared};
use super::ring::Refusal;
use super::{Message, Park, SignalId};

/// Posts to one mailbox. A clone posts to the same mailbox.
pub struct Sender<P: Platform, N: Notify = Park<P>>(pub(super) Arc<Shared<P, N>>);

/// The reason why a message was not posted, with the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPosted {
    /// There was no room, or none until the deadline if there was one.
    Full(Message),
    /// The mailbox was closed, or dropped by its owner.
    Closed(Message),
    /// The action is one for signals, or the name was made from the word zero.
    ForSignals(Message),
}

/// The reason why a signal was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSignalled {
    /// The action is no longer registered.
    Unregistered,
    /// The mailbox was closed, or dropped by its owner.
    Closed,
}

impl<P: Platform, N: Notify> Sender<P, N> {
    /// Posts a message. Does not block; makes a system call if the owner sleeps, to wake it.
    ///
    /// The caller's earlier accesses happen before the action.
    ///
    /// # Errors
    ///
    /// [`NotPosted`], with the message.
    #[inline]
    pub fn post(&self, message: Message) -> Result<(), NotPosted> {
        if message.action.is_of_signals() {
            return Err(NotPosted::ForSignals(message));
        }
        match self.0.ring.push(&message) {
            Ok(()) => {
                self.0.bell.0.ring(&self.0.notify);
                Ok(())
            }
            Err(Refusal::Full) => Err(NotPosted::Full(message)),
            Err(Refusal::Closed) => Err(NotPosted::Closed(message)),
        }
    }

    /// Posts a message; if there is no room, sleeps until a poll of the owner makes some. An action
    /// should not call it: if the owners of two mailboxes post to each other in this way, and both
    /// are full, neither makes room.
    ///
    /// # Errors
    ///
    /// [`NotPosted::Full`] when the deadline has passed, or at once if the caller is an action that
    /// this mailbox runs, and would wait for itself; [`NotPosted::Closed`], and
    /// [`NotPosted::ForSignals`].
    pub fn post_wait(&self, message: Message, deadline: Option<Deadline>) -> Result<(), NotPosted> {
        let mut tried = self.post(message);
        if is_full(&tried) && self.0.pulse.is_of(P::task()) {
            return tried;
        }
        let mut last = false;
        while is_full(&tried) && !last {
            let entry = self.0.room.prepare();
            // ROOM: pairs with the fence in `Mailbox::poll`, and with the one in `close`.
            P::fence(SeqCst);
            tried = self.post(message);
            if is_full(&tried) {
                while !entry.sleep(deadline) {}
                last = self.finish(entry) || nap::passed::<P>(deadline);
                tried = self.post(message);
            } else {
                // It has taken a slot, so it does not matter whether it was notified, too.
                let _ = self.finish(entry);
            }
        }
        tried
    }

    /// Ends a wait for room; returns whether it had not been ended before.
    fn finish(&self, entry: Entry<P>) -> bool {
        // SAFETY: prepared by the same condition variable.
        matches!(unsafe { self.0.room.finish(entry) }, End::GaveUp)
    }

    /// Makes the owner run the action of `id` at least once from now on. Signals of one action
    /// coalesce until the owner has seen them. Does not block; makes a system call if the owner
    /// sleeps.
    ///
    /// The caller's earlier accesses happen before the action.
    ///
    /// # Errors
    ///
    /// [`NotSignalled`].
    pub fn signal(&self, id: SignalId) -> Result<(), NotSignalled> {
        if !self.0.actions.knows(id.action()) {
            return Err(NotSignalled::Unregistered);
        }
        // A read-modify-write even if the bit is set: the owner that takes it must come after this
        // call. Release: the caller's accesses; pairs with the acquire in `Mailbox::run_signals`.
        if self.0.signals.0.fetch_or(id.bit(), Release) & CLOSED != 0 {
            return Err(NotSignalled::Closed);
        }
        // Rings even if other signals were pending: the threads that set those may have been
        // stopped before they rang.
        self.0.bell.0.ring(&self.0.notify);
        Ok(())
    }
}

fn is_full(tried: &Result<(), NotPosted>) -> bool {
    matches!(tried, Err(NotPosted::Full(_)))
}

impl<P: Platform, N: Notify> Clone for Sender<P, N> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: Platform, N: Notify> fmt::Debug for Sender<P, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl fmt::Display for NotPosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the mailbox is full: post again later, or wait",
            Self::Closed(_) => "the mailbox is closed",
            Self::ForSignals(_) => {
                "no message can run this action: use one that `register` has returned"
            }
        })
    }
}

impl fmt::Display for NotSignalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unregistered => "the action was unregistered",
            Self::Closed => "the mailbox is closed",
        })
    }
}

impl core::error::Error for NotPosted {}
impl core::error::Error for NotSignalled {}
