//! The clip of a player: frames in layers, each with a decoding cost.
//!
//! | frame of four | layer | cost | if it is not decoded |
//! |---|---|---|---|
//! | first | 0 | 2 parts | nothing else of the four is worth much |
//! | third | 1 | 1 part | a quarter of the frames |
//! | second, fourth | 2 | half a part each | a quarter each |
//!
//! Costs are bursty: lognormal from frame to frame, and again from scene to scene of two seconds.
//! Of an even clip all frames cost the same; its layers only say which go first, so that a player
//! that can't have all of them leaves out every second.

use antiphon_report::stats::Random;

/// Number of frames that a player decodes ahead.
pub const AHEAD: u64 = 16;
/// Frames of a group of pictures.
const GROUP: usize = 4;
const LAYERS: [u64; GROUP] = [0, 2, 1, 2];
const PARTS: [f64; GROUP] = [2.0, 0.5, 1.0, 0.5];
const SCENE_NS: u64 = 2_000_000_000;
/// Standard deviations of the logarithm of costs, for scenes and for frames.
const SCENES: f64 = 0.35;
const FRAMES: f64 = 0.25;

/// An endless clip.
pub struct Clip {
    random: Random,
    period_ns: u64,
    /// The average cost of a frame.
    cost_ns: f64,
    /// Whether all frames cost the same.
    even: bool,
    scene: f64,
    next: u64,
}

/// A frame of a clip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Number of the frame in its clip, from 0.
    pub number: u64,
    /// Time to decode the frame, in nanoseconds of a CPU.
    pub cost_ns: u64,
    /// Layer of the frame; frames of higher layers depend on layer 0.
    pub layer: u64,
}

impl Clip {
    /// A clip with a frame every `period_ns`, whose decoding needs the share `demand` of a CPU.
    /// With `even`, all frames cost the same.
    pub fn new(seed: u64, period_ns: u64, demand: f64, even: bool) -> Self {
        let cost_ns = demand * period_ns as f64;
        Self { random: Random(seed), period_ns, cost_ns, even, scene: 1.0, next: 0 }
    }

    /// Returns the next frame.
    pub fn frame(&mut self) -> Frame {
        let number = self.next;
        self.next += 1;
        let of_group = (number % GROUP as u64) as usize;
        let at_ns = number * self.period_ns;
        if number == 0 || at_ns / SCENE_NS != (at_ns - self.period_ns) / SCENE_NS {
            self.scene = self.lognormal(SCENES);
        }
        let bursts = if self.even { 1.0 } else { self.scene * self.lognormal(FRAMES) };
        let parts = if self.even { 1.0 } else { PARTS[of_group] };
        let cost_ns = (self.cost_ns * parts * bursts) as u64;
        Frame { number, cost_ns, layer: LAYERS[of_group] }
    }

    /// Returns a lognormal number of mean 1, with this standard deviation of the logarithm.
    fn lognormal(&mut self, deviation: f64) -> f64 {
        // Box and Muller: two uniform numbers give a normal one. The first is never 0.
        let even = |bits: u64| ((bits >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        let (one, other) = (even(self.random.draw()), even(self.random.draw()));
        let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
        (deviation * normal - deviation * deviation / 2.0).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 16_666_667;

    fn frames(even: bool) -> Vec<Frame> {
        let mut clip = Clip::new(3, PERIOD_NS, 0.2, even);
        (0..40_000).map(|_| clip.frame()).collect()
    }

    #[test]
    fn a_clip_costs_what_it_is_to_cost() {
        for even in [false, true] {
            let all = frames(even);
            let spent: u64 = all.iter().map(|frame| frame.cost_ns).sum();
            let demand = spent as f64 / (all.len() as u64 * PERIOD_NS) as f64;
            assert!((0.19..0.21).contains(&demand), "{demand}");
        }
    }

    #[test]
    fn layers_come_by_fours_and_scenes_are_bursts() {
        let all = frames(false);
        let layers: Vec<_> = all.iter().take(8).map(|frame| frame.layer).collect();
        assert_eq!(layers, [0, 2, 1, 2, 0, 2, 1, 2]);
        let cost = |layer| {
            let costs = all.iter().filter(|frame| frame.layer == layer).map(|frame| frame.cost_ns);
            let (count, sum) = costs.fold((0, 0), |(count, sum), cost| (count + 1, sum + cost));
            sum / count
        };
        assert!(cost(0) > cost(1) && cost(1) > cost(2));
        let scene = |number: usize| -> u64 {
            all[number * 120..][..120].iter().map(|frame| frame.cost_ns).sum()
        };
        let scenes: Vec<_> = (0..40).map(scene).collect();
        let (least, most) = (scenes.iter().min(), scenes.iter().max());
        assert!(least.zip(most).is_some_and(|(least, most)| *most > 2 * least));
        let even = Frame { number: 7, cost_ns: 3_333_333, layer: 2 };
        assert_eq!(frames(true)[7], even);
    }
}
