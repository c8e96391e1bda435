//! Signals and stack limit of the process: which signals it ignores and blocks, and how large its
//! stack may grow.
//!
//! The system calls for signals are made without the C library, whose functions leave out the two
//! signals that it keeps for itself.

use std::process::ExitCode;

/// The kernel's set of signals: bit N - 1 for signal N.
const BYTES: usize = size_of::<u64>();

/// Blocks all signals for the calling thread, and for threads that it creates from now on.
pub fn hold() {
    set_mask(u64::MAX);
}

/// The signals that the calling thread blocks: bit N - 1 for signal N.
#[must_use]
pub fn mask() -> u64 {
    let mut mask = 0_u64;
    let none = std::ptr::null::<u64>();
    // SAFETY: stores the mask in memory of ours, which has this length.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, none, &raw mut mask, BYTES)
    };
    mask
}

/// Sets the signals that the calling thread blocks.
pub fn set_mask(mask: u64) {
    let none = std::ptr::null_mut::<u64>();
    // SAFETY: reads a mask of ours, which has this length. Signals that are unblocked take effect.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, none, BYTES)
    };
}

/// The kernel's structure for the disposition of a signal; all zero is the default.
#[repr(C)]
#[derive(Default)]
struct Action {
    handler: usize,
    flags: libc::c_ulong,
    restorer: usize,
    mask: u64,
}

/// The signals that are ignored: bit N - 1 for signal N.
#[must_use]
pub fn ignored() -> u64 {
    let is_ignored = |signal: i32| {
        let (none, mut action) = (std::ptr::null::<Action>(), Action::default());
        // SAFETY: stores the current action in memory of ours.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, none, &raw mut action, BYTES) };
        action.handler == libc::SIG_IGN
    };
    (1..=64).filter(|&signal| is_ignored(signal)).fold(0, |set, signal| set | 1 << (signal - 1))
}

/// Sets the disposition of a signal: ignored, or its default.
pub fn set_ignored(signal: i32, ignored: bool) {
    let handler = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
    let (action, none) = (Action { handler, ..Action::default() }, std::ptr::null_mut::<Action>());
    // SAFETY: an action that calls nothing.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &raw const action, none, BYTES) };
}

/// Size of the stack that the two programs may need.
const STACK_BYTES: u64 = 8 << 20;

/// The limit on the stack, soft and hard.
fn stack() -> Option<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes to memory of ours.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    known.then_some((limit.rlim_cur, limit.rlim_max))
}

/// Sets the limit on the stack, soft and hard. False if that is not allowed.
pub fn set_stack((soft, hard): (u64, u64)) -> bool {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: reads a structure of ours.
    unsafe { libc::setrlimit(libc::RLIMIT_STACK, &raw const limit) == 0 }
}

/// Raises the limit on the stack, if it is smaller than the two programs may need: beyond the hard
/// limit where that is allowed, else up to it. Returns the limit as it was, soft and hard; `None`
/// if it was large enough.
pub fn widen_stack() -> Option<(u64, u64)> {
    let before = stack().filter(|&(soft, _)| soft < STACK_BYTES);
    if let Some((_, hard)) = before
        && !set_stack((STACK_BYTES, hard.max(STACK_BYTES)))
    {
        set_stack((hard, hard));
    }
    before
}

/// Prepares this process, so that it can wait for its children, and exceeding the limit on file
/// sizes is an error instead of a signal.
pub fn prepare() {
    set_ignored(libc::SIGCHLD, false);
    set_ignored(libc::SIGXFSZ, true);
}

/// Runs `work` with a sufficient stack: on a new thread, if the limit is too small and can't be
/// raised.
pub fn with_room(work: fn() -> ExitCode) -> ExitCode {
    if stack().is_none_or(|(soft, _)| soft >= STACK_BYTES) {
        return work();
    }
    // Signals go to the new thread, and not to this one.
    let before = mask();
    hold();
    let with_signals = move || {
        set_mask(before);
        work()
    };
    let builder = std::thread::Builder::new().stack_size(STACK_BYTES as usize);
    match builder.spawn(with_signals) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        // Perhaps this stack is large enough.
        Err(_) => with_signals(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_on_the_stack_is_within_the_hard_one() {
        assert!(stack().is_some_and(|(soft, hard)| soft <= hard));
    }

    #[test]
    fn a_blocked_signal_is_in_the_mask() {
        let before = mask();
        set_mask(before | 1 << (libc::SIGUSR1 - 1));
        assert_eq!(mask() & 1 << (libc::SIGUSR1 - 1), 1 << (libc::SIGUSR1 - 1));
        set_mask(before);
    }
}
