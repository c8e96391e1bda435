//! Tests of a program that uses the signal of glances itself.

#![cfg(target_arch = "x86_64")]

use std::io::ErrorKind;
use std::ptr;
use std::time::Duration;

use antiphon_linux::glance::{Glances, own_id};

extern "C" fn of_the_program(_: i32) {}

fn handle(signal: i32) {
    // SAFETY: all zero bits are a valid action, and the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = of_the_program as *const () as libc::sighandler_t;
        assert_eq!(libc::sigaction(signal, &raw const action, ptr::null_mut()), 0);
    }
}

/// If the program takes the signal before, glances use another; if after, there are none.
#[test]
fn a_signal_of_the_programs_is_left_to_it() {
    handle(libc::SIGRTMAX());
    let glances = Glances::new().expect("another signal");
    assert_eq!(glances.signal(), libc::SIGRTMAX() - 1);
    handle(glances.signal());
    // SAFETY: nothing is read.
    let taken = unsafe { glances.take(own_id(), |_| 0, Duration::from_secs(1)) };
    let taken = taken.expect_err("not ours");
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
    assert_eq!(Glances::new().expect_err("taken").kind(), ErrorKind::AlreadyExists);
}
