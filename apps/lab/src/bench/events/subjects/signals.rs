//! Signals to a thread: one that handles them, and one that waits for them synchronously.
//!
//! Both use real-time signals, which queue, so that each ends one wait. They are blocked except
//! while their receiver waits.

use std::cell::Cell;
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use super::Mechanism;

thread_local! {
    /// Number of signals that this thread has handled and no wait has consumed.
    static HANDLED: Cell<u32> = const { Cell::new(0) };
}

/// `tgkill` to a thread in `sigsuspend`, whose handler counts.
pub struct Handler(Target);

impl Mechanism for Handler {
    fn new() -> Result<Self, String> {
        // SAFETY: all fields are numbers or addresses, for which zero is valid.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = handle as *const () as usize;
        let number = libc::SIGRTMIN() + 1;
        // SAFETY: the action is a local variable, and its function may run at any time.
        if unsafe { libc::sigaction(number, &raw const action, ptr::null_mut()) } != 0 {
            return Err(format!("no handler of signals: {}", io::Error::last_os_error()));
        }
        Ok(Self(Target { number, tid: AtomicI32::new(0) }))
    }

    fn enter(&self) {
        self.0.enter();
    }

    #[inline]
    fn signal(&self) {
        self.0.send();
    }

    #[inline]
    fn wait(&self) {
        let mut open = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the first call fills the mask, because its new mask is null; the second is given
        // a signal number that exists.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), open.as_mut_ptr());
            libc::sigdelset(open.as_mut_ptr(), self.0.number);
        }
        while HANDLED.get() == 0 {
            // SAFETY: the mask was initialised above.
            unsafe { libc::sigsuspend(open.as_ptr()) };
        }
        HANDLED.set(HANDLED.get() - 1);
    }
}

extern "C" fn handle(_: libc::c_int) {
    // The interrupted thread is in `sigsuspend`.
    HANDLED.set(HANDLED.get() + 1);
}

/// `tgkill` to a thread in `sigwaitinfo`.
pub struct Waiting {
    target: Target,
    set: libc::sigset_t,
}

impl Mechanism for Waiting {
    fn new() -> Result<Self, String> {
        let target = Target { number: libc::SIGRTMIN() + 2, tid: AtomicI32::new(0) };
        Ok(Self { set: target.set(), target })
    }

    fn enter(&self) {
        self.target.enter();
    }

    #[inline]
    fn signal(&self) {
        self.target.send();
    }

    #[inline]
    fn wait(&self) {
        // SAFETY: the set is ours, and no information about the signal is asked for. It fails only
        // when another signal was handled.
        while unsafe { libc::sigwaitinfo(&raw const self.set, ptr::null_mut()) } < 0 {}
    }
}

/// A thread, and the signal by which it is notified.
struct Target {
    number: libc::c_int,
    /// Relaxed: the notifier synchronised with the thread after `enter`.
    tid: AtomicI32,
}

impl Target {
    fn set(&self) -> libc::sigset_t {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the first call initialises the set, and the number is that of a signal.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), self.number);
            set.assume_init()
        }
    }

    fn enter(&self) {
        let set = self.set();
        // SAFETY: the set is a local variable, and `gettid` takes no arguments.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
            self.tid.store(libc::gettid(), Relaxed);
        }
    }

    #[inline]
    fn send(&self) {
        let tid = self.tid.load(Relaxed);
        // SAFETY: takes plain numbers, and the signal goes to a thread of this process.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, self.number) };
        assert_eq!(
            sent, 0,
            "a waiting thread can be signalled, and the queue of signals is not full"
        );
    }
}
