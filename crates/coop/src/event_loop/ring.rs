//! The waits of a loop by `io_uring(7)`: for each file by a request that the kernel ends when it is
//! ready.
//!
//! | trigger | request | after it was told of |
//! |---|---|---|
//! | level | one poll | asked for again, by the next call: one that is ready is told of again |
//! | edge | one that goes on | asked for again if the kernel has ended it |
//!
//! The difference is the cost of a look: where nothing is done and nothing to be asked for, it
//! reads memory, and makes no system call. To ask for a file makes none either, beyond those by
//! which it is found out whether it can be waited for.
//!
//! In the child of a fork the ring's memory is not there, or is another's: it is not dropped.

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

/// A ring, and the bell of its loop.
pub(super) struct Ring {
    ring: ManuallyDrop<files::Ring>,
    bell: Arc<Bell>,
    /// An `epoll` without files: it says whether a file can be waited for. Of a file that cannot, a
    /// ring says that it is ready.
    says: Epoll,
    /// The epoch of the process that has made it.
    epoch: u32,
    /// Files that are to be asked for again.
    again: Vec<u64>,
}

/// The handle by which other threads end a wait.
pub(super) struct Bell {
    /// The ring's.
    file: EventFd,
    /// Readable when there is something, for other code that waits for the loop by its file.
    told: EventFd,
    /// Whether such code waits, and the kernel writes to `told`.
    is_told: AtomicBool,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.file.notify(Ticket::MIN);
        // The kernel writes to one `eventfd` for another, but not at once. SeqCst: either this load
        // sees it set, or the thread that has set it sees after that what was written above.
        if self.is_told.load(SeqCst) {
            self.told.notify(Ticket::MIN);
        }
    }
}

/// The ring has two keys of its own, before those of events.
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

    /// Tells of the file from now on, by that key.
    pub(super) fn watch(
        &mut self,
        file: BorrowedFd<'_>,
        key: u64,
        ways: (bool, bool),
        trigger: Trigger,
    ) {
        self.ring.watch(file, ways, trigger, key + FIRST);
    }

    /// Whether a file can be waited for.
    pub(super) fn takes(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        self.says.add(file, 0)?;
        self.says.remove(file);
        Ok(())
    }

    /// Stops watching for `key`; events of that key that come in the meantime are ignored.
    pub(super) fn remove(&mut self, key: u64) {
        self.ring.cancel(key + FIRST);
    }

    /// Other code waits for the loop, and is notified if there is something, or as soon as there
    /// is.
    pub(super) fn arm(&mut self) -> io::Result<()> {
        let told = &self.bell.told;
        // Relaxed: set here only.
        if !self.bell.is_told.load(Relaxed) {
            self.ring.notify(told)?;
            self.bell.is_told.store(true, SeqCst);
        }
        // Events from here on cause a notification; earlier ones are found below. SAFETY: of
        // `begin`, and no thread sleeps there.
        unsafe { told.end(told.begin()) };
        if self.ring.begin()? {
            told.notify(Ticket::MIN);
        }
        Ok(())
    }

    /// As of [`Wait::wait`](antiphon_runtime::event_loop::Wait::wait).
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
                // A file that fails is for its callback to find out.
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
            // SAFETY: it is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.ring) }
        }
    }
}
