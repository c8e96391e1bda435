//! Tasks in a queue under a mutex, and processors asleep on a condition variable.

use alloc::vec::Vec;
use core::cell::UnsafeCell;

use antiphon_metal::Metal;
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait::Condvar;

use super::processors::{Board, Way};

/// Which processors a task wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// All, at once.
    All,
    /// All, one after the other: the condition variable moves them to the mutex.
    AllMoved,
    /// One.
    One,
}

pub struct Queue {
    wake: Wake,
    mutex: ShflMutex<Metal>,
    state: UnsafeCell<State>,
    published: Condvar<Metal>,
}

struct State {
    tasks: Vec<usize>,
    is_over: bool,
}

// SAFETY: the state is touched with the mutex held.
unsafe impl Sync for Queue {}

impl Queue {
    pub fn new(wake: Wake) -> Self {
        let state = State { tasks: Vec::with_capacity(1), is_over: false };
        let (mutex, published) = (ShflMutex::NEW, Condvar::NEW);
        Self { wake, mutex, state: UnsafeCell::new(state), published }
    }

    fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        self.mutex.lock();
        // SAFETY: the mutex is held.
        let changed = change(unsafe { &mut *self.state.get() });
        // SAFETY: locked above.
        unsafe { self.mutex.unlock() };
        changed
    }

    /// Sleeps until notified. The mutex is held, before and after.
    fn sleep(&self) {
        if self.wake == Wake::AllMoved {
            // SAFETY: the mutex is held.
            unsafe { self.published.wait_with(&self.mutex, None) };
        } else {
            // SAFETY: the mutex is held.
            let unlock = || unsafe { self.mutex.unlock() };
            self.published.wait(None, unlock, || self.mutex.lock());
        }
    }
}

impl Way for Queue {
    fn begin(&'static self, _: &'static Board) {}

    fn publish(&self, task: usize) {
        self.with(|state| state.tasks.push(task));
        if self.wake == Wake::One {
            self.published.notify_one();
        } else {
            self.published.notify_all();
        }
    }

    fn serve(&self, board: &Board) {
        self.mutex.lock();
        loop {
            // SAFETY: the mutex is held, here and after each sleep.
            let state = unsafe { &mut *self.state.get() };
            if let Some(task) = state.tasks.pop() {
                // SAFETY: held.
                unsafe { self.mutex.unlock() };
                board.run(task);
                self.mutex.lock();
            } else if state.is_over {
                // SAFETY: held.
                return unsafe { self.mutex.unlock() };
            } else {
                board.falls_asleep();
                self.sleep();
                board.wakes_up();
            }
        }
    }

    fn end(&self) {
        self.with(|state| state.is_over = true);
        self.published.notify_all();
    }
}
