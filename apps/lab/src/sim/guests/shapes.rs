//! What double scheduling costs, and what hints win back, on the machine of eight sockets with 24
//! CPUs each, with two guests. `000_…`, "Thesis contributions": double scheduling introduces
//! various preemption problems, and semantic information minimizes it. The documents have no
//! figures; the bounds are what the words say: hints lose nothing, and win most back. All figures
//! are simulated.

use antiphon_replay::locks::SimLock;
use antiphon_sim::{Machine, Outcome};

use super::epochs::Grace;
use super::experiment::{Hints, Measured, Setting, carry_out};
use super::releases::Releases;
use super::scenario::Scenario;
use crate::sim::cases;

/// What a seed may change by itself.
const LUCK: f64 = 0.9;

fn measured(lock: &str, case: &str, threads: usize, ms: u64) -> Measured {
    let setting = Setting {
        machine: Machine::eight_sockets(),
        seed: 1,
        limit_ns: ms * 1_000_000,
        threads,
        guests: 2,
    };
    let lock = SimLock::named(lock).expect("a lock");
    let case = cases::named(case).expect("a case");
    carry_out(&setting, lock, case, &Hints::ALL).expect("it ends")
}

fn of(measured: &Measured, wanted: Hints) -> &Outcome {
    let mut all = measured.with.iter();
    &all.find(|(hints, _)| *hints == wanted).expect("all are simulated").1
}

/// Returns the work without hints and with both, as shares of that of one guest alone; and how many
/// times as much hints make it.
fn shares(lock: &str, measured: &Measured) -> (f64, f64, f64) {
    let work = |outcome: &Outcome| outcome.total_operations() as f64;
    let alone = work(&measured.alone);
    let [none, both] = [Hints::None, Hints::Both].map(|hints| work(of(measured, hints)));
    println!("simulated, {lock}: {:.2} of alone, {:.2} with hints", none / alone, both / alone);
    (none / alone, both / alone, both / none)
}

/// Returns the share of what double scheduling costs that hints win back.
fn won_back((none, both, _): (f64, f64, f64)) -> f64 {
    (both - none) / (1.0 - none)
}

/// The next waiter is preempted: a lock in order of arrival waits for the host at every other
/// hand-over, and its spinners keep the CPUs from the one that they wait for.
#[test]
fn a_queue_waits_for_the_next_waiters_cpu_unless_spinners_give_theirs() {
    for lock in ["mcs", "ticket"] {
        let measured = measured(lock, "create", 192, 20);
        let shares = shares(lock, &measured);
        let next = [Hints::None, Hints::Both].map(|hints| of(&measured, hints).steals.of_next);
        assert!(shares.0 < 0.5, "{lock}: {shares:?}");
        assert!(won_back(shares) > 0.5, "{lock}: {shares:?}");
        assert!(next[1] < next[0], "{lock}: {next:?}");
    }
}

/// The mutex, whose waiters sleep where they know that their CPU is wanted: two guests do at least
/// what one does alone, and a woken thread waits less for its CPU.
#[test]
fn the_mutex_loses_nothing_if_it_hears_of_preemptions() {
    for threads in [24, 192] {
        let measured = measured("shfl-mutex", "create", threads, 50);
        let shares = shares("shfl-mutex", &measured);
        assert!(shares.0 < 1.0, "{threads}: {shares:?}");
        assert!(shares.1 > 1.0 && shares.2 > 1.0, "{threads}: {shares:?}");
        let woken_ns = |hints| {
            let steals = &of(&measured, hints).steals;
            steals.woken_ns as f64 / steals.of_woken as f64
        };
        let [none, both] = [Hints::None, Hints::Both].map(woken_ns);
        println!("simulated, {threads} threads: woken threads wait {none:.0} ns, {both:.0} ns");
        assert!(both < none / 2.0, "{threads}: {none}, {both}");
    }
}

/// The owner is preempted: with a lock that any waiter may take, that is all that stops it. A host
/// that hears of sections preempts few owners.
#[test]
fn an_owner_that_tells_its_section_keeps_its_cpu() {
    let measured = measured("tas", "create", 24, 100);
    let [none, told] = [Hints::None, Hints::Sections].map(|hints| of(&measured, hints));
    let owners = [none, told].map(|outcome| outcome.steals.of_owners);
    let times = told.total_operations() as f64 / none.total_operations() as f64;
    println!("simulated: {owners:?} owners preempted, {times:.2} times the work");
    assert!(owners[1] <= owners[0] / 2, "{owners:?}");
    assert!(times > 1.0, "{times}");
    // Each section of this case is shorter than the grace.
    assert_eq!(told.steals.overrun, 0);
}

/// Readers and writers: a preempted reader keeps all writers out, and so later readers.
#[test]
fn readers_that_lose_their_cpu_stop_writers_unless_hints_help() {
    let measured = measured("shfl-rwlock", "mixed", 192, 10);
    let shares = shares("shfl-rwlock", &measured);
    assert!(shares.0 < 0.5, "{shares:?}");
    assert!(won_back(shares) > 0.5, "{shares:?}");
}

/// A lock whose waiters sleep at once loses nothing by a second level, nor by hints.
#[test]
fn hints_take_nothing_from_a_lock_that_needs_none() {
    let measured = measured("futex", "create", 192, 20);
    let shares = shares("futex", &measured);
    assert!(shares.0 > 1.0 && shares.2 > LUCK, "{shares:?}");
}

/// `003_…`, section 7: cooperative polling as a hypercall. The host is told when threads want to
/// run, and they do, without taking work from the other guests.
#[test]
fn a_host_that_is_told_release_times_is_on_time() {
    let setting = Setting {
        machine: Machine::eight_sockets(),
        seed: 1,
        limit_ns: 100_000_000,
        threads: 192,
        guests: 3,
    };
    let [none, told] = [false, true].map(|told| {
        let measured = Releases::measure(&setting, told).expect("it ends");
        println!("simulated: late {:?}, {:?}", measured.late.p50(), measured.late.p99());
        measured
    });
    let p99 = [&none, &told].map(|measured| measured.late.p99().expect("frames"));
    assert!(p99[1] < p99[0] / 10, "{p99:?}");
    assert!(told.frames >= none.frames);
    assert!(told.pieces as f64 > LUCK * none.pieces as f64, "{} {}", none.pieces, told.pieces);
}

/// A reader of an epoch is preempted: it stops no other reader, and the writer waits for the
/// host's slice. A host that hears of sections lets it finish.
#[test]
fn a_grace_period_does_not_wait_for_a_reader_that_tells_its_section() {
    let setting = Setting {
        machine: Machine::eight_sockets(),
        seed: 1,
        limit_ns: 20_000_000,
        threads: 192,
        guests: 2,
    };
    let [none, told] = [false, true].map(|told| {
        let measured = Grace::measure(&setting, told).expect("it ends");
        let periods = &measured.periods;
        println!("simulated: grace periods {:?}, {:?}", periods.p50(), periods.p99());
        measured
    });
    let p50 = [&none, &told].map(|measured| measured.periods.p50().expect("periods"));
    assert!(p50[0] > setting.machine.slice_ns / 4, "{p50:?}");
    assert!(p50[1] < p50[0] / 10, "{p50:?}");
    assert!(told.sections as f64 > LUCK * none.sections as f64);
}
