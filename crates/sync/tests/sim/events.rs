//! A thread that sets an event wakes waiters that are near, and passes no waiter over for ever.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use antiphon_platform::Platform;
use antiphon_sim::{Machine, OwnLine, Sim, Simulation, work};
use antiphon_sync::policy::{Distance, None, Policy, Waiting};
use antiphon_sync::wait::Event;

/// Much longer than it takes to wait and to fall asleep.
const LONG_NS: u64 = 200_000;

/// [`Distance`], except that it passes no waiter over more than twice.
#[derive(Clone, Copy, Default, PartialEq)]
struct Twice;

impl Policy for Twice {
    fn shuffles<P: Platform>(self) -> bool {
        Distance.shuffles::<P>()
    }
    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        Distance.on_wait(me);
    }
    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        Distance.groups(shuffler, candidate)
    }
    fn compare<P: Platform>(
        self,
        shuffler: &Waiting<P>,
        one: &Waiting<P>,
        other: &Waiting<P>,
    ) -> Ordering {
        Distance.compare(shuffler, one, other)
    }
    fn bypass(self) -> u16 {
        2
    }
}

/// Waiters on these cores come one after the other and sleep; a thread on core 0 then sets the
/// event for each. Returns the order in which they return.
fn woken_on<Q: Policy>(machine: Machine, cores: [u32; 6]) -> Vec<u32> {
    let event = Rc::new(OwnLine(Event::<Sim, Q>::NEW));
    let order = Rc::new(RefCell::new(Vec::new()));
    let mut simulation = Simulation::new(machine, 1);
    for (nth, core) in (1..).zip(cores) {
        let (event, order) = (Rc::clone(&event), Rc::clone(&order));
        simulation = simulation.thread_on(core, move || {
            work(nth * LONG_NS);
            event.0.wait();
            order.borrow_mut().push(core);
        });
    }
    let outcome = simulation
        .thread_on(0, move || {
            work(10 * LONG_NS);
            for _ in cores {
                event.0.set();
                work(LONG_NS);
            }
        })
        .run(0)
        .unwrap_or_else(|stuck| panic!("{stuck}"));
    assert_eq!(outcome.counts.wakes, 6, "each sleeper is woken, and once");
    order.take()
}

fn woken<Q: Policy>(cores: [u32; 6]) -> Vec<u32> {
    woken_on::<Q>(Machine::two_sockets().shape(2, 8), cores)
}

/// Waiters that share a cache with the setter go before others of its socket.
#[test]
fn a_waiter_of_the_same_cache_is_nearer_than_one_of_the_same_socket() {
    let machine = Machine::two_sockets().nested(&[("cache", 2), ("socket", 2), ("machine", 2)]);
    let cores = [4, 2, 6, 1, 3, 5];
    assert_eq!(woken_on::<Distance>(machine.clone(), cores), [1, 2, 3, 4, 6, 5]);
    assert_eq!(woken_on::<None>(machine, cores), cores);
}

/// A waiter spins as long as a sleep costs on its machine, and no longer.
#[test]
fn a_wait_spins_for_what_a_sleep_costs() {
    let parks = |wake_latency_ns: u64, after_ns: u64| {
        let event = Rc::new(OwnLine(Event::<Sim>::NEW));
        let other = Rc::clone(&event);
        let machine = Machine { wake_latency_ns, ..Machine::two_sockets().shape(1, 4) };
        let waits = Simulation::new(machine, 1).thread_on(0, move || event.0.wait());
        let outcome = waits.thread_on(1, move || {
            work(after_ns);
            other.0.set();
        });
        outcome.run(0).unwrap_or_else(|stuck| panic!("{stuck}")).counts.parks
    };
    assert_eq!([parks(3_000, 2_000), parks(3_000, 9_000)], [0, 1]);
    assert_eq!([parks(20_000, 15_000), parks(20_000, 30_000)], [0, 1]);
}

#[test]
fn a_set_is_for_the_nearest_waiter() {
    let cores = [8, 9, 1, 2, 10, 3];
    assert_eq!(woken::<Distance>(cores), [1, 2, 3, 8, 9, 10]);
    assert_eq!(woken::<None>(cores), cores);
}

/// LIST-3.
#[test]
fn a_far_waiter_is_passed_over_so_often_and_no_more() {
    assert_eq!(woken::<Twice>([8, 9, 1, 2, 10, 3]), [1, 2, 8, 3, 9, 10]);
}
