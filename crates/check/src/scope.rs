//! The interface for a model's program: shared state, threads, a final check.

use std::cell::RefCell;
use std::marker::PhantomData;

type Body = Box<dyn FnOnce()>;

/// A thread that has not started yet.
pub(crate) struct Spawned {
    pub(crate) socket: Option<u32>,
    pub(crate) body: Body,
}

/// One execution of a model, as its program sees it.
pub struct Scope<'scope, 'env: 'scope> {
    pub(crate) threads: RefCell<Vec<Spawned>>,
    pub(crate) finally: RefCell<Vec<Body>>,
    shared: RefCell<Vec<Shared>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A type-erased value, with the function that drops it.
struct Shared {
    value: *mut (),
    drop: unsafe fn(*mut ()),
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `drop` belongs to the type of `value`, which is dropped nowhere else.
        unsafe { (self.drop)(self.value) };
    }
}

/// # Safety
///
/// `value` must come from `Box::<T>::into_raw`, and not be used any more.
unsafe fn drop_box<T>(value: *mut ()) {
    // SAFETY: the caller's contract: `value` comes from `Box::<T>::into_raw`.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn new() -> Self {
        Self {
            threads: RefCell::default(),
            finally: RefCell::default(),
            shared: RefCell::default(),
            scope: PhantomData,
            env: PhantomData,
        }
    }

    /// Keeps `value` until the execution has ended, so that all threads can use it.
    pub fn share<T: 'scope>(&'scope self, value: T) -> &'scope T {
        let value = Box::into_raw(Box::new(value));
        let shared = Shared { value: value.cast(), drop: drop_box::<T> };
        self.shared.borrow_mut().push(shared);
        // SAFETY: freed only with the scope, when no thread runs any more; never moved.
        unsafe { &*value }
    }

    /// Drops the shared values, the last one first.
    pub(crate) fn drop_shared(&self) {
        while let Some(shared) = self.shared.borrow_mut().pop() {
            drop(shared);
        }
    }

    /// Adds a thread, on the next socket in turn. It starts after the program has returned.
    pub fn spawn<F: FnOnce() + 'scope>(&'scope self, body: F) {
        self.add(None, Box::new(body));
    }

    /// Adds a thread for each of `items`, on the next socket in turn.
    pub fn spawn_each<T, F>(&'scope self, items: impl IntoIterator<Item = T>, body: F)
    where
        T: 'scope,
        F: FnOnce(T) + Clone + 'scope,
    {
        for item in items {
            let body = body.clone();
            self.spawn(move || body(item));
        }
    }

    /// Adds a thread on `socket`.
    pub fn spawn_on<F: FnOnce() + 'scope>(&'scope self, socket: u32, body: F) {
        self.add(Some(socket), Box::new(body));
    }

    fn add(&self, socket: Option<u32>, body: Box<dyn FnOnce() + 'scope>) {
        self.threads.borrow_mut().push(Spawned { socket, body: erase(body) });
    }

    /// Adds a check that runs when all threads have ended; it sees all their writes.
    pub fn finally<F: FnOnce() + 'scope>(&'scope self, check: F) {
        self.finally.borrow_mut().push(erase(Box::new(check)));
    }
}

fn erase<'scope>(body: Box<dyn FnOnce() + 'scope>) -> Body {
    // SAFETY: only the lifetime changes. The runner calls or drops the body before the scope and
    // its shared values are gone, and nothing shorter-lived can be borrowed for 'scope.
    unsafe { std::mem::transmute::<Box<dyn FnOnce() + 'scope>, Body>(body) }
}

impl std::fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}
