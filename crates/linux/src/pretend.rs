//! A pretended machine with more CPUs and sockets than the real one, for tests: the feature
//! `pretend`.
//!
//! Locks take other paths where there are more than two CPUs, or several sockets. With this
//! feature, the platform answers a test program as such a machine would; without it, nothing of
//! this is compiled into any path. No shipped program has the feature.
//!
//! | question | answer |
//! |---|---|
//! | number of CPUs | [`Machine::cpus`] |
//! | socket of a thread | the thread's number modulo [`Machine::sockets`] |
//! | what heeds critical sections | a listener that counts what it is told ([`Sections`]) |
//! | crowded | by the count of spinning threads, and at random ([`Machine::crowded_one_in`]) |
//!
//! Signs of crowding of the real machine are ignored. A spinning thread yields its CPU at each load
//! of its word, so that many such threads make progress on few CPUs, in orders that a machine of
//! that size has and the real one would not. Each load uses [`LOOK_NS`] of the spin's budget,
//! however long the thread waited for its CPU.
//!
//! A program chooses the machine ([`pretend`]), or for programs that are not ours the variable
//! `ANTIPHON_PRETEND`: `16`, `16x2` (CPUs, sockets), `16x2/8` (crowded one time in 8).

#[cfg(feature = "pretend")]
use core::sync::atomic::AtomicU64;
#[cfg(feature = "pretend")]
use core::sync::atomic::Ordering::Relaxed;

use crate::local::Thread;

/// The pretended machine, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Number of CPUs of the process, at least 1.
    pub cpus: u16,
    /// Number of NUMA nodes with CPUs, at least 1.
    pub sockets: u16,
    /// One answer in this many, chosen at random, is "crowded"; with 0, none is.
    pub crowded_one_in: u16,
}

/// The calling thread's critical sections on a pretended machine.
#[cfg(feature = "pretend")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sections {
    /// Number of sections that the thread is in.
    pub depth: u32,
    /// Number of sections that the listener was told to have begun and not to have ended: 1 where
    /// the thread is in any, otherwise 0.
    pub told: u32,
}

/// Returns the calling thread's critical sections, as far as they were told.
#[cfg(feature = "pretend")]
#[must_use]
pub fn sections() -> Sections {
    crate::local::with(|thread| Sections {
        depth: thread.sections.load(Relaxed),
        told: thread.pretended.load(Relaxed),
    })
}

/// Told that the thread's outermost section begins.
pub(crate) fn section_begins(thread: &Thread) {
    add(thread, 1);
}

/// Told that it ends.
pub(crate) fn section_ends(thread: &Thread) {
    add(thread, u32::MAX);
}

#[cfg(feature = "pretend")]
fn add(thread: &Thread, more: u32) {
    thread.pretended.store(thread.pretended.load(Relaxed).wrapping_add(more), Relaxed);
}

#[cfg(not(feature = "pretend"))]
fn add(_: &Thread, _: u32) {}

/// The part of a spin's budget that each load of the word uses up, in nanoseconds.
pub(crate) const LOOK_NS: u32 = 1_000;

/// The environment has not been read yet.
#[cfg(feature = "pretend")]
const UNKNOWN: u64 = 0;
/// No machine is pretended.
#[cfg(feature = "pretend")]
const REAL: u64 = 1;
/// Set in every word that holds a machine.
#[cfg(feature = "pretend")]
const PRETENDED: u64 = 2;

#[cfg(feature = "pretend")]
static MACHINE: AtomicU64 = AtomicU64::new(UNKNOWN);

/// Returns whether a machine is pretended.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    machine().is_some()
}

/// The pretended machine, if any.
#[cfg(not(feature = "pretend"))]
#[inline(always)]
pub(crate) const fn machine() -> Option<Machine> {
    None
}

/// The pretended machine, if any.
#[cfg(feature = "pretend")]
pub(crate) fn machine() -> Option<Machine> {
    // Relaxed: the word holds the whole state.
    let word = match MACHINE.load(Relaxed) {
        UNKNOWN => ask_environment(),
        word => word,
    };
    let field = |nth: u32| (word >> (16 * nth)) as u16;
    (word & PRETENDED != 0).then(|| Machine {
        cpus: field(1),
        sockets: field(2),
        crowded_one_in: field(3),
    })
}

/// Makes the platform answer as `machine` would; with `None`, as the real machine does. Threads
/// that are waiting may still use earlier answers.
#[cfg(feature = "pretend")]
pub fn pretend(machine: Option<Machine>) {
    let field = |value: u16, nth: u32| u64::from(value) << (16 * nth);
    let word = machine.map_or(REAL, |machine| {
        PRETENDED
            | field(machine.cpus.max(1), 1)
            | field(machine.sockets.max(1), 2)
            | field(machine.crowded_one_in, 3)
    });
    MACHINE.store(word, Relaxed);
}

#[cfg(feature = "pretend")]
#[cold]
fn ask_environment() -> u64 {
    // SAFETY: the name is a zero-terminated string. The value belongs to the environment, which no
    // program that uses this changes meanwhile.
    let value = unsafe {
        let value = libc::getenv(c"ANTIPHON_PRETEND".as_ptr());
        if value.is_null() { None } else { core::ffi::CStr::from_ptr(value).to_str().ok() }
    };
    pretend(value.and_then(parse));
    MACHINE.load(Relaxed)
}

#[cfg(feature = "pretend")]
fn parse(text: &str) -> Option<Machine> {
    let (size, crowded) = text.split_once('/').unwrap_or((text, "0"));
    let (cpus, sockets) = size.split_once('x').unwrap_or((size, "1"));
    Some(Machine {
        cpus: cpus.parse().ok()?,
        sockets: sockets.parse().ok()?,
        crowded_one_in: crowded.parse().ok()?,
    })
}

#[cfg(all(test, feature = "pretend"))]
mod tests {
    use super::*;

    #[test]
    fn machines_are_written_in_three_ways() {
        let machine = |cpus, sockets, crowded_one_in| Machine { cpus, sockets, crowded_one_in };
        assert_eq!(parse("16"), Some(machine(16, 1, 0)));
        assert_eq!(parse("16x2"), Some(machine(16, 2, 0)));
        assert_eq!(parse("16x2/8"), Some(machine(16, 2, 8)));
        assert_eq!([parse(""), parse("x2"), parse("4/")], [None; 3]);
    }
}
