//! Clips: an H.264 stream, parsed into the frames and units that a player decides about.
//!
//! ```text
//!   shown      I0  b1  B2  b3  P4 │ I5  b6  B7  b8  P9 │
//!   decoded    I0  P4  B2  b1  b3 │ I5  P9  B7  b6  b8 │   by importance, in a free unit
//!              └── unit ──────────┘
//! ```
//!
//! - A *unit* begins where no later frame needs an earlier one (an IDR picture).
//! - A frame *needs* the last reference frame that comes before it in the unit. It may not be
//!   predicted from that frame, but a decoder counts reference frames, and a missing one is an
//!   error unless the stream allows for it (`frame_num`, §7.4.3), which x264's streams don't.
//! - A unit is *free* if its reference frames come before all others. Then its frames can be
//!   decoded by importance, and any of them may be the last; so units of a clip can be decoded in
//!   any order, each by its own decoder. In other units, as of most files, a decoder that goes on
//!   skips the frames that it has passed.

mod annex_b;
mod bits;
mod headers;
mod parts;

use std::fs::File;
use std::io::Read as _;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use self::headers::{Order, Sequence, Slice, SliceKind};
use self::parts::Parts;
use crate::{Error, ffmpeg};

pub use self::annex_b::{Kind, Nal, nals};
pub(crate) use self::parts::Outline;

/// How long a frame is shown, in nanoseconds, if the stream doesn't say.
const FRAME_NS: u64 = 1_000_000_000 / 30;
/// The times for which a stream may show a frame, in nanoseconds.
pub(crate) const FRAME_TIMES: RangeInclusive<u64> = 1_000_000..=10_000_000_000;
/// Allowed widths and heights of a picture, in pixels.
pub(crate) const SIDES: RangeInclusive<u32> = 1..=1 << 14;
/// The most frames of a clip: four hours at 60 Hz.
pub(crate) const MOST_FRAMES: usize = 1 << 20;
/// The most bytes of a clip, all of which are kept in memory.
const MOST_BYTES: u64 = if cfg!(test) { 1 << 26 } else { 1 << 31 };

/// A frame's temporal layer; the least important one is the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `b`: no other frame needs it.
    Disposable,
    /// `B`: predicted from both sides, and others need it.
    Bidirectional,
    /// `P`: predicted from the past.
    Predicted,
    /// `I`: it needs no other frame.
    Intra,
}

impl Layer {
    /// All layers, the most important first.
    pub const ALL: [Self; 4] =
        [Self::Intra, Self::Predicted, Self::Bidirectional, Self::Disposable];

    /// The layer's letter, as in figures: `I`, `P`, `B` or `b`.
    pub const fn letter(self) -> char {
        match self {
            Self::Intra => 'I',
            Self::Predicted => 'P',
            Self::Bidirectional => 'B',
            Self::Disposable => 'b',
        }
    }
}

/// A coded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How important it is.
    pub layer: Layer,
    /// The number of its unit.
    pub unit: usize,
    /// Its number in the clip, in display order.
    pub shown: usize,
    /// The frame (in decode order) that must be decoded before it.
    pub needs: Option<usize>,
    /// The range of its bytes in the stream, with its parameters.
    pub bytes: Range<usize>,
}

/// A closed group of frames: none of them needs a frame of another unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its frames, in decode order.
    pub frames: Range<usize>,
    /// Whether its frames may be decoded by importance: see the module.
    pub is_free: bool,
}

/// A parsed stream.
#[derive(Clone, Debug)]
pub struct Clip {
    bytes: Bytes,
    frames: Vec<Frame>,
    units: Vec<Unit>,
    size: (u32, u32),
    frame_ns: u64,
}

/// The bytes of a clip.
#[derive(Clone, Debug)]
enum Bytes {
    /// The whole stream.
    Whole(Vec<u8>),
    /// The bytes of those frames that have arrived.
    Parts(Parts),
}

impl Clip {
    /// Opens the clip of a file: a byte stream directly (`.h264`, `.264`), any other file through
    /// `ffmpeg`, which extracts its first video stream. Blocks until that is done.
    ///
    /// # Errors
    ///
    /// The file can't be read; `ffmpeg` is needed and is missing or fails; those of
    /// [`Clip::parse`]; also for more than 2 GiB, which would all be kept in memory.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let is_plain = path.extension().is_some_and(|e| e == "h264" || e == "264");
        // One byte more is read, to detect a longer stream.
        let video = || ffmpeg::video(path, MOST_BYTES + 1);
        if is_plain { Self::read(path) } else { Self::parse_some(video()?) }
    }

    /// Opens the clip of a file that is a byte stream.
    ///
    /// # Errors
    ///
    /// The file can't be read; those of [`Clip::parse`]; also for more than 2 GiB.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::file(path))?;
        let mut stream = Vec::new();
        // The path may be a device or a pipe that never ends.
        file.take(MOST_BYTES + 1).read_to_end(&mut stream).map_err(Error::file(path))?;
        Self::parse_some(stream)
    }

    /// Parses a byte stream that may be too long.
    fn parse_some(stream: Vec<u8>) -> Result<Self, Error> {
        if stream.len() as u64 > MOST_BYTES {
            return Err(Error::Stream("more than 2 GiB of it", MOST_BYTES as usize));
        }
        Self::parse(stream)
    }

    /// Parses a byte stream.
    ///
    /// # Errors
    ///
    /// [`Error::Stream`] if it has no whole unit, more than 2²⁰ frames, or features that are not
    /// supported: fields, partitions, an order of pictures of type 1.
    pub fn parse(stream: Vec<u8>) -> Result<Self, Error> {
        let mut reader = Reader::default();
        for nal in nals(&stream) {
            reader.nal(&stream, &nal).map_err(|what| Error::Stream(what, nal.start))?;
        }
        let (sequence, frames, units) = reader.finish(stream.len())?;
        let (size, frame_ns) = ((sequence.width, sequence.height), sequence.frame_ns);
        let frame_ns = frame_ns.unwrap_or(FRAME_NS);
        Ok(Self { bytes: Bytes::Whole(stream), frames, units, size, frame_ns })
    }

    /// The frames, in decode order.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The units, in order.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The bytes of a frame, with the parameters that precede it; empty if it has not arrived.
    pub fn coded(&self, frame: usize) -> &[u8] {
        match &self.bytes {
            Bytes::Whole(stream) => &stream[self.frames[frame].bytes.clone()],
            Bytes::Parts(parts) => parts.coded(frame),
        }
    }

    /// The bytes before the first frame: parameters that all units may need.
    pub fn head(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Whole(stream) => &stream[..self.frames[0].bytes.start],
            Bytes::Parts(parts) => parts.head(),
        }
    }

    /// How long a frame is shown, in nanoseconds: as the stream says, from a millisecond to 10 s;
    /// otherwise a thirtieth of a second.
    pub fn frame_ns(&self) -> u64 {
        self.frame_ns
    }

    /// Width and height, in pixels.
    pub fn size(&self) -> (u32, u32) {
        self.size
    }
}

/// A frame whose place in display order is not known yet.
struct Found {
    layer: Layer,
    unit: usize,
    place: i64,
    start: usize,
}

/// The parser of a stream.
#[derive(Default)]
struct Reader {
    sequence: Option<Sequence>,
    order: Order,
    found: Vec<Found>,
    units: usize,
    /// The place where the NAL units of the next frame begin.
    pending: Option<usize>,
}

impl Reader {
    fn nal(&mut self, stream: &[u8], nal: &Nal) -> Result<(), &'static str> {
        let Kind::Slice { idr } = nal.kind else {
            self.pending.get_or_insert(nal.start);
            return match nal.kind {
                Kind::Sequence => {
                    self.sequence = Some(Sequence::read(&stream[nal.bytes.clone()])?);
                    Ok(())
                }
                Kind::Partition => Err("a partition of a slice"),
                _ => Ok(()),
            };
        };
        let sequence = self.sequence.ok_or("a picture before any parameters")?;
        let slice = Slice::read(&stream[nal.bytes.clone()], idr, &sequence)?;
        if slice.is_first {
            if self.found.len() == MOST_FRAMES {
                return Err("more than 2²⁰ frames");
            }
            let start = self.pending.take().unwrap_or(nal.start);
            self.frame(&slice, idr, nal.importance > 0, &sequence, start);
        }
        self.pending = None;
        Ok(())
    }

    fn frame(&mut self, slice: &Slice, idr: bool, needed: bool, of: &Sequence, start: usize) {
        if idr {
            self.units += 1;
            self.order = Order::default();
        } else if self.units == 0 {
            // Frames before the first unit need frames that are missing.
            return;
        }
        let layer = match slice.kind {
            SliceKind::I => Layer::Intra,
            _ if !needed => Layer::Disposable,
            SliceKind::P => Layer::Predicted,
            SliceKind::B => Layer::Bidirectional,
        };
        let decoded = self.found.len() as i64;
        let place = self.order.place(slice, of, needed).unwrap_or(decoded);
        self.found.push(Found { layer, unit: self.units - 1, place, start });
    }

    fn finish(self, end: usize) -> Result<(Sequence, Vec<Frame>, Vec<Unit>), Error> {
        let empty = Error::Stream("no picture that stands alone", 0);
        let (Some(sequence), false) = (self.sequence, self.found.is_empty()) else {
            return Err(empty);
        };
        let (frames, units) = arrange(&self.found, end);
        Ok((sequence, frames, units))
    }
}

/// The frames and units of the parsed stream; units are numbered without gaps.
fn arrange(all: &[Found], end: usize) -> (Vec<Frame>, Vec<Unit>) {
    let mut by_place: Vec<usize> = (0..all.len()).collect();
    by_place.sort_by_key(|&index| (all[index].unit, all[index].place));
    let mut shown = vec![0; by_place.len()];
    for (number, &index) in by_place.iter().enumerate() {
        shown[index] = number;
    }

    let mut frames: Vec<Frame> = Vec::with_capacity(all.len());
    let mut units: Vec<Unit> = Vec::new();
    let mut reference = None;
    for (index, found) in all.iter().enumerate() {
        if found.unit == units.len() {
            units.push(Unit { frames: index..index, is_free: true });
            reference = None;
        }
        let unit = &mut units[found.unit];
        unit.frames.end = index + 1;
        let is_needed = found.layer != Layer::Disposable;
        let after_others = index > unit.frames.start
            && frames.last().is_some_and(|frame| frame.layer == Layer::Disposable);
        unit.is_free &= !(is_needed && after_others);
        let bytes_end = all.get(index + 1).map_or(end, |next| next.start);
        frames.push(Frame {
            layer: found.layer,
            unit: found.unit,
            shown: shown[index],
            needs: reference,
            bytes: found.start..bytes_end,
        });
        if is_needed {
            reference = Some(index);
        }
    }
    (frames, units)
}
