//! Clips made by the program `ffmpeg`: synthesised, taken out of other files, or re-encoded.
//!
//! The encoded video is H.264 in units of five frames, `I b B b P` as they are shown: `bframes=3`
//! with a fixed choice of frame types, a strict pyramid, and an I frame every five. So each unit is
//! [free](crate::clip::Unit::is_free), and a player can decode the important frames of a whole
//! look-ahead before the rest. One unit of many frames would be shorter to store, but a decoder
//! would have to pass all the details on its way to the next important frame. The video is also
//! tuned for fast decoding (no filter, no arithmetic coding): this halves the work, so that
//! decoding a frame of 640x360 is an event of at most a millisecond, except for some I frames.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Error, counter};

const PROGRAM: &str = "ffmpeg";
/// The options that make x264 produce frames with layers.
const LAYERS: &str = "keyint=5:min-keyint=5:bframes=3:b-pyramid=strict:b-adapt=0:ref=2:scenecut=0:\
                      open-gop=0:threads=1";
/// Makes the sides even, because chroma has half as many samples in each direction.
const EVEN: &str = "crop=trunc(iw/2)*2:trunc(ih/2)*2:0:0";
/// The first stream of a kind, as ffmpeg names it.
const VIDEO: &str = "0:v:0";
const SOUND: &str = "0:a:0";
/// Samples of sound per second.
pub const SOUND_RATE: u32 = 48_000;

/// A kind of synthetic clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Scenes of one to three seconds that differ in noise and colours, so that the costs of frames
    /// vary widely.
    Bursty,
    /// All frames are I frames and cost the same (§5.6 of the document).
    Uniform,
}

/// The parameters of a synthetic clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Making {
    /// The kind of the pictures.
    pub kind: Kind,
    /// Width and height, in pixels; even, and at least [`counter::ROOM`].
    pub size: (u32, u32),
    /// Frames a second.
    pub rate: u32,
    /// Length of the clip, in seconds.
    pub seconds: u32,
    /// Clips with different seeds are expensive at different times.
    pub seed: u32,
}

impl Default for Making {
    /// Ten seconds at 640x360 and 60 Hz, bursty: each frame decodes in about a millisecond.
    fn default() -> Self {
        Self { kind: Kind::Bursty, size: (640, 360), rate: 60, seconds: 10, seed: 0 }
    }
}

/// Makes a clip, with the frame's number drawn in each frame, as a byte stream. Blocks until that
/// is done.
///
/// # Errors
///
/// The size, rate or length is out of bounds; `ffmpeg` is missing, or fails.
pub fn make(making: &Making, to: &Path) -> Result<(), Error> {
    let (width, height) = making.size;
    let (least_width, least_height) = counter::ROOM;
    if (width as usize) < least_width || (height as usize) < least_height {
        return Err(Error::Parameter("a picture needs room for its counter: 288x64 at least"));
    }
    if !width.is_multiple_of(2) || !height.is_multiple_of(2) {
        return Err(Error::Parameter("width and height must be even"));
    }
    if making.rate == 0 || making.seconds == 0 {
        return Err(Error::Parameter("a clip has at least one frame a second, and one second"));
    }
    let common = format!("size={width}x{height}:rate={}:duration={}", making.rate, making.seconds);
    let counter = counter::filter();
    let (graph, options) = match making.kind {
        Kind::Bursty => {
            (format!("testsrc2={common},{},{counter}", scenes(making)), ["-crf", "31", LAYERS])
        }
        Kind::Uniform => {
            // The noise stands still; it gives the decoder work.
            let graph = format!("smptebars={common},noise=alls=8:all_seed=1,{counter}");
            (graph, ["-qp", "32", "keyint=1:threads=1"])
        }
    };
    let source = ["-f", "lavfi", "-i", &graph];
    encode(&source, &options, to)
}

/// The filters that make scenes.
fn scenes(making: &Making) -> String {
    let seed = making.seed;
    let long = 1 + seed % 3;
    let noise = |period: u32, strength: u32| {
        let phase = (seed * 7 + period) % period;
        format!(
            "noise=alls={strength}:allf=t:all_seed={seed}:\
             enable='lt(mod(t+{phase},{period}),{period}/2)'"
        )
    };
    format!("{},{},hue='h=80*floor(t/{long})'", noise(2 * long, 6 + seed % 5), noise(5, 20))
}

/// Re-encodes the first video stream of a file in layers, at its own rate and size; an odd side
/// loses one pixel.
///
/// # Errors
///
/// `ffmpeg` is missing, or fails; [`Error::NoStream`] if there is no video.
pub fn layer(file: &Path, to: &Path) -> Result<(), Error> {
    let file = named(file)?;
    encode(&["-i", &file, "-map", VIDEO, "-vf", EVEN], &["-crf", "23", LAYERS], to)
}

fn encode(source: &[&str], [quality, value, x264]: &[&str; 3], to: &Path) -> Result<(), Error> {
    let name = named(to)?;
    let coding = ["-pix_fmt", "yuv420p", "-c:v", "libx264", "-tune", "fastdecode"];
    let layers = [quality, value, "-x264-params", x264];
    let out = ["-f", "h264", "-y", &name];
    let made = run(PROGRAM, &[source, &coding, &layers, &out].concat());
    if made.is_err() {
        // An unfinished file is not a clip; the first error is the one to report.
        let _ = std::fs::remove_file(to);
    }
    made.map(drop)
}

/// Makes a tone as a file of Opus. Blocks until that is done.
///
/// # Errors
///
/// The frequency or the length is 0; `ffmpeg` is missing, or fails.
pub fn make_sound(hertz: u32, seconds: u32, to: &Path) -> Result<(), Error> {
    if hertz == 0 || seconds == 0 {
        return Err(Error::Parameter("a tone has a frequency and a length"));
    }
    let graph = format!("sine=frequency={hertz}:sample_rate={SOUND_RATE}:duration={seconds}");
    let name = named(to)?;
    let arguments =
        ["-f", "lavfi", "-i", &graph, "-c:a", "libopus", "-b:a", "64k", "-f", "ogg", "-y", &name];
    run(PROGRAM, &arguments).map(drop)
}

/// The first video stream of a file, as a byte stream, without re-encoding: up to about
/// `most_bytes` bytes.
///
/// # Errors
///
/// `ffmpeg` is missing, or fails, which includes video other than H.264; [`Error::NoStream`] if
/// there is no video.
pub fn video(file: &Path, most_bytes: u64) -> Result<Vec<u8>, Error> {
    // ffmpeg parses the number as a double.
    let (file, most) = (named(file)?, most_bytes.min(1 << 62).to_string());
    run(PROGRAM, &["-i", &file, "-map", VIDEO, "-c", "copy", "-fs", &most, "-f", "h264", "-"])
}

/// The first sound of a file, or its first `seconds`: one channel of samples at [`SOUND_RATE`].
/// Blocks until that is decoded.
///
/// # Errors
///
/// `ffmpeg` is missing, or fails; [`Error::NoStream`] if there is no sound.
pub fn sound(file: &Path, seconds: Option<u32>) -> Result<Vec<i16>, Error> {
    let (file, rate) = (named(file)?, SOUND_RATE.to_string());
    let seconds = seconds.map(|seconds| seconds.to_string());
    let source = ["-i", &file, "-map", SOUND];
    let length: Vec<_> = seconds.iter().flat_map(|seconds| ["-t", seconds]).collect();
    let samples = ["-ac", "1", "-ar", &rate, "-f", "s16le", "-"];
    let bytes = run(PROGRAM, &[&source[..], &length, &samples].concat())?;
    Ok(bytes.as_chunks().0.iter().map(|&pair| i16::from_le_bytes(pair)).collect())
}

/// The name of a file in a form that ffmpeg can't take for an option or a protocol.
fn named(file: &Path) -> Result<String, Error> {
    let name = file.to_str().ok_or(Error::Parameter("ffmpeg is given names of files as text"))?;
    Ok(format!("file:{name}"))
}

/// Runs a program, and returns its output.
fn run(program: &str, arguments: &[&str]) -> Result<Vec<u8>, Error> {
    let mut command = Command::new(program);
    command.args(["-nostdin", "-hide_banner", "-loglevel", "error"]).args(arguments);
    antiphon_linux::die_with_parent(command.stdin(Stdio::null()));
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::NoFfmpeg),
        Err(error) => return Err(Error::File(program.into(), error)),
    };
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Unknown encoder") {
        return Err(Error::NoEncoder);
    }
    if said.contains("matches no streams") {
        let of_sound = arguments.contains(&SOUND);
        return Err(Error::NoStream(if of_sound { "audio" } else { "video" }));
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Err(Error::Ffmpeg(last.map_or_else(|| output.status.to_string(), str::to_owned)))
}

/// Returns whether `ffmpeg` is installed.
pub fn is_installed() -> bool {
    run(PROGRAM, &["-version"]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_named() {
        let error = run("a-program-that-nobody-has", &[]).unwrap_err();
        assert!(matches!(error, Error::NoFfmpeg));
        assert!(error.to_string().contains("apt-get install ffmpeg"));
    }

    #[test]
    fn what_can_not_be_made_is_refused() {
        let plain = Making::default();
        for making in [
            Making { size: (100, 360), ..plain },
            Making { size: (641, 360), ..plain },
            Making { rate: 0, ..plain },
            Making { seconds: 0, ..plain },
        ] {
            let refused = make(&making, Path::new("never-made.h264"));
            assert!(matches!(refused, Err(Error::Parameter(_))), "{making:?}");
        }
    }
}
