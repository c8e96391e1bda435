//! A machine with more CPUs and sockets than this one has, for tests: the feature `pretend`.
//!
//! Locks take other paths where there are more than two CPUs, or several sockets. With this feature
//! a test program has the platform answer as such a machine would; without it nothing of this is
//! compiled into any path. No program that is shipped has the feature.
//!
//! | question | answer |
//! |---|---|
//! | how many CPUs | [`Machine::cpus`] |
//! | which socket | the thread's number modulo [`Machine::sockets`] |
//! | too few CPUs | by the count of spinning threads, and by lot ([`Machine::crowded_one_in`]) |
//!
//! Signs of crowding that the real machine shows are not looked at. A spinning thread yields its
//! CPU at each look, so that many of them make progress on few CPUs, in orders that a machine of
//! that size has and this one would not. Each look takes [`LOOK_NS`] of the spin's budget, whatever
//! the thread has waited for its CPU.
//!
//! A program says what machine it wants ([`pretend`]), or the variable `ANTIPHON_PRETEND` does, for
//! programs that are not ours: `16`, `16x2` (CPUs, sockets), `16x2/8` (crowded one time in 8).

#[cfg(feature = "pretend")]
use core::sync::atomic::AtomicU64;
#[cfg(feature = "pretend")]
use core::sync::atomic::Ordering::Relaxed;

/// The machine to pretend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// CPUs of the process, at least 1.
    pub cpus: u16,
    /// NUMA nodes with CPUs, at least 1.
    pub sockets: u16,
    /// One answer of this many, drawn by lot, says that CPUs are short; with 0, none does.
    pub crowded_one_in: u16,
}

/// The part of a spin's budget that each load of the word uses up, in nanoseconds.
pub(crate) const LOOK_NS: u32 = 1_000;

/// The environment has not been asked.
#[cfg(feature = "pretend")]
const UNKNOWN: u64 = 0;
/// The machine is what it is.
#[cfg(feature = "pretend")]
const REAL: u64 = 1;
/// Set in every word that holds a machine.
#[cfg(feature = "pretend")]
const PRETENDED: u64 = 2;

#[cfg(feature = "pretend")]
static MACHINE: AtomicU64 = AtomicU64::new(UNKNOWN);

/// Whether there is a machine to pretend.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    machine().is_some()
}

/// The machine to pretend.
#[cfg(not(feature = "pretend"))]
#[inline(always)]
pub(crate) const fn machine() -> Option<Machine> {
    None
}

/// The machine to pretend.
#[cfg(feature = "pretend")]
pub(crate) fn machine() -> Option<Machine> {
    // Relaxed: the word is all there is to it.
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

/// From now on the platform answers as `machine` would; with `None`, as the real machine does.
/// Threads that wait meanwhile may have asked before.
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
    // SAFETY: the name is a string that ends in zero. What is found is the environment's, which no
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
