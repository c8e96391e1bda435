//! The work of the kernel for the fibers of a thread, by a ring.
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
//! | its state | a request | owner of the bytes |
//! |---|---|---|
//! | made | is only the fiber's | the fiber |
//! | begun | is in the ring, or with the kernel | the kernel |
//! | done | is over: a poll has told of it | the fiber |
//!
//! - FILE-5: a request is where its fiber has it, on its stack, and so are its bytes, or the caller
//!   has lent them; the fiber does not leave `completes` before the request is done. A deadline
//!   that has passed takes it back, or a token, and it is done when the kernel says so: with what
//!   has come meanwhile, or with nothing. A drop of a request that is not done aborts.
//! - FILE-6: a ring is its thread's, and ends with it: it has no requests then, as fibers wait for
//!   each. Its bell is never freed, as of FILE-4, and is the next ring's.
//! - FILE-7: a child of a fork has copies of suspended fibers, and no ring: nothing is done for it.
//!   Its copy of a ring is not to be touched, nor dropped: the memory is not there, or is
//!   another's.

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

/// The requests to the kernel of a thread's fibers.
pub(super) struct Ring {
    ring: ManuallyDrop<RefCell<files::Ring>>,
    bell: &'static EventFd,
    /// The epoch of the process that has made it.
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
    /// In the ring of a process.
    Begun {
        epoch: u32,
    },
    Done(Done),
}

/// How a request uses its bytes.
#[derive(Clone, Copy)]
pub(super) enum Asks {
    /// Received: these are written to.
    Receive { at: *mut u8, room: usize },
    /// Sent: these are read.
    Send { at: *const u8, bytes: usize },
    /// No transfer: the kernel only tells when one is possible.
    Ready(Way),
}

/// The bells of rings that have ended, and the epochs of their processes: FILE-6.
static BELLS: Mutex<Vec<(u32, &'static EventFd)>> = Mutex::new(Vec::new());

const _: () = assert!(align_of::<Request>() > 1, "an address can't be one of the ring's own keys");

impl Ring {
    /// The ring of the calling thread.
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
                // A parent's.
                Some(_) => {}
                None => break Box::leak(Box::new(EventFd::new()?)),
            }
        };
        let ring = files::Ring::new(bell).inspect_err(|_| put_back(epoch, bell))?;
        Ok(Self { ring: ManuallyDrop::new(RefCell::new(ring)), bell, epoch })
    }

    /// The bell by which other threads end a poll, or the next one.
    pub(super) fn bell(&self) -> &'static EventFd {
        self.bell
    }

    /// FILE-7.
    #[inline]
    pub(super) fn is_inherited(&self) -> bool {
        self.epoch != Linux::epoch()
    }

    /// Puts a request in, which is begun by the next poll.
    ///
    /// # Safety
    ///
    /// FILE-5: the request stays where it is until it is done, and so do its bytes, which are the
    /// kernel's alone until then if they are written to, and not written to if they are read.
    pub(super) unsafe fn begin(&self, file: BorrowedFd<'_>, asks: Asks, request: &Request) {
        let (mut ring, key) = (self.ring.borrow_mut(), request.key());
        match asks {
            // SAFETY: the caller's.
            Asks::Receive { at, room } => unsafe { ring.receive(file, (at, room), key) },
            // SAFETY: the caller's.
            Asks::Send { at, bytes } => unsafe { ring.send(file, (at, bytes), key) },
            Asks::Ready(way) => ring.ready(file, way, key),
        }
        request.state.set(State::Begun { epoch: self.epoch });
    }

    /// Asks the kernel to end a request soon.
    pub(super) fn take_back(&self, request: &Request) {
        self.ring.borrow_mut().cancel(request.key());
    }

    /// Whether a look would find something, as far as can be known.
    pub(super) fn is_worth_it(&self) -> bool {
        self.ring.borrow_mut().is_worth_it()
    }

    /// Submits the requests that were put in, and waits until one is done, or a notification, until
    /// the deadline; a deadline in the past makes it a look. `wake` is called with the fibers whose
    /// requests are done. Returns their number.
    ///
    /// # Panics
    ///
    /// If the program has closed the file under it.
    pub(super) fn poll(&self, deadline: Option<Deadline>, wake: impl Fn(u64)) -> usize {
        let mut waited = 0;
        let polled = self.ring.borrow_mut().wait(deadline, |key, done| {
            let request = ptr::with_exposed_provenance::<Request>(key as usize);
            // SAFETY: FILE-5, it is there until it is done; and its fiber, of this thread, is not
            // here meanwhile.
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
            // SAFETY: it is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.ring) }
            put_back(self.epoch, self.bell);
        }
    }
}

fn put_back(epoch: u32, bell: &'static EventFd) {
    lock(&BELLS).push((epoch, bell));
}

impl Request {
    /// A request of the fiber that has this handle.
    pub(super) fn of(fiber: u64) -> Self {
        Self { fiber, state: Cell::new(State::Made) }
    }

    /// The result, once it is done.
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
            // FILE-5; and FILE-7, of a copy nothing is done.
            if epoch == Linux::epoch() {
                abort();
            }
        }
    }
}
