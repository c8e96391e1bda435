//! Executes programs where the library can't be found: in another root directory or mount
//! namespace. The loader would search for it without success, and report that on the program's
//! stderr.
//!
//! Such a program gets a copy of the environment in which `LD_PRELOAD` has its value without this
//! library. The copy is on the stack, and made by `elsewhere.c`: nothing is allocated, and the
//! environment itself stays as it is, for calls that fail and for the parent of a `vfork`, whose
//! root directory is still the old one.
//!
//! Before each call the kernel is asked whether the library exists, so it does not matter which
//! call changed the root (`chroot`, `pivot_root`, `setns`).

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::slice;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_linux::{optional, system_call};

use super::{OURS, PRELOAD, Texts, foreign, inherited};
use crate::real::{self, Entry, Real};
use crate::sharing::address;
use crate::{inherit, objects};

/// File name of the library for event loops, which the command puts beside this one.
const FOR_LOOPS: &[u8] = b"antiphon-preload-coop.so";

/// The path at which the loader found the library; null if it is not known.
static LIBRARY: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// Stores the path of the library. Called at load.
pub(crate) fn find_library() {
    if let Some(library) = objects::ours() {
        LIBRARY.store(library.path().as_ptr().cast_mut(), Relaxed);
    }
}

/// Returns whether the library is still at the path where the loader found it. Also true if that is
/// not known: under a filter, the kernel is not asked.
pub(super) fn is_in_reach() -> bool {
    let path = LIBRARY.load(Relaxed);
    let at = libc::AT_FDCWD as isize as usize;
    let args = [at, path.addr(), libc::R_OK as usize, 0, 0, 0];
    // SAFETY: the loader's string, which ends in zero, is there for good.
    let look = || unsafe { system_call(libc::SYS_faccessat, args) };
    path.is_null() || optional(look).is_none_or(|refused| refused == 0)
}

/// The function to jump to: the C library's or, where the library can't be found, the function of
/// `elsewhere.c` that calls it with a copy of the environment.
pub(super) fn entry<F: Copy>(of: &Real<F>, elsewhere: unsafe extern "C" fn() -> c_int) -> Entry {
    if inherit::is_alone() || is_in_reach() { address(of) } else { elsewhere as *const c_void }
}

// SAFETY: `elsewhere.c` defines these. They are jumped to and never called from here, with the
// arguments of the functions that they are named after.
unsafe extern "C" {
    pub(super) fn antiphon_execve() -> c_int;
    pub(super) fn antiphon_execv() -> c_int;
    pub(super) fn antiphon_execl() -> c_int;
    pub(super) fn antiphon_execle() -> c_int;
    pub(super) fn antiphon_execvp() -> c_int;
    pub(super) fn antiphon_execlp() -> c_int;
    pub(super) fn antiphon_execvpe() -> c_int;
    pub(super) fn antiphon_fexecve() -> c_int;
    pub(super) fn antiphon_execveat() -> c_int;
    pub(super) fn antiphon_posix_spawn() -> c_int;
    pub(super) fn antiphon_posix_spawnp() -> c_int;
}

/// The functions that `elsewhere.c` calls, by the numbers that it uses.
static CALLS: [&Real<real::Jump>; 6] = [
    &real::EXECVE,
    &real::EXECVPE,
    &real::FEXECVE,
    &real::EXECVEAT,
    &real::POSIX_SPAWN,
    &real::POSIX_SPAWNP,
];

/// The C library's function with the number `call`.
// SAFETY: no other object defines a name with this prefix.
#[unsafe(no_mangle)]
extern "C" fn antiphon_real_exec(call: c_int) -> Entry {
    address(CALLS[call as usize])
}

/// Most variables that are copied: `elsewhere.c` has the copy on the stack.
const MOST: usize = 1 << 10;
/// Bytes for a copied `LD_PRELOAD` with its name and terminating zero. `elsewhere.c` has the same.
const ROOM: usize = 4096;

/// The number of variables to copy; 0 if they can't be read, or are more than [`MOST`].
// SAFETY: no other object defines a name with this prefix.
#[unsafe(no_mangle)]
extern "C" fn antiphon_variables(environment: Texts) -> usize {
    let end = (0..=MOST).find_map(|at| match variable(environment, at) {
        Some(0) => Some(at),
        Some(_) => None,
        // If a variable can't be read, none is copied.
        None => Some(0),
    });
    end.unwrap_or(0)
}

/// Copies the first `length` variables, without our names in `LD_PRELOAD`, and appends a null
/// pointer. Returns 0 if no such name is found or something can't be read: then the caller must use
/// the environment itself.
///
/// # Safety
///
/// `copy` has room for `length + 1` pointers, and `preload` for [`ROOM`] bytes.
// SAFETY: no other object defines a name with this prefix.
#[unsafe(no_mangle)]
unsafe extern "C" fn antiphon_without_us(
    environment: Texts,
    length: usize,
    copy: *mut usize,
    preload: *mut u8,
) -> c_int {
    // SAFETY: the caller promises the room. Both hold numbers, and are written to before they are
    // read.
    let (copy, preload) = unsafe {
        copy.write_bytes(0, length + 1);
        preload.write_bytes(0, ROOM);
        (slice::from_raw_parts_mut(copy, length + 1), slice::from_raw_parts_mut(preload, ROOM))
    };
    let done = without_us(environment, length, copy, preload);
    c_int::from(done == Some(true))
}

/// Makes the copy, and returns whether it differs; `None` if something can't be read.
fn without_us(
    environment: Texts,
    length: usize,
    copy: &mut [usize],
    preload: &mut [u8],
) -> Option<bool> {
    let (mut copied, mut found) = (0, false);
    for at in 0..length {
        let text = variable(environment, at)?;
        if text == 0 {
            break;
        }
        copy[copied] = text;
        copied += 1;
        // A second variable of that name, which no shell passes on, is not changed.
        if !found && begins(environment, text)? {
            let kept = read_text(environment, text, preload)?;
            let left = without_names(&mut preload[..kept]);
            found = left < kept;
            match left {
                _ if !found => {}
                0 => copied -= 1,
                _ => copy[copied - 1] = preload.as_ptr().addr(),
            }
        }
    }
    copy[copied] = 0;
    Some(found)
}

/// Removes our libraries from the variable `LD_PRELOAD=…` in `text`, and fills the rest with zeros.
/// Returns the new length: 0 if no library is left.
fn without_names(text: &mut [u8]) -> usize {
    let first = PRELOAD.len() + 1;
    let is_ours = |library: &[u8]| {
        let has = |name: &[u8]| library.windows(name.len()).any(|part| part == name);
        has(FOR_LOOPS) || OURS.iter().any(|name| has(name))
    };
    let (mut from, mut to) = (first, first);
    while from < text.len() {
        // The loader accepts both separators.
        let is_end = |byte: &u8| matches!(byte, b':' | b' ');
        let end = text[from..].iter().position(is_end).map_or(text.len(), |length| from + length);
        if from < end && !is_ours(&text[from..end]) {
            if to > first {
                text[to] = b':';
                to += 1;
            }
            text.copy_within(from..end, to);
            to += end - from;
        }
        from = end + 1;
    }
    if to == first {
        to = 0;
    }
    text[to..].fill(0);
    to
}

/// The address of variable number `at`, 0 after the last; `None` if it can't be read.
fn variable(environment: Texts, at: usize) -> Option<usize> {
    if environment.is_null() {
        return Some(0);
    }
    if environment == inherited() {
        // SAFETY: the program's own environment, which the caller doesn't read beyond the null
        // pointer.
        return Some(unsafe { *environment.add(at) }.addr());
    }
    let mut word = [0; size_of::<usize>()];
    let place = environment.addr().wrapping_add(at * size_of::<usize>());
    let whole = foreign::read(place, &mut word)? == word.len();
    whole.then(|| usize::from_ne_bytes(word))
}

/// Returns whether the variable at the address `text` is `LD_PRELOAD`; `None` if it can't be read.
fn begins(environment: Texts, text: usize) -> Option<bool> {
    let mut begin = [0; PRELOAD.len() + 1];
    let length = read(environment, text, &mut begin)?;
    (length > 0).then(|| begin[..length].strip_prefix(PRELOAD) == Some(b"="))
}

/// Reads the string at the address `text`, and returns its length. `None` if it can't be read, or
/// is too long.
fn read_text(environment: Texts, text: usize, into: &mut [u8]) -> Option<usize> {
    let length = read(environment, text, into)?;
    let end = into[..length].iter().position(|&byte| byte == 0)?;
    into[end..].fill(0);
    Some(end)
}

/// Reads the string at the address of a variable, at least up to its zero.
fn read(environment: Texts, text: usize, into: &mut [u8]) -> Option<usize> {
    if environment != inherited() {
        return foreign::read(text, into);
    }
    // SAFETY: a variable of the program's own, which ends in zero.
    let text = unsafe { CStr::from_ptr(core::ptr::with_exposed_provenance(text)) };
    let text = text.to_bytes_with_nul();
    let length = text.len().min(into.len());
    into[..length].copy_from_slice(&text[..length]);
    Some(length)
}
