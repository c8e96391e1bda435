//! The one request that there is at a time, and the work of its handler. The thread that is asked
//! is in the word of the state: so a handler that comes late answers for no other.
//!
//! | state | written by | meaning |
//! |---|---|---|
//! | `IDLE` | the observer | no thread is asked |
//! | `ASKED` | the observer | the thread is to copy |
//! | `TAKING` | the thread | it copies |
//! | `TAKEN`, `ELSEWHERE` | the thread | the copy is there; it is on no stack that is known |

use core::cell::UnsafeCell;
use core::mem::transmute;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use super::{Glance, Top};

/// How many registers there are.
pub const REGISTERS: usize = 17;
/// The number of the stack pointer among the registers.
pub const STACK_POINTER: usize = 7;
/// The number of the instruction pointer among the registers.
pub const INSTRUCTION_POINTER: usize = 16;
/// How much of a stack is copied, in bytes.
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

/// The bits of a state. Threads are below 2²² (proc(5), `pid_max`).
const STATE_BITS: u32 = 3;

impl State {
    /// The word of this state, for that thread.
    fn of(self, thread: u32) -> u32 {
        thread << STATE_BITS | self as u32
    }

    /// Whether a word has this state.
    fn is_in(self, word: u32) -> bool {
        word % (1 << STATE_BITS) == self as u32
    }
}

pub(super) struct Request {
    /// A [`State`], and above it the thread.
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

// SAFETY: GLANCE-1; the rest are atomics.
unsafe impl Sync for Request {}

impl Request {
    /// Asks a thread, of which one is asked at a time.
    pub(super) fn ask(&self, thread: u32, top: Top) {
        self.top.store(top as *mut (), Relaxed);
        // Release: this, and that the last copy was read; pairs with the acquire in `answer`.
        self.word.store(State::Asked.of(thread), Release);
    }

    /// Whether the thread has not answered.
    pub(super) fn is_open(&self) -> bool {
        // Relaxed: `take_back` acquires.
        let word = self.word.load(Relaxed);
        State::Asked.is_in(word) || State::Taking.is_in(word)
    }

    /// Takes the request back, or returns its result. Waits for a handler that copies.
    pub(super) fn take_back(&self) -> State {
        loop {
            // Acquire: the copy; pairs with the release in `answer`.
            let word = self.word.load(Acquire);
            let idle = State::Idle as u32;
            // Relaxed: it has not begun.
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
        // SAFETY: GLANCE-1, it is taken, and ours.
        let copy = unsafe { &*self.copy.get() };
        Glance { registers: copy.registers, stack: copy.stack[..copy.bytes].to_vec() }
    }

    /// In the handler, on the thread: `registers` are those that it was interrupted with.
    ///
    /// # Safety
    ///
    /// They are of the calling thread, which is suspended there.
    pub(super) unsafe fn answer(&self, thread: u32, registers: impl FnOnce() -> [u64; REGISTERS]) {
        let (asked, taking) = (State::Asked.of(thread), State::Taking.of(thread));
        // GLANCE-2: of this thread. Acquire: GLANCE-1; pairs with the release in `ask`.
        if self.word.compare_exchange(asked, taking, Acquire, Relaxed).is_err() {
            return;
        }
        let (registers, top) = (registers(), self.top.load(Relaxed));
        // SAFETY: `ask` has written a function of that type.
        let top = unsafe { transmute::<*mut (), Top>(top) };
        let from = registers[STACK_POINTER] as usize;
        let bytes = top(from).saturating_sub(from).min(ROOM);
        // SAFETY: GLANCE-1, ours.
        let copy = unsafe { &mut *self.copy.get() };
        (copy.registers, copy.bytes) = (registers, bytes);
        let source = core::ptr::with_exposed_provenance::<u8>(from);
        // SAFETY: of the stack from its pointer up to its end, by the promise of `take`: it is in
        // use; and the copy has room.
        unsafe { core::ptr::copy_nonoverlapping(source, copy.stack.as_mut_ptr(), bytes) };
        let state = if bytes > 0 { State::Taken } else { State::Elsewhere };
        // Release: the copy; pairs with the acquire in `take_back`.
        self.word.store(state.of(thread), Release);
    }
}
