//! Tests with several processes and one mapping: events, latches and broadcasts, and a waiter that
//! is killed.
//!
//! Sleepers check their words from time to time, so a wake lost between processes only makes these
//! tests take minutes; the models in `crates/models` check that none is lost.

mod processes;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use antiphon_shared::{Broadcast, Event, Latch};

use processes::{LONG, child, exits_well, kill, map, place, wait_for};

/// The memory that the processes share. All zero at first.
#[repr(C)]
struct Common {
    events: [Event; 2],
    broadcasts: [Broadcast; 2],
    /// This latch counts from 1.
    latch: Latch,
    round: AtomicU32,
    note: AtomicU32,
}

fn common() -> &'static Common {
    // SAFETY: zero bytes are valid for each field, as `Shared` requires.
    unsafe { map() }
}

#[test]
fn processes_take_turns_by_events() {
    const ROUNDS: u32 = 2_000;
    let Common { events: [asked, told], round, .. } = common();
    let partner = child(|| {
        (1..=ROUNDS).all(|at| {
            let in_time = asked.wait_for(LONG) && round.load(Relaxed) == at;
            round.store(0, Relaxed);
            told.set();
            in_time
        })
    });
    for at in 1..=ROUNDS {
        round.store(at, Relaxed);
        asked.set();
        assert!(told.wait_for(LONG) && round.load(Relaxed) == 0);
    }
    assert!(exits_well(partner));
    assert!(!told.try_wait() && !told.wait_for(Duration::from_millis(2)));
}

#[test]
fn a_latch_opens_for_all_processes_when_the_last_has_come() {
    for _ in 0..100 {
        let (latch, note) = (place(Latch::new(3)), &common().note);
        let come = || {
            note.fetch_add(1, Relaxed);
            latch.count_down(1);
            latch.wait_for(LONG) && note.load(Relaxed) == 3
        };
        let children = [child(come), child(come)];
        assert!(come());
        assert!(children.into_iter().all(exits_well));
        assert!(latch.is_open());
    }
}

#[test]
fn a_broadcast_reaches_each_process_each_time() {
    const ROUNDS: u32 = 2_000;
    let Common { broadcasts: [told, heard], round, note, .. } = common();
    let hear = || {
        let mut seen = told.now();
        note.fetch_add(1, Relaxed);
        heard.send();
        (1..=ROUNDS).all(|at| {
            let Some(now) = told.wait_for(seen, LONG) else { return false };
            let once = now.since(seen) == 1 && round.load(Relaxed) == at;
            seen = now;
            note.fetch_add(1, Relaxed);
            heard.send();
            once
        })
    };
    let children = [child(hear), child(hear)];
    for at in 0..=ROUNDS {
        loop {
            let seen = heard.now();
            if note.load(Relaxed) == 2 * (at + 1) {
                break;
            }
            assert!(heard.wait_for(seen, LONG).is_some(), "nobody was told");
        }
        round.store(at + 1, Relaxed);
        told.send();
    }
    assert!(children.into_iter().all(exits_well));
}

#[test]
fn a_killed_waiter_takes_no_wake_of_others_with_it() {
    let Common { broadcasts: [told, _], latch, note, .. } = common();
    let wait = |at: u32| {
        move || {
            let seen = told.now();
            note.fetch_add(1, Relaxed);
            if at == 0 { told.wait_for(seen, LONG).is_some() } else { latch.wait_for(LONG) }
        }
    };
    let (victims, others) = ([0, 1].map(|at| child(wait(at))), [0, 1].map(|at| child(wait(at))));
    wait_for(note, 4);
    assert!(!latch.wait_for(Duration::from_millis(20)), "nobody has counted");
    victims.into_iter().for_each(kill);
    told.send();
    latch.count_down(1);
    assert!(others.into_iter().all(exits_well));
    thread::scope(|scope| assert!(scope.spawn(|| latch.wait_for(LONG)).join().unwrap()));
}
