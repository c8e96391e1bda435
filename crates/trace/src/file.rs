//! The file format of traces, version 2.
//!
//! ```text
//! magic     8 bytes    "ANTIPHON"
//! version   u32        2
//! block …              any number
//!
//! block:    tag        1 byte: A, E or T
//!           length     u32, bytes of payload; at most 64 MiB
//!           checksum   u32, CRC-32 (IEEE) of the payload
//!           payload
//! ```
//!
//! Fixed numbers are little-endian; `varint` is LEB128, at most ten bytes.
//!
//! | tag | payload |
//! |---|---|
//! | `A` | [`About`](crate::About) as JSON; the first block, once |
//! | `E` | varint thread, varint count, that many events; blocks of a thread in the order of time |
//! | `T` | [`Tables`](crate::Tables) as JSON; the last block, once. A file without it was cut off |
//!
//! An event is one byte, its code and flags; a varint, the nanoseconds since the previous event in
//! the block, or for the first event since the recording began; and varints that depend on its
//! code:
//!
//! | code | event | flag 32 | flag 64 | varints |
//! |---|---|---|---|---|
//! | 1 | Begins | | | |
//! | 2 | Ends | | | |
//! | 3 | Waits | | | lock, site |
//! | 4 | Takes | shared | tried | lock, site |
//! | 5 | GivesUp | | | lock |
//! | 6 | Releases | | | lock |
//! | 7 | Sleeps | | | condition, site |
//! | 8 | Wakes | notified | | condition |
//! | 9 | Notifies | all | | condition |
//! | 10 | Creates | | | thread |
//! | 11 | Joins | | | thread |
//! | 12 | Joined | | | thread |
//! | 13 | Off | | | blocked, queued: nanoseconds |
//! | 14 | Asked | | | nanoseconds |
//!
//! The part of the program's time that recording took is in `T` as [`Cost`](crate::Cost)s, at most
//! one per code: an event's time is read in the middle of its recording. In addition, an Asked has
//! its own duration.
//!
//! Version 1 had neither costs nor code 14.
//!
//! A reader refuses unknown versions, tags, codes and flags, missing keys of the JSON, numbers that
//! are in no table, and blocks after `T`.

/// The version that is written and read.
pub const VERSION: u32 = 2;

/// The longest payload of a block, in bytes.
pub const MAX_BLOCK: u32 = 64 << 20;

pub(crate) const MAGIC: [u8; 8] = *b"ANTIPHON";

/// Tags of blocks.
pub(crate) mod tag {
    pub(crate) const ABOUT: u8 = b'A';
    pub(crate) const EVENTS: u8 = b'E';
    pub(crate) const TABLES: u8 = b'T';
}
