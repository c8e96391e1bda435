//! `sim guests --epochs`: how long a writer waits for readers of an epoch whose virtual CPU has no
//! CPU.
//!
//! One thread of each guest, the writer, replaces data. Before it may free what it replaced it
//! waits for a grace period: until each reader that may still see the old data has left its
//! section. The others are readers. They tell the writer when they are in a section, by a store to
//! a line of their own, and never wait. So a reader that loses its CPU in a section stops no
//! reader, but memory stays allocated until it has the CPU again.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Atomics, Budget};
use antiphon_record::Histogram;
use antiphon_report::table::Cell;
use antiphon_sim::{
    Guests, OwnLine, Sim, SimU64, Simulation, Stuck, count, finished, now, think, work,
};
use antiphon_sync::nap::nap;
use serde_json::{Value, json};

use super::experiment::Setting;
use super::scenario::{Scenario, number, time};
use super::told::{begins, ends};

/// A reader's section, and the longest time between two.
const SECTION_NS: u64 = 1_000;
const BETWEEN_NS: u64 = 2_000;
/// The time between two grace periods of a writer.
const UPDATE_NS: u64 = 100_000;
/// The time for which a writer that has spun in vain sleeps.
const NAP_NS: u64 = 20_000;

/// Reclamation by epochs, for one writer: K. Fraser, "Practical lock-freedom", section 5.2.3, with
/// a fence for each section, as a reader may begin one at any time.
///
/// - EPOCH-1: a reader's word is 0 outside its sections. Inside, it is an epoch that the reader has
///   read before the section: the current one or an earlier one.
/// - EPOCH-2: the store of a reader's word, a fence, and the section; the removal of data, the new
///   epoch, a fence, and the writer's loads of the words. So a writer whose load misses the store
///   of a reader has removed the data before that section began.
struct Epochs {
    current: OwnLine<SimU64>,
    readers: Vec<OwnLine<SimU64>>,
}

impl Epochs {
    fn new(readers: usize) -> Self {
        let current = OwnLine(SimU64::ZERO);
        current.store(1, Relaxed);
        Self { current, readers: (0..readers).map(|_| OwnLine(SimU64::ZERO)).collect() }
    }

    fn enter(&self, reader: usize) {
        self.readers[reader].store(self.current.load(Relaxed), Relaxed);
        // Partner: the fence of `wait_for_readers`.
        Sim::fence(SeqCst);
    }

    fn leave(&self, reader: usize) {
        // Partner: the loads of `wait_for_readers`.
        self.readers[reader].store(0, Release);
    }

    /// Waits until the readers that were in a section have left it. Blocks meanwhile.
    fn wait_for_readers(&self) {
        let epoch = self.current.fetch_add(1, AcqRel) + 1;
        // Partner: the fence of `enter`.
        Sim::fence(SeqCst);
        for reader in &self.readers {
            let sees_old = |began: u64| began != 0 && began < epoch;
            // Partner: the store of `leave`.
            while reader.spin_while(Acquire, Budget::PATIENCE, sees_old).is_err() && !finished() {
                nap::<Sim>(NAP_NS);
            }
        }
    }
}

/// The figures of a simulation.
pub struct Grace {
    /// The length of grace periods.
    pub periods: Histogram,
    /// The sections of readers.
    pub sections: u64,
    /// Readers that lost their CPU in a section.
    pub preempted: u64,
}

impl Scenario for Grace {
    const SUBJECT: &'static str = "epochs";
    const HINT: &'static str = "sections";
    const HEADS: &'static [&'static str] =
        &[">grace p50", ">p99", ">longest", ">periods", ">sections", ">preempted"];
    const RULE: &'static str = "\
grace     a grace period: until all readers have left the section in which they were
sections  of readers, each 1 us of work; a guest has one writer, all its other threads read
preempted readers that lost their CPU in a section
";

    fn conditions() -> Value {
        json!({ "section_ns": SECTION_NS, "between_ns": BETWEEN_NS, "update_ns": UPDATE_NS })
    }

    fn measure(setting: &Setting, told: bool) -> Result<Self, Stuck> {
        let &Setting { seed, limit_ns, threads, guests, .. } = setting;
        let machine = setting.machine.clone();
        let (topology, cpus) = (machine.topology.clone(), machine.cores() as usize);
        let shared = Guests { sections: told, ..setting.shared() };
        let periods = Rc::new(RefCell::new(Histogram::default()));
        let mut simulation = Simulation::new(machine, seed).guests(shared);
        for guest in 0..guests {
            let epochs = Rc::new(Epochs::new(threads - 1));
            let (writer, periods) = (Rc::clone(&epochs), Rc::clone(&periods));
            simulation = simulation.guest_thread_on(guest, topology.place(0), move || {
                while !finished() {
                    nap::<Sim>(UPDATE_NS);
                    let began_ns = now();
                    writer.wait_for_readers();
                    periods.borrow_mut().count_one(now() - began_ns);
                }
            });
            for reader in 0..threads - 1 {
                let epochs = Rc::clone(&epochs);
                let place = topology.place((reader + 1) % cpus);
                simulation = simulation.guest_thread_on(guest, place, move || {
                    while !finished() {
                        read(&epochs, reader);
                        count();
                        think(BETWEEN_NS);
                    }
                });
            }
        }
        let outcome = simulation.run(limit_ns)?;
        let (sections, preempted) = (outcome.total_operations(), outcome.steals.of_owners);
        Ok(Self { periods: periods.take(), sections, preempted })
    }

    fn object(&self) -> Value {
        json!({
            "grace_ns": { "p50": self.periods.p50(), "p99": self.periods.p99() },
            "longest_ns": self.periods.max_ns, "periods": self.periods.count(),
            "sections": self.sections, "preempted": self.preempted,
        })
    }

    fn cells(&self) -> Vec<Cell> {
        let periods = &self.periods;
        vec![
            time(periods.p50()),
            time(periods.p99()),
            time(Some(periods.max_ns)),
            number(periods.count()),
            number(self.sections),
            number(self.preempted),
        ]
    }
}

fn read(epochs: &Epochs, reader: usize) {
    begins();
    epochs.enter(reader);
    work(SECTION_NS);
    ends(|| epochs.leave(reader));
}
