//! Kernel threads: create, join, yield, sleep, move.
//!
//! A thread runs on the CPU that its creator has chosen, its own by default, until it moves itself
//! ([`bind`]); nothing else moves it. Its stack is on that CPU's node, above pages that are not
//! mapped. Threads, with their stacks, are reused and never freed: a late wake finds a thread,
//! though perhaps another one, for which it is spurious.

use alloc::alloc::{alloc, dealloc};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};

use antiphon_platform::{Atomic, Local};

use super::condvar;
use super::cpu::{self, Apart, Cpu, this};
use super::heap;
use super::lock::Lock;
use super::schedule;
use super::state::{Link, Thread, Token};
use crate::deadlines::Alarm;
use crate::scheduler::After;
use crate::x86::context;
use crate::x86::cpu::{switch_on, without_interrupts};
use crate::x86::paging::MOST_STACKS;

/// Threads by number; they are never freed.
static THREADS: [AtomicPtr<Thread>; MOST_STACKS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST_STACKS];
/// Number of threads that were made, which is the index of the next. Written by the holder of
/// `MAKING`.
static MADE: AtomicU32 = AtomicU32::new(0);
/// Held while a thread is made, so that a failure uses up no number.
static MAKING: Lock<()> = Lock::new(());
/// Threads that have ended: a linked list for each node.
static FREE: [Lock<Ended>; heap::MOST_NODES] =
    [const { Lock::new(Ended(ptr::null())) }; heap::MOST_NODES];

struct Ended(*const Thread);

// SAFETY: threads are `Sync`.
unsafe impl Send for Ended {}

/// Error: a thread was not created, because there is no memory for its stack, or there are 65 536
/// threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotCreated;

impl Thread {
    /// Returns the CPU that the thread is bound to.
    #[inline]
    pub(super) fn cpu(&self) -> &'static Cpu {
        self.cpu.get()
    }

    /// Returns the number of the thread, from 1 on. It is reused after the thread has ended.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the lowest address of the stack, and the one above it.
    #[must_use]
    pub fn stack(&self) -> (usize, usize) {
        self.stack
    }

    /// Returns a thread for `cpu` that does not run: one that has ended, or a new one.
    fn make(cpu: &'static Cpu) -> Result<&'static Self, NotCreated> {
        let node = cpu.node.get();
        let mut free = FREE[usize::from(node)].lock();
        // SAFETY: threads are never freed.
        if let Some(thread) = unsafe { free.0.as_ref() } {
            // Relaxed: under the lock.
            free.0 = thread.free.load(Relaxed);
            thread.cpu.set(cpu);
            return Ok(thread);
        }
        drop(free);
        let memory = Memory::take().ok_or(NotCreated)?;
        let _making = MAKING.lock();
        // Relaxed: only the holder of the lock writes it.
        let index = MADE.load(Relaxed) as usize;
        if index >= MOST_STACKS {
            return Err(NotCreated);
        }
        // SAFETY: no thread has this number, so no stack with this index was mapped.
        let stack = unsafe { heap::map_stack(index, node) }.map_err(|_| NotCreated)?;
        MADE.store(index as u32 + 1, Relaxed);
        Ok(memory.fill(index, stack, node, cpu))
    }
}

/// Memory for a thread. Dropping it gives the memory back.
struct Memory(NonNull<Thread>);

impl Memory {
    /// Allocates it; `None` if there is none.
    fn take() -> Option<Self> {
        // SAFETY: a thread has some size.
        NonNull::new(unsafe { alloc(Layout::new::<Thread>()) }.cast()).map(Self)
    }

    /// Makes it a thread that does not run, for good.
    fn fill(
        self,
        index: usize,
        stack: (usize, usize),
        home: u16,
        cpu: &'static Cpu,
    ) -> &'static Thread {
        let thread = self.0.as_ptr();
        core::mem::forget(self);
        // SAFETY: the memory is that of a thread, which no other code uses.
        let thread = unsafe {
            thread.write(Thread {
                stack_pointer: UnsafeCell::new(0),
                link: Link::NEW,
                free: AtomicPtr::new(ptr::null_mut()),
                cpu: Apart(Cell::new(cpu)),
                number: index as u32 + 1,
                stack,
                home,
                alarm: Alarm::new(),
                token: Token::ZERO,
                blocks: Token::ZERO,
                runs: AtomicBool::new(false),
                body: Cell::new(None),
                local: Local::NEW,
            });
            &*thread
        };
        // Release: the thread; pairs with the acquire in `is_alive`.
        THREADS[index].store(ptr::from_ref(thread).cast_mut(), Release);
        thread
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `take` has allocated it, with this layout, and it was not made a thread.
        unsafe { dealloc(self.0.as_ptr().cast(), Layout::new::<Thread>()) };
    }
}

/// Returns the number of threads that were made so far. Those that have ended are reused.
#[must_use]
pub fn made() -> u32 {
    MADE.load(Relaxed)
}

/// Makes the caller a thread, on a CPU that has just begun to run this kernel. It becomes the CPU's
/// idle thread, and keeps the stack that it is on.
pub(super) fn adopt(cpu: &'static Cpu, stack: (usize, usize)) {
    let making = MAKING.lock();
    let index = MADE.load(Relaxed) as usize;
    assert!(index < MOST_STACKS, "more CPUs than threads");
    MADE.store(index as u32 + 1, Relaxed);
    drop(making);
    let memory = Memory::take().expect("memory for the idle thread of a CPU");
    let thread = memory.fill(index, stack, cpu.node.get(), cpu);
    // Relaxed: the thread itself stores this; it publishes no other data.
    thread.runs.store(true, Relaxed);
    cpu.set_current(thread);
    schedule::set_idle_thread(thread);
}

/// Maps a stack for a CPU that will be started, which its idle thread keeps. Returns its ends.
pub(super) fn stack_for(node: u16) -> Result<(usize, usize), NotCreated> {
    let _making = MAKING.lock();
    let index = MADE.load(Relaxed) as usize;
    // SAFETY: no other thread has this number.
    let stack = unsafe { heap::map_stack(index, node) }.map_err(|_| NotCreated)?;
    MADE.store(index as u32 + 1, Relaxed);
    Ok(stack)
}

/// Creates a thread on the caller's CPU; see [`spawn_on`].
///
/// # Errors
///
/// [`NotCreated`].
pub fn spawn<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, NotCreated> {
    spawn_on(cpu::number(), body)
}

/// Creates a thread on CPU `number`, which runs `body` when it is scheduled.
///
/// # Errors
///
/// [`NotCreated`].
///
/// # Panics
///
/// If there is no such CPU.
pub fn spawn_on<T: Send + 'static>(
    number: u32,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, NotCreated> {
    let thread = Thread::make(cpu::get(number))?;
    let packet = Arc::new(Packet { state: AtomicUsize::new(RUNS), result: UnsafeCell::new(None) });
    let ours = packet.clone();
    thread.body.set(Some(Box::new(move || {
        let result = body();
        // SAFETY: the handle reads the result only after it has seen `ENDED`.
        unsafe { *ours.result.get() = Some(result) };
        ours.end();
    })));
    // SAFETY: the stack belongs to the thread, which does not run, and is longer than the 128
    // bytes.
    unsafe { *thread.stack_pointer.get() = context::prepare(thread.stack.1, enter) };
    // Relaxed: published with the thread.
    thread.runs.store(true, Relaxed);
    schedule::make_runnable(thread);
    Ok(JoinHandle(packet))
}

/// The first frame of a thread. Interrupts are off.
extern "C" fn enter() -> ! {
    schedule::after_switch();
    schedule::make_room(MADE.load(Relaxed) as usize);
    switch_on();
    let thread = cpu::current();
    if let Some(body) = thread.body.take() {
        body();
    }
    let _ = without_interrupts();
    thread.runs.store(false, Relaxed);
    schedule::leave(After::Reap(thread));
    unreachable!("a thread that has ended is not gone on with")
}

/// Keeps a thread that has ended and has left its stack, for the next creation.
pub(super) fn recycle(thread: *const Thread) {
    // SAFETY: threads are never freed.
    let thread = unsafe { &*thread };
    // The thread may have moved from the node that its stack is on.
    let mut free = FREE[usize::from(thread.home)].lock();
    // Relaxed: under the lock.
    thread.free.store(free.0.cast_mut(), Relaxed);
    free.0 = thread;
}

/// Returns whether thread `number` runs, or another thread that has its number now.
pub(crate) fn is_alive(number: u32) -> bool {
    let Some(slot) = THREADS.get((number as usize).wrapping_sub(1)) else { return false };
    // Acquire: pairs with the release in `leak`.
    let thread = slot.load(Acquire);
    // SAFETY: threads are never freed. Relaxed: it orders nothing.
    unsafe { thread.as_ref() }.is_some_and(|thread| thread.runs.load(Relaxed))
}

/// Moves the caller to CPU `number`, for good; returns when it runs there.
///
/// # Panics
///
/// If there is no such CPU, or the caller is an action of a message, or is about to wait for a
/// [`Condvar`](condvar::Condvar).
pub fn bind(number: u32) {
    let target = cpu::get(number);
    assert!(!this().in_interrupt.get(), "an action of a message has no CPU to choose");
    let were_on = without_interrupts();
    if !ptr::eq(target, this()) {
        let thread = cpu::current();
        assert!(!condvar::waits(thread), "a thread can't move while it waits");
        thread.cpu.set(target);
        // RUN-2: the next thread of this CPU makes this one runnable there.
        schedule::leave(After::Send(thread));
        schedule::make_room(MADE.load(Relaxed) as usize);
    }
    crate::x86::cpu::restore(were_on);
}

/// Sleeps for `ns` nanoseconds.
pub fn sleep_ns(ns: u64) {
    let end = crate::x86::clock::now_ns().saturating_add(ns);
    while crate::x86::clock::now_ns() < end {
        schedule::sleep(&cpu::current().token, Some(end));
    }
}

/// Blocks the caller until [`unblock`], which may have come first, also while the caller slept or
/// joined another thread. May return spuriously.
pub fn block() {
    schedule::sleep(&cpu::current().blocks, None);
}

/// Ends the present or next [`block`] of a thread.
pub fn unblock(thread: &'static Thread) {
    schedule::wake(&thread.blocks, || thread);
}

const RUNS: usize = 0;
const ENDED: usize = 1;

/// The state that a thread and its handle share: `RUNS`, `ENDED`, or the address of the thread that
/// waits for the end.
struct Packet<T> {
    state: AtomicUsize,
    result: UnsafeCell<Option<T>>,
}

// SAFETY: one thread writes the result before it stores `ENDED`, and one thread reads it after it
// has seen that.
unsafe impl<T: Send> Sync for Packet<T> {}

impl<T> Packet<T> {
    fn end(&self) {
        // Release: the result; pairs with the acquires in `join`. Acquire: the waiting thread.
        let waiting = self.state.swap(ENDED, AcqRel);
        let thread = ptr::with_exposed_provenance::<Thread>(waiting);
        // SAFETY: threads are never freed.
        if let Some(thread) = unsafe { thread.as_ref() } {
            schedule::wake(&thread.token, || thread);
        }
    }
}

/// The handle of a thread, to join it. If it is dropped, the thread runs on.
#[must_use = "a thread whose handle is dropped can't be joined"]
pub struct JoinHandle<T>(Arc<Packet<T>>);

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended, and returns its result.
    pub fn join(self) -> T {
        let me = ptr::from_ref(cpu::current()).expose_provenance();
        // Release: the calling thread; pairs with the acquire in `end`. Acquire, here and below:
        // the result.
        let mut seen = match self.0.state.compare_exchange(RUNS, me, Release, Acquire) {
            Ok(_) => me,
            Err(now) => now,
        };
        while seen != ENDED {
            schedule::sleep(&cpu::current().token, None);
            seen = self.0.state.load(Acquire);
        }
        // SAFETY: the thread has ended, and only its handle reads the result.
        let result = unsafe { (*self.0.result.get()).take() };
        result.expect("a thread that has ended has a result")
    }

    /// Returns whether the thread has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.state.load(Acquire) == ENDED
    }
}
