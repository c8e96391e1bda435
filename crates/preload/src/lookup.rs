//! `dlsym` and `dlvsym`: whatever way a program finds a function that this library replaces, it
//! finds ours where it would have found the C library's.
//!
//! References by name find us first. A look-up in a handle (`ctypes`, LuaJIT's FFI, hosts of
//! plug-ins), by version, or behind an object that was loaded after us would find the C library's
//! function, and a mutex that is locked by one and by the other excludes no thread. So these two
//! functions are ours as well:
//!
//! | asked for | answered |
//! |---|---|
//! | a name that we don't replace | by the next `dlsym`, with the caller's arguments and stack |
//! | one that we do, and the answer is the C library's function | ours |
//! | … and it is another object's own function, or there is none | that, or null |
//! | anything where the C library keeps the locks ([`mode`]) | by the next `dlsym` |
//!
//! Names that we replace are those of mutexes, readers-writer locks, condition variables and
//! spinlocks. Names of functions that we only hear of (`pthread_create`, `dlopen`, …) are not: the
//! functions found by them share no object with ours, and the caller may be another library that
//! wraps them.
//!
//! `RTLD_DEFAULT` and `RTLD_NEXT` mean something else to each caller. Its question is therefore put
//! as our own, and answered by us only where the answer is known to be the same: otherwise the next
//! `dlsym` is jumped to. Whatever we answer, the next `dlsym` was asked right before by the same
//! thread, and has left the state of `dlerror` as its own answer leaves it.
//!
//! The next `dlsym` can't be found by a reference by name, which would find this one: it is read
//! from the tables of the objects behind us ([`objects`]).

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

/// The next function of that name behind us; null if there is none.
fn next(kept: &AtomicPtr<c_void>, name: &CStr) -> *const c_void {
    // Relaxed: it is code, and does not change after the start.
    let mut address = kept.load(Relaxed).cast_const();
    if address.is_null() {
        address = objects::next(name).unwrap_or(null());
        kept.store(address.cast_mut(), Relaxed);
    }
    address
}

/// Finds what a later call would look for in the loader's list. Called at load.
pub(crate) fn settle() {
    next(&BY_NAME, c"dlsym");
    next(&BY_VERSION, c"dlvsym");
    objects::is_c_librarys(null());
}

/// The next `dlsym`, asked as from here. Null if there is nothing of that name.
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

/// The next `dlvsym`, asked as from here. Null if there is nothing of that name and version.
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

/// Whether this library may replace a function of that name.
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

/// A call of `dlsym` or `dlvsym`: what it goes on with, and from where it came.
struct Call {
    handle: *mut c_void,
    name: *const c_char,
    /// Null: whatever is there.
    version: *const c_char,
    caller: *const c_void,
}

/// The answer to a call.
enum Answer {
    /// Whatever the next function says.
    Theirs,
    /// This.
    Is(*const c_void),
}

impl Call {
    fn answer(&self) -> Answer {
        match ours(self.name) {
            None => Answer::Theirs,
            Some(ours) if self.handle == libc::RTLD_DEFAULT => self.by_default(ours),
            Some(ours) if self.handle == libc::RTLD_NEXT => self.behind_caller(ours),
            // The same to every caller.
            Some(ours) => {
                let found = self.asked(self.handle);
                Answer::Is(if objects::is_c_librarys(found) { ours } else { found })
            }
        }
    }

    /// The answer of the next function, asked as from here.
    fn asked(&self, handle: *mut c_void) -> *const c_void {
        // SAFETY: the caller's arguments; the handle is the caller's, or one that is always good.
        unsafe {
            if self.version.is_null() {
                by_name(handle, self.name)
            } else {
                by_version(handle, self.name, self.version)
            }
        }
    }

    /// The answer by `RTLD_DEFAULT`: the global scope, in which we are found, but under no version.
    /// A caller's own scope comes behind that, but with `RTLD_DEEPBIND`; and then the caller
    /// doesn't come here, as it has found the C library's `dlsym`.
    fn by_default(&self, ours: *const c_void) -> Answer {
        let found = self.asked(libc::RTLD_DEFAULT);
        let replaced = found == ours || objects::is_c_librarys(found);
        if replaced { Answer::Is(ours) } else { Answer::Theirs }
    }

    /// The answer by `RTLD_NEXT`. The caller is an object before us that finds us, or one between,
    /// but by a version. Behind us there is the C library, in front of which we are to be. If
    /// another wrapper behind us hands its calls on, they come to us as well, and never come back
    /// to it ([`real`]).
    fn behind_caller(&self, ours: *const c_void) -> Answer {
        let Some(caller) = objects::of(self.caller) else { return Answer::Theirs };
        if self.version.is_null() && objects::before_ours().any(|object| object.is(caller)) {
            return Answer::Theirs;
        }
        if self.asked(libc::RTLD_NEXT).is_null() { Answer::Theirs } else { Answer::Is(ours) }
    }
}

/// The function in which a call goes on: with `handle` as it is then, and the other arguments as
/// they came.
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
    // The C library takes null for a mistake, and so does what we jump to.
    let name = if version.is_null() { null() } else { name };
    before(next(&BY_VERSION, c"dlvsym"), [name, version], caller, handle)
}

/// Defines functions that call `$before` with their arguments, the caller's address and that of the
/// first argument on the stack, and jump to where it says with the arguments as they are then.
macro_rules! answered {
    ($($name:ident($($argument:ident: $type:ty),*) = $before:path;)*) => {$(
        /// The C library's function of this name, which finds our functions, too.
        ///
        /// # Safety
        ///
        /// The conditions of the C library.
        // SAFETY: where it goes on, the stack is as it came, and the arguments are as it came or
        // as `$before` wants them.
        #[unsafe(naked)]
        // SAFETY: the C library's name, and its signature: to take its place is what this is for.
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
