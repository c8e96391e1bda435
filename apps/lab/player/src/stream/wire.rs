//! The messages between server and client: see the [module](super).

use crate::Error;
use crate::clip::{Clip, FRAME_TIMES, Layer, MOST_FRAMES, Outline, SIDES};

use super::Quality;

/// The first bytes that a client sends.
pub(crate) const HELLO: [u8; 4] = *b"aphC";
/// The first bytes that a server sends.
const ANSWER: [u8; 4] = *b"aphS";
/// The version of this format.
pub const VERSION: u16 = 1;
/// The length of a client's greeting, in bytes.
pub(crate) const HELLO_LEN: usize = 8;
const ANSWER_LEN: usize = 40;
const MESSAGE_LEN: usize = 12;
const OUTLINE_LEN: usize = 3;

/// The most bytes of a frame.
pub(crate) const MOST_BYTES: usize = 1 << 22;
/// The most bytes before the first frame.
pub(crate) const MOST_HEAD: usize = 1 << 16;
/// The allowed windows, in milliseconds.
pub(crate) const WINDOW_MS: std::ops::RangeInclusive<u32> = 10..=60_000;

/// A server's answer to a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Welcome = 0,
    /// The server speaks another version only.
    Version = 1,
    /// The server already has as many clients as it may have.
    Busy = 2,
}

/// The client's first message.
pub(crate) fn hello(quality: Quality) -> [u8; HELLO_LEN] {
    let [low, high] = VERSION.to_le_bytes();
    let [a, b, c, d] = HELLO;
    [a, b, c, d, low, high, quality as u8, 0]
}

/// Parses a greeting: the quality that the client requests. `Err` has the answer for a client that
/// speaks another version, or `None` if the peer is not a client.
pub(crate) fn greeted(hello: &[u8; HELLO_LEN]) -> Result<Quality, Option<Answer>> {
    let &[a, b, c, d, low, high, quality, zero] = hello;
    if [a, b, c, d] != HELLO {
        return Err(None);
    }
    if u16::from_le_bytes([low, high]) != VERSION {
        return Err(Some(Answer::Version));
    }
    let quality = Quality::ALL.get(usize::from(quality)).copied().filter(|_| zero == 0);
    quality.ok_or(None)
}

/// A refusal, after which nothing is sent.
pub(crate) fn refuse(answer: Answer) -> Vec<u8> {
    let mut bytes = vec![0; ANSWER_LEN];
    put_start(&mut bytes, answer);
    bytes
}

fn put_start(bytes: &mut [u8], answer: Answer) {
    bytes[..4].copy_from_slice(&ANSWER);
    bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
    bytes[6] = answer as u8;
}

/// The announcement of a clip, for a client that is served.
pub(crate) fn announce(clip: &Clip, window_ms: u32) -> Result<Vec<u8>, Error> {
    let outlines = clip.outlines().ok_or(Error::Stream("a frame far from its place", 0))?;
    let ((width, height), head) = (clip.size(), clip.head());
    let mut bytes = refuse(Answer::Welcome);
    for (at, number) in [(8, outlines.len() as u32), (12, width), (16, height), (20, window_ms)] {
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    bytes[24..32].copy_from_slice(&clip.frame_ns().to_le_bytes());
    bytes[32..36].copy_from_slice(&(head.len() as u32).to_le_bytes());
    bytes.extend_from_slice(head);
    for outline in outlines {
        let [low, high] = outline.offset.to_le_bytes();
        bytes.extend([outline.layer as u8 | u8::from(outline.is_first) << 2, low, high]);
    }
    Ok(bytes)
}

/// The header of a frame; the frame's bytes follow.
pub(crate) fn frame(number: usize, length: usize) -> [u8; MESSAGE_LEN] {
    message(1, number as u32, length as u32)
}

/// The message after the last frame.
pub(crate) fn end() -> [u8; MESSAGE_LEN] {
    message(2, 0, 0)
}

fn message(kind: u8, number: u32, length: u32) -> [u8; MESSAGE_LEN] {
    let mut bytes = [0; MESSAGE_LEN];
    bytes[0] = kind;
    bytes[4..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// A parsed message from a server.
#[derive(Debug)]
pub(crate) enum Said {
    /// A clip whose frames follow, and the window, in nanoseconds.
    Begin(Clip, u64),
    Frame(usize, Vec<u8>),
    End,
}

/// Parses what a server sends. It buffers at most a frame, or the announcement.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    bytes: Vec<u8>,
    /// Number of these bytes that were parsed. They are removed when more bytes arrive, not with
    /// each message, because each removal moves the bytes after them.
    heard: usize,
    /// Number of frames that were announced; 0 before the announcement.
    frames: usize,
    is_over: bool,
}

/// Why bytes don't conform to the protocol.
type Garbage = &'static str;

impl Reader {
    /// Appends bytes that have arrived.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.heard);
        self.heard = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes that were not parsed yet.
    fn rest(&self) -> &[u8] {
        &self.bytes[self.heard..]
    }

    /// Parses the next message; `None` if it is not complete.
    pub(crate) fn next(&mut self) -> Result<Option<Said>, Garbage> {
        if self.frames == 0 {
            return self.begin();
        }
        let rest = self.rest();
        let Some(head) = rest.first_chunk::<MESSAGE_LEN>() else { return Ok(None) };
        let (number, length) = (number(head, 4) as usize, number(head, 8) as usize);
        if self.is_over {
            return Err("something after the end");
        }
        match head[..4] {
            [1, 0, 0, 0] if number < self.frames && (1..=MOST_BYTES).contains(&length) => {
                let whole = MESSAGE_LEN + length;
                let Some(frame) = rest.get(MESSAGE_LEN..whole) else { return Ok(None) };
                let frame = frame.to_vec();
                self.heard += whole;
                Ok(Some(Said::Frame(number, frame)))
            }
            [2, 0, 0, 0] if number == 0 && length == 0 => {
                self.heard += MESSAGE_LEN;
                self.is_over = true;
                Ok(Some(Said::End))
            }
            [1, 0, 0, 0] => Err("a frame with an impossible number or length"),
            _ => Err("a message of an unknown kind"),
        }
    }

    fn begin(&mut self) -> Result<Option<Said>, Garbage> {
        let rest = self.rest();
        let Some(head) = rest.first_chunk::<ANSWER_LEN>() else { return Ok(None) };
        if head[..4] != ANSWER {
            return Err("not the answer of such a server");
        }
        if head[6] == Answer::Busy as u8 {
            return Err("that it serves as many as it may");
        }
        if head[4..6] != VERSION.to_le_bytes() || head[6] != Answer::Welcome as u8 {
            return Err("that it speaks another version");
        }
        let [frames, width, height, window_ms] = [8, 12, 16, 20].map(|at| number(head, at));
        let frame_ns = u64::from(number(head, 24)) | u64::from(number(head, 28)) << 32;
        let (frames, before) = (frames as usize, number(head, 32) as usize);
        let is_sound = (1..=MOST_FRAMES).contains(&frames)
            && [width, height].iter().all(|side| SIDES.contains(side))
            && WINDOW_MS.contains(&window_ms)
            && FRAME_TIMES.contains(&frame_ns)
            && before <= MOST_HEAD;
        if !is_sound {
            return Err("a stream out of bounds");
        }
        let whole = ANSWER_LEN + before + OUTLINE_LEN * frames;
        let Some(told) = rest.get(ANSWER_LEN..whole) else { return Ok(None) };
        let (head, outlines) = told.split_at(before);
        let outlines: Option<Vec<_>> = outlines.as_chunks().0.iter().map(outline).collect();
        let outlines = outlines.ok_or("a frame of an unknown layer")?;
        let clip = Clip::announced(head.to_vec(), &outlines, (width, height), frame_ns);
        self.heard += whole;
        self.frames = frames;
        Ok(Some(Said::Begin(clip, u64::from(window_ms) * 1_000_000)))
    }
}

/// Four bytes as a number. Panics if there are fewer.
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn outline(&[flags, low, high]: &[u8; OUTLINE_LEN]) -> Option<Outline> {
    let layer = Layer::ALL.into_iter().find(|&layer| layer as u8 == flags & 3)?;
    let offset = i16::from_le_bytes([low, high]);
    (flags < 8).then_some(Outline { layer, is_first: flags & 4 != 0, offset })
}
