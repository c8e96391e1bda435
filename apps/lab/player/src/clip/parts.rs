//! Clips whose frames are known, but whose bytes are absent or arrive later.

use super::{Bytes, Clip, Found, Layer};

/// The bytes of the frames that have arrived.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    head: Vec<u8>,
    /// The bytes of each frame; empty if they are absent.
    frames: Vec<Box<[u8]>>,
    held: usize,
}

impl Parts {
    pub(super) fn coded(&self, frame: usize) -> &[u8] {
        &self.frames[frame]
    }

    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }
}

/// The description of a frame without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) layer: Layer,
    /// Whether a unit begins with it.
    pub(crate) is_first: bool,
    /// Its place in display order, less its place in decode order.
    pub(crate) offset: i16,
}

impl Clip {
    /// The clip of a stream whose frames arrive later, by [`Clip::put`].
    pub(crate) fn announced(
        head: Vec<u8>,
        outlines: &[Outline],
        size: (u32, u32),
        frame_ns: u64,
    ) -> Self {
        let mut units = 0;
        let found: Vec<_> = outlines
            .iter()
            .enumerate()
            .map(|(index, outline)| {
                units += usize::from(outline.is_first || index == 0);
                let place = index as i64 + i64::from(outline.offset);
                Found { layer: outline.layer, unit: units - 1, place, start: 0 }
            })
            .collect();
        let (frames, units) = super::arrange(&found, 0);
        let parts = vec![Box::default(); frames.len()];
        let bytes = Bytes::Parts(Parts { head, frames: parts, held: 0 });
        Self { bytes, frames, units, size, frame_ns }
    }

    /// The clip without the bytes of its frames; their ranges in the stream are kept.
    pub(crate) fn without_bytes(self) -> Self {
        let (head, frames) = (self.head().to_vec(), vec![Box::default(); self.frames.len()]);
        Self { bytes: Bytes::Parts(Parts { head, frames, held: 0 }), ..self }
    }

    /// The outlines of the frames, in decode order; `None` if a frame's display place is too far
    /// from its decode place for an outline.
    pub(crate) fn outlines(&self) -> Option<Vec<Outline>> {
        let outline = |(index, frame): (usize, &super::Frame)| {
            let offset = i16::try_from(frame.shown as i64 - index as i64).ok()?;
            let is_first = self.units[frame.unit].frames.start == index;
            Some(Outline { layer: frame.layer, is_first, offset })
        };
        self.frames.iter().enumerate().map(outline).collect()
    }

    /// Returns whether its frames arrive one by one, and may never arrive.
    pub(crate) fn is_in_parts(&self) -> bool {
        matches!(self.bytes, Bytes::Parts(_))
    }

    /// Returns whether the bytes of a frame are present.
    pub(crate) fn has(&self, frame: usize) -> bool {
        !self.coded(frame).is_empty()
    }

    /// Number of bytes held of frames that have arrived.
    pub(crate) fn held(&self) -> usize {
        match &self.bytes {
            Bytes::Whole(_) => 0,
            Bytes::Parts(parts) => parts.held,
        }
    }

    /// Stores the bytes of a frame that has arrived; an empty vector frees those that are no longer
    /// of use.
    pub(crate) fn put(&mut self, frame: usize, bytes: Vec<u8>) {
        if let Bytes::Parts(parts) = &mut self.bytes {
            let bytes = bytes.into_boxed_slice();
            parts.held += bytes.len();
            parts.held -= std::mem::replace(&mut parts.frames[frame], bytes).len();
        }
    }
}
