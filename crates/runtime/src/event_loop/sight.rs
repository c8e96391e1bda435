//! The callback that a loop is running, visible to other threads.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

/// Low bits of the word: when the callback was called, in nanoseconds.
const TIME_BITS: u32 = 48;
const TIME: u64 = (1 << TIME_BITS) - 1;
/// The number of names that can be told apart; the last value is shared by all further names.
const KINDS: u64 = (1 << (64 - TIME_BITS)) - 1;

/// The callback that a loop is running: 0 if there is none; otherwise the low 48 bits of its start
/// time, and above these the place of its name, plus one. So times must be less than three days
/// apart.
pub(super) struct Sight<P: Platform>(P::U64);

/// A callback that was seen running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen(u64);

impl<P: Platform> Sight<P> {
    pub(super) const NEW: Self = Self(P::U64::ZERO);

    /// Records that a callback is called.
    #[inline]
    pub(super) fn begin(&self, kind: usize, now_ns: u64) {
        let kind = (kind as u64 + 1).min(KINDS);
        // Relaxed: the word is all that is published.
        self.0.store(kind << TIME_BITS | now_ns & TIME, Relaxed);
    }

    /// Records that the callback has returned.
    #[inline]
    pub(super) fn end(&self) {
        // Relaxed: the word is all that is published.
        self.0.store(0, Relaxed);
    }

    /// The callback that the loop is running.
    pub(super) fn look(&self) -> Option<Seen> {
        // Relaxed: the word is all that is published.
        let word = self.0.load(Relaxed);
        (word != 0).then_some(Seen(word))
    }
}

impl Seen {
    /// The place of the callback's name; `None` if there are too many names.
    pub(super) const fn kind(self) -> Option<usize> {
        let kind = self.0 >> TIME_BITS;
        if kind == KINDS { None } else { Some(kind as usize - 1) }
    }

    /// How long the callback has been running, in nanoseconds.
    pub(super) const fn for_ns(self, now_ns: u64) -> u64 {
        now_ns.wrapping_sub(self.0) & TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Sight = super::Sight<antiphon_linux::Linux>;

    #[test]
    fn what_is_seen_is_what_is_done() {
        let sight = Sight::NEW;
        assert_eq!(sight.look(), None);
        let begun_ns = (1 << 50) - 5;
        sight.begin(7, begun_ns);
        let seen = sight.look().expect("a callback");
        // The low bits wrap around meanwhile.
        assert_eq!((seen.kind(), seen.for_ns(begun_ns + 10)), (Some(7), 10));
        sight.begin(1 << 20, 0);
        assert_eq!(sight.look().and_then(Seen::kind), None);
        sight.end();
        assert_eq!(sight.look(), None);
    }
}
