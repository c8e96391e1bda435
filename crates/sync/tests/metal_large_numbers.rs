//! Tests the spinlock with node numbers of more than the 16 bits of its tail: a waiter whose number
//! does not fit barges.
//!
//! On the stub of bare metal, on which spinners are never too many to queue.

mod common;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use antiphon_sync::lock::ShflSpin;
use common::metal::{CPUS, Metal, arena, boot};

/// Starts `CPUS - 1` waiters while the lock is held. Reports when all have had it.
fn contend(lock: &'static ShflSpin<Metal>) -> mpsc::Receiver<usize> {
    let (sender, receiver) = mpsc::channel();
    for cpu in 1..CPUS {
        let sender = sender.clone();
        thread::spawn(move || {
            boot(cpu);
            lock.lock();
            // SAFETY: locked above.
            unsafe { lock.unlock() };
            sender.send(cpu)
        });
    }
    receiver
}

#[test]
fn waiters_with_large_numbers_are_served() {
    static LOCK: ShflSpin<Metal> = ShflSpin::NEW;
    boot(0);
    // All numbers that would fit stay in use.
    while arena().take().is_some_and(|id| id.index() < 1 << 16) {}
    let first = arena().high_water() + 1;
    for _ in 0..20 {
        LOCK.lock();
        let served = contend(&LOCK);
        // Long enough for all waiters to come.
        thread::sleep(Duration::from_millis(20));
        // SAFETY: locked above.
        unsafe { LOCK.unlock() };
        for _ in 1..CPUS {
            assert!(served.recv_timeout(Duration::from_secs(30)).is_ok(), "a waiter hangs");
        }
        assert!(arena().high_water() < first + CPUS as u32, "a node is lost each time");
    }
    assert!(LOCK.try_lock());
}
