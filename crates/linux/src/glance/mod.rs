//! A glance at another thread of this process: its registers and the top of its stack, as they are
//! at some moment while it runs on.
//!
//! ```text
//!   observer                        the thread
//!   ─────────                       ──────────
//!   ASKED, a signal to it ────────► handler: TAKING
//!                                   copies registers and stack
//!   has the copy ◄───────────────── TAKEN, or ELSEWHERE; goes on
//! ```
//!
//! The handler copies and does nothing else: it takes no lock, allocates nothing, calls no
//! unwinder, and reads no address outside the stack that it was given. The observer finds out what
//! the copy means: it has [modules] for that.
//!
//! - GLANCE-1: the copy belongs to the handler from `TAKING` on, and otherwise to the observer, of
//!   which there is one at a time.
//! - GLANCE-2: a signal that comes late finds another state, or another thread, or is as good as a
//!   new one.
//!
//! The signal is the highest real-time signal for which the program has no handler when the first
//! [`Glances`] is made: `SIGRTMAX`, if nothing else has it. It is the process's from then on. Its
//! handler has `SA_RESTART` and `SA_ONSTACK`: it runs on the thread's alternate stack, which
//! threads of `std` have. Calls that are never restarted (signal(7): `epoll_wait`, `poll`,
//! `nanosleep`, …) end with `EINTR` in the thread that is looked at.

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

/// The right to look at threads: the signal is ours.
#[derive(Clone, Copy, Debug)]
pub struct Glances {
    signal: i32,
}

/// Returns where the stack ends (its highest address) that this stack pointer, of the calling
/// thread, is in; 0 if that is not known. It is called in a signal handler: it may not lock or
/// allocate.
pub type Top = fn(usize) -> usize;

/// The state of a thread at some moment.
#[derive(Clone, Debug)]
pub struct Glance {
    /// As DWARF numbers them, of x86-64: the last is the [`INSTRUCTION_POINTER`].
    pub registers: [u64; REGISTERS],
    /// The stack, from the stack pointer up: [`ROOM`] bytes at the most.
    pub stack: Vec<u8>,
}

/// The time between two looks whether the thread has answered.
const LOOK: Duration = Duration::from_micros(20);

/// GLANCE-1.
static LOOKS: Mutex<()> = Mutex::new(());

fn looks() -> MutexGuard<'static, ()> {
    LOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Glances {
    /// Takes the signal, if that is not done yet.
    ///
    /// # Errors
    ///
    /// `AlreadyExists`: the program has handlers for all real-time signals, or has taken ours.
    /// `Unsupported`: this is not x86-64.
    pub fn new() -> io::Result<Self> {
        let _one = looks();
        Ok(Self { signal: signal::take()? })
    }

    /// The signal.
    #[must_use]
    pub fn signal(&self) -> i32 {
        self.signal
    }

    /// Looks at a thread of this process. Blocks until it has answered, for at most the given time.
    ///
    /// # Errors
    ///
    /// `TimedOut`: the thread has not answered, because it blocks the signal or has no CPU.
    /// `NotFound`: it has ended, or its stack is not known. `AlreadyExists`: the program has a
    /// handler of its own for the signal.
    ///
    /// # Safety
    ///
    /// Called in a signal handler on that thread, `top` returns 0, or the end of the memory that
    /// may be read from the stack pointer upwards.
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
        // SAFETY: takes numbers.
        let process = unsafe { libc::getpid() } as usize;
        let args = [process, thread.0 as usize, self.signal as usize];
        // SAFETY: takes numbers; the handler is ours.
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

/// The calling thread, as [`Glances::take`] names it.
#[must_use]
pub fn own_id() -> ThreadId {
    thread::current()
}

/// The lowest address of the calling thread's stack, and the one behind the highest; `None` if the
/// C library does not say. Do not call it in a signal handler.
#[must_use]
pub fn own_stack() -> Option<(usize, usize)> {
    let mut attributes = core::mem::MaybeUninit::uninit();
    // SAFETY: of the calling thread, into memory of that type.
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
