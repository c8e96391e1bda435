//! A task: a closure, and then what it returned, in one allocation that two share: the thread that
//! runs it, and the waiter.
//!
//! | byte | field | written by | meaning |
//! |---|---|---|---|
//! | 0–7 | `act` | – | how to run, drop and free what only the closure's type knows |
//! | 8–11 | `state` | both | `OWED`, `AWAITED`, `DONE`, `EMPTY`, `WATCHED`, `POLLED` |
//! | 16–23 | `bell` | both | how the waiter is told: it sleeps, or has left a waker |
//! | 24 … | `slot` | the runner, the waiter | the closure, and then what it returned |
//!
//! | state | meaning |
//! |---|---|
//! | `OWED` | a thread has the [`Task`] |
//! | `AWAITED` | a thread has the [`Handle`] |
//! | `DONE` | the task was run, or dropped |
//! | `EMPTY` | it has returned nothing: it has panicked or was dropped; or that was taken |
//! | `WATCHED` | the waiter sleeps, or is about to: the bell is to be rung |
//! | `POLLED` | what the bell names is the address of a [`Waker`], and no sleeper |
//!
//! - TASK-1: the owner of the [`Task`] takes the closure out of the slot, once, and writes what it
//!   returned into it; then it adds `DONE`. From then on the slot is the [`Handle`]'s.
//! - TASK-2: the thread that lets go of the allocation last frees it, with what is in the slot.
//! - TASK-3: the waiter adds `WATCHED` or `POLLED` before it looks for `DONE` and goes. If the
//!   thread that has run the task has seen neither, it adds `DONE` and lets go in one exchange, and
//!   does not ring.
//! - TASK-4: while the bell names something, `POLLED` says as what; and the thread that adds `DONE`
//!   rings as what it saw then. The thread that takes a waker's address out of the bell has the
//!   waker.

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

/// Something to be run, once. If it is dropped without, it is done with nothing returned.
pub struct Task<P: Platform>(NonNull<Header<P>>);

/// The first part of the allocation, whatever the closure.
#[repr(C)]
struct Header<P: Platform> {
    act: unsafe fn(NonNull<Self>, Act),
    state: P::U32,
    bell: Bell<P>,
}

/// The actions on the slot.
enum Act {
    /// Run the closure, and keep what it returns.
    Run,
    /// Drop the closure.
    Drop,
    /// Move what the closure has returned to `into`.
    Take { into: NonNull<()> },
    /// Free the allocation, and drop what the closure returned unless that is not there.
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

// SAFETY: what is in it is `Send`: `new` asks for that; the rest are atomics.
unsafe impl<P: Platform> Send for Task<P> {}

impl<P: Platform> Task<P> {
    /// A task that no thread waits for.
    pub fn detached<F>(work: F) -> Self
    where
        F: FnOnce() + Send + 'static,
    {
        Self::detached_in(Heap, work)
    }

    /// Like [`detached`](Self::detached), in other memory.
    pub fn detached_in<M, F>(memory: M, work: F) -> Self
    where
        M: Memory,
        F: FnOnce() + Send + 'static,
    {
        // SAFETY: `'static`.
        unsafe { Self::borrowing_in(memory, work) }
    }

    /// A task, and a handle to wait for it.
    pub fn new<F, T>(work: F) -> (Self, Handle<P, T>)
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Self::new_in(Heap, work)
    }

    /// Like [`new`](Self::new), in other memory.
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
    /// The task is run or dropped, and the handle taken or dropped, before what the closure and
    /// what it returns borrow is gone.
    pub unsafe fn borrowing_new_in<M, F, T>(_: M, work: F) -> (Self, Handle<P, T>)
    where
        M: Memory,
        F: FnOnce() -> T + Send,
        T: Send,
    {
        // SAFETY: the caller's.
        let header = unsafe { allocate::<P, M, _, _>(work, OWED | AWAITED) };
        // SAFETY: of a task that returns `T`, and `AWAITED` is ours.
        (Self(header), unsafe { Handle::new(header) })
    }

    /// Like [`detached`](Self::detached), for a closure that may borrow, and in other memory.
    ///
    /// # Safety
    ///
    /// The task is run or dropped before what the closure borrows is gone.
    pub unsafe fn borrowing_in<M, F>(_: M, work: F) -> Self
    where
        M: Memory,
        F: FnOnce() + Send,
    {
        // SAFETY: the caller's.
        Self(unsafe { allocate::<P, M, _, _>(work, OWED) })
    }

    /// Runs the task. If the closure panics, so does this, and the task has returned nothing.
    pub fn run(self) {
        let mut end = End { header: self.0, empty: true };
        forget(self);
        // SAFETY: TASK-1, we had the task.
        unsafe { (end.header().act)(end.header, Act::Run) };
        end.empty = false;
    }

    /// A word that names the task, for queues. If the word is lost, so is the task.
    #[must_use]
    pub fn into_item(self) -> Item {
        let address = self.0.as_ptr().expose_provenance() as u64;
        forget(self);
        Item::new(address).expect("an allocation that is aligned to eight")
    }

    /// The task that the word names.
    ///
    /// # Safety
    ///
    /// The item is of [`into_item`](Self::into_item), with this platform, and is used once.
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
        // SAFETY: TASK-1, we have the task.
        unsafe { (end.header().act)(end.header, Act::Drop) };
    }
}

impl<P: Platform> fmt::Debug for Task<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}

/// The task is done when this is dropped.
struct End<P: Platform> {
    header: NonNull<Header<P>>,
    empty: bool,
}

impl<P: Platform> End<P> {
    fn header(&self) -> &Header<P> {
        // SAFETY: not freed while it is owed, until we are dropped.
        unsafe { self.header.as_ref() }
    }

    /// Tells a waiter that may sleep that the task is `done`, and lets go.
    #[cold]
    fn ring(&self, done: u32) {
        let Header { state, bell, .. } = self.header();
        // Release: TASK-1; pairs with the acquire in `Handle::is_done`. Acquire: TASK-4; pairs with
        // the releases in `Handle::hook` and `unhook`.
        let polled = state.fetch_or(done, AcqRel) & POLLED != 0;
        let waker = if polled { take_waker(bell) } else { None };
        if !polled {
            bell.ring(&Park::<P>::NEW);
        }
        // Last, when we are done with it: a waker may do anything.
        let _wakes = Wakes(waker);
        // Release: TASK-2, so that we are done with it; pairs with the acquire in `Handle::drop`.
        // Acquire: so that the waiter is; pairs with the release there.
        if state.fetch_and(!OWED, AcqRel) & AWAITED == 0 {
            // SAFETY: TASK-2. What was returned may have been taken meanwhile.
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
            // Acquire: as above.
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

/// TASK-4: takes the waker that was left in the bell, if it is still there.
fn take_waker<P: Platform>(bell: &Bell<P>) -> Option<Box<Waker>> {
    let address = bell.take()?.get() as usize;
    // SAFETY: left by `Handle::poll`, and the thread that takes it has it.
    Some(unsafe { Box::from_raw(core::ptr::with_exposed_provenance_mut(address)) })
}

/// TASK-2: frees an allocation that no thread has any more.
///
/// # Safety
///
/// The caller is the last that had it.
unsafe fn free<P: Platform>(header: NonNull<Header<P>>) {
    // SAFETY: the caller's.
    let (act, state) = unsafe { (header.as_ref().act, &header.as_ref().state) };
    // Relaxed: the caller has acquired it.
    let empty = state.load(Relaxed) & EMPTY != 0;
    // SAFETY: the caller's.
    unsafe { act(header, Act::Free { empty }) };
}

/// # Safety
///
/// What the closure borrows outlives the task.
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
    // SAFETY: as large, and ours.
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
/// The header is that of a `Body<P, F, T>`; and the slot, and for `Free` all of it, is the
/// caller's, and is as the act says.
unsafe fn act<P, M, F, T>(header: NonNull<Header<P>>, act: Act)
where
    P: Platform,
    M: Memory,
    F: FnOnce() -> T,
{
    let body: NonNull<Body<P, F, T>> = header.cast();
    // SAFETY: the caller's.
    let slot = unsafe { body.as_ref().slot.get() };
    // SAFETY: the caller's: the closure is there for `Run` and `Drop`, and is taken once.
    unsafe {
        match act {
            Act::Run => {
                let returned = ManuallyDrop::take(&mut (*slot).work)();
                (*slot).returned = ManuallyDrop::new(returned);
            }
            Act::Drop => ManuallyDrop::drop(&mut (*slot).work),
            Act::Take { into } => into.cast().write(ManuallyDrop::take(&mut (*slot).returned)),
            Act::Free { empty } => {
                // The drop may panic; then the memory is lost.
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
