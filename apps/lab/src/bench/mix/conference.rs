//! Conferences, for any host: each has a mixer, and a receiver and a sender of frames for each leg.
//!
//! ```text
//!  leg 0: frame ─ decode ─ wait until due ─┐              ┌─ send 0: encode
//!                                          ├─ mixer: add ─┤    a task for each frame
//!  leg 1: frame ─ decode ─ wait until due ─┘              └─ send 1: encode
//!  a fiber each                   a slot each, a fiber
//! ```
//!
//! Frame `i` is due `i` periods after the conference's start. A frame that is sent later than half
//! a period after that is a breach.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

use antiphon::Latch;
use antiphon::channel::{Receiver, Sender, bounded};
use antiphon_report::stats::Random;

use super::cases::{Cell, Phase};
use super::codec::{Mouth, mix};
use super::waits::{put, take, wait_until};
use crate::bench::pools::runner::Kind;
use crate::bench::pools::tally::count;
use crate::compete::work::now_ns;

/// Time from one frame to the next.
pub const PERIOD_NS: u64 = 20_000_000;
/// Time within which a frame must be sent after it is due.
pub const WINDOW_NS: u64 = 10_000_000;
/// Time from the beginning to the first frames, so that threads and fibers exist by then.
const LEAD_NS: u64 = 50_000_000;
/// Interval between checks whether all frames are sent.
const LOOKS: Duration = Duration::from_millis(1);

/// The parts of a conference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The receiver of a leg's frames.
    Receive,
    /// The mixer.
    Mix,
    /// The sender of a frame to a leg.
    Send,
}

/// Runs the parts.
pub trait Host: Sync + 'static {
    /// Runs a part of the conference `number`.
    fn run(
        &'static self,
        number: u64,
        part: Part,
        kind: Kind,
        work: impl FnOnce() + Send + 'static,
    );
}

/// The state that all conferences share.
pub struct Exchange {
    /// The conditions.
    pub cell: Cell,
    /// Time at which it began.
    begun_ns: u64,
    /// The seed of all random choices.
    seed: u64,
    /// Counts parts that have ended.
    over: Latch,
    /// Number of frames that were sent too late.
    breaches: AtomicU64,
    /// With more breaches than this, all conferences end early.
    most: u64,
    /// Number of frames that mixers have handed to senders; added as the mixers end.
    sent: AtomicU64,
    /// Number of frames that have been sent.
    arrived: AtomicU64,
}

/// A frame as a leg hands it to the mixer.
struct Frame {
    number: u32,
    samples: Vec<i32>,
    /// Whether it is the frame that was said.
    right: bool,
}

struct Conference<H: 'static> {
    host: &'static H,
    exchange: &'static Exchange,
    number: u64,
    start_ns: u64,
}

impl Exchange {
    /// Makes an exchange of `cell.conferences` conferences, which end early after more than `most`
    /// breaches.
    pub fn new(cell: Cell, seed: u64, most: u64) -> Self {
        let parts = cell.conferences as usize * (cell.legs + 1);
        Self {
            cell,
            begun_ns: now_ns(),
            seed,
            over: Latch::new(parts as u32),
            breaches: AtomicU64::new(0),
            most,
            sent: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
        }
    }

    /// Returns the number of frames to send.
    pub fn frames(&self) -> u64 {
        u64::from(self.cell.conferences) * self.cell.legs as u64 * u64::from(self.cell.frames)
    }

    /// Holds all conferences, and waits until they are over. Returns how many frames were sent, and
    /// in how many nanoseconds.
    pub fn open<H: Host>(&'static self, host: &'static H) -> (u64, u64) {
        for number in 0..u64::from(self.cell.conferences) {
            let lot = Random(self.seed ^ number).draw() % PERIOD_NS;
            let phase = if self.cell.phase == Phase::Spread { lot } else { 0 };
            let start_ns = self.begun_ns + LEAD_NS + phase;
            Conference { host, exchange: self, number, start_ns }.open();
        }
        self.over.wait();
        // Relaxed: the latch orders it.
        let sent = self.sent.load(Relaxed);
        // Acquire: the tallies of sent frames; pairs with the Release in `send`.
        while self.arrived.load(Acquire) < sent {
            thread::sleep(LOOKS);
        }
        (sent, now_ns() - self.begun_ns)
    }

    fn is_off(&self) -> bool {
        // Relaxed: the breaches may be seen a little later.
        self.breaches.load(Relaxed) > self.most
    }
}

impl<H> Clone for Conference<H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for Conference<H> {}

impl<H: Host> Conference<H> {
    fn open(self) {
        let due_ns = self.start_ns;
        let mut slots = Vec::new();
        for leg in 0..self.exchange.cell.legs {
            let (sender, receiver) = bounded(1);
            slots.push(receiver);
            let kind = Kind { stage: 0, level: 1, due_ns };
            self.host.run(self.number, Part::Receive, kind, move || {
                self.receive(leg, &sender);
                drop(sender);
                self.exchange.over.count_down(1);
            });
        }
        let kind = Kind { stage: 1, level: 1, due_ns };
        self.host.run(self.number, Part::Mix, kind, move || {
            let sent = self.mix(&slots);
            drop(slots);
            // Relaxed: the latch orders it.
            self.exchange.sent.fetch_add(sent, Relaxed);
            self.exchange.over.count_down(1);
        });
    }

    fn due_ns(self, frame: u32) -> u64 {
        self.start_ns + u64::from(frame) * PERIOD_NS
    }

    /// The work of a leg.
    fn receive(self, leg: usize, slot: &Sender<Frame>) {
        let Cell { codec, wait, frame: bytes, frames, .. } = self.exchange.cell;
        let line = codec.line(leg, bytes);
        let mut ear = line.ear();
        let seed = self.exchange.seed ^ self.number << 20 ^ leg as u64;
        for number in 0..frames {
            let frame = line.said(number, Random(seed ^ u64::from(number) << 40));
            let samples = ear.decode(number, &frame);
            let right = samples.is_some();
            wait_until(self.due_ns(number), wait);
            let frame = Frame { number, samples: samples.unwrap_or_default(), right };
            let gone = put(slot, frame, wait).is_none();
            if gone || self.exchange.is_off() {
                return;
            }
        }
    }

    /// The work of the mixer. Returns how many frames it has handed to senders.
    fn mix(self, slots: &[Receiver<Frame>]) -> u64 {
        let Cell { codec, wait, frame: bytes, frames, .. } = self.exchange.cell;
        let mouths = (0..slots.len()).map(|leg| Arc::new(codec.line(leg, bytes).mouth()));
        let (mouths, legs) = (mouths.collect::<Vec<_>>(), slots.len() as u64);
        for number in 0..frames {
            let (mut mixed, mut right) = (Vec::new(), true);
            for slot in slots {
                let Some(frame) = take(slot, wait) else { return u64::from(number) * legs };
                right &= frame.right && frame.number == number;
                mix(&mut mixed, &frame.samples);
            }
            let (mixed, due_ns) = (Arc::new(mixed), self.due_ns(number));
            for mouth in &mouths {
                let (mixed, mouth) = (mixed.clone(), mouth.clone());
                let kind = Kind { stage: 2, level: 0, due_ns: due_ns + WINDOW_NS };
                self.host.run(self.number, Part::Send, kind, move || {
                    self.send(&mouth, &mixed, due_ns, right);
                });
            }
        }
        u64::from(frames) * legs
    }

    /// Sends a frame to a leg.
    fn send(self, mouth: &Mouth, mixed: &[i32], due_ns: u64, right: bool) {
        let right = mouth.encode(mixed).is_some() && right;
        let latency = now_ns().saturating_sub(due_ns);
        let good = latency <= WINDOW_NS;
        if !good {
            self.exchange.breaches.fetch_add(1, Relaxed);
        }
        count(|tally| {
            tally.tasks += 1;
            tally.items += 1;
            tally.found += u64::from(right);
            let step = tally.step(0);
            step.latencies.record(latency, 1);
            step.sum += latency;
            step.items += 1;
            step.good += u64::from(good);
        });
        // Release: the tally above; pairs with the Acquire in `open`.
        self.exchange.arrived.fetch_add(1, Release);
    }
}
