//! Functions by which a program comes to share memory with other processes: `mmap`, `mremap` and
//! `shmat`. Each calls the C library's function of its name, and notes the shared memory
//! (`antiphon_linux::note_shared`): a lock in it may have waiters in several processes.
//!
//! Only memory that the program may write to counts, because a lock is written to; or memory that
//! may become writable: a mapping without a file, or one that can't be accessed yet. A file's
//! memory that is mapped to be read and becomes writable later does not count, nor does memory that
//! is mapped by `syscall`, by an instruction of the program's own, or by `mmap` as `dlsym` finds it
//! in the C library.
//!
//! Before the library is loaded these make the system call themselves: an allocator may map memory
//! in the first constructor, where the look-up of a function might allocate.

use core::ffi::{c_int, c_void};

use antiphon_linux::{forget_shared, note_shared};

use crate::real;

/// `MAP_TYPE`: the bits of the flags that say how a mapping is shared.
const TYPE: c_int = 0xf;

/// The C library's function of this name.
///
/// # Safety
///
/// The conditions of the C library.
// SAFETY: the C library's name and signature; replacing that function is the purpose.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    rights: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let at = match real::MMAP.known() {
        // SAFETY: the arguments are those of our caller.
        Some(mmap) => unsafe { mmap(address, length, rights, flags, file, offset) },
        // SAFETY: the arguments are those of our caller, in the kernel's order; `syscall` sets
        // `errno`.
        None => pointer(unsafe {
            libc::syscall(libc::SYS_mmap, address, length, rights, flags, file, offset)
        }),
    };
    let shared = matches!(flags & TYPE, libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE);
    let writable = rights & libc::PROT_WRITE != 0 || flags & libc::MAP_ANONYMOUS != 0;
    if shared && (writable || rights == libc::PROT_NONE) && at != libc::MAP_FAILED {
        note_shared(at.addr(), length);
    }
    at
}

/// The C library's function of this name.
///
/// # Safety
///
/// The conditions of the C library.
// SAFETY: the C library's name and signature, as of `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    rights: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the same function: offsets have 64 bits in both.
    unsafe { mmap(address, length, rights, flags, file, offset) }
}

/// The C library's function of this name.
///
/// # Safety
///
/// The conditions of the C library.
// SAFETY: the C library's name and signature, as of `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    // Before the memory is unmapped: afterwards other memory may be there, and noted.
    let shared = forget_shared(address.addr(), length);
    let code = match real::MUNMAP.known() {
        // SAFETY: the arguments are those of our caller.
        Some(munmap) => unsafe { munmap(address, length) },
        // SAFETY: the arguments are those of our caller; `syscall` sets `errno`.
        None => unsafe { libc::syscall(libc::SYS_munmap, address, length) as c_int },
    };
    if shared && code != 0 {
        note_shared(address.addr(), length);
    }
    code
}

/// The C library's function of this name. It reads the fifth argument only if the flags require it;
/// callers may omit it.
///
/// # Safety
///
/// The conditions of the C library.
// SAFETY: the C library's name and signature, as of `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_length: usize,
    length: usize,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    let shared = antiphon_linux::is_shared(old.addr());
    let stays = old_length == 0 || flags & libc::MREMAP_DONTUNMAP != 0;
    if shared && !stays {
        // Before the system call, as in `munmap`.
        forget_shared(old.addr(), old_length);
    }
    let at = match real::MREMAP.known() {
        // SAFETY: the arguments are those of our caller.
        Some(mremap) => unsafe { mremap(old, old_length, length, flags, new) },
        None => {
            // SAFETY: the arguments are those of our caller; `syscall` sets `errno`.
            let at =
                unsafe { libc::syscall(libc::SYS_mremap, old, old_length, length, flags, new) };
            pointer(at)
        }
    };
    if shared && at != libc::MAP_FAILED {
        note_shared(at.addr(), length);
    } else if shared && !stays {
        note_shared(old.addr(), old_length);
    }
    at
}

/// The C library's function of this name.
///
/// # Safety
///
/// The conditions of the C library.
// SAFETY: the C library's name and signature, as of `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shmat(id: c_int, address: *const c_void, flags: c_int) -> *mut c_void {
    let at = match real::SHMAT.known() {
        // SAFETY: the arguments are those of our caller.
        Some(shmat) => unsafe { shmat(id, address, flags) },
        // SAFETY: the arguments are those of our caller; `syscall` sets `errno`.
        None => pointer(unsafe { libc::syscall(libc::SYS_shmat, id, address, flags) }),
    };
    if at != libc::MAP_FAILED && flags & libc::SHM_RDONLY == 0 {
        // If a filter forbids to ask for the length of the segment, any length is assumed.
        note_shared(at.addr(), segment_length(id).unwrap_or(usize::MAX));
    }
    at
}

/// The length of a System V shared memory segment in bytes, if that is known.
fn segment_length(id: c_int) -> Option<usize> {
    let mut about = core::mem::MaybeUninit::<libc::shmid_ds>::zeroed();
    let code = crate::sys::errno_kept(|| {
        antiphon_linux::optional(|| {
            // SAFETY: the kernel writes the structure, which is ours.
            unsafe { libc::shmctl(id, libc::IPC_STAT, about.as_mut_ptr()) }
        })
    });
    // SAFETY: zero is valid for all fields, and so are the values that the kernel wrote.
    (code == Some(0)).then(|| unsafe { about.assume_init() }.shm_segsz)
}

/// The result of a system call as a pointer; -1 is `MAP_FAILED`.
fn pointer(result: libc::c_long) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(result as usize)
}
