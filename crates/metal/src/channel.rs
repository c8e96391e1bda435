//! A channel to the host: memory that an image shares with the program that has started it. By it
//! the image has the host open, read and write files, print lines, and say what time it is.
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 7 | [`MAGIC`], when the host is ready |
//! | from `(1 + n) × 32 KiB` on | slot `n`, of [`SLOTS`] |
//!
//! | word of a slot | of a request | of an answer |
//! |---|---|---|
//! | 0 | the state | the state |
//! | 1 | the [`Operation`] | 0, or the [`Error`] |
//! | 2 | the file | a file, a count, or nanoseconds |
//! | 3 | where in the file | |
//! | 4 | how many bytes | how many bytes of data follow |
//! | from 8 on | data | data |
//!
//! | state | whose the slot is | next |
//! |---|---|---|
//! | `FREE` | the image's: it writes a request | `ASKED` |
//! | `ASKED` | the host's: it copies the request, and writes the answer | `ANSWERED` |
//! | `ANSWERED` | the image's: it copies the answer | `FREE` |
//!
//! - CHANNEL-1: only the side whose the slot is writes to it, its state last.
//! - CHANNEL-2: a side takes a copy of what the other has written, and only then looks at it. The
//!   host trusts nothing in it: an image may break all of these rules.
//!
//! Both sides use this file. Memory is a slice of atomic words, so that nothing here is unsafe; the
//! states order what is in a slot, and other words need no order.

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// What the first word is when the host is ready: the letters of a name, and a version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"antiph\x00\x01");
/// Number of slots.
pub const SLOTS: usize = 31;
/// Length of the shared memory, in bytes.
pub const LENGTH: usize = (1 + SLOTS) * SLOT;
/// The most bytes of data in a request or an answer.
pub const DATA: usize = SLOT - FIRST_DATA * 8;

const SLOT: usize = 32 << 10;
const FREE: u64 = 0;
const ASKED: u64 = 1;
const ANSWERED: u64 = 2;

const STATE: usize = 0;
const KIND: usize = 1;
const VALUE: usize = 2;
const OFFSET: usize = 3;
const COUNT: usize = 4;
const FIRST_DATA: usize = 8;

/// What an image asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Operation {
    /// Open the file whose path is in the data, to read it. Answer: the file.
    Open = 1,
    /// Create the file whose path is in the data, or empty it, to read and write it. Answer: the
    /// file.
    Create = 2,
    /// Read at most `count` bytes. Answer: how many, and these; 0 at the end of the file.
    Read = 3,
    /// Write the data. Answer: how many bytes were written.
    Write = 4,
    /// Close the file.
    Close = 5,
    /// Print the data as a line.
    Print = 6,
    /// Say what time it is. Answer: nanoseconds since the first of January 1970.
    Clock = 7,
}

/// Why a call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Error {
    /// The image has no channel. It is not sent: the image says so itself.
    Absent = 1,
    /// A request that is none.
    Malformed = 2,
    /// A path that leaves the folder, or leads through a symbolic link.
    Outside = 3,
    /// There is no such file.
    NotFound = 4,
    /// It is no file: a folder, perhaps.
    NotAFile = 5,
    /// The host does not let its own program do that.
    Denied = 6,
    /// No such file is open, or it was opened to be read only.
    NotOpen = 7,
    /// As many files are open as may be, or as large, or as much was written.
    TooMuch = 8,
    /// The host's system has failed otherwise.
    Failed = 9,
}

/// A request, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number of an [`Operation`].
    pub operation: u64,
    /// The file, as its opening was answered.
    pub file: u64,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// Length of the data, or how many bytes are to be read.
    pub count: u64,
}

/// The shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Channel<'a>(&'a [AtomicU64]);

/// A slot for one call at a time.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a>(&'a [AtomicU64]);

impl Operation {
    /// The operation of that number.
    #[must_use]
    pub fn of(number: u64) -> Option<Self> {
        use Operation::{Clock, Close, Create, Open, Print, Read, Write};
        [Open, Create, Read, Write, Close, Print, Clock]
            .into_iter()
            .find(|operation| *operation as u64 == number)
    }
}

impl Error {
    /// The error of that number.
    fn of(number: u64) -> Self {
        use Error::{Denied, Malformed, NotAFile, NotFound, NotOpen, Outside, TooMuch};
        [Malformed, Outside, NotFound, NotAFile, Denied, NotOpen, TooMuch]
            .into_iter()
            .find(|error| *error as u64 == number)
            .unwrap_or(Self::Failed)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "there is no channel to the host: start the image with `--share DIR`",
            Self::Malformed => "the host does not understand the request",
            Self::Outside => "the path leaves the shared folder, or has a symbolic link in it",
            Self::NotFound => "there is no such file",
            Self::NotAFile => "this is no regular file",
            Self::Denied => "the host does not allow it",
            Self::NotOpen => "no such file is open, or it was opened to be read only",
            Self::TooMuch => "too many files are open, or too much was written",
            Self::Failed => "the host's system has failed",
        })
    }
}

impl core::error::Error for Error {}

impl<'a> Channel<'a> {
    /// The channel in these words; `None` if they are too few.
    #[must_use]
    pub fn new(words: &'a [AtomicU64]) -> Option<Self> {
        words.get(..LENGTH / 8).map(Self)
    }

    /// Says that the host is ready.
    pub fn open(self) {
        // Release: slots that are free; pairs with the acquire in `is_open`.
        self.0[0].store(MAGIC, Release);
    }

    /// Whether the host was ready.
    #[must_use]
    pub fn is_open(self) -> bool {
        // Acquire: pairs with the release in `open`.
        self.0[0].load(Acquire) == MAGIC
    }

    /// Slot `index`.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn slot(self, index: usize) -> Slot<'a> {
        assert!(index < SLOTS, "a slot of the channel");
        let first = (1 + index) * SLOT / 8;
        Slot(&self.0[first..first + SLOT / 8])
    }
}

impl Slot<'_> {
    /// The image asks for something. The slot is free, and no one else uses it. Data beyond
    /// [`DATA`] is left out.
    pub fn ask(self, request: &Request, data: &[u8]) {
        self.write([request.operation, request.file, request.offset, request.count], data);
        // Release: the request; pairs with the acquire in `asked`. CHANNEL-1.
        self.0[STATE].store(ASKED, Release);
    }

    /// Whether the host has answered.
    #[must_use]
    #[inline]
    pub fn is_answered(self) -> bool {
        // Acquire: the answer; pairs with the release in `answer`.
        self.0[STATE].load(Acquire) == ANSWERED
    }

    /// The image takes the answer, which is there, and its data, as far as there is room. The slot
    /// is free then.
    pub fn take(self, into: &mut [u8]) -> Result<u64, Error> {
        let (kind, value) = (self.word(KIND), self.word(VALUE));
        let count = usize::try_from(self.word(COUNT)).unwrap_or(usize::MAX).min(into.len());
        self.read(&mut into[..count.min(DATA)]);
        // Relaxed: read by the image only, which keeps its own list of free slots. The host takes
        // the word for what it is not waiting for.
        self.0[STATE].store(FREE, Relaxed);
        if kind == 0 { Ok(value) } else { Err(Error::of(kind)) }
    }

    /// The host takes a request, if there is one, and its data, of which there are as many bytes as
    /// the slot has room for. CHANNEL-2: `count` may be any number.
    pub fn asked(self, data: &mut [u8; DATA]) -> Option<Request> {
        // Acquire: the request; pairs with the release in `ask`.
        if self.0[STATE].load(Acquire) != ASKED {
            return None;
        }
        let [operation, file, offset, count] = [KIND, VALUE, OFFSET, COUNT].map(|at| self.word(at));
        let has_data = Operation::of(operation) != Some(Operation::Read);
        let length = if has_data { usize::try_from(count).unwrap_or(DATA).min(DATA) } else { 0 };
        self.read(&mut data[..length]);
        Some(Request { operation, file, offset, count })
    }

    /// The host answers the request that it has taken. Data beyond [`DATA`] is left out.
    pub fn answer(self, result: Result<u64, Error>, data: &[u8]) {
        let (kind, value) = match result {
            Ok(value) => (0, value),
            Err(error) => (error as u64, 0),
        };
        let data = &data[..data.len().min(DATA)];
        self.write([kind, value, 0, data.len() as u64], data);
        // Release: the answer; pairs with the acquire in `is_answered`. CHANNEL-1.
        self.0[STATE].store(ANSWERED, Release);
    }

    // Relaxed, here and below: the state orders them.
    fn word(self, at: usize) -> u64 {
        self.0[at].load(Relaxed)
    }

    fn write(self, head: [u64; 4], data: &[u8]) {
        for (at, value) in (KIND..).zip(head) {
            self.0[at].store(value, Relaxed);
        }
        for (word, bytes) in self.0[FIRST_DATA..].iter().zip(data.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(whole), Relaxed);
        }
    }

    fn read(self, into: &mut [u8]) {
        for (word, bytes) in self.0[FIRST_DATA..].iter().zip(into.chunks_mut(8)) {
            let whole = word.load(Relaxed).to_le_bytes();
            bytes.copy_from_slice(&whole[..bytes.len()]);
        }
    }
}
