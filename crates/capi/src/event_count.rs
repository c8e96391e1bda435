//! The C interface of `antiphon_event_count_t` and of a prepared wait, `antiphon_event_key_t`.

use core::ffi::c_int;
use core::mem::{self, MaybeUninit};

use antiphon_linux::Linux;
use antiphon_sync::wait;
use libc::{EBUSY, ETIMEDOUT, timespec};

use crate::code::{timed, unless};
use crate::export::exports;

/// `antiphon_event_count_t`.
#[repr(transparent)]
pub struct EventCount(wait::EventCount<Linux>);

type Key = wait::Key<'static, Linux>;

/// `antiphon_event_key_t`. All zero: nothing is prepared.
#[repr(C)]
pub struct EventKey {
    /// Whether `key` is initialised.
    prepared: u64,
    key: MaybeUninit<Key>,
}

impl EventKey {
    /// Takes the wait out, if it has not ended.
    fn take(&mut self) -> Option<Key> {
        // SAFETY: the key was written when the wait was prepared, and is read once.
        (mem::take(&mut self.prepared) != 0).then(|| unsafe { self.key.assume_init_read() })
    }
}

exports! {
    /// Makes an event count without waiters.
    fn antiphon_event_count_init(count: *mut EventCount) {
        // SAFETY: the caller passes memory for one value.
        unsafe { count.write(EventCount(wait::EventCount::NEW)) }
    }

    /// Checks whether the event count may be destroyed.
    fn antiphon_event_count_destroy(count: &EventCount) -> c_int {
        unless(!count.0.has_waiters(), EBUSY)
    }

    /// Prepares a wait.
    fn antiphon_event_count_prepare(count: &EventCount, key: *mut EventKey) {
        // SAFETY: the object does not move before the wait has ended.
        let count: &'static EventCount = unsafe { &*core::ptr::from_ref(count) };
        let prepared = EventKey { prepared: 1, key: MaybeUninit::new(count.0.prepare()) };
        // SAFETY: the caller passes memory for one value.
        unsafe { key.write(prepared) }
    }

    /// Waits until notified.
    fn antiphon_event_count_wait(key: &mut EventKey) {
        if let Some(key) = key.take() {
            key.wait(None);
        }
    }

    /// Waits until notified, or gives up at the deadline.
    fn antiphon_event_count_timedwait(key: &mut EventKey, clock: c_int, until: &timespec) -> c_int {
        let key = key.take();
        // If the closure is not called, the key is dropped with it, which cancels the wait.
        timed(clock, until, |deadline| {
            unless(key.is_none_or(|key| key.wait(Some(deadline))), ETIMEDOUT)
        })
    }

    /// Cancels a prepared wait.
    fn antiphon_event_count_cancel(key: &mut EventKey) {
        drop(key.take());
    }

    /// Notifies up to `waiters` waiters.
    fn antiphon_event_count_notify(count: &EventCount, waiters: u32) {
        count.0.notify(waiters);
    }

    /// Notifies all waiters.
    fn antiphon_event_count_notify_all(count: &EventCount) {
        count.0.notify_all();
    }
}
