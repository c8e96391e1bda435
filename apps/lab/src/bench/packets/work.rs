//! The tasks: they make packets, process them, and follow up in chains.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use antiphon_report::stats::Random;

use super::cases::{Case, Form, Heavy};
use super::contents::{Buffers, read, scan};
use super::copies::{Copied, Copies};
use crate::bench::pools::arrivals::STEP_NS;
use crate::bench::pools::course::Course;
use crate::bench::pools::runner::{Run, Runner};
use crate::bench::pools::tally::{Tally, count};
use crate::ticks::{now, since};

/// The work of a run.
pub struct Work {
    /// The case.
    pub case: Case,
    /// The form of the program.
    pub form: Form,
    /// What a heavy task does.
    pub heavy: Option<Heavy>,
    /// Where the memory of packets' copies comes from.
    pub copies: Copies,
    /// The buffers that packets are copied from.
    pub buffers: Buffers,
    /// Number of packets.
    pub packets: u64,
    /// When packets are due, and their progress.
    pub course: Course,
    /// The seed of all random choices.
    pub seed: u64,
    /// Number of newlines in the packets that were spawned.
    pub newlines: AtomicU64,
}

/// A packet in progress.
pub struct Packet {
    number: u64,
    /// Time from which its latency counts.
    since: u64,
    step: usize,
    bytes: Bytes,
}

enum Bytes {
    Copied(Copied),
    /// Bytes that the handler must copy.
    Of(&'static [u8]),
}

/// One packet in this many is heavy.
const HEAVY_OF: u64 = 1000;
/// Number of heavy tasks that such a packet makes, and the time of each.
const HEAVY_TASKS: u64 = 2;
const HEAVY_NS: u64 = 20_000_000;
/// Additional time of a packet in the case `heavier`.
const HEAVIER_NS: f64 = 500.0;
/// Number of bytes that a task of the chain reads.
const READ: u32 = 20;
/// A packet of an open case is in time within this latency.
pub const GOOD_NS: f64 = 1e6;

impl Work {
    /// Returns the total number of tasks, without the spawners.
    pub fn tasks(&self) -> u64 {
        let heavy = (0..self.packets).filter(|&number| self.is_heavy(number)).count() as u64;
        self.packets * (1 + u64::from(self.case.chain())) + heavy * HEAVY_TASKS
    }

    /// Makes a share of the packets, and hands them over.
    pub fn spawn(&'static self, spawner: u32, hand_over: impl Fn(Packet)) {
        let mut random = Random(self.seed ^ u64::from(spawner) << 32);
        let (all, spawners) = (self.packets, u64::from(self.case.spawners()));
        let (mut waited, mut newlines) = (0, 0);
        for number in (u64::from(spawner)..all).step_by(spawners as usize) {
            let (arrival, due) = self.course.arrival(number);
            let buffer = match self.form {
                Form::Corrected => self.buffers.any(&mut random),
                Form::Published => self.buffers.first(),
            };
            let (bytes, inside) = buffer.begin(arrival.and_then(|one| one.bytes));
            newlines += inside;
            let bytes = match self.form {
                Form::Corrected => Bytes::Copied(self.copies.copy(bytes)),
                Form::Published => Bytes::Of(bytes),
            };
            waited += due.map_or(0, Course::wait);
            let step = arrival.map_or(0, |one| one.step);
            hand_over(Packet { number, since: due.unwrap_or_else(now), step, bytes });
        }
        // Relaxed: `spawner_ended` below is a Release.
        self.newlines.fetch_add(newlines, Relaxed);
        self.course.spawner_ended(waited);
    }

    /// Processes a packet. Returns it for the chain that follows, if any.
    pub fn handle(&self, packet: Packet) -> Option<Packet> {
        let bytes = match packet.bytes {
            Bytes::Of(buffer) => self.copies.copy(buffer),
            Bytes::Copied(bytes) => bytes,
        };
        let newlines = black_box(scan(&bytes)).len() as u64;
        if self.case == Case::Heavier {
            self.busy(HEAVIER_NS);
        }
        let chain = self.case.chain() > 0;
        let packet = Packet { bytes: Bytes::Copied(bytes), ..packet };
        count(|tally| {
            tally.items += 1;
            tally.numbers += packet.number;
            tally.found += newlines;
            if !chain {
                self.end_packet(tally, &packet);
            }
            self.end_task(tally);
        });
        chain.then_some(packet)
    }

    /// Runs a task of a packet's chain, which `left` more follow.
    pub fn follow(&self, packet: &Packet, left: u32) {
        if let Bytes::Copied(bytes) = &packet.bytes {
            let seed = self.seed ^ packet.number << 8 ^ u64::from(left);
            black_box(read(bytes, READ, &mut Random(seed)));
        }
        count(|tally| {
            if left == 0 {
                self.end_packet(tally, packet);
            }
            self.end_task(tally);
        });
    }

    /// Runs a heavy task.
    pub fn be_heavy(&self) {
        match self.heavy {
            Some(Heavy::Spin) => self.busy(HEAVY_NS as f64),
            Some(Heavy::Sleep) | None => std::thread::sleep(Duration::from_nanos(HEAVY_NS)),
        }
        count(|tally| self.end_task(tally));
    }

    /// Returns how many heavy tasks a packet makes.
    pub fn heavy_tasks(&self, packet: &Packet) -> u64 {
        if self.is_heavy(packet.number) { HEAVY_TASKS } else { 0 }
    }

    fn is_heavy(&self, number: u64) -> bool {
        self.heavy.is_some() && Random(self.seed ^ number).draw().is_multiple_of(HEAVY_OF)
    }

    fn busy(&self, ns: f64) {
        let (begun, ticks) = (now(), self.course.ticks.of_ns(ns));
        while since(begun, now()) < ticks {
            spin_loop();
        }
    }

    fn end_packet(&self, tally: &mut Tally, packet: &Packet) {
        let now = now();
        let latency = since(packet.since, now);
        let step = tally.step(packet.step);
        step.latencies.record(latency, 1);
        step.sum += latency;
        step.items += 1;
        step.good += u64::from(latency <= self.course.ticks.of_ns(GOOD_NS));
        if self.case == Case::Ramp {
            let passed_ns = self.course.ticks.to_ns(since(self.course.begun, now) as f64);
            tally.step((passed_ns / STEP_NS as f64) as usize).ended += 1;
        }
    }

    fn end_task(&self, tally: &mut Tally) {
        tally.tasks += 1;
        tally.last = now();
    }
}

impl<R: Runner> Run<R, Work> {
    /// Starts the spawners, which do the rest.
    pub fn begin(self) {
        for spawner in 0..self.work.case.spawners() {
            self.runner.spawn(move || {
                self.work.spawn(spawner, |packet| {
                    self.runner.spawn(move || self.handle(packet));
                });
            });
        }
    }

    fn handle(self, packet: Packet) {
        for _ in 0..self.work.heavy_tasks(&packet) {
            self.runner.spawn(move || self.work.be_heavy());
        }
        if let Some(packet) = self.work.handle(packet) {
            let left = self.work.case.chain() - 1;
            self.runner.spawn(move || self.follow(packet, left));
        }
    }

    fn follow(self, packet: Packet, left: u32) {
        self.work.follow(&packet, left);
        if let Some(left) = left.checked_sub(1) {
            self.runner.spawn(move || self.follow(packet, left));
        }
    }
}
