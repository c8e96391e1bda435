//! Tests with more nodes than 16 bits can distinguish: several sleepers share the name in a mutex's
//! `head`.
//!
//! In its own process, because it takes the first 140 000 nodes.

mod common;

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Platform, WaiterId};
use antiphon_sync::lock::{Lock, ShflMutex};
use antiphon_sync::policy::Numa;
use common::sound::Sound;
use common::validate::{Guarded, exclusion};
use support::arena;

type Mutex = ShflMutex<Linux, Numa, Sound>;

const NODES: u32 = 140_000;
/// Nodes whose numbers differ by this share a name.
const NAMES: u32 = 1 << 16;

/// Takes all nodes, once. All stay in use, except those that a thread makes its own.
fn take_all() {
    static TAKEN: OnceLock<()> = OnceLock::new();
    TAKEN.get_or_init(|| while arena().take().is_some_and(|id| id.index() < NODES) {});
}

/// Makes node `number` the node of the calling thread's next wait. Once for each number.
fn own(number: u32) {
    take_all();
    arena().give(WaiterId::new(Linux::epoch(), number));
}

fn unlock(lock: &impl Lock) {
    // SAFETY: each caller owns it.
    unsafe { lock.unlock() }
}

/// Starts a thread that waits for `lock` in node `number`, and reports when it has had the lock.
fn waiter(lock: &'static Mutex, number: u32) -> Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        own(number);
        lock.lock();
        unlock(lock);
        sender.send(())
    });
    receiver
}

/// Far longer than a wake takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Heads of three queues share a name: whichever lock is released, its own head is woken.
#[test]
fn each_of_three_namesakes_is_woken() {
    const NAME: u32 = 7;
    static LOCKS: [Mutex; 3] = [const { Mutex::NEW }; 3];
    take_all();
    LOCKS.iter().for_each(Mutex::lock);
    let waiters: Vec<_> =
        (0..).zip(&LOCKS).map(|(nth, lock)| waiter(lock, NAME + nth * NAMES)).collect();
    // Long enough for the waiters to fall asleep.
    thread::sleep(Duration::from_millis(100));
    for nth in [1, 2, 0] {
        assert!(waiters[nth].try_recv().is_err(), "the lock is held");
        unlock(&LOCKS[nth]);
        assert_eq!(waiters[nth].recv_timeout(LIMIT), Ok(()), "namesake {nth} was not woken");
    }
}

/// Runs `body` and fails if it does not end.
fn ends(body: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        body();
        sender.send(())
    });
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(()), "a waiter hangs, or has failed");
}

#[test]
fn namesakes_contend_for_one_mutex() {
    static LOCK: Guarded<Mutex> = Guarded::new();
    ends(|| exclusion(&LOCK, 6, 5_000, |nth| own(100 + nth as u32 / 2 + nth as u32 % 2 * NAMES)));
}
