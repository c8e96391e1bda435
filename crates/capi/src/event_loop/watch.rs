//! `antiphon_loop_lookout_t`, and the counts of a loop.

use core::ffi::{CStr, c_char, c_int};

use antiphon_coop::event_loop::{Files, Lookout, Name, Sighting, Stats};
use libc::{EINVAL, ENOENT};

use super::{Loop, string, with};
use crate::cancel::uncancelled;
use crate::export::exports;

/// `antiphon_loop_lookout_t`.
pub struct Looks(Lookout<Files>);

/// `antiphon_loop_stats_t`.
#[repr(C)]
pub struct LoopStats {
    called: u64,
    long_calls: u64,
    timers: u64,
    late_p50_ns: u64,
    late_p99_ns: u64,
    late_max_ns: u64,
    ran_p99_ns: u64,
    ran_max_ns: u64,
}

/// `antiphon_loop_bucket_t`.
#[repr(C)]
pub struct LoopBucket {
    upto_ns: u64,
    count: u64,
}

/// `antiphon_loop_sighting_t`.
#[repr(C)]
pub struct LoopSighting {
    name: *const c_char,
    for_ns: u64,
}

/// Returns the counts of the events of that name.
///
/// # Safety
///
/// `name` is a string.
unsafe fn find(all: &[Stats], name: *const c_char) -> Option<&Stats> {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    all.iter().find(|stats| match stats.name {
        Name::Given(given) => given.as_bytes() == name.to_bytes(),
        Name::Place(_) => false,
    })
}

exports! {
    /// Writes the counts of the events of a name.
    fn antiphon_loop_stats(events: &Loop, name: *const c_char, stats: *mut LoopStats) -> c_int {
        let all = with!(events, events => events.stats());
        // SAFETY: the caller passes a string.
        let Some(found) = (unsafe { find(all, name) }) else { return ENOENT };
        let late = |share| found.tardiness.percentile_ns(share);
        let found = LoopStats {
            called: found.run.count(),
            long_calls: found.long,
            timers: found.tardiness.count(),
            late_p50_ns: late(50_000),
            late_p99_ns: late(99_000),
            late_max_ns: found.tardiness.max_ns(),
            ran_p99_ns: found.run.percentile_ns(99_000),
            ran_max_ns: found.run.max_ns(),
        };
        // SAFETY: the caller passes memory for one value.
        unsafe { stats.write(found) }
        0
    }

    /// Writes a histogram of the events of a name: how late they were, or how long.
    fn antiphon_loop_buckets(
        events: &Loop,
        name: *const c_char,
        of: c_int,
        buckets: *mut LoopBucket,
        room: usize,
        count: &mut usize,
    ) -> c_int {
        let all = with!(events, events => events.stats());
        // SAFETY: the caller passes a string.
        let Some(found) = (unsafe { find(all, name) }) else { return ENOENT };
        let counted = match of {
            0 => &found.tardiness,
            1 => &found.run,
            _ => return EINVAL,
        };
        *count = 0;
        for (upto_ns, times) in counted.buckets() {
            if *count < room {
                // SAFETY: the caller's memory for `room` buckets.
                unsafe { buckets.add(*count).write(LoopBucket { upto_ns, count: times }) }
            }
            *count += 1;
        }
        0
    }

    /// Resets all counts.
    fn antiphon_loop_reset_stats(events: &Loop) {
        with!(events, events => events.reset_stats());
    }

    /// Makes a lookout, for watchdogs.
    fn antiphon_loop_lookout_create(events: &Loop) -> *mut Looks {
        Box::into_raw(Box::new(Looks(with!(events, events => events.lookout()))))
    }

    /// Frees a lookout.
    fn antiphon_loop_lookout_destroy(lookout: *mut Looks) {
        // SAFETY: created by this library, and not used after this call.
        let lookout = unsafe { Box::from_raw(lookout) };
        uncancelled(|| drop(lookout));
    }

    /// Writes the event that the loop is calling, and for how long it has run.
    fn antiphon_loop_lookout_look(lookout: &Looks, sighting: &mut LoopSighting) -> c_int {
        let Some(Sighting { name, for_ns, .. }) = lookout.0.sight() else { return ENOENT };
        *sighting = LoopSighting { name: string(name), for_ns };
        0
    }
}
