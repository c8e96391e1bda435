//! A fiber's control block, at the top of its stack, and how its stack is switched to and away
//! from.
//!
//! One stack runs task after task: it is suspended between two as it is where a task waits. So a
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
//! - FIBER-1: a control block is of one thread, from the time it is made until it is freed, or
//!   [moves](super::host); but for `link` and `home`, by which others [post](Ready::post) it, and
//!   `woken_ns`: when they do.
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

/// Named by its address, which is that of its link.
#[repr(C)]
pub(super) struct Control {
    link: Link<Linux>,
    /// The mail of its thread, from before it waits until it goes on.
    pub(super) home: Cell<&'static Ready<Linux>>,
    /// When another thread let it go on, if it is timed: [`WANTED`] until then, and 0 where that
    /// time is not wanted.
    pub(super) woken_ns: AtomicU64,
    timer: Timer,
    /// The one behind it in a list.
    next: Cell<Option<Fiber>>,
    /// The wait that it is suspended in, or is about to be.
    pub(super) sleep: Cell<Option<Sleep>>,
    /// The sleep that has ended for another look at what the fiber waits for, if it has not waited
    /// after that.
    pub(super) looked: Cell<Option<Sleep>>,
    yielder: Cell<*const Yielder<Order, Said>>,
    /// On its stack, if it is timed.
    pub(super) clocked: Cell<Option<NonNull<Clocked>>>,
    /// The identity of the task that it runs, once that was asked for; 0 before.
    identity: Cell<usize>,
    /// `None` only while it is being made.
    coroutine: UnsafeCell<Option<Switch>>,
    stack: Cell<Option<Stack>>,
    /// The lowest address of its stack.
    limit: usize,
    /// Where it goes on, if fibers of its pool move.
    pub(super) goes: Cell<GoesOn>,
    /// Its index in the list of all fibers of its thread.
    pub(super) at: Cell<usize>,
}

type Switch = Coroutine<Order, Said, (), Bare>;

/// The purpose of a switch to a fiber's stack.
pub(super) enum Order {
    /// An idle one: run this.
    Run(Task<Linux>),
    /// A suspended one: go on.
    GoOn,
    /// An idle one: come to an end.
    End,
    /// A waiting one: tell where it waits, and wait on. The place may be written to until the stack
    /// is switched away from.
    Tell(NonNull<Told>),
}

/// The answer of a fiber that waits.
#[derive(Default)]
pub(super) struct Told {
    /// `None` if there is too little of its stack left.
    pub(super) backtrace: Option<Backtrace>,
    /// The part of its stack that it uses.
    pub(super) stack: Range<usize>,
}

/// Why a stack is switched away from.
#[derive(Clone, Copy)]
pub(super) enum Said {
    /// The task is done.
    Done,
    /// It goes on when others have had their turn; a soft yield does not let new tasks begin.
    Yields { soft: bool },
    /// It waits, by the `sleep` of its control block.
    Sleeps,
    /// It has told where it waits.
    Told,
}

/// Where a fiber that may go on does so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoesOn {
    /// On the queue where the policy puts tasks that a worker makes ready.
    Own,
    /// On the queue of tasks from outside: the fiber has yielded, and a policy that runs the last
    /// one first would run it again for ever.
    Outside,
    /// On its own thread.
    Here,
}

/// A control block, by its address: a word for lists. FIBER-1: the owner of this word is its
/// thread.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Fiber(NonNull<Control>);

impl InLine for Fiber {
    #[inline]
    fn behind(&self) -> &Cell<Option<Self>> {
        &self.get().next
    }
}

/// The part of a stack that is below the control block; the block has the rest.
struct Bare {
    base: NonZeroUsize,
    limit: NonZeroUsize,
}

// SAFETY: of a `Stack`, whose lowest page is a guard, less what the control block takes.
unsafe impl corosensei::stack::Stack for Bare {
    fn base(&self) -> NonZeroUsize {
        self.base
    }

    fn limit(&self) -> NonZeroUsize {
        self.limit
    }
}

/// The size of a stack that a backtrace may take, with the guard below, in bytes.
const TELLS: usize = 20 << 10;

/// Alignment of the control block on its stack.
const ALIGN: usize = 64;

impl Fiber {
    /// An idle one, on this stack, which may move.
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
        // SAFETY: within the stack, which is ours, and aligned.
        unsafe { place.write(control) };
        let fiber = Self(place);
        let bare = Bare { base, limit };
        let coroutine = Switch::with_stack(bare, move |yielder, order| {
            fiber_begins_here(fiber, yielder, order, moves)
        });
        // SAFETY: FIBER-1, no other code has it yet.
        unsafe { *fiber.get().coroutine.get() = Some(coroutine) };
        fiber
    }

    /// The control block of a fiber that is there: for its thread.
    #[inline]
    pub(super) fn get(&self) -> &Control {
        // SAFETY: a `Fiber` names a fiber that is there: `free` is the end of it.
        unsafe { self.0.as_ref() }
    }

    /// The address of its control block.
    #[inline(always)]
    pub(super) fn address(self) -> NonNull<()> {
        self.0.cast()
    }

    /// The fiber whose control block is there.
    ///
    /// # Safety
    ///
    /// The address is of [`address`](Self::address), and its fiber is there.
    #[inline(always)]
    pub(super) unsafe fn at(address: NonNull<()>) -> Self {
        Self(address.cast())
    }

    /// The name of the fiber: an address, below 2^63 and aligned.
    pub(super) fn handle(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// Tells the task that it runs from all others, ever: an odd number.
    pub(super) fn identity(self) -> NonZeroUsize {
        let cell = &self.get().identity;
        if cell.get() == 0 {
            cell.set(next_identity());
        }
        NonZeroUsize::new(cell.get()).expect("odd")
    }

    /// The fiber of that name.
    ///
    /// # Safety
    ///
    /// The handle is of [`handle`](Self::handle), and its fiber is there.
    pub(super) unsafe fn of_handle(handle: u64) -> Self {
        let control = ptr::with_exposed_provenance_mut(handle as usize);
        // SAFETY: the caller's.
        Self(unsafe { NonNull::new_unchecked(control) })
    }

    /// The one that has this timer.
    ///
    /// # Safety
    ///
    /// The timer is the [`timer`](Self::timer) of a fiber that is there.
    pub(super) unsafe fn of_timer(timer: NonNull<Timer>) -> Self {
        // SAFETY: the caller's: it is within a control block.
        Self(unsafe { timer.byte_sub(offset_of!(Control, timer)) }.cast())
    }

    /// The fiber's timer, by way of all of the control block.
    pub(super) fn timer(self) -> NonNull<Timer> {
        // SAFETY: within it.
        unsafe { self.0.byte_add(offset_of!(Control, timer)) }.cast()
    }

    /// The mailbox by which its thread learns that it may go on. On any thread.
    ///
    /// # Safety
    ///
    /// The handle is that of a fiber that is there.
    pub(super) unsafe fn home(handle: u64) -> &'static Ready<Linux> {
        // SAFETY: the caller's; FIBER-1: it is for all, and is not set while a thread has yet to
        // post the fiber.
        unsafe { (*ptr::addr_of!((*Self::of_handle(handle).0.as_ptr()).home)).get() }
    }

    /// Says to its thread that it may go on. On any thread.
    ///
    /// # Safety
    ///
    /// The fiber is suspended in a wait, and this call ends it.
    pub(super) unsafe fn post(handle: u64) {
        // SAFETY: the caller's.
        let home = unsafe { Self::home(handle) };
        // SAFETY: as above; FIBER-1: it is for all.
        let woken_ns = unsafe { &(*Self::of_handle(handle).0.as_ptr()).woken_ns };
        // Relaxed, both: set before the fiber was suspended, which the caller has acquired; and
        // told with the fiber.
        if woken_ns.load(Relaxed) == WANTED {
            woken_ns.store(Linux::now(Clock::Monotonic), Relaxed);
        }
        let item = Item::new(handle).expect("an address");
        // SAFETY: the address of a link, which is in no queue: the fiber is suspended, and told so
        // once.
        unsafe { home.post(item) };
    }

    /// Switches to its stack, until that is switched away from.
    ///
    /// # Safety
    ///
    /// Called by its thread; the fiber is idle for `Run` and `End`, suspended for `GoOn`. `None`:
    /// it has come to an end.
    #[inline(always)]
    pub(super) unsafe fn switch(self, order: Order) -> Option<Said> {
        // SAFETY: FIBER-1; and FIBER-2, it does not run: no other code switches to it before this
        // is back, and this is all that uses the cell.
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
        // SAFETY: set when it began, which it has.
        let yielder = unsafe { &*self.get().yielder.get() };
        let mut order = yielder.suspend(said);
        while let Order::Tell(place) = order {
            self.tell(place);
            order = yielder.suspend(Said::Told);
        }
        // The fiber goes on, and nothing else: it is not idle.
        forget(order);
    }

    /// Tells where it is, on its stack; if there is enough of that left.
    #[cold]
    #[inline(never)]
    pub(super) fn tell(self, mut place: NonNull<Told>) {
        let here = ptr::from_ref(&place).addr();
        let has_room = here.saturating_sub(self.get().limit) > TELLS;
        // SAFETY: the place is the asker's, and the asker waits for it.
        *unsafe { place.as_mut() } = Told {
            backtrace: has_room.then(Backtrace::force_capture),
            stack: here..self.0.addr().get(),
        };
    }

    /// The highest address of its stack that it uses, if that one is of it.
    pub(super) fn top_of(self, address: usize) -> Option<usize> {
        let top = self.0.addr().get();
        (self.get().limit..top).contains(&address).then_some(top)
    }

    /// Gives its stack back, for others.
    ///
    /// # Safety
    ///
    /// Called by its thread; the fiber is idle, and no other code has it any more.
    pub(super) unsafe fn free(self) {
        // SAFETY: the caller's.
        let said = unsafe { self.switch(Order::End) };
        debug_assert!(said.is_none(), "an idle fiber ends by `Order::End`");
        let stack = self.get().stack.take();
        // SAFETY: no other code has it any more, and the stack is there still.
        unsafe { self.0.drop_in_place() };
        drop(stack);
    }
}

/// An odd number that no other task has.
pub(crate) fn next_identity() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    // Relaxed: each is handed out once.
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

/// MIGRATE-3: what catches panics has a thread-local of `std`, which the loop would keep.
#[inline(never)]
fn run_apart(task: Task<Linux>) {
    run(task);
}
