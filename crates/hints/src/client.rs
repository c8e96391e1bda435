//! A process's connection to the scheduler, and the registration of its threads.
//!
//! The scheduler gives a process that connects two descriptors: that of the process's page, and
//! that of a BPF program that registers the calling thread. The process sends nothing. The
//! scheduler learns from the kernel which process it is.

use std::io;
use std::marker::PhantomData;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::descriptors::receive;
use crate::dial::Limit;
use crate::layout::{Answer, FRESH_NS, MAGIC, PAGE_BYTES, Page, SLOTS, Slot, VERSION};
use crate::mark::Mark;

/// Where the scheduler listens.
pub const SOCKET: &str = "/run/antiphon/sched.sock";

/// Where it tells what it decides: an object of JSON for each connection.
pub const STATUS: &str = "/run/antiphon/status.sock";

/// How long a connection waits for the scheduler, until its answer is there.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The policy number of sched_ext.
pub(crate) const SCHED_EXT: i32 = 7;
/// The `bpf` command that runs a program once.
const BPF_PROG_RUN: libc::c_long = 10;

/// A process's page, shared with the scheduler.
#[derive(Debug)]
pub struct Hints {
    page: NonNull<Page>,
    program: OwnedFd,
    /// That of the process that has mapped the page. Its children have not.
    mark: Mark,
}

// SAFETY: the page is plain atomics, and stays mapped until `Hints` is dropped.
unsafe impl Send for Hints {}
// SAFETY: as above.
unsafe impl Sync for Hints {}

/// A registered thread's slot. It stays on its thread.
#[derive(Debug)]
pub struct Thread<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) stays: PhantomData<*const ()>,
}

/// What `BPF_PROG_RUN` takes: the part of `union bpf_attr` for it.
#[repr(C)]
#[derive(Default)]
struct Run {
    program: u32,
    result: u32,
    data_in_bytes: u32,
    data_out_bytes: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_in_bytes: u32,
    context_out_bytes: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

impl Hints {
    /// Connects to the scheduler that listens at `socket`, and maps this process's page. Blocks
    /// until the scheduler takes the connection and answers, for [`PATIENCE`] at most.
    ///
    /// # Errors
    ///
    /// There is no scheduler, it does not answer, it refuses this process (it has too many), or its
    /// page has another version.
    pub fn connect(socket: impl AsRef<Path>) -> io::Result<Self> {
        let limit = Limit::of(PATIENCE);
        let mark = Mark::new()?;
        let stream = limit.dial(socket.as_ref())?;
        let both = limit.retry(|left| {
            stream.set_read_timeout(Some(left))?;
            receive(&stream)
        });
        both.and_then(|both| Self::of(both, mark)).map_err(explained)
    }

    /// Maps the page that the scheduler has sent. Allocates nothing.
    pub(crate) fn of([page, program]: [OwnedFd; 2], mark: Mark) -> io::Result<Self> {
        // SAFETY: maps a new range, whose address the kernel chooses.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                PAGE_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                page.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range was mapped above. A child has no part in this process's page.
        if unsafe { libc::madvise(at, PAGE_BYTES, libc::MADV_DONTFORK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let page = NonNull::new(at.cast::<Page>()).ok_or_else(io::Error::last_os_error)?;
        let hints = Self { page, program, mark };
        let header = &hints.page().header;
        let found = (header.magic.load(Ordering::Relaxed), header.version.load(Ordering::Relaxed));
        if found != (MAGIC, VERSION) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(hints)
    }

    /// Registers the calling thread: puts it under the scheduler, and gives it a slot. A thread
    /// that is registered already gets the slot that it has.
    ///
    /// # Errors
    ///
    /// All slots of the process are taken, the user has too many registered threads, or the
    /// scheduler is gone.
    pub fn register(&self) -> io::Result<Thread<'_>> {
        let thread = self.register_unmoved()?;
        become_of(SCHED_EXT)?;
        Ok(thread)
    }

    /// Registers the calling thread, whose scheduling policy stays: under a scheduler of all
    /// threads ([`is_whole`](Self::is_whole)) that is enough, and a real-time thread stays one.
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn register_unmoved(&self) -> io::Result<Thread<'_>> {
        let number = self.enrol()?;
        let slot = self.slot(number).ok_or_else(|| no_slot(number))?;
        Ok(Thread { slot, stays: PhantomData })
    }

    /// Registers the calling thread, without putting it under the scheduler. Returns its slot's
    /// number, from 1.
    pub(crate) fn enrol(&self) -> io::Result<usize> {
        let mut attributes = Run { program: self.program.as_raw_fd() as u32, ..Run::default() };
        // SAFETY: `attributes` is as large as stated, and has no pointer in it.
        let done = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                BPF_PROG_RUN,
                ptr::from_mut(&mut attributes),
                size_of::<Run>() as libc::c_uint,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        let number = attributes.result as i32;
        if number < 0 {
            return Err(io::Error::from_raw_os_error(-number));
        }
        let number = number as usize;
        if self.slot(number).is_some() { Ok(number) } else { Err(no_slot(number)) }
    }

    /// Returns the slot of that number.
    pub(crate) fn slot(&self, number: usize) -> Option<&Slot> {
        self.page().slots.get(number.checked_sub(1)?)
    }

    /// Returns whether this process has mapped the page: it is not a child of the one that has. No
    /// system call.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.mark.is_own()
    }

    /// Returns whether the scheduler runs all threads of the machine, and not only those that ask
    /// for it, which then run when no other thread wants the CPU.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        // Relaxed: written before the page was sent.
        self.page().header.whole.load(Ordering::Relaxed) != 0
    }

    /// Returns the page.
    #[must_use]
    pub fn page(&self) -> &Page {
        // SAFETY: mapped until `self` is dropped, aligned to a page, and all of it is atomics,
        // valid with any content.
        unsafe { self.page.as_ref() }
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        if self.is_own() {
            // SAFETY: this process has mapped it, and borrows of `self` have ended. It fails only
            // for a range that is not mapped.
            unsafe { libc::munmap(self.page.as_ptr().cast(), PAGE_BYTES) };
        }
    }
}

impl<'a> Thread<'a> {
    /// Tells when the thread's earliest timer is due and how important its other work is, and that
    /// the thread cooperates. To be called before each sleep until then, and whenever the
    /// [answer](Self::answer) asks for it.
    pub fn poll(&self, release_ns: Option<u64>, importance: Option<u64>) {
        self.tell(release_ns);
        self.slot.importance.store(importance.unwrap_or(0), Ordering::Relaxed);
        // Only this thread writes it, so a load and a store suffice. Relaxed: the scheduler reads
        // on the thread's own CPU, or after a switch from it, which orders memory.
        let polls = self.slot.polls.load(Ordering::Relaxed).wrapping_add(1);
        self.slot.polls.store(polls, Ordering::Relaxed);
    }

    /// Shares a part of the CPU with the threads of this user that tell the same number, from the
    /// next time on that the scheduler looks; 0: with none. The part is that of the weights of all
    /// members that want the CPU, and goes to the one with the least importance.
    pub fn share(&self, group: u32) {
        self.slot.group.store(group, Ordering::Relaxed);
    }

    /// Tells a new release time while the thread goes on.
    pub fn tell(&self, release_ns: Option<u64>) {
        self.slot.release_ns.store(release_ns.unwrap_or(0), Ordering::Relaxed);
    }

    /// Begins a critical section: a preemption is put off, for a bounded time.
    pub fn enter(&self) {
        self.slot.enter();
    }

    /// Ends a critical section. Gives the CPU away if a preemption was put off meanwhile.
    pub fn leave(&self) {
        if self.slot.leave() && self.slot.take_wanted() {
            std::thread::yield_now();
        }
    }

    /// Returns the thread's slot, for code that tells by itself. Only this thread may write to the
    /// first line of it.
    #[must_use]
    pub fn slot(&self) -> &'a Slot {
        self.slot
    }

    /// Returns what the scheduler last told this thread.
    #[must_use]
    pub fn answer(&self) -> Answer {
        self.slot.answer()
    }

    /// Returns when the scheduler last wrote to the slot.
    #[must_use]
    pub fn seen_ns(&self) -> u64 {
        self.slot.seen_ns.load(Ordering::Relaxed)
    }

    /// Returns whether the scheduler has the calling thread under it at present: whether it wrote
    /// to the slot within [`FRESH_NS`]. No system call beside that of the caller's clock.
    #[must_use]
    pub fn is_served(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.seen_ns()) < FRESH_NS
    }
}

/// Returns the time of `CLOCK_MONOTONIC`, by which releases are told.
#[must_use]
pub fn now_ns() -> u64 {
    // SAFETY: all zero is a time.
    let mut time: libc::timespec = unsafe { zeroed() };
    // SAFETY: writes one time. The clock exists, so the call does not fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Puts the calling thread under a policy that has no parameter.
pub(crate) fn become_of(policy: i32) -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads one parameter, and concerns the calling thread only.
    let done = unsafe { libc::sched_setscheduler(0, policy, &none) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn no_slot(number: usize) -> io::Error {
    io::Error::other(format!("slot {number} of {SLOTS}"))
}

/// Says in words what [`receive`] and [`Hints::of`] say by a kind alone.
fn explained(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() {
        return error;
    }
    let what = match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "the scheduler refused: this user has too many processes there, or all have".to_owned()
        }
        io::ErrorKind::Unsupported => format!("the scheduler's page has not version {VERSION}"),
        _ => return error,
    };
    io::Error::new(error.kind(), what)
}
