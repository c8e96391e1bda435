//! The slots of all levels, and the sets of those that have timers.
//!
//! - LEVELS-1: a slot's bit is set if and only if it has timers; a level's bit is set if and only
//!   if one of its slots has.

use core::ptr::NonNull;

use super::list::{List, Timer};

/// The number of bits of a digit.
const BITS: u32 = 6;
/// The number of slots of a level: one for each value of a digit.
const SLOTS: usize = 1 << BITS;
/// The number of digits of a time.
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;

/// A slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    level: u32,
    slot: usize,
}

pub(super) struct Levels {
    occupied: Bits,
    levels: [Level; LEVELS],
}

struct Level {
    occupied: Bits,
    slots: [List; SLOTS],
}

/// A small set of small numbers.
struct Bits(u64);

const _: () = assert!(SLOTS as u32 <= u64::BITS && LEVELS as u32 <= u64::BITS);

impl Place {
    /// Returns the slot of a deadline when the wheel is at `position_ns`, which is not after it.
    #[inline]
    pub(super) const fn of(at_ns: u64, position_ns: u64) -> Self {
        // The lowest digit if they do not differ.
        let differ = (at_ns ^ position_ns) | (SLOTS as u64 - 1);
        let level = differ.ilog2() / BITS;
        Self { level, slot: (at_ns >> (BITS * level)) as usize % SLOTS }
    }

    /// Returns whether all deadlines in the slot are the same.
    #[inline]
    pub(super) const fn is_one_ns(self) -> bool {
        self.level == 0
    }

    /// Returns the first nanosecond of the slot: no deadline in it is before.
    #[inline]
    pub(super) const fn begin_ns(self, position_ns: u64) -> u64 {
        let shift = BITS * self.level;
        ((position_ns >> shift) / SLOTS as u64 * SLOTS as u64 + self.slot as u64) << shift
    }
}

impl Levels {
    pub(super) const fn new() -> Self {
        Self { occupied: Bits(0), levels: [const { Level::new() }; LEVELS] }
    }

    /// Returns the slot whose timers are before all others.
    #[inline]
    pub(super) fn earliest(&self) -> Option<Place> {
        let level = self.occupied.lowest()?;
        let slot = self.levels[level as usize].occupied.lowest()? as usize;
        Some(Place { level, slot })
    }

    /// Returns the timers of a slot.
    #[inline]
    pub(super) fn list(&self, place: Place) -> &List {
        &self.levels[place.level as usize].slots[place.slot]
    }

    /// Appends a timer to a slot.
    ///
    /// # Safety
    ///
    /// See [`List::push`].
    #[inline]
    pub(super) unsafe fn push(&mut self, place: Place, timer: NonNull<Timer>) {
        let level = &mut self.levels[place.level as usize];
        // SAFETY: the caller's contract.
        unsafe { level.slots[place.slot].push(timer) };
        // LEVELS-1.
        level.occupied.insert(place.slot as u32);
        self.occupied.insert(place.level);
    }

    /// Removes a timer from its slot.
    ///
    /// # Safety
    ///
    /// See [`List::unlink`].
    #[inline]
    pub(super) unsafe fn unlink(&mut self, place: Place, timer: NonNull<Timer>) {
        let list = &mut self.levels[place.level as usize].slots[place.slot];
        // SAFETY: the caller's contract.
        unsafe { list.unlink(timer) };
        if list.first().is_none() {
            self.vacate(place);
        }
    }

    /// Removes all timers from a slot.
    #[inline]
    pub(super) fn take(&mut self, place: Place) -> List {
        self.vacate(place);
        core::mem::replace(&mut self.levels[place.level as usize].slots[place.slot], List::new())
    }

    /// LEVELS-1: marks a slot as empty.
    #[inline]
    fn vacate(&mut self, place: Place) {
        let occupied = &mut self.levels[place.level as usize].occupied;
        occupied.remove(place.slot as u32);
        if occupied.lowest().is_none() {
            self.occupied.remove(place.level);
        }
    }
}

impl Level {
    const fn new() -> Self {
        Self { occupied: Bits(0), slots: [const { List::new() }; SLOTS] }
    }
}

impl Bits {
    #[inline]
    const fn insert(&mut self, number: u32) {
        self.0 |= 1 << number;
    }

    #[inline]
    const fn remove(&mut self, number: u32) {
        self.0 &= !(1 << number);
    }

    #[inline]
    const fn lowest(&self) -> Option<u32> {
        if self.0 == 0 { None } else { Some(self.0.trailing_zeros()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times about each digit's first and last values.
    fn edges() -> impl Iterator<Item = u64> + Clone {
        let units = (0..LEVELS as u32).map(|level| 1_u64 << (BITS * level));
        let edges = units.flat_map(|unit| [1, 2, 62, 63].map(|digit| unit.wrapping_mul(digit)));
        edges.chain([0, u64::MAX]).flat_map(|edge| {
            [edge.wrapping_sub(1), edge, edge.wrapping_add(1), edge.wrapping_neg()]
        })
    }

    #[test]
    fn a_slot_is_of_deadlines_that_share_the_digits_above() {
        for position in edges() {
            for at in edges().filter(|&at| at >= position) {
                let place = Place::of(at, position);
                let (width, case) = (1_u64 << (BITS * place.level), (position, at, place));
                let begin = place.begin_ns(position);
                assert_eq!(begin, at / width * width, "{case:?}");
                assert!(place.is_one_ns() || begin > position, "it is ahead: {case:?}");
                let digits = [at, position].map(|time| time / width);
                assert_eq!(digits[0] / 64, digits[1] / 64, "the digits above: {case:?}");
                assert!(place.is_one_ns() || digits[0] != digits[1], "this one: {case:?}");
                assert_eq!(place.is_one_ns(), width == 1 && at | 63 == position | 63);
            }
        }
    }

    #[test]
    fn where_the_position_moves_before_a_slot_is_where_its_timers_stay() {
        for position in edges() {
            for at in edges().filter(|&at| at >= position) {
                let place = Place::of(at, position);
                let begin = place.begin_ns(position);
                for moved in edges().filter(|&moved| moved >= position && moved < begin) {
                    assert_eq!(Place::of(at, moved), place, "{position} → {moved}: {at}");
                }
                let entered = Place::of(at, begin.max(position));
                assert!(place.is_one_ns() || entered.level < place.level, "{position}: {at}");
            }
        }
    }
}
