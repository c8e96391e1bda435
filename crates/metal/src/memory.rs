//! The map of usable memory with its nodes, and the frames of a node.
//!
//! The map consists of the firmware's usable ranges, without the memory of the image and the
//! tables, split at the borders of nodes. It has a fixed size, because it exists before the heap.

use crate::pvh::Range;

/// Size of a frame, and of a page, in bytes.
pub const FRAME: u64 = 4096;

/// Largest number of ranges in a map; further ones are left out, and counted.
pub const RANGES: usize = 128;

/// A range of memory of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// The range.
    pub range: Range,
    /// The node, counted from 0.
    pub node: u16,
}

/// The map of usable memory.
#[derive(Clone, Debug)]
pub struct Map {
    regions: [Region; RANGES],
    count: usize,
    dropped: usize,
}

impl Range {
    /// Returns the length in bytes.
    #[must_use]
    pub fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns the intersection.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self { start, end: self.end.min(other.end).max(start) }
    }

    /// Returns the part below `at`, and the part from `at` on.
    #[must_use]
    pub fn split(self, at: u64) -> (Self, Self) {
        let at = at.clamp(self.start, self.end.max(self.start));
        (Self { end: at, ..self }, Self { start: at, end: self.end.max(at) })
    }

    /// Returns the whole frames in the range.
    #[must_use]
    pub fn frames(self) -> Self {
        let start = self.start.checked_next_multiple_of(FRAME).unwrap_or(self.end);
        Self { start, end: (self.end / FRAME * FRAME).max(start) }
    }
}

impl Map {
    /// A map without memory.
    pub const NEW: Self = Self {
        regions: [Region { range: Range { start: 0, end: 0 }, node: 0 }; RANGES],
        count: 0,
        dropped: 0,
    };

    /// Adds the whole frames of `usable`, without the ranges `taken` and without those that the map
    /// has already. They belong to node 0 until [`assign`](Self::assign).
    pub fn add(&mut self, usable: Range, taken: &[Range]) {
        match taken {
            [] => self.add_new(usable.frames(), 0),
            [first, others @ ..] => {
                let (below, rest) = usable.split(first.start);
                let (_, above) = rest.split(first.end);
                self.add(below, others);
                self.add(above, others);
            }
        }
    }

    /// Adds the part of `range` that is in no region from the one at `index` on.
    fn add_new(&mut self, range: Range, index: usize) {
        let overlap = |region: &Region| region.range.common(range).length() > 0;
        match self.regions().iter().skip(index).position(overlap) {
            None => self.push(Region { range, node: 0 }),
            Some(behind) => {
                let at = index + behind;
                let known = self.regions[at].range;
                let (below, rest) = range.split(known.start);
                let (_, above) = rest.split(known.end);
                self.add_new(below, at + 1);
                self.add_new(above, at + 1);
            }
        }
    }

    /// Assigns the memory in `range` to `node`.
    pub fn assign(&mut self, range: Range, node: u16) {
        let range = range.frames();
        for index in 0..self.count {
            let Region { range: whole, node: before } = self.regions[index];
            let (below, rest) = whole.split(range.start);
            let (inside, above) = rest.split(range.end);
            if inside.length() == 0 {
                continue;
            }
            self.regions[index] = Region { range: inside, node };
            self.push(Region { range: below, node: before });
            self.push(Region { range: above, node: before });
        }
    }

    fn push(&mut self, region: Region) {
        if region.range.length() == 0 {
            return;
        }
        match self.regions.get_mut(self.count) {
            Some(slot) => {
                *slot = region;
                self.count += 1;
            }
            None => self.dropped += 1,
        }
    }

    /// Returns the ranges, with their nodes.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions[..self.count]
    }

    /// Returns the number of ranges without a place in the map, which are not used.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Returns the end of the highest range.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.regions().iter().map(|region| region.range.end).max().unwrap_or(0)
    }

    /// Returns the memory of a node in bytes.
    #[must_use]
    pub fn size(&self, node: u16) -> u64 {
        let of_node = self.regions().iter().filter(|region| region.node == node);
        of_node.map(|region| region.range.length()).sum()
    }
}

/// The frames of one node, taken from its ranges in turn. Frames that are given back are kept in a
/// list, which serves single frames; a caller that takes more at a time, such as a heap, keeps them
/// for good.
#[derive(Debug)]
pub struct Frames {
    ranges: [Range; PARTS],
    count: usize,
    free: Option<u64>,
    /// Number of frames that were given back.
    given: u64,
}

/// Largest number of ranges of a node: those of a map, of which one is split in two parts.
const PARTS: usize = RANGES + 1;

impl Frames {
    /// No frames at all.
    pub const NEW: Self =
        Self { ranges: [Range { start: 0, end: 0 }; PARTS], count: 0, free: None, given: 0 };

    /// Adds a range of whole frames. Returns `false` if it is refused, because there are too many
    /// ranges.
    #[must_use]
    pub fn add(&mut self, range: Range) -> bool {
        let Some(slot) = self.ranges.get_mut(self.count) else { return false };
        *slot = range.frames();
        self.count += 1;
        true
    }

    /// Takes a range of `length` bytes, a multiple of a frame, that begins at a multiple of
    /// `align`, a power of two and at least a frame. Returns `None` if no range of the node has so
    /// much left.
    pub fn take(&mut self, length: u64, align: u64) -> Option<Range> {
        if length == 0 || !length.is_multiple_of(FRAME) || !align.is_power_of_two() {
            return None;
        }
        let align = align.max(FRAME);
        for index in 0..self.count {
            let rest = self.ranges[index];
            let Some(start) = rest.start.checked_next_multiple_of(align) else { continue };
            let Some(end) = start.checked_add(length) else { continue };
            if end > rest.end {
                continue;
            }
            self.ranges[index].start = end;
            // The part that alignment skips becomes a separate range, if there is a place for it.
            if start > rest.start {
                let _ = self.add(Range { start: rest.start, end: start });
            }
            return Some(Range { start, end });
        }
        None
    }

    /// Takes one frame: one that was given back, if there is one.
    ///
    /// # Safety
    ///
    /// Frames that were given back are mapped at their physical addresses, and no other code writes
    /// to them.
    pub unsafe fn take_one(&mut self) -> Option<u64> {
        let Some(frame) = self.free else {
            return self.take(FRAME, FRAME).map(|range| range.start);
        };
        let link = core::ptr::with_exposed_provenance::<u64>(frame as usize);
        // SAFETY: `give` has written the link there, and the caller promises that no other code has
        // overwritten it.
        self.free = match unsafe { link.read() } {
            0 => None,
            next => Some(next),
        };
        self.given -= 1;
        Some(frame)
    }

    /// Gives back one frame.
    ///
    /// # Safety
    ///
    /// The frame was taken from here, no code uses it any more, and it is mapped at its physical
    /// address.
    pub unsafe fn give(&mut self, frame: u64) {
        let link = core::ptr::with_exposed_provenance_mut::<u64>(frame as usize);
        // SAFETY: the caller's promise.
        unsafe { link.write(self.free.unwrap_or(0)) };
        self.free = Some(frame);
        self.given += 1;
    }

    /// Returns the number of bytes that are not taken.
    #[must_use]
    pub fn left(&self) -> u64 {
        let untouched: u64 = self.ranges[..self.count].iter().map(|range| range.length()).sum();
        untouched + self.given * FRAME
    }
}
