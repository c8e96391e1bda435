//! Tests which calls are allowed to a thread that has a real-time priority, but no right to one,
//! like a thread that got it from rtkit. Needs root, to set the priority and to continue as another
//! user.

use antiphon_linux::schedule::{self, Refused};
use antiphon_platform::ThreadId;

const ME: ThreadId = ThreadId(0);
/// A user without privileges.
const USER: libc::c_long = 65_534;

/// Makes only the calling thread another user's, without capabilities.
fn become_nobody() -> bool {
    // SAFETY: takes numbers; unlike libc's function, the system call affects one thread.
    unsafe { libc::syscall(libc::SYS_setresuid, USER, USER, USER) == 0 }
}

#[test]
fn a_priority_that_was_given_is_lowered_and_left_and_never_had_again() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours to write.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_RTPRIO, &raw mut limit) }, 0);
    if limit.rlim_cur != 0 {
        return println!("skipped: RLIMIT_RTPRIO is {}, which is a right", limit.rlim_cur);
    }
    let seen = std::thread::spawn(|| {
        let before = schedule::class(ME).map_err(|refused| refused.to_string())?;
        schedule::set_fifo(ME, 5).map_err(|refused| refused.to_string())?;
        if !become_nobody() {
            return Err("it takes root to go on as another user".to_owned());
        }
        let fifo = |priority| schedule::set_fifo(ME, priority).map_err(Refused::errno);
        let (lower, higher) = (fifo(2), fifo(5));
        Ok((lower, higher, schedule::set_timeshared(ME, before), fifo(1)))
    });
    match seen.join().expect("no panic") {
        Ok(seen) => assert_eq!(seen, (Ok(()), Err(libc::EPERM), Ok(()), Err(libc::EPERM))),
        Err(why) => println!("skipped: {why}"),
    }
}
