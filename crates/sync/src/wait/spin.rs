//! Spinning before a waiter sleeps, for as long as a sleep costs: so no wait costs much more than
//! twice the minimum, whenever it ends. Longer spins end a wait sooner if the event comes a little
//! later, but every wait pays for them. The table is for an event that comes some time after its
//! waiter (median latency, and CPU time of receiver and sender for each event, in µs; "learned" was
//! 5 to 7 µs, and 17 in the last row):
//!
//! | after | learned | always 20 µs | no spin |
//! |---|---|---|---|
//! | 3 µs | 0.2, 3.7 | 0.2, 3.6 | 6.9, 7.2 |
//! | 10 µs | 1.4, 11.3 | 0.2, 10.2 | 7.1, 7.3 |
//! | 15 µs | 6.8, 15.1 | 0.2, 13.2 | 6.9, 7.0 |
//! | 20 µs | 7.2, 15.9 | 0.2, 17.4 | 7.2, 7.9 |
//! | 30 µs | 6.1, 15.0 | 6.1, 24.8 | 6.1, 6.9 |
//! | 50 µs | 7.2, 16.0 | 7.2, 29.8 | 7.2, 7.6 |
//! | 150 µs | 8.0, 19.4 | 8.0, 32.2 | 7.9, 8.8 |
//! | 1 ms | 31.2, 41.2 | 30.0, 41.4 | 31.1, 18.0 |
//!
//! 2026-11-22, 2 virtual Intel Xeon CPUs of 2.5 GHz, Linux 6.18.44: `cargo run --release -p
//! antiphon-sync --example event_spin`, the forms in turn. In a second run, on a busier host, all
//! rows from 30 to 150 µs took 18 to 26 % less than with 20 µs, where these take 40 to 46 %.

use core::sync::atomic::Ordering::Acquire;

use antiphon_platform::{Atomic, Budget, Deadline, Hint, Platform, Word};

use super::CrowdForm;

/// Spins while `keep` is true of `word`: for a moment, and then for as long as the form says, or
/// until `deadline`, if the machine is not crowded. Acquires what it sees.
///
/// The first moment is too short to check how crowded the machine is or to be counted; a thread
/// that waits for a running thread is let go within it.
///
/// # Errors
///
/// The last value seen, if the time is over.
pub(super) fn spin<P: Platform, F: CrowdForm, W: Word>(
    word: &impl Atomic<W>,
    deadline: Option<Deadline>,
    keep: impl Fn(W) -> bool + Copy,
) -> Result<W, W> {
    let seen = word.spin_while(Acquire, F::SPIN, keep);
    let worth_ns = F::event_spin_ns::<P>();
    if seen.is_ok() || worth_ns == 0 || P::crowded() {
        return seen;
    }
    let budget = Budget::ns(before::<P>(deadline, worth_ns));
    P::hint(Hint::SpinBegin);
    let seen = word.spin_while(Acquire, budget, keep);
    P::hint(Hint::SpinEnd);
    seen
}

/// Returns the part of `ns` that is left before the deadline.
fn before<P: Platform>(deadline: Option<Deadline>, ns: u32) -> u32 {
    let Some(deadline) = deadline else { return ns };
    let left_ns = deadline.ns.saturating_sub(P::now(deadline.clock));
    u32::try_from(left_ns).unwrap_or(u32::MAX).min(ns)
}
