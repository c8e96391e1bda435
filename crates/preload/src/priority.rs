//! Detects real-time priorities that the program gives to its threads.
//!
//! Locks serve waiters of real-time priority first, and ask the kernel for that. Programs without
//! such threads must not pay for that system call, nor have it hit a filter: it is made only after
//! the program has given such a priority to a thread, or was started with one. The functions below
//! do what the C library's do. A priority that another process gives, or that is set by a direct
//! system call, is checked for from time to time where waiters contend.

use core::ffi::{c_int, c_void};

use antiphon_linux::real_time_is_about;
use libc::{pid_t, pthread_t, sched_param};

use crate::real::forward;

/// Notes a scheduling policy that a thread is about to get.
fn note(policy: c_int) {
    let ordinary = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE];
    if !ordinary.contains(&(policy & !libc::SCHED_RESET_ON_FORK)) {
        real_time_is_about();
    }
}

/// Notes the policy of a new thread, if it does not inherit its creator's.
pub(crate) fn note_attributes(attributes: *const c_void) {
    if attributes.is_null() {
        return;
    }
    let mut policy = libc::SCHED_OTHER;
    let at = &raw mut policy;
    if forward!(ATTR_GETSCHEDPOLICY(attributes, at)) == 0 {
        note(policy);
    }
}

/// `pthread_setschedparam`.
///
/// # Safety
///
/// The conditions of POSIX.
pub(crate) unsafe extern "C" fn set_thread(
    thread: pthread_t,
    policy: c_int,
    parameter: *const sched_param,
) -> c_int {
    note(policy);
    forward!(SETSCHEDPARAM(thread, policy, parameter))
}

/// `pthread_setschedprio`.
///
/// # Safety
///
/// The conditions of POSIX.
pub(crate) unsafe extern "C" fn set_thread_priority(thread: pthread_t, priority: c_int) -> c_int {
    // Only real-time policies have a priority other than 0.
    if priority > 0 {
        real_time_is_about();
    }
    forward!(SETSCHEDPRIO(thread, priority))
}

/// `sched_setscheduler`.
///
/// # Safety
///
/// The conditions of POSIX.
pub(crate) unsafe extern "C" fn set(
    process: pid_t,
    policy: c_int,
    parameter: *const sched_param,
) -> c_int {
    note(policy);
    forward!(SCHED_SETSCHEDULER(process, policy, parameter))
}

/// `sched_setparam`.
///
/// # Safety
///
/// The conditions of POSIX.
pub(crate) unsafe extern "C" fn set_parameter(
    process: pid_t,
    parameter: *const sched_param,
) -> c_int {
    // The value is not checked: for a time-sharing thread only 0 is accepted, and few programs set
    // that.
    real_time_is_about();
    forward!(SCHED_SETPARAM(process, parameter))
}
