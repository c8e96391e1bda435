//! Polls of a thread for the files that its fibers wait for, and when they are due.

use std::cell::{Cell, OnceCell};
use std::io;

use antiphon_linux::notify::EventFd;
use antiphon_platform::Deadline;

use super::current;
use super::reactor::Reactor;
#[cfg(feature = "io_uring")]
use super::ring::Ring;
#[cfg(feature = "io_uring")]
use crate::backend::{Backend, backend};

/// The polls of a thread: with its reactor, once it has one.
#[derive(Default)]
pub(super) struct Polls {
    /// Made when a fiber is the first to wait for a file.
    reactor: OnceCell<Reactor>,
    /// Asked for then, too; nothing: there is none to be had.
    #[cfg(feature = "io_uring")]
    ring: OnceCell<Option<Ring>>,
    /// How many fibers wait for files, or have done and not gone on.
    waiting: Cell<usize>,
    /// Whether there was a poll after the last question whether one is due; and when that was,
    /// about.
    polled: Cell<bool>,
    polled_ns: Cell<u64>,
    /// Whether the last rest ended with no more than one fiber that may go on.
    alone: Cell<bool>,
}

/// Time between two polls where fibers may go on all the time, in nanoseconds.
const EVERY_NS: u64 = 200_000;

impl Polls {
    /// Whether there is nothing to poll for.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.get() == 0
    }

    /// How many fibers wait for files, or have done and not gone on.
    pub(super) fn count(&self) -> usize {
        self.waiting.get()
    }

    /// Whether there is to be a poll now, though fibers may go on.
    pub(super) fn is_due(&self, now: u64) -> bool {
        if self.polled.take() {
            self.polled_ns.set(now);
        }
        !self.is_idle() && now.saturating_sub(self.polled_ns.get()) >= EVERY_NS
    }

    /// Whether there is to be a poll before the thread looks for tasks of others, or rests. One
    /// such poll is left out after a rest that was for one fiber: files that come one by one are
    /// waited for anyway.
    pub(super) fn is_worth_it(&self) -> bool {
        #[cfg(feature = "io_uring")]
        if let Some(ring) = self.known_ring() {
            return ring.is_worth_it();
        }
        !self.is_idle() && !self.alone.take()
    }

    /// Polls as [`Reactor::poll`] does.
    pub(super) fn poll(&self, deadline: Option<Deadline>, wake: impl Fn(u64)) -> usize {
        self.polled.set(true);
        #[cfg(feature = "io_uring")]
        if let Some(ring) = self.known_ring() {
            return ring.poll(deadline, wake);
        }
        self.known().map_or(0, |reactor| reactor.poll(deadline, wake))
    }

    /// The thread has rested, and `woken` fibers may go on for that.
    pub(super) fn rested(&self, woken: usize) {
        self.alone.set(woken <= 1);
    }

    /// Runs `rest`, in which the thread waits: where fibers wait for files, by the reactor.
    pub(super) fn resting<R>(&self, rest: impl FnOnce() -> R) -> R {
        match self.bell().filter(|_| !self.is_idle()) {
            Some(bell) => current::resting(bell, rest),
            None => rest(),
        }
    }

    fn bell(&self) -> Option<&'static EventFd> {
        #[cfg(feature = "io_uring")]
        if let Some(ring) = self.known_ring() {
            return Some(ring.bell());
        }
        self.known().map(Reactor::bell)
    }

    /// The reactor, if a fiber has had to wait for a file; not in the child of a fork, where a poll
    /// would take events that are the parent's.
    #[inline]
    pub(super) fn known(&self) -> Option<&Reactor> {
        self.reactor.get().filter(|reactor| !reactor.is_inherited())
    }

    /// The reactor, which there is from now on.
    ///
    /// # Errors
    ///
    /// Too many files are open; or the thread is the copy, in the child of a fork, of one that has
    /// a reactor.
    pub(super) fn reactor(&self) -> io::Result<&Reactor> {
        if self.reactor.get().is_none() {
            let Ok(()) = self.reactor.set(Reactor::take()?) else { unreachable!("it was none") };
        }
        self.known().ok_or_else(forked)
    }

    /// Whether there is a ring, or may be.
    #[cfg(feature = "io_uring")]
    #[inline]
    pub(super) fn may_ring(&self) -> bool {
        self.ring.get().is_none_or(Option::is_some) && backend() == Backend::IoUring
    }

    /// The ring, under the conditions of [`known`](Self::known).
    #[cfg(feature = "io_uring")]
    #[inline]
    fn known_ring(&self) -> Option<&Ring> {
        self.ring.get()?.as_ref().filter(|ring| !ring.is_inherited())
    }

    /// The ring, which there is from now on; or none, and never.
    ///
    /// # Errors
    ///
    /// The thread is the copy, in the child of a fork, of one that has a ring.
    #[cfg(feature = "io_uring")]
    pub(super) fn ring(&self) -> io::Result<Option<&Ring>> {
        let make = || (backend() == Backend::IoUring).then(|| Ring::new().ok()).flatten();
        match self.ring.get_or_init(make) {
            Some(ring) if ring.is_inherited() => Err(forked()),
            ring => Ok(ring.as_ref()),
        }
    }

    /// Runs `wait`, in which the calling fiber waits for a file.
    pub(super) fn waiting<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.waiting.set(self.waiting.get() + 1);
        let waited = wait();
        self.waiting.set(self.waiting.get() - 1);
        waited
    }
}

fn forked() -> io::Error {
    io::Error::other("fibers of a fork's parent wait for files")
}

impl Drop for Polls {
    fn drop(&mut self) {
        if let Some(reactor) = self.reactor.take() {
            reactor.put_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_is_due_where_one_waits_and_the_last_is_long_ago() {
        let polls = Polls::default();
        assert!(!polls.is_due(EVERY_NS));
        polls.waiting(|| {
            assert!(polls.is_due(EVERY_NS));
            polls.poll(None, |_| ());
            assert!(!polls.is_due(EVERY_NS + 5));
            assert!(!polls.is_due(2 * EVERY_NS + 4));
            assert!(polls.is_due(2 * EVERY_NS + 5));
        });
    }
}
