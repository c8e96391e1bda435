//! Decoders: convert coded frames to pictures.
//!
//! | decoder | description |
//! |---|---|
//! | [`OpenH264`] | Cisco's library, loaded on demand: real pictures |
//! | [`Synthetic`] | spends the time of a clip's trace, and draws only the counter |
//! | [`Costly`] | wraps another decoder, and spends the time of a trace as well |
//!
//! A player decodes frames of different units in any order, so a decoder keeps the state of each
//! unit in flight. A player also needs each picture at once, to show it when it chooses, where most
//! decoders hold pictures back until they can put them out in display order. OpenH264's "no delay"
//! form returns each picture as it is decoded; libavcodec has no such form (it discards pictures
//! that come after one that is shown later), and its licence depends on how it was built.

mod costs;
mod openh264;
mod synthetic;

use crate::picture::Picture;
use crate::{Clip, Error};

pub use self::costs::Costs;
pub use self::openh264::OpenH264;
pub use self::synthetic::{Costly, Synthetic, spin};

/// The result of one call to decode a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// The frame needs another call.
    More,
    /// The frame is decoded.
    Done(Picture),
}

/// A unit of a clip, in one pass over the clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId {
    /// The number of the pass, from 0.
    pub pass: u64,
    /// The unit's number in the clip.
    pub unit: usize,
}

/// A decoder of one clip.
pub trait Decode {
    /// Decodes a frame of the clip, or a piece of it. The frame that it needs must have been
    /// decoded in the same pass. In units that are not [free](crate::clip::Unit::is_free), no frame
    /// may come after a later one.
    ///
    /// # Errors
    ///
    /// [`Error::Decoder`]: the frame is lost, with the frames that need it.
    fn decode(&mut self, clip: &Clip, frame: usize, pass: u64) -> Result<Progress, Error>;

    /// Tells that no more frames of this unit are decoded.
    fn close(&mut self, clip: &Clip, unit: UnitId);

    /// The name of the decoder, for reports. A synthetic decoder's name says that it is one.
    fn name(&self) -> String;
}

/// The decoder of this machine: [`OpenH264`], or where that is not installed, a [`Synthetic`]
/// decoder that spins for the typical times of a clip's frames, `mean_ns` on average.
///
/// # Errors
///
/// [`Error::Parameter`] if `mean_ns` is 0.
pub fn installed(clip: &Clip, mean_ns: u64) -> Result<Box<dyn Decode>, Error> {
    let costs = Costs::by_size(clip, mean_ns)?;
    Ok(match OpenH264::load() {
        Ok(decoder) => Box::new(decoder),
        Err(_) => Box::new(Synthetic::new(costs, spin)),
    })
}

impl<D: Decode + ?Sized> Decode for Box<D> {
    fn decode(&mut self, clip: &Clip, frame: usize, pass: u64) -> Result<Progress, Error> {
        (**self).decode(clip, frame, pass)
    }

    fn close(&mut self, clip: &Clip, unit: UnitId) {
        (**self).close(clip, unit);
    }

    fn name(&self) -> String {
        (**self).name()
    }
}
