//! Echo cancellation: removes what a loudspeaker plays from what a microphone hears.
//!
//! A normalized least-mean-squares filter (Widrow and Hoff's, with the step of Nagumo and Noda, "A
//! learning method for system identification", 1967) learns the response of the room:
//!
//! ```text
//!   far ──►loudspeaker ~ room ~ microphone ──► near ──►(−)──► residual
//!    │                                                  ▲        │
//!    └──────────────► filter ───────────────────────────┘        │
//!                       ▲ learns from ───────────────────────────┘
//! ```
//!
//! While a person speaks into the microphone the filter does not learn: it would learn the voice.
//! Speech is detected by its loudness, compared with the loudest sound that was played (Geigel's
//! detector).

/// Removes the echo of one loudspeaker from one microphone. Samples are −1 to 1.
#[derive(Clone, Debug)]
pub struct EchoCanceller {
    weights: Vec<f32>,
    /// The last samples played, stored twice in a row, so that the last `taps` are contiguous: the
    /// newest at `newest`, older ones behind it.
    played: Vec<f32>,
    newest: usize,
    step: f32,
    /// Number of samples for which it still does not learn.
    holds: usize,
}

/// The loudest echo, as a share of the loudest sample that was played.
const LOUDEST: f32 = 0.5;
/// The number of samples after a voice for which it does not learn: 30 ms at 16 kHz.
const HOLD: usize = 480;
/// Below this energy of the played sound there is nothing to learn.
const QUIET: f32 = 1e-6;

impl EchoCanceller {
    /// A canceller for echoes of up to `taps` samples. `step` is its learning rate, above 0 and
    /// below 2: 0.5 is for noisy rooms.
    #[must_use]
    pub fn new(taps: usize, step: f32) -> Self {
        let (weights, played) = (vec![0.0; taps], vec![0.0; 2 * taps]);
        Self { weights, played, newest: 0, step, holds: 0 }
    }

    /// The longest echo that it removes, in samples.
    #[must_use]
    pub fn taps(&self) -> usize {
        self.weights.len()
    }

    /// Removes the echo: `far` was played and `near` was heard at the same time. Returns the part
    /// of `near` that is no echo.
    pub fn cancel(&mut self, far: f32, near: f32) -> f32 {
        let taps = self.taps();
        if taps == 0 {
            return near;
        }
        self.newest = (self.newest + taps - 1) % taps;
        self.played[self.newest] = far;
        self.played[self.newest + taps] = far;
        let played = &self.played[self.newest..self.newest + taps];
        let residual = near - dot(&self.weights, played);
        let (energy, loudest) = (dot(played, played), loudest(played));
        if near.abs() > LOUDEST * loudest {
            self.holds = HOLD;
        }
        self.holds = self.holds.saturating_sub(1);
        if self.holds == 0 && energy > QUIET {
            let by = self.step * residual / energy;
            for (weight, &sample) in self.weights.iter_mut().zip(played) {
                *weight += by * sample;
            }
        }
        residual
    }
}

/// Number of sums that are computed at once, so that they fit the registers of the CPU.
const LANES: usize = 8;

/// The dot product of two slices of the same length.
pub(crate) fn dot(one: &[f32], other: &[f32]) -> f32 {
    let (ones, others) = (one.chunks_exact(LANES), other.chunks_exact(LANES));
    let rest: f32 = ones.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; LANES];
    for (ones, others) in ones.zip(others) {
        for lane in 0..LANES {
            sums[lane] += ones[lane] * others[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

fn loudest(samples: &[f32]) -> f32 {
    let chunks = samples.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(0.0_f32, |most, it| most.max(it.abs()));
    let mut most = [0.0_f32; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            most[lane] =
                if chunk[lane].abs() > most[lane] { chunk[lane].abs() } else { most[lane] };
        }
    }
    most.iter().fold(rest, |most, it| most.max(*it))
}

/// The attenuation of an echo, in dB, from the energies of the sound heard and of its residual.
#[must_use]
pub fn attenuation_db(heard: f64, left: f64) -> f64 {
    10.0 * (heard.max(f64::MIN_POSITIVE) / left.max(f64::MIN_POSITIVE)).log10()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conference::{Noise, Room};

    /// The attenuation of an echo in a room in each half second, at 16 kHz, by `canceller`.
    fn halves(mut canceller: EchoCanceller, mut voice: impl FnMut(usize) -> f32) -> Vec<f64> {
        let (mut room, mut noise) = (Room::new(7), Noise::new(1));
        let half = |half: usize| {
            let (mut heard, mut left) = (0.0, 0.0);
            for n in 0..8000 {
                let (far, said) = (noise.sample(), voice(half * 8000 + n));
                let echo = room.echo(far);
                let residual = canceller.cancel(far, echo + said) - said;
                heard += f64::from(echo * echo);
                left += f64::from(residual * residual);
            }
            attenuation_db(heard, left)
        };
        (0..6).map(half).collect()
    }

    #[test]
    fn an_echo_is_taken_out() {
        let halves = halves(EchoCanceller::new(Room::TAPS, 0.5), |_| 0.0);
        assert!(halves[1..].iter().all(|&db| db >= 20.0), "{halves:?}");
    }

    #[test]
    fn one_that_is_longer_than_the_filter_is_not() {
        let halves = halves(EchoCanceller::new(16, 0.5), |_| 0.0);
        assert!(halves.iter().all(|&db| db < 20.0), "{halves:?}");
    }

    #[test]
    fn a_voice_stays_and_is_not_learned() {
        let mut voice = Noise::new(99);
        let speaks = |n: usize| if (16_000..32_000).contains(&n) { voice.sample() } else { 0.0 };
        let halves = halves(EchoCanceller::new(Room::TAPS, 0.5), speaks);
        // At its beginning, the voice has not been detected yet.
        assert!(halves[4] >= 20.0 && halves[5] >= 20.0, "{halves:?}");
        assert!(halves[3] >= 15.0, "{halves:?}");
    }

    #[test]
    fn sums_are_of_all_there_is() {
        let numbers: Vec<_> = (0..19).map(|n| (n - 9) as f32).collect();
        for length in 0..numbers.len() {
            let these = &numbers[..length];
            assert_eq!(dot(these, these), these.iter().map(|it| it * it).sum::<f32>(), "{length}");
            assert_eq!(loudest(these), if length == 0 { 0.0 } else { 9.0 });
        }
    }

    #[test]
    fn where_nothing_was_played_all_is_a_voice() {
        let (mut canceller, mut voice) = (EchoCanceller::new(64, 0.5), Noise::new(3));
        for _ in 0..1000 {
            let said = voice.sample();
            assert_eq!(canceller.cancel(0.0, said), said);
        }
        assert_eq!(EchoCanceller::new(0, 0.5).cancel(1.0, 0.25), 0.25);
    }
}
