//! AddressSanitizer asks for the place that we have: its shared runtime ends a program whose first
//! library it is not.
//!
//! That is a precaution, so that no allocator comes before its own. We have none, and hand on the
//! other functions that it wraps (`pthread_create`, `dlopen`, `vfork`) to the next function of that
//! name, which is its own. So its check is switched off, by the function from which it gets a
//! program's own options: ours comes before the empty one of the runtime. The options that another
//! library wants are put behind ours. A program that defines the function itself comes before us,
//! and has to say it itself; the environment (`ASAN_OPTIONS`) is read later, and wins.

use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

use crate::objects;

type Options = extern "C" fn() -> *const c_char;

const NAME: &CStr = c"__asan_default_options";
const OURS: &[u8] = b"verify_asan_link_order=0";
/// Room for the options of other libraries, and the zero behind them.
const ROOM: usize = 1024;

/// The function of this name in `sanitizer/asan_interface.h`: AddressSanitizer's runtime calls it
/// when it starts.
///
/// # Safety
///
/// At the start of the program.
// SAFETY: the runtime's name, and its signature: to be called in place of its own is what it is
// for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __asan_default_options() -> *const c_char {
    static OPTIONS: [AtomicU8; ROOM] = [const { AtomicU8::new(0) }; ROOM];
    let theirs = objects::next(NAME).map_or(c"", |next| {
        // SAFETY: the function of this name has this type, and returns a text that stays.
        unsafe { CStr::from_ptr(transmute::<*const c_void, Options>(next)()) }
    });
    let theirs = Some(theirs.to_bytes()).filter(|text| OURS.len() + 1 + text.len() < ROOM);
    let all = OURS.iter().chain(b":").chain(theirs.unwrap_or_default());
    for (byte, to) in all.zip(&OPTIONS) {
        to.store(*byte, Relaxed);
    }
    OPTIONS.as_ptr().cast()
}
