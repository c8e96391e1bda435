//! Signal handlers that interrupt a waiter and then fork, or wait for another thread.

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline};
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait::Condvar;

type Mutex = ShflMutex<Linux>;

fn in_ms(ms: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + ms * 1_000_000 }
}

fn unlock(lock: &Mutex) {
    // SAFETY: each caller owns it.
    unsafe { lock.unlock() }
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: the handlers below use only atomics, our locks and system calls.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        assert_eq!(libc::sigaction(signal, &raw const action, ptr::null_mut()), 0);
    }
}

/// Starts a thread that runs `body`; returns its handle when `body` is about to begin.
fn start(body: impl FnOnce() + Send + 'static) -> (thread::JoinHandle<()>, libc::pthread_t) {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        // SAFETY: asks for the calling thread's own handle.
        sender.send(unsafe { libc::pthread_self() }).unwrap();
        body();
    });
    let handle = receiver.recv().unwrap();
    (thread, handle)
}

/// Waits long enough for a thread to fall asleep in a queue.
fn settle() {
    thread::sleep(Duration::from_millis(50));
}

/// In the child the waiter's node is gone and the queue is the parent's: the wait must still go on,
/// and end.
#[test]
fn a_handler_that_interrupts_a_waiter_may_fork() {
    static LOCK: Mutex = Mutex::NEW;
    static CHILD: AtomicI32 = AtomicI32::new(-1);

    extern "C" fn fork(_: libc::c_int) {
        // SAFETY: the child goes on with the wait below and leaves by `_exit`.
        let pid = unsafe { libc::fork() };
        CHILD.store(pid, Ordering::Relaxed);
        if pid == 0 {
            // SAFETY: no pointer involved. A child that hangs is a failure, not a hung test.
            unsafe { libc::alarm(20) };
        }
    }

    handle(libc::SIGUSR1, fork);
    LOCK.lock();
    // The first thread waits as the head, the second behind it.
    let waiter = |ms: u64| {
        start(move || {
            let had = LOCK.lock_until(in_ms(ms));
            if CHILD.load(Ordering::Relaxed) == 0 {
                // SAFETY: ends the child.
                unsafe { libc::_exit(i32::from(had)) };
            }
            // The parent's own wait may end either way by the time its children have ended.
            if had {
                unlock(&LOCK);
            }
        })
    };
    let (first, first_handle) = waiter(1_500);
    settle();
    let (second, second_handle) = waiter(1_500);
    settle();
    for handle in [first_handle, second_handle] {
        CHILD.store(-1, Ordering::Relaxed);
        // SAFETY: the thread waits for the lock, which we hold.
        unsafe { libc::pthread_kill(handle, libc::SIGUSR1) };
        while CHILD.load(Ordering::Relaxed) == -1 {
            thread::yield_now();
        }
        let mut status = 0;
        // SAFETY: our own child, our own word.
        unsafe { libc::waitpid(CHILD.load(Ordering::Relaxed), &raw mut status, 0) };
        assert_eq!(status, 0, "in the child the lock is held for ever, so the wait times out");
    }
    unlock(&LOCK);
    first.join().unwrap();
    second.join().unwrap();
}

/// The head of a queue, in a signal handler, waits until the other waiter has had the lock.
struct Meeting {
    inside: AtomicBool,
    had: AtomicBool,
    in_time: AtomicBool,
}

impl Meeting {
    const fn new() -> Self {
        Self {
            inside: AtomicBool::new(false),
            had: AtomicBool::new(false),
            in_time: AtomicBool::new(false),
        }
    }

    /// Called in the handler: waits for the other thread, with a time limit.
    fn wait_in_handler(&self) {
        self.inside.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        while !self.has_had() && begun.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        self.in_time.store(self.has_had(), Ordering::Relaxed);
    }

    /// Sends `signal` to the thread, and waits until it is in the handler.
    fn begin(&self, thread: libc::pthread_t, signal: libc::c_int) {
        // SAFETY: the thread waits for a lock that only the caller lets it have.
        unsafe { libc::pthread_kill(thread, signal) };
        while !self.inside.load(Ordering::Relaxed) {
            thread::yield_now();
        }
    }

    /// Records that the other thread has had the lock.
    fn note_had(&self) {
        self.had.store(true, Ordering::Relaxed);
    }

    fn has_had(&self) -> bool {
        self.had.load(Ordering::Relaxed)
    }

    fn was_in_time(&self) -> bool {
        self.in_time.load(Ordering::Relaxed)
    }
}

/// The head of the queue is in a handler that waits for the waiter behind it: the lock is free, so
/// that waiter must get it.
#[test]
fn a_free_lock_is_had_though_its_head_is_in_a_handler() {
    static LOCK: Mutex = Mutex::NEW;
    static MEETING: Meeting = Meeting::new();

    extern "C" fn wait_for_the_other(_: libc::c_int) {
        MEETING.wait_in_handler();
    }

    handle(libc::SIGUSR2, wait_for_the_other);
    LOCK.lock();
    let (first, first_handle) = start(|| {
        LOCK.lock();
        unlock(&LOCK);
    });
    settle();
    // Ten thousand times, because once in a while is not enough: if the lock is reserved for the
    // head again and again, this takes minutes.
    let (second, _) = start(|| {
        for _ in 0..10_000 {
            LOCK.lock();
            unlock(&LOCK);
        }
        MEETING.note_had();
    });
    settle();
    MEETING.begin(first_handle, libc::SIGUSR2);
    unlock(&LOCK);
    first.join().unwrap();
    second.join().unwrap();
    assert!(MEETING.was_in_time());
}

/// The head waits in a handler as above, and the waiter behind it is interrupted all the time, as
/// by a profiler or a timer: its backstop must still work.
#[test]
fn a_waiter_that_is_interrupted_all_the_time_passes_a_head_in_a_handler() {
    static LOCK: Mutex = Mutex::NEW;
    static MEETING: Meeting = Meeting::new();
    static DONE: AtomicBool = AtomicBool::new(false);

    extern "C" fn wait_for_the_other(_: libc::c_int) {
        MEETING.wait_in_handler();
    }

    extern "C" fn nothing(_: libc::c_int) {}

    handle(libc::SIGWINCH, wait_for_the_other);
    handle(libc::SIGPROF, nothing);
    LOCK.lock();
    let (first, first_handle) = start(|| {
        LOCK.lock();
        unlock(&LOCK);
    });
    settle();
    let (second, second_handle) = start(|| {
        LOCK.lock();
        MEETING.note_had();
        unlock(&LOCK);
        while !DONE.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    });
    settle();
    MEETING.begin(first_handle, libc::SIGWINCH);
    unlock(&LOCK);
    while !MEETING.has_had() {
        // SAFETY: the thread stays until we are done.
        unsafe { libc::pthread_kill(second_handle, libc::SIGPROF) };
        thread::sleep(Duration::from_millis(5));
    }
    DONE.store(true, Ordering::Relaxed);
    first.join().unwrap();
    second.join().unwrap();
    assert!(MEETING.was_in_time());
}

/// The first waiter is in a handler that waits for the second: a broadcast reaches both.
#[test]
fn a_broadcast_does_not_stop_at_a_waiter_in_a_handler() {
    static LOCK: Mutex = Mutex::NEW;
    static CHANGED: Condvar<Linux> = Condvar::NEW;
    static GO: AtomicBool = AtomicBool::new(false);
    static MEETING: Meeting = Meeting::new();

    extern "C" fn wait_for_the_other(_: libc::c_int) {
        MEETING.wait_in_handler();
    }

    fn wait() {
        LOCK.lock();
        while !GO.load(Ordering::Relaxed) {
            CHANGED.wait(None, || unlock(&LOCK), || LOCK.lock());
        }
        unlock(&LOCK);
    }

    handle(libc::SIGURG, wait_for_the_other);
    let (first, first_handle) = start(wait);
    settle();
    let (second, _) = start(|| {
        wait();
        MEETING.note_had();
    });
    settle();
    MEETING.begin(first_handle, libc::SIGURG);
    LOCK.lock();
    GO.store(true, Ordering::Relaxed);
    unlock(&LOCK);
    CHANGED.notify_all();
    first.join().unwrap();
    second.join().unwrap();
    assert!(MEETING.was_in_time());
}

/// The broadcast moves the waiters to their mutex: the first of them stays in a handler, and those
/// behind it sleep without a timer, except the last (MOVE-2).
#[test]
fn waiters_that_were_moved_pass_one_in_a_handler() {
    const OTHERS: u32 = 4;
    static LOCK: Mutex = Mutex::NEW;
    static CHANGED: Condvar<Linux> = Condvar::NEW;
    static GO: AtomicBool = AtomicBool::new(false);
    static BACK: AtomicU32 = AtomicU32::new(0);
    static INSIDE: AtomicBool = AtomicBool::new(false);
    static IN_TIME: AtomicBool = AtomicBool::new(false);

    extern "C" fn wait_for_the_others(_: libc::c_int) {
        INSIDE.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        let all = || BACK.load(Ordering::Relaxed) == OTHERS;
        while !all() && begun.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        IN_TIME.store(all(), Ordering::Relaxed);
    }

    fn wait() {
        LOCK.lock();
        while !GO.load(Ordering::Relaxed) {
            // SAFETY: locked above.
            unsafe { CHANGED.wait_with(&LOCK, None) };
        }
        unlock(&LOCK);
    }

    handle(libc::SIGIO, wait_for_the_others);
    let (first, first_handle) = start(wait);
    settle();
    let others = [(); OTHERS as usize].map(|()| {
        let (other, _) = start(|| {
            wait();
            BACK.fetch_add(1, Ordering::Relaxed);
        });
        other
    });
    settle();
    // SAFETY: the thread waits until GO, which only we set.
    unsafe { libc::pthread_kill(first_handle, libc::SIGIO) };
    while !INSIDE.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    LOCK.lock();
    GO.store(true, Ordering::Relaxed);
    CHANGED.notify_all();
    unlock(&LOCK);
    first.join().unwrap();
    others.into_iter().for_each(|other| other.join().unwrap());
    assert!(IN_TIME.load(Ordering::Relaxed));
}
