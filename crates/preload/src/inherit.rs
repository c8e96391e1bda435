//! Decides whether the programs that this one executes inherit the library through the environment.
//!
//! With `ANTIPHON_CHILDREN=0` the library is for this program alone. It is loaded by then, so it
//! removes itself from the environment for all others, and restores the earlier values, which were
//! passed under names with a prefix ([`antiphon_record::inherit`]). No string is written to or
//! copied: an old value is the tail of the string that carried it.
//!
//! The kernel's array keeps its end, where some programs look for the auxiliary vector, and begins
//! later. The entries in front repeat an entry that stays, for programs that count from `argv` on.
//! An array that the C library has allocated meanwhile, for a constructor that ran before ours,
//! keeps its beginning, by which the C library frees and enlarges it.

use core::ffi::{CStr, c_char};
use core::ptr::null;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_record::inherit::{BEFORE, CHILDREN, SET};

use crate::mode;

static ALONE: AtomicBool = AtomicBool::new(false);

/// Returns whether the library is for this program alone.
pub(crate) fn is_alone() -> bool {
    // Relaxed: set once, at load.
    ALONE.load(Relaxed)
}

/// Removes the library from the environment, if it is for this program alone. Called at load, after
/// the last read of our variables.
///
/// `kernels` is the beginning of the kernel's array.
pub(crate) fn settle(kernels: *mut *const c_char) {
    // SAFETY: the C library's word, which is always readable.
    let asked = mode::variable(unsafe { mode::environ }, CHILDREN.as_bytes());
    if asked == Some(c"0") {
        ALONE.store(true, Relaxed);
        // SAFETY: the C library's variable. Code that may call `setenv` may write to it and to the
        // array, and constructors may call `setenv`.
        unsafe { mode::environ = restored(mode::environ, kernels) };
    }
}

/// Restores the array of variables; returns its new beginning.
///
/// # Safety
///
/// `begin` is null, or a writable array of strings that ends with a null pointer.
unsafe fn restored(begin: *mut *const c_char, kernels: *mut *const c_char) -> *mut *const c_char {
    if begin.is_null() {
        return begin;
    }
    // SAFETY: the count stops at the null pointer.
    let length = (0..).take_while(|&at| unsafe { !(*begin.add(at)).is_null() }).count();
    // SAFETY: `length` entries are in front of the null pointer.
    let entries = unsafe { core::slice::from_raw_parts_mut(begin, length) };
    if begin != kernels {
        let mut kept = 0;
        for at in 0..length {
            // SAFETY: a string of the environment.
            if let Some(entry) = unsafe { before(entries[at]) } {
                entries[kept] = entry;
                kept += 1;
            }
        }
        entries[kept..].fill(null());
        return begin;
    }
    let mut first = length;
    for at in (0..length).rev() {
        // SAFETY: a string of the environment.
        if let Some(entry) = unsafe { before(entries[at]) } {
            first -= 1;
            entries[first] = entry;
        }
    }
    let (left_free, kept) = entries.split_at_mut(first);
    left_free.fill(kept.first().map_or(c"".as_ptr(), |entry| *entry));
    kept.as_mut_ptr()
}

/// The entry as it was before this library: the entry itself, its tail, or none.
///
/// # Safety
///
/// The entry is a string that ends in zero.
unsafe fn before(entry: *const c_char) -> Option<*const c_char> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(entry) }.to_bytes();
    let is = |bytes: &[u8]| {
        SET.iter().any(|name| {
            bytes.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        })
    };
    match bytes.strip_prefix(BEFORE.as_bytes()) {
        // SAFETY: inside the string.
        Some(rest) if is(rest) => Some(unsafe { entry.add(BEFORE.len()) }),
        _ => (!is(bytes)).then_some(entry),
    }
}
