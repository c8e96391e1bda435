//! The mode of the library in this process, which is decided once.
//!
//! | mode | what happens |
//! |---|---|
//! | `UNDECIDED` | the first call decides: `EARLY`, `THEIRS`, `DISABLED` or `ASIDE` |
//! | `EARLY` | our locks; [`crate::load`] has not run yet |
//! | `OURS` | our locks; a wait is recorded if there is a recording |
//! | `TOLD` | the same, and each acquisition tells its critical section |
//! | `FULL` | our locks; every acquisition is recorded, and perhaps tells its critical section |
//! | `OBSERVED` | the C library's locks; every acquisition is recorded |
//! | `THEIRS` | the C library's locks, as `ANTIPHON_LOCK` asks; nothing is recorded (yet) |
//! | `DISABLED` | the C library's locks, for good: `ANTIPHON_DISABLE` is set, and wins |
//! | `ASIDE` | the C library's locks, for good: a tool needs them ([`crate::aside`]) |
//!
//! A mutex that is locked by one protocol and unlocked by the other excludes no thread, so the mode
//! never changes between our locks and the C library's. The decision is made at load, or in the
//! first call if that comes before our constructor, as an allocator's can. All modes are final,
//! except the first two and `THEIRS` before load; so a thread that has seen `OURS` need not check
//! again ([`crate::thread::ready`]).

use core::ffi::{CStr, c_char};
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_linux::Linux;
use antiphon_platform::Hints as _;

use crate::aside;
use crate::pieces::Pieces;

const UNDECIDED: i32 = 0;
const EARLY: i32 = 1;
pub(crate) const OURS: i32 = 2;
const TOLD: i32 = 3;
pub(crate) const FULL: i32 = 4;
// From this value on, the locks are the C library's.
pub(crate) const OBSERVED: i32 = 5;
const THEIRS: i32 = 6;
const DISABLED: i32 = 7;
const ASIDE: i32 = 8;

static MODE: AtomicI32 = AtomicI32::new(UNDECIDED);

// SAFETY: `environ(7)`: a pointer variable of the C library, which is aligned and always readable.
unsafe extern "C" {
    /// The C library's variable; null until the C library has started.
    pub(crate) static mut environ: *mut *const c_char;
}

/// The current mode.
#[inline]
pub(crate) fn mode() -> i32 {
    // Relaxed: the mode publishes no other data.
    MODE.load(Relaxed)
}

/// Returns whether the C library keeps the locks. Decides the mode if it is undecided.
#[inline]
pub(crate) fn theirs() -> bool {
    let mode = mode();
    mode >= OBSERVED || mode == UNDECIDED && decide() >= OBSERVED
}

/// Returns whether the library must do nothing at all. Decides the mode if it is undecided.
pub(crate) fn disabled() -> bool {
    theirs() && mode() == DISABLED
}

/// Returns whether a tool in the process needs the C library's locks. Decides the mode if it is
/// undecided.
pub(crate) fn aside() -> bool {
    theirs() && mode() == ASIDE
}

/// Returns whether every acquisition is recorded, whether we or the C library keep the locks.
#[inline]
pub(crate) fn records_all() -> bool {
    matches!(mode(), FULL | OBSERVED)
}

/// Returns whether anything may be recorded.
#[inline]
pub(crate) fn records() -> bool {
    matches!(mode(), OURS | TOLD | FULL | OBSERVED)
}

/// Decides the mode. Racing threads come to the same result.
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

/// Decides what is recorded and told. Called at load, when it is known whether anything heeds
/// sections. Locks that are held now have no record, and no section, which is tolerated.
pub(crate) fn settle(record_all: bool) {
    let (from, to) = match (mode(), record_all) {
        (EARLY, true) => (EARLY, FULL),
        (EARLY, false) if Linux::heeds_sections() => (EARLY, TOLD),
        (EARLY, false) => (EARLY, OURS),
        (THEIRS, true) => (THEIRS, OBSERVED),
        _ => return,
    };
    // No other thread runs this function.
    let _ = MODE.compare_exchange(from, to, Relaxed, Relaxed);
}

/// Returns whether the environment asks for the light form of our mutex.
pub(crate) fn light_wanted() -> bool {
    environment(c"ANTIPHON_LOCK").is_some_and(|name| name == c"shfl-mutex+light")
}

/// Returns whether the environment asks for critical sections to be told.
pub(crate) fn sections_wanted() -> bool {
    environment(c"ANTIPHON_SECTIONS").is_some_and(|value| !matches!(value.to_bytes(), b"" | b"0"))
}

/// The value of an environment variable.
pub(crate) fn environment(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the C library's variable, written at start, and by `setenv` with the address of
    // another array.
    variable(unsafe { environ }, name.to_bytes())
}

/// The value of a variable of the environment `at`: null, or an array of strings that ends with a
/// null pointer.
pub(crate) fn variable(mut at: *const *const c_char, name: &[u8]) -> Option<&'static CStr> {
    if at.is_null() {
        return None;
    }
    loop {
        // SAFETY: the array ends with a null pointer, where this loop returns.
        let entry = unsafe { *at };
        if entry.is_null() {
            return None;
        }
        // SAFETY: an entry is a string that ends in zero; those of the start are never freed.
        let entry = unsafe { CStr::from_ptr(entry) };
        let value = entry.to_bytes().strip_prefix(name).and_then(|rest| rest.strip_prefix(b"="));
        if let Some(value) = value {
            let skipped = entry.to_bytes().len() - value.len();
            // SAFETY: the value is inside the entry, which ends in zero.
            return Some(unsafe { CStr::from_ptr(entry.as_ptr().add(skipped)) });
        }
        // SAFETY: this entry was not the null pointer, so the next is in the array.
        at = unsafe { at.add(1) };
    }
}

/// Returns whether the C library has set `environ`.
fn started() -> bool {
    // SAFETY: as in `environment`.
    !unsafe { environ }.is_null()
}

/// Returns whether a variable is set to a value for which `is` returns true.
fn asks(name: &CStr, is: fn(&[u8]) -> bool) -> bool {
    match environment(name) {
        Some(value) => is(value.to_bytes()),
        None => !started() && asked_from_start(name.to_bytes(), is).unwrap_or(false),
    }
}

/// Reads the environment from the kernel, because the C library has not started yet.
fn asked_from_start(name: &[u8], is: fn(&[u8]) -> bool) -> Option<bool> {
    let mut entries = Pieces::of(c"/proc/self/environ", 0)?;
    while let Some(entry) = entries.next() {
        if let Some(value) = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(is(value));
        }
    }
    None
}
