//! `antiphon_event_count_t`, and a wait that was prepared there: `antiphon_event_key_t`.

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
    /// Whether the key is there.
    prepared: u64,
    key: MaybeUninit<Key>,
}

impl EventKey {
    /// The wait, if it is not over.
    fn take(&mut self) -> Option<Key> {
        // SAFETY: it was written when it was prepared, and is read once.
        (mem::take(&mut self.prepared) != 0).then(|| unsafe { self.key.assume_init_read() })
    }
}

exports! {
    /// Makes an event count without waiters.
    fn antiphon_event_count_init(count: *mut EventCount) {
        // SAFETY: the caller's memory for one.
        unsafe { count.write(EventCount(wait::EventCount::NEW)) }
    }

    /// Checks whether the event count may be destroyed.
    fn antiphon_event_count_destroy(count: &EventCount) -> c_int {
        unless(!count.0.has_waiters(), EBUSY)
    }

    /// Begins a wait.
    fn antiphon_event_count_prepare(count: &EventCount, key: *mut EventKey) {
        // SAFETY: the object stays where it is until the wait is over.
        let count: &'static EventCount = unsafe { &*core::ptr::from_ref(count) };
        let prepared = EventKey { prepared: 1, key: MaybeUninit::new(count.0.prepare()) };
        // SAFETY: the caller's memory for one.
        unsafe { key.write(prepared) }
    }

    /// Waits until notified.
    fn antiphon_event_count_wait(key: &mut EventKey) {
        if let Some(key) = key.take() {
            key.wait(None);
        }
    }

    /// Waits until notified, or gives up.
    fn antiphon_event_count_timedwait(key: &mut EventKey, clock: c_int, until: &timespec) -> c_int {
        let key = key.take();
        // If the closure is not called, the key is dropped with it, and so cancelled.
        timed(clock, until, |deadline| {
            unless(key.is_none_or(|key| key.wait(Some(deadline))), ETIMEDOUT)
        })
    }

    /// Ends a wait before it has begun.
    fn antiphon_event_count_cancel(key: &mut EventKey) {
        drop(key.take());
    }

    /// Notifies up to `waiters` waiters.
    fn antiphon_event_count_notify(count: &EventCount, waiters: u32) {
        count.0.notify(waiters);
    }

    /// Notifies all.
    fn antiphon_event_count_notify_all(count: &EventCount) {
        count.0.notify_all();
    }
}
