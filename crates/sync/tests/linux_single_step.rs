//! A debugger steps through a light unlock, which restarts an interrupted sequence: it must end.

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::io::{self, Write};
use std::ptr;

use antiphon_linux::Linux;
use antiphon_linux::light::enable_light;
use antiphon_platform::LightUnlock as _;
use antiphon_sync::lock::ShflMutex;
use support::{FORKS, in_child};

const ROUNDS: u32 = 5;
/// A round takes some hundreds of instructions; a round that restarts for ever has no end.
const STEPS: u32 = 500_000;

/// Locks and unlocks in light mode, from the first stop on.
fn traced() -> bool {
    let lock = ShflMutex::<Linux>::NEW;
    // SAFETY: takes only numbers.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, ptr::null_mut::<u8>(), 0) != 0 {
            return false;
        }
        libc::raise(libc::SIGSTOP);
    }
    (0..ROUNDS).all(|_| {
        lock.lock();
        // SAFETY: locked above.
        unsafe { lock.unlock() };
        !lock.is_locked()
    })
}

fn status_of(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: our own child, our own word.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// Steps through the child until it ends; returns whether it ended, and with success.
fn step_through(child: libc::pid_t) -> bool {
    let mut status = status_of(child);
    for _ in 0..STEPS {
        if libc::WIFEXITED(status) {
            return libc::WEXITSTATUS(status) == 0;
        }
        // SAFETY: the child is stopped, and traced by us.
        let stepped = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) };
        assert_eq!(stepped, 0);
        status = status_of(child);
    }
    // SAFETY: our own child.
    unsafe { libc::kill(child, libc::SIGKILL) };
    let _ = status_of(child);
    false
}

#[test]
fn a_light_unlock_ends_under_a_debugger() {
    // In a child, because the mode cannot be turned off.
    assert!(in_child(FORKS[0].1, || {
        if enable_light().is_err() {
            // Bypasses the output capture of the test harness.
            return writeln!(io::stderr(), "skipped: this machine has no light mode").is_ok();
        }
        match FORKS[0].1() {
            // SAFETY: ends the child.
            0 => unsafe { libc::_exit(i32::from(!(Linux::light() && traced()))) },
            child => child > 0 && step_through(child),
        }
    }));
}
