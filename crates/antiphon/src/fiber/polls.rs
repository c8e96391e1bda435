//! A thread's polls for the files that its fibers wait for: when they are due, and by which back
//! end.

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

/// The polls of a thread, with its reactor or ring, once it has one.
#[derive(Default)]
pub(super) struct Polls {
    /// Made when a fiber waits for a file for the first time.
    reactor: OnceCell<Reactor>,
    /// Made when a fiber waits for a file for the first time; `None` if no ring is available.
    #[cfg(feature = "io_uring")]
    ring: OnceCell<Option<Ring>>,
    /// The number of fibers that wait for files, or have waited and not continued yet.
    waiting: Cell<usize>,
    /// Whether there was a poll since the last call of `is_due`, and the approximate time of the
    /// last poll.
    polled: Cell<bool>,
    polled_ns: Cell<u64>,
    /// Whether the last rest ended with at most one fiber that may continue.
    alone: Cell<bool>,
}

/// Time between two polls while fibers can always continue, in nanoseconds.
const EVERY_NS: u64 = 200_000;

impl Polls {
    /// Returns whether no fiber waits for a file.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.get() == 0
    }

    /// Returns the number of fibers that wait for files, or have waited and not continued yet.
    pub(super) fn count(&self) -> usize {
        self.waiting.get()
    }

    /// Returns whether a poll is due now, although fibers may continue.
    pub(super) fn is_due(&self, now: u64) -> bool {
        if self.polled.take() {
            self.polled_ns.set(now);
        }
        !self.is_idle() && now.saturating_sub(self.polled_ns.get()) >= EVERY_NS
    }

    /// Returns whether the thread should poll before it looks for tasks of others, or rests. One
    /// such poll is left out after a rest that woke one fiber: if files become ready one by one,
    /// the thread waits for them anyway.
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

    /// Records the end of a rest, after which `woken` fibers may continue.
    pub(super) fn rested(&self, woken: usize) {
        self.alone.set(woken <= 1);
    }

    /// Runs `rest`, in which the thread waits: in the reactor or ring, if fibers wait for files.
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

    /// Returns the reactor, if a fiber has had to wait for a file. `None` in the child of a fork,
    /// where a poll would take events of the parent.
    #[inline]
    pub(super) fn known(&self) -> Option<&Reactor> {
        self.reactor.get().filter(|reactor| !reactor.is_inherited())
    }

    /// Returns the reactor; makes it at the first call.
    ///
    /// # Errors
    ///
    /// Too many files are open; or the thread is the copy, in the child of a fork, of a thread that
    /// has a reactor.
    pub(super) fn reactor(&self) -> io::Result<&Reactor> {
        if self.reactor.get().is_none() {
            let Ok(()) = self.reactor.set(Reactor::take()?) else { unreachable!("it was none") };
        }
        self.known().ok_or_else(forked)
    }

    /// Returns whether there is a ring, or may be one.
    #[cfg(feature = "io_uring")]
    #[inline]
    pub(super) fn may_ring(&self) -> bool {
        self.ring.get().is_none_or(Option::is_some) && backend() == Backend::IoUring
    }

    /// Returns the ring, under the conditions of [`known`](Self::known).
    #[cfg(feature = "io_uring")]
    #[inline]
    fn known_ring(&self) -> Option<&Ring> {
        self.ring.get()?.as_ref().filter(|ring| !ring.is_inherited())
    }

    /// Returns the ring; makes it at the first call. If that fails, the thread never has a ring.
    ///
    /// # Errors
    ///
    /// The thread is the copy, in the child of a fork, of a thread that has a ring.
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
