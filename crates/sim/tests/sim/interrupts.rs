//! The cost of an interrupt that wakes a thread of another CPU.

use std::cell::Cell;
use std::rc::Rc;

use antiphon_platform::{Parked, Platform, WaiterRef};
use antiphon_sim::{Description, Interrupt, Machine, Sim, Simulation, Wakes, now, work};

use crate::{arena, time};

const WORK_NS: u64 = 1_000_000;

/// Two sockets of four cores, between which interrupts take longer.
pub fn machine(wakes: Wakes) -> Machine {
    let text = include_str!("small.toml")
        .replacen("cache = {", "interrupt = { ns = 100, measured = \"near\" }\ncache = {", 1)
        .replacen("hops = [", "interrupt = { ns = 300, measured = \"far\" }\nhops = [", 1);
    let read = Description::parse(&text).expect("it is sound").machine.without_jitter();
    let interrupt = Interrupt { wakes, ..read.interrupt };
    Machine { interrupt, idle: vec![], slice_ns: 10 * WORK_NS, ..read }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Duration of the waker's call.
    unpark_ns: u64,
    /// Time from the beginning of the call until the woken thread continued.
    latency_ns: u64,
    /// Duration of the work of another thread on the same core.
    worked_ns: u64,
    interrupts: u64,
}

/// A thread on core 0 wakes one on `core`, where another may work.
fn wake(wakes: Wakes, core: u32, busy: bool) -> Seen {
    let (name, seen) = (Rc::new(Cell::new(None::<WaiterRef>)), Rc::new(Cell::new(Seen::default())));
    let begun = Rc::new(Cell::new(0));
    let note = |change: fn(&mut Seen, u64)| {
        let seen = Rc::clone(&seen);
        move |ns| {
            let mut noted = seen.get();
            change(&mut noted, ns);
            seen.set(noted);
        }
    };
    let unpark_took = note(|seen, ns| seen.unpark_ns = ns);
    let latency_was = note(|seen, ns| seen.latency_ns = ns);
    let worked = note(|seen, ns| seen.worked_ns = ns);
    let (told, began) = (Rc::clone(&name), Rc::clone(&begun));
    let mut simulation = Simulation::new(machine(wakes), 1)
        .thread_on(core, move || {
            let id = arena().take().expect("a free node");
            let node = arena().resolve(id).expect("just taken");
            told.set(arena().reference(id.index()));
            assert_eq!(Sim::park(node, None), Parked::Woken);
            latency_was(now() - began.get());
        })
        .thread_on(0, move || {
            work(20_000);
            begun.set(now());
            unpark_took(time(|| Sim::unpark(name.get().expect("the sleeper was faster"))));
        });
    if busy {
        simulation = simulation.thread_on(core, move || worked(time(|| work(WORK_NS))));
    }
    let outcome = simulation.run(0).expect("all end");
    Seen { interrupts: outcome.counts.interrupts, ..seen.get() }
}

#[test]
fn a_wake_that_contains_its_interrupt_takes_the_same_at_any_distance() {
    for core in [1, 4] {
        let [idle, busy] = [false, true].map(|busy| wake(Wakes::Contained, core, busy));
        assert_eq!((idle.interrupts, busy.interrupts, busy.worked_ns), (0, 0, WORK_NS));
        assert_eq!(idle.unpark_ns, busy.unpark_ns);
    }
}

#[test]
fn an_interrupt_takes_time_from_both_sides_and_longer_to_another_socket() {
    let Interrupt { send_ns, handle_ns, .. } = machine(Wakes::All).interrupt;
    for (core, deliver_ns) in [(1, 100), (4, 300)] {
        assert_eq!(machine(Wakes::All).deliver_ns(0, core), deliver_ns);
        let (without, with) = (wake(Wakes::Contained, core, false), wake(Wakes::All, core, false));
        assert_eq!(with.unpark_ns, without.unpark_ns + send_ns);
        assert_eq!(with.latency_ns, without.latency_ns + send_ns + deliver_ns + handle_ns);
        assert_eq!(with.interrupts, 1);
        for wakes in [Wakes::All, Wakes::Busy] {
            let busy = wake(wakes, core, true);
            assert_eq!((busy.interrupts, busy.unpark_ns), (1, with.unpark_ns));
            assert_eq!(busy.worked_ns, WORK_NS + handle_ns, "on core {core}");
        }
        // The woken thread has to wait for the one that works, which is done later by that much.
        let waited = |wakes| wake(wakes, core, true).latency_ns;
        assert_eq!(waited(Wakes::Busy), waited(Wakes::Contained) + handle_ns);
    }
}

#[test]
fn an_idle_core_that_watches_a_word_needs_no_interrupt() {
    for core in [1, 4] {
        assert_eq!(wake(Wakes::Busy, core, false), wake(Wakes::Contained, core, false));
    }
}

#[test]
fn nobody_interrupts_itself() {
    for wakes in [Wakes::Busy, Wakes::All] {
        assert_eq!(wake(wakes, 0, false), wake(Wakes::Contained, 0, false));
    }
}

#[test]
fn a_distance_that_the_file_does_not_tell_is_any() {
    let machine = Machine::eight_sockets();
    let way = |to| machine.deliver_ns(0, to);
    assert_eq!((way(1), way(24), way(48)), (180, 180, 180));
}
