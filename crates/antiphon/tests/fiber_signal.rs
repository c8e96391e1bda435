//! A signal handler wakes fibers of the interrupted thread. In a separate process.

use std::future::poll_fn;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::fiber::{STACK_BYTES, block_on, yield_now};
use antiphon::pool::Pool;

const SIGNALS: u32 = 2_000;
/// If a signal is not handled by then, the test fails.
const FOR_EVER: Duration = Duration::from_secs(60);

static WAKER: OnceLock<Waker> = OnceLock::new();
static HANDLED: AtomicU32 = AtomicU32::new(0);
static OVER: AtomicBool = AtomicBool::new(false);
/// The pool's thread.
static THREAD: AtomicUsize = AtomicUsize::new(0);

extern "C" fn wakes(_: libc::c_int) {
    if let Some(waker) = WAKER.get() {
        waker.wake_by_ref();
    }
    HANDLED.fetch_add(1, Release);
}

/// The handler may interrupt the thread anywhere, even in the account of the fiber that it wakes.
#[test]
fn a_timed_fiber_goes_on_while_its_account_is_read() {
    let handler = wakes as extern "C" fn(_) as libc::sighandler_t;
    // SAFETY: the handler only wakes a fiber, which is allowed at any point of its thread, and
    // counts.
    assert_ne!(unsafe { libc::signal(libc::SIGUSR1, handler) }, libc::SIG_ERR);
    let builder = Pool::builder().threads(1);
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { builder.fibers(STACK_BYTES) }.build().expect("fibers");
    // Not dropped: if the test fails, the drop would wait for the fibers.
    let pool: &'static Pool = Box::leak(Box::new(pool));
    let waits = || {
        block_on(poll_fn(|context| {
            WAKER.get_or_init(|| context.waker().clone());
            if OVER.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
        }));
    };
    // The first task that a thread makes is timed.
    let waits = thread::spawn(move || pool.spawn(waits)).join().expect("it spawns");
    let reads = pool.spawn(move || {
        // SAFETY: it has no arguments.
        THREAD.store(unsafe { libc::pthread_self() } as usize, Release);
        while HANDLED.load(Acquire) < SIGNALS {
            black_box(pool.recording());
            yield_now();
        }
    });
    let begun = Instant::now();
    for signal in 1..=SIGNALS {
        while WAKER.get().is_none() || THREAD.load(Acquire) == 0 {
            thread::yield_now();
        }
        // SAFETY: the thread stays, as its pool does.
        let sent = unsafe { libc::pthread_kill(THREAD.load(Relaxed) as _, libc::SIGUSR1) };
        assert_eq!(sent, 0);
        while HANDLED.load(Acquire) < signal {
            assert!(begun.elapsed() < FOR_EVER, "the handler waits for the thread that it is on");
            thread::yield_now();
        }
    }
    OVER.store(true, Release);
    WAKER.get().expect("it was left").wake_by_ref();
    waits.join().expect("no panic");
    reads.join().expect("no panic");
}
