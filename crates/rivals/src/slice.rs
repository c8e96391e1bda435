//! Spinning in pieces, for as long as the waiter may keep its CPU.

use core::sync::atomic::Ordering::Acquire;

use antiphon_platform::{Atomic, Budget, Hint, Platform, Word};

/// Margin for waiters that go to sleep as soon as another thread wants their CPU.
pub(super) const ALONE: u32 = u32::MAX - 1;

/// Limits of a waiter's spin.
#[derive(Clone, Copy)]
pub(super) struct Spin {
    /// Length of one spin, in nanoseconds, after which the waiter asks again how long it may spin.
    /// 0: the waiter does not spin.
    pub(super) piece_ns: u32,
    /// The waiter stops when at most this much of its time slice is left, in nanoseconds.
    pub(super) margin_ns: u32,
    /// Length of all spins together, in nanoseconds.
    pub(super) most_ns: u32,
}

/// Spins while `keep` holds and `spin` allows it. Loads with acquire.
///
/// # Errors
///
/// Returns the last value seen, if the waiter may spin no longer.
pub(super) fn spin<P: Platform, W: Word>(
    word: &impl Atomic<W>,
    spin: Spin,
    keep: impl Fn(W) -> bool,
) -> Result<W, W> {
    let first = word.load(Acquire);
    if !keep(first) {
        return Ok(first);
    }
    if spin.piece_ns == 0 {
        return Err(first);
    }
    let mut seen = Err(first);
    let mut left_ns = spin.most_ns;
    P::hint(Hint::SpinBegin);
    while seen.is_err() && left_ns > 0 {
        let slice_ns = P::slice_left_ns();
        if slice_ns <= spin.margin_ns {
            break;
        }
        let piece_ns = slice_ns.min(spin.piece_ns).min(left_ns);
        seen = word.spin_while(Acquire, Budget::ns(piece_ns), &keep);
        if spin.most_ns != u32::MAX {
            left_ns -= piece_ns;
        }
    }
    P::hint(Hint::SpinEnd);
    seen
}
