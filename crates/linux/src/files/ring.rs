//! `io_uring(7)`: for a thread that lets the kernel receive and send, for many files at a time, and
//! waits.
//!
//! ```text
//!   receive, send, ready ──► entries, in memory that is shared with the kernel
//!   wait ──────────────────► one system call: begins them all, and waits until one is done
//!        ◄────────────────── of each that is done: its key, and what came of it
//! ```
//!
//! - RING-1: a ring belongs to the thread that has made it (`IORING_SETUP_SINGLE_ISSUER`), and the
//!   kernel does its work while that thread waits (`IORING_SETUP_DEFER_TASKRUN`): nothing
//!   interrupts it.
//! - RING-2: the kernel takes entries in the order in which they were put in: an entry that takes
//!   back another comes after it, and before whatever has the same key later.
//!
//! Other threads end a wait by an [`EventFd`]: the ring polls it for writes, and no thread reads
//! it.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd};

use antiphon_platform::Deadline;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode};

use super::epoll::{READ, WRITE};
use super::{Trigger, Way};
use crate::notify::{EventFd, left};
use crate::sys::errno_kept;

/// The requests to the kernel, and those of them that are done.
pub struct Ring {
    ring: IoUring,
    /// The flags of each call.
    flags: EnterFlags,
    bell: Fd,
    /// Whether the kernel tells of the bell.
    listens: bool,
    /// An entry that may be done at once is not begun yet.
    hurries: bool,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The number of bytes; or, of [`Ring::ready`], that it is ready.
    Bytes(usize),
    /// Nothing: it was [taken back](Ring::cancel).
    TakenBack,
    /// Nothing, and it is to be asked for again.
    Again,
    /// An error, by its number.
    Failed(i32),
}

/// The key of the bell.
const BELL: u64 = 0;
/// The key of entries whose results no caller waits for.
const NOBODY: u64 = 1;
/// The number of entries that are begun together, at most.
const ENTRIES: u32 = 256;
/// The room for entries that are done; of more the kernel keeps a list.
const DONE: u32 = 2048;
/// A flag of a receive: not to be tried before it is to be ready (`IORING_RECVSEND_POLL_FIRST`).
const POLL_FIRST: u16 = 1;

impl Ring {
    /// A ring of the calling thread. A write to the bell ends a wait, or the next if it does not
    /// wait; the bell is to be open as long as the ring.
    ///
    /// # Errors
    ///
    /// The kernel's error: it has no rings, or none of this kind (before Linux 6.1); they are not
    /// allowed (`kernel.io_uring_disabled`, a filter); too many files are open.
    pub fn new(bell: &EventFd) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.dontfork().setup_cqsize(DONE).setup_submit_all();
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        let ring = builder.build(ENTRIES)?;
        let mut flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        // A thread that waits is idle, and does not wait for a disk.
        flags.set(EnterFlags::NO_IOWAIT, ring.params().is_feature_no_iowait());
        let bell = Fd(bell.as_fd().as_raw_fd());
        let mut ring = Self { ring, flags, bell, listens: false, hurries: false };
        // A filter may let a ring be made, and no call of it.
        ring.enter(0, Some(&Timespec::new()))?;
        Ok(ring)
    }

    /// Receives what there is, or will be: the result is how many bytes. It is not tried before the
    /// file is to be ready: for callers that have tried, or know that there was no more.
    ///
    /// # Safety
    ///
    /// `room` bytes are there to be written, and belong to no other, until a [`wait`](Self::wait)
    /// has told of the key.
    ///
    /// # Panics
    ///
    /// If the key is 0 or 1, or the program has closed the ring's file; here and below.
    pub unsafe fn receive(&mut self, file: BorrowedFd<'_>, (at, room): (*mut u8, usize), key: u64) {
        let entry = opcode::Recv::new(Fd(file.as_raw_fd()), at, length(room)).ioprio(POLL_FIRST);
        // SAFETY: the caller's.
        unsafe { self.put(entry.build(), key) }
    }

    /// Sends as much as there is room for, once there is some: the result is how many bytes.
    ///
    /// # Safety
    ///
    /// These bytes are there to be read, and no thread writes to them, until a [`wait`](Self::wait)
    /// has told of the key.
    pub unsafe fn send(&mut self, file: BorrowedFd<'_>, (at, bytes): (*const u8, usize), key: u64) {
        let entry = opcode::Send::new(Fd(file.as_raw_fd()), at, length(bytes));
        self.hurries = true;
        // SAFETY: the caller's.
        unsafe { self.put(entry.flags(libc::MSG_NOSIGNAL).build(), key) }
    }

    /// Finds out when the file is ready, which one that can't be waited for always is.
    pub fn ready(&mut self, file: BorrowedFd<'_>, way: Way, key: u64) {
        let ways = match way {
            Way::Read => libc::POLLIN | libc::POLLRDHUP,
            Way::Write => libc::POLLOUT,
        };
        let entry = opcode::PollAdd::new(Fd(file.as_raw_fd()), ways as u32).build();
        // SAFETY: it has the kernel write nothing.
        unsafe { self.put(entry, key) }
    }

    /// Tells of the file when it is ready for these ways (reading, writing), by its `POLL*` bits in
    /// the place of bytes: once; or, edge-triggered, each time that it has become so, for as long
    /// as there is [more](Self::wait_for_more) to come. One that can't be waited for always is.
    pub fn watch(
        &mut self,
        file: BorrowedFd<'_>,
        (read, write): (bool, bool),
        trigger: Trigger,
        key: u64,
    ) {
        let ways = if read { READ } else { 0 } | if write { WRITE } else { 0 };
        let entry = opcode::PollAdd::new(Fd(file.as_raw_fd()), ways);
        // SAFETY: it has the kernel write nothing.
        unsafe { self.put(entry.multi(trigger == Trigger::Edge).build(), key) }
    }

    /// Makes the request with that key end soon: nothing was done, or it is done.
    pub fn cancel(&mut self, key: u64) {
        self.hurries = true;
        // SAFETY: it has the kernel write nothing. RING-2: what it ends is of that key now.
        unsafe { self.push(opcode::AsyncCancel::new(key).build().user_data(NOBODY)) }
    }

    /// # Safety
    ///
    /// The contract is that of the entry.
    unsafe fn put(&mut self, entry: Entry, key: u64) {
        assert!(key > NOBODY, "a key that is taken");
        // SAFETY: the caller's.
        unsafe { self.push(entry.user_data(key)) }
    }

    /// # Safety
    ///
    /// The contract is that of the entry.
    unsafe fn push(&mut self, entry: Entry) {
        // SAFETY: the caller's.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            // It is full.
            let begun = errno_kept(|| self.ring.submit());
            passing(begun).expect("a ring takes what it has room for");
        }
    }

    /// Makes the kernel write to that file, too, when something is done or is to be done by a wait.
    /// A thread that waits for the ring's own file misses that: work is done by the ring's thread.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub fn notify(&mut self, told: &EventFd) -> io::Result<()> {
        self.ring.submitter().register_eventfd(told.as_fd().as_raw_fd())
    }

    /// Begins what was asked for, and does not wait; whether there is something that a wait would
    /// tell of.
    ///
    /// # Errors
    /// See [`wait`](Self::wait).
    /// As of [`wait`](Self::wait).
    pub fn begin(&mut self) -> io::Result<bool> {
        if !(self.ring.submission().is_empty() && self.listens) {
            self.enter(0, Some(&Timespec::new()))?;
        }
        Ok(self.has_news())
    }

    /// Whether a look is worth it: something is done, or may be done at once.
    #[must_use]
    pub fn is_worth_it(&mut self) -> bool {
        self.hurries || self.has_news()
    }

    fn has_news(&mut self) -> bool {
        let (_, submission, completion) = self.ring.split();
        submission.taskrun() || submission.cq_overflow() || !completion.is_empty()
    }

    /// Begins what was asked for, and waits until something is done, or another thread rings the
    /// bell, or until the deadline; one in the past is a look. Tells of each request that is done
    /// the key, and its result. May return early, with nothing.
    ///
    /// # Errors
    ///
    /// The kernel's error. It means that the program has closed file descriptors that it does not
    /// own.
    pub fn wait(
        &mut self,
        deadline: Option<Deadline>,
        mut tell: impl FnMut(u64, Done),
    ) -> io::Result<()> {
        self.wait_for_more(deadline, |key, done, _| tell(key, done))
    }

    /// Like [`wait`](Self::wait), but also says of each whether there is more to come by that key.
    ///
    /// # Errors
    ///
    /// See [`wait`](Self::wait).
    pub fn wait_for_more(
        &mut self,
        deadline: Option<Deadline>,
        mut tell: impl FnMut(u64, Done, bool),
    ) -> io::Result<()> {
        let left = left(deadline);
        let looks = left.is_some_and(|left| (left.tv_sec, left.tv_nsec) == (0, 0));
        let left = left.map(|it| Timespec::new().sec(it.tv_sec as u64).nsec(it.tv_nsec as u32));
        if !(looks && self.ring.submission().is_empty() && !self.has_news()) {
            let want = u32::from(!looks && self.ring.completion().is_empty());
            self.enter(want, left.as_ref())?;
        }
        for done in self.ring.completion() {
            match done.user_data() {
                BELL => self.listens = cqueue::more(done.flags()),
                NOBODY => {}
                key => tell(key, Done::of(done.result()), cqueue::more(done.flags())),
            }
        }
        Ok(())
    }

    /// One system call.
    fn enter(&mut self, want: u32, left: Option<&Timespec>) -> io::Result<()> {
        if !self.listens {
            let bell = opcode::PollAdd::new(self.bell, libc::POLLIN as u32).multi(true);
            // SAFETY: it has the kernel write nothing.
            unsafe { self.push(bell.build().user_data(BELL)) }
            self.listens = true;
        }
        self.hurries = false;
        let (none, begins) = (SubmitArgs::new(), self.ring.submission().len() as u32);
        let arguments = left.map_or(none, |left| none.timespec(left));
        let (submitter, flags) = (self.ring.submitter(), self.flags.bits());
        // SAFETY: entries that were put in, and arguments that are there for the call.
        let entered =
            errno_kept(|| unsafe { submitter.enter(begins, want, flags, Some(&arguments)) });
        passing(entered)
    }
}

impl Done {
    fn of(result: i32) -> Self {
        match -result {
            ..=0 => Self::Bytes(result as usize),
            libc::ECANCELED => Self::TakenBack,
            libc::EAGAIN | libc::EINTR => Self::Again,
            code => Self::Failed(code),
        }
    }
}

/// The result of a call that is repeated in any case: only errors that will not pass are returned.
fn passing(said: io::Result<usize>) -> io::Result<()> {
    let passes = |code| matches!(code, libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY);
    match said {
        Err(error) if !error.raw_os_error().is_some_and(passes) => Err(error),
        _ => Ok(()),
    }
}

/// As an entry takes it: what is longer is done in part.
fn length(bytes: usize) -> u32 {
    bytes.min(i32::MAX as usize) as u32
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
