//! A conference of people with loudspeakers, each heard by the others: capture, echo cancellation,
//! mix, output. Voices and rooms are synthetic.
//!
//! ```text
//!               voice ─────┐
//!   output ~ room ~ echo ──┴► capture ──► canceller ──► mix of the others' ──► output, 10 ms later
//!      └─────────────────────────────────────▲
//! ```
//!
//! All of it is plain state, processed one chunk at a time; [`Card`] tells which chunks were late.
//! The example `headset` runs it on an event loop.

use crate::Error;
use crate::echo::{EchoCanceller, attenuation_db, dot};

/// Samples per second.
pub const RATE: u32 = 16_000;
/// Length of a chunk, in nanoseconds.
pub const CHUNK_NS: u64 = 10_000_000;
/// Samples per chunk.
pub const CHUNK: usize = 160;
/// Number of chunks for which one person speaks, before the next one does.
const SPELL: u64 = 50;

/// White noise from a linear congruential generator, reproducible by its seed.
#[derive(Clone, Debug)]
pub struct Noise(u64);

/// A room: its response at the microphone to a loudspeaker.
#[derive(Clone, Debug)]
pub struct Room {
    answer: Vec<f32>,
    /// The last samples played, stored twice in a row, the newest first from `newest` on.
    played: Vec<f32>,
    newest: usize,
}

/// A sound card that plays a chunk every 10 ms, from a buffer of some chunks. A chunk that is not
/// written in time is an underrun.
#[derive(Clone, Debug)]
pub struct Card {
    start_ns: u64,
    ahead: u64,
    /// Chunks that were written, including late ones.
    pub written: u64,
    /// Chunks that were written too late.
    pub underruns: u64,
}

/// The people, their rooms and their mix.
#[derive(Clone, Debug)]
pub struct Conference {
    seats: Vec<Seat>,
    number: u64,
}

#[derive(Clone, Debug)]
struct Seat {
    voice: Noise,
    room: Room,
    canceller: EchoCanceller,
    output: Vec<f32>,
    cleaned: Vec<f32>,
    /// Energies while this person is silent: of the echo, and of its residual.
    heard: f64,
    left: f64,
}

impl Noise {
    /// The noise for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next sample, −1 to 1.
    pub fn sample(&mut self) -> f32 {
        // Knuth's constants for MMIX; the high bits are the most random ones.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }
}

impl Room {
    /// The length of the response, in samples: after that the room is silent.
    pub const TAPS: usize = 128;

    /// The room for a seed: echoes that decay, after a delay of 20 samples; less than half as loud
    /// as what is played.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut noise = Noise::new(seed);
        let decays = |n: usize| if n < 20 { 0.0 } else { (-((n - 20) as f32) / 30.0).exp() };
        let answer: Vec<_> = (0..Self::TAPS).map(|n| decays(n) * noise.sample()).collect();
        let sum: f32 = answer.iter().map(|it| it.abs()).sum();
        let answer = answer.into_iter().map(|it| 0.4 * it / sum).collect();
        Self { answer, played: vec![0.0; 2 * Self::TAPS], newest: 0 }
    }

    /// The sound at the microphone while this sample is played.
    pub fn echo(&mut self, played: f32) -> f32 {
        self.newest = (self.newest + Self::TAPS - 1) % Self::TAPS;
        self.played[self.newest] = played;
        self.played[self.newest + Self::TAPS] = played;
        dot(&self.answer, &self.played[self.newest..self.newest + Self::TAPS])
    }
}

impl Card {
    /// A card that plays the first chunk `ahead` chunks after `start_ns`: this is its latency.
    #[must_use]
    pub fn new(start_ns: u64, ahead: u64) -> Self {
        Self { start_ns, ahead, written: 0, underruns: 0 }
    }

    /// The time at which a chunk has been captured, and the work on it begins.
    #[must_use]
    pub fn captured_ns(&self, number: u64) -> u64 {
        self.start_ns + number * CHUNK_NS
    }

    /// Takes the next chunk to play. Returns whether it is in time.
    pub fn write(&mut self, now_ns: u64) -> bool {
        let in_time = now_ns <= self.captured_ns(self.written + self.ahead);
        self.written += 1;
        self.underruns += u64::from(!in_time);
        in_time
    }
}

impl Conference {
    /// A conference of `people` people, with filters of `taps` samples.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for fewer than two, or more than a thousand.
    pub fn new(people: usize, taps: usize) -> Result<Self, Error> {
        if !(2..=1000).contains(&people) {
            return Err(Error::Parameter("a conference has 2 to 1000 people"));
        }
        let seat = |number: u64| Seat {
            voice: Noise::new(number),
            room: Room::new(1000 + number),
            canceller: EchoCanceller::new(taps, 0.5),
            output: vec![0.0; CHUNK],
            cleaned: vec![0.0; CHUNK],
            heard: 0.0,
            left: 0.0,
        };
        Ok(Self { seats: (0..people as u64).map(seat).collect(), number: 0 })
    }

    /// Processes a chunk of each person, from capture to output.
    pub fn chunk(&mut self) {
        let speaker = (self.number / SPELL) as usize % self.seats.len();
        for (number, seat) in self.seats.iter_mut().enumerate() {
            seat.capture(number == speaker);
        }
        let others = self.seats.len() as f32 - 1.0;
        for n in 0..CHUNK {
            let all: f32 = self.seats.iter().map(|seat| seat.cleaned[n]).sum();
            for seat in &mut self.seats {
                seat.output[n] = (all - seat.cleaned[n]) / others.sqrt();
            }
        }
        self.number += 1;
    }

    /// The attenuation of all people's echoes together, in dB, after the previous call.
    pub fn attenuation_db(&mut self) -> f64 {
        let (mut heard, mut left) = (0.0, 0.0);
        for seat in &mut self.seats {
            heard += std::mem::take(&mut seat.heard);
            left += std::mem::take(&mut seat.left);
        }
        attenuation_db(heard, left)
    }
}

impl Seat {
    /// Captures a chunk, with the person's voice if it `speaks`, and removes the echo.
    fn capture(&mut self, speaks: bool) {
        for (output, cleaned) in self.output.iter().zip(&mut self.cleaned) {
            let echo = self.room.echo(*output);
            let voice = if speaks { 0.8 * self.voice.sample() } else { 0.0 };
            *cleaned = self.canceller.cancel(*output, echo + voice);
            if !speaks {
                self.heard += f64::from(echo * echo);
                self.left += f64::from(*cleaned * *cleaned);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_are_taken_out_of_a_conference() {
        let mut conference = Conference::new(3, Room::TAPS).expect("three");
        // Until each has heard the others.
        (0..4 * SPELL).for_each(|_| conference.chunk());
        let learning = conference.attenuation_db();
        (0..2 * SPELL).for_each(|_| conference.chunk());
        let learned = conference.attenuation_db();
        assert!(learned >= 20.0 && learned > learning, "{learning} dB, then {learned}");
    }

    #[test]
    fn what_one_says_is_heard_by_the_others_and_not_by_oneself() {
        let mut conference = Conference::new(2, Room::TAPS).expect("two");
        conference.chunk();
        let energy = |seat: &Seat| seat.output.iter().map(|it| it * it).sum::<f32>();
        assert_eq!(energy(&conference.seats[0]), 0.0);
        assert!(energy(&conference.seats[1]) > 1.0);
    }

    #[test]
    fn a_chunk_is_late_when_the_card_has_played_what_it_had() {
        let mut card = Card::new(1000, 2);
        assert_eq!(card.captured_ns(3), 1000 + 3 * CHUNK_NS);
        for (now_ns, in_time) in [
            (1000, true),
            (1000 + 3 * CHUNK_NS, true),
            (1001 + 4 * CHUNK_NS, false),
            // One late chunk does not make the next one late.
            (1001 + 4 * CHUNK_NS, true),
        ] {
            assert_eq!(card.write(now_ns), in_time, "{now_ns}");
        }
        assert_eq!((card.written, card.underruns), (4, 1));
    }

    #[test]
    fn a_conference_is_of_two_at_least() {
        assert!([0, 1, 1001].into_iter().all(|people| Conference::new(people, 8).is_err()));
    }
}
