//! NAL units of a byte stream (H.264, annex B): the bytes between start codes, `00 00 01`.

use std::ops::Range;

/// The type of a NAL unit, from its first byte (table 7-1), as far as a player needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A part of a picture.
    Slice {
        /// Whether it begins a closed unit: nothing after it needs anything before it.
        idr: bool,
    },
    /// Parameters of a sequence.
    Sequence,
    /// Parameters of pictures.
    Picture,
    /// Partitions of slices, which are not supported.
    Partition,
    /// Messages, delimiters, and unknown types.
    Other,
}

/// A NAL unit in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nal {
    /// The type of the unit.
    pub kind: Kind,
    /// `nal_ref_idc`, 0 to 3: 0 if no picture needs this unit.
    pub importance: u8,
    /// The place where its start code begins.
    pub start: usize,
    /// The range of its bytes, without the start code and trailing zeros.
    pub bytes: Range<usize>,
}

/// The NAL units of `stream`, in order; empty ones are left out.
pub fn nals(stream: &[u8]) -> impl Iterator<Item = Nal> {
    let ends = starts(stream).skip(1).chain([stream.len()]);
    starts(stream).zip(ends).filter_map(|(start, end)| nal(stream, start, end))
}

/// The places where start codes begin.
fn starts(stream: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at + 3 <= stream.len() {
            // No start code contains a byte above 1.
            if stream[at + 2] > 1 {
                at += 3;
            } else if stream[at..at + 3] == [0, 0, 1] {
                at += 3;
                return Some(at - 3);
            } else {
                at += 1;
            }
        }
        None
    })
}

fn nal(stream: &[u8], start: usize, end: usize) -> Option<Nal> {
    let first = start + 3;
    // A zero before the next start code belongs to that one, or is padding.
    let last = first + stream[first..end].iter().rposition(|&byte| byte != 0)?;
    let head = stream[first];
    let kind = match head & 31 {
        1 => Kind::Slice { idr: false },
        5 => Kind::Slice { idr: true },
        2..=4 => Kind::Partition,
        7 => Kind::Sequence,
        8 => Kind::Picture,
        _ => Kind::Other,
    };
    // Includes the zero of a longer start code.
    let start = start - usize::from(start > 0 && stream[start - 1] == 0);
    Some(Nal { kind, importance: head >> 5 & 3, start, bytes: first..last + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_between_start_codes_of_either_length() {
        let stream = [9, 0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x65, 2, 0, 0, 0, 1, 0x01, 7, 0, 0];
        let found: Vec<_> = nals(&stream).map(|n| (n.kind, n.importance, n.bytes)).collect();
        let slice = |idr| Kind::Slice { idr };
        let wanted =
            [(Kind::Sequence, 3, 5..7), (slice(true), 3, 10..12), (slice(false), 0, 16..18)];
        assert_eq!(found, wanted);
    }

    #[test]
    fn no_bytes_make_it_fail() {
        for stream in [&[][..], &[0, 0, 1], &[0, 0, 1, 0, 0, 1], &[0; 9], &[1; 9]] {
            assert_eq!(nals(stream).count(), 0, "{stream:?}");
        }
    }
}
