//! Streams of headers alone: layers, order and units as an encoder would write them, without
//! picture data. For tests, and for a synthetic decoder where no other clip is available.
//!
//! ```
//! use antiphon_player::{Clip, made};
//!
//! let clip = Clip::parse(made::layered(2, 60))?;
//! let letters: String = clip.frames().iter().map(|frame| frame.layer.letter()).collect();
//! assert_eq!(letters, "IPBbbIPBbb");
//! # Ok::<(), antiphon_player::Error>(())
//! ```

use crate::clip::Layer;

/// Bytes of a frame after its header, by layer.
const SIZES: [usize; 4] = [300, 400, 700, 1500];
/// Bits of the counters in slice headers.
const NUMBER_BITS: usize = 8;
const ORDER_BITS: usize = 10;

/// Units of five frames, shown as `I b B b P`; `rate` is in frames a second. Each unit is
/// [free](crate::clip::Unit::is_free).
pub fn layered(units: usize, rate: u32) -> Vec<u8> {
    let unit = [
        (Layer::Intra, 0),
        (Layer::Predicted, 4),
        (Layer::Bidirectional, 2),
        (Layer::Disposable, 1),
        (Layer::Disposable, 3),
    ];
    stream(rate, std::iter::repeat_n(&unit[..], units))
}

/// One unit of an `I` and `groups` of four frames, shown as `b B b P`: the form of most files.
pub fn chained(groups: usize, rate: u32) -> Vec<u8> {
    let mut unit = vec![(Layer::Intra, 0)];
    for first in (0..groups).map(|group| 4 * group) {
        unit.extend([
            (Layer::Predicted, first + 4),
            (Layer::Bidirectional, first + 2),
            (Layer::Disposable, first + 1),
            (Layer::Disposable, first + 3),
        ]);
    }
    stream(rate, std::iter::once(&unit[..]))
}

/// A stream of closed units. Each unit lists its frames in decode order: the layer, and the place
/// in the display order of the unit.
fn stream<'a>(rate: u32, units: impl Iterator<Item = &'a [(Layer, usize)]>) -> Vec<u8> {
    let mut stream = Vec::new();
    for unit in units {
        nal(&mut stream, 0x67, &sequence(rate).bytes);
        // Picture parameters; only a decoder would read them.
        nal(&mut stream, 0x68, &[0xce, 0x38, 0x80]);
        let mut number = 0;
        for (index, &(layer, place)) in unit.iter().enumerate() {
            let head = match layer {
                _ if index == 0 => 0x65,
                Layer::Disposable => 0x01,
                Layer::Bidirectional => 0x21,
                Layer::Predicted => 0x41,
                Layer::Intra => 0x61,
            };
            let mut bytes = slice(layer, index == 0, number, place).bytes;
            bytes.extend(std::iter::repeat_n(0xaa, SIZES[layer as usize]));
            nal(&mut stream, head, &bytes);
            number += usize::from(layer != Layer::Disposable);
        }
    }
    stream
}

/// Appends a start code, the first byte, and the payload with emulation prevention bytes.
fn nal(stream: &mut Vec<u8>, head: u8, payload: &[u8]) {
    stream.extend([0, 0, 0, 1, head]);
    let mut zeros = 0;
    for &byte in payload {
        if zeros >= 2 && byte <= 3 {
            stream.push(3);
            zeros = 0;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        stream.push(byte);
    }
}

/// Sequence parameters: 320x192, main profile.
fn sequence(rate: u32) -> Writer {
    let mut bits = Writer::default();
    bits.put(77, 8);
    bits.put(0, 8);
    bits.put(30, 8);
    bits.code(0);
    bits.code(NUMBER_BITS - 4);
    bits.code(0);
    bits.code(ORDER_BITS - 4);
    bits.code(4);
    bits.put(0, 1);
    bits.code(320 / 16 - 1);
    bits.code(192 / 16 - 1);
    // Frames, no cropping; usability information with timing alone.
    bits.put(0b1101, 4);
    bits.put(0b0_0001, 5);
    bits.put(1, 32);
    bits.put(2 * rate as usize, 32);
    bits.put(1, 1);
    bits.end();
    bits
}

fn slice(layer: Layer, idr: bool, number: usize, place: usize) -> Writer {
    let mut bits = Writer::default();
    bits.code(0);
    bits.code(match layer {
        Layer::Intra => 2,
        Layer::Predicted => 0,
        Layer::Bidirectional | Layer::Disposable => 1,
    });
    bits.code(0);
    bits.put(number % (1 << NUMBER_BITS), NUMBER_BITS);
    if idr {
        bits.code(0);
    }
    bits.put(2 * place % (1 << ORDER_BITS), ORDER_BITS);
    bits.end();
    bits
}

/// A writer of bits, the highest first.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    used: usize,
}

impl Writer {
    fn put(&mut self, value: usize, count: usize) {
        for bit in (0..count).rev() {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.used / 8;
            self.bytes[last] |= ((value >> bit & 1) as u8) << (7 - self.used % 8);
            self.used += 1;
        }
    }

    /// Writes `ue(v)`.
    fn code(&mut self, value: usize) {
        let length = (value + 1).ilog2() as usize;
        self.put(0, length);
        self.put(value + 1, length + 1);
    }

    /// Writes a stop bit, and zeros up to a byte.
    fn end(&mut self) {
        self.put(1, 1);
        self.put(0, (8 - self.used % 8) % 8);
    }
}
