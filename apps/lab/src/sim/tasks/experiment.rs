//! One subject in one case: spawners make packets ready, workers run them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Platform;
use antiphon_report::stats::Histogram;
use antiphon_sim::{Access, Counts, Machine, OwnLine, Sim, Simulation, Stuck, now, touch, work};
use antiphon_sync::queue::{Full, Item};

use super::cases::{Case, Costs, MEAN_BYTES, SLEEP_NS, Then, bytes};
use super::ready::{Kind, Task, Tasks};
use super::team::{Member, Tally, Team};

/// The settings that rows have in common.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    pub machine: &'a Machine,
    pub costs: &'static Costs,
    pub seed: u64,
    pub packets: u32,
    pub workers: usize,
}

/// The figures of a subject in a case. All times are simulated.
pub struct Figures {
    /// Time from the first packet's spawn to the end of the last task.
    pub span_ns: u64,
    pub tasks: u64,
    /// Latencies: of each task, from when it was made ready to its end; of each option, from the
    /// beginning of the run.
    pub latency: Histogram,
    /// Computing time of tasks and spawners.
    pub worked_ns: u64,
    /// Time of making tasks ready, without work that was done because there was no room.
    pub push_ns: u64,
    pub retries: u64,
    pub attempts: u64,
    pub hits: u64,
    pub counts: Counts,
    /// A hash of all steps.
    pub trace: u64,
}

impl Figures {
    /// Returns the number of lines that came from another node.
    pub const fn remote(&self) -> u64 {
        self.counts.remote_transfers
    }

    /// Returns the number of lines that came from another cache of the node.
    pub const fn local(&self) -> u64 {
        self.counts.local_transfers
    }
}

/// Simulated time that no experiment reaches.
const LONG_NS: u64 = 1_000_000_000_000;
/// Number of places for packets in `cache`, used in turn.
const PLACES: u32 = 16_384;
/// Number of bytes that a task reads.
const READS: u32 = 20;

/// A packet's data.
type Place = OwnLine<[u8; 2_304]>;

/// State that workers share and that is not simulated.
struct Run<T> {
    team: T,
    case: &'static Case,
    costs: &'static Costs,
    packets: u32,
    same_packet: bool,
    places: Vec<Place>,
    tasks: RefCell<Tasks>,
    begin_ns: Cell<u64>,
    end_ns: Cell<u64>,
    /// Number of active spawners, and of tasks that have not ended.
    open: Cell<u64>,
    ended: Cell<u64>,
    worked_ns: Cell<u64>,
    push_ns: Cell<u64>,
    retries: Cell<u64>,
    latency: RefCell<Histogram>,
}

fn add(to: &Cell<u64>, more: u64) {
    to.set(to.get() + more);
}

impl<T: Team> Run<T> {
    fn work(&self, ns: u64) {
        add(&self.worked_ns, ns);
        work(ns);
    }

    /// Runs the worker of a seat, which may first be a spawner.
    fn member(&self, seat: usize, workers: usize) {
        let mut member = self.team.member(seat);
        let spawners = self.case.spawners.min(workers);
        // Spawners are spread evenly over the workers.
        if let Some(nth) = (0..spawners).find(|nth| nth * workers / spawners == seat) {
            self.spawn_all(&mut member, nth as u32, spawners as u32);
        }
        while let Some(item) = member.next() {
            self.run(&mut member, item);
        }
    }

    fn spawn_all(&self, member: &mut T::Member<'_>, from: u32, step: u32) {
        if self.begin_ns.get() == 0 {
            self.begin_ns.set(now());
        }
        for packet in (from..self.packets).step_by(step as usize) {
            self.work(self.costs.spawn_ns);
            if let (Then::Reads(_), false) = (self.case.then, self.same_packet) {
                touch(self.place(packet), Access::Write);
            }
            self.spawn(member, Kind::Scan, packet);
        }
        self.close();
    }

    /// Makes a task ready.
    fn spawn(&self, member: &mut T::Member<'_>, kind: Kind, packet: u32) {
        add(&self.open, 1);
        let task = Task { kind, packet, ready_ns: now() };
        let mut item = self.tasks.borrow_mut().put(task);
        loop {
            let began = now();
            let pushed = member.push(item, kind.stage(self.case.depth(packet)));
            add(&self.push_ns, now() - began);
            match pushed {
                Ok(()) => return,
                Err(Full(back)) => item = back,
            }
            add(&self.retries, 1);
            if let Some(other) = member.meanwhile() {
                self.run(member, other);
            }
        }
    }

    fn run(&self, member: &mut T::Member<'_>, item: Item) {
        let task = self.tasks.borrow_mut().take(item);
        let &Costs { scan_ns, step_ns, .. } = self.costs;
        match task.kind {
            Kind::Scan if let Some(depth) = self.case.depth(task.packet) => self.fold(depth),
            Kind::Scan => {
                let drawn = if self.same_packet { 0 } else { Sim::random() };
                if let Then::Reads(_) = self.case.then {
                    touch(self.place(task.packet), self.scan_access());
                }
                self.work(scan_ns * bytes(drawn) / MEAN_BYTES + self.case.extra_ns);
            }
            Kind::Step(left) if self.case.depth(task.packet).is_some() => self.fold(left),
            Kind::Step(_) => {
                self.read(task.packet);
                self.work(step_ns);
            }
            Kind::Sleep => work(SLEEP_NS),
        }
        self.follow(member, task);
        self.record(task);
        add(&self.ended, 1);
        self.close();
    }

    /// Records the latency of a task; for an option, from the beginning, when its last task has
    /// ended.
    fn record(&self, task: Task) {
        let since = match task.kind {
            _ if self.case.depth(task.packet).is_none() => task.ready_ns,
            Kind::Step(0) => self.begin_ns.get(),
            _ => return,
        };
        self.latency.borrow_mut().record(now() - since, 1);
    }

    /// Computes a layer of `nodes` nodes, and one more.
    fn fold(&self, nodes: u32) {
        self.work(self.costs.step_ns + self.costs.nodes_ns * u64::from(nodes + 1) / 1000);
    }

    const fn scan_access(&self) -> Access {
        // With one packet for all, the handler makes the copy.
        if self.same_packet { Access::Write } else { Access::Read }
    }

    fn follow(&self, member: &mut T::Member<'_>, task: Task) {
        let steps = match (task.kind, self.case.then) {
            (Kind::Scan, Then::Reads(steps) | Then::Sleeps(steps)) => steps,
            (Kind::Scan, Then::Folds(..)) => self.case.depth(task.packet).unwrap_or(0),
            (Kind::Step(left), _) => left,
            _ => 0,
        };
        if steps > 0 {
            self.spawn(member, Kind::Step(steps - 1), task.packet);
        }
        let last = matches!(task.kind, Kind::Step(0));
        if last && matches!(self.case.then, Then::Sleeps(_)) && Sim::random() % 1_000 == 0 {
            self.spawn(member, Kind::Sleep, task.packet);
            self.spawn(member, Kind::Sleep, task.packet);
        }
    }

    fn read(&self, packet: u32) {
        if let Then::Reads(_) = self.case.then {
            let place = self.place(packet);
            for _ in 0..READS {
                touch(&place[Sim::random() as usize % bytes(0) as usize], Access::Read);
            }
        }
    }

    fn place(&self, packet: u32) -> &Place {
        &self.places[packet as usize % self.places.len()]
    }

    /// Counts the end of a spawner or task.
    fn close(&self) {
        self.open.set(self.open.get() - 1);
        if self.open.get() == 0 {
            self.end_ns.set(now());
            self.team.close();
        }
    }
}

/// Runs a case with a team, each worker on a CPU.
///
/// # Errors
///
/// If the workers deadlock, which is a defect.
pub fn carry_out<T: Team>(
    setting: &Setting<'_>,
    case: &'static Case,
    same_packet: bool,
    team: T,
    tally: &Arc<Tally>,
) -> Result<Figures, Stuck> {
    let &Setting { machine, costs, seed, packets, workers } = setting;
    let places = if let Then::Reads(_) = case.then { packets.min(PLACES) } else { 0 };
    let run = Rc::new(Run {
        team,
        case,
        costs,
        packets,
        same_packet,
        places: (0..places).map(|_| OwnLine([0; 2_304])).collect(),
        tasks: RefCell::default(),
        begin_ns: Cell::new(0),
        end_ns: Cell::new(0),
        open: Cell::new(case.spawners.min(workers) as u64),
        ended: Cell::new(0),
        worked_ns: Cell::new(0),
        push_ns: Cell::new(0),
        retries: Cell::new(0),
        latency: RefCell::new(Histogram::new()),
    });
    let all = Rc::clone(&run);
    let outcome = Simulation::new(machine.clone(), seed)
        .grace_ns(LONG_NS)
        .threads(workers, move |seat| all.member(seat, workers))
        .run(0)?;
    let run = Rc::into_inner(run).expect("all threads are over");
    Ok(Figures {
        span_ns: run.end_ns.get() - run.begin_ns.get(),
        tasks: run.ended.get(),
        latency: run.latency.into_inner(),
        worked_ns: run.worked_ns.get(),
        push_ns: run.push_ns.get(),
        retries: run.retries.get(),
        attempts: tally.attempts.load(Relaxed),
        hits: tally.hits.load(Relaxed),
        trace: outcome.trace_hash,
        counts: outcome.counts,
    })
}
