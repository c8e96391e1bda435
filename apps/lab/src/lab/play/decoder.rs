//! The decoder of a player: the installed decoder, and additional computing time.

use std::sync::Arc;

use antiphon_player::Error;
use antiphon_player::clip::Clip;
use antiphon_player::decode::{Costly, Costs, Decode, OpenH264, Progress, Synthetic, UnitId};
use antiphon_report::stats::Random;
use serde::{Deserialize, Serialize};

use crate::compete::work::Pace;

/// Mean cost of a frame if no decoder is installed, in nanoseconds.
pub const FRAME_NS: u64 = 800_000;
/// Longest delay with which a misbehaving player gives the CPU away, in nanoseconds.
const LATE_NS: u64 = 10_000_000;
/// Number of frames of a clip that are decoded to measure their cost.
const TRIED: usize = 300;

/// The cost that decoding should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Mean over all frames, in nanoseconds of the CPU; `None` for the real cost.
    pub frame_ns: Option<u64>,
    /// Part of that time that the installed decoder takes, in nanoseconds.
    pub decoder_ns: u64,
    /// Probability, from 0 to 1, that the player works for up to 10 ms longer than announced.
    pub misbehaves: f64,
}

/// The decoder of a player.
pub struct Decoding {
    /// The decoder.
    pub decoder: Box<dyn Decode>,
    /// Whether the time is not spent on decoding, or only in part.
    pub model: bool,
}

/// Makes a decoder for this clip.
///
/// # Errors
///
/// The errors of [`Costs::by_size`].
pub fn decoder(clip: &Arc<Clip>, cost: Cost, pace: Pace, seed: u64) -> Result<Decoding, Error> {
    let spend = move |ns| pace.burn(ns);
    let (decoder, model): (Box<dyn Decode>, _) = match (OpenH264::load(), cost.frame_ns) {
        (Ok(decoder), None) => (Box::new(decoder), false),
        (Ok(decoder), Some(frame_ns)) => match frame_ns.saturating_sub(cost.decoder_ns) {
            0 => (Box::new(decoder), false),
            more_ns => {
                (Box::new(Costly::new(decoder, Costs::by_size(clip, more_ns)?, spend)), true)
            }
        },
        (Err(_), frame_ns) => {
            let costs = Costs::by_size(clip, frame_ns.unwrap_or(FRAME_NS))?;
            (Box::new(Synthetic::new(costs, spend)), true)
        }
    };
    if cost.misbehaves > 0.0 {
        let random = Random(seed);
        let misbehaves = Misbehaves { decoder, share: cost.misbehaves, random, pace };
        return Ok(Decoding { decoder: Box::new(misbehaves), model });
    }
    Ok(Decoding { decoder, model })
}

/// Returns the mean time of the installed decoder for a frame of the clip, in nanoseconds; 0 if
/// none is installed.
///
/// # Errors
///
/// If a frame can't be decoded.
pub fn measured_ns(clip: &Clip) -> Result<u64, Error> {
    let Ok(mut decoder) = OpenH264::load() else { return Ok(0) };
    let unit = clip.units().iter().find(|unit| unit.frames.end >= TRIED);
    let end = unit.map_or(clip.frames().len(), |unit| unit.frames.end);
    let mut first = clip.head().to_vec();
    (0..end).for_each(|frame| first.extend_from_slice(clip.coded(frame)));
    let first = Clip::parse(first)?;
    Ok(Costs::of_decoder(&first, &mut decoder, 2)?.mean_ns())
}

/// A decoder that sometimes computes on after it should have given the CPU away.
struct Misbehaves {
    decoder: Box<dyn Decode>,
    share: f64,
    random: Random,
    pace: Pace,
}

impl Decode for Misbehaves {
    fn decode(&mut self, clip: &Clip, frame: usize, pass: u64) -> Result<Progress, Error> {
        let lot = (self.random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        if lot < self.share {
            self.pace.burn(self.random.draw() % LATE_NS);
        }
        self.decoder.decode(clip, frame, pass)
    }

    fn close(&mut self, clip: &Clip, unit: UnitId) {
        self.decoder.close(clip, unit);
    }

    fn name(&self) -> String {
        format!("{}, misbehaving", self.decoder.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_player::made;

    /// Returns the name of the decoder, and whether it is a model.
    fn of(cost: Cost) -> (String, bool) {
        let clip = Arc::new(Clip::parse(made::layered(2, 60)).expect("a stream"));
        let made = decoder(&clip, cost, Pace::calibrate(), 1).expect("a decoder");
        (made.decoder.name(), made.model)
    }

    #[test]
    fn what_is_spent_and_not_decoded_is_a_model() {
        let installed = OpenH264::load().is_ok();
        let plain = Cost::default();
        assert_eq!(of(plain).1, !installed);
        let costly = Cost { frame_ns: Some(2_000_000), decoder_ns: 500_000, ..plain };
        assert!(of(costly).1);
        // The decoder takes at least that long.
        let slow = Cost { decoder_ns: 3_000_000, ..costly };
        assert_eq!(of(slow).1, !installed);
        assert!(of(Cost { misbehaves: 0.5, ..plain }).0.ends_with("misbehaving"));
    }
}
