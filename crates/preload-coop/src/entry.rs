//! The exported functions that programs call, and the functions that `shim.c` calls.
//!
//! Rust exports only its own functions, so each jumps to a C function: no Rust frame is on the
//! stack during a wait, and a cancellation unwinds C code only. They are exported without a
//! version, which satisfies a reference to any version of the C library's.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;

use antiphon_coop::Pause;
use libc::{c_ulong, epoll_event, fd_set, pollfd, sigset_t, size_t, timespec, timeval};

use crate::member::{self, Loop, Waited};

/// Defines functions that jump to `$to` in `shim.c`.
macro_rules! in_c {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? => $to:ident;)*) => {
        // SAFETY: `shim.c` defines the functions with these signatures.
        unsafe extern "C" {
            $(fn $to($($argument: $type),*) $(-> $result)?;)*
        }
        jumps! { $($name($($argument: $type),*) $(-> $result)? => $to;)* }
    };
}

/// Defines functions that jump to `$to`.
macro_rules! jumps {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? => $to:ident;)*) => {$(
        /// The C library's function of this name, which is a cancellation point, or one of ours.
        ///
        /// # Safety
        ///
        /// The conditions of the C library.
        // SAFETY: it jumps to the function `$to`, with the arguments and the stack unchanged.
        #[unsafe(naked)]
        // SAFETY: the C library's name and signature: this function is meant to replace it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            naked_asm!("jmp {}", sym $to);
            #[cfg(target_arch = "aarch64")]
            naked_asm!("b {}", sym $to);
        }
    )*};
}

type Events = *mut epoll_event;
type Files = *mut pollfd;
type Set = *mut fd_set;
type Mask = *const sigset_t;
type Time = *const timespec;

in_c! {
    epoll_wait(_epoll: c_int, _events: Events, _most: c_int, _timeout: c_int) -> c_int
        => antiphon_coop_epoll_wait;
    epoll_pwait(_epoll: c_int, _events: Events, _most: c_int, _ms: c_int, _mask: Mask) -> c_int
        => antiphon_coop_epoll_pwait;
    epoll_pwait2(_epoll: c_int, _events: Events, _most: c_int, _time: Time, _mask: Mask) -> c_int
        => antiphon_coop_epoll_pwait2;
    poll(_files: Files, _count: c_ulong, _timeout: c_int) -> c_int => antiphon_coop_poll;
    ppoll(_files: Files, _count: c_ulong, _time: Time, _mask: Mask) -> c_int
        => antiphon_coop_ppoll;
    select(_count: c_int, _read: Set, _write: Set, _except: Set, _time: *mut timeval) -> c_int
        => antiphon_coop_select;
    pselect(_count: c_int, _r: Set, _w: Set, _except: Set, _time: Time, _mask: Mask) -> c_int
        => antiphon_coop_pselect;
    // The function that `antiphon_coop.h` declares.
    antiphon_coop_release(_ns: u64) => antiphon_coop_told;
}

// Other names of these functions in the C library, and the forms that a compiler replaces them with
// (`_FORTIFY_SOURCE`).
in_c! {
    __poll_chk(_files: Files, _count: c_ulong, _timeout: c_int, _bytes: size_t) -> c_int
        => antiphon_coop_poll_chk;
    __ppoll_chk(_files: Files, _count: c_ulong, _t: Time, _mask: Mask, _bytes: size_t) -> c_int
        => antiphon_coop_ppoll_chk;
}
jumps! {
    __poll(_files: Files, _count: c_ulong, _timeout: c_int) -> c_int => antiphon_coop_poll;
    __select(_count: c_int, _read: Set, _write: Set, _except: Set, _time: *mut timeval) -> c_int
        => antiphon_coop_select;
}

/// A wait; `shim.c` declares the same layout.
#[repr(C)]
pub struct Wait {
    /// The longest time of the wait, in nanoseconds; or `AS_ASKED`.
    limit_ns: i64,
    rest: MaybeUninit<Between>,
}

/// The state of a wait while the C library waits.
struct Between {
    pause: Pause,
    waited: Waited,
}

const AS_ASKED: i64 = -1;
const _: () = assert!(size_of::<Wait>() <= 8 + 16 * 8 && align_of::<Wait>() <= 8);

/// The library's state of a thread, as declared in `shim.c`. Signal handlers don't access it.
#[repr(C)]
pub struct Thread {
    /// A boxed [`Loop`], or null.
    looping: *mut c_void,
    /// The epoch of the process that the other fields belong to.
    epoch: u32,
    waits: u32,
}

impl Thread {
    /// The thread's loop, if the thread is one; created if it has just become one.
    fn looping(&mut self) -> Option<&mut Loop> {
        let epoch = member::epoch();
        if self.epoch != epoch {
            // In the child of a fork, the parent's objects must not be freed.
            (self.looping, self.epoch, self.waits) = (core::ptr::null_mut(), epoch, 0);
        }
        if self.looping.is_null() {
            self.waits = self.waits.saturating_add(1);
            let new = Box::into_raw(Box::new(member::become_loop(self.waits)?));
            self.looping = new.cast();
            // SAFETY: `shim.c` has this signature; it passes the pointer to `leave` once.
            unsafe { antiphon_coop_at_exit_of(self.looping) };
        }
        // SAFETY: boxed above, by this thread, and used by no other thread before it ends.
        Some(unsafe { &mut *self.looping.cast::<Loop>() })
    }
}

// SAFETY: `shim.c` defines the function with this signature.
unsafe extern "C" {
    fn antiphon_coop_at_exit_of(looping: *mut c_void);
}

/// Called before a wait of `timeout_ns` nanoseconds (negative: endless); `told_ns` is the next
/// release time that the loop has announced (0: none). Returns 0 if the library takes no part in
/// the wait.
extern "C" fn begin(thread: &mut Thread, wait: &mut Wait, timeout_ns: i64, told_ns: u64) -> c_int {
    if !member::enabled() {
        return 0;
    }
    let Some(looping) = thread.looping() else { return 0 };
    let (pause, waited) = looping.before(u64::try_from(timeout_ns).ok(), told_ns);
    wait.limit_ns = waited.limit_ns(&pause).unwrap_or(AS_ASKED);
    wait.rest.write(Between { pause, waited });
    1
}

/// Called after a wait; `timed_out` says whether its timeout ended it.
extern "C" fn end(thread: &mut Thread, wait: &mut Wait, timed_out: c_int) {
    // SAFETY: `begin` has written it; if it has not, it returns 0, and `shim.c` does not call this.
    let Between { pause, waited } = unsafe { wait.rest.assume_init_read() };
    // If a signal handler has forked meanwhile, this is another process.
    if thread.epoch != member::epoch() || thread.looping.is_null() {
        return;
    }
    // SAFETY: as in `Thread::looping`.
    let looping = unsafe { &mut *thread.looping.cast::<Loop>() };
    looping.after(pause, waited, timed_out != 0);
}

/// Called when the thread ends.
extern "C" fn leave(looping: *mut c_void) {
    // SAFETY: boxed by `Thread::looping`, and passed here once, when the thread no longer uses it.
    drop(unsafe { Box::from_raw(looping.cast::<Loop>()) });
}

/// Exports the functions above under the names that `shim.c` uses.
macro_rules! to_c {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $of:ident;)*) => {$(
        /// See `shim.c`.
        // SAFETY: no other object defines a name with this prefix.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            $of($($argument),*)
        }
    )*};
}

to_c! {
    antiphon_coop_begin(thread: &mut Thread, wait: &mut Wait, ns: i64, told_ns: u64) -> c_int
        = begin;
    antiphon_coop_end(thread: &mut Thread, wait: &mut Wait, timed_out: c_int) = end;
    antiphon_coop_leave(looping: *mut c_void) = leave;
}
