//! Decoders: what makes pictures of coded frames.
//!
//! | decoder | what it is |
//! |---|---|
//! | [`OpenH264`] | Cisco's library, loaded when it is asked for: real pictures |
//! | [`Synthetic`] | spends the time of a clip's trace, and draws only the counter |
//! | [`Costly`] | another decoder, which spends the time of a trace as well |
//!
//! A player decodes frames of different units in any order, so a decoder keeps what each unit in
//! flight needs; and it wants each picture at once, to show it when it likes, where most decoders
//! hold pictures back until they can put them out in display order. OpenH264's "no delay" form
//! gives each picture as it is decoded; libavcodec has no such form (it discards pictures that come
//! after one that is shown later), and its licence depends on how it was built.

mod costs;
mod openh264;
mod synthetic;

use crate::picture::Picture;
use crate::{Clip, Error};

pub use self::costs::Costs;
pub use self::openh264::OpenH264;
pub use self::synthetic::{Costly, Synthetic, spin};

/// How far a frame is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// The frame needs another call.
    More,
    /// The frame is decoded.
    Done(Picture),
}

/// A unit of a clip, in a pass over the clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId {
    /// 0 the first time.
    pub pass: u64,
    /// Its number in the clip.
    pub unit: usize,
}

/// A decoder of one clip.
pub trait Decode {
    /// Decodes a frame of the clip, or a piece of it. A frame that it needs was decoded in the same
    /// pass, and of frames that follow each other without being [free](crate::clip::Unit::is_free)
    /// none comes after a later one.
    ///
    /// # Errors
    ///
    /// [`Error::Decoder`]: the frame is lost, and what needs it.
    fn decode(&mut self, clip: &Clip, frame: usize, pass: u64) -> Result<Progress, Error>;

    /// No more of this unit is decoded.
    fn close(&mut self, clip: &Clip, unit: UnitId);

    /// The name of the decoder, for reports: a synthetic one says that it is.
    fn name(&self) -> String;
}

/// The decoder of this machine: [`OpenH264`], or where that is not installed, a [`Synthetic`]
/// decoder that spins for as long as frames of a clip take, `mean_ns` in the mean.
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
