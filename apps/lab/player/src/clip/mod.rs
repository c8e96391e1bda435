//! Clips: a stream of H.264, taken apart into what a player decides about.
//!
//! ```text
//!   shown      I0  b1  B2  b3  P4 │ I5  b6  B7  b8  P9 │
//!   decoded    I0  P4  B2  b1  b3 │ I5  P9  B7  b6  b8 │   by importance, in a free unit
//!              └── unit ──────────┘
//! ```
//!
//! - A *unit* begins where nothing after needs anything before (an IDR picture).
//! - A frame *needs* the last reference frame that comes before it in the unit. It may not be
//!   predicted from that, but a decoder counts reference frames, and one that is missing is an
//!   error unless the stream allows for it (`frame_num`, §7.4.3), which x264's don't.
//! - A unit is *free* if its reference frames come before all others. Then its frames can be
//!   decoded by importance, and any may be the last; so units of a clip can be decoded in any
//!   order, a decoder each. In other units, as of most files, a decoder that goes on leaves the
//!   frames that it passed.

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

/// How long a frame is shown of which the stream doesn't say.
const FRAME_NS: u64 = 1_000_000_000 / 30;
/// How long one is shown, in nanoseconds, of which it does.
pub(crate) const FRAME_TIMES: RangeInclusive<u64> = 1_000_000..=10_000_000_000;
/// Width and height of a picture, in pixels.
pub(crate) const SIDES: RangeInclusive<u32> = 1..=1 << 14;
/// Frames of a clip at the most: four hours at 60 Hz.
pub(crate) const MOST_FRAMES: usize = 1 << 20;
/// Bytes of a clip at the most: all of it is kept in memory.
const MOST_BYTES: u64 = if cfg!(test) { 1 << 26 } else { 1 << 31 };

/// A frame's temporal layer, from the least important one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `b`: no other frame needs it.
    Disposable,
    /// `B`: predicted from both sides, and others need it.
    Bidirectional,
    /// `P`: predicted from the past.
    Predicted,
    /// `I`: it stands alone.
    Intra,
}

impl Layer {
    /// All of them, the most important first.
    pub const ALL: [Self; 4] =
        [Self::Intra, Self::Predicted, Self::Bidirectional, Self::Disposable];

    /// A letter, as figures have it: `I`, `P`, `B` or `b`.
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
    /// Its unit's number.
    pub unit: usize,
    /// Its number in the clip in the order in which frames are shown.
    pub shown: usize,
    /// The frame (in decode order) that must have been decoded before it.
    pub needs: Option<usize>,
    /// The place of its bytes in the stream, with its parameters.
    pub bytes: Range<usize>,
}

/// Frames that stand alone together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its frames, in decode order.
    pub frames: Range<usize>,
    /// Its frames may be decoded by importance: see the module.
    pub is_free: bool,
}

/// A stream and its frames.
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
    /// All of the stream.
    Whole(Vec<u8>),
    /// The bytes of the frames that are there.
    Parts(Parts),
}

impl Clip {
    /// The clip of a file: a byte stream as it is (`.h264`, `.264`), any other by way of `ffmpeg`,
    /// which takes the first video stream of it. Blocks until that is done.
    ///
    /// # Errors
    ///
    /// The file can't be read, `ffmpeg` is needed and is not there or fails, or as in
    /// [`Clip::parse`]; also for more than 2 GiB, which would all be kept in memory.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let is_plain = path.extension().is_some_and(|e| e == "h264" || e == "264");
        // One more is too many.
        let video = || ffmpeg::video(path, MOST_BYTES + 1);
        if is_plain { Self::read(path) } else { Self::parse_some(video()?) }
    }

    /// The clip of a file that is a byte stream.
    ///
    /// # Errors
    ///
    /// As in [`Clip::open`].
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::file(path))?;
        let mut stream = Vec::new();
        // It may be no file, and never end.
        file.take(MOST_BYTES + 1).read_to_end(&mut stream).map_err(Error::file(path))?;
        Self::parse_some(stream)
    }

    /// The clip of a byte stream that may have been too long.
    fn parse_some(stream: Vec<u8>) -> Result<Self, Error> {
        if stream.len() as u64 > MOST_BYTES {
            return Err(Error::Stream("more than 2 GiB of it", MOST_BYTES as usize));
        }
        Self::parse(stream)
    }

    /// The clip of a byte stream.
    ///
    /// # Errors
    ///
    /// [`Error::Stream`] if it has no whole unit, more than 2²⁰ frames, or what a player here
    /// doesn't know: fields, partitions, an order of pictures of type 1.
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

    /// The bytes of a frame, with the parameters that come before it; none if it is not there.
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

/// A frame of which the order is not known yet.
struct Found {
    layer: Layer,
    unit: usize,
    place: i64,
    start: usize,
}

/// Takes a stream apart.
#[derive(Default)]
struct Reader {
    sequence: Option<Sequence>,
    order: Order,
    found: Vec<Found>,
    units: usize,
    /// The place where the units of the next frame begin.
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
            // Frames before the first unit need frames that are not there.
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

/// Frames and units of what was found, whose units are numbered without a gap.
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
