//! The processing of a frame: it is decoded on receipt, mixed as samples, and encoded when it is
//! sent.
//!
//! | codec | a frame of 1600 bytes is |
//! |---|---|
//! | `md5` | 400 samples of 32 bits; to receive and to send takes an MD5 of it: as published |
//! | `g711` | 1600 samples; µ-law for the first leg, A-law for the second, and so on |
//! | `opus` | 960 samples, in a packet of 160 bytes whatever else is said: see [`opus`] |
//! | `g711+opus` | by turns: the first leg has G.711, the second Opus, and so on |
//!
//! Where legs have different codecs, a leg with fewer samples than others has samples repeated
//! before mixing, and dropped again after it. This costs as much as a copy, and is not a filter.

use std::borrow::Cow;
use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

use antiphon::Mutex;
use antiphon_report::stats::Random;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use super::g711::Law;
use super::opus;

/// How the frames of a leg are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// No encoding; it costs the time of an MD5.
    Md5,
    /// The encoding of ITU-T G.711.
    G711,
    /// The encoding of RFC 6716.
    Opus,
}

const KINDS: [(&str, Kind); 3] = [("md5", Kind::Md5), ("g711", Kind::G711), ("opus", Kind::Opus)];
/// Maximal number of codecs that can take turns.
const TURNS: usize = 4;

/// The codecs of a conference's legs, which take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Codec {
    turns: [Kind; TURNS],
    count: usize,
}

/// The codec of a leg, and how its frames are adapted to those of others.
#[derive(Clone, Copy)]
pub struct Line {
    kind: Kind,
    law: Law,
    /// Size of a frame as it is sent, in bytes.
    pub bytes: usize,
    /// Samples of a frame.
    samples: usize,
    /// Samples of a frame when it is mixed.
    mixed: usize,
    /// Bits that are dropped when samples are mixed, because other codecs have only 16.
    shift: u32,
}

impl Codec {
    /// The codec of the publication.
    pub const MD5: Self = Self { turns: [Kind::Md5; TURNS], count: 1 };

    fn kinds(&self) -> &[Kind] {
        &self.turns[..self.count]
    }

    /// Returns whether a leg may have Opus.
    fn has_opus(self) -> bool {
        self.kinds().contains(&Kind::Opus)
    }

    /// Loads everything that legs need.
    ///
    /// # Errors
    ///
    /// A message that names the missing library and how to get it.
    pub fn prepare(self) -> Result<(), String> {
        if self.has_opus() {
            opus::library()?;
            opus::said(0);
        }
        Ok(())
    }

    /// Returns the stack that a part of a conference needs, in bytes; at least `usual`.
    pub fn stack_bytes(self, usual: usize) -> usize {
        if self.has_opus() { usual.max(opus::STACK_BYTES) } else { usual }
    }

    /// Returns the line of a leg. Frames have `frame` bytes if the codec leaves the choice.
    pub fn line(self, leg: usize, frame: usize) -> Line {
        let kinds = self.kinds();
        let kind = kinds[leg % kinds.len()];
        let law = if (leg / kinds.len()).is_multiple_of(2) { Law::Mu } else { Law::A };
        Line {
            kind,
            law,
            bytes: if kind == Kind::Opus { opus::BYTES } else { frame },
            samples: kind.samples(frame),
            mixed: kinds.iter().map(|kind| kind.samples(frame)).max().unwrap_or_default(),
            shift: if kind == Kind::Md5 && kinds.len() > 1 { 16 } else { 0 },
        }
    }
}

impl Kind {
    fn samples(self, frame: usize) -> usize {
        match self {
            Self::Md5 => frame / 4,
            Self::G711 => frame,
            Self::Opus => opus::SAMPLES,
        }
    }
}

impl Line {
    /// Returns a frame of a leg's peer: random bytes, or a tone.
    pub fn said(self, number: u32, mut random: Random) -> Cow<'static, [u8]> {
        if self.kind == Kind::Opus {
            return opus::said(number).into();
        }
        let mut frame = Vec::with_capacity(self.bytes + 8);
        while frame.len() < self.bytes {
            frame.extend(random.draw().to_le_bytes());
        }
        frame.truncate(self.bytes);
        frame.into()
    }

    /// Makes the receiver of its frames.
    pub fn ear(self) -> Ear {
        let library = || opus::library().expect("it was looked for before");
        Ear { line: self, opus: (self.kind == Kind::Opus).then(|| library().decoder()) }
    }

    /// Makes the sender of its frames.
    pub fn mouth(self) -> Mouth {
        let library = || opus::library().expect("it was looked for before");
        let encoder = || Mutex::new(library().encoder());
        Mouth { line: self, opus: (self.kind == Kind::Opus).then(encoder) }
    }
}

/// The receiver of a leg's frames, with the state of its decoder.
pub struct Ear {
    line: Line,
    opus: Option<opus::Decoder>,
}

impl Ear {
    /// Returns the samples of a frame for mixing, or `None` if the frame is not the expected one.
    pub fn decode(&mut self, number: u32, bytes: &[u8]) -> Option<Vec<i32>> {
        let Line { kind, law, shift, mixed, .. } = self.line;
        let samples = match (kind, &mut self.opus) {
            (Kind::Opus, Some(decoder)) => {
                let samples = decoder.decode(bytes)?;
                opus::is_tone(number, &samples).then(|| samples.map(i32::from).to_vec())?
            }
            (Kind::G711, _) => bytes.iter().map(|&code| law.decode(code)).collect(),
            _ => {
                black_box(Md5::digest(bytes));
                let (words, _) = bytes.as_chunks();
                words.iter().map(|&word| i32::from_le_bytes(word) >> shift).collect()
            }
        };
        Some(stretched(samples, mixed))
    }
}

/// The sender of a leg's frames, with the state of its encoder.
pub struct Mouth {
    line: Line,
    /// Locked because two frames may be sent at once, in any order, if one is late.
    opus: Option<Mutex<opus::Encoder>>,
}

impl Mouth {
    /// Returns the frame to send to the leg, or `None` if it can't be encoded.
    pub fn encode(&self, mixed: &[i32]) -> Option<Vec<u8>> {
        let Line { kind, law, shift, samples: count, bytes, .. } = self.line;
        let own = (mixed.len() != count).then(|| stretched(mixed.to_vec(), count));
        let samples = own.as_deref().unwrap_or(mixed);
        let frame = match (kind, &self.opus) {
            (Kind::Opus, Some(encoder)) => {
                let clamped = |at: usize| samples[at].clamp(i16::MIN.into(), i16::MAX.into());
                let frame = std::array::from_fn(|at| clamped(at) as i16);
                encoder.lock().encode(&frame)?
            }
            (Kind::G711, _) => samples.iter().map(|&sample| law.encode(sample)).collect(),
            _ => {
                let words = samples.iter().flat_map(|it| (it << shift).to_le_bytes());
                let bytes: Vec<u8> = words.collect();
                black_box(Md5::digest(&bytes));
                bytes
            }
        };
        (frame.len() == bytes).then_some(frame)
    }
}

/// Resamples to `count` samples by repeating or dropping samples; no samples give silence.
fn stretched(samples: Vec<i32>, count: usize) -> Vec<i32> {
    if samples.len() == count {
        return samples;
    } else if samples.is_empty() {
        return vec![0; count];
    }
    (0..count).map(|at| samples[at * samples.len() / count]).collect()
}

/// Adds the samples of a leg to those of the others.
pub fn mix(all: &mut Vec<i32>, leg: &[i32]) {
    all.resize(leg.len().max(all.len()), 0);
    for (sum, sample) in all.iter_mut().zip(leg) {
        *sum = sum.wrapping_add(*sample);
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = |name: &str| {
            let known = KINDS.iter().find(|(known, _)| *known == name);
            let known = known.map(|(_, kind)| *kind);
            known.ok_or_else(|| format!("no codec '{name}'; there are: md5, g711, opus"))
        };
        let kinds = text.split('+').map(kind).collect::<Result<Vec<_>, _>>()?;
        let mut turns = [Kind::Md5; TURNS];
        let Some(places) = turns.get_mut(..kinds.len()) else {
            return Err(format!("'{text}': at most {TURNS} codecs can take turns"));
        };
        places.copy_from_slice(&kinds);
        Ok(Self { turns, count: kinds.len() })
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |kind: &Kind| KINDS.iter().find(|(_, it)| it == kind).map_or("", |it| it.0);
        f.write_str(&self.kinds().iter().map(name).collect::<Vec<_>>().join("+"))
    }
}

impl From<Codec> for String {
    fn from(codec: Codec) -> Self {
        codec.to_string()
    }
}

impl TryFrom<String> for Codec {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codec(text: &str) -> Codec {
        text.parse().expect("a codec")
    }

    #[test]
    fn md5_is_that_of_rfc_1321() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&Md5::digest(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
    }

    #[test]
    fn what_is_decoded_alone_is_encoded_to_what_it_was() {
        let bytes: Vec<u8> = (0..1600).map(|at| (at * 7 % 251) as u8 & 0x7e).collect();
        for name in ["md5", "g711"] {
            for leg in [0, 1] {
                let line = codec(name).line(leg, bytes.len());
                let mut all = Vec::new();
                mix(&mut all, &line.ear().decode(0, &bytes).expect("samples"));
                assert_eq!(line.mouth().encode(&all), Some(bytes.clone()), "{name}, {leg}");
            }
        }
    }

    #[test]
    fn legs_are_added_up() {
        let mut all = Vec::new();
        mix(&mut all, &[1, -2, i32::MAX]);
        mix(&mut all, &[10, 20, 1, 4]);
        assert_eq!(all, [11, 18, i32::MIN, 4]);
    }

    #[test]
    fn samples_are_repeated_and_left_out() {
        assert_eq!(stretched(vec![1, 2, 3], 6), [1, 1, 2, 2, 3, 3]);
        assert_eq!(stretched(vec![1, 2, 3, 4], 2), [1, 3]);
        assert_eq!(stretched(vec![1, 2], 2), [1, 2]);
        assert_eq!(stretched(Vec::new(), 2), [0, 0]);
    }

    /// The samples of each of three legs reach all legs, in the right number.
    #[test]
    fn legs_of_several_codecs_are_mixed() {
        let codec = codec("md5+g711+opus");
        if let Err(why) = codec.prepare() {
            return eprintln!("NOT TESTED: {why}");
        }
        let lines = [0, 1, 2].map(|leg| codec.line(leg, 160));
        assert_eq!(lines.map(|line| (line.bytes, line.mixed)), [(160, 960); 3]);
        let (mut ears, mouths) = (lines.map(Line::ear), lines.map(Line::mouth));
        for number in 0..60 {
            let mut all = Vec::new();
            for (line, ear) in lines.iter().zip(&mut ears) {
                let frame = line.said(number, Random(number.into()));
                mix(&mut all, &ear.decode(number, &frame).expect("what was said"));
            }
            assert_eq!(all.len(), 960);
            for (line, mouth) in lines.iter().zip(&mouths) {
                assert_eq!(mouth.encode(&all).map(|frame| frame.len()), Some(line.bytes));
            }
        }
        // Silence is not the expected tone.
        assert_eq!(lines[2].ear().decode(9, &[0; 3]), None);
    }

    #[test]
    fn what_is_no_codec_is_told() {
        for name in ["md5", "g711", "opus", "md5+g711+opus", "g711+opus"] {
            assert_eq!(codec(name).to_string(), name);
            assert_eq!(String::from(codec(name)).try_into(), Ok(codec(name)));
        }
        for (wrong, told) in [
            ("MD5", "no codec 'MD5'; there are: md5, g711, opus"),
            ("opus+", "no codec ''"),
            ("md5+md5+md5+md5+md5", "at most 4"),
        ] {
            assert!(wrong.parse::<Codec>().is_err_and(|why| why.contains(told)), "{wrong}");
        }
    }
}
