//! The two laws of ITU-T G.711 (1988): eight bits for a sample of speech, approximately its
//! logarithm. Computed without tables; samples have 16 bits, as in ITU-T G.191.
//!
//! A code is a sign, the number of a segment (3 bits), and a place in it (4 bits). A segment is
//! twice as wide as the one before it.

/// One of the two laws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// µ-law, of North America and Japan.
    Mu,
    /// A-law, of other countries.
    A,
}

/// Number that µ-law adds to each sample, so that segments begin at powers of two.
const BIAS: i32 = 0x84;
/// Largest sample that µ-law can represent.
const CLIP: i32 = 32_635;
/// A-law sends even bits inverted.
const EVEN: u8 = 0x55;

impl Law {
    /// Returns the sample that a code stands for.
    pub fn decode(self, code: u8) -> i32 {
        match self {
            Self::Mu => mu_decode(code),
            Self::A => a_decode(code),
        }
    }

    /// Returns the code of a sample; a sample that is too large gets the code of the largest.
    pub fn encode(self, sample: i32) -> u8 {
        match self {
            Self::Mu => mu_encode(sample),
            Self::A => a_encode(sample),
        }
    }
}

fn mu_decode(code: u8) -> i32 {
    let bits = !code;
    let (segment, place) = (bits >> 4 & 7, i32::from(bits & 15));
    let size = (((place << 3) + BIAS) << segment) - BIAS;
    if bits & 0x80 != 0 { -size } else { size }
}

fn mu_encode(sample: i32) -> u8 {
    let size = sample.abs().min(CLIP) + BIAS;
    // The leading bit, from the eighth on, gives the segment.
    let segment = size.ilog2() - 7;
    let place = size >> (segment + 3) & 15;
    let sign = if sample < 0 { 0x80 } else { 0 };
    !(sign | (segment << 4) as u8 | place as u8)
}

fn a_decode(code: u8) -> i32 {
    let bits = code ^ EVEN;
    let (segment, place) = (bits >> 4 & 7, i32::from(bits & 15));
    let size = match segment {
        0 => (place << 4) + 8,
        _ => ((place << 4) + 0x108) << (segment - 1),
    };
    if bits & 0x80 != 0 { size } else { -size }
}

fn a_encode(sample: i32) -> u8 {
    // A negative sample is encoded by its one's complement.
    let (sign, size) = if sample < 0 { (0, !sample) } else { (0x80, sample) };
    let size = size.min(32_767);
    let (segment, place) = match size {
        0..256 => (0, size >> 4),
        _ => {
            let segment = size.ilog2() - 7;
            (segment, size >> (segment + 3) & 15)
        }
    };
    (sign | (segment << 4) as u8 | place as u8) ^ EVEN
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of segments: the decoder's outputs of tables 1a and 2a, which have 13 and 14 bits.
    #[test]
    fn segments_are_where_the_recommendation_has_them() {
        let of = |law: Law, places: [u8; 8]| places.map(|code| law.decode(code));
        let mu = [0x80, 0x8f, 0x9f, 0xaf, 0xbf, 0xcf, 0xdf, 0xef];
        assert_eq!(of(Law::Mu, mu), [8031, 4191, 2079, 1023, 495, 231, 99, 33].map(|it| 4 * it));
        assert_eq!([0xff, 0x7f, 0x00, 0xf0].map(|it| Law::Mu.decode(it)), [0, 0, -32_124, 120]);
        let a = [0xaa, 0xa5, 0xb5, 0x85, 0x95, 0xe5, 0xf5, 0xd5];
        assert_eq!(of(Law::A, a), [4032, 2112, 1056, 528, 264, 132, 66, 1].map(|it| 8 * it));
        assert_eq!(
            [0x55, 0x2a, 0x00, 0x7f].map(|it| Law::A.decode(it)),
            [-8, -32_256, -5504, -848]
        );
    }

    /// The sums are those of Python's `audioop`, over all codes.
    #[test]
    fn all_codes_are_as_another_program_has_them() {
        for (law, sum) in [(Law::Mu, 1_532_928), (Law::A, 1_564_672)] {
            let all = || (0..=255).map(|code| law.decode(code));
            assert_eq!(all().map(i32::abs).sum::<i32>(), sum);
            assert_eq!(all().sum::<i32>(), 0);
        }
    }

    #[test]
    fn a_code_comes_back() {
        for code in 0..=255 {
            assert_eq!(Law::A.encode(Law::A.decode(code)), code);
            // There are two zeros; 0x7f is the negative one.
            let wanted = if code == 0x7f { 0xff } else { code };
            assert_eq!(Law::Mu.encode(Law::Mu.decode(code)), wanted);
        }
    }

    #[test]
    fn a_sample_is_near_what_comes_of_it() {
        for sample in -32_768..=32_767 {
            for law in [Law::Mu, Law::A] {
                let back = law.decode(law.encode(sample));
                // Half of the widest step of the segment, and the clipping error.
                let near = sample.abs() / 16 + 16 + (sample.abs() - 32_256).max(0);
                assert!((back - sample).abs() <= near, "{law:?}: {sample} {back}");
            }
        }
        assert_eq!(Law::Mu.encode(100_000), Law::Mu.encode(32_124));
        assert_eq!(Law::A.encode(-100_000), Law::A.encode(-32_256));
    }
}
