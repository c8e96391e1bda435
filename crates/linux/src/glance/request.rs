//! The single request to a thread, and the work of the signal handler. The state's word names the
//! thread that is asked, so a late handler does not answer for another thread.
//!
//! | state | written by | meaning |
//! |---|---|---|
//! | `IDLE` | the observer | no thread is asked |
//! | `ASKED` | the observer | the thread must copy |
//! | `TAKING` | the thread | the thread copies |
//! | `TAKEN`, `ELSEWHERE` | the thread | the copy is complete; the thread is on an unknown stack |

use core::cell::UnsafeCell;
use core::mem::transmute;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use super::{Glance, Top};

/// Number of registers.
pub const REGISTERS: usize = 17;
/// The index of the stack pointer in the registers.
pub const STACK_POINTER: usize = 7;
/// The index of the instruction pointer in the registers.
pub const INSTRUCTION_POINTER: usize = 16;
/// The largest part of a stack that is copied, in bytes.
pub const ROOM: usize = 64 << 10;

pub(super) static REQUEST: Request = Request {
    word: AtomicU32::new(State::Idle as u32),
    top: AtomicPtr::new(core::ptr::null_mut()),
    copy: UnsafeCell::new(Copy { registers: [0; REGISTERS], bytes: 0, stack: [0; ROOM] }),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum State {
    Idle,
    Asked,
    Taking,
    Taken,
    Elsewhere,
}

/// Number of bits of a state. Thread ids are below 2²² (proc(5), `pid_max`).
const STATE_BITS: u32 = 3;

impl State {
    /// The word for this state of a request to `thread`.
    fn of(self, thread: u32) -> u32 {
        thread << STATE_BITS | self as u32
    }

    /// Returns whether `word` has this state.
    fn is_in(self, word: u32) -> bool {
        word % (1 << STATE_BITS) == self as u32
    }
}

pub(super) struct Request {
    /// A [`State`] in the low bits, and the thread above it.
    word: AtomicU32,
    /// A [`Top`].
    top: AtomicPtr<()>,
    copy: UnsafeCell<Copy>,
}

struct Copy {
    registers: [u64; REGISTERS],
    bytes: usize,
    stack: [u8; ROOM],
}

// SAFETY: the copy has one owner at a time (GLANCE-1); the other fields are atomics.
unsafe impl Sync for Request {}

impl Request {
    /// Makes the request to `thread`. Only one request exists at a time.
    pub(super) fn ask(&self, thread: u32, top: Top) {
        self.top.store(top as *mut (), Relaxed);
        // Release: publishes `top`, and that the last copy was read; pairs with the acquire in
        // `answer`.
        self.word.store(State::Asked.of(thread), Release);
    }

    /// Returns whether the thread has not answered yet.
    pub(super) fn is_open(&self) -> bool {
        // Relaxed: `take_back` acquires.
        let word = self.word.load(Relaxed);
        State::Asked.is_in(word) || State::Taking.is_in(word)
    }

    /// Withdraws the request, or returns its result. Waits for a handler that is copying.
    pub(super) fn take_back(&self) -> State {
        loop {
            // Acquire: the copy; pairs with the release in `answer`.
            let word = self.word.load(Acquire);
            let idle = State::Idle as u32;
            // Relaxed: the handler has not begun.
            if State::Asked.is_in(word)
                && self.word.compare_exchange(word, idle, Relaxed, Relaxed).is_ok()
            {
                return State::Asked;
            }
            if !(State::Asked.is_in(word) || State::Taking.is_in(word)) {
                let taken = State::Taken.is_in(word);
                return if taken { State::Taken } else { State::Elsewhere };
            }
            crate::futex::yield_now();
        }
    }

    /// The copy that was taken.
    pub(super) fn copy(&self) -> Glance {
        // SAFETY: GLANCE-1: the copy is complete, and belongs to the observer.
        let copy = unsafe { &*self.copy.get() };
        Glance { registers: copy.registers, stack: copy.stack[..copy.bytes].to_vec() }
    }

    /// Answers the request, in the handler on the thread: `registers` returns those of the
    /// interrupted code.
    ///
    /// # Safety
    ///
    /// The registers must be those of the calling thread, whose code is interrupted there.
    pub(super) unsafe fn answer(&self, thread: u32, registers: impl FnOnce() -> [u64; REGISTERS]) {
        let (asked, taking) = (State::Asked.of(thread), State::Taking.of(thread));
        // GLANCE-2: only a request to this thread. Acquire: GLANCE-1; pairs with the release in
        // `ask`.
        if self.word.compare_exchange(asked, taking, Acquire, Relaxed).is_err() {
            return;
        }
        let (registers, top) = (registers(), self.top.load(Relaxed));
        // SAFETY: `ask` has written a function of that type.
        let top = unsafe { transmute::<*mut (), Top>(top) };
        let from = registers[STACK_POINTER] as usize;
        let bytes = top(from).saturating_sub(from).min(ROOM);
        // SAFETY: GLANCE-1: the copy belongs to the handler now.
        let copy = unsafe { &mut *self.copy.get() };
        (copy.registers, copy.bytes) = (registers, bytes);
        let source = core::ptr::with_exposed_provenance::<u8>(from);
        // SAFETY: the source is the used part of the stack, from its pointer up to its end, by the
        // promise of `take`; and the copy has room.
        unsafe { core::ptr::copy_nonoverlapping(source, copy.stack.as_mut_ptr(), bytes) };
        let state = if bytes > 0 { State::Taken } else { State::Elsewhere };
        // Release: the copy; pairs with the acquire in `take_back`.
        self.word.store(state.of(thread), Release);
    }
}
