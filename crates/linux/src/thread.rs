//! The caller's identity: the kernel's thread id, asked for once a thread.

use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::ThreadId;

use crate::{filter, identity, lending, local, sys};

/// The calling thread.
///
/// The id is kept with the epoch of the process, so the thread that survives a fork asks again. A
/// `vfork` child has its parent's memory and thread-local state while its parent stands still, and
/// the parent's id with them: right, because that state is whose nodes the id answers for.
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

/// Whether the kernel still knows a thread of that id.
///
/// It may be one of another process that got the id later: `true` is always a safe answer. Asking
/// for threads of this process only (`tgkill`) would not be: a `vfork` child is a process of its
/// own in the kernel's eyes, and would take all threads whose memory it shares for dead.
pub(crate) fn alive(thread: ThreadId) -> bool {
    // SAFETY: signal 0 is never delivered.
    let sent = unsafe { sys::call(libc::SYS_tkill, [thread.0 as usize, 0]) };
    sent != Err(sys::Errno(libc::ESRCH))
}

/// Whether a thread of that id, of any process, has ended. Asks more than [`alive`]: the first
/// thread of a process keeps its id after it has ended, until the others have and the parent has
/// waited for them.
pub(crate) fn ended(thread: ThreadId) -> bool {
    !alive(thread) || is_zombie(thread).unwrap_or(false)
}

fn is_zombie(thread: ThreadId) -> Option<bool> {
    Some(matches!(state(thread)?, b'Z' | b'X'))
}

/// The thread's state as the kernel shows it (proc(5), `/proc/pid/stat`): the letter behind its
/// name, which is in parentheses and may have some in it. `None`: nothing.
pub(crate) fn state(thread: ThreadId) -> Option<u8> {
    let mut buffer = [0; 128];
    let told = of_proc(thread, b"/stat", &mut buffer)?;
    let name_ends = told.iter().rposition(|&byte| byte == b')')?;
    told.get(name_ends + 2).copied()
}

/// The beginning of a file of the thread's, in `/proc`.
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
    // SAFETY: takes nothing.
    // It can't fail. Were it filtered away all the same, all threads would be thread 1, which never
    // counts as dead.
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
