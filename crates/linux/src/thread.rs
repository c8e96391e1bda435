//! The caller's identity: the kernel's thread id, requested once per thread.

use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::ThreadId;

use crate::{filter, identity, lending, local, sys};

/// The calling thread.
///
/// The id is cached with the epoch of the process, so the thread that survives a fork asks again. A
/// `vfork` child has its parent's memory and thread-local state while the parent is suspended, and
/// so the parent's id: this is correct, because the id stands for the owner of the nodes in that
/// state.
pub(crate) fn current() -> ThreadId {
    let Some(epoch) = identity::wiped_epoch() else { return ThreadId(ask()) };
    local::with(|thread| {
        let kept = thread.id.load(Relaxed);
        if (kept >> 32) as u32 == epoch {
            return ThreadId(kept as u32);
        }
        let id = ask();
        thread.id.store(u64::from(epoch) << 32 | u64::from(id), Relaxed);
        if kept != 0 {
            lending::forked((kept >> 32) as u32, ThreadId(kept as u32));
        }
        ThreadId(id)
    })
}

/// Returns whether the kernel still knows a thread with that id.
///
/// It may be a thread of another process that got the id later: `true` is always a safe answer.
/// Asking only for threads of this process (`tgkill`) would not be safe: a `vfork` child is a
/// separate process for the kernel, and would consider all threads whose memory it shares to be
/// dead.
pub(crate) fn alive(thread: ThreadId) -> bool {
    // SAFETY: signal 0 is never delivered.
    let sent = unsafe { sys::call(libc::SYS_tkill, [thread.0 as usize, 0]) };
    sent != Err(sys::Errno(libc::ESRCH))
}

/// Returns whether a thread with that id, of any process, has ended. Checks more than [`alive`]:
/// the first thread of a process keeps its id after it has ended, until the other threads have
/// ended and the parent has waited for the process.
pub(crate) fn ended(thread: ThreadId) -> bool {
    !alive(thread) || is_zombie(thread).unwrap_or(false)
}

fn is_zombie(thread: ThreadId) -> Option<bool> {
    Some(matches!(state(thread)?, b'Z' | b'X'))
}

/// The thread's state (proc(5), `/proc/pid/stat`): the letter after its name, which is in
/// parentheses and may contain parentheses. `None` if the file can't be read.
pub(crate) fn state(thread: ThreadId) -> Option<u8> {
    let mut buffer = [0; 128];
    let told = of_proc(thread, b"/stat", &mut buffer)?;
    let name_ends = told.iter().rposition(|&byte| byte == b')')?;
    told.get(name_ends + 2).copied()
}

/// Reads the beginning of one of the thread's files in `/proc`.
pub(crate) fn of_proc<'a>(thread: ThreadId, file: &[u8], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut path = [0; 32];
    let mut at = 0;
    let mut push = |bytes: &[u8]| {
        path[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    push(b"/proc/");
    let digits = thread.0.checked_ilog10()?;
    for digit in (0..=digits).rev() {
        push(&[b'0' + (thread.0 / 10_u32.pow(digit) % 10) as u8]);
    }
    push(file);
    sys::read_file(CStr::from_bytes_until_nul(&path).ok()?, buffer)
}

/// The kernel's id of the calling thread.
pub(crate) fn ask() -> u32 {
    if filter::filtered() {
        return filter::id();
    }
    // SAFETY: takes no arguments and can't fail. If a filter refused it, all threads would be
    // thread 1, which never counts as dead.
    unsafe { sys::call(libc::SYS_gettid, []) }.map_or(1, |id| id as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_has_not_ended_and_nothing_is_known_of_who_is_not_there() {
        let here = current();
        assert_eq!((is_zombie(here), ended(here)), (Some(false), false));
        assert_eq!((is_zombie(ThreadId(0)), is_zombie(ThreadId(u32::MAX))), (None, None));
    }

    #[test]
    fn threads_differ_and_end() {
        let here = current();
        assert_eq!(here, current());
        let there = std::thread::spawn(|| {
            assert!(alive(current()));
            current()
        })
        .join();
        let there = there.unwrap_or(here);
        assert_ne!(here, there);
        assert!(alive(here));
        // The kernel forgets a joined thread a moment after `join` returns.
        while alive(there) {
            crate::futex::yield_now();
        }
    }
}
