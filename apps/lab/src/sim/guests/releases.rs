//! `sim guests --releases`: what a host gains that is told when threads want to run.
//!
//! The first guest plays: each of its threads sleeps until its next frame, and decodes it. The
//! threads of the others compute without end. All have a virtual CPU of their own.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_record::Histogram;
use antiphon_report::table::Cell as Field;
use antiphon_sim::{Guests, Sim, Simulation, Stuck, finished, now, work};
use antiphon_sync::nap::nap;
use serde_json::{Value, json};

use super::experiment::Setting;
use super::scenario::{Scenario, number, time};

/// The time from frame to frame, and the time that one takes. Chosen: 100 frames a second.
const PERIOD_NS: u64 = 10_000_000;
const FRAME_NS: u64 = 500_000;
/// The others compute in pieces of this time.
const PIECE_NS: u64 = 100_000;

/// The figures of a simulation.
pub struct Releases {
    /// The time from when a thread wanted to run until it did.
    pub late: Histogram,
    pub frames: u64,
    /// Pieces of work of the other guests.
    pub pieces: u64,
    /// Virtual CPUs that got their CPU at once.
    pub released: u64,
}

impl Scenario for Releases {
    const SUBJECT: &'static str = "player";
    const HINT: &'static str = "releases";
    const HEADS: &'static [&'static str] =
        &[">late p50", ">p99", ">latest", ">frames", ">pieces", ">released"];
    const RULE: &'static str = "\
late      from the time at which a thread of the first guest wants to run until it runs
frames    of the first guest, each 0.5 ms of work, every 10 ms for each thread
pieces    of 0.1 ms, of the other guests
released  times that a virtual CPU got its CPU at once
";

    fn conditions() -> Value {
        json!({ "period_ns": PERIOD_NS, "frame_ns": FRAME_NS })
    }

    fn measure(setting: &Setting, told: bool) -> Result<Self, Stuck> {
        let &Setting { seed, limit_ns, threads, guests, .. } = setting;
        let machine = setting.machine.clone();
        let (topology, cpus) = (machine.topology.clone(), machine.cores() as usize);
        let shared = Guests { releases: told, ..setting.shared() };
        let begin_ns = (shared.slice_ns + shared.switch_ns) * u64::from(guests);
        let late = Rc::new(RefCell::new(Histogram::default()));
        let frames = Rc::new(Cell::new(0));
        let mut simulation = Simulation::new(machine, seed).guests(shared);
        for number in 0..threads {
            let place = topology.place(number % cpus);
            let (late, frames) = (Rc::clone(&late), Rc::clone(&frames));
            simulation = simulation.guest_thread_on(0, place, move || {
                // Frames of different threads are not due together; the first ones come when each
                // virtual CPU has had a slice.
                let mut due_ns = begin_ns + PERIOD_NS * number as u64 / threads as u64;
                while !finished() {
                    nap::<Sim>(due_ns.saturating_sub(now()));
                    late.borrow_mut().count_one(now().saturating_sub(due_ns));
                    work(FRAME_NS);
                    frames.set(frames.get() + 1);
                    due_ns = (due_ns + PERIOD_NS).max(now());
                }
            });
        }
        let pieces = Rc::new(Cell::new(0));
        for guest in 1..guests {
            for number in 0..threads {
                let (place, pieces) = (topology.place(number % cpus), Rc::clone(&pieces));
                simulation = simulation.guest_thread_on(guest, place, move || {
                    while !finished() {
                        work(PIECE_NS);
                        pieces.set(pieces.get() + 1);
                    }
                });
            }
        }
        let released = simulation.run(limit_ns)?.steals.released;
        Ok(Self { late: late.take(), frames: frames.get(), pieces: pieces.get(), released })
    }

    fn object(&self) -> Value {
        json!({
            "late_ns": { "p50": self.late.p50(), "p99": self.late.p99() },
            "latest_ns": self.late.max_ns, "frames": self.frames, "pieces": self.pieces,
            "released": self.released,
        })
    }

    fn cells(&self) -> Vec<Field> {
        let late = &self.late;
        vec![
            time(late.p50()),
            time(late.p99()),
            time(Some(late.max_ns)),
            number(self.frames),
            number(self.pieces),
            number(self.released),
        ]
    }
}
