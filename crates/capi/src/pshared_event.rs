//! `antiphon_pshared_event_t`, `_latch_t`, `_broadcast_t`: for memory that processes share.

use core::ffi::c_int;

use antiphon_linux::Linux;
use antiphon_sync::shared::{SharedBroadcast, SharedEvent, SharedGeneration, SharedLatch};
use antiphon_sync::wait::MAX_COUNT;
use libc::{EBUSY, EINVAL, ETIMEDOUT, timespec};

use crate::code::{timed, unless};
use crate::export::exports;

/// `antiphon_pshared_event_t`.
#[repr(transparent)]
pub struct Event(SharedEvent<Linux>);

/// `antiphon_pshared_latch_t`.
#[repr(transparent)]
pub struct Latch(SharedLatch<Linux>);

/// `antiphon_pshared_broadcast_t`.
#[repr(transparent)]
pub struct Broadcast(SharedBroadcast<Linux>);

exports! {
    /// Makes an event that is not set.
    fn antiphon_pshared_event_init(event: *mut Event) {
        // SAFETY: the caller passes memory for one value.
        unsafe { event.write(Event(SharedEvent::NEW)) }
    }

    /// Releases one waiter, or the next that comes.
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

    /// Waits until the event is set, or gives up at the deadline.
    fn antiphon_pshared_event_timedwait(event: &Event, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| unless(event.0.wait_until(Some(deadline)), ETIMEDOUT))
    }

    /// Makes a latch that counts down from `count`.
    fn antiphon_pshared_latch_init(latch: *mut Latch, count: u32) -> c_int {
        if count > MAX_COUNT {
            return EINVAL;
        }
        // SAFETY: the caller passes memory for one value.
        unsafe { latch.write(Latch(SharedLatch::new(count))) }
        0
    }

    /// Counts down.
    fn antiphon_pshared_latch_count_down(latch: &Latch, step: u32) {
        latch.0.count_down(step);
    }

    /// Waits until the latch is open.
    fn antiphon_pshared_latch_wait(latch: &Latch) {
        latch.0.wait();
    }

    /// Returns whether the latch is open.
    fn antiphon_pshared_latch_trywait(latch: &Latch) -> c_int {
        unless(latch.0.is_open(), EBUSY)
    }

    /// Waits until the latch is open, or gives up at the deadline.
    fn antiphon_pshared_latch_timedwait(latch: &Latch, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| unless(latch.0.wait_until(Some(deadline)), ETIMEDOUT))
    }

    /// Makes a broadcast to which nothing was sent.
    fn antiphon_pshared_broadcast_init(broadcast: *mut Broadcast) {
        // SAFETY: the caller passes memory for one value.
        unsafe { broadcast.write(Broadcast(SharedBroadcast::NEW)) }
    }

    /// Returns the present generation.
    fn antiphon_pshared_broadcast_now(broadcast: &Broadcast) -> u32 {
        broadcast.0.now().to_bits()
    }

    /// Ends the waits with the present generation.
    fn antiphon_pshared_broadcast_send(broadcast: &Broadcast) {
        broadcast.0.send();
    }

    /// Waits until there was a send after `seen`.
    fn antiphon_pshared_broadcast_wait(broadcast: &Broadcast, seen: u32) {
        broadcast.0.wait(SharedGeneration::from_bits(seen));
    }

    /// Waits until there was a send after `seen`, or gives up at the deadline.
    fn antiphon_pshared_broadcast_timedwait(
        broadcast: &Broadcast,
        seen: u32,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        let seen = SharedGeneration::from_bits(seen);
        timed(clock, until, |deadline| {
            unless(broadcast.0.wait_until(seen, Some(deadline)).is_some(), ETIMEDOUT)
        })
    }
}
