//! The errors of clips, and of the programs that make and decode them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why a clip or a picture is not available.
#[derive(Debug)]
pub enum Error {
    /// A file can't be read or written.
    File(PathBuf, io::Error),
    /// The file is not an H.264 stream that can be played here: the reason, and its place (in
    /// bytes).
    Stream(&'static str, usize),
    /// The program `ffmpeg` is not installed.
    NoFfmpeg,
    /// `ffmpeg` is installed, but was built without a required encoder.
    NoEncoder,
    /// The file has no stream of this kind: `video`, `audio`.
    NoStream(&'static str),
    /// `ffmpeg` failed: its last message.
    Ffmpeg(String),
    /// No decoder is installed: the message of the loader.
    NoDecoder(String),
    /// The decoder refused a frame: the frame's number in decode order, and the decoder's message.
    Decoder(usize, String),
    /// No window can be opened: the reason.
    Display(String),
    /// An address can't be served from, or connected to.
    Socket(SocketAddr, io::Error),
    /// A parameter is out of its bounds: the reason.
    Parameter(&'static str),
}

impl Error {
    /// Maps an error of the file at `path` to this type.
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
