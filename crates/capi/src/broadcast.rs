//! The C interface of `antiphon_broadcast_t`.

use core::ffi::c_int;

use antiphon_linux::Linux;
use antiphon_sync::wait::{self, Generation};
use libc::{EBUSY, ETIMEDOUT, timespec};

use crate::code::{make, timed, unless};
use crate::export::exports;

/// `antiphon_broadcast_t`.
#[repr(transparent)]
pub struct Broadcast(wait::Broadcast<Linux>);

exports! {
    /// Makes a broadcast to which nothing was sent.
    fn antiphon_broadcast_init(broadcast: *mut Broadcast) -> c_int {
        // SAFETY: the caller passes memory for one value.
        unsafe { make(broadcast, Broadcast(wait::Broadcast::NEW)) }
    }

    /// Checks whether the broadcast may be destroyed.
    fn antiphon_broadcast_destroy(broadcast: &Broadcast) -> c_int {
        unless(!broadcast.0.has_waiters(), EBUSY)
    }

    /// Returns the present generation.
    fn antiphon_broadcast_now(broadcast: &Broadcast) -> u64 {
        broadcast.0.now().to_bits()
    }

    /// Ends the waits with the present generation.
    fn antiphon_broadcast_send(broadcast: &Broadcast) {
        broadcast.0.send();
    }

    /// Waits until there was a send after `seen`.
    fn antiphon_broadcast_wait(broadcast: &Broadcast, seen: u64) {
        broadcast.0.wait(Generation::from_bits(seen));
    }

    /// Waits until there was a send after `seen`, or gives up at the deadline.
    fn antiphon_broadcast_timedwait(
        broadcast: &Broadcast,
        seen: u64,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        let seen = Generation::from_bits(seen);
        timed(clock, until, |deadline| {
            unless(broadcast.0.wait_until(seen, Some(deadline)).is_some(), ETIMEDOUT)
        })
    }
}
