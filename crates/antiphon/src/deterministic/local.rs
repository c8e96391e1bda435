//! Values that belong to a run. They contain or point to simulated words, which only the host
//! thread of their run may access, and only while the run lasts.

use std::sync::Arc;
use std::task::{Wake, Waker};

use super::run;

/// A value of a run. Using it outside of its run panics; dropping it there leaks the value.
pub(super) struct Local<T> {
    run: u64,
    value: Option<T>,
}

impl<T> Local<T> {
    pub(super) fn new(value: T) -> Self {
        Self { run: run::current().id, value: Some(value) }
    }

    pub(super) fn get(&self) -> &T {
        run::of(self.run);
        self.value.as_ref().expect(THERE)
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        run::of(self.run);
        self.value.as_mut().expect(THERE)
    }

    pub(super) fn take(mut self) -> T {
        run::of(self.run);
        self.value.take().expect(THERE)
    }
}

const THERE: &str = "there until it is taken or dropped";

impl<T> Drop for Local<T> {
    fn drop(&mut self) {
        if !run::is_current(self.run) {
            std::mem::forget(self.value.take());
        }
    }
}

/// A waker that wakes in its run only.
pub(super) fn guarded(waker: &Waker) -> Waker {
    Waker::from(Arc::new(Guarded(Local::new(waker.clone()))))
}

struct Guarded(Local<Waker>);

impl Wake for Guarded {
    fn wake(self: Arc<Self>) {
        self.0.get().wake_by_ref();
    }
}
