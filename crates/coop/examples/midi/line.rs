//! A serial line: when each byte is to begin, of messages that are due at a time.

use std::collections::VecDeque;

use crate::wire::{Encoder, Message};

/// A serial line: bytes of eight bits between a start bit and a stop bit.
#[derive(Debug)]
pub struct Line {
    byte_ns: u64,
    encoder: Encoder,
    /// Bytes that are to come, with when their message is due. Those of a message stand together.
    bytes: VecDeque<(u64, u8)>,
    /// The time when the byte before is over.
    free_ns: u64,
}

/// Bits of a byte on the line.
const BITS: u64 = 10;
/// The rates that a line may have.
pub const BAUD: std::ops::RangeInclusive<u64> = 50..=1_000_000;

impl Line {
    /// A line of `baud` bits a second, which is in [`BAUD`].
    pub fn new(baud: u64) -> Self {
        let (encoder, bytes) = (Encoder::default(), VecDeque::new());
        Self { byte_ns: (BITS * 1_000_000_000).div_ceil(baud), encoder, bytes, free_ns: 0 }
    }

    /// How long a byte takes, in nanoseconds.
    pub fn byte_ns(&self) -> u64 {
        self.byte_ns
    }

    /// Puts a message on the line, which is due at that time, and not before the last one.
    pub fn put(&mut self, at_ns: u64, message: Message) {
        let at_ns = at_ns.max(self.bytes.back().map_or(0, |(at_ns, _)| *at_ns));
        let bytes = self.encoder.encode(message);
        self.bytes.extend(bytes.into_iter().map(|byte| (at_ns, byte)));
    }

    /// When the next byte is to begin: when it is due, and the byte before is over.
    pub fn next_ns(&self) -> Option<u64> {
        self.bytes.front().map(|(at_ns, _)| self.free_ns.max(*at_ns))
    }

    /// Begins the next byte at `now_ns`. No other begins before it is over.
    pub fn begin(&mut self, now_ns: u64) -> Option<u8> {
        let (_, byte) = self.bytes.pop_front()?;
        self.free_ns = now_ns + self.byte_ns;
        Some(byte)
    }
}

/// A tune of `length_ns` nanoseconds from `from_ns` on, 120 quarter notes a minute: chords, a
/// control that moves, and a clock. Each message stands with the time when it is due, in order.
pub fn tune(from_ns: u64, length_ns: u64) -> Vec<(u64, Message)> {
    const SIXTEENTH_NS: u64 = 125_000_000;
    const CLOCK_NS: u64 = 500_000_000 / 24;
    let mut messages = vec![(0, Message::Program(0, 5))];
    for number in 0..length_ns / SIXTEENTH_NS {
        let (at_ns, root) = (number * SIXTEENTH_NS, 48 + (number * 7 % 12) as u8);
        let keys = [root, root + 4, root + 7];
        messages.extend(keys.map(|key| (at_ns, Message::NoteOn(0, key, 100))));
        let off_ns = at_ns + SIXTEENTH_NS * 3 / 4;
        // A velocity of 0 is a key that goes up, and keeps the running status.
        messages.extend(keys.map(|key| (off_ns, Message::NoteOn(0, key, 0))));
        messages.push((at_ns + SIXTEENTH_NS / 2, Message::Control(0, 1, (number % 128) as u8)));
    }
    messages.extend((0..length_ns / CLOCK_NS).map(|number| (number * CLOCK_NS, Message::Clock)));
    messages.sort_by_key(|(at_ns, _)| *at_ns);
    messages.into_iter().map(|(at_ns, message)| (from_ns + at_ns, message)).collect()
}
