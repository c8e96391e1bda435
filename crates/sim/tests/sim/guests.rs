//! Virtual machines: what they do not see, what a host puts off, and what both are told.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{
    Atomic, Budget, Clock, Clocks as _, Deadline, Hint, Hints as _, Platform, ThreadId, Waiter,
};
use antiphon_sim::{Guests, Machine, Outcome, Owns, Sim, Simulation, Why, now, owns, work};

use crate::{small, word};

const SLICE_NS: u64 = 100_000;
const SWITCH_NS: u64 = 1_000;
const GRACE_NS: u64 = 10_000;

const PLAIN: Guests = Guests {
    count: 2,
    slice_ns: SLICE_NS,
    switch_ns: SWITCH_NS,
    grace_ns: GRACE_NS,
    sections: false,
    releases: false,
    preempted: false,
};

fn machine() -> Machine {
    Machine { switch_ns: 0, ..small() }
}

fn simulation(guests: Guests) -> Simulation {
    Simulation::new(machine(), 1).guests(guests)
}

/// Four threads on each of two cores, that contend for a word and sleep.
fn contend(simulation: Simulation) -> Outcome {
    let word = word();
    let mut simulation = simulation;
    for number in 0..8 {
        let word = Rc::clone(&word);
        simulation = simulation.thread_on(number % 2, move || {
            for _ in 0..200 {
                let _ = word.0.spin_while(Relaxed, Budget::ns(500), |value| value % 8 != number);
                word.0.store((number + 1) % 8, Relaxed);
                work(700);
                nap();
            }
        });
    }
    simulation.run(10_000_000).expect("it ends")
}

/// Sleeps for 3 µs.
fn nap() {
    let ns = Sim::now(Clock::Monotonic) + 3_000;
    let waiter = Waiter::<Sim>::NEW;
    let _ = Sim::park(&waiter, Some(Deadline { clock: Clock::Monotonic, ns }));
}

#[test]
fn one_guest_alone_is_a_machine_without_guests() {
    let machine = || Machine { slice_ns: 1_000, ..Machine::two_sockets() };
    let plain = contend(Simulation::new(machine(), 7));
    let alone = Guests { count: 1, ..PLAIN };
    assert!(plain.counts.preemptions > 0 && plain.counts.parks > 0);
    assert_eq!(contend(Simulation::new(machine(), 7).guests(alone)), plain);
}

#[test]
fn a_virtual_cpu_without_its_cpu_makes_no_progress() {
    let ends = Rc::new(Cell::new([0; 2]));
    let mut simulation = simulation(PLAIN);
    for guest in 0..2 {
        let ends = Rc::clone(&ends);
        simulation = simulation.guest_thread_on(guest, 0, move || {
            work(5 * SLICE_NS);
            let mut all = ends.get();
            all[guest as usize] = now();
            ends.set(all);
        });
    }
    let outcome = simulation.run(1_000_000_000).expect("it ends");
    let last_ns = ends.get().into_iter().max().expect("two");
    let switches = (last_ns - 10 * SLICE_NS) / SWITCH_NS;
    assert_eq!(last_ns, 10 * SLICE_NS + switches * SWITCH_NS);
    assert!((9..=12).contains(&switches), "{switches}");
    assert!((8..=11).contains(&outcome.steals.preemptions), "{:?}", outcome.steals);
    assert_eq!(outcome.counts.preemptions, 0, "no guest preempts");
}

/// Two guests spin on one CPU for what no thread writes.
#[test]
fn spinners_of_two_guests_that_wait_for_ever_are_found() {
    for preempted in [false, true] {
        let mut simulation = simulation(Guests { preempted, ..PLAIN });
        for guest in 0..2 {
            let word = word();
            simulation = simulation.guest_thread_on(guest, 0, move || {
                word.0.wait_while(Relaxed, |value| value == 0);
            });
        }
        let stuck = simulation.run(1_000_000).expect_err("it can't go on");
        assert_eq!(stuck.why, Why::Deadlock);
    }
}

/// A thread of guest 0 owns a lock for `section_ns` of each microsecond, beside a guest that
/// computes.
fn sections(guests: Guests, section_ns: u64) -> Outcome {
    let own = move || {
        for _ in 0..2_000_000 / (section_ns + 1_000) {
            owns(Owns::Yes);
            if Sim::heeds_sections() {
                Sim::hint(Hint::SectionBegin);
            }
            work(section_ns);
            owns(Owns::GivesBack);
            if Sim::heeds_sections() {
                Sim::hint(Hint::SectionEnd);
                Sim::hint(Hint::Released);
            }
            owns(Owns::No);
            work(1_000);
        }
    };
    let simulation = simulation(guests).guest_thread_on(0, 0, own);
    simulation.guest_thread_on(1, 0, || work(2_000_000)).run(1_000_000_000).expect("it ends")
}

#[test]
fn a_preemption_is_put_off_for_a_section_and_no_longer_than_the_grace() {
    let told = Guests { sections: true, ..PLAIN };
    let none = sections(PLAIN, 5_000).steals;
    assert!(none.of_owners > 3 && none.put_off == 0, "{none:?}");
    let short = sections(told, 5_000).steals;
    assert!(short.put_off > 3, "{short:?}");
    assert_eq!((short.of_owners, short.overrun), (0, 0));
    let long = sections(told, 10 * GRACE_NS).steals;
    assert!(long.put_off > 3, "{long:?}");
    assert_eq!(long.of_owners, long.overrun, "only what exceeds the grace is preempted");
    assert!(long.overrun > 3, "{long:?}");
}

/// What a thread on core 1 is told of one on core 0, whose virtual CPU has lost its CPU; and of its
/// own slice.
fn told_of(guests: Guests) -> (bool, bool, bool) {
    let told = Rc::new(Cell::new((false, false, false)));
    let seen = Rc::clone(&told);
    let simulation = simulation(guests)
        .guest_thread_on(0, 0, || work(40 * SLICE_NS))
        .guest_thread_on(0, 1, move || {
            let (mut off, mut crowded, mut ends) = (false, false, false);
            for _ in 0..100 {
                work(SLICE_NS / 10);
                off |= !Sim::runs(ThreadId(1));
                crowded |= Sim::crowded();
                ends |= Sim::slice_left_ns() <= SLICE_NS as u32;
            }
            seen.set((off, crowded, ends));
        })
        .guest_thread_on(1, 0, || work(20 * SLICE_NS))
        .guest_thread_on(1, 1, || work(20 * SLICE_NS));
    let _ = simulation.run(1_000_000_000).expect("it ends");
    told.get()
}

#[test]
fn a_guest_does_not_see_that_it_has_lost_a_cpu_unless_it_is_told() {
    assert_eq!(told_of(PLAIN), (false, false, false));
    assert_eq!(told_of(Guests { preempted: true, ..PLAIN }), (true, true, true));
}

/// A spinner of guest 0 waits for a thread of guest 0 whose virtual CPU has no CPU, because a
/// spinner of guest 1 has it; and the other way round.
#[test]
fn spinners_give_their_virtual_cpus_to_those_that_they_wait_for() {
    let end_ns = |preempted| {
        let mut simulation = simulation(Guests { preempted, ..PLAIN });
        for guest in 0..2 {
            let word = word();
            let written = Rc::clone(&word);
            let mine = guest;
            simulation = simulation
                .guest_thread_on(guest, mine, move || {
                    for turn in 1..40 {
                        word.0.wait_while(Relaxed, |value| value < turn);
                    }
                })
                .guest_thread_on(guest, 1 - mine, move || {
                    for turn in 1..40 {
                        work(2_000);
                        written.0.store(turn, Relaxed);
                    }
                });
        }
        simulation.run(1_000_000_000).expect("it ends").end_ns
    };
    let [none, told] = [false, true].map(end_ns);
    assert!(told < none, "{told} ns, {none} ns without hints");
}

/// How late the thread of guest 0 was that sleeps until a time again and again, and works in
/// between; when the thread of guest 1 ended that computes for forty slices; and how often a
/// release took the CPU.
fn released(guests: Guests, work_ns: u64, times: u32) -> (u64, u64, u64) {
    let (late, end) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (latest, ended) = (Rc::clone(&late), Rc::clone(&end));
    let simulation = simulation(guests)
        .guest_thread_on(0, 0, move || {
            for _ in 0..times {
                let due_ns = now() + 3_000;
                nap();
                latest.set(latest.get().max(now() - due_ns));
                work(work_ns);
            }
        })
        .guest_thread_on(1, 0, move || {
            work(40 * SLICE_NS);
            ended.set(now());
        });
    let outcome = simulation.run(1_000_000_000).expect("it ends");
    (late.get(), end.get(), outcome.steals.released)
}

#[test]
fn a_release_that_was_told_takes_the_cpu_but_no_more_than_a_share() {
    let told = Guests { releases: true, ..PLAIN };
    let (none_ns, _, none) = released(PLAIN, 1_000, 20);
    let (told_ns, _, times) = released(told, 1_000, 20);
    assert!(none == 0 && times > 10, "{none}, {times}");
    assert!(told_ns < SLICE_NS / 4 && none_ns > SLICE_NS / 2, "{told_ns} ns, {none_ns} ns");
    // GUEST-5: one that sleeps a moment before the end of each slice gains nothing by it.
    let (_, end_ns, _) = released(told, SLICE_NS * 9 / 10, 200);
    assert!(end_ns < 90 * SLICE_NS, "{end_ns} ns");
}
