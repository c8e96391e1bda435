//! Parses sequence parameters and slice headers (H.264, §7.3.2.1.1, §7.3.3, E.1.1), as far as they
//! tell when a picture is shown.

use super::bits::Bits;
use super::{FRAME_TIMES, SIDES};

/// The most bytes of either header that are read.
const HEADER: usize = 512;
/// Profiles whose parameters describe how colours are stored.
const COLOURED: [u32; 12] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134];

/// Parameters of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) width: u32,
    pub(super) height: u32,
    /// How long a frame is shown, in nanoseconds, if the stream says so.
    pub(super) frame_ns: Option<u64>,
    frame_number_bits: usize,
    /// Bits of the order; `None` if pictures are shown as they are decoded.
    order_bits: Option<usize>,
    progressive: bool,
}

/// A slice's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// Whether it is the first slice of its picture.
    pub(super) is_first: bool,
    pub(super) kind: SliceKind,
    /// The low bits of the picture's place in display order.
    order_low: Option<u32>,
}

/// The pictures that a slice's blocks are predicted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SliceKind {
    /// One picture for each block.
    P,
    /// Two pictures for each block.
    B,
    /// No picture.
    I,
}

impl Sequence {
    /// Parses a NAL unit; `Err` names what is not supported.
    pub(super) fn read(nal: &[u8]) -> Result<Self, &'static str> {
        let mut bits = Bits::of(nal, HEADER);
        Self::parse(&mut bits).ok_or("sequence parameters that end early")?
    }

    fn parse(bits: &mut Bits) -> Option<Result<Self, &'static str>> {
        let profile = bits.take(8)?;
        bits.take(16)?;
        bits.unsigned()?;
        if COLOURED.contains(&profile) && !is_usual(bits)? {
            return Some(Err("a picture that is not 4:2:0 of 8 bits"));
        }
        let frame_number_bits = bits.unsigned()? as usize + 4;
        let order_bits = match bits.unsigned()? {
            0 => Some(bits.unsigned()? as usize + 4),
            2 => None,
            _ => return Some(Err("an order of pictures of type 1")),
        };
        if frame_number_bits > 16 || order_bits.is_some_and(|bits| bits > 16) {
            return Some(Err("a counter of more than 16 bits"));
        }
        bits.unsigned()?;
        bits.flag()?;
        let width = bits.unsigned()?.checked_add(1)?.checked_mul(16)?;
        let units = bits.unsigned()?.checked_add(1)?;
        let progressive = bits.flag()?;
        if !progressive {
            bits.flag()?;
        }
        let height = units.checked_mul(if progressive { 16 } else { 32 })?;
        bits.flag()?;
        let mut crop = [0; 4];
        if bits.flag()? {
            for side in &mut crop {
                *side = bits.unsigned()?.checked_mul(2)?;
            }
        }
        let frame_ns = if bits.flag()? { timing(bits)? } else { None };
        let width = width.checked_sub(crop[0])?.checked_sub(crop[1])?;
        let height = height.checked_sub(crop[2])?.checked_sub(crop[3])?;
        if ![width, height].iter().all(|side| SIDES.contains(side)) {
            return Some(Err("a picture that is not 1 to 16384 pixels wide and high"));
        }
        Some(Ok(Self { width, height, frame_ns, frame_number_bits, order_bits, progressive }))
    }
}

/// Whether colours are stored as in the profiles without a description; skips the rest of it.
fn is_usual(bits: &mut Bits) -> Option<bool> {
    let is_usual = bits.unsigned()? == 1 && bits.unsigned()? == 0 && bits.unsigned()? == 0;
    if !is_usual {
        return Some(false);
    }
    bits.flag()?;
    if bits.flag()? {
        for list in 0..8 {
            if bits.flag()? {
                skip_scaling(bits, if list < 6 { 16 } else { 64 })?;
            }
        }
    }
    Some(true)
}

/// Skips a list of scales (§7.3.2.1.1.1).
fn skip_scaling(bits: &mut Bits, size: usize) -> Option<()> {
    let mut last = 8;
    for _ in 0..size {
        let next = (last + bits.signed()?).rem_euclid(256);
        if next == 0 {
            break;
        }
        last = next;
    }
    Some(())
}

/// How long a frame is shown, from the usability information (E.1.1).
fn timing(bits: &mut Bits) -> Option<Option<u64>> {
    if bits.flag()? && bits.take(8)? == 255 {
        bits.take(32)?;
    }
    if bits.flag()? {
        bits.flag()?;
    }
    if bits.flag()? {
        bits.take(4)?;
        if bits.flag()? {
            bits.take(24)?;
        }
    }
    if bits.flag()? {
        bits.unsigned()?;
        bits.unsigned()?;
    }
    if !bits.flag()? {
        return Some(None);
    }
    let ticks = u64::from(bits.take(32)?);
    let scale = u64::from(bits.take(32)?);
    // A tick is a field: two ticks are a frame.
    let frame_ns = (2 * ticks * 1_000_000_000).checked_div(scale);
    // A time out of bounds is the tick of a clock, as in streams with a variable frame rate.
    Some(frame_ns.filter(|ns| FRAME_TIMES.contains(ns)))
}

impl Slice {
    /// Parses a NAL unit of a stream with the sequence `of`; `Err` names what is not supported.
    pub(super) fn read(nal: &[u8], idr: bool, of: &Sequence) -> Result<Self, &'static str> {
        let mut bits = Bits::of(nal, HEADER);
        Self::parse(&mut bits, idr, of).ok_or("a slice header that ends early")?
    }

    fn parse(bits: &mut Bits, idr: bool, of: &Sequence) -> Option<Result<Self, &'static str>> {
        let is_first = bits.unsigned()? == 0;
        let kind = match bits.unsigned()? % 5 {
            0 => SliceKind::P,
            1 => SliceKind::B,
            2 => SliceKind::I,
            _ => return Some(Err("a slice that switches streams")),
        };
        bits.unsigned()?;
        bits.take(of.frame_number_bits)?;
        if !of.progressive && bits.flag()? {
            return Some(Err("a picture of one field"));
        }
        if idr {
            bits.unsigned()?;
        }
        let order_low = match of.order_bits {
            Some(count) => Some(bits.take(count)?),
            None => None,
        };
        Some(Ok(Self { is_first, kind, order_low }))
    }
}

/// Computes the places of pictures in display order, from the low bits in slice headers (§8.2.1.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    high: i64,
    low: i64,
}

impl Order {
    /// The place of a picture in its unit: `None` if pictures are shown as they are decoded.
    pub(super) fn place(
        &mut self,
        slice: &Slice,
        of: &Sequence,
        is_reference: bool,
    ) -> Option<i64> {
        let low = i64::from(slice.order_low?);
        let size = 1 << of.order_bits?;
        let high = if low < self.low && self.low - low >= size / 2 {
            self.high + size
        } else if low > self.low && low - self.low > size / 2 {
            self.high - size
        } else {
            self.high
        };
        if is_reference {
            *self = Self { high, low };
        }
        Some(high + low)
    }
}
