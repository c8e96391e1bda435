//! The waits of a loop by `io_uring(7)`, with a request for each file that the kernel completes
//! when the file is ready.
//!
//! | trigger | request | after a report |
//! |---|---|---|
//! | level | one poll | requested again by the next call: a ready file is reported again |
//! | edge | a multishot poll | requested again if the kernel has ended it |
//!
//! Compared with `epoll`, a check is cheaper: if nothing is done and nothing must be requested, it
//! reads memory and makes no system call. Requesting a file makes none either, except those that
//! find out whether it can be waited for.
//!
//! In the child of a fork the ring's memory is not mapped, or is another's: it is not dropped.

use std::collections::BTreeMap;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use antiphon_linux::Linux;
use antiphon_linux::files::{self, Done, Epoll, TimerFd, Trigger, ways_of};
use antiphon_linux::notify::EventFd;
use antiphon_platform::{Deadline, Notify as _, Platform as _, Ticket};

use super::Ready;
use super::files::{Source, TIMER};

/// A ring, and the handle by which other threads wake its loop.
pub(super) struct Ring {
    ring: ManuallyDrop<files::Ring>,
    bell: Arc<Bell>,
    /// An `epoll` without files, which tells whether a file can be waited for. A ring reports a
    /// file that cannot as ready.
    says: Epoll,
    /// Epoch of the process that has created it.
    epoch: u32,
    /// Keys of the files that must be requested again.
    again: Vec<u64>,
}

/// The handle by which other threads end a wait.
pub(super) struct Bell {
    /// The `eventfd` of the ring.
    file: EventFd,
    /// Readable when there is something to do, for other code that waits for the loop by its file.
    told: EventFd,
    /// Whether such code waits, so that the kernel writes to `told`.
    is_told: AtomicBool,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.file.notify(Ticket::MIN);
        // The kernel writes to one `eventfd` for another, but not at once. SeqCst: either this load
        // sees it set, or the thread that has set it afterwards sees what was written above.
        if self.is_told.load(SeqCst) {
            self.told.notify(Ticket::MIN);
        }
    }
}

/// The ring has two keys of its own, below those of events.
const FIRST: u64 = 2;

impl Ring {
    pub(super) fn new() -> io::Result<Self> {
        let (file, told, is_told) = (EventFd::new()?, EventFd::new()?, AtomicBool::new(false));
        let ring = ManuallyDrop::new(files::Ring::new(&file)?);
        let bell = Arc::new(Bell { file, told, is_told });
        let (says, epoch, again) = (Epoll::new()?, Linux::epoch(), Vec::new());
        Ok(Self { ring, bell, says, epoch, again })
    }

    pub(super) fn bell(&self) -> Arc<Bell> {
        self.bell.clone()
    }

    /// Reports the file from now on, by that key.
    pub(super) fn watch(
        &mut self,
        file: BorrowedFd<'_>,
        key: u64,
        ways: (bool, bool),
        trigger: Trigger,
    ) {
        self.ring.watch(file, ways, trigger, key + FIRST);
    }

    /// Returns an error if a file cannot be waited for.
    pub(super) fn takes(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        self.says.add(file, 0)?;
        self.says.remove(file);
        Ok(())
    }

    /// Stops watching for `key`; events of that key that come in the meantime are ignored.
    pub(super) fn remove(&mut self, key: u64) {
        self.ring.cancel(key + FIRST);
    }

    /// Prepares for other code that waits for the loop: it is notified at once if there is
    /// something to do, otherwise as soon as there is.
    pub(super) fn arm(&mut self) -> io::Result<()> {
        let told = &self.bell.told;
        // Relaxed: only this function sets it.
        if !self.bell.is_told.load(Relaxed) {
            self.ring.notify(told)?;
            self.bell.is_told.store(true, SeqCst);
        }
        // Events from here on cause a notification; earlier ones are found below. SAFETY: the
        // ticket is from `begin`, and no thread sleeps there.
        unsafe { told.end(told.begin()) };
        if self.ring.begin()? {
            told.notify(Ticket::MIN);
        }
        Ok(())
    }

    /// Implements [`Wait::wait`](antiphon_runtime::event_loop::Wait::wait).
    pub(super) fn wait(
        &mut self,
        deadline: Option<Deadline>,
        sources: &BTreeMap<u64, Source>,
        timer: &TimerFd,
        tell: &mut dyn FnMut(u64, Ready),
    ) -> io::Result<()> {
        let again = &mut self.again;
        self.ring.wait_for_more(deadline, |key, done, more| {
            let key = key - FIRST;
            match done {
                Done::Bytes(bits) if key != TIMER => {
                    let (read, write) = ways_of(bits as u32);
                    tell(key, Ready { read, write });
                }
                // A file that fails is reported as ready, so that its callback finds the error.
                Done::Failed(_) if key != TIMER => tell(key, Ready { read: true, write: true }),
                _ => {}
            }
            if !more && done != Done::TakenBack {
                again.push(key);
            }
        })?;
        for key in self.again.drain(..) {
            let asked = key + FIRST;
            if key == TIMER {
                self.ring.watch(timer.as_fd(), (true, false), Trigger::Edge, asked);
            } else if let Some(Source { file, read, write, trigger }) = sources.get(&key) {
                self.ring.watch(file.as_fd(), (*read, *write), *trigger, asked);
            }
        }
        Ok(())
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.told.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.epoch == Linux::epoch() {
            // SAFETY: the ring is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.ring) }
        }
    }
}
