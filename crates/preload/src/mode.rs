//! The mode of the library in this process: decided once, for good.
//!
//! | mode | what happens |
//! |---|---|
//! | `UNDECIDED` | the first call decides: `EARLY`, `THEIRS`, `DISABLED` or `ASIDE` |
//! | `EARLY` | our locks; [`crate::load`] has not run yet |
//! | `OURS` | our locks; a wait is recorded if there is a recording |
//! | `FULL` | our locks; every acquisition is recorded |
//! | `OBSERVED` | the C library's locks; every acquisition is recorded |
//! | `THEIRS` | the C library's locks, as `ANTIPHON_LOCK` asks; nothing is recorded (yet) |
//! | `DISABLED` | the same for good: `ANTIPHON_DISABLE` is in the environment, and wins |
//! | `ASIDE` | the same for good: a tool needs the C library's locks ([`crate::aside`]) |
//!
//! A mutex that was locked by one protocol and is unlocked by the other excludes no thread, so
//! there is no way from our locks to the C library's or back. The decision is made at load, or in
//! the first call if that comes before our constructor, as that of an allocator can. All but the
//! first two and `THEIRS` before load are for good, so a thread that has seen `OURS` needs not look
//! again ([`crate::thread::ready`]).

use core::ffi::{CStr, c_char};
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;

use crate::aside;
use crate::pieces::Pieces;

const UNDECIDED: i32 = 0;
const EARLY: i32 = 1;
pub(crate) const OURS: i32 = 2;
pub(crate) const FULL: i32 = 3;
// From this number on the locks are the C library's.
pub(crate) const OBSERVED: i32 = 4;
const THEIRS: i32 = 5;
const DISABLED: i32 = 6;
const ASIDE: i32 = 7;

static MODE: AtomicI32 = AtomicI32::new(UNDECIDED);

// SAFETY: `environ(7)`: a pointer of the C library's, which is aligned and always readable.
unsafe extern "C" {
    /// The C library's; null until that has started.
    pub(crate) static mut environ: *mut *const c_char;
}

/// The mode as it stands.
#[inline]
pub(crate) fn mode() -> i32 {
    // Relaxed: nothing else is published by it.
    MODE.load(Relaxed)
}

/// Whether the C library keeps the locks. Decides if that has not been done.
#[inline]
pub(crate) fn theirs() -> bool {
    let mode = mode();
    mode >= OBSERVED || mode == UNDECIDED && decide() >= OBSERVED
}

/// Whether the library is to do nothing at all. Decides if that has not been done.
pub(crate) fn disabled() -> bool {
    theirs() && mode() == DISABLED
}

/// Whether a tool is in the process that needs the C library's locks. Decides, as above.
pub(crate) fn aside() -> bool {
    theirs() && mode() == ASIDE
}

/// Whether every acquisition is recorded, whether we or the C library keep the locks.
#[inline]
pub(crate) fn records_all() -> bool {
    matches!(mode(), FULL | OBSERVED)
}

/// Whether there may be anything to record.
#[inline]
pub(crate) fn records() -> bool {
    matches!(mode(), OURS | FULL | OBSERVED)
}

/// Decides. Racing threads come to the same result.
#[cold]
pub(crate) fn decide() -> i32 {
    let decision = if asks(c"ANTIPHON_DISABLE", |value| !matches!(value, b"" | b"0")) {
        DISABLED
    } else if aside::tool().is_some() {
        ASIDE
    } else if asks(c"ANTIPHON_LOCK", |value| value == b"glibc") {
        THEIRS
    } else {
        EARLY
    };
    match MODE.compare_exchange(UNDECIDED, decision, Relaxed, Relaxed) {
        Ok(_) => decision,
        Err(theirs) => theirs,
    }
}

/// Settles what is recorded, at load. Locks that are held now have no record, which is borne.
pub(crate) fn settle(record_all: bool) {
    let (from, to) = match (mode(), record_all) {
        (EARLY, true) => (EARLY, FULL),
        (EARLY, false) => (EARLY, OURS),
        (THEIRS, true) => (THEIRS, OBSERVED),
        _ => return,
    };
    // No other thread settles.
    let _ = MODE.compare_exchange(from, to, Relaxed, Relaxed);
}

/// Whether the environment asks for the light form of our mutex.
pub(crate) fn light_wanted() -> bool {
    environment(c"ANTIPHON_LOCK").is_some_and(|name| name == c"shfl-mutex+light")
}

/// A variable of the environment.
pub(crate) fn environment(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the word is the C library's, written at start, and by `setenv` with another array.
    variable(unsafe { environ }, name.to_bytes())
}

/// A variable of the environment that begins `at`: null, or an array that ends in a null pointer,
/// of strings that end in zero.
pub(crate) fn variable(mut at: *const *const c_char, name: &[u8]) -> Option<&'static CStr> {
    if at.is_null() {
        return None;
    }
    loop {
        // SAFETY: the array ends in a null pointer, where we leave it.
        let entry = unsafe { *at };
        if entry.is_null() {
            return None;
        }
        // SAFETY: an entry ends in zero; those of the start are never freed.
        let entry = unsafe { CStr::from_ptr(entry) };
        let value = entry.to_bytes().strip_prefix(name).and_then(|rest| rest.strip_prefix(b"="));
        if let Some(value) = value {
            let skipped = entry.to_bytes().len() - value.len();
            // SAFETY: still inside the entry, which ends in zero.
            return Some(unsafe { CStr::from_ptr(entry.as_ptr().add(skipped)) });
        }
        // SAFETY: not behind the null pointer yet.
        at = unsafe { at.add(1) };
    }
}

/// Whether the C library has told where the environment is.
fn started() -> bool {
    // SAFETY: as in `environment`.
    !unsafe { environ }.is_null()
}

/// Whether a variable is set to a value of which `is` holds.
fn asks(name: &CStr, is: fn(&[u8]) -> bool) -> bool {
    match environment(name) {
        Some(value) => is(value.to_bytes()),
        None => !started() && asked_from_start(name.to_bytes(), is).unwrap_or(false),
    }
}

/// Reads the environment from the kernel, as the C library has not started yet.
fn asked_from_start(name: &[u8], is: fn(&[u8]) -> bool) -> Option<bool> {
    let mut entries = Pieces::of(c"/proc/self/environ", 0)?;
    while let Some(entry) = entries.next() {
        if let Some(value) = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(is(value));
        }
    }
    None
}
