//! Models of the CPU token (baton) that processes hand to each other, and of the lock on their
//! shared table. Threads stand for processes, and a cell for the table.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Clock, Clocks as _, Deadline, Platform};
use antiphon_runtime::coop::{AtTable, Relay};

use crate::bounds::{PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

type Turn = <Check as Atomics>::U32;

/// Longer than any model lasts.
const PATIENCE_NS: u64 = 1_000_000;

pub fn entries() -> Vec<Entry> {
    let too_late = &["too late"];
    Subject("baton").models([
        model("table-excludes-2x1", table(2, 1), PLAIN),
        model("table-excludes-2x2", table(2, 2), PLAIN),
        model("table-excludes-3x1", table(3, 1), PLAIN).by_lot(5_000),
        model("goes-round-2x1", round(2, 1), PLAIN),
        model("goes-round-2x2", round(2, 2), SPURIOUS).by_lot(5_000),
        model("goes-round-3x2", round(3, 2), SPURIOUS).by_lot(2_000),
        model("owner-dies-1+1", dying(1), TIMED.mortal(1)).reaches(&["after it"]),
        model("owner-dies-1+2", dying(2), TIMED.mortal(1)).by_lot(3_000).reaches(&["after it"]),
        model("leaves-late-1+1", leaving_late(1), TIMED).reaches(too_late),
        model("hands-late-2x1", handing_late(2), TIMED).reaches(too_late),
        model("hands-late-3x1", handing_late(3), TIMED).by_lot(10_000).reaches(too_late),
    ])
}

fn enter(relay: &Relay<Check>) -> AtTable<'_, Check> {
    relay.enter(Check::thread(), PATIENCE_NS).expect("nobody keeps it in all turns")
}

fn later() -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Check::now(Clock::Monotonic) + PATIENCE_NS }
}

/// Asserts that no sleep was ended by its deadline: a wake has ended it.
fn in_time() {
    assert!(Check::now(Clock::Monotonic) < PATIENCE_NS, "nobody has woken it");
}

/// BATON-1, without an abandoned thread: the table belongs to one thread at a time.
fn table(threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        let relay = scope.share(Relay::<Check>::NEW);
        let table = scope.share(Data::new(0));
        scope.spawn_each(0..threads, move |_| {
            for _ in 0..rounds {
                let at = enter(relay);
                in_time();
                table.set(table.get() + 1);
                drop(at);
            }
        });
        scope.finally(move || assert_eq!(table.get(), threads * rounds));
    })
}

/// BATON-2, without a deadline that passes: the baton is handed around, and only its holder runs.
fn round(threads: usize, rounds: u32) -> Program {
    let all = threads as u32;
    Program::new(all, all * rounds, move |scope| {
        let relay = scope.share(Relay::<Check>::NEW);
        let turns: &[Turn; 3] = scope.share([const { Turn::ZERO }; 3]);
        let cpu = scope.share(Data::new(0));
        assert!(enter(relay).hand(relay.held(), Some(0)));
        scope.spawn_each(0..threads, move |place| {
            for round in 0..rounds {
                loop {
                    let (calls, held) = relay.look(&turns[place]);
                    if held.place() == Some(place) {
                        break;
                    }
                    Relay::<Check>::wait(&turns[place], calls, later());
                    in_time();
                }
                assert_eq!(cpu.get(), round * all + place as u32, "whose turn it is");
                cpu.set(cpu.get() + 1);
                pass(relay, turns, (place + 1) % threads);
            }
        });
        scope.finally(move || {
            assert_eq!((cpu.get(), relay.held().place()), (rounds * all, Some(0)));
        });
    })
}

fn pass(relay: &Relay<Check>, turns: &[Turn], to: usize) {
    let at = enter(relay);
    assert!(at.hand(relay.held(), Some(to)), "nobody is given up on");
    drop(at);
    Relay::<Check>::call(&turns[to]);
}

/// BATON-1: a thread dies at the table after it has handed the baton over; `others` still get to
/// the table. Must reach `after it`.
fn dying(others: u32) -> Program {
    Program::new(others + 1, others + 1, move |scope| {
        let relay = scope.share(Relay::<Check>::NEW);
        scope.spawn(move || {
            let at = enter(relay);
            at.hand(relay.held(), Some(0));
            std::mem::forget(at);
        });
        scope.spawn_each(1..=others as usize, move |other| {
            let at = enter(relay);
            let seen = relay.held();
            if seen.place() == Some(0) {
                antiphon_check::probe("after it");
            }
            at.hand(seen, Some(other));
        });
        scope.finally(move || assert!(relay.held().place().is_some()));
    })
}

/// BATON-1: a thread that is slow at the table leaves it after others have given up on it: the
/// threads that came after it keep the table to themselves. Must reach `too late`.
fn leaving_late(others: u32) -> Program {
    Program::new(others + 1, others + 1, move |scope| {
        let relay = scope.share(Relay::<Check>::NEW);
        let slow = enter(relay);
        scope.spawn(move || {
            if !slow.stands() {
                antiphon_check::probe("too late");
            }
            drop(slow);
        });
        scope.spawn_each(0..others, move |_| {
            let at = enter(relay);
            assert!(at.stands(), "nobody has given up on it");
            drop(at);
        });
    })
}

/// BATON-3: whichever thread is slow at the table, the baton moves from one thread to the next:
/// each successful hand-over goes to a different place. Must reach `too late`.
fn handing_late(threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let relay = scope.share(Relay::<Check>::NEW);
        let handed = scope.share(Turn::ZERO);
        scope.spawn_each(0..threads, move |_| {
            let at = enter(relay);
            let seen = relay.held();
            let next = seen.place().map_or(0, |place| place + 1);
            if at.hand(seen, Some(next)) {
                handed.fetch_add(1, Relaxed);
            } else {
                antiphon_check::probe("too late");
            }
        });
        scope.finally(move || {
            let place = relay.held().place().expect("the first has handed it over");
            assert_eq!(place as u32 + 1, handed.load(Relaxed));
        });
    })
}
