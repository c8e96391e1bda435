//! Who the caller is: the kernel's thread id, asked for once a thread.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::ThreadId;

use crate::{identity, local, sys};

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
        ThreadId(id)
    })
}

/// Whether the kernel still knows a thread of that id.
///
/// It may be one of another process that got the id later: `true` is always a safe answer. Asking
/// for threads of this process only (`tgkill`) would not be: a `vfork` child is a process of its
/// own in the kernel's eyes, and would take all threads whose memory it shares for dead.
pub(crate) fn alive(thread: ThreadId) -> bool {
    // SAFETY: signal 0 is sent to nobody.
    let sent = unsafe { sys::call(libc::SYS_tkill, [thread.0 as usize, 0]) };
    sent != Err(sys::Errno(libc::ESRCH))
}

/// The kernel's id of the calling thread.
pub(crate) fn ask() -> u32 {
    // SAFETY: takes nothing.
    // It can't fail. Were it filtered away all the same, all threads would be thread 1, which never
    // counts as dead.
    unsafe { sys::call(libc::SYS_gettid, []) }.map_or(1, |id| id as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            sys::yield_now();
        }
    }
}
