//! Interrupts that programs send and handle, and machines whose program is the kernel.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Parked, Platform};
use antiphon_sim::{
    Interrupt, Kernel, Machine, Sim, Simulation, Wakes, Why, await_interrupt, interrupt,
    interrupt_others, now, work,
};

use crate::interrupts::machine;
use crate::{arena, small, time, word};

const LONG_NS: u64 = 1_000_000;

/// Two sockets of four cores: 100 ns within one, 300 ns to the other.
fn bare() -> Machine {
    machine(Wakes::Contained)
}

/// When something has happened, in order.
type Times = Rc<RefCell<Vec<(u32, u64)>>>;

/// Handlers on these cores, each for one interrupt; core 0 calls `send` at `LONG_NS`. Returns when
/// each handler has begun, after that, and what the sender paid.
fn handled(cores: &[u32], send: impl FnOnce() + 'static) -> (Vec<(u32, u64)>, u64) {
    let (times, paid) = (Times::default(), Rc::new(Cell::new(0)));
    let pays = Rc::clone(&paid);
    let mut simulation = Simulation::new(bare(), 1).thread_on(0, move || {
        work(LONG_NS - now());
        pays.set(time(send));
    });
    for &core in cores {
        let times = Rc::clone(&times);
        simulation = simulation.thread_on(core, move || {
            await_interrupt();
            times.borrow_mut().push((core, now() - LONG_NS));
        });
    }
    let outcome = simulation.run(0).expect("all end");
    assert_eq!(outcome.counts.interrupts, cores.len() as u64);
    (times.take(), paid.get())
}

#[test]
fn a_handler_begins_as_far_later_as_it_is_away_and_the_sender_goes_on() {
    let Interrupt { send_ns, handle_ns, .. } = bare().interrupt;
    for (core, deliver_ns) in [(1, 100), (4, 300)] {
        let (times, paid) = handled(&[core], move || interrupt(core));
        assert_eq!(times, [(core, send_ns + deliver_ns + handle_ns)]);
        assert_eq!(paid, send_ns);
    }
}

#[test]
fn the_shorthand_is_one_send_to_all_others() {
    let Interrupt { send_ns, handle_ns, .. } = bare().interrupt;
    let others: Vec<u32> = (1..8).collect();
    let (times, paid) = handled(&others, interrupt_others);
    let expected = others.iter().map(|&core| {
        let deliver_ns = if core < 4 { 100 } else { 300 };
        (core, send_ns + deliver_ns + handle_ns)
    });
    assert!(times.iter().copied().eq(expected), "{times:?}");
    assert_eq!(paid, send_ns);
}

#[test]
fn who_is_interrupted_goes_on_before_others_as_if_it_had_computed_for_longer() {
    const HANDLER_NS: u64 = 700;
    let order = Times::default();
    let [first, second] = [Rc::clone(&order), Rc::clone(&order)];
    let handle_ns = bare().interrupt.handle_ns;
    let outcome = Simulation::new(bare(), 1)
        .thread_on(0, || {
            work(2 * LONG_NS);
            interrupt(1);
        })
        .thread_on(1, || {
            await_interrupt();
            work(HANDLER_NS);
        })
        .thread_on(1, move || {
            let took = time(|| work(4 * LONG_NS));
            first.borrow_mut().push((1, took));
        })
        .thread_on(1, move || second.borrow_mut().push((2, 0)))
        .run(0)
        .expect("all end");
    assert_eq!(*order.borrow(), [(1, 4 * LONG_NS + handle_ns + HANDLER_NS), (2, 0)]);
    assert_eq!(outcome.counts.preemptions, 0);
}

#[test]
fn an_interrupt_that_finds_the_handler_at_work_is_remembered_and_two_are_not() {
    let handled = Rc::new(Cell::new(0));
    let handles = Rc::clone(&handled);
    let stuck = Simulation::new(bare(), 1)
        .thread_on(0, || {
            work(LONG_NS);
            for _ in 0..4 {
                interrupt(1);
            }
        })
        .thread_on(1, move || {
            loop {
                await_interrupt();
                handles.set(handles.get() + 1);
                work(LONG_NS);
            }
        })
        .run(0)
        .expect_err("no further one comes");
    assert_eq!((handled.get(), stuck.why), (2, Why::Deadlock));
    assert!(stuck.to_string().contains("thread 1 on core 1 awaits an interrupt"), "{stuck}");
}

#[test]
fn one_that_comes_before_its_handler_is_remembered() {
    let Interrupt { handle_ns, .. } = bare().interrupt;
    let took = Rc::new(Cell::new(0));
    let takes = Rc::clone(&took);
    let _ = Simulation::new(bare(), 1)
        .thread_on(0, || interrupt(1))
        .thread_on(1, move || {
            work(LONG_NS);
            takes.set(time(await_interrupt));
        })
        .run(0)
        .expect("all end");
    assert_eq!(took.get(), handle_ns);
}

#[test]
fn a_handler_sees_what_was_stored_before() {
    let word = word();
    let (written, seen) = (Rc::clone(&word), Rc::new(Cell::new(0)));
    let sees = Rc::clone(&seen);
    let _ = Simulation::new(small(), 1)
        .thread_on(0, move || {
            work(LONG_NS);
            written.store(7, Relaxed);
            interrupt(1);
        })
        .thread_on(1, move || {
            await_interrupt();
            sees.set(word.load(Relaxed));
        })
        .run(0)
        .expect("all end");
    assert_eq!(seen.get(), 7);
}

#[test]
#[should_panic(expected = "a CPU has one handler")]
fn a_cpu_has_one_handler() {
    let _ = Simulation::new(small(), 1)
        .thread_on(1, await_interrupt)
        .thread_on(1, await_interrupt)
        .run(0);
}

/// From before a wake until the woken thread runs, on each of several seeds.
fn latencies(machine: &Machine) -> Vec<u64> {
    let of = |seed| {
        let (name, began) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(0)));
        let (told, begins) = (Rc::clone(&name), Rc::clone(&began));
        let took = Rc::new(Cell::new(0));
        let takes = Rc::clone(&took);
        let _ = Simulation::new(machine.clone(), seed)
            .thread_on(1, move || {
                let id = arena().take().expect("a free node");
                told.set(arena().reference(id.index()));
                let node = arena().resolve(id).expect("just taken");
                assert_eq!(Sim::park(node, None), Parked::Woken);
                takes.set(now() - began.get());
            })
            .thread_on(0, move || {
                work(LONG_NS);
                begins.set(now());
                Sim::unpark(name.get().expect("it sleeps"));
            })
            .run(0)
            .expect("all end");
        took.get()
    };
    (1..=20).map(of).collect()
}

#[test]
fn a_kick_ends_the_wait_for_the_background_thread() {
    let kernel =
        Kernel { wake_ns: 50, switch_ns: 400, background_ns: 5_000, lines: 0, sleep_cost_ns: None };
    let machine = Machine { kernel: Some(kernel), ..bare() };
    let mode = |wakes| latencies(&machine.as_kernel(wakes).expect("it has costs"));
    let (waits, kicks) = (mode(Wakes::Contained), mode(Wakes::All));
    assert!(kicks.iter().all(|&ns| ns == kicks[0]), "{kicks:?}");
    let Interrupt { send_ns, handle_ns, .. } = machine.interrupt;
    let least_ns = kernel.wake_ns + kernel.switch_ns;
    // The rest is what the waiter's node costs.
    let kick_ns = least_ns + send_ns + 100 + handle_ns;
    assert!((kick_ns..kick_ns + 500).contains(&kicks[0]), "{kicks:?}");
    let (first, last) = (waits.iter().min(), waits.iter().max());
    assert!(first.is_some_and(|&ns| (least_ns..least_ns + 1_500).contains(&ns)), "{waits:?}");
    assert!(last.is_some_and(|&ns| ns > least_ns + 3_500), "{waits:?}");
    assert_eq!(bare().as_kernel(Wakes::All), None);
}
