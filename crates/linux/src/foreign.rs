//! Memory that other processes may map: the shared mappings that the program was seen to make
//! ([`note_shared`]).
//!
//! A waiter in such memory can't rely on being woken: the owner may be a thread of another process,
//! which does not know the waiters of this one. So the waiter checks its word from time to time,
//! which would be wasted work elsewhere. The kernel knows the mappings (`/proc/self/maps`), but a
//! lock can't read them: a filter may kill for it, there may be no procfs, and a process of many
//! threads has many mappings.
//!
//! | `begin` | `end` | meaning of a slot of `SHARED` |
//! |---|---|---|
//! | 0 | 0 | free |
//! | set | 0 | being written: the mapping's maker has not returned, so no lock is in it |
//! | set | set | a mapping |
//!
//! Shared mappings that find no free slot widen `REST`, one range around all of these. A lookup
//! that races with a change of a slot may misjudge only the memory of that slot, which holds no
//! lock at that moment. A child of `fork` inherits the table, as it does the mappings.

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::pages;

struct Range {
    begin: AtomicUsize,
    end: AtomicUsize,
}

impl Range {
    const fn new(begin: usize) -> Self {
        Self { begin: AtomicUsize::new(begin), end: AtomicUsize::new(0) }
    }

    fn has(&self, address: usize) -> bool {
        // Acquire: pairs with the release in `note_shared`.
        let end = self.end.load(Acquire);
        address < end && address >= self.begin.load(Relaxed)
    }
}

static SHARED: [Range; 64] = [const { Range::new(0) }; _];
static REST: Range = Range::new(usize::MAX);

/// Returns whether the memory at `address` is [noted](note_shared) as shared; see
/// [`WordWaits::is_foreign`](antiphon_platform::WordWaits::is_foreign).
pub fn is_shared(address: usize) -> bool {
    SHARED.iter().chain([&REST]).any(|range| range.has(address))
}

/// Notes that other processes may map these `length` bytes of memory. Call it after the memory has
/// been mapped, before a thread uses it. May be called in signal handlers.
pub fn note_shared(begin: usize, length: usize) {
    if begin == 0 || length == 0 {
        return;
    }
    let (begin, end) = whole_pages(begin, length);
    for range in &SHARED {
        // Relaxed, here and below: the slot is ours from then on; `end` publishes it.
        if range.begin.compare_exchange(0, begin, Relaxed, Relaxed).is_ok() {
            // Release: pairs with the acquire in `has`.
            range.end.store(end, Release);
            return;
        }
    }
    REST.begin.fetch_min(begin, Relaxed);
    // Release: pairs with the acquire in `has`.
    REST.end.fetch_max(end, Release);
}

/// The whole pages of a range, as the kernel maps them.
fn whole_pages(begin: usize, length: usize) -> (usize, usize) {
    let within = pages::size() - 1;
    let end = begin.saturating_add(length);
    (begin & !within, end.checked_add(within).map_or(usize::MAX, |end| end & !within))
}

/// Notes that this memory is about to be unmapped, and forgets the mappings that lie completely in
/// it. Returns whether there were any. May be called in signal handlers.
pub fn forget_shared(begin: usize, length: usize) -> bool {
    let (begin, end) = whole_pages(begin, length);
    let mut forgotten = false;
    for range in &SHARED {
        let (its_begin, its_end) = (range.begin.load(Relaxed), range.end.load(Relaxed));
        if its_end != 0
            && begin <= its_begin
            && its_end <= end
            // Relaxed: only one caller removes the slot, and no lock is in the memory any more.
            && range.end.compare_exchange(its_end, 0, Relaxed, Relaxed).is_ok()
        {
            range.begin.store(0, Relaxed);
            forgotten = true;
        }
    }
    forgotten
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because the process has one table. The addresses are unused.
    #[test]
    fn a_mapping_is_foreign_until_it_is_gone() {
        let places: Vec<_> = (1..=70).map(|number| number << 20).collect();
        assert!(places.iter().all(|&place| !is_shared(place)));
        note_shared(0, 9);
        note_shared(9, 0);
        assert!(!is_shared(5) && !is_shared(9));

        const PAGE: usize = 1 << 16;
        note_shared(places[0], PAGE + 100);
        assert!(is_shared(places[0]) && is_shared(places[0] + PAGE + 1024), "whole pages");
        assert!(!is_shared(places[0] - 1) && !is_shared(places[0] + 2 * PAGE));
        assert!(!forget_shared(places[0], PAGE));
        assert!(is_shared(places[0] + PAGE), "a part of it stays");
        assert!(forget_shared(places[0], PAGE + 100));
        assert!(!is_shared(places[0]));

        for _ in 0..1_000 {
            note_shared(places[1], 4096);
            assert!(forget_shared(places[1] - PAGE, 3 * PAGE));
        }
        places.iter().for_each(|&place| note_shared(place, 4096));
        assert!(places.iter().all(|&place| is_shared(place)), "more than there are slots");
        assert!(!is_shared(places[3] + PAGE), "outside of all");
        assert!(is_shared(places[68] + PAGE), "between those that found no slot");
    }
}
