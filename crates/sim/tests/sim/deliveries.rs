//! Delivery modes of interrupts, kernels by the lengths of their paths, and kicks that are held
//! back.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_platform::{Parked, Platform, WaiterRef};
use antiphon_sim::{
    Delivery, Description, Entry, Interrupt, Machine, Paths, Sim, Simulation, Wakes,
    await_interrupt, interrupt, kick_once, known, now, work,
};

use crate::arena;
use crate::interrupts::machine;

const LONG_NS: u64 = 1_000_000;

/// From before an interrupt of core 0 until its handler on core 4 begins, and what the sender pays.
fn interrupted(machine: Machine) -> (u64, u64) {
    let (begun, paid) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (begins, pays) = (Rc::clone(&begun), Rc::clone(&paid));
    let _ = Simulation::new(machine, 1)
        .thread_on(0, move || {
            work(LONG_NS - now());
            interrupt(4);
            pays.set(now() - LONG_NS);
        })
        .thread_on(4, move || {
            await_interrupt();
            begins.set(now() - LONG_NS);
        })
        .run(0)
        .expect("both end");
    (begun.get(), paid.get())
}

#[test]
fn a_mode_has_its_own_price_at_both_ends_and_the_way_of_all() {
    let entries = vec![
        Entry { delivery: Delivery::RemoteSyscall, send_ns: None, handle_ns: 30 },
        Entry { delivery: Delivery::Signal, send_ns: Some(500), handle_ns: 4_000 },
    ];
    let machine = Machine { entries, ..machine(Wakes::Contained) };
    let Interrupt { send_ns, handle_ns, .. } = machine.interrupt;
    let by = |delivery| machine.delivering(delivery).map(interrupted);
    assert_eq!(by(Delivery::Kernel), Some((send_ns + 300 + handle_ns, send_ns)));
    assert_eq!(by(Delivery::RemoteSyscall), Some((send_ns + 300 + 30, send_ns)));
    assert_eq!(by(Delivery::Signal), Some((500 + 300 + 4_000, 500)));
    assert_eq!(by(Delivery::Fred), None);
}

/// What a file says of modes, and what it must say.
#[test]
fn a_file_has_the_modes_that_it_lists() {
    let machine = |name: &str| known(name).expect("a preset").machine.clone();
    assert!(machine("opteron-64c").delivering(Delivery::Fred).is_none());
    for (name, old) in [("nemo-64c", "opteron-64c"), ("nemo-228t", "phi-228t")] {
        let (new, old) = (machine(name), machine(old));
        for delivery in Delivery::ALL {
            assert!(new.delivering(delivery).is_some(), "{name}: {}", delivery.name());
        }
        // Otherwise it is the machine that it was made from.
        let cut = Machine { entries: vec![], instruction_ps: None, name: old.name.clone(), ..new };
        assert_eq!(cut, old);
    }
    let wrong = |table: &str| {
        Description::parse(&format!("{}\n{table}", crate::machines::SMALL)).expect_err("it is").what
    };
    let text = wrong("[delivery.fred]\nsend = { ns = 1, measured = \"m\" }");
    assert!(text.contains("delivery.fred has no handle"), "{text}");
    let text = wrong("[delivery.fret]\nhandle = { ns = 1, measured = \"m\" }");
    assert!(text.contains("unknown key fret"), "{text}");
}

#[test]
fn a_path_takes_its_instructions_at_the_pace_of_the_machine() {
    let nemo = &known("nemo-64c").expect("a preset").machine;
    assert_eq!(nemo.instruction_ps, Some(476));
    assert_eq!(nemo.instructions_ns(181), Some(87));
    assert_eq!(machine(Wakes::All).instructions_ns(1), None);
    assert_eq!(
        machine(Wakes::All).with_paths(&Paths { wake: 1, run: 1, lines: 0, sleep_cost_ns: 1 }),
        None
    );
}

/// How long the waker takes for threads on these cores, and when each runs.
struct Woken {
    waker_ns: u64,
    at_ns: Vec<u64>,
    interrupts: u64,
}

fn woken(machine: Machine, cores: &[u32], held: bool) -> Woken {
    let names: Rc<RefCell<Vec<WaiterRef>>> = Rc::default();
    let times = Rc::new(RefCell::new(vec![0; cores.len()]));
    let mut simulation = Simulation::new(machine, 1);
    for (place, &core) in cores.iter().enumerate() {
        let (names, times) = (Rc::clone(&names), Rc::clone(&times));
        simulation = simulation.thread_on(core, move || {
            // One after the other, so that names are in the order of cores.
            work(1_000 * (place as u64 + 1));
            let id = arena().take().expect("a free node");
            names.borrow_mut().push(arena().reference(id.index()).expect("just taken"));
            let node = arena().resolve(id).expect("just taken");
            assert_eq!(Sim::park(node, None), Parked::Woken);
            times.borrow_mut()[place] = now() - LONG_NS;
        });
    }
    let took = Rc::new(Cell::new(0));
    let takes = Rc::clone(&took);
    let outcome = simulation
        .thread_on(0, move || {
            work(LONG_NS - now());
            let wake = || names.borrow().iter().for_each(|&name| Sim::unpark(name));
            if held {
                kick_once(wake)
            } else {
                wake()
            }
            takes.set(now() - LONG_NS);
        })
        .run(0)
        .expect("all end");
    Woken { waker_ns: took.get(), at_ns: times.take(), interrupts: outcome.counts.interrupts }
}

fn kernel(lines: u32) -> Machine {
    let machine = Machine { instruction_ps: Some(500), ..machine(Wakes::Contained) };
    let paths = Paths { wake: 100, run: 200, lines, sleep_cost_ns: 2_000 };
    machine.with_paths(&paths).and_then(|one| one.as_kernel(Wakes::All)).expect("it has costs")
}

#[test]
fn the_lines_of_a_run_queue_are_there_and_back_as_far_as_their_cpu_is() {
    for core in [1, 4] {
        let [without, with] = [0, 2].map(|lines| woken(kernel(lines), &[core], false));
        let way_ns = 2 * kernel(0).transfer_ns(0, core);
        assert_eq!(with.waker_ns, without.waker_ns + way_ns);
        assert_eq!(with.at_ns[0], without.at_ns[0] + 2 * way_ns);
    }
}

#[test]
fn kicks_that_are_held_back_are_one_at_the_end() {
    let cores = [1, 2, 4, 5];
    let [each, one] = [false, true].map(|held| woken(kernel(2), &cores, held));
    let Interrupt { send_ns, handle_ns, .. } = kernel(2).interrupt;
    assert_eq!((each.interrupts, one.interrupts), (4, 4));
    assert_eq!(one.waker_ns + 3 * send_ns, each.waker_ns);
    let switch_ns = kernel(2).wake_latency_ns;
    for (place, core) in cores.into_iter().enumerate() {
        let machine = kernel(2);
        let way_ns = machine.deliver_ns(0, core) + 2 * machine.transfer_ns(0, core);
        let at_ns = one.waker_ns + way_ns + handle_ns + switch_ns;
        // The rest is what the waiter's node costs.
        assert!((at_ns..at_ns + 500).contains(&one.at_ns[place]), "{:?}: {at_ns}", one.at_ns);
    }
    assert!(each.at_ns[0] < one.at_ns[0]);
}

#[test]
fn without_a_wake_there_is_no_kick() {
    let held = woken(kernel(2), &[], true);
    assert_eq!((held.waker_ns, held.interrupts), (0, 0));
    // Nor where wakes send none.
    let [with, without] = [true, false].map(|held| woken(machine(Wakes::Contained), &[1], held));
    assert_eq!((with.waker_ns, with.interrupts), (without.waker_ns, 0));
}
