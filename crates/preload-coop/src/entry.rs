//! The functions that programs call, and those that `shim.c` calls here.
//!
//! Rust exports its own functions only, so those of C are reached by a jump: no frame of ours
//! stands above a wait, and a cancellation finds C code alone. They are exported without a version,
//! which satisfies a reference to any version of the C library's.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;

use antiphon_coop::Pause;
use libc::{c_ulong, epoll_event, fd_set, pollfd, sigset_t, size_t, timespec, timeval};

use crate::member::{self, Loop, Waited};

/// Defines functions that jump to `$to` in `shim.c`.
macro_rules! in_c {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? => $to:ident;)*) => {
        // SAFETY: `shim.c` defines them so.
        unsafe extern "C" {
            $(fn $to($($argument: $type),*) $(-> $result)?;)*
        }
        jumps! { $($name($($argument: $type),*) $(-> $result)? => $to;)* }
    };
}

/// Defines functions that jump to `$to`.
macro_rules! jumps {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? => $to:ident;)*) => {$(
        /// The C library's function of this name, and a cancellation point; or one of ours.
        ///
        /// # Safety
        ///
        /// The conditions of the C library.
        // SAFETY: it goes on in the function named, with the arguments and stack as they came.
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

// Other names of these in the C library, and the forms that a compiler puts in their place
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

/// A wait, as `shim.c` has it.
#[repr(C)]
pub struct Wait {
    /// The longest time of the wait, in nanoseconds; or `AS_ASKED`.
    limit_ns: i64,
    rest: MaybeUninit<Between>,
}

/// The state that is kept while the C library waits.
struct Between {
    pause: Pause,
    waited: Waited,
}

const AS_ASKED: i64 = -1;
const _: () = assert!(size_of::<Wait>() <= 8 + 16 * 8 && align_of::<Wait>() <= 8);

/// Our part of a thread, as `shim.c` has it: nothing that a signal handler comes by.
#[repr(C)]
pub struct Thread {
    /// A [`Loop`] that was boxed, or null.
    looping: *mut c_void,
    /// The epoch of the process that the other fields belong to.
    epoch: u32,
    waits: u32,
}

impl Thread {
    /// The thread's loop, if it is one; made, if it has just become one.
    fn looping(&mut self) -> Option<&mut Loop> {
        let epoch = member::epoch();
        if self.epoch != epoch {
            // In the child of a fork, the parent's objects are not ours to give back.
            (self.looping, self.epoch, self.waits) = (core::ptr::null_mut(), epoch, 0);
        }
        if self.looping.is_null() {
            self.waits = self.waits.saturating_add(1);
            let new = Box::into_raw(Box::new(member::become_loop(self.waits)?));
            self.looping = new.cast();
            // SAFETY: `shim.c` has it so; what it gives back is what it was given, once.
            unsafe { antiphon_coop_at_exit_of(self.looping) };
        }
        // SAFETY: boxed above, by this thread, and no other thread's until it ends.
        Some(unsafe { &mut *self.looping.cast::<Loop>() })
    }
}

// SAFETY: `shim.c` defines it so.
unsafe extern "C" {
    fn antiphon_coop_at_exit_of(looping: *mut c_void);
}

/// Called before a wait of `timeout_ns` nanoseconds (negative: without an end), when the loop has
/// told its next release `told_ns` (0: it has not). 0: the library has no part in it.
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

/// Called after a wait; `timed_out` says whether it ended by its timeout.
extern "C" fn end(thread: &mut Thread, wait: &mut Wait, timed_out: c_int) {
    // SAFETY: `begin` has written it and said so; otherwise `shim.c` does not call this.
    let Between { pause, waited } = unsafe { wait.rest.assume_init_read() };
    // A signal handler that has forked in between is in another process.
    if thread.epoch != member::epoch() || thread.looping.is_null() {
        return;
    }
    // SAFETY: as in `Thread::looping`.
    let looping = unsafe { &mut *thread.looping.cast::<Loop>() };
    looping.after(pause, waited, timed_out != 0);
}

/// The thread ends.
extern "C" fn leave(looping: *mut c_void) {
    // SAFETY: boxed by `Thread::looping`, and given back once, when the thread has done with it.
    drop(unsafe { Box::from_raw(looping.cast::<Loop>()) });
}

/// The names by which `shim.c` calls the above.
macro_rules! to_c {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $of:ident;)*) => {$(
        /// See `shim.c`.
        // SAFETY: a name that is ours.
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
