//! A CPU of a model: its interrupt line, its inbox, and one thread, which sleeps as threads of the
//! kernel do.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::{Check, choose, probe};
use antiphon_platform::{Atomic, Atomics, Budget};
use antiphon_wakeup::inbox::{Inbox, Link, Linked};
use antiphon_wakeup::kick::{self, Home};
use antiphon_wakeup::run_queue::RunQueue;
use antiphon_wakeup::token;

use super::caller::Caller;

type U32 = <Check as Atomics>::U32;

/// The interrupt line of a CPU: an interrupt that comes while the CPU does not look is kept, and
/// several such are one.
pub struct Line(U32);

impl Line {
    pub const fn new() -> Self {
        Self(U32::ZERO)
    }

    /// Sends an interrupt. Returns whether the last one has been answered.
    pub fn raise(&self) -> bool {
        // Release: a sender's stores come before its interrupt, as `x86::apic` sees to.
        self.0.swap(1, Release) == 0
    }

    /// Waits for an interrupt, and answers it.
    pub fn wait(&self) {
        self.0.wait_while(Relaxed, |raised| raised == 0);
        assert!(self.poll(), "only the CPU answers its interrupts");
    }

    /// Like [`wait`](Self::wait), until the timer interrupts, which may be at any time: `false`.
    pub fn wait_for_long(&self) -> bool {
        // The budget's length means nothing to the checker.
        self.0.spin_while(Relaxed, Budget::ns(1), |raised| raised == 0).is_ok() && self.poll()
    }

    /// Answers an interrupt, if one has come.
    pub fn poll(&self) -> bool {
        // Acquire: pairs with `raise`.
        self.0.swap(0, Acquire) == 1
    }
}

/// How an idle CPU waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    Halt,
    Watch,
}

/// Waits as an idle CPU whose inbox may be empty: halted, for `halt`, or watching the word. Returns
/// whether it has halted.
pub fn rest<T: Linked>(inbox: &Inbox<T>, idle: Idle, halt: impl FnOnce()) -> bool {
    let mut halted = false;
    match idle {
        Idle::Halt => inbox.halt(|| {
            halted = true;
            halt();
        }),
        // MONITOR, a look, MWAIT.
        Idle::Watch => inbox.watch(|word| {
            if word.is_empty() {
                word.wait();
            }
        }),
    }
    halted
}

/// A CPU with one thread, which is the only entry of its inbox.
pub struct Cpu {
    inbox: Inbox<Self>,
    line: Line,
    link: Link<Check>,
}

// SAFETY: the link is always the same, and of this entry alone.
unsafe impl Linked for Cpu {
    type Words = Check;

    fn link(&self) -> &Link<Check> {
        &self.link
    }
}

impl Cpu {
    pub const fn new() -> Self {
        Self { inbox: Inbox::NEW, line: Line::new(), link: Link::NEW }
    }

    /// The thread of this CPU sleeps until the token is woken or, if it is `timed`, until a
    /// deadline, as in `schedule::sleep`. Returns whether it was woken. A `timed` sleep may not be
    /// the last that has begun on its CPU: then the CPU does not look at its token.
    pub fn sleep(&self, token: &U32, timed: bool) -> bool {
        if !token::fall_asleep(token) {
            return true;
        }
        let mut queue = RunQueue::NEW;
        loop {
            // SAFETY: the thread was in the inbox.
            unsafe { queue.push_all(self.inbox.take()) };
            if let Some(next) = queue.pop() {
                assert!(std::ptr::eq(next, self), "there is one thread");
                assert!(queue.is_empty(), "made runnable twice");
                break;
            }
            let (mut rested, mut expired) = (false, false);
            let halt = || {
                rested = (!timed || choose(2) == 0) && token::rest(token);
                match timed {
                    true => expired = !self.line.wait_for_long() && token::expire(token),
                    false => self.line.wait(),
                }
            };
            rest(&self.inbox, Idle::Halt, halt);
            // TOKEN-3. The kernel forgets the token when its sleep expires.
            let woken = rested && !expired && token::rise(token);
            if woken {
                probe("rose");
            }
            if expired || woken {
                // SAFETY: we have taken the token away, so nothing puts it elsewhere; or its waker
                // leaves it to us.
                unsafe { queue.push(self) };
            }
        }
        token::wake_up(token)
    }

    /// Wakes the sleeper of the token, which is the thread of the CPU that `sleeper` names.
    pub fn wake(token: &U32, sleeper: impl FnOnce() -> *const Self) {
        // SAFETY: CPUs of a model live as long as it does.
        unsafe { kick::wake(&Caller::elsewhere(), token, || at_home(sleeper())) };
    }

    /// The place of the thread.
    pub fn home(&self) -> Home<'_, Caller<'_>, Self> {
        Home { cpu: &self.line, inbox: &self.inbox }
    }

    /// The interrupt line of the CPU.
    pub fn line(&self) -> &Line {
        &self.line
    }

    /// Whether nothing is in the inbox.
    pub fn is_idle(&self) -> bool {
        self.inbox.is_empty()
    }
}

/// A sleeper and its place.
pub fn at_home<'a>(sleeper: *const Cpu) -> (Home<'a, Caller<'a>, Cpu>, *const Cpu) {
    // SAFETY: CPUs of a model live as long as it does.
    (unsafe { &*sleeper }.home(), sleeper)
}
