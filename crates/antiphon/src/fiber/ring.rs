//! The `io_uring` ring of a thread: the kernel receives, sends and waits for its fibers.
//!
//! ```text
//!   fiber                      host, same thread             kernel
//!   ─────                      ─────────────────             ──────
//!   read ─► would block
//!   Request: receive ────────► in the ring
//!   completes ───────────────► has others go on …
//!                              poll ───────────────────────► begins all that were put in
//!                                   ◄─────────────────────── bytes are in the buffer
//!                              Done
//!   goes on     ◄─────────────
//! ```
//!
//! | state | the request | owner of the bytes |
//! |---|---|---|
//! | made | is known only to the fiber | the fiber |
//! | begun | is in the ring, or with the kernel | the kernel |
//! | done | is over: a poll has reported it | the fiber |
//!
//! - FILE-5: a request is on the stack of its fiber, and its bytes are there, too, or lent by the
//!   caller; the fiber does not leave `completes` before the request is done. If its deadline
//!   passes or its token is cancelled, the request is taken back. It is done when the kernel
//!   reports so: with the bytes that came meanwhile, or without any. Dropping a request that is not
//!   done aborts.
//! - FILE-6: a ring belongs to its thread, and ends with it: it has no requests then, because
//!   fibers wait for each. Its bell is never freed, for the reason of FILE-4, and is used by the
//!   next ring.
//! - FILE-7: a child of a fork has copies of suspended fibers, and no ring: nothing is done for it.
//!   Its copy of a ring must not be touched or dropped: the memory does not exist, or belongs to
//!   another.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;
use std::process::abort;
use std::ptr;
use std::sync::Mutex;

use antiphon_linux::Linux;
use antiphon_linux::files::{self, Done, Way};
use antiphon_linux::notify::EventFd;
use antiphon_platform::{Deadline, Platform as _};

use crate::unpoisoned::lock;

/// The ring of a thread, with the requests of its fibers to the kernel.
pub(super) struct Ring {
    ring: ManuallyDrop<RefCell<files::Ring>>,
    bell: &'static EventFd,
    /// The epoch of the process that made it.
    epoch: u32,
}

/// A request that a fiber waits for.
pub(super) struct Request {
    /// The handle of the fiber.
    fiber: u64,
    state: Cell<State>,
}

#[derive(Clone, Copy)]
enum State {
    Made,
    /// In the ring of the process with this epoch.
    Begun {
        epoch: u32,
    },
    Done(Done),
}

/// The operation of a request, and its bytes.
#[derive(Clone, Copy)]
pub(super) enum Asks {
    /// The kernel receives, and writes to these bytes.
    Receive { at: *mut u8, room: usize },
    /// The kernel sends these bytes.
    Send { at: *const u8, bytes: usize },
    /// No transfer: the kernel only reports when one is possible.
    Ready(Way),
}

/// The bells of rings that have ended, and the epochs of their processes: FILE-6.
static BELLS: Mutex<Vec<(u32, &'static EventFd)>> = Mutex::new(Vec::new());

const _: () = assert!(align_of::<Request>() > 1, "an address can't be one of the ring's own keys");

impl Ring {
    /// Creates the ring of the calling thread.
    ///
    /// # Errors
    ///
    /// The errors of [`files::Ring::new`].
    pub(super) fn new() -> io::Result<Self> {
        let epoch = Linux::epoch();
        let bell = loop {
            let used = lock(&BELLS).pop();
            match used {
                Some((of, bell)) if of == epoch => break bell,
                // A bell of the parent process.
                Some(_) => {}
                None => break Box::leak(Box::new(EventFd::new()?)),
            }
        };
        let ring = files::Ring::new(bell).inspect_err(|_| put_back(epoch, bell))?;
        Ok(Self { ring: ManuallyDrop::new(RefCell::new(ring)), bell, epoch })
    }

    /// Returns the bell by which other threads end a poll, or the next one.
    pub(super) fn bell(&self) -> &'static EventFd {
        self.bell
    }

    /// Returns whether the ring belongs to the parent of this process: FILE-7.
    #[inline]
    pub(super) fn is_inherited(&self) -> bool {
        self.epoch != Linux::epoch()
    }

    /// Puts a request into the ring; the next poll submits it.
    ///
    /// # Safety
    ///
    /// FILE-5: the request and its bytes stay in place until it is done. Until then, only the
    /// kernel uses bytes that it writes to, and no code writes to bytes that it reads.
    pub(super) unsafe fn begin(&self, file: BorrowedFd<'_>, asks: Asks, request: &Request) {
        let (mut ring, key) = (self.ring.borrow_mut(), request.key());
        match asks {
            // SAFETY: promised by the caller.
            Asks::Receive { at, room } => unsafe { ring.receive(file, (at, room), key) },
            // SAFETY: promised by the caller.
            Asks::Send { at, bytes } => unsafe { ring.send(file, (at, bytes), key) },
            Asks::Ready(way) => ring.ready(file, way, key),
        }
        request.state.set(State::Begun { epoch: self.epoch });
    }

    /// Asks the kernel to end a request soon.
    pub(super) fn take_back(&self, request: &Request) {
        self.ring.borrow_mut().cancel(request.key());
    }

    /// Returns whether a poll would find something, as far as can be known.
    pub(super) fn is_worth_it(&self) -> bool {
        self.ring.borrow_mut().is_worth_it()
    }

    /// Submits the requests in the ring, and waits until one is done, or for a notification, until
    /// the deadline; a deadline in the past means a poll. Calls `wake` for each fiber whose request
    /// is done, and returns their number.
    ///
    /// # Panics
    ///
    /// If the program has closed the file of the ring.
    pub(super) fn poll(&self, deadline: Option<Deadline>, wake: impl Fn(u64)) -> usize {
        let mut waited = 0;
        let polled = self.ring.borrow_mut().wait(deadline, |key, done| {
            let request = ptr::with_exposed_provenance::<Request>(key as usize);
            // SAFETY: FILE-5: the request exists until it is done; and its fiber, of this thread,
            // does not run meanwhile.
            let request = unsafe { &*request };
            request.state.set(State::Done(done));
            waited += 1;
            wake(request.fiber);
        });
        if let Err(error) = polled {
            panic!("the files that fibers wait for: {error}");
        }
        waited
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // FILE-7.
        if !self.is_inherited() {
            // SAFETY: the ring is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.ring) }
            put_back(self.epoch, self.bell);
        }
    }
}

fn put_back(epoch: u32, bell: &'static EventFd) {
    lock(&BELLS).push((epoch, bell));
}

impl Request {
    /// Creates a request of the fiber with this handle.
    pub(super) fn of(fiber: u64) -> Self {
        Self { fiber, state: Cell::new(State::Made) }
    }

    /// Returns the result, once the request is done.
    pub(super) fn done(&self) -> Option<Done> {
        match self.state.get() {
            State::Done(done) => Some(done),
            _ => None,
        }
    }

    fn key(&self) -> u64 {
        ptr::from_ref(self).expose_provenance() as u64
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let State::Begun { epoch } = self.state.get() {
            // FILE-5; and FILE-7: nothing is done for a copy.
            if epoch == Linux::epoch() {
                abort();
            }
        }
    }
}
