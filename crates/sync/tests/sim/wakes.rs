//! The time until all waiters have returned, by simulated machine and by the threads that wake
//! them.
//! `cargo test --release -p antiphon-sync --test sim wakes:: -- --nocapture` prints the figures.

use std::cell::RefCell;
use std::rc::Rc;

use antiphon_platform::{Atomic, Budget, Platform};
use antiphon_sim::{Machine, Model, OwnLine, Sim, Simulation, known, now, work};
use antiphon_sync::lock::{Form, ShflMutex, Standard};
use antiphon_sync::wait::{Broadcast, Condvar, CrowdForm, Latch, Unpolled};

/// Much longer than all need to begin a wait, one after the other, and to fall asleep.
const LONG_NS: u64 = 600_000;

/// A form whose waits spin for longer than the test takes.
struct Polling;

/// [`Unpolled`] or [`Polling`], except that the releasing thread wakes all others itself.
struct Alone;

macro_rules! form {
    ($form:ty, $alone:expr, $spin:expr) => {
        impl Form for $form {
            const SPIN: Budget = $spin;
            const QUEUE_SPIN: Budget = $spin;
            const LINGER: Budget = Budget::NONE;
        }

        impl CrowdForm for $form {
            const ALONE: u32 = $alone;

            fn event_spin_ns<P: Platform>() -> u32 {
                $spin.ns
            }
        }
    };
}

form!(Polling, Standard::ALONE, Budget::ns(10_000_000));
form!(Alone, u32::MAX, Budget::NONE);

/// The object that a waiter waits on, and the call that releases all.
trait Wakes: 'static {
    fn new(waiters: usize) -> Self;
    fn wait(&self, number: usize);
    fn wake(&self);
}

impl<F: CrowdForm> Wakes for Broadcast<Sim, F> {
    fn new(_: usize) -> Self {
        Self::NEW
    }

    fn wait(&self, _: usize) {
        // The first generation: nothing was sent before.
        let fresh = Self::NEW;
        self.wait(fresh.now());
    }

    fn wake(&self) {
        self.send();
    }
}

/// One thread wakes all, as a kernel does in a loop.
impl Wakes for (ShflMutex<Sim>, Condvar<Sim>) {
    fn new(_: usize) -> Self {
        (ShflMutex::NEW, Condvar::NEW)
    }

    fn wait(&self, _: usize) {
        self.1.wait(None, || {}, || {});
    }

    fn wake(&self) {
        self.1.notify_all();
    }
}

impl<F: CrowdForm> Wakes for Latch<Sim, F> {
    fn new(_: usize) -> Self {
        Self::new(1)
    }

    fn wait(&self, _: usize) {
        self.wait();
    }

    fn wake(&self) {
        self.count_down(1);
    }
}

/// A word for each waiter, which spins on it; one thread writes all words in turn.
impl Wakes for Vec<OwnLine<<Sim as antiphon_platform::Atomics>::U32>> {
    fn new(waiters: usize) -> Self {
        (0..waiters).map(|_| OwnLine(Atomic::ZERO)).collect()
    }

    fn wait(&self, number: usize) {
        self[number].0.wait_while(core::sync::atomic::Ordering::Acquire, |word| word == 0);
    }

    fn wake(&self) {
        for word in self {
            word.0.store(1, core::sync::atomic::Ordering::Release);
        }
    }
}

/// Times of arrivals, in nanoseconds from the instant before the wake.
#[derive(Debug)]
struct Arrivals {
    last: f64,
    deviation: f64,
    /// Time at which the waking thread goes on.
    sender: f64,
}

/// Puts a waiter on each CPU except the sender's.
fn arrivals<W: Wakes>(machine: &Machine, model: Model, seed: u64) -> Arrivals {
    let waiters = machine.cores() as usize - 1;
    let event = Rc::new(OwnLine(W::new(waiters)));
    let times = Rc::new(RefCell::new((0, Vec::new(), 0)));
    let noted = Rc::clone(&times);
    let simulation = Simulation::new(machine.clone(), seed).model(model);
    let simulation = simulation.threads(waiters + 1, move |number| {
        if number == 0 {
            work(LONG_NS);
            let began = now();
            event.0.wake();
            let mut noted = noted.borrow_mut();
            (noted.0, noted.2) = (began, now());
        } else {
            work(number as u64 * 2_000);
            event.0.wait(number - 1);
            noted.borrow_mut().1.push(now());
        }
    });
    let _ = simulation.run(0).unwrap_or_else(|stuck| panic!("{stuck}"));
    let (began, back, sent) = &*times.borrow();
    let back: Vec<f64> = back.iter().map(|back| (back - began) as f64).collect();
    assert_eq!(back.len(), waiters);
    let mean = back.iter().sum::<f64>() / waiters as f64;
    let square = back.iter().map(|back| (back - mean).powi(2)).sum::<f64>();
    Arrivals {
        last: back.iter().copied().fold(0.0, f64::max),
        deviation: (square / waiters as f64).sqrt(),
        sender: (sent - began) as f64,
    }
}

/// Means over a few seeds.
fn of<W: Wakes>(name: &str, machine: &Machine, model: Model) -> Arrivals {
    const SEEDS: u64 = 3;
    let all: Vec<_> = (1..=SEEDS).map(|seed| arrivals::<W>(machine, model, seed)).collect();
    let mean = |of: fn(&Arrivals) -> f64| all.iter().map(of).sum::<f64>() / SEEDS as f64;
    let mean = Arrivals {
        last: mean(|a| a.last),
        deviation: mean(|a| a.deviation),
        sender: mean(|a| a.sender),
    };
    println!(
        "simulated {:14} {name:22} last {:9.0} ns, deviation {:8.0} ns, sender {:9.0} ns",
        machine.name, mean.last, mean.deviation, mean.sender
    );
    mean
}

/// Returns a machine whose CPUs sleep lightly. If a CPU takes far longer to come up than to wake
/// another, it does not matter which thread wakes all.
fn machine(name: &str) -> Machine {
    let mut machine = known(name).expect("it is shipped").machine.clone();
    machine.idle.truncate(1);
    machine
}

type Serial = (ShflMutex<Sim>, Condvar<Sim>);
type Words = Vec<OwnLine<<Sim as antiphon_platform::Atomics>::U32>>;

#[test]
fn sleepers_that_wake_each_other_are_back_sooner_and_together() {
    let mut all = Vec::new();
    for name in ["opteron-64c", "8s-192c", "phi-228t"] {
        let machine = machine(name);
        let threads = Model::default();
        let fibers = Model { fibers: true, ..threads };
        let serial = of::<Serial>("one wakes all", &machine, threads);
        let square = of::<Latch<Sim, Unpolled>>("square root", &machine, threads);
        let alone = of::<Broadcast<Sim, Alone>>("broadcast, sender alone", &machine, threads);
        let shared = of::<Broadcast<Sim, Unpolled>>("broadcast", &machine, threads);
        let listed = of::<Broadcast<Sim, Unpolled>>("broadcast of fibers", &machine, fibers);
        all.push((name, serial, square, alone, [shared, listed]));
    }
    for (name, serial, square, alone, broadcasts) in all {
        for cast in broadcasts {
            assert!(2.0 * cast.last < serial.last, "{name}");
            assert!(3.0 * cast.deviation < serial.deviation, "{name}");
            assert!(cast.last < square.last && 1.5 * cast.last < alone.last, "{name}");
            assert!(5.0 * cast.sender < serial.sender, "{name}");
        }
    }
}

#[test]
fn spinners_are_back_ten_times_as_soon_as_by_a_loop() {
    for name in ["opteron-64c", "8s-192c", "phi-228t"] {
        let machine = machine(name);
        let serial = of::<Words>("a word each", &machine, Model::default());
        let shared =
            of::<Broadcast<Sim, Polling>>("broadcast, spinning", &machine, Model::default());
        assert!(10.0 * shared.last < serial.last && 10.0 * shared.deviation < serial.deviation);
    }
}
