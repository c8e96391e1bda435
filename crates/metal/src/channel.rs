//! A channel to the host: memory that an image shares with the program that has started it. Through
//! it the image asks the host to open, read and write files, to print lines, and for the time.
//!
//! | bytes | contents |
//! |---|---|
//! | 0 to 7 | [`MAGIC`], once the host is ready |
//! | from `(1 + n) × 32 KiB` on | slot `n`, of [`SLOTS`] |
//!
//! | word of a slot | of a request | of an answer |
//! |---|---|---|
//! | 0 | the state | the state |
//! | 1 | the [`Operation`] | 0, or the [`Error`] |
//! | 2 | the file | a file, a count, or nanoseconds |
//! | 3 | the offset in the file | |
//! | 4 | number of bytes | number of bytes of data |
//! | from 8 on | data | data |
//!
//! | state | owner of the slot, and its step | next state |
//! |---|---|---|
//! | `FREE` | the image, which writes a request | `ASKED` |
//! | `ASKED` | the host, which copies the request and writes the answer | `ANSWERED` |
//! | `ANSWERED` | the image, which copies the answer | `FREE` |
//!
//! - CHANNEL-1: only the owner of a slot writes to it, and writes the state last.
//! - CHANNEL-2: a side copies what the other has written, and reads only the copy. The host trusts
//!   nothing in it: an image may break all of these rules.
//! - CHANNEL-3: a slot has one call at a time, of the image: [`Taken`] gives it to the next call
//!   when the last one has dropped what it [held](Held), because its answer was copied.
//!
//! Both sides use this file. The memory is a slice of atomic words, so that no code here is unsafe;
//! the states order the accesses to a slot, and its other words need no order.

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Atomics};

/// The value of the first word when the host is ready: the letters of a name, and a version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"antiph\x00\x01");
/// Number of slots.
pub const SLOTS: usize = 31;
/// Length of the shared memory, in bytes.
pub const LENGTH: usize = (1 + SLOTS) * SLOT;
/// Largest number of bytes of data in a request or an answer.
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

/// A request of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Operation {
    /// Open the file whose path is in the data, to read it. Answer: the file.
    Open = 1,
    /// Create the file whose path is in the data, or empty it, to read and write it. Answer: the
    /// file.
    Create = 2,
    /// Read at most `count` bytes. Answer: their number, and the bytes; 0 at the end of the file.
    Read = 3,
    /// Write the data. Answer: the number of bytes that were written.
    Write = 4,
    /// Close the file.
    Close = 5,
    /// Print the data as a line.
    Print = 6,
    /// Tell the time of day. Answer: nanoseconds since 1 January 1970 UTC.
    Clock = 7,
}

/// Why a call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Error {
    /// The image has no channel. The host never sends this error: the image itself returns it.
    Absent = 1,
    /// The request is malformed.
    Malformed = 2,
    /// The path leaves the folder, or leads through a symbolic link.
    Outside = 3,
    /// There is no such file.
    NotFound = 4,
    /// The path names no regular file, but, for example, a folder.
    NotAFile = 5,
    /// The host does not allow this to the program that serves the channel.
    Denied = 6,
    /// No such file is open, or it was opened to be read only.
    NotOpen = 7,
    /// Too many files are open, a file is too large, or too much was written.
    TooMuch = 8,
    /// The host's system has reported another error.
    Failed = 9,
}

/// A request, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number of an [`Operation`].
    pub operation: u64,
    /// The file: the number that the answer to `Open` or `Create` had.
    pub file: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length of the data, or number of bytes to read.
    pub count: u64,
}

/// A word of the shared memory.
pub trait Word {
    /// Reads the word. `order` is `Relaxed` or `Acquire`.
    fn load(&self, order: Ordering) -> u64;
    /// Writes the word. `order` is `Relaxed` or `Release`.
    fn store(&self, value: u64, order: Ordering);
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        Self::load(self, order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        Self::store(self, value, order);
    }
}

/// The shared memory.
#[derive(Debug)]
pub struct Channel<'a, W = AtomicU64>(&'a [W]);

/// A slot for one call at a time.
#[derive(Debug)]
pub struct Slot<'a, W = AtomicU64>(&'a [W]);

/// The slots that calls of the image use, a bit for each: at most 32.
pub struct Taken<A: Atomics>(A::U32);

/// A slot that one call uses. Dropping it, when the answer was copied, gives the slot back.
#[must_use = "the slot is given back when this is dropped"]
pub struct Held<'a, A: Atomics> {
    taken: &'a Taken<A>,
    index: usize,
}

impl<W> Clone for Channel<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Channel<'_, W> {}

impl<W> Clone for Slot<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Slot<'_, W> {}

impl<A: Atomics> Taken<A> {
    /// No slot is used.
    pub const NEW: Self = Self(A::U32::ZERO);

    /// Gives a free slot, of `COUNT`, to the caller. Returns `None` if all are used.
    #[inline]
    pub fn take<const COUNT: usize>(&self) -> Option<Held<'_, A>> {
        const { assert!(COUNT <= u32::BITS as usize, "a bit for each slot") };
        // Relaxed: the exchange checks it again.
        let mut seen = self.0.load(Relaxed);
        loop {
            let index = seen.trailing_ones() as usize;
            if index >= COUNT {
                return None;
            }
            // Acquire: CHANNEL-3, the uses of the last call; pairs with the release in `drop`.
            match self.0.compare_exchange(seen, seen | 1 << index, Acquire, Relaxed) {
                Ok(_) => return Some(Held { taken: self, index }),
                Err(now) => seen = now,
            }
        }
    }
}

impl<A: Atomics> Held<'_, A> {
    /// Returns the number of the slot.
    #[inline]
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}

impl<A: Atomics> Drop for Held<'_, A> {
    #[inline]
    fn drop(&mut self) {
        // Release: CHANNEL-3, the uses of the slot by this call; pairs with the acquire in `take`.
        self.taken.0.fetch_and(!(1 << self.index), Release);
    }
}

impl Operation {
    /// Returns the operation with this number.
    #[must_use]
    pub fn of(number: u64) -> Option<Self> {
        use Operation::{Clock, Close, Create, Open, Print, Read, Write};
        [Open, Create, Read, Write, Close, Print, Clock]
            .into_iter()
            .find(|operation| *operation as u64 == number)
    }
}

impl Error {
    /// Returns the error with this number.
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

impl<'a, W: Word> Channel<'a, W> {
    /// Returns the channel in these words; `None` if they are too few.
    #[must_use]
    pub fn new(words: &'a [W]) -> Option<Self> {
        words.get(..LENGTH / 8).map(Self)
    }

    /// Announces that the host is ready.
    pub fn open(self) {
        // Release: the state of the slots; pairs with the acquire in `is_open`.
        // mutant: the models begin when the host is ready.
        self.0[0].store(MAGIC, Release);
    }

    /// Returns whether the host is ready.
    #[must_use]
    pub fn is_open(self) -> bool {
        // Acquire: pairs with the release in `open`.
        // mutant: as in `open`.
        self.0[0].load(Acquire) == MAGIC
    }

    /// Returns slot `index`.
    ///
    /// # Panics
    ///
    /// If there is no such slot.
    #[must_use]
    pub fn slot(self, index: usize) -> Slot<'a, W> {
        assert!(index < SLOTS, "a slot of the channel");
        let first = (1 + index) * SLOT / 8;
        Slot(&self.0[first..first + SLOT / 8])
    }
}

impl<'a, W: Word> Slot<'a, W> {
    /// Returns the slot in these words; `None` if they are too few.
    #[must_use]
    pub fn of(words: &'a [W]) -> Option<Self> {
        (words.len() > FIRST_DATA).then_some(Self(words))
    }

    /// Writes a request, for the image. The slot is free, and no other thread uses it. Data beyond
    /// [`DATA`] bytes is left out.
    pub fn ask(self, request: &Request, data: &[u8]) {
        self.write([request.operation, request.file, request.offset, request.count], data);
        // Release: the request; pairs with the acquire in `asked`. CHANNEL-1.
        self.0[STATE].store(ASKED, Release);
    }

    /// Returns whether the host has answered.
    #[must_use]
    #[inline]
    pub fn is_answered(self) -> bool {
        // Acquire: the answer; pairs with the release in `answer`.
        self.0[STATE].load(Acquire) == ANSWERED
    }

    /// Takes the answer, for the image, with as much of its data as `into` has room for. The host
    /// has answered. The slot is free afterwards.
    pub fn take(self, into: &mut [u8]) -> Result<u64, Error> {
        let (kind, value) = (self.word(KIND), self.word(VALUE));
        let count = usize::try_from(self.word(COUNT)).unwrap_or(usize::MAX).min(into.len());
        self.read(&mut into[..count.min(DATA)]);
        // Relaxed: only the image uses this state, and it keeps its own list of free slots. For the
        // host, all states but `ASKED` are alike.
        self.0[STATE].store(FREE, Relaxed);
        if kind == 0 { Ok(value) } else { Err(Error::of(kind)) }
    }

    /// Takes a request, for the host, if there is one, with at most as many bytes of data as a slot
    /// has room for. CHANNEL-2: `count` may be any number.
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

    /// Writes the answer to the request that the host has taken. Data beyond [`DATA`] bytes is left
    /// out.
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

    // Relaxed, here and below: the state orders these accesses.
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
