//! Processes that end with the thread that has started them, however that ends.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Has the kernel kill this process when the thread that started it ends.
pub fn end_with_parent() {
    // SAFETY: takes plain numbers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Has the kernel kill what `command` starts when the thread that starts it ends: for who waits
/// for a program that knows nothing of this.
pub fn end_with_us(command: &mut Command) {
    let parent = std::process::id();
    let end = move || {
        end_with_parent();
        // SAFETY: takes nothing and can't fail.
        if unsafe { libc::getppid() } as u32 != parent {
            // It has ended meanwhile, and nobody will be told.
            return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: system calls that a child of any process may make; an error of a number alone.
    unsafe { command.pre_exec(end) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    #[test]
    fn a_program_ends_with_who_started_it() {
        let started = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            end_with_us(command.arg("1000"));
            command.spawn()
        });
        let mut sleeps = started.join().expect("no panic").expect("sleep is everywhere");
        let ended = sleeps.wait().expect("it is ours");
        assert_eq!(ended.signal(), Some(libc::SIGKILL));
    }
}
