//! The C interface of `antiphon_event_t` and `antiphon_latch_t`.

use core::ffi::c_int;

use antiphon::fiber::may_be_ready;
use antiphon_linux::Linux;
use antiphon_sync::wait::{self, MAX_COUNT};
use libc::{EBUSY, EINVAL, ETIMEDOUT, timespec};

use crate::code::{make, timed, unless};
use crate::export::exports;

/// `antiphon_event_t`.
#[repr(transparent)]
pub struct Event(pub(crate) wait::Event<Linux>);

/// `antiphon_latch_t`.
#[repr(transparent)]
pub struct Latch(pub(crate) wait::Latch<Linux>);

exports! {
    /// Makes an event that is not set.
    fn antiphon_event_init(event: *mut Event) -> c_int {
        // SAFETY: the caller passes memory for one value.
        unsafe { make(event, Event(wait::Event::NEW)) }
    }

    /// Checks whether the event may be destroyed.
    fn antiphon_event_destroy(event: &Event) -> c_int {
        unless(!event.0.has_waiters(), EBUSY)
    }

    /// Releases one waiter, or the next that comes.
    fn antiphon_event_set(event: &Event) {
        event.0.set();
    }

    /// Resets the event.
    fn antiphon_event_reset(event: &Event) {
        event.0.reset();
    }

    /// Waits until the event is set, and resets it.
    fn antiphon_event_wait(event: &Event) {
        may_be_ready();
        event.0.wait();
    }

    /// Resets the event if it is set.
    fn antiphon_event_trywait(event: &Event) -> c_int {
        unless(event.0.try_wait(), EBUSY)
    }

    /// Waits until the event is set, or gives up at the deadline.
    fn antiphon_event_timedwait(event: &Event, clock: c_int, until: &timespec) -> c_int {
        may_be_ready();
        timed(clock, until, |deadline| unless(event.0.wait_until(Some(deadline)), ETIMEDOUT))
    }

    /// Returns whether the event is set.
    fn antiphon_event_is_set(event: &Event) -> c_int {
        c_int::from(event.0.is_set())
    }

    /// Makes a latch that counts down from `count`.
    fn antiphon_latch_init(latch: *mut Latch, count: u32) -> c_int {
        if count > MAX_COUNT {
            return EINVAL;
        }
        // SAFETY: the caller passes memory for one value.
        unsafe { make(latch, Latch(wait::Latch::new(count))) }
    }

    /// Checks whether the latch may be destroyed.
    fn antiphon_latch_destroy(latch: &Latch) -> c_int {
        unless(!latch.0.has_waiters(), EBUSY)
    }

    /// Counts down.
    fn antiphon_latch_count_down(latch: &Latch, step: u32) {
        latch.0.count_down(step);
    }

    /// Waits until the latch is open.
    fn antiphon_latch_wait(latch: &Latch) {
        may_be_ready();
        latch.0.wait();
    }

    /// Returns whether the latch is open.
    fn antiphon_latch_trywait(latch: &Latch) -> c_int {
        unless(latch.0.is_open(), EBUSY)
    }

    /// Waits until the latch is open, or gives up at the deadline.
    fn antiphon_latch_timedwait(latch: &Latch, clock: c_int, until: &timespec) -> c_int {
        may_be_ready();
        timed(clock, until, |deadline| unless(latch.0.wait_until(Some(deadline)), ETIMEDOUT))
    }

    /// Returns the remaining count.
    fn antiphon_latch_left(latch: &Latch) -> u32 {
        latch.0.left()
    }
}
