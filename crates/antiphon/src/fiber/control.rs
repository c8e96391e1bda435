//! A fiber's control block, at the top of its stack, and the switches to and from that stack.
//!
//! One stack runs task after task: between two tasks it is suspended, as when a task waits. So a
//! task that does not wait costs two switches.
//!
//! ```text
//!              run                       waits, yields
//!   ┌──────┐ ───────► ┌───────────────┐ ──────────────► ┌───────────┐
//!   │ idle │          │ runs: CURRENT │                 │ suspended │
//!   └──────┘ ◄─────── └───────────────┘ ◄────────────── └───────────┘
//!             done                        goes on
//! ```
//!
//! - FIBER-1: a control block belongs to one thread, from when it is made until it is freed or
//!   [moves](super::host). Exceptions are `link` and `home`, by which other threads
//!   [post](Ready::post) it, and `woken_ns`, the time of the post.
//! - FIBER-2: it is idle, or runs, or is suspended; its thread switches to it unless it runs.

use std::backtrace::Backtrace;
use std::cell::{Cell, UnsafeCell};
use std::mem::{forget, offset_of};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use antiphon_linux::Linux;
use antiphon_linux::fiber::Sleep;
use antiphon_linux::stack::Stack;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_runtime::fiber::{InLine, Ready};
use antiphon_runtime::task::Task;
use antiphon_runtime::timer::Timer;
use antiphon_sync::queue::{Item, Link};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::clocked::{Clocked, WANTED};
use crate::worker::run;

/// A fiber's control block. Named by its address, which is the address of its link.
#[repr(C)]
pub(super) struct Control {
    link: Link<Linux>,
    /// The mailbox of its thread, valid from before it waits until it continues.
    pub(super) home: Cell<&'static Ready<Linux>>,
    /// When another thread woke it, if it is timed: [`WANTED`] until then, and 0 if that time is
    /// not wanted.
    pub(super) woken_ns: AtomicU64,
    timer: Timer,
    /// The next fiber in a list.
    next: Cell<Option<Fiber>>,
    /// The wait that it is suspended in, or is about to be.
    pub(super) sleep: Cell<Option<Sleep>>,
    /// The sleep that has ended so that the fiber checks its condition again, if the fiber has not
    /// waited since.
    pub(super) looked: Cell<Option<Sleep>>,
    yielder: Cell<*const Yielder<Order, Said>>,
    /// Its times, on its stack, if it is timed.
    pub(super) clocked: Cell<Option<NonNull<Clocked>>>,
    /// The identity of the task that it runs; 0 until it is first asked for.
    identity: Cell<usize>,
    /// `None` only while the control block is being made.
    coroutine: UnsafeCell<Option<Switch>>,
    stack: Cell<Option<Stack>>,
    /// The lowest address of its stack.
    limit: usize,
    /// Where it continues, if fibers of its pool move.
    pub(super) goes: Cell<GoesOn>,
    /// Its index in the list of all fibers of its thread.
    pub(super) at: Cell<usize>,
}

type Switch = Coroutine<Order, Said, (), Bare>;

/// The purpose of a switch to a fiber's stack.
pub(super) enum Order {
    /// An idle fiber must run this task.
    Run(Task<Linux>),
    /// A suspended fiber must continue.
    GoOn,
    /// An idle fiber must end.
    End,
    /// A waiting fiber must report where it waits, then continue to wait. The place may be written
    /// to until the stack is switched away from.
    Tell(NonNull<Told>),
}

/// A waiting fiber's answer to [`Order::Tell`].
#[derive(Default)]
pub(super) struct Told {
    /// `None` if too little of its stack is left to take a backtrace.
    pub(super) backtrace: Option<Backtrace>,
    /// The addresses of the part of its stack that it uses.
    pub(super) stack: Range<usize>,
}

/// The reason for a switch away from a fiber's stack.
#[derive(Clone, Copy)]
pub(super) enum Said {
    /// The task is done.
    Done,
    /// The fiber continues after others have had their turn; a soft yield does not let new tasks
    /// begin.
    Yields { soft: bool },
    /// The fiber waits, by the `sleep` of its control block.
    Sleeps,
    /// The fiber has reported where it waits.
    Told,
}

/// Where a fiber that may continue is queued.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoesOn {
    /// The queue where the policy puts tasks that a worker makes ready.
    Own,
    /// The queue for tasks from outside: the fiber has yielded, and a policy that runs the newest
    /// task first would run it again for ever.
    Outside,
    /// The run queue of its own thread.
    Here,
}

/// The address of a control block: one word, for lists. FIBER-1: the holder of this word is the
/// fiber's thread.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Fiber(NonNull<Control>);

impl InLine for Fiber {
    #[inline]
    fn behind(&self) -> &Cell<Option<Self>> {
        &self.get().next
    }
}

/// The part of a stack below the control block.
struct Bare {
    base: NonZeroUsize,
    limit: NonZeroUsize,
}

// SAFETY: it is part of a `Stack`, whose lowest page is a guard, without the bytes that the control
// block takes.
unsafe impl corosensei::stack::Stack for Bare {
    fn base(&self) -> NonZeroUsize {
        self.base
    }

    fn limit(&self) -> NonZeroUsize {
        self.limit
    }
}

/// The bytes of a stack that a backtrace may need, including the guard below.
const TELLS: usize = 20 << 10;

/// Alignment of the control block on its stack.
const ALIGN: usize = 64;

impl Fiber {
    /// Creates an idle fiber on this stack; `moves`: it may move to other threads.
    pub(super) fn new(stack: Stack, home: &'static Ready<Linux>, moves: bool) -> Self {
        let (top, limit) = (stack.base().get(), stack.limit());
        let address = (top - size_of::<Control>()) & !(ALIGN - 1);
        let place = NonNull::new(ptr::with_exposed_provenance_mut(address)).expect("in a stack");
        let base = place.addr();
        let control = Control {
            link: Link::NEW,
            home: Cell::new(home),
            woken_ns: AtomicU64::new(0),
            timer: Timer::new(),
            next: Cell::new(None),
            sleep: Cell::new(None),
            looked: Cell::new(None),
            yielder: Cell::new(ptr::null()),
            clocked: Cell::new(None),
            identity: Cell::new(0),
            coroutine: UnsafeCell::new(None),
            stack: Cell::new(Some(stack)),
            limit: limit.get(),
            goes: Cell::new(GoesOn::Own),
            at: Cell::new(0),
        };
        // SAFETY: the place is within the stack, which is ours, and aligned.
        unsafe { place.write(control) };
        let fiber = Self(place);
        let bare = Bare { base, limit };
        let coroutine = Switch::with_stack(bare, move |yielder, order| {
            fiber_begins_here(fiber, yielder, order, moves)
        });
        // SAFETY: FIBER-1: no other code has the fiber yet.
        unsafe { *fiber.get().coroutine.get() = Some(coroutine) };
        fiber
    }

    /// Returns the control block. Only for the fiber's thread.
    #[inline]
    pub(super) fn get(&self) -> &Control {
        // SAFETY: a `Fiber` names a fiber that exists, until `free`.
        unsafe { self.0.as_ref() }
    }

    /// Returns the address of its control block.
    #[inline(always)]
    pub(super) fn address(self) -> NonNull<()> {
        self.0.cast()
    }

    /// Returns the fiber whose control block is at that address.
    ///
    /// # Safety
    ///
    /// The address comes from [`address`](Self::address), and its fiber still exists.
    #[inline(always)]
    pub(super) unsafe fn at(address: NonNull<()>) -> Self {
        Self(address.cast())
    }

    /// Returns the name of the fiber: an address, below 2^63 and aligned.
    pub(super) fn handle(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// Returns the identity of the task that it runs: an odd number that no other task ever has.
    pub(super) fn identity(self) -> NonZeroUsize {
        let cell = &self.get().identity;
        if cell.get() == 0 {
            cell.set(next_identity());
        }
        NonZeroUsize::new(cell.get()).expect("odd")
    }

    /// Returns the fiber with that name.
    ///
    /// # Safety
    ///
    /// The handle comes from [`handle`](Self::handle), and its fiber still exists.
    pub(super) unsafe fn of_handle(handle: u64) -> Self {
        let control = ptr::with_exposed_provenance_mut(handle as usize);
        // SAFETY: promised by the caller; a handle is not 0.
        Self(unsafe { NonNull::new_unchecked(control) })
    }

    /// Returns the fiber that has this timer.
    ///
    /// # Safety
    ///
    /// The timer is the [`timer`](Self::timer) of a fiber that still exists.
    pub(super) unsafe fn of_timer(timer: NonNull<Timer>) -> Self {
        // SAFETY: promised by the caller: it is within a control block.
        Self(unsafe { timer.byte_sub(offset_of!(Control, timer)) }.cast())
    }

    /// Returns the fiber's timer, with the provenance of the whole control block.
    pub(super) fn timer(self) -> NonNull<Timer> {
        // SAFETY: the field is within the control block.
        unsafe { self.0.byte_add(offset_of!(Control, timer)) }.cast()
    }

    /// Returns the mailbox through which its thread learns that the fiber may continue. On any
    /// thread.
    ///
    /// # Safety
    ///
    /// The handle names a fiber that still exists.
    pub(super) unsafe fn home(handle: u64) -> &'static Ready<Linux> {
        // SAFETY: promised by the caller; FIBER-1: all threads may read `home`, which is not set
        // while a thread has yet to post the fiber.
        unsafe { (*ptr::addr_of!((*Self::of_handle(handle).0.as_ptr()).home)).get() }
    }

    /// Tells its thread that the fiber may continue. On any thread.
    ///
    /// # Safety
    ///
    /// The fiber is suspended in a wait, and this call ends the wait.
    pub(super) unsafe fn post(handle: u64) {
        // SAFETY: promised by the caller: the fiber exists.
        let home = unsafe { Self::home(handle) };
        // SAFETY: the fiber exists; FIBER-1: all threads may use `woken_ns`.
        let woken_ns = unsafe { &(*Self::of_handle(handle).0.as_ptr()).woken_ns };
        // Relaxed, both: the load reads a value that was set before the fiber was suspended, which
        // the caller has acquired; the store is published by posting the fiber.
        if woken_ns.load(Relaxed) == WANTED {
            woken_ns.store(Linux::now(Clock::Monotonic), Relaxed);
        }
        let item = Item::new(handle).expect("an address");
        // SAFETY: the address of a link, which is in no queue: the fiber is suspended, and posted
        // once.
        unsafe { home.post(item) };
    }

    /// Switches to its stack, and returns when the fiber switches away. Returns `None` if the fiber
    /// has ended.
    ///
    /// # Safety
    ///
    /// Called by its thread; the fiber is idle for `Run` and `End`, suspended for `GoOn`.
    #[inline(always)]
    pub(super) unsafe fn switch(self, order: Order) -> Option<Said> {
        // SAFETY: FIBER-1; and FIBER-2: it does not run, no other code switches to it before this
        // call returns, and no other code uses the cell.
        let coroutine = unsafe { (*self.get().coroutine.get()).as_mut() };
        match coroutine.expect("it was made").resume(order) {
            CoroutineResult::Yield(said) => Some(said),
            CoroutineResult::Return(()) => None,
        }
    }

    /// Switches away from its stack, which the caller is on.
    ///
    /// # Safety
    ///
    /// The caller runs on it, and is not unwinding.
    #[inline(always)]
    pub(super) unsafe fn leave(self, said: Said) {
        // SAFETY: set when the fiber began, as the caller runs on it.
        let yielder = unsafe { &*self.get().yielder.get() };
        let mut order = yielder.suspend(said);
        while let Order::Tell(place) = order {
            self.tell(place);
            order = yielder.suspend(Said::Told);
        }
        // The order is `GoOn`, because the fiber is not idle.
        forget(order);
    }

    /// Reports where it is, by running on its stack; without a backtrace if too little stack is
    /// left.
    #[cold]
    #[inline(never)]
    pub(super) fn tell(self, mut place: NonNull<Told>) {
        let here = ptr::from_ref(&place).addr();
        let has_room = here.saturating_sub(self.get().limit) > TELLS;
        // SAFETY: the asker owns the place, and waits until it is written.
        *unsafe { place.as_mut() } = Told {
            backtrace: has_room.then(Backtrace::force_capture),
            stack: here..self.0.addr().get(),
        };
    }

    /// Returns the end of its stack, if `address` is within the stack.
    pub(super) fn top_of(self, address: usize) -> Option<usize> {
        let top = self.0.addr().get();
        (self.get().limit..top).contains(&address).then_some(top)
    }

    /// Ends the fiber and gives its stack back for others.
    ///
    /// # Safety
    ///
    /// Called by its thread; the fiber is idle, and no other code uses it any more.
    pub(super) unsafe fn free(self) {
        // SAFETY: promised by the caller.
        let said = unsafe { self.switch(Order::End) };
        debug_assert!(said.is_none(), "an idle fiber ends by `Order::End`");
        let stack = self.get().stack.take();
        // SAFETY: no other code uses it any more, and the stack still exists.
        unsafe { self.0.drop_in_place() };
        drop(stack);
    }
}

/// Returns an odd number that no other task has.
pub(crate) fn next_identity() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    // Relaxed: only uniqueness matters; each number is handed out once.
    NEXT.fetch_add(2, Relaxed)
}

/// The code that runs on a stack: task after task. Backtraces find the fiber's frames by this name.
#[inline(never)]
fn fiber_begins_here(fiber: Fiber, yielder: &Yielder<Order, Said>, mut order: Order, moves: bool) {
    fiber.get().yielder.set(yielder);
    while let Order::Run(task) = order {
        fiber.get().identity.set(0);
        if moves {
            run_apart(task)
        } else {
            run(task)
        }
        order = yielder.suspend(Said::Done);
    }
}

/// MIGRATE-3: catching panics uses a thread-local of `std`, whose address the loop would keep.
#[inline(never)]
fn run_apart(task: Task<Linux>) {
    run(task);
}
