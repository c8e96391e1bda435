//! Paths of messages that leave out a part of the ordinary ones: an action with a vector of its own
//! needs no table, and what wakes a thread of its own CPU needs no other CPU's run queue.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Release};

use antiphon_metal::kernel::condvar::Condvar;
use antiphon_metal::kernel::message::direct::{self, Direct};
use antiphon_metal::kernel::state::Thread;
use antiphon_metal::kernel::{cpu, message, thread};
use antiphon_metal::x86::cpu::tsc_unordered;

use crate::programs::trial::{noted, settle};

/// The time at which an action has begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

struct Note;

impl Direct for Note {
    fn run() {
        BEGUN.store(tsc_unordered(), Release);
    }
}

/// The time from a post to CPU 1 until its action begins, by the action's own vector.
pub fn direct(trials: usize) -> Vec<u64> {
    let action = direct::register::<Note>().expect("a vector");
    let trial = |_| {
        settle();
        let began = tsc_unordered();
        direct::post(1, action);
        core::hint::spin_loop();
        noted(&BEGUN) - began
    };
    let trials = (0..trials).map(trial).collect();
    direct::unregister(action).expect("registered above");
    trials
}

/// A thread that blocks, and the time at which it runs again.
struct Blocked {
    thread: AtomicU64,
    running: AtomicU64,
}

fn unblock(word: usize) {
    // SAFETY: the word is the address of a thread, which is never freed.
    let thread = unsafe { &*core::ptr::with_exposed_provenance::<Thread>(word) };
    thread::unblock(thread);
}

/// The time from a post to CPU 1 until the thread runs that its action unblocks.
pub fn unblocked(trials: usize) -> Vec<u64> {
    let blocked = Arc::new(Blocked { thread: AtomicU64::new(0), running: AtomicU64::new(0) });
    let ours = blocked.clone();
    let sleeper = thread::spawn_on(1, move || {
        let me = core::ptr::from_ref(cpu::current()).expose_provenance();
        ours.thread.store(me as u64, Release);
        for _ in 0..trials {
            thread::block();
            ours.running.store(tsc_unordered(), Release);
        }
    });
    settle();
    let address = loop {
        match blocked.thread.load(Acquire) {
            0 => settle(),
            address => break address as usize,
        }
    };
    let action = message::register(unblock, address).expect("an action of the kernel");
    let trial = |_| {
        settle();
        let began = tsc_unordered();
        message::post(1, action);
        core::hint::spin_loop();
        noted(&blocked.running) - began
    };
    let trials = (0..trials).map(trial).collect();
    message::unregister(action).expect("registered above");
    sleeper.expect("memory for a thread").join();
    trials
}

/// A condition variable that a thread of CPU 1 waits for, and the time at which it runs again.
struct Listed {
    condvar: Condvar,
    running: AtomicU64,
}

/// The times from a notification until the waiter, a thread of CPU 1, runs; and until the sender
/// has done its part.
pub fn percpu(trials: usize) -> (Vec<u64>, Vec<u64>) {
    let listed = Arc::new(Listed { condvar: Condvar::new(), running: AtomicU64::new(0) });
    let ours = listed.clone();
    let waiter = thread::spawn_on(1, move || {
        for _ in 0..trials {
            let _ = ours.condvar.wait(None, || (), || ());
            ours.running.store(tsc_unordered(), Release);
        }
    });
    let trial = |_| {
        settle();
        let began = tsc_unordered();
        listed.condvar.notify_all();
        let sent = tsc_unordered();
        core::hint::spin_loop();
        (noted(&listed.running) - began, sent - began)
    };
    let trials = (0..trials).map(trial).unzip();
    waiter.expect("memory for a thread").join();
    trials
}
