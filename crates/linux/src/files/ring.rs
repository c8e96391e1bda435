//! `io_uring(7)`: a thread lets the kernel receive and send for many files at a time, and waits for
//! the results.
//!
//! ```text
//!   receive, send, ready ──► entries, in memory that the kernel shares
//!   wait ──────────────────► one system call: begins them all, waits until one is done
//!        ◄────────────────── for each completed entry: its key and its result
//! ```
//!
//! - RING-1: a ring belongs to the thread that made it (`IORING_SETUP_SINGLE_ISSUER`), and the
//!   kernel does its work while that thread waits (`IORING_SETUP_DEFER_TASKRUN`), without
//!   interrupting it.
//! - RING-2: the kernel takes entries in the order in which they were queued: a cancellation comes
//!   after the entry that it cancels, and before any later entry with the same key.
//!
//! Other threads end a wait through an [`EventFd`]: the ring polls it for writes, and no thread
//! reads it.

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

/// The queues of requests to the kernel and of completed requests.
pub struct Ring {
    ring: IoUring,
    /// The flags of each `io_uring_enter` call.
    flags: EnterFlags,
    bell: Fd,
    /// Whether the kernel polls the bell.
    listens: bool,
    /// Whether an entry that may complete at once is not begun yet.
    hurries: bool,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The number of bytes; or, for [`Ring::ready`], that the file is ready.
    Bytes(usize),
    /// Nothing was done: the request was [cancelled](Ring::cancel).
    TakenBack,
    /// Nothing was done: the caller must make the request again.
    Again,
    /// The request failed with this `errno`.
    Failed(i32),
}

/// The key of the bell.
const BELL: u64 = 0;
/// The key of entries whose results no caller waits for.
const NOBODY: u64 = 1;
/// The largest number of entries that are begun together.
const ENTRIES: u32 = 256;
/// The room for completed entries; the kernel keeps a list of those beyond it.
const DONE: u32 = 2048;
/// A flag of a receive: wait for readiness before the first try (`IORING_RECVSEND_POLL_FIRST`).
const POLL_FIRST: u16 = 1;

impl Ring {
    /// Creates a ring for the calling thread. A write to the bell ends the present wait, or the
    /// next one; the bell must stay open as long as the ring.
    ///
    /// # Errors
    ///
    /// The kernel's error: it has no rings, or none of this kind (before Linux 6.1); rings are not
    /// allowed (`kernel.io_uring_disabled`, a filter); too many files are open.
    pub fn new(bell: &EventFd) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.dontfork().setup_cqsize(DONE).setup_submit_all();
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        let ring = builder.build(ENTRIES)?;
        let mut flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        // A waiting thread is idle, and must not count as waiting for a disk.
        flags.set(EnterFlags::NO_IOWAIT, ring.params().is_feature_no_iowait());
        let bell = Fd(bell.as_fd().as_raw_fd());
        let mut ring = Self { ring, flags, bell, listens: false, hurries: false };
        // A filter may allow making a ring, but refuse its calls.
        ring.enter(0, Some(&Timespec::new()))?;
        Ok(ring)
    }

    /// Receives available or future data: the result is the number of bytes. The kernel waits for
    /// readiness before the first try, so this is for callers that have tried, or know that there
    /// is no data yet.
    ///
    /// # Safety
    ///
    /// The `room` bytes must be writable, and not used otherwise, until a [`wait`](Self::wait) has
    /// reported the key.
    ///
    /// # Panics
    ///
    /// If the key is 0 or 1, or the program has closed the ring's file; this also holds for the
    /// functions below.
    pub unsafe fn receive(&mut self, file: BorrowedFd<'_>, (at, room): (*mut u8, usize), key: u64) {
        let entry = opcode::Recv::new(Fd(file.as_raw_fd()), at, length(room)).ioprio(POLL_FIRST);
        // SAFETY: the caller's contract.
        unsafe { self.put(entry.build(), key) }
    }

    /// Sends as many bytes as there is room for, once there is some: the result is the number of
    /// bytes.
    ///
    /// # Safety
    ///
    /// The bytes must be readable, and no thread may write to them, until a [`wait`](Self::wait)
    /// has reported the key.
    pub unsafe fn send(&mut self, file: BorrowedFd<'_>, (at, bytes): (*const u8, usize), key: u64) {
        let entry = opcode::Send::new(Fd(file.as_raw_fd()), at, length(bytes));
        self.hurries = true;
        // SAFETY: the caller's contract.
        unsafe { self.put(entry.flags(libc::MSG_NOSIGNAL).build(), key) }
    }

    /// Completes when the file is ready. A file that can't be waited for is always ready.
    pub fn ready(&mut self, file: BorrowedFd<'_>, way: Way, key: u64) {
        let ways = match way {
            Way::Read => libc::POLLIN | libc::POLLRDHUP,
            Way::Write => libc::POLLOUT,
        };
        let entry = opcode::PollAdd::new(Fd(file.as_raw_fd()), ways as u32).build();
        // SAFETY: the kernel writes no memory for this entry.
        unsafe { self.put(entry, key) }
    }

    /// Reports when the file is ready for reading, writing or either, as the flags say; the result
    /// has its `POLL*` bits in the place of bytes. Reports once; or, edge-triggered, each time that
    /// the file becomes ready, as long as there is [more](Self::wait_for_more) to come. A file that
    /// can't be waited for is always ready.
    pub fn watch(
        &mut self,
        file: BorrowedFd<'_>,
        (read, write): (bool, bool),
        trigger: Trigger,
        key: u64,
    ) {
        let ways = if read { READ } else { 0 } | if write { WRITE } else { 0 };
        let entry = opcode::PollAdd::new(Fd(file.as_raw_fd()), ways);
        // SAFETY: the kernel writes no memory for this entry.
        unsafe { self.put(entry.multi(trigger == Trigger::Edge).build(), key) }
    }

    /// Makes the request with that key end soon, either completed or cancelled without effect.
    pub fn cancel(&mut self, key: u64) {
        self.hurries = true;
        // SAFETY: the kernel writes no memory for this entry. RING-2: it ends the request that has
        // that key now.
        unsafe { self.push(opcode::AsyncCancel::new(key).build().user_data(NOBODY)) }
    }

    /// # Safety
    ///
    /// The contract of the entry holds.
    unsafe fn put(&mut self, entry: Entry, key: u64) {
        assert!(key > NOBODY, "a key that is taken");
        // SAFETY: the caller's contract.
        unsafe { self.push(entry.user_data(key)) }
    }

    /// # Safety
    ///
    /// The contract of the entry holds.
    unsafe fn push(&mut self, entry: Entry) {
        // SAFETY: the caller's contract.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            // The queue is full.
            let begun = errno_kept(|| self.ring.submit());
            passing(begun).expect("a ring takes what it has room for");
        }
    }

    /// Makes the kernel also write to `told` when a request has completed or needs a wait to
    /// complete. A thread that waits for the ring's own file would miss this, because the ring's
    /// thread does the work.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub fn notify(&mut self, told: &EventFd) -> io::Result<()> {
        self.ring.submitter().register_eventfd(told.as_fd().as_raw_fd())
    }

    /// Begins the queued requests without waiting; returns whether a wait would report any result.
    ///
    /// # Errors
    /// See [`wait`](Self::wait).
    pub fn begin(&mut self) -> io::Result<bool> {
        if !(self.ring.submission().is_empty() && self.listens) {
            self.enter(0, Some(&Timespec::new()))?;
        }
        Ok(self.has_news())
    }

    /// Returns whether a poll is worth its cost: a request has completed, or may complete at once.
    #[must_use]
    pub fn is_worth_it(&mut self) -> bool {
        self.hurries || self.has_news()
    }

    fn has_news(&mut self) -> bool {
        let (_, submission, completion) = self.ring.split();
        submission.taskrun() || submission.cq_overflow() || !completion.is_empty()
    }

    /// Begins the queued requests, and waits until one completes, another thread rings the bell, or
    /// the deadline has passed; a deadline in the past means a poll. Calls `tell` with the key and
    /// the result of each completed request. May return early, without results.
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

    /// Like [`wait`](Self::wait), but also passes whether more results will come for that key.
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

    /// Enters the kernel: one system call.
    fn enter(&mut self, want: u32, left: Option<&Timespec>) -> io::Result<()> {
        if !self.listens {
            let bell = opcode::PollAdd::new(self.bell, libc::POLLIN as u32).multi(true);
            // SAFETY: the kernel writes no memory for this entry.
            unsafe { self.push(bell.build().user_data(BELL)) }
            self.listens = true;
        }
        self.hurries = false;
        let (none, begins) = (SubmitArgs::new(), self.ring.submission().len() as u32);
        let arguments = left.map_or(none, |left| none.timespec(left));
        let (submitter, flags) = (self.ring.submitter(), self.flags.bits());
        // SAFETY: the entries were queued under their contracts, and the arguments live for the
        // call.
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

/// The result of a call that is repeated in any case: only permanent errors are returned.
fn passing(said: io::Result<usize>) -> io::Result<()> {
    let passes = |code| matches!(code, libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY);
    match said {
        Err(error) if !error.raw_os_error().is_some_and(passes) => Err(error),
        _ => Ok(()),
    }
}

/// The length for an entry, which is capped: a longer buffer is processed in part.
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
