//! `dlsym` and `dlvsym`: a program that looks up a function which this library replaces finds ours
//! wherever it would have found the C library's.
//!
//! References by name find us first. A look-up in a handle (`ctypes`, LuaJIT's FFI, plug-in hosts),
//! by version, or from an object that was loaded after us would find the C library's function; and
//! a mutex that is locked by both implementations excludes no thread. So this library replaces
//! these two functions as well:
//!
//! | asked for | answered |
//! |---|---|
//! | a name that we don't replace | by the next `dlsym`, with the caller's arguments and stack |
//! | a name that we replace, and the answer is the C library's function | ours |
//! | … and the answer is another object's own function, or none | that function, or null |
//! | anything where the C library keeps the locks ([`mode`]) | by the next `dlsym` |
//!
//! Names that we replace are those of mutexes, readers-writer locks, condition variables and
//! spinlocks. Names of functions that we only intercept (`pthread_create`, `dlopen`, …) are not:
//! the C library's share no object with ours, and the caller may be another library that wraps
//! them.
//!
//! The meaning of `RTLD_DEFAULT` and `RTLD_NEXT` depends on the caller. Therefore we ask on our own
//! behalf, and answer only where the caller's answer is known to be the same; otherwise we jump to
//! the next `dlsym`. Before we answer, the same thread has called the next `dlsym`, so the state of
//! `dlerror` is the one that this call left.
//!
//! The next `dlsym` can't be found by name, which would find this one: its address is read from the
//! tables of the objects behind us ([`objects`]).

use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;
use core::ptr::{null, null_mut};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use crate::{mode, objects, real};

type ByName = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type ByVersion = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

static BY_NAME: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static BY_VERSION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The next function `name` in the search order behind us; null if none exists.
fn next(kept: &AtomicPtr<c_void>, name: &CStr) -> *const c_void {
    // Relaxed: the address of code, which does not change after the start.
    let mut address = kept.load(Relaxed).cast_const();
    if address.is_null() {
        address = objects::next(name).unwrap_or(null());
        kept.store(address.cast_mut(), Relaxed);
    }
    address
}

/// Looks up now what a later call would search in the loader's list. Called at load.
pub(crate) fn settle() {
    next(&BY_NAME, c"dlsym");
    next(&BY_VERSION, c"dlvsym");
    objects::is_c_librarys(null());
}

/// Calls the next `dlsym` on this library's behalf. Returns null if the name is not found.
///
/// # Safety
///
/// The conditions of `dlsym`.
pub(crate) unsafe fn by_name(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let function = next(&BY_NAME, c"dlsym");
    if function.is_null() {
        return null_mut();
    }
    // SAFETY: the function of this name has this type; the caller's promise.
    unsafe { transmute::<*const c_void, ByName>(function)(handle, name) }
}

/// Calls the next `dlvsym` on this library's behalf. Returns null if name and version are not
/// found.
///
/// # Safety
///
/// The conditions of `dlvsym`.
pub(crate) unsafe fn by_version(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
) -> *mut c_void {
    let function = next(&BY_VERSION, c"dlvsym");
    if function.is_null() {
        return null_mut();
    }
    // SAFETY: the function of this name has this type; the caller's promise.
    unsafe { transmute::<*const c_void, ByVersion>(function)(handle, name, version) }
}

/// Returns whether this library may replace a function of that name.
pub(crate) fn is_replaced(name: &CStr) -> bool {
    let name = name.to_bytes();
    let name = name.strip_prefix(b"__").unwrap_or(name);
    let object = name.strip_prefix(b"pthread_");
    let kinds: [&[u8]; 4] = [b"mutex_", b"rwlock_", b"cond_", b"spin_"];
    object.is_some_and(|object| kinds.iter().any(|kind| object.starts_with(kind)))
}

/// Our function of that name; `None` if we leave it, or all of them, to the C library.
fn ours(name: *const c_char) -> Option<*const c_void> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the caller's string, which ends in zero.
    let name = unsafe { CStr::from_ptr(name) };
    if !is_replaced(name) || mode::theirs() {
        return None;
    }
    objects::ours()?.defines(name)
}

/// A call of `dlsym` or `dlvsym`: its arguments and its caller.
struct Call {
    handle: *mut c_void,
    name: *const c_char,
    /// Null for `dlsym`: any version.
    version: *const c_char,
    caller: *const c_void,
}

/// The answer to a call.
enum Answer {
    /// The result of the next `dlsym` or `dlvsym`.
    Theirs,
    /// This address.
    Is(*const c_void),
}

impl Call {
    fn answer(&self) -> Answer {
        match ours(self.name) {
            None => Answer::Theirs,
            Some(ours) if self.handle == libc::RTLD_DEFAULT => self.by_default(ours),
            Some(ours) if self.handle == libc::RTLD_NEXT => self.behind_caller(ours),
            // The answer is the same for every caller.
            Some(ours) => {
                let found = self.asked(self.handle);
                Answer::Is(if objects::is_c_librarys(found) { ours } else { found })
            }
        }
    }

    /// The answer of the next `dlsym` or `dlvsym`, called on this library's behalf.
    fn asked(&self, handle: *mut c_void) -> *const c_void {
        // SAFETY: the caller's arguments; the handle is the caller's, or a special one that is
        // always valid.
        unsafe {
            if self.version.is_null() {
                by_name(handle, self.name)
            } else {
                by_version(handle, self.name, self.version)
            }
        }
    }

    /// The answer for `RTLD_DEFAULT`: the global scope, in which our functions are found, but not
    /// by version. A caller's own scope is searched after it, except with `RTLD_DEEPBIND`; such a
    /// caller doesn't get here, because it has found the C library's `dlsym`.
    fn by_default(&self, ours: *const c_void) -> Answer {
        let found = self.asked(libc::RTLD_DEFAULT);
        let replaced = found == ours || objects::is_c_librarys(found);
        if replaced { Answer::Is(ours) } else { Answer::Theirs }
    }

    /// The answer for `RTLD_NEXT`. An object before us finds us, unless it asks for a version. An
    /// object behind us must find us in front of the C library. If a wrapper behind us forwards its
    /// calls, they come to us as well, and never go back to it ([`real`]).
    fn behind_caller(&self, ours: *const c_void) -> Answer {
        let Some(caller) = objects::of(self.caller) else { return Answer::Theirs };
        if self.version.is_null() && objects::before_ours().any(|object| object.is(caller)) {
            return Answer::Theirs;
        }
        if self.asked(libc::RTLD_NEXT).is_null() { Answer::Theirs } else { Answer::Is(ours) }
    }
}

/// The function to jump to, with `handle` as this function has left it, and the other arguments
/// unchanged.
fn before(
    function: *const c_void,
    [name, version]: [*const c_char; 2],
    caller: *const c_void,
    handle: &mut *mut c_void,
) -> real::Entry {
    extern "C" fn given(address: *const c_void) -> *const c_void {
        address
    }
    extern "C" fn missing() -> *const c_void {
        null()
    }
    if function.is_null() {
        return missing as real::Entry;
    }
    match (Call { handle: *handle, name, version, caller }).answer() {
        Answer::Theirs => function,
        Answer::Is(address) => {
            *handle = address.cast_mut();
            given as real::Entry
        }
    }
}

extern "C" fn before_dlsym(
    _: *mut c_void,
    name: *const c_char,
    _: *const c_char,
    caller: *const c_void,
    handle: &mut *mut c_void,
) -> real::Entry {
    before(next(&BY_NAME, c"dlsym"), [name, null()], caller, handle)
}

extern "C" fn before_dlvsym(
    _: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    caller: *const c_void,
    handle: &mut *mut c_void,
) -> real::Entry {
    // The C library treats a null version as an error, and so does the function that we jump to.
    let name = if version.is_null() { null() } else { name };
    before(next(&BY_VERSION, c"dlvsym"), [name, version], caller, handle)
}

/// Defines functions that call `$before` with their arguments, the caller's address and the address
/// of the first argument on the stack, and jump to the address that it returns, with the arguments
/// as it has left them.
macro_rules! answered {
    ($($name:ident($($argument:ident: $type:ty),*) = $before:path;)*) => {$(
        /// The C library's function of this name, which finds our functions, too.
        ///
        /// # Safety
        ///
        /// The conditions of the C library.
        // SAFETY: it jumps with the stack unchanged, and with the arguments unchanged or as
        // `$before` has set them.
        #[unsafe(naked)]
        // SAFETY: the C library's name and signature; replacing that function is the purpose.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> *mut c_void {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                // The stack is aligned for a call: three words and the return address.
                "push rdx", "push rsi", "push rdi",
                "mov rcx, qword ptr [rsp + 24]",
                "mov r8, rsp",
                "call {}",
                "pop rdi", "pop rsi", "pop rdx",
                "jmp rax",
                sym $before
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                "stp x29, x30, [sp, -48]!",
                "stp x0, x1, [sp, 16]", "str x2, [sp, 32]",
                "mov x3, x30",
                "add x4, sp, 16",
                "bl {}",
                "mov x16, x0",
                "ldp x0, x1, [sp, 16]", "ldr x2, [sp, 32]",
                "ldp x29, x30, [sp], 48",
                "br x16",
                sym $before
            );
        }
    )*};
}

answered! {
    dlsym(_handle: *mut c_void, _name: *const c_char) = before_dlsym;
    dlvsym(_handle: *mut c_void, _name: *const c_char, _version: *const c_char) = before_dlvsym;
}
