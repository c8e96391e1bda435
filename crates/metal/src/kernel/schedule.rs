//! The scheduler: run queues, sleeps, the timer, idle CPUs.
//!
//! A CPU runs the threads that are bound to it, in the order in which they became runnable, each
//! until it waits, yields or ends, or its time slice is over. Only the CPU itself accesses its run
//! queue and its deadlines, with interrupts off. Another CPU that makes a thread runnable puts it
//! into the [inbox](crate::inbox), and interrupts the CPU only if it is halted.
//!
//! The protocol is that of [`crate::scheduler`] and [`antiphon_wakeup::kick`]; here are the sleeps,
//! the timer and the idle CPUs, and what the protocol needs of this machine.

use core::ptr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_wakeup::kick::{self, Home};

use super::cpu::{self, Cpu, this};
use super::state::{Scheduler, Sleeper, Thread, Token};
use super::thread;
use super::wake;
use crate::inbox::Inbox;
use crate::metal::Metal;
use crate::scheduler::{self, After, Kernel, Turns};
use crate::token;
use crate::x86::cpu::{
    cpuid, halt_with_interrupts, restore, watch_with_interrupts, without_interrupts,
};
use crate::x86::{apic, clock, context};

/// How an idle CPU waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Idle {
    /// It halts, and an interrupt wakes it.
    Halt = 0,
    /// It watches its inbox (MONITOR, MWAIT): a store wakes it.
    Watch = 1,
}

/// Length of a time slice, in nanoseconds; 0 if threads are not preempted.
static SLICE_NS: AtomicU64 = AtomicU64::new(0);
static IDLE: AtomicUsize = AtomicUsize::new(Idle::Halt as usize);

/// Sets the length of time slices, in nanoseconds; with 0, threads run until they wait or yield.
pub fn set_slice_ns(ns: u64) {
    SLICE_NS.store(ns, Relaxed);
}

/// Sets how idle CPUs wait. Returns `false` if the processor can't wait so. CPUs that are halted
/// already stay halted until they are interrupted.
pub fn set_idle(idle: Idle) -> bool {
    const MONITOR: u32 = 1 << 3;
    let can = idle == Idle::Halt || cpuid(1, 0).ecx & MONITOR != 0;
    if can {
        IDLE.store(idle as usize, Relaxed);
    }
    can
}

impl Scheduler {
    /// Sets the timer to interrupt at `at_ns`, unless it does so earlier.
    #[inline]
    fn alarm(&mut self, at_ns: u64) {
        if at_ns < self.alarm_ns {
            self.alarm_ns = at_ns;
            clock::set_alarm(at_ns);
        }
    }

    /// Begins the slice of the thread that runs next.
    #[inline]
    fn begin_slice(&mut self) {
        let slice_ns = SLICE_NS.load(Relaxed);
        if slice_ns != 0 {
            self.slice_end_ns = clock::now_ns().saturating_add(slice_ns);
            self.alarm(self.slice_end_ns);
        }
    }
}

/// Returns the scheduler of this CPU.
///
/// # Safety
///
/// `cpu` is the CPU that the caller runs on, interrupts are off, and the caller has no other
/// reference to the scheduler.
#[inline]
#[expect(clippy::mut_from_ref, reason = "the CPU is named by a shared reference everywhere")]
unsafe fn own(cpu: &Cpu) -> &mut Scheduler {
    // SAFETY: by the caller's promise only this CPU accesses it, and this is the only reference.
    unsafe { &mut *cpu.scheduler.get() }
}

impl Kernel for Metal {
    type Thread = Thread;

    #[inline]
    fn this(&self) -> &'static Cpu {
        this()
    }

    #[expect(
        clippy::not_unsafe_ptr_arg_deref,
        reason = "a thread is never freed: `Kernel::Thread`"
    )]
    #[inline]
    fn cpu_of(&self, thread: *const Thread) -> &'static Cpu {
        // SAFETY: threads are never freed.
        unsafe { (*thread).cpu() }
    }

    #[inline]
    fn inbox(&self, cpu: &'static Cpu) -> &Inbox<Thread> {
        &cpu.inbox
    }

    #[inline]
    fn running(&self, cpu: &'static Cpu) -> *const Thread {
        cpu.current()
    }

    #[inline]
    fn set_running(&self, cpu: &'static Cpu, thread: *const Thread) {
        cpu.set_current(thread);
    }

    #[inline]
    unsafe fn turns(&self, cpu: &'static Cpu) -> &mut Turns<Thread> {
        // SAFETY: the caller's promise.
        unsafe { &mut own(cpu).turns }
    }

    #[inline]
    fn begin_slice(&self, cpu: &'static Cpu, is_idle: bool) {
        // SAFETY: the scheduler calls it with interrupts off, and without a reference.
        let own = unsafe { own(cpu) };
        if is_idle {
            own.slice_end_ns = u64::MAX;
        } else {
            own.begin_slice();
        }
    }

    #[inline]
    unsafe fn switch(&self, from: *const Thread, to: *const Thread) {
        // SAFETY: threads are never freed; by the caller's promise `to` has left, and so its stack
        // was left by this function or is a prepared one.
        unsafe { context::switch((*from).stack_pointer.get(), *(*to).stack_pointer.get()) };
    }

    fn reap(&self, thread: *const Thread) {
        thread::recycle(thread);
    }
}

/// Takes the step that the thread which has left this CPU has asked for. Interrupts are off.
#[inline]
pub(super) fn after_switch() {
    // SAFETY: interrupts are off.
    unsafe { scheduler::arrive(&Metal) };
}

/// Leaves the CPU, and makes the next thread take the step `after`. Interrupts are off.
pub(super) fn leave(after: After<Thread>) {
    // SAFETY: interrupts are off; the caller is a thread with a step for itself.
    unsafe { scheduler::leave(&Metal, after) };
}

/// Makes a thread that is new, or has moved, runnable on its CPU.
#[inline]
pub(crate) fn make_runnable(thread: *const Thread) {
    // SAFETY: RUN-1: only the caller may put it elsewhere. Threads are never freed.
    unsafe { kick::make_runnable(&Metal, scheduler::home(&Metal, thread), thread) };
}

/// Ends the present or next sleep of the thread on this token.
///
/// `sleeper` returns the thread; it is called only if the thread is asleep.
#[inline]
pub(crate) fn wake(token: &Token, sleeper: impl FnOnce() -> *const Thread) {
    // SAFETY: threads are never freed.
    unsafe { kick::wake(&Metal, token, || at_home(sleeper())) };
}

/// Ends the sleeps of several threads, in that order, and then interrupts their CPUs with as few
/// commands as possible.
pub(crate) fn wake_all<F: FnOnce() -> *const Thread>(
    sleepers: impl Iterator<Item = (&'static Token, F)>,
) {
    let sleepers = sleepers.map(|(token, sleeper)| (token, || at_home(sleeper())));
    // SAFETY: threads are never freed.
    unsafe { kick::wake_all::<_, _, _, { kick::MOST }>(&Metal, sleepers) };
}

#[inline]
fn at_home(thread: *const Thread) -> (Home<'static, Metal, Thread>, *const Thread) {
    (scheduler::home(&Metal, thread), thread)
}

/// Sleeps until the token is woken, or until `deadline_ns` of the monotonic clock; seldom returns
/// spuriously. Returns whether it was woken.
pub(crate) fn sleep(token: &Token, deadline_ns: Option<u64>) -> bool {
    let cpu = this();
    assert!(!cpu.in_interrupt.get(), "an action of a message can't sleep");
    let were_on = without_interrupts();
    if !token::fall_asleep(token) {
        restore(were_on);
        return true;
    }
    let thread = cpu.current();
    if let Some(at_ns) = deadline_ns {
        // SAFETY: interrupts are off. The alarm belongs to this thread, and is not set, because a
        // thread is in one sleep at a time.
        unsafe {
            let own = own(cpu);
            own.deadlines.set(&raw const (*thread).alarm, at_ns, Sleeper { thread, token });
            own.alarm(at_ns);
        }
    }
    // SAFETY: interrupts are off. The thread is asleep.
    unsafe {
        own(cpu).last = Some(Sleeper { thread, token });
        scheduler::switch_away(&Metal, cpu);
    }
    // SAFETY: interrupts are off; a thread that sleeps stays on its CPU.
    unsafe {
        let own = own(cpu);
        // It is this sleep's, which has ended, or that of a thread that its waker will make
        // runnable: no token is `LAST` while a thread runs.
        own.last = None;
        if deadline_ns.is_some() {
            own.deadlines.unset(&(*thread).alarm);
        }
    }
    restore(were_on);
    token::wake_up(token)
}

/// Lets the runnable threads of this CPU run; returns whether there were any.
pub fn yield_now() -> bool {
    let cpu = this();
    if cpu.in_interrupt.get() {
        return false;
    }
    let were_on = without_interrupts();
    // SAFETY: interrupts are off.
    let others = unsafe { scheduler::yield_now(&Metal, cpu) };
    restore(were_on);
    others
}

/// Handles the interrupt of this CPU's timer.
pub(crate) extern "C" fn timer_interrupt() {
    apic::end_of_interrupt();
    let cpu = this();
    let now_ns = clock::now_ns();
    let is_over = {
        // SAFETY: interrupts are off; the interrupted code has no reference, because it takes one
        // only with interrupts off.
        let own = unsafe { own(cpu) };
        own.alarm_ns = u64::MAX;
        while let Some(sleeper) = own.deadlines.take_due(now_ns) {
            // SAFETY: the token exists as long as the sleep. The sleeper has not returned from it:
            // it unsets its alarm first.
            if token::expire(unsafe { &*sleeper.token }) {
                // This CPU, if it is halted, is not to look at that token any more.
                own.last.take_if(|last| ptr::eq(last.token, sleeper.token));
                // SAFETY: RUN-1: this code has moved the token away from `ASLEEP`.
                unsafe { own.turns.push(sleeper.thread) };
            }
        }
        if let Some(at_ns) = own.deadlines.first_ns() {
            own.alarm(at_ns);
        }
        if SLICE_NS.load(Relaxed) == 0 {
            // The slice that was begun before slices were switched off has no end.
            own.slice_end_ns = u64::MAX;
        }
        let is_over = own.slice_end_ns <= now_ns;
        if is_over {
            own.begin_slice();
        } else {
            own.alarm(own.slice_end_ns);
        }
        is_over && !own.turns.is_idle(cpu.current())
    };
    if is_over {
        // SAFETY: interrupts are off.
        unsafe { scheduler::yield_now(&Metal, cpu) };
    }
}

/// Sets the idle thread of this CPU.
pub(super) fn set_idle_thread(thread: *const Thread) {
    let were_on = without_interrupts();
    // SAFETY: interrupts are off.
    unsafe { own(this()).turns.set_idle(thread) };
    restore(were_on);
}

/// Makes room for the deadlines of `count` threads of this CPU.
pub(super) fn make_room(count: usize) {
    let were_on = without_interrupts();
    // SAFETY: interrupts are off.
    unsafe { own(this()).deadlines.make_room(count) };
    restore(were_on);
}

/// The loop of this CPU's idle thread: runs other threads, and halts when none is runnable.
/// Interrupts are on only while it is halted.
pub(super) fn idle() -> ! {
    let cpu = this();
    loop {
        // SAFETY: interrupts are off, and this is the idle thread.
        unsafe { scheduler::switch_away(&Metal, cpu) };
        if IDLE.load(Relaxed) == Idle::Watch as usize {
            // SAFETY: `set_idle` has checked that the processor has the instructions. A store
            // between the check and the watch ends the watch at once. The word is the inbox's.
            cpu.inbox.watch(|word| unsafe {
                watch_with_interrupts(word.address(), || !word.is_empty());
            });
        } else if let Some(tick_ns) = wake::tick_ns() {
            // The inbox does not say that this CPU is halted, so no sender interrupts it.
            // SAFETY: interrupts are off.
            unsafe { own(cpu).alarm(clock::now_ns() + tick_ns) };
            halt_with_interrupts();
        } else {
            cpu.inbox.halt(|| halt_for_last(cpu));
        }
    }
}

/// Halts this CPU, whose waker need not use the inbox for the thread that has slept last (TOKEN-3).
fn halt_for_last(cpu: &Cpu) {
    // SAFETY: interrupts are off. The token exists as long as the sleep, and the sleeper does not
    // run before this returns.
    let rests = unsafe { own(cpu).last.is_some_and(|last| token::rest(&*last.token)) };
    halt_with_interrupts();
    // SAFETY: interrupts are off.
    let own = unsafe { own(cpu) };
    if !rests {
        return;
    }
    // There is none any more if its sleep has expired.
    if let Some(last) = own.last
        // SAFETY: as above.
        && token::rise(unsafe { &*last.token })
    {
        own.last = None;
        // SAFETY: RUN-1: TOKEN-3: only this CPU makes it runnable.
        unsafe { own.turns.push(last.thread) };
    }
}

/// Halts this CPU, together with the calling thread, until `ready` returns `true`. `ready` is
/// called again after each interrupt, so it does not miss a message that changes its answer.
///
/// Senders don't count the CPU as halted: other threads that become runnable here wait until a time
/// slice ends, or the caller waits or yields.
///
/// # Panics
///
/// If an action of a message calls it.
pub fn halt_until(mut ready: impl FnMut() -> bool) {
    assert!(!this().in_interrupt.get(), "an action of a message can't wait for another");
    let were_on = without_interrupts();
    while !ready() {
        halt_with_interrupts();
    }
    restore(were_on);
}

/// Returns whether other threads of this CPU can run.
#[inline]
pub fn has_others() -> bool {
    let cpu: &Cpu = cpu::this();
    let were_on = without_interrupts();
    // SAFETY: interrupts are off.
    let others = unsafe { own(cpu) }.turns.has_others(&cpu.inbox);
    restore(were_on);
    others
}
