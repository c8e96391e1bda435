//! `antiphon_broadcast_t`.

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
    /// Makes a broadcast of which nothing was sent.
    fn antiphon_broadcast_init(broadcast: *mut Broadcast) -> c_int {
        // SAFETY: the caller's memory for one.
        unsafe { make(broadcast, Broadcast(wait::Broadcast::NEW)) }
    }

    /// Says whether the broadcast may go.
    fn antiphon_broadcast_destroy(broadcast: &Broadcast) -> c_int {
        unless(!broadcast.0.has_waiters(), EBUSY)
    }

    /// The present generation.
    fn antiphon_broadcast_now(broadcast: &Broadcast) -> u64 {
        broadcast.0.now().to_bits()
    }

    /// Ends the waits with the present generation.
    fn antiphon_broadcast_send(broadcast: &Broadcast) {
        broadcast.0.send();
    }

    /// Waits until something was sent after `seen`.
    fn antiphon_broadcast_wait(broadcast: &Broadcast, seen: u64) {
        broadcast.0.wait(Generation::from_bits(seen));
    }

    /// Waits until something was sent after `seen`, or gives up.
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
