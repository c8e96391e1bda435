//! Clips that ffmpeg makes and OpenH264 decodes. Where a program or library is not installed, a
//! message says so, and nothing is tested.

use std::path::PathBuf;
use std::sync::Arc;

use crate::clip::{Clip, Kind, Layer, nals};
use crate::decode::{Costly, Costs, Decode, OpenH264, Progress};
use crate::ffmpeg::{self, Making};
use crate::{Cpu, Error, Headless, Options, Player, VirtualLoop, counter};

/// A directory for the files of a test.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("antiphon-player-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Files that can't be removed do not matter.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A small clip; `None` if ffmpeg is missing.
pub(super) fn made(name: &str, making: &Making) -> Option<Arc<Clip>> {
    let scratch = Scratch::new(name);
    let file = scratch.0.join("clip.h264");
    match ffmpeg::make(making, &file) {
        Ok(()) => Some(Arc::new(Clip::open(&file).unwrap())),
        Err(Error::NoFfmpeg) => {
            eprintln!("not tested: {}", Error::NoFfmpeg);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The decoder; `None` if it is missing.
fn decoder() -> Option<OpenH264> {
    match OpenH264::load() {
        Ok(decoder) => Some(decoder),
        Err(error @ Error::NoDecoder(_)) => {
            eprintln!("not tested: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn small() -> Making {
    Making { size: (320, 192), seconds: 1, ..Making::default() }
}

#[test]
fn a_layer_is_in_the_first_byte_of_a_generated_clip() {
    let Some(clip) = made("layers", &small()) else { return };
    assert_eq!((clip.frames().len(), clip.units().len()), (60, 12));
    assert_eq!((clip.size(), clip.frame_ns()), ((320, 192), 1_000_000_000 / 60));
    for (number, frame) in clip.frames().iter().enumerate() {
        let slice = nals(clip.coded(number)).find(|n| matches!(n.kind, Kind::Slice { .. }));
        assert_eq!(slice.unwrap().importance as usize, frame.layer as usize);
    }
    assert!(clip.units().iter().all(|unit| unit.is_free));
    let shown: Vec<_> = clip.frames()[..5].iter().map(|frame| frame.shown).collect();
    assert_eq!(shown, [0, 4, 2, 1, 3]);
}

#[test]
fn a_uniform_clip_stands_alone_in_each_frame() {
    let Some(clip) = made("uniform", &Making { kind: ffmpeg::Kind::Uniform, ..small() }) else {
        return;
    };
    assert!(clip.frames().iter().all(|frame| frame.layer == Layer::Intra && frame.needs.is_none()));
    let sizes: Vec<_> = (0..clip.frames().len()).map(|frame| clip.coded(frame).len()).collect();
    let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
    assert!(most < &(2 * least), "{least} to {most} bytes");
}

#[test]
fn each_frame_is_the_same_whatever_was_dropped_before() {
    let (Some(clip), Some(mut decoder)) = (made("drops", &small()), decoder()) else { return };
    let mut whole = Vec::new();
    for frame in 0..clip.frames().len() {
        let Ok(Progress::Done(picture)) = decoder.decode(&clip, frame, 0) else {
            panic!("{frame}")
        };
        assert_eq!(counter::read(&picture), Some(clip.frames()[frame].shown as u16));
        whole.push(picture);
    }
    for least in [Layer::Bidirectional, Layer::Predicted, Layer::Intra] {
        let pass = 1 + least as u64;
        // The last unit first, with its frames by importance.
        for unit in clip.units().iter().rev() {
            for frame in unit.frames.clone().filter(|&n| clip.frames()[n].layer >= least) {
                let decoded = decoder.decode(&clip, frame, pass).unwrap();
                assert!(decoded == Progress::Done(whole[frame].clone()), "{frame} of {least:?}");
            }
        }
    }
}

#[test]
fn frames_of_an_overloaded_player_are_the_right_ones() {
    let (Some(clip), Some(decoder)) =
        (made("counter", &Making { seconds: 2, ..small() }), decoder())
    else {
        return;
    };
    let cpu = Cpu::new(0, 60);
    let clock = cpu.clone();
    let costs = Costs::by_size(&clip, 12_000_000).unwrap();
    let decoder = Costly::new(decoder, costs, move |ns| clock.spend(ns));
    let options = Options { passes: Some(2), has_counter: true, ..Options::default() };
    let mut player = Player::new(clip, decoder, Headless, options);
    VirtualLoop::new(cpu).run(&mut [&mut player], u64::MAX);
    let report = player.report();
    assert_eq!((report.misread, report.disorder, report.refused), (0, 0, 0), "{report}");
    assert_eq!(report.read, report.total().shown);
    assert_eq!(report.layer(Layer::Intra).dropped, 0, "{report}");
    assert!(report.layer(Layer::Disposable).dropped > 0, "{report}");
}

#[test]
fn a_file_of_another_kind_is_played_by_way_of_ffmpeg() {
    let scratch = Scratch::new("files");
    let raw = scratch.0.join("clip.h264");
    match ffmpeg::make(&small(), &raw) {
        Err(Error::NoFfmpeg) => return eprintln!("not tested: {}", Error::NoFfmpeg),
        made => made.unwrap(),
    }
    let again = scratch.0.join("again.h264");
    ffmpeg::layer(&raw, &again).unwrap();
    let clip = Clip::open(&again).unwrap();
    assert_eq!((clip.frames().len(), clip.units().len()), (60, 12));

    let odd = scratch.0.join("odd.mkv");
    let source = "testsrc2=size=321x193:rate=10:duration=1";
    let made = std::process::Command::new("ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i", source, "-c:v", "ffv1"])
        .arg(&odd)
        .status();
    assert!(made.unwrap().success());
    ffmpeg::layer(&odd, &again).unwrap();
    assert_eq!(Clip::open(&again).unwrap().size(), (320, 192));
    let (all, some) = [u64::MAX, 1000].map(|most| ffmpeg::video(&raw, most).unwrap()).into();
    assert!((1001..all.len()).contains(&some.len()) && all.starts_with(&some));

    let deep = scratch.0.join("deep.mp4");
    let source = "testsrc2=size=64x64:rate=10:duration=1";
    let made = std::process::Command::new("ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i", source, "-pix_fmt", "yuv444p"])
        .args(["-c:v", "libx264"])
        .arg(&deep)
        .status();
    assert!(made.unwrap().success());
    let error = Clip::open(&deep).unwrap_err();
    assert!(error.to_string().contains("not 4:2:0"), "{error}");

    let tone = scratch.0.join("tone.ogg");
    ffmpeg::make_sound(440, 1, &tone).unwrap();
    let samples = ffmpeg::sound(&tone, None).unwrap();
    assert!(samples.len().abs_diff(48_000) < 1000, "{}", samples.len());
    // A tone of 440 Hz crosses zero upwards 440 times per second.
    let rises = samples.windows(2).filter(|w| w[0] < 0 && w[1] >= 0).count();
    assert!(rises.abs_diff(440) <= 2, "{rises}");
    let less = ffmpeg::sound(&tone, Some(1)).unwrap();
    assert!(samples.starts_with(&less[..40_000]) && less.len() <= 48_000);
    for refused in [Clip::open(&tone).err(), ffmpeg::layer(&tone, &again).err()] {
        assert_eq!(refused.unwrap().to_string(), "the file has no video stream");
    }
    let refused = ffmpeg::sound(&deep, None).unwrap_err();
    assert_eq!(refused.to_string(), "the file has no audio stream");
    assert!(matches!(Clip::open(&scratch.0.join("none.h264")), Err(Error::File(..))));
    assert!(!scratch.0.join("none.h264").exists());
}

#[test]
fn what_a_decoder_takes_is_a_trace_for_others() {
    let (Some(clip), Some(mut decoder)) = (made("costs", &small()), decoder()) else { return };
    let costs = Costs::of_decoder(&clip, &mut decoder, 2).unwrap();
    assert!(costs.mean_ns() > 0);
    assert!(matches!(Costs::of_decoder(&clip, &mut decoder, 0), Err(Error::Parameter(_))));
    let lossy = Costs::measured(vec![1; 59], &clip);
    assert!(matches!(lossy, Err(Error::Parameter(_))));
}

#[test]
fn a_stream_of_one_long_unit_is_played_too() {
    let Some(decoder) = decoder() else { return };
    let scratch = Scratch::new("long");
    let file = scratch.0.join("long.mp4");
    let source = format!("testsrc2=size=320x192:rate=60:duration=2,{}", counter::filter());
    let made = std::process::Command::new("ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i", &source, "-pix_fmt", "yuv420p"])
        .args(["-c:v", "libx264"])
        .arg(&file)
        .status();
    if made.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return eprintln!("not tested: {}", Error::NoFfmpeg);
    }
    let clip = Arc::new(Clip::open(&file).unwrap());
    assert_eq!((clip.frames().len(), clip.units().len()), (120, 1));
    assert!(!clip.units()[0].is_free);
    let cpu = Cpu::new(1_000_000_000, 80);
    let clock = cpu.clone();
    let costs = Costs::by_size(&clip, 16_000_000).unwrap();
    let decoder = Costly::new(decoder, costs, move |ns| clock.spend(ns));
    let options = Options { passes: Some(2), has_counter: true, ..Options::default() };
    let mut player = Player::new(clip, decoder, Headless, options);
    VirtualLoop::new(cpu).run(&mut [&mut player], u64::MAX);
    let report = player.report();
    assert_eq!((report.disorder, report.refused), (0, 0), "{report} {:?}", report.refusal);
    assert_eq!(report.read, report.total().shown);
    assert!(report.layer(Layer::Disposable).dropped > 0, "{report}");
    assert!(report.layer(Layer::Predicted).shown > 0, "{report}");
}
