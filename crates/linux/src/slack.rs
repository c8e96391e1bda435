//! Timer slack: how much later the kernel may end a thread's sleeps, so that CPUs wake up less
//! often.

use antiphon_platform::Unsupported;

use crate::sys;

/// Lets the kernel end sleeps of the calling thread at most `ns` nanoseconds late; the default is
/// 50 000, and 0 restores the value at the thread's start. Threads that it starts inherit the
/// value. Not a bound on lateness: the thread must still be scheduled.
///
/// # Errors
///
/// [`Unsupported`] where a filter of system calls forbids the call.
pub fn set_timer_slack(ns: usize) -> Result<(), Unsupported> {
    // SAFETY: takes only numbers.
    let done =
        unsafe { sys::call(libc::SYS_prctl, [libc::PR_SET_TIMERSLACK as usize, ns, 0, 0, 0]) };
    done.map(drop).map_err(|_| Unsupported)
}

/// Returns the timer slack of the calling thread.
///
/// # Errors
///
/// See [`set_timer_slack`].
pub fn timer_slack() -> Result<usize, Unsupported> {
    // SAFETY: takes only numbers.
    let got = unsafe { sys::call(libc::SYS_prctl, [libc::PR_GET_TIMERSLACK as usize, 0, 0, 0, 0]) };
    got.map_err(|_| Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_slack_that_it_wants() {
        let thread = std::thread::spawn(|| {
            assert_eq!(set_timer_slack(1), Ok(()));
            assert_eq!(timer_slack(), Ok(1));
        });
        thread.join().expect("no panic");
        assert_ne!(timer_slack(), Ok(1));
    }
}
