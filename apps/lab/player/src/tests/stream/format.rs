//! Messages are parsed as they were sent, and other bytes are rejected.

use crate::clip::Clip;
use crate::made;
use crate::stream::Quality;
use crate::stream::wire::{self, Answer, Reader, Said};

fn clip() -> Clip {
    Clip::parse(made::layered(4, 60)).unwrap()
}

/// All that a server sends for a clip, with the frames in a mixed order.
fn whole() -> Vec<u8> {
    let clip = clip();
    let mut bytes = wire::announce(&clip, 500).unwrap();
    for frame in [0, 5, 1, 2, 3] {
        bytes.extend(wire::frame(frame, clip.coded(frame).len()));
        bytes.extend(clip.coded(frame));
    }
    bytes.extend(wire::end());
    bytes
}

/// Parses the bytes in pieces of length `piece`.
fn hear(bytes: &[u8], piece: usize) -> Result<Vec<Said>, &'static str> {
    let (mut reader, mut said) = (Reader::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        reader.feed(piece);
        while let Some(one) = reader.next()? {
            said.push(one);
        }
    }
    Ok(said)
}

#[test]
fn what_is_said_is_heard_in_whatever_pieces_it_comes() {
    let clip = clip();
    for piece in [1, 3, 1000, 1 << 20] {
        let said = hear(&whole(), piece).unwrap();
        assert_eq!(said.len(), 7);
        let Said::Begin(heard, window_ns) = &said[0] else { panic!("{:?}", said[0]) };
        assert_eq!((*window_ns, heard.size()), (500_000_000, clip.size()));
        assert_eq!((heard.frame_ns(), heard.units()), (clip.frame_ns(), clip.units()));
        for (one, other) in heard.frames().iter().zip(clip.frames()) {
            let of = |frame: &crate::clip::Frame| (frame.layer, frame.shown, frame.needs);
            assert_eq!(of(one), of(other));
        }
        let Said::Frame(number, bytes) = &said[2] else { panic!("{:?}", said[2]) };
        assert_eq!((*number, &bytes[..]), (5, clip.coded(5)));
        assert!(matches!(said[6], Said::End));
    }
}

#[test]
fn many_short_messages_at_once_are_heard_one_by_one() {
    let (mut bytes, count) = (wire::announce(&clip(), 500).unwrap(), 5_000);
    for _ in 0..count {
        bytes.extend(wire::frame(3, 1));
        bytes.push(7);
    }
    let said = hear(&bytes, bytes.len()).unwrap();
    assert_eq!(said.len(), 1 + count);
    assert!(said[1..].iter().all(|one| matches!(one, Said::Frame(3, bytes) if bytes == &[7])));
}

#[test]
fn a_greeting_says_what_is_wanted() {
    for quality in Quality::ALL {
        assert_eq!(wire::greeted(&wire::hello(quality)), Ok(quality));
        assert_eq!(quality.name().parse::<Quality>().unwrap(), quality);
    }
    let mut hello = wire::hello(Quality::All);
    hello[4] = 9;
    assert_eq!(wire::greeted(&hello), Err(Some(Answer::Version)));
    assert_eq!(wire::greeted(b"GET / HT"), Err(None));
    hello = wire::hello(Quality::All);
    hello[6] = 4;
    assert_eq!(wire::greeted(&hello), Err(None));
    assert!("best".parse::<Quality>().unwrap_err().to_string().contains("intra"));
}

#[test]
fn what_is_out_of_bounds_is_refused_before_it_is_believed() {
    let large = u32::MAX.to_le_bytes();
    // Frames, width, height, window, time of a frame, head.
    for at in [8, 12, 16, 20, 28, 32] {
        let mut bytes = whole();
        bytes[at..at + 4].copy_from_slice(&large);
        assert_eq!(hear(&bytes[..40], 7).unwrap_err(), "a stream out of bounds", "at {at}");
    }
    let outline = 40;
    let message = outline + 3 * clip().frames().len();
    for (at, byte) in
        [(0, b'H'), (4, 9), (6, 2), (6, 7), (outline, 8), (message, 3), (message + 1, 1)]
            .into_iter()
            .chain([(message + 7, 1), (message + 11, 1)])
    {
        let mut bytes = whole();
        bytes[at] = byte;
        assert!(hear(&bytes, 1000).is_err(), "{byte} at {at}");
    }
    let mut bytes = whole();
    bytes.extend(wire::end());
    assert_eq!(hear(&bytes, 1000).unwrap_err(), "something after the end");
}

#[test]
fn no_change_of_a_byte_makes_it_fail() {
    let whole = whole();
    for at in (0..120).chain(whole.len() - 20..whole.len()) {
        for byte in [0, 1, 2, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            // Any result is accepted; the reader must not panic.
            let _ = hear(&bytes, 64);
        }
    }
}
