//! What a thread may ask of the kernel's scheduler.

use std::io::Error;
use std::thread;

/// What a scheme must be permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// What everybody may do.
    Nothing,
    /// A slice of its own, which everybody may ask of a kernel that has them.
    Slice,
    /// Real-time priorities.
    Realtime,
}

impl Needs {
    /// As tables and reports have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Slice => "slice",
            Self::Realtime => "real-time",
        }
    }

    /// What is not there of it, and how to get it; tried on a thread of its own.
    pub fn missing(self) -> Option<String> {
        let tried = match self {
            Self::Nothing => return None,
            Self::Slice => thread::spawn(|| slice(1_000_000)),
            Self::Realtime => thread::spawn(|| realtime(libc::SCHED_FIFO, 1)),
        };
        tried.join().unwrap_or_else(|_| Err("the thread panicked".to_owned())).err()
    }
}

/// Makes the calling thread one of that real-time policy. What it starts is not.
///
/// # Errors
///
/// One line: it is not permitted, and what would do.
pub fn realtime(policy: i32, priority: i32) -> Result<(), String> {
    let parameters = libc::sched_param { sched_priority: priority };
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameters are ours.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } == 0 {
        return Ok(());
    }
    let error = Error::last_os_error();
    Err(format!(
        "real-time priorities are not permitted ({error}): be root, have ulimit -r 99, or give the \
         cgroup a cpu.rt_runtime_us"
    ))
}

/// Asks for slices of that length, from 100 µs to 100 ms, for the calling thread.
///
/// # Errors
///
/// One line: this kernel has no such thing.
pub fn slice(ns: u64) -> Result<(), String> {
    let mut attributes = attributes()?;
    // What is read here of a thread that has no such thing can't be set.
    attributes.sched_flags = 0;
    attributes.sched_runtime = ns;
    // SAFETY: takes a thread, attributes of ours and no flags.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    let old = "this kernel has no slices of a thread's own: Linux 6.12 has";
    if set != 0 {
        return Err(format!("{old} ({})", Error::last_os_error()));
    }
    // A kernel that has none takes the number and forgets it.
    match self::attributes()?.sched_runtime == ns {
        true => Ok(()),
        false => Err(old.to_owned()),
    }
}

/// The attributes of the calling thread.
fn attributes() -> Result<libc::sched_attr, String> {
    // SAFETY: all fields are numbers, of which zero is a value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of_val(&attributes);
    attributes.size = size as u32;
    let to = &raw mut attributes;
    // SAFETY: the attributes are ours to write, and as large as is said.
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, to, size, 0) };
    let error = Error::last_os_error();
    if read == 0 { Ok(attributes) } else { Err(format!("sched_getattr: {error}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(Needs::Nothing.missing(), None);
        for needs in [Needs::Slice, Needs::Realtime] {
            assert!(needs.missing().is_none_or(|why| why.contains(": ")), "{needs:?}");
        }
    }

    #[test]
    fn who_asks_for_what_is_not_there_is_told() {
        let said = thread::spawn(|| realtime(libc::SCHED_FIFO, 1000)).join().expect("no panic");
        assert!(said.is_err_and(|why| why.contains("not permitted")));
    }
}
