//! `antiphon_pshared_event_t`: for memory that processes share.

use core::ffi::c_int;

use antiphon_linux::Linux;
use antiphon_sync::shared::SharedEvent;
use libc::{EBUSY, ETIMEDOUT, timespec};

use crate::code::{timed, unless};
use crate::export::exports;

/// `antiphon_pshared_event_t`.
#[repr(transparent)]
pub struct Event(SharedEvent<Linux>);

exports! {
    /// Makes an event that is not set.
    fn antiphon_pshared_event_init(event: *mut Event) {
        // SAFETY: the caller's memory for one.
        unsafe { event.write(Event(SharedEvent::NEW)) }
    }

    /// Lets one waiter go, or the next that comes.
    fn antiphon_pshared_event_set(event: &Event) {
        event.0.set();
    }

    /// Waits until the event is set, and resets it.
    fn antiphon_pshared_event_wait(event: &Event) {
        event.0.wait();
    }

    /// Resets the event if it is set.
    fn antiphon_pshared_event_trywait(event: &Event) -> c_int {
        unless(event.0.try_wait(), EBUSY)
    }

    /// Waits until the event is set, or gives up.
    fn antiphon_pshared_event_timedwait(event: &Event, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| unless(event.0.wait_until(Some(deadline)), ETIMEDOUT))
    }
}
