//! Switches off AddressSanitizer's check of the link order: its shared runtime ends a program in
//! which another library, like this one, comes first.
//!
//! The check is a precaution against allocators in front of the sanitizer's. This library has no
//! allocator, and calls the next definition of the other functions that the sanitizer wraps
//! (`pthread_create`, `dlopen`, `vfork`), which is the sanitizer's. The option is given by the
//! function from which the runtime reads a program's own options: ours comes before the runtime's
//! empty one. The options of another library are appended to ours. A program that defines the
//! function itself comes before us, and must set the option itself; the environment
//! (`ASAN_OPTIONS`) is read later, and wins.

use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

use crate::objects;

type Options = extern "C" fn() -> *const c_char;

const NAME: &CStr = c"__asan_default_options";
const OURS: &[u8] = b"verify_asan_link_order=0";
/// Size of the buffer in bytes: our option, those of other libraries and the terminating zero.
const ROOM: usize = 1024;

/// The function of this name in `sanitizer/asan_interface.h`: AddressSanitizer's runtime calls it
/// when it starts.
///
/// # Safety
///
/// To be called at the start of the program, by AddressSanitizer's runtime.
// SAFETY: the name and the signature are the runtime's; replacing the runtime's function is the
// purpose.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __asan_default_options() -> *const c_char {
    static OPTIONS: [AtomicU8; ROOM] = [const { AtomicU8::new(0) }; ROOM];
    let theirs = objects::next(NAME).map_or(c"", |next| {
        // SAFETY: the function of this name has this type, and returns a string that is never
        // freed.
        unsafe { CStr::from_ptr(transmute::<*const c_void, Options>(next)()) }
    });
    let theirs = Some(theirs.to_bytes()).filter(|text| OURS.len() + 1 + text.len() < ROOM);
    let all = OURS.iter().chain(b":").chain(theirs.unwrap_or_default());
    for (byte, to) in all.zip(&OPTIONS) {
        to.store(*byte, Relaxed);
    }
    OPTIONS.as_ptr().cast()
}
