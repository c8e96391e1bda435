//! Model threads: coroutines that run one at a time, on pooled stacks.

use std::cell::{Cell, RefCell};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};

const STACK_BYTES: usize = 256 << 10;

thread_local! {
    static POOL: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
    static YIELDER: Cell<*const Yielder<(), ()>> = const { Cell::new(std::ptr::null()) };
}

pub(crate) struct Fiber {
    coroutine: Option<Coroutine<(), (), ()>>,
    yielder: Cell<*const Yielder<(), ()>>,
}

impl Fiber {
    /// Creates a thread that will run `body`, which must not unwind.
    pub(crate) fn new(body: impl FnOnce() + 'static) -> Self {
        let stack = POOL.with_borrow_mut(Vec::pop).unwrap_or_else(|| {
            DefaultStack::new(STACK_BYTES).expect("there is memory for one more stack")
        });
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            YIELDER.set(yielder);
            body();
        });
        Self { coroutine: Some(coroutine), yielder: Cell::new(std::ptr::null()) }
    }

    /// Runs the thread until it waits or ends; returns whether it has ended.
    pub(crate) fn resume(&mut self) -> bool {
        let coroutine = self.coroutine.as_mut().expect("a fiber has its coroutine until dropped");
        YIELDER.set(self.yielder.get());
        let ended = coroutine.resume(()).as_return().is_some();
        self.yielder.set(YIELDER.replace(std::ptr::null()));
        ended
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        let Some(mut coroutine) = self.coroutine.take() else { return };
        if coroutine.started() && !coroutine.done() {
            // SAFETY: the frames of this thread are never run or unwound again. Their borrows
            // outlive them, and only modelled words are pinned in them by address, whose state ends
            // with this execution; values that they own are leaked.
            unsafe { coroutine.force_reset() };
        }
        if coroutine.done() {
            POOL.with_borrow_mut(|pool| pool.push(coroutine.into_stack()));
        }
    }
}

/// Returns control to the scheduler. Returns `false` if the caller is not on a fiber.
pub(crate) fn suspend() -> bool {
    let yielder = YIELDER.get();
    if yielder.is_null() {
        return false;
    }
    // SAFETY: set by the running fiber, whose yielder lives at the root of its stack.
    unsafe { (*yielder).suspend(()) };
    true
}
