//! The scheduler of a CPU, as far as the machine does not matter: which thread runs next, and where
//! a thread goes that leaves the CPU.
//!
//! ```text
//!          sleep             wake                  collect              next
//!  running ─────► asleep ──────────► in an inbox ──────────► in a run queue ─────► running
//!     │                                   ▲                        ▲
//!     ├── move: the next thread does it ──┘                        │
//!     └── yield, or the end of a time slice ───────────────────────┘
//! ```
//!
//! Only the CPU itself accesses its run queue, with interrupts off. Another CPU that makes a thread
//! runnable puts it into the [inbox](crate::inbox) ([`antiphon_wakeup::kick`]).
//!
//! - RUN-1: a thread is in one place: running, in a run queue, in an inbox, or asleep; only the
//!   code that moves its token away from `ASLEEP` puts a sleeping thread elsewhere, or, if the
//!   token was `LAST`, its own CPU.
//! - RUN-2: a thread is run only after it has left: its registers are saved. A thread that is woken
//!   on the way to its sleep is in the inbox of its own CPU, which reads it before it switches, and
//!   then goes on with it or runs it later. A thread that moves is put into the inbox of another
//!   CPU by the thread that runs next.
//! - RUN-3: a thread that has ended is kept for reuse by the thread that runs next, likewise,
//!   because the thread is on its stack until then.

use core::mem;
use core::ptr;

use antiphon_wakeup::kick::{self, Home};
use antiphon_wakeup::machine::Machine;

use crate::inbox::{Inbox, Linked};
use crate::run_queue::RunQueue;

/// A kernel, as its scheduler sees it. Functions that take no CPU are those of the caller's.
pub trait Kernel: Machine {
    /// A thread, which is never freed.
    type Thread: Linked<Words = Self::Words>;

    /// Returns the CPU that the caller runs on.
    fn this(&self) -> Self::Cpu;
    /// Returns the CPU that a thread is bound to.
    fn cpu_of(&self, thread: *const Self::Thread) -> Self::Cpu;
    /// Returns the inbox of a CPU.
    fn inbox(&self, cpu: Self::Cpu) -> &Inbox<Self::Thread>;

    /// Returns the thread that a CPU runs, the caller's own.
    fn running(&self, cpu: Self::Cpu) -> *const Self::Thread;
    /// Notes the thread that the caller's CPU runs from now on.
    fn set_running(&self, cpu: Self::Cpu, thread: *const Self::Thread);
    /// Returns the turns of the caller's CPU.
    ///
    /// # Safety
    ///
    /// Interrupts are off, and the caller has no other reference to them.
    #[expect(clippy::mut_from_ref, reason = "a CPU is named by a shared reference everywhere")]
    unsafe fn turns(&self, cpu: Self::Cpu) -> &mut Turns<Self::Thread>;
    /// Begins the time slice of the thread that runs next; the idle thread has none.
    fn begin_slice(&self, cpu: Self::Cpu, is_idle: bool);
    /// Saves the registers in `from`, and goes on with those of `to`. Returns when another call has
    /// switched back.
    ///
    /// # Safety
    ///
    /// Interrupts are off; the caller runs as `from`; `to` is another thread, which has left
    /// (RUN-2).
    unsafe fn switch(&self, from: *const Self::Thread, to: *const Self::Thread);
    /// Keeps a thread that has ended and left its stack.
    fn reap(&self, thread: *const Self::Thread);
}

/// Returns the place of a thread that is woken.
#[inline]
pub fn home<K: Kernel>(kernel: &K, thread: *const K::Thread) -> Home<'_, K, K::Thread> {
    let cpu = kernel.cpu_of(thread);
    Home { cpu, inbox: kernel.inbox(cpu) }
}

/// The threads that a CPU runs by turns.
#[derive(Debug)]
pub struct Turns<T> {
    queue: RunQueue<T>,
    idle: *const T,
    after: After<T>,
}

/// The step that the next thread takes for the thread that has left the CPU.
#[derive(Debug)]
pub enum After<T> {
    /// None.
    Nothing,
    /// The thread has ended: keeps it for the next creation (RUN-3).
    Reap(*const T),
    /// The thread has moved: makes it runnable on its new CPU (RUN-2).
    Send(*const T),
}

impl<T: Linked> Turns<T> {
    /// The turns of a CPU without threads, which gets its idle thread before it uses them.
    pub const NEW: Self = Self { queue: RunQueue::NEW, idle: ptr::null(), after: After::Nothing };

    /// Sets the thread that runs when no other is runnable.
    pub fn set_idle(&mut self, thread: *const T) {
        self.idle = thread;
    }

    /// Returns whether that is this thread.
    #[inline]
    pub fn is_idle(&self, thread: *const T) -> bool {
        ptr::eq(self.idle, thread)
    }

    /// Returns whether a thread other than the running one can run.
    #[inline]
    pub fn has_others(&self, inbox: &Inbox<T>) -> bool {
        !self.queue.is_empty() || !inbox.is_empty()
    }

    /// Adds a thread of this CPU.
    ///
    /// # Safety
    ///
    /// The thread is in no other place (RUN-1).
    #[inline]
    pub unsafe fn push(&mut self, thread: *const T) {
        // SAFETY: the caller's promise.
        unsafe { self.queue.push(thread) };
    }

    /// Moves the threads of the inbox to the run queue.
    #[inline]
    fn collect(&mut self, inbox: &Inbox<T>) {
        // SAFETY: RUN-1: they were in the inbox, and now they are in the queue. Threads are never
        // freed.
        unsafe { self.queue.push_all(inbox.take()) };
    }
}

/// Switches to the next thread; the caller has put the running one where it belongs. Returns when
/// that runs again, perhaps on another CPU.
///
/// # Safety
///
/// Interrupts are off, and `cpu` is the caller's.
#[inline]
pub unsafe fn switch_away<K: Kernel>(kernel: &K, cpu: K::Cpu) {
    let running = kernel.running(cpu);
    let (next, is_idle) = {
        // SAFETY: interrupts are off, and the reference ends before the switch.
        let turns = unsafe { kernel.turns(cpu) };
        turns.collect(kernel.inbox(cpu));
        let next = turns.queue.pop().unwrap_or(turns.idle);
        (next, turns.is_idle(next))
    };
    kernel.begin_slice(cpu, is_idle);
    // RUN-2: it was woken before it has left.
    if ptr::eq(next, running) {
        return;
    }
    kernel.set_running(cpu, next);
    // SAFETY: the caller's promise. RUN-2: a thread in the queue has left, and so has an idle
    // thread that does not run.
    unsafe {
        kernel.switch(running, next);
        arrive(kernel);
    }
}

/// Takes the step that the thread which has left this CPU has asked for. Called by a thread that
/// begins to run.
///
/// # Safety
///
/// Interrupts are off.
#[inline]
pub unsafe fn arrive<K: Kernel>(kernel: &K) {
    // SAFETY: interrupts are off.
    let after = unsafe { &mut kernel.turns(kernel.this()).after };
    if !matches!(after, After::Nothing) {
        take(kernel, mem::replace(after, After::Nothing));
    }
}

#[cold]
fn take<K: Kernel>(kernel: &K, after: After<K::Thread>) {
    match after {
        After::Nothing => {}
        After::Reap(thread) => kernel.reap(thread),
        // SAFETY: RUN-1: the thread ran, and has left.
        After::Send(thread) => unsafe {
            kick::make_runnable(kernel, home(kernel, thread), thread);
        },
    }
}

/// Leaves the CPU, and makes the next thread take the step `after`.
///
/// # Safety
///
/// Interrupts are off, and the step is one for the running thread, which is not the idle one.
pub unsafe fn leave<K: Kernel>(kernel: &K, after: After<K::Thread>) {
    let cpu = kernel.this();
    // SAFETY: interrupts are off.
    unsafe {
        kernel.turns(cpu).after = after;
        switch_away(kernel, cpu);
    }
}

/// Lets the runnable threads of this CPU run; returns whether there were any.
///
/// # Safety
///
/// Interrupts are off, and `cpu` is the caller's.
#[inline]
pub unsafe fn yield_now<K: Kernel>(kernel: &K, cpu: K::Cpu) -> bool {
    let running = kernel.running(cpu);
    {
        // SAFETY: interrupts are off, and the reference ends before the switch.
        let turns = unsafe { kernel.turns(cpu) };
        turns.collect(kernel.inbox(cpu));
        if turns.queue.is_empty() {
            return false;
        }
        if !turns.is_idle(running) {
            // SAFETY: RUN-1: the thread runs, and leaves the CPU below.
            unsafe { turns.push(running) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { switch_away(kernel, cpu) };
    true
}
