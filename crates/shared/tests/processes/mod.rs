//! Child processes, and memory that they share with their parent.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than the detection of a dead owner takes, even on a busy machine.
pub const LONG: Duration = Duration::from_secs(20);

/// A mapping that children share.
///
/// # Safety
///
/// Zero bytes must be a valid `T`, which other processes may use.
pub unsafe fn map<T>() -> &'static T {
    // SAFETY: a fresh mapping of zeros, which is never unmapped.
    unsafe { &*fresh::<T>() }
}

/// Places `value` in a mapping that children share.
pub fn place<T: antiphon_shared::Shared>(value: T) -> &'static T {
    let place = fresh::<T>();
    // SAFETY: a mapping of its own, large enough and never unmapped, that no thread uses yet.
    unsafe {
        place.write(value);
        T::from_ptr(place)
    }
}

fn fresh<T>() -> *mut T {
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size_of::<T>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED);
    page.cast()
}

/// Runs `body` in a child process; returns the child's id. If `body` returns `false`, the child
/// exits silently with an error.
pub fn child(body: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the child runs only what is allowed after `fork`: system calls, and our own types,
    // which allocate nothing.
    match unsafe { libc::fork() } {
        0 => {
            let fine = body();
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!fine)) }
        }
        pid => {
            assert!(pid > 0);
            pid
        }
    }
}

pub fn exits_well(pid: libc::pid_t) -> bool {
    let mut status = 0;
    // SAFETY: the word is ours.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

pub fn kill(pid: libc::pid_t) {
    // SAFETY: a child of ours that was not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    assert!(!exits_well(pid));
}

pub fn wait_for(note: &AtomicU32, value: u32) {
    let begun = Instant::now();
    while note.load(Relaxed) != value {
        assert!(begun.elapsed() < LONG, "the child has not come so far");
        thread::sleep(Duration::from_millis(1));
    }
}
