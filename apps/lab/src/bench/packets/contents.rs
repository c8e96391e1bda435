//! The contents of a packet, and how it is processed.
//!
//! They are those of the dissertation's program: 10 buffers, the `i`th of `2000 + 30 i` bytes, with
//! a newline at each position `p`, `0 < p < 300`, that `20 + i` divides, and dashes elsewhere. Its
//! bimodal case has 100 buffers of `1000 + i` bytes; the dissertation does not say where their
//! newlines are, so they are at the same places here.

use antiphon_report::stats::Random;

/// The buffers that packets are copied from.
pub struct Buffers(Vec<Buffer>);

/// A buffer that packets are copied from.
pub struct Buffer {
    bytes: Box<[u8]>,
    /// Newlines are at the multiples of this number.
    step: usize,
}

/// Newlines occur only in this many bytes at the start.
const HEAD: usize = 300;
/// The newlines of a buffer are at the multiples of one number. `STEP` is the least such number;
/// there are `STEPS` of them.
const STEP: usize = 20;
const STEPS: usize = 10;

impl Buffers {
    /// The buffers of most cases.
    pub fn general() -> Self {
        Self((0..10).map(|number| Buffer::new(2000 + 30 * number, number)).collect())
    }

    /// The buffers of the bimodal case, as published.
    pub fn small() -> Self {
        Self((0..100).map(|number| Buffer::new(1000 + number, number % STEPS)).collect())
    }

    /// The buffer of a trace with sizes up to `most`; each packet is a prefix of it.
    pub fn sized(most: usize) -> Self {
        Self(vec![Buffer::new(most, 0)])
    }

    /// Returns a random buffer.
    pub fn any(&self, random: &mut Random) -> &Buffer {
        &self.0[(random.draw() % self.0.len() as u64) as usize]
    }

    /// Returns the first buffer.
    pub fn first(&self) -> &Buffer {
        &self.0[0]
    }
}

impl Buffer {
    fn new(bytes: usize, number: usize) -> Self {
        let step = STEP + number;
        let newline = |at: usize| at > 0 && at < HEAD && at.is_multiple_of(step);
        let bytes = (0..bytes).map(|at| if newline(at) { b'\n' } else { b'-' }).collect();
        Self { bytes, step }
    }

    /// Returns the whole buffer or its first `bytes` bytes, and the number of newlines in them.
    pub fn begin(&self, bytes: Option<usize>) -> (&[u8], u64) {
        let bytes = bytes.map_or(&*self.bytes, |bytes| &self.bytes[..bytes]);
        (bytes, (bytes.len().clamp(1, HEAD) - 1) as u64 / self.step as u64)
    }
}

/// Searches all bytes for newlines. Returns their positions.
#[inline(never)]
pub fn scan(packet: &[u8]) -> Vec<u32> {
    let mut places = Vec::new();
    for (at, &byte) in packet.iter().enumerate() {
        if byte == b'\n' {
            places.push(at as u32);
        }
    }
    places
}

/// Reads `bytes` random bytes of the packet. Returns their sum.
pub fn read(packet: &[u8], bytes: u32, random: &mut Random) -> u64 {
    let byte = |_| packet[(random.draw() % packet.len() as u64) as usize];
    (0..bytes).map(byte).map(u64::from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the positions of newlines, after checking that their number is as announced.
    fn newlines(buffer: &Buffer, bytes: Option<usize>) -> Vec<u32> {
        let (bytes, said) = buffer.begin(bytes);
        let places = scan(bytes);
        assert_eq!(places.len() as u64, said, "{} bytes", bytes.len());
        places
    }

    #[test]
    fn packets_are_those_of_the_dissertation() {
        let Buffers(all) = Buffers::general();
        let bytes: Vec<_> = all.iter().map(|packet| packet.bytes.len()).collect();
        assert_eq!(bytes, [2000, 2030, 2060, 2090, 2120, 2150, 2180, 2210, 2240, 2270]);
        let counts: Vec<_> = all.iter().map(|packet| newlines(packet, None).len()).collect();
        assert_eq!(counts, [14, 14, 13, 13, 12, 11, 11, 11, 10, 10]);
        assert_eq!(newlines(&all[9], None), [29, 58, 87, 116, 145, 174, 203, 232, 261, 290]);
        let known = all.iter().flat_map(|packet| &packet.bytes).all(|byte| b"-\n".contains(byte));
        assert!(known);
    }

    #[test]
    fn small_ones_are_a_hundred() {
        let Buffers(all) = Buffers::small();
        assert_eq!((all.len(), all[0].bytes.len(), all[99].bytes.len()), (100, 1000, 1099));
        assert!(all.iter().all(|packet| (10..=14).contains(&newlines(packet, None).len())));
    }

    #[test]
    fn a_packet_may_have_any_size() {
        let buffers = Buffers::sized(1500);
        let of = |bytes| newlines(buffers.first(), Some(bytes)).len();
        assert_eq!([1, 20, 21, 300, 1500].map(of), [0, 0, 1, 14, 14]);
    }

    #[test]
    fn each_buffer_is_drawn() {
        let (buffers, mut random) = (Buffers::general(), Random(1));
        let mut seen = [0; 10];
        (0..1000).for_each(|_| seen[(buffers.any(&mut random).bytes.len() - 2000) / 30] += 1);
        assert!(seen.iter().all(|&times| times > 50), "{seen:?}");
    }
}
