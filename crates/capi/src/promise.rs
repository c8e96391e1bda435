//! The C interface of `antiphon_promise_t` and `antiphon_awaited_t`.

use core::ffi::{c_int, c_void};

use antiphon::promise;
use antiphon_platform::Deadline;
use libc::{EBUSY, EPIPE, ETIMEDOUT, timespec};

use crate::code::timed;
use crate::export::exports;

/// A value of the caller.
#[derive(Clone, Copy)]
pub(crate) struct Value(*mut c_void);

// SAFETY: the header says that the value is handed over.
unsafe impl Send for Value {}

/// `antiphon_promise_t`.
pub struct Promise(promise::Promise<Value>);

/// `antiphon_awaited_t`.
pub struct Awaited(State);

enum State {
    Waits(promise::Awaited<Value>),
    /// The value was received; `None` if the promise was broken.
    Had(Option<Value>),
}

impl Awaited {
    /// Returns the promise to wait for, if its value was not received yet.
    pub(crate) fn waits(&mut self) -> Option<&mut promise::Awaited<Value>> {
        match &mut self.0 {
            State::Waits(awaited) => Some(awaited),
            State::Had(_) => None,
        }
    }

    /// Waits, until the deadline if there is one; returns whether the wait is over.
    fn wait_until(&mut self, deadline: Option<Deadline>) -> bool {
        let Some(awaited) = self.waits() else { return true };
        awaited.handle().awaited().wait_until(deadline);
        awaited.is_ready()
    }

    /// Stores the value, which was received by a select.
    pub(crate) fn had(&mut self, value: Option<Value>) {
        self.0 = State::Had(value);
    }

    /// Waits for the value, and returns its code.
    pub(crate) fn get(&mut self, value: &mut *mut c_void) -> c_int {
        let had = match core::mem::replace(&mut self.0, State::Had(None)) {
            State::Waits(awaited) => awaited.wait().ok(),
            State::Had(had) => had,
        };
        self.had(had);
        let Some(Value(had)) = had else { return EPIPE };
        *value = had;
        0
    }
}

exports! {
    /// Makes a promise, and the object by which to wait for it.
    fn antiphon_promise_create(promise: &mut *mut Promise, awaited: &mut *mut Awaited) {
        let (made, waits) = promise::new();
        *promise = Box::into_raw(Box::new(Promise(made)));
        *awaited = Box::into_raw(Box::new(Awaited(State::Waits(waits))));
    }

    /// Delivers the value.
    fn antiphon_promise_fulfil(promise: *mut Promise, value: *mut c_void) {
        // SAFETY: created by this library, and not used after this call.
        unsafe { Box::from_raw(promise) }.0.fulfil(Value(value));
    }

    /// Breaks the promise: there will be no value.
    fn antiphon_promise_break(promise: *mut Promise) {
        // SAFETY: created by this library, and not used after this call.
        drop(unsafe { Box::from_raw(promise) });
    }

    /// Waits for the value.
    fn antiphon_awaited_wait(awaited: &mut Awaited, value: &mut *mut c_void) -> c_int {
        awaited.get(value)
    }

    /// Returns the value, if it is there.
    fn antiphon_awaited_trywait(awaited: &mut Awaited, value: &mut *mut c_void) -> c_int {
        let there = awaited.waits().is_none_or(|awaited| awaited.is_ready());
        if there { awaited.get(value) } else { EBUSY }
    }

    /// Waits for the value, or gives up at the deadline.
    fn antiphon_awaited_timedwait(
        awaited: &mut Awaited,
        value: &mut *mut c_void,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            if awaited.wait_until(Some(deadline)) { awaited.get(value) } else { ETIMEDOUT }
        })
    }

    /// Frees the awaited value without waiting.
    fn antiphon_awaited_destroy(awaited: *mut Awaited) {
        // SAFETY: created by this library, and not used after this call.
        drop(unsafe { Box::from_raw(awaited) });
    }
}
