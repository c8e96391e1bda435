//! The costs of a clip's frames, for decoders that only spend the time.

use std::time::Instant;

use super::{Decode, Progress, UnitId};
use crate::{Clip, Error};

/// The cost of each frame in nanoseconds, in decode order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    ns: Vec<u64>,
}

impl Costs {
    /// Costs with mean `mean_ns`: one half is equal for all frames, the other is proportional to
    /// the coded length. All frames of a clip whose bytes are yet to come cost the same.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if `mean_ns` is 0.
    pub fn by_size(clip: &Clip, mean_ns: u64) -> Result<Self, Error> {
        let sizes: Vec<_> = (0..clip.frames().len()).map(|n| clip.coded(n).len() as u128).collect();
        let total: u128 = sizes.iter().sum();
        let count = sizes.len() as u128;
        let mean = u128::from(mean_ns);
        // The result is at most `mean_ns * count`, and the frames are in memory, so it fits. For
        // frames that are yet to come, only the mean is known.
        let by_size = |size: &u128| (mean * size * count).checked_div(total).unwrap_or(mean);
        let of = |size: &u128| ((mean + by_size(size)) / 2) as u64;
        Self::measured(sizes.iter().map(of).collect(), clip)
    }

    /// Measures the time of `decoder` for each frame: the least of `tries` times, because longer
    /// times are due to other programs. Blocks for as long.
    ///
    /// # Errors
    ///
    /// [`Error::Decoder`] if a frame can't be decoded, [`Error::Parameter`] if `tries` is 0.
    pub fn of_decoder(clip: &Clip, decoder: &mut dyn Decode, tries: u64) -> Result<Self, Error> {
        let mut ns = vec![u64::MAX; clip.frames().len()];
        for pass in 0..tries {
            for (unit, frames) in clip.units().iter().map(|unit| unit.frames.clone()).enumerate() {
                for frame in frames {
                    let start = Instant::now();
                    while decoder.decode(clip, frame, pass)? == Progress::More {}
                    ns[frame] = ns[frame].min(start.elapsed().as_nanos() as u64).max(1);
                }
                decoder.close(clip, UnitId { pass, unit });
            }
        }
        if tries == 0 {
            return Err(Error::Parameter("the number of measurements must be at least 1"));
        }
        Self::measured(ns, clip)
    }

    /// Costs that were measured elsewhere.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if there is not one cost for each frame of the clip, or one is 0.
    pub fn measured(ns: Vec<u64>, clip: &Clip) -> Result<Self, Error> {
        if ns.len() != clip.frames().len() {
            return Err(Error::Parameter("a trace needs one cost for each frame"));
        }
        if ns.contains(&0) {
            return Err(Error::Parameter("the decoding cost of a frame must be above 0"));
        }
        Ok(Self { ns })
    }

    /// The cost of a frame, in nanoseconds.
    pub fn of(&self, frame: usize) -> u64 {
        self.ns[frame]
    }

    /// The mean cost of a frame, in nanoseconds.
    pub fn mean_ns(&self) -> u64 {
        self.ns.iter().sum::<u64>() / self.ns.len() as u64
    }
}
