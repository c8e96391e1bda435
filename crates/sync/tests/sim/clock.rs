//! Tests of clocks on simulated machines: what a program measures of counters whose offsets are
//! known.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Release};

use antiphon_platform::{Atomic, Atomics};
use antiphon_sim::{Machine, OwnLine, Sim, Simulation, think};
use antiphon_sync::clock::{Apart, Least, Meeting, Order, Ordo};

/// Returns a machine of two sockets whose counters have these offsets.
fn machine(offsets_ns: [u64; 2]) -> Machine {
    let offsets_ns = offsets_ns.to_vec();
    Machine { clock_offsets_ns: offsets_ns, ..Machine::two_sockets().without_jitter() }
}

/// Returns the difference of the counters as measured by a program on all cores.
fn measured(machine: &Machine, seed: u64) -> u64 {
    let others = machine.cores() - 1;
    let meetings: Rc<Vec<_>> = Rc::new((0..others).map(|_| Meeting::<Sim>::new()).collect());
    let hub = Rc::new(RefCell::new(Vec::new()));
    let all: Rc<Vec<Cell<Option<Least>>>> = Rc::new(vec![Cell::new(None); others as usize]);
    let mut simulation = Simulation::new(machine.clone(), seed).thread_on(0, {
        let (meetings, hub) = (Rc::clone(&meetings), Rc::clone(&hub));
        move || {
            let lead = |meeting: &Meeting<Sim>| meeting.lead(16, u64::MAX);
            hub.replace(meetings.iter().map(lead).collect());
        }
    });
    for place in 0..others as usize {
        let (meetings, all) = (Rc::clone(&meetings), Rc::clone(&all));
        let follow = move || all[place].set(Some(meetings[place].follow()));
        simulation = simulation.thread_on(place as u32 + 1, follow);
    }
    let _ = simulation.run(0).expect("all meet");
    let mut apart = Apart::new();
    let others = all.iter().filter_map(Cell::get);
    hub.take().into_iter().zip(others).for_each(|(hub, other)| apart.add(hub, other));
    apart.ticks()
}

#[test]
fn offsets_are_found_within_what_a_line_takes() {
    for offsets_ns in [[0, 0], [0, 700], [700, 0], [5_000, 40]] {
        let m = machine(offsets_ns);
        let real = offsets_ns[0].abs_diff(offsets_ns[1]);
        let apart = measured(&m, 1);
        assert!(apart >= real, "{apart} of {real}");
        // Over the hub: two lines, the longest way, and two looks at the clock with each.
        let slack = 2 * (2 * m.transfer_ns(0, m.cores() - 1) + 4 * m.clock_ns);
        assert!(apart <= real + slack, "{apart} of {real}, and {slack}");
        assert_eq!(measured(&m, 1), apart, "the same each time");
    }
}

#[test]
fn a_coarse_counter_is_uncertain_by_a_step() {
    let m = machine([0, 0]);
    let coarse = Machine { clock_tick_ns: 500, ..m.clone() };
    assert!(measured(&coarse, 1) >= 500);
}

/// Cores of both sockets pass stamps on: none is greater than a stamp that was taken after it,
/// though the counters of one socket are far behind.
#[test]
fn no_stamp_is_before_those_that_it_has_seen() {
    let m = machine([0, 900]);
    let clock = Ordo::<Sim>::new(measured(&m, 1));
    let (far, uncertain) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for seed in 0..5 {
        let line = Rc::new(OwnLine(<Sim as Atomics>::U64::ZERO));
        let mut simulation = Simulation::new(m.clone(), seed);
        for core in [0, 1, m.cores() - 1] {
            let line = Rc::clone(&line);
            let (far, uncertain) = (Rc::clone(&far), Rc::clone(&uncertain));
            simulation = simulation.thread_on(core, move || {
                for _ in 0..200 {
                    let theirs = line.load(Acquire);
                    let mine = clock.now();
                    let order = clock.cmp(theirs, mine);
                    assert_ne!(order, Order::Greater, "{theirs}, {mine}");
                    far.set(far.get() + u32::from(theirs > mine));
                    uncertain.set(uncertain.get() + u32::from(order == Order::Uncertain));
                    line.store(mine, Release);
                    think(3_000);
                }
            });
        }
        let _ = simulation.run(0).expect("all end");
    }
    assert!(far.get() > 0, "a plain comparison would have been wrong");
    assert!(uncertain.get() > 0 && uncertain.get() < 3_000, "{}", uncertain.get());
}
