//! Rounds of one mechanism: its waiters wait, after a gap the sender notifies them, and so on.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_platform::Topology as _;
use antiphon_report::stats::deviation;
use antiphon_sim::{Machine, Model, OwnLine, Sim, Simulation, Stuck, now, work};

use super::cases::Case;
use super::wakes::Wakes;

/// The settings that rows have in common.
pub struct Setting<'a> {
    pub machine: &'a Machine,
    pub seed: u64,
    /// Number of rounds that count; before them is one that does not, in which waiters wait for any
    /// time.
    pub rounds: u32,
    /// Time from when all receivers wait until they are notified, in nanoseconds.
    pub gap_ns: u64,
}

/// Simulated time that no experiment reaches.
const LONG_NS: u64 = 1_000_000_000_000;
/// Interval between checks whether all threads have come this far.
const LOOK_NS: u64 = 10_000;

/// What a waiter observed.
pub struct Target {
    pub cpu: u32,
    /// Time from before the sender's call until the waiter was notified, in each round.
    pub latency_ns: Vec<f64>,
}

/// The figures of a subject in a case. All times are simulated nanoseconds.
pub struct Figures {
    /// The waiters, in order of CPUs.
    pub targets: Vec<Target>,
    /// Time that notifying took the sender, in each round.
    pub sender_ns: Vec<f64>,
    /// For each round of a broadcast: time to the last notification, and standard deviation of all.
    pub last_ns: Vec<f64>,
    pub sigma_ns: Vec<f64>,
    /// A hash of all steps.
    pub trace: u64,
}

/// An event with its waiters, and the record. What is in cells takes no simulated time.
struct Site<W> {
    event: OwnLine<W>,
    /// Numbers of times that a waiter was ready, and was notified.
    ready: Cell<usize>,
    told: Cell<usize>,
    waiters: Vec<Waiter>,
    /// Times before and after the notification by the sender, in each round.
    sent: RefCell<Vec<(u64, u64)>>,
}

#[derive(Default)]
struct Waiter {
    cpu: Cell<u32>,
    told: RefCell<Vec<u64>>,
}

impl<W: Wakes> Site<W> {
    fn new(waiters: usize) -> Self {
        Self {
            event: OwnLine(W::new(waiters)),
            ready: Cell::new(0),
            told: Cell::new(0),
            waiters: (0..waiters).map(|_| Waiter::default()).collect(),
            sent: RefCell::default(),
        }
    }

    fn wait(&self, number: usize, rounds: u32) {
        let waiter = &self.waiters[number];
        waiter.cpu.set(Sim::cpu().0);
        for round in 1..=rounds as usize + 1 {
            let told = self.event.wait(number, || self.ready.set(self.ready.get() + 1));
            waiter.told.borrow_mut().push(told);
            self.told.set(self.told.get() + 1);
            // A thread that waits again would delay the threads that are being notified.
            self.all(&self.told, round);
        }
    }

    /// Waits until all waiters have come this far in a round.
    fn all(&self, count: &Cell<usize>, round: usize) {
        while count.get() < round * self.waiters.len() {
            work(LOOK_NS);
        }
    }

    fn handle(&self, number: usize, rounds: u32) {
        (0..=rounds).for_each(|_| self.event.handle(number));
    }

    fn wake(&self, rounds: u32, gap_ns: u64) {
        for round in 1..=rounds as usize + 1 {
            // A thread that is ready again has been notified.
            self.all(&self.ready, round);
            work(gap_ns);
            let began = now();
            self.event.wake();
            self.sent.borrow_mut().push((began, now()));
        }
    }

    /// Returns the rounds that count.
    fn sent(&self) -> Vec<(u64, u64)> {
        self.sent.borrow()[1..].to_vec()
    }

    fn targets(&self) -> impl Iterator<Item = Target> {
        let sent = self.sent();
        self.waiters.iter().map(move |waiter| {
            let told = &waiter.told.borrow()[1..];
            let latency = |(told, (began, _)): (&u64, &(u64, u64))| (told - began) as f64;
            let latency_ns = told.iter().zip(&sent).map(latency).collect();
            Target { cpu: waiter.cpu.get(), latency_ns }
        })
    }
}

/// Runs rounds of a mechanism on a machine under a model's assumptions, with the sender on the
/// first CPU and waiters on the following ones.
///
/// # Errors
///
/// If a waiter is not woken.
pub fn carry_out<W: Wakes>(
    setting: &Setting<'_>,
    (machine, model): (Machine, Model),
    case: Case,
) -> Result<Figures, Stuck> {
    let &Setting { seed, rounds, gap_ns, .. } = setting;
    let sites = match case {
        Case::Unicast(waiters) => vec![1; waiters],
        Case::Broadcast(waiters) => vec![waiters],
    };
    let sites: Rc<Vec<_>> = Rc::new(sites.into_iter().map(Site::<W>::new).collect());
    let told = Rc::clone(&sites);
    let topology = machine.topology.clone();
    let mut simulation = Simulation::new(machine, seed)
        .model(model)
        .grace_ns(LONG_NS)
        .thread(move || told.iter().for_each(|site| site.wake(rounds, gap_ns)));
    for (site, waiter) in waiters(&sites) {
        let sites = Rc::clone(&sites);
        simulation = simulation.thread(move || sites[site].wait(waiter, rounds));
    }
    if W::HANDLES {
        for (number, (site, waiter)) in (1..).zip(waiters(&sites)) {
            let sites = Rc::clone(&sites);
            let handle = move || sites[site].handle(waiter, rounds);
            simulation = simulation.thread_on(topology.place(number), handle);
        }
    }
    let outcome = simulation.run(0)?;
    let mut figures = Figures { trace: outcome.trace_hash, ..figures(&sites) };
    if let Case::Broadcast(_) = case {
        figures.compare_rounds(rounds as usize);
    }
    Ok(figures)
}

/// All waiters, as a site and a number there.
fn waiters<W>(sites: &[Site<W>]) -> Vec<(usize, usize)> {
    let of = |(site, one): (usize, &Site<W>)| (0..one.waiters.len()).map(move |n| (site, n));
    sites.iter().enumerate().flat_map(of).collect()
}

fn figures<W: Wakes>(sites: &[Site<W>]) -> Figures {
    let mut targets: Vec<_> = sites.iter().flat_map(Site::targets).collect();
    targets.sort_by_key(|target| target.cpu);
    let sent = sites.iter().flat_map(Site::sent);
    Figures {
        targets,
        sender_ns: sent.map(|(began, sent)| (sent - began) as f64).collect(),
        last_ns: Vec::new(),
        sigma_ns: Vec::new(),
        trace: 0,
    }
}

impl Figures {
    fn compare_rounds(&mut self, rounds: usize) {
        for round in 0..rounds {
            let told = self.targets.iter().map(|target| target.latency_ns[round]);
            let told: Vec<_> = told.collect();
            self.last_ns.push(told.iter().copied().fold(0.0, f64::max));
            self.sigma_ns.extend(deviation(&told));
        }
    }

    /// Returns the latencies of all targets.
    pub fn all(&self) -> Vec<f64> {
        self.targets.iter().flat_map(|target| &target.latency_ns).copied().collect()
    }
}
