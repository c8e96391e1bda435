//! What becomes of the bytes of a frame: decoded when they are received, mixed as samples, encoded
//! when they are sent.
//!
//! | codec | a frame of 1600 bytes is |
//! |---|---|
//! | `md5` | 400 samples of 32 bits; to receive and to send takes an MD5 of it: as published |
//! | `g711` | 1600 samples; µ-law for the first leg, A-law for the second, and so on |

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use super::g711::Law;

/// How frames are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// Not at all; it takes the time of an MD5.
    Md5,
    /// By ITU-T G.711.
    G711,
}

impl Codec {
    /// As reports have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::G711 => "g711",
        }
    }

    /// The samples of a frame that a leg has received.
    pub fn decode(self, leg: usize, bytes: &[u8]) -> Vec<i32> {
        match self {
            Self::Md5 => {
                black_box(Md5::digest(bytes));
                let (words, _) = bytes.as_chunks();
                words.iter().map(|&word| i32::from_le_bytes(word)).collect()
            }
            Self::G711 => bytes.iter().map(|&code| law(leg).decode(code)).collect(),
        }
    }

    /// The frame that a leg is to be sent.
    pub fn encode(self, leg: usize, samples: &[i32]) -> Vec<u8> {
        match self {
            Self::Md5 => {
                let bytes: Vec<u8> = samples.iter().flat_map(|it| it.to_le_bytes()).collect();
                black_box(Md5::digest(&bytes));
                bytes
            }
            Self::G711 => samples.iter().map(|&sample| law(leg).encode(sample)).collect(),
        }
    }
}

fn law(leg: usize) -> Law {
    if leg.is_multiple_of(2) { Law::Mu } else { Law::A }
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
        match text {
            "md5" => Ok(Self::Md5),
            "g711" => Ok(Self::G711),
            "opus" => Err("opus wants the C library libopus, which this command is not built \
                           with; there are: md5, g711"
                .to_owned()),
            _ => Err(format!("no codec '{text}'; there are: md5, g711")),
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn md5_is_that_of_rfc_1321() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&Md5::digest(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
    }

    #[test]
    fn what_is_decoded_alone_is_encoded_to_what_it_was() {
        let bytes: Vec<u8> = (0..1600).map(|at| (at * 7 % 251) as u8 & 0x7e).collect();
        for codec in [Codec::Md5, Codec::G711] {
            for leg in [0, 1] {
                let mut all = Vec::new();
                mix(&mut all, &codec.decode(leg, &bytes));
                assert_eq!(codec.encode(leg, &all), bytes, "{codec}, {leg}");
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
    fn what_is_no_codec_is_told() {
        for name in ["md5", "g711"] {
            assert_eq!(name.parse::<Codec>().map(Codec::name), Ok(name));
        }
        assert!("opus".parse::<Codec>().is_err_and(|why| why.contains("libopus")));
        assert!("MD5".parse::<Codec>().is_err_and(|why| why.contains("there are: md5, g711")));
    }
}
