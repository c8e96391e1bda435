//! The errors of a clip, and of the programs that make and decode it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why there is no clip, or no picture.
#[derive(Debug)]
pub enum Error {
    /// A file can't be read or written.
    File(PathBuf, io::Error),
    /// The file is no H.264 stream that can be played here; with what is wrong, and where (a byte).
    Stream(&'static str, usize),
    /// The program `ffmpeg` is not installed.
    NoFfmpeg,
    /// `ffmpeg` is there, and was built without an encoder that is needed.
    NoEncoder,
    /// The file has no stream of that kind: `video`, `audio`.
    NoStream(&'static str),
    /// `ffmpeg` failed, and what it said last.
    Ffmpeg(String),
    /// No decoder is installed, and what the loader said.
    NoDecoder(String),
    /// The decoder refused a frame: its number in decode order, and what it said.
    Decoder(usize, String),
    /// There is no window, and why.
    Display(String),
    /// An address can't be served from, or connected to.
    Socket(SocketAddr, io::Error),
    /// A parameter that makes no sense, and why.
    Parameter(&'static str),
}

impl Error {
    /// Maps an error of a file to this one.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File(path, error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Stream(what, at) => write!(f, "not a stream that can be played: {what} at {at}"),
            Self::NoFfmpeg => {
                f.write_str("ffmpeg is not installed (Debian, Ubuntu: apt-get install ffmpeg)")
            }
            Self::NoEncoder => f.write_str(
                "this ffmpeg can't make clips: it was built without libx264 or libopus (Debian, \
                 Ubuntu: apt-get install ffmpeg)",
            ),
            Self::NoStream(kind) => write!(f, "the file has no {kind} stream"),
            Self::Ffmpeg(said) => write!(f, "ffmpeg failed: {said}"),
            Self::NoDecoder(said) => write!(
                f,
                "no H.264 decoder is installed (Debian: apt-get install libopenh264-7): {said}"
            ),
            Self::Decoder(frame, said) => write!(f, "frame {frame} can't be decoded: {said}"),
            Self::Display(why) => write!(
                f,
                "no window: {why} (DISPLAY names a display as :0; without a screen: \
                 apt-get install xvfb, and xvfb-run COMMAND)"
            ),
            Self::Socket(address, error) => write!(f, "{address}: {error}"),
            Self::Parameter(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(_, error) | Self::Socket(_, error) => Some(error),
            _ => None,
        }
    }
}
