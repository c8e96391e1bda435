//! Parsing recovers the structure of generated streams.

use crate::clip::{Clip, Layer, MOST_FRAMES};
use crate::{Error, made};

#[test]
fn layers_order_and_needs_are_read() {
    let clip = Clip::parse(made::layered(3, 60)).unwrap();
    assert_eq!(clip.frames().len(), 15);
    assert_eq!((clip.size(), clip.frame_ns()), ((320, 192), 1_000_000_000 / 60));
    for (number, unit) in clip.units().iter().enumerate() {
        let first = 5 * number;
        assert!(unit.is_free);
        assert_eq!(unit.frames, first..first + 5);
        let shown: Vec<_> = clip.frames()[unit.frames.clone()].iter().map(|f| f.shown).collect();
        assert_eq!(shown, [0, 4, 2, 1, 3].map(|place| first + place));
        let needs: Vec<_> = clip.frames()[unit.frames.clone()].iter().map(|f| f.needs).collect();
        assert_eq!(
            needs,
            [None, Some(0), Some(1), Some(2), Some(2)].map(|n| n.map(|n: usize| first + n))
        );
    }
    let bytes: usize = (0..15).map(|frame| clip.coded(frame).len()).sum();
    assert_eq!(bytes, made::layered(3, 60).len());
    assert_eq!(clip.head(), []);
}

#[test]
fn the_order_goes_on_when_its_counter_wraps() {
    // 4 * 600 + 1 frames: twice that is more than the ten bits of the counter.
    let clip = Clip::parse(made::chained(600, 30)).unwrap();
    assert_eq!(clip.units().len(), 1);
    assert!(!clip.units()[0].is_free);
    for (group, frames) in clip.frames()[1..].chunks(4).enumerate() {
        let shown: Vec<_> = frames.iter().map(|f| f.shown).collect();
        assert_eq!(shown, [4, 2, 1, 3].map(|place| 4 * group + place));
        assert_eq!(frames[0].layer, Layer::Predicted);
        // A decoder counts reference frames: the P frame after this group needs its B frame.
        assert_eq!(frames[0].needs, Some(if group == 0 { 0 } else { 4 * group - 2 }));
    }
}

#[test]
fn what_is_no_stream_is_an_error() {
    for stream in [Vec::new(), vec![7; 1000], made::layered(1, 60)[..30].to_vec()] {
        assert!(matches!(Clip::parse(stream), Err(Error::Stream(..))));
    }
    // A picture without parameters before it.
    let whole = made::layered(1, 60);
    let slice = whole.windows(5).position(|w| w == [0, 0, 0, 1, 0x65]).unwrap();
    let error = Clip::parse(whole[slice..].to_vec()).unwrap_err();
    assert!(error.to_string().contains("before any parameters"), "{error}");
}

#[test]
fn a_tick_of_a_clock_is_no_time_of_a_frame() {
    // Streams with a variable frame rate have such a tick. With 22 µs per frame, a player with
    // unlimited passes would take in thousands of passes at once.
    let of = |rate| Clip::parse(made::layered(1, rate)).unwrap().frame_ns();
    assert_eq!(of(1000), 1_000_000);
    assert_eq!((of(1001), of(45_000)), (1_000_000_000 / 30, 1_000_000_000 / 30));
}

#[test]
fn a_file_without_an_end_is_an_error() {
    let error = Clip::read("/dev/zero".as_ref()).unwrap_err();
    assert!(error.to_string().contains("2 GiB"), "{error}");
}

#[test]
fn a_clip_of_too_many_frames_is_an_error() {
    // One unit, whose last slice is repeated: the smallest possible frames.
    let mut stream = made::layered(1, 60);
    let last = stream.windows(4).rposition(|w| w == [0, 0, 0, 1]).unwrap();
    let slice: Vec<_> = stream[last..last + 16].to_vec();
    for _ in 0..MOST_FRAMES {
        stream.extend(&slice);
    }
    let error = Clip::parse(stream).unwrap_err();
    assert!(error.to_string().contains("2²⁰ frames"), "{error}");
}

#[test]
fn no_change_of_a_byte_makes_it_fail() {
    let whole = made::layered(1, 60);
    for at in 0..80 {
        for byte in [0, 1, 3, 0x80, 0xff] {
            let mut stream = whole.clone();
            stream[at] = byte;
            // Any result is accepted; the parser must not panic.
            if let Ok(clip) = Clip::parse(stream) {
                assert!(!clip.frames().is_empty());
            }
        }
    }
}
