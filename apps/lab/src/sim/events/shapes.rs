//! Shapes of the results: the order of mechanisms and the spread of a broadcast, on the machines of
//! the Nemo evaluation. All figures are simulated; `docs/events.md` has the full results, and the
//! differences from what is published.

use antiphon_sim::{Delivery, Machine, known};

use super::cases::Case;
use super::experiment::Setting;
use super::rows::Row;
use super::subjects::{self, SUBJECTS};

const MACHINES: [&str; 2] = ["opteron-64c", "phi-228t"];

pub fn machine(name: &str) -> &'static Machine {
    &known(name).expect("it is shipped").machine
}

pub fn row(machine: &Machine, name: &str, case: Case) -> Row {
    delivered(machine, name, case, Delivery::Kernel)
}

pub fn delivered(machine: &Machine, name: &str, case: Case, delivery: Delivery) -> Row {
    let setting = Setting { machine, seed: 1, rounds: 4, gap_ns: 400_000 };
    let subject = subjects::named(name, machine).expect("a subject")[0];
    let row = Row::of(&setting, subject, case, delivery);
    row.unwrap_or_else(|failure| panic!("{failure:?}"))
}

pub fn all(machine: &Machine) -> usize {
    machine.cores() as usize - 1
}

/// Figures 3, 8 and 9.
#[test]
fn nearer_to_the_interrupt_is_sooner() {
    for name in MACHINES {
        let machine = machine(name);
        let mean = |subject| row(machine, subject, Case::Unicast(all(machine))).latency.mean;
        let order = ["ipi", "message", "kernel-condvar-kick", "condvar"];
        let means = order.map(mean);
        assert!(means.is_sorted_by(|one, next| one < next), "{name}: {order:?} {means:?}");
        let [ipi, message, _, user] = means;
        assert!(user > 5.0 * ipi && message < 3.0 * ipi, "{name}: {means:?}");
        assert!(user > 1.2 * mean("kernel-condvar"), "{name}: {means:?}");
        // A kick removes the wait for the background thread, and with it the variation.
        let spread = |subject| {
            let latency = row(machine, subject, Case::Unicast(all(machine))).latency;
            latency.p99 - latency.min
        };
        assert!(2.0 * spread("kernel-condvar-kick") < spread("kernel-condvar"), "{name}");
    }
}

/// Figures 4 to 6 and 10 to 13.
#[test]
fn a_broadcast_by_interrupt_reaches_all_together() {
    // With a mutex, most of a broadcast's time is the mutex passing from one waiter to the next,
    // with or without kicks.
    let machines = [("opteron-64c", 50.0, 500.0, 1.2), ("phi-228t", 200.0, 1e4, 1.0)];
    for (name, latency, sigma, kick) in machines {
        let machine = machine(name);
        let of = |subject| {
            let row = row(machine, subject, Case::Broadcast(all(machine)));
            (row.latency.mean, row.sigma_ns.expect("rounds"))
        };
        let order = ["ipi", "ipi-loop", "message", "condvar", "mutex-condvar"];
        let (means, sigmas): (Vec<_>, Vec<_>) = order.map(of).into_iter().unzip();
        assert!(means.is_sorted_by(|one, next| one < next), "{name}: {means:?}");
        assert!(sigmas.is_sorted_by(|one, next| one < next), "{name}: {sigmas:?}");
        assert!(means[3] > latency * means[0] && sigmas[3] > sigma * sigmas[0], "{name}");
        let kicked = of("kernel-mutex-condvar-kick");
        assert!(kick * kicked.0 < means[4] && kick * kicked.1 < sigmas[4], "{name}: {kicked:?}");
        // Our broadcast wakes in a tree, which a kernel's loop does not.
        let tree = of("broadcast");
        assert!(1.5 * tree.0 < means[3] && 3.0 * tree.1 < sigmas[3], "{name}: {tree:?}");
    }
}

#[test]
fn every_subject_tells_each_waiter_in_each_round() {
    let machine = machine("nemo-64c");
    let setting = Setting { machine, seed: 1, rounds: 3, gap_ns: 50_000 };
    for subject in &SUBJECTS {
        for case in [Case::Unicast(5), Case::Broadcast(1), Case::Broadcast(9)] {
            let figures = subject.carry_out(&setting, case, Delivery::Kernel, None);
            let figures = figures.unwrap_or_else(|stuck| panic!("{}: {stuck}", subject.name));
            let cpus: Vec<_> = figures.targets.iter().map(|target| target.cpu).collect();
            assert!(cpus.iter().copied().eq(1..=case.waiters() as u32), "{}", subject.name);
            let told = |ns: &f64| *ns > 0.0;
            for target in &figures.targets {
                assert!(target.latency_ns.len() == 3 && target.latency_ns.iter().all(told));
            }
        }
    }
}

#[test]
fn an_interrupt_takes_what_the_file_says() {
    let machine = machine("opteron-64c");
    let near = row(machine, "ipi", Case::Broadcast(7));
    assert_eq!((near.latency.min, near.latency.p99, near.sigma_ns), (547.0, 547.0, Some(0.0)));
    let far = row(machine, "ipi", Case::Broadcast(63));
    assert_eq!(far.last_ns, Some(547.0 + 269.0 - 180.0));
    let one = [Case::Unicast(1), Case::Broadcast(1)].map(|case| row(machine, "ipi", case));
    assert!(one.iter().all(|row| row.latency.mean == 547.0));
}
