//! A signal handler takes, uses and gives nodes while the thread under it does the same.

mod support;

use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_platform::{Atomic, Clock, Deadline, Parked, Platform};
use support::{Node, arena, errno, set_errno};

static HANDLED: AtomicU32 = AtomicU32::new(0);
static CLASHES: AtomicU32 = AtomicU32::new(0);

/// Checks that a node of the caller holds what the caller has written; returns whether it did.
fn use_node(mark: u32) -> bool {
    let Some(id) = arena().take() else { return false };
    let Some(waiter) = arena().resolve(id) else { return false };
    let free = waiter.wants.swap(mark, Relaxed) == 0;
    let past = Some(Deadline { clock: Clock::Monotonic, ns: 1 });
    let parked = Linux::park(waiter, past) == Parked::TimedOut;
    let mine = waiter.wants.swap(0, Relaxed) == mark;
    arena().give(id);
    free && parked && mine
}

extern "C" fn handler(_: libc::c_int) {
    let before = errno();
    set_errno(99);
    let fine = use_node(u32::MAX) && use_node(u32::MAX) && errno() == 99;
    set_errno(before);
    if !fine {
        CLASHES.fetch_add(1, Relaxed);
    }
    HANDLED.fetch_add(1, Relaxed);
}

#[test]
fn a_handler_and_its_thread_never_share_a_node() {
    let mut action: libc::sigaction = {
        // SAFETY: zero bytes are a valid action.
        unsafe { core::mem::zeroed() }
    };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler calls only functions that are allowed in handlers.
    unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, core::ptr::null_mut()) };
    // SAFETY: returns the calling thread.
    let me = unsafe { libc::pthread_self() };
    let done = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while done.load(Relaxed) == 0 {
                // SAFETY: that thread lives until it has set `done` and left the scope.
                unsafe { libc::pthread_kill(me, libc::SIGUSR1) };
                std::thread::yield_now();
            }
        });
        let mut turn = 1;
        // On a busy machine signals come in slowly: a few are enough then.
        let enough = Instant::now() + Duration::from_secs(1);
        while HANDLED.load(Relaxed) < 10 || HANDLED.load(Relaxed) < 3_000 && Instant::now() < enough
        {
            assert!(use_node(turn), "the thread's node was not its own");
            turn = turn % 1000 + 1;
        }
        done.store(1, Relaxed);
    });
    assert_eq!(CLASHES.load(Relaxed), 0);
    let node = Node::take();
    assert!(node.id.index() < 64, "nested takes use a few nodes, again and again");
    node.give();
}
