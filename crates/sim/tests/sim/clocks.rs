//! Tests of clocks and counters: there is one clock, and the counters of nodes have offsets.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Release};

use antiphon_platform::{Atomic, Clock, Clocks as _};
use antiphon_sim::{Description, Machine, Sim, Simulation, now, think, work};

use crate::{small, time, word};

/// Two threads on these cores read something in turns, each after it has seen that the other has:
/// what they read, in that order.
fn in_turns(machine: &Machine, seed: u64, cores: [u32; 2], read: fn() -> u64) -> Vec<u64> {
    let (turn, seen) = (word(), Rc::new(RefCell::new(Vec::new())));
    let mut simulation = Simulation::new(machine.clone(), seed);
    for (me, core) in cores.into_iter().enumerate() {
        let (turn, seen) = (Rc::clone(&turn), Rc::clone(&seen));
        simulation = simulation.thread_on(core, move || {
            for round in 0..20 {
                let mine = 2 * round + me as u32;
                turn.wait_while(Acquire, |turn| turn != mine);
                let value = read();
                seen.borrow_mut().push(value);
                turn.store(mine + 1, Release);
                think(1_000);
            }
        });
    }
    let _ = simulation.run(0).expect("both end");
    seen.take()
}

/// The largest decrease from one value to the next.
fn back_ns(values: &[u64]) -> u64 {
    values.windows(2).map(|pair| pair[0].saturating_sub(pair[1])).max().expect("some were read")
}

#[test]
fn the_clock_never_goes_back_and_counters_do_by_their_offset_at_most() {
    let m = Machine { clock_offset_ns: 700, ..small() };
    let mut furthest_ns = 0;
    for seed in 0..100 {
        let clock = in_turns(&m, seed, [0, 4], || Sim::now(Clock::Monotonic));
        assert_eq!(back_ns(&clock), 0);
        let counters = in_turns(&m, seed, [0, 4], Sim::counter);
        assert!(back_ns(&counters) <= m.clock_offset_ns, "seed {seed}: {counters:?}");
        furthest_ns = furthest_ns.max(back_ns(&counters));
        assert_eq!(back_ns(&in_turns(&m, seed, [4, 5], Sim::counter)), 0, "of one node");
        let together = Machine { clock_offset_ns: 0, ..m.clone() };
        assert_eq!(back_ns(&in_turns(&together, seed, [0, 4], Sim::counter)), 0);
    }
    // From one reading to the next a line has gone over, and the next was made.
    let least_ns = m.transfer_ns(0, 4) + m.clock_ns;
    assert!(furthest_ns > 0 && furthest_ns <= m.clock_offset_ns - least_ns, "{furthest_ns}");
}

/// Repeated readings of the offset of a core's counter.
fn ahead_ns(machine: &Machine, seed: u64, core: u32) -> Vec<u64> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::clone(&seen);
    let simulation = Simulation::new(machine.clone(), seed).thread_on(core, move || {
        for _ in 0..50 {
            work(12_345);
            let counter = Sim::counter();
            told.borrow_mut().push(counter - now());
        }
    });
    let _ = simulation.run(0).expect("it ends");
    seen.take()
}

#[test]
fn a_counter_is_ahead_by_the_same_all_the_time_and_all_over_its_node() {
    let m = Machine { clock_offset_ns: 700, ..small() };
    for seed in 0..10 {
        let of = |core| ahead_ns(&m, seed, core);
        assert!(of(0).iter().all(|&ahead| ahead == of(3)[0] && ahead <= 700));
        assert!(of(4).iter().all(|&ahead| ahead == of(7)[0] && ahead <= 700));
    }
    let of = |seed| (ahead_ns(&m, seed, 0)[0], ahead_ns(&m, seed, 4)[0]);
    assert!((1..10).any(|seed| of(seed) != of(0)), "the seed chooses");
}

#[test]
fn offsets_and_ticks_are_what_the_file_says() {
    let text = include_str!("small.toml").replacen(
        "offset = { ns = 0, estimated = \"of clocks\" }",
        "offset = { ns = 90, estimated = \"of clocks\" }
         offsets = [{ ns = 5, measured = \"one\" }, { ns = 95, measured = \"other\" }]
         tick = { ns = 40, published = \"of a counter at 25 MHz\" }",
        1,
    );
    let machine = Description::parse(&text).expect("it is sound").machine.without_jitter();
    assert_eq!((&machine.clock_offsets_ns[..], machine.clock_tick_ns), (&[5, 95][..], 40));
    for (core, ahead) in [(0, 5), (4, 95)] {
        let simulation = Simulation::new(machine.clone(), 1).thread_on(core, move || {
            for _ in 0..50 {
                work(17);
                let counter = Sim::counter();
                assert!(counter.is_multiple_of(40) && (0..40).contains(&(now() + ahead - counter)));
            }
        });
        let _ = simulation.run(0).expect("it ends");
    }
    // Another shape has other nodes.
    let wider = machine.shape(3, 2);
    assert_eq!(ahead_ns(&wider, 1, 5).len(), 50);
}

#[test]
fn reading_a_counter_takes_as_long_as_the_clock() {
    let simulation = Simulation::new(small(), 1)
        .thread(|| assert_eq!(time(|| _ = Sim::counter()), small().clock_ns));
    let _ = simulation.run(0).expect("it ends");
}
