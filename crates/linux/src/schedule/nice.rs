//! The weight of a time-sharing thread: its nice value.

use core::ops::RangeInclusive;

use antiphon_platform::ThreadId;

use super::permitted::{Asked, Refused};
use crate::sys;

/// All nice values: each step up divides the weight of a thread by 1.25.
pub const NICE: RangeInclusive<i32> = -20..=19;

/// Returns the nice value of a thread.
///
/// # Errors
///
/// If there is no such thread, or a filter forbids the call.
pub fn nice(thread: ThreadId) -> Result<i32, Refused> {
    let args = [libc::PRIO_PROCESS as usize, thread.0 as usize];
    // SAFETY: takes only numbers.
    let told = unsafe { sys::call(libc::SYS_getpriority, args) }.map_err(Refused::by)?;
    // The system call returns 20 minus the value, so that it is never negative.
    Ok(20 - told as i32)
}

/// Sets the nice value of a thread; a value outside [`NICE`] is clamped. For a thread in a
/// real-time class it applies when the thread shares time again.
///
/// # Errors
///
/// If there is no such thread, or its weight would exceed the permitted one: that needs
/// `CAP_SYS_NICE` or a limit `RLIMIT_NICE` of 20 minus the value.
pub fn set_nice(thread: ThreadId, nice: i32) -> Result<(), Refused> {
    let nice = nice.clamp(*NICE.start(), *NICE.end());
    let args = [libc::PRIO_PROCESS as usize, thread.0 as usize, nice as isize as usize];
    // SAFETY: takes only numbers.
    let set = unsafe { sys::call(libc::SYS_setpriority, args) };
    set.map(drop).map_err(|errno| Refused::by(errno).of(Asked::Nice(nice)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nice_value_is_of_one_thread_and_is_read_back() {
        let mine = nice(ThreadId(0)).expect("one may ask");
        let other = std::thread::spawn(move || {
            set_nice(ThreadId(0), mine + 2).expect("to be nicer is permitted");
            nice(ThreadId(0)).expect("one may ask")
        });
        let theirs = other.join().expect("no panic");
        assert_eq!(theirs, (mine + 2).min(*NICE.end()));
        assert_eq!(nice(ThreadId(0)), Ok(mine));
        let gone = ThreadId(i32::MAX.cast_unsigned());
        assert!(nice(gone).is_err_and(Refused::gone) && set_nice(gone, 0).is_err());
    }
}
