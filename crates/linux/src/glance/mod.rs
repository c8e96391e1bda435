//! A glance at another thread of this process: a copy of its registers and the top of its stack at
//! one moment, while the thread goes on running.
//!
//! ```text
//!   observer                        the thread
//!   ─────────                       ──────────
//!   ASKED, a signal to it ────────► handler: TAKING
//!                                   copies registers and stack
//!   has the copy ◄───────────────── TAKEN, or ELSEWHERE; goes on
//! ```
//!
//! The handler only copies: it takes no lock, allocates nothing, calls no unwinder, and reads no
//! address outside the stack that it was given. The observer interprets the copy, with the help of
//! [modules].
//!
//! - GLANCE-1: the copy belongs to the handler from `TAKING` on, and otherwise to the observer, of
//!   which there is one at a time.
//! - GLANCE-2: a late signal finds another state or another thread, or serves as well as a new
//!   signal.
//!
//! The signal is the highest real-time signal for which the program has no handler when the first
//! [`Glances`] is made: `SIGRTMAX`, if nothing else has it. It stays in use by the process from
//! then on. Its handler has `SA_RESTART` and `SA_ONSTACK`: it runs on the thread's alternate stack,
//! which threads of `std` have. Calls that are never restarted (signal(7): `epoll_wait`, `poll`,
//! `nanosleep`, …) end with `EINTR` in the observed thread.

pub mod modules;
mod request;
mod signal;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use antiphon_platform::ThreadId;

use crate::{sys, thread};
use request::{REQUEST, State};

pub use request::{INSTRUCTION_POINTER, REGISTERS, ROOM, STACK_POINTER};

/// The right to observe threads: it owns the signal.
#[derive(Clone, Copy, Debug)]
pub struct Glances {
    signal: i32,
}

/// Returns the end (the highest address) of the stack that contains this stack pointer of the
/// calling thread; 0 if it is not known. Called in a signal handler: it must not lock or allocate.
pub type Top = fn(usize) -> usize;

/// The state of a thread at one moment.
#[derive(Clone, Debug)]
pub struct Glance {
    /// The registers in the order of the DWARF numbers for x86-64: the last is the
    /// [`INSTRUCTION_POINTER`].
    pub registers: [u64; REGISTERS],
    /// The stack, from the stack pointer up: at most [`ROOM`] bytes.
    pub stack: Vec<u8>,
}

/// The time between two checks whether the thread has answered.
const LOOK: Duration = Duration::from_micros(20);

/// Held by the observer: there is one at a time (GLANCE-1).
static LOOKS: Mutex<()> = Mutex::new(());

fn looks() -> MutexGuard<'static, ()> {
    LOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Glances {
    /// Reserves the signal, if that is not done yet.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the program has handlers for all real-time signals, or has replaced ours.
    /// `Unsupported` if this is not x86-64.
    pub fn new() -> io::Result<Self> {
        let _one = looks();
        Ok(Self { signal: signal::take()? })
    }

    /// The number of the signal.
    #[must_use]
    pub fn signal(&self) -> i32 {
        self.signal
    }

    /// Copies the state of a thread of this process. Blocks until the thread has answered, for at
    /// most the given time.
    ///
    /// # Errors
    ///
    /// `TimedOut` if the thread has not answered, because it blocks the signal or has no CPU.
    /// `NotFound` if it has ended, or its stack is not known. `AlreadyExists` if the program has
    /// installed another handler for the signal.
    ///
    /// # Safety
    ///
    /// Called in a signal handler on that thread, `top` must return 0, or the end of the memory
    /// that is readable from the stack pointer upwards.
    pub unsafe fn take(
        &self,
        thread: ThreadId,
        top: Top,
        patience: Duration,
    ) -> io::Result<Glance> {
        let _one = looks();
        if !signal::is_ours(self.signal) {
            return Err(signal::taken());
        }
        REQUEST.ask(thread.0, top);
        // SAFETY: takes only numbers.
        let process = unsafe { libc::getpid() } as usize;
        let args = [process, thread.0 as usize, self.signal as usize];
        // SAFETY: takes only numbers; the handler is ours.
        if let Err(sys::Errno(code)) = unsafe { sys::call(libc::SYS_tgkill, args) } {
            let _: State = REQUEST.take_back();
            return Err(match code {
                libc::ESRCH => io::ErrorKind::NotFound.into(),
                code => io::Error::from_raw_os_error(code),
            });
        }
        let begun = Instant::now();
        while REQUEST.is_open() && begun.elapsed() < patience {
            std::thread::sleep(LOOK);
        }
        match REQUEST.take_back() {
            State::Taken => Ok(REQUEST.copy()),
            State::Elsewhere => Err(io::ErrorKind::NotFound.into()),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// The id of the calling thread, for [`Glances::take`].
#[must_use]
pub fn own_id() -> ThreadId {
    thread::current()
}

/// The lowest address of the calling thread's stack, and the end of the stack; `None` if the C
/// library does not know them. Must not be called in a signal handler.
#[must_use]
pub fn own_stack() -> Option<(usize, usize)> {
    let mut attributes = core::mem::MaybeUninit::uninit();
    // SAFETY: reads attributes of the calling thread into memory of that type.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut low, mut bytes) = (core::ptr::null_mut(), 0);
    // SAFETY: written above.
    let found =
        unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut bytes) };
    // SAFETY: written above, and not used any more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (found == 0).then(|| (low.addr(), low.addr() + bytes))
}
