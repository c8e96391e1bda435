//! What each frame of a clip costs: for decoders that only spend the time.

use crate::{Clip, Error};

/// A trace: nanoseconds for each frame, in decode order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    ns: Vec<u64>,
}

impl Costs {
    /// Half the same for each frame, half by how long it is coded; `mean_ns` in the mean.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if `mean_ns` is 0.
    pub fn by_size(clip: &Clip, mean_ns: u64) -> Result<Self, Error> {
        let sizes: Vec<_> = (0..clip.frames().len()).map(|n| clip.coded(n).len() as u128).collect();
        let total: u128 = sizes.iter().sum();
        let count = sizes.len() as u128;
        let mean = u128::from(mean_ns);
        // At most `mean_ns * count`, of a count of frames that are in memory.
        let of = |size: &u128| ((mean + mean * size * count / total) / 2) as u64;
        Self::measured(sizes.iter().map(of).collect(), clip)
    }

    /// As they were measured.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if there is not one for each frame of the clip, or one is 0.
    pub fn measured(ns: Vec<u64>, clip: &Clip) -> Result<Self, Error> {
        if ns.len() != clip.frames().len() {
            return Err(Error::Parameter("a trace has a cost for each frame"));
        }
        if ns.contains(&0) {
            return Err(Error::Parameter("no frame is decoded in no time"));
        }
        Ok(Self { ns })
    }

    /// Of a frame, in nanoseconds.
    pub fn of(&self, frame: usize) -> u64 {
        self.ns[frame]
    }

    /// In the mean, in nanoseconds.
    pub fn mean_ns(&self) -> u64 {
        self.ns.iter().sum::<u64>() / self.ns.len() as u64
    }
}
