//! A task: a closure, and later its result, in one allocation that two parties share: the thread
//! that runs it, and the waiter.
//!
//! | byte | field | written by | meaning |
//! |---|---|---|---|
//! | 0–7 | `act` | – | the function that runs, drops and frees a closure of its type |
//! | 8–11 | `state` | both | `OWED`, `AWAITED`, `DONE`, `EMPTY`, `WATCHED`, `POLLED` |
//! | 16–23 | `bell` | both | how the waiter is notified: it sleeps, or has left a waker |
//! | 24 … | `slot` | the runner, the waiter | the closure, and then its result |
//!
//! | state | meaning |
//! |---|---|
//! | `OWED` | a thread has the [`Task`] |
//! | `AWAITED` | a thread has the [`Handle`] |
//! | `DONE` | the task was run, or dropped |
//! | `EMPTY` | no result: the task has panicked or was dropped, or the result was taken |
//! | `WATCHED` | the waiter sleeps, or is about to: the bell must be rung |
//! | `POLLED` | the ticket in the bell is the address of a [`Waker`], not of a sleeper |
//!
//! - TASK-1: the owner of the [`Task`] takes the closure out of the slot, once, and writes its
//!   result there; then it adds `DONE`. From then on the slot is the [`Handle`]'s.
//! - TASK-2: the last thread that uses the allocation frees it, with the contents of the slot.
//! - TASK-3: the waiter adds `WATCHED` or `POLLED` before it checks for `DONE` and sleeps. If the
//!   thread that has run the task has seen neither, it adds `DONE` and lets go in one exchange, and
//!   does not ring.
//! - TASK-4: while the bell has a ticket, `POLLED` says of which kind; the thread that adds `DONE`
//!   rings according to the value that it saw then. The thread that takes a waker's address out of
//!   the bell owns the waker.

mod awaited;
mod countdown;
mod future;
mod handle;
mod memory;
mod promise;

use alloc::boxed::Box;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::{ManuallyDrop, forget};
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::task::Waker;

use antiphon_platform::{Atomic, AtomicInteger, Platform};
use antiphon_sync::queue::Item;

use crate::sleep::{Bell, Park};

pub use awaited::Awaited;
pub use countdown::{BiasedCountdown, Countdown};
pub use future::drive;
pub use handle::Handle;
pub use memory::{Heap, Memory};
pub use promise::Promise;

const OWED: u32 = 1;
const AWAITED: u32 = 2;
const DONE: u32 = 4;
const EMPTY: u32 = 8;
const WATCHED: u32 = 16;
const POLLED: u32 = 32;

/// A unit of work, which is run once. If it is dropped before, it is done without a result.
pub struct Task<P: Platform>(NonNull<Header<P>>);

/// The first part of the allocation, whatever the closure's type.
#[repr(C)]
struct Header<P: Platform> {
    act: unsafe fn(NonNull<Self>, Act),
    state: P::U32,
    bell: Bell<P>,
}

/// The actions on the slot.
enum Act {
    /// Run the closure, and store its result.
    Run,
    /// Drop the closure.
    Drop,
    /// Move the result of the closure to `into`.
    Take { into: NonNull<()> },
    /// Free the allocation, and drop the result if there is one.
    Free { empty: bool },
}

#[repr(C)]
struct Body<P: Platform, F, T> {
    header: Header<P>,
    slot: UnsafeCell<Slot<F, T>>,
}

union Slot<F, T> {
    work: ManuallyDrop<F>,
    returned: ManuallyDrop<T>,
}

// SAFETY: its contents are `Send`, as `new` requires; the rest are atomics.
unsafe impl<P: Platform> Send for Task<P> {}

impl<P: Platform> Task<P> {
    /// Creates a task that no thread waits for.
    pub fn detached<F>(work: F) -> Self
    where
        F: FnOnce() + Send + 'static,
    {
        Self::detached_in(Heap, work)
    }

    /// Like [`detached`](Self::detached), but in memory `M`.
    pub fn detached_in<M, F>(memory: M, work: F) -> Self
    where
        M: Memory,
        F: FnOnce() + Send + 'static,
    {
        // SAFETY: `'static`.
        unsafe { Self::borrowing_in(memory, work) }
    }

    /// Creates a task, and a handle to wait for it.
    pub fn new<F, T>(work: F) -> (Self, Handle<P, T>)
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Self::new_in(Heap, work)
    }

    /// Like [`new`](Self::new), but in memory `M`.
    pub fn new_in<M, F, T>(memory: M, work: F) -> (Self, Handle<P, T>)
    where
        M: Memory,
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: `'static`.
        unsafe { Self::borrowing_new_in(memory, work) }
    }

    /// Like [`new_in`](Self::new_in), for a closure that may borrow.
    ///
    /// # Safety
    ///
    /// The task is run or dropped, and the handle taken or dropped, before the end of the borrows
    /// of the closure and its result.
    pub unsafe fn borrowing_new_in<M, F, T>(_: M, work: F) -> (Self, Handle<P, T>)
    where
        M: Memory,
        F: FnOnce() -> T + Send,
        T: Send,
    {
        // SAFETY: the caller's contract.
        let header = unsafe { allocate::<P, M, _, _>(work, OWED | AWAITED) };
        // SAFETY: the task returns `T`, and `AWAITED` is the caller's.
        (Self(header), unsafe { Handle::new(header) })
    }

    /// Like [`detached`](Self::detached), for a closure that may borrow, and in memory `M`.
    ///
    /// # Safety
    ///
    /// The task is run or dropped before the end of the closure's borrows.
    pub unsafe fn borrowing_in<M, F>(_: M, work: F) -> Self
    where
        M: Memory,
        F: FnOnce() + Send,
    {
        // SAFETY: the caller's contract.
        Self(unsafe { allocate::<P, M, _, _>(work, OWED) })
    }

    /// Runs the task. If the closure panics, so does this, and the task has no result.
    pub fn run(self) {
        let mut end = End { header: self.0, empty: true };
        forget(self);
        // SAFETY: TASK-1, the caller owned the task.
        unsafe { (end.header().act)(end.header, Act::Run) };
        end.empty = false;
    }

    /// Returns a word that names the task, for queues. If the word is lost, so is the task.
    #[must_use]
    pub fn into_item(self) -> Item {
        let address = self.0.as_ptr().expose_provenance() as u64;
        forget(self);
        Item::new(address).expect("an allocation that is aligned to eight")
    }

    /// Returns the task that the word names.
    ///
    /// # Safety
    ///
    /// The item comes from [`into_item`](Self::into_item), with this platform, and is used once.
    #[must_use]
    pub unsafe fn from_item(item: Item) -> Self {
        let header = core::ptr::with_exposed_provenance_mut(item.word() as usize);
        // SAFETY: not null, as items aren't.
        Self(unsafe { NonNull::new_unchecked(header) })
    }
}

impl<P: Platform> Drop for Task<P> {
    fn drop(&mut self) {
        let end = End { header: self.0, empty: true };
        // SAFETY: TASK-1, the task is owned here.
        unsafe { (end.header().act)(end.header, Act::Drop) };
    }
}

impl<P: Platform> fmt::Debug for Task<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}

/// Makes the task done when this is dropped.
struct End<P: Platform> {
    header: NonNull<Header<P>>,
    empty: bool,
}

impl<P: Platform> End<P> {
    fn header(&self) -> &Header<P> {
        // SAFETY: not freed while `OWED` is set, until this is dropped.
        unsafe { self.header.as_ref() }
    }

    /// Notifies a waiter that may sleep that the task is `done`, and lets go.
    #[cold]
    fn ring(&self, done: u32) {
        let Header { state, bell, .. } = self.header();
        // Release: TASK-1; pairs with the acquire in `Handle::is_done`. TASK-4: the fence in
        // `Bell::take`, below, acquires; pairs with the releases in `Handle::hook` and `unhook`.
        let polled = state.fetch_or(done, Release) & POLLED != 0;
        let waker = if polled { take_waker(bell) } else { None };
        if !polled {
            bell.ring(&Park::<P>::NEW);
        }
        // Last, after all other uses of the header: a waker may run any code.
        let _wakes = Wakes(waker);
        // Release: TASK-2, this thread's accesses; pairs with the acquire in `Handle::drop`.
        // Acquire: the waiter's accesses; pairs with the release there.
        if state.fetch_and(!OWED, AcqRel) & AWAITED == 0 {
            // SAFETY: TASK-2. The result may have been taken meanwhile.
            unsafe { free(self.header) };
        }
    }
}

impl<P: Platform> Drop for End<P> {
    fn drop(&mut self) {
        let state = &self.header().state;
        let done = DONE | if self.empty { EMPTY } else { 0 };
        // Acquire: TASK-2, the waiter has let go; pairs with the release in `Handle::drop`.
        if state.load(Acquire) != OWED {
            const BOTH: u32 = OWED | AWAITED;
            // Release: TASK-1, TASK-2; pairs with the acquires in `Handle::is_done` and its `drop`.
            // Acquire: TASK-2; pairs with the release in `Handle::drop`.
            match state.compare_exchange(BOTH, AWAITED | done, Release, Acquire) {
                Ok(_) => return,
                Err(seen) if seen & AWAITED != 0 => return self.ring(done),
                Err(_) => {}
            }
        }
        // SAFETY: TASK-2.
        unsafe { (self.header().act)(self.header, Act::Free { empty: self.empty }) };
    }
}

/// Wakes when it is dropped.
struct Wakes(Option<Box<Waker>>);

impl Drop for Wakes {
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            waker.wake();
        }
    }
}

/// TASK-4: takes the waker out of the bell, if it is still there.
fn take_waker<P: Platform>(bell: &Bell<P>) -> Option<Box<Waker>> {
    let address = bell.take()?.get() as usize;
    // SAFETY: left by `Handle::hook`; the thread that takes it owns it.
    Some(unsafe { Box::from_raw(core::ptr::with_exposed_provenance_mut(address)) })
}

/// TASK-2: frees an allocation that no other thread uses.
///
/// # Safety
///
/// The caller is its last user.
unsafe fn free<P: Platform>(header: NonNull<Header<P>>) {
    // SAFETY: the caller's contract.
    let (act, state) = unsafe { (header.as_ref().act, &header.as_ref().state) };
    // Relaxed: the caller has acquired it.
    let empty = state.load(Relaxed) & EMPTY != 0;
    // SAFETY: the caller's contract.
    unsafe { act(header, Act::Free { empty }) };
}

/// # Safety
///
/// The borrows of the closure outlive the task.
unsafe fn allocate<P, M, F, T>(work: F, state: u32) -> NonNull<Header<P>>
where
    P: Platform,
    M: Memory,
    F: FnOnce() -> T + Send,
    T: Send,
{
    let slot = UnsafeCell::new(Slot::<F, T> { work: ManuallyDrop::new(work) });
    let header = Header { act: act::<P, M, F, T>, state: P::U32::ZERO, bell: Bell::NEW };
    let place: NonNull<Body<P, F, T>> = M::allocate(Layout::new::<Body<P, F, T>>()).cast();
    // SAFETY: the memory has that size, and is owned here.
    let body = unsafe {
        place.write(Body { header, slot });
        place.as_ref()
    };
    // Relaxed: no other thread has it yet.
    body.header.state.store(state, Relaxed);
    place.cast()
}

/// # Safety
///
/// The header is that of a `Body<P, F, T>`; the slot, and for `Free` the whole body, belongs to the
/// caller, and is in the state that the act requires.
unsafe fn act<P, M, F, T>(header: NonNull<Header<P>>, act: Act)
where
    P: Platform,
    M: Memory,
    F: FnOnce() -> T,
{
    let body: NonNull<Body<P, F, T>> = header.cast();
    // SAFETY: the caller's contract.
    let slot = unsafe { body.as_ref().slot.get() };
    // SAFETY: the caller's contract: the closure is there for `Run` and `Drop`, and is taken once.
    unsafe {
        match act {
            Act::Run => {
                let returned = ManuallyDrop::take(&mut (*slot).work)();
                (*slot).returned = ManuallyDrop::new(returned);
            }
            Act::Drop => ManuallyDrop::drop(&mut (*slot).work),
            Act::Take { into } => into.cast().write(ManuallyDrop::take(&mut (*slot).returned)),
            Act::Free { empty } => {
                // The drop may panic; then the memory is leaked.
                if !empty {
                    ManuallyDrop::drop(&mut (*slot).returned);
                }
                let layout = Layout::for_value(body.as_ref());
                body.drop_in_place();
                M::free(body.cast(), layout);
            }
        }
    }
}
