//! Tests of the scheduling of cores: schedules as programs, fair queues, and accounts.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_platform::{Atomic, Clock, Deadline, Parked, Platform, SharedWait, Topology as _};
use antiphon_sim::{
    Account, Machine, Model, Schedule, Sim, Simulation, Stop, Turn, give, move_to, now, ran_ns,
    set_rank, sleeps, waited_ns, work,
};
use std::sync::atomic::Ordering::Relaxed;

use crate::{small, word};

/// The last one that came first, each for so long.
#[derive(Default)]
struct Stack {
    ready: Vec<usize>,
    slice_ns: u64,
    stops: Vec<(usize, Stop)>,
}

#[derive(Clone)]
struct Shared(Rc<RefCell<Stack>>);

impl Shared {
    fn of(slice_ns: u64) -> Self {
        Self(Rc::new(RefCell::new(Stack { slice_ns, ..Stack::default() })))
    }
}

impl Schedule for Shared {
    fn arrives(&mut self, thread: usize, _: u64) {
        self.0.borrow_mut().ready.push(thread);
    }

    fn stops(&mut self, thread: usize, why: Stop, _: u64, _: u64) {
        let mut stack = self.0.borrow_mut();
        stack.stops.push((thread, why));
        if why == Stop::Over {
            stack.ready.insert(0, thread);
        }
    }

    fn picks(&mut self, now_ns: u64) -> Turn {
        let mut stack = self.0.borrow_mut();
        let thread = stack.ready.pop();
        Turn { thread, until_ns: thread.map(|_| now_ns + stack.slice_ns) }
    }
}

#[test]
fn a_core_goes_to_whom_its_schedule_picks_for_as_long_as_that_says() {
    let stack = Shared::of(50_000);
    let order = Rc::new(RefCell::new(Vec::new()));
    let mut simulation = Simulation::new(small(), 1).schedule_on(2, stack.clone());
    for number in 0..3 {
        let order = order.clone();
        simulation = simulation.thread_on(2, move || {
            work(80_000);
            order.borrow_mut().push((number, now()));
        });
    }
    // Elsewhere all is as usual.
    let outcome = simulation.thread_on(3, || work(1_000)).run(0).expect("all end");
    let stops = stack.0.borrow().stops.clone();
    assert_eq!(stops.iter().filter(|(_, why)| *why == Stop::Over).count(), 3);
    assert_eq!(stops.iter().filter(|(_, why)| *why == Stop::Ended).count(), 3);
    let order = order.borrow();
    assert!(order.len() == 3 && order[0].1 > 150_000, "all had a turn before: {order:?}");
    assert!(outcome.end_ns < 300_000, "{}", outcome.end_ns);
}

#[test]
fn who_gives_its_core_away_has_it_again_when_it_is_picked() {
    let stack = Shared::of(1_000_000);
    let log = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::new(Cell::new(0));
    let mut simulation = Simulation::new(small(), 1).schedule_on(0, stack.clone());
    for name in ["one", "other"] {
        let (log, stack, told) = (log.clone(), stack.clone(), told.clone());
        simulation = simulation.thread_on(0, move || {
            for _ in 0..2 {
                work(10_000);
                log.borrow_mut().push(name);
                let me = Sim::thread().0 as usize - 1;
                give(|ran_ns, _| {
                    told.set(told.get() + ran_ns);
                    stack.0.borrow_mut().ready.insert(0, me);
                });
            }
        });
    }
    let _ = simulation.run(0).expect("all end");
    let order = log.borrow().join(" ");
    assert!(order == "one other one other" || order == "other one other one", "{order}");
    assert!((40_000..60_000).contains(&told.get()), "{}", told.get());
}

#[test]
fn sleepers_of_such_a_core_come_back_and_words_wake_them() {
    let flag = word();
    let sleeper = flag.clone();
    let slept = Rc::new(Cell::new((Parked::Woken, 0)));
    let told = slept.clone();
    let stack = Shared::of(20_000);
    let outcome = Simulation::new(small(), 1)
        .schedule_on(0, stack.clone())
        .thread_on(0, move || {
            while sleeper.load(Relaxed) == 0 {
                let _ = Sim::wait_shared(&sleeper, 0, None);
            }
            let deadline = Deadline { clock: Clock::Monotonic, ns: now() + 100_000 };
            told.set((Sim::wait_shared(&sleeper, 1, Some(deadline)), now()));
        })
        .thread_on(1, move || {
            work(30_000);
            flag.store(1, Relaxed);
            Sim::wake_shared(&raw const **flag, 1);
        })
        .run(0)
        .expect("both end");
    let (ended, at_ns) = slept.get();
    assert!(ended == Parked::TimedOut && at_ns >= 130_000, "{ended:?} {at_ns}");
    assert_eq!(outcome.counts.parks, 2);
    let stops = stack.0.borrow().stops.clone();
    assert_eq!(stops, [(0, Stop::Sleeps), (0, Stop::Sleeps), (0, Stop::Ended)]);
}

#[test]
fn what_all_have_used_is_written_down_and_changes_nothing() {
    let run = |times: &[u64]| {
        let mut simulation = Simulation::new(small(), 1);
        for _ in 0..2 {
            simulation = simulation.thread_on(0, || work(100_000));
        }
        simulation = simulation.thread_on(1, || work(100_000));
        for &at_ns in times {
            simulation = simulation.account_at(at_ns);
        }
        simulation.run(0).expect("all end")
    };
    let (plain, outcome) = (run(&[]), run(&[150_000, 50_000, 99_000_000]));
    assert_eq!((plain.trace_hash, plain.end_ns), (outcome.trace_hash, outcome.end_ns));
    let [first, second] = &outcome.accounts[..] else { panic!("those that were reached") };
    assert_eq!((first.at_ns, second.at_ns), (50_000, 150_000));
    let sum = |account: &Account| account.ran_ns.iter().take(2).sum::<u64>();
    assert!((40_000..=50_000).contains(&sum(first)), "{first:?}");
    assert!((140_000..=150_000).contains(&sum(second)), "{second:?}");
    assert!((99_000..=101_000).contains(&second.ran_ns[2]), "{second:?}");
}

#[test]
fn a_thread_is_told_what_it_has_had_and_waited() {
    let machine = Machine { slice_ns: 10_000, ..small() };
    let of_first = Rc::new(Cell::new((0, 0)));
    let told = of_first.clone();
    let first = move || {
        let me = Sim::thread();
        work(50_000);
        assert!(!sleeps(me));
        told.set((ran_ns(me).expect("it runs"), waited_ns(me).expect("it runs")));
    };
    let _ = Simulation::new(machine, 1)
        .thread_on(0, first)
        .thread_on(0, || work(50_000))
        .run(0)
        .expect("both end");
    let (ran, waited) = of_first.get();
    assert!((50_000..52_000).contains(&ran), "{ran}");
    assert!((40_000..80_000).contains(&waited), "{waited}");
}

#[test]
fn a_thread_moves_to_another_core() {
    let ended = Rc::new(Cell::new(0));
    let (one, other) = (ended.clone(), ended.clone());
    let outcome = Simulation::new(small(), 1)
        .thread_on(0, move || {
            move_to(5);
            assert_eq!(Sim::cpu().0, 5);
            work(20_000);
            one.set(one.get().max(now()));
        })
        .thread_on(0, move || {
            work(20_000);
            other.set(other.get().max(now()));
        })
        .run(0)
        .expect("both end");
    assert_eq!(outcome.counts.migrations, 1);
    assert!(ended.get() < 40_000, "side by side: {}", ended.get());
}

/// Three threads on a core; the first wakes each 100 µs and works for 10. How late it begins.
fn beside_two(fair: bool, rank: Option<u8>) -> u64 {
    let late = Rc::new(Cell::new(0));
    let told = late.clone();
    let machine = Machine { slice_ns: 100_000, ..small() };
    let mut simulation = Simulation::new(machine, 1)
        .model(Model { fair, ..Model::default() })
        .thread_on(0, move || {
            if let Some(rank) = rank {
                set_rank(rank);
            }
            let bed = word();
            for number in 1..=20 {
                let ns = number * 1_000_000;
                let deadline = Some(Deadline { clock: Clock::Monotonic, ns });
                while now() < ns {
                    let _ = Sim::wait_shared(&bed, 0, deadline);
                }
                told.set(told.get() + now() - ns);
                work(10_000);
            }
        });
    for _ in 0..4 {
        simulation = simulation.thread_on(0, || work(6_000_000));
    }
    let _ = simulation.run(0).expect("all end");
    late.get() / 20
}

#[test]
fn a_fair_queue_has_who_slept_wait_for_one_slice_and_not_for_all() {
    let [queue, fair, urgent] =
        [(false, None), (true, None), (true, Some(101))].map(|(fair, rank)| beside_two(fair, rank));
    assert!(queue > 250_000, "{queue}");
    assert!(fair < 150_000, "{fair}");
    assert!(urgent < 20_000, "{urgent}");
}

#[test]
fn a_fair_queue_gives_all_as_much() {
    let machine = Machine { slice_ns: 10_000, ..small() };
    let mut simulation = Simulation::new(machine, 3)
        .model(Model { fair: true, ..Model::default() })
        .account_at(2_000_000);
    for number in 0..3 {
        simulation = simulation.thread_on(0, move || {
            let bed = word();
            while now() < 2_000_000 {
                work(7_000);
                if number == 0 {
                    // It sleeps for less than it waits.
                    let deadline = Deadline { clock: Clock::Monotonic, ns: now() + 3_000 };
                    let _ = Sim::wait_shared(&bed, 0, Some(deadline));
                }
            }
        });
    }
    let outcome = simulation.run(0).expect("all end");
    let ran_ns = &outcome.accounts[0].ran_ns;
    let (least, most) = (ran_ns.iter().min(), ran_ns.iter().max());
    assert!(most.zip(least).is_some_and(|(most, least)| most - least < 200_000), "{ran_ns:?}");
}
