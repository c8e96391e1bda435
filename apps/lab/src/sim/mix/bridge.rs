//! Conferences on simulated workers. The pool's own code decides which worker takes which task;
//! fibers behave as on Linux, staying on the thread that they begin on, but have no stack.
//!
//! ```text
//!  thread:  fibers that may go on ─► each in turn ─► after four of them, a task of its own
//!           its mail, its timers ──┘                 after 61, one of any worker's
//!           none: it rests in `Worker::next_until`, until a task, its mail, or its next timer
//! ```
//!
//! The state of a fiber belongs to the experiment and takes no simulated time; the cache line of a
//! slot that two fibers share does move, and a thread that makes another thread's fiber runnable
//! notifies it by [`Ready`](antiphon_runtime::fiber::Ready), which is the real code.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use antiphon_platform::{Atomic, AtomicInteger, Atomics, Clock, Deadline};
use antiphon_runtime::fiber::{ANY_EVERY, Ready, TASKS_EVERY};
use antiphon_runtime::sched::{BoxedPolicy, Crew, Put, Worker};
use antiphon_sim::{Access, Counts, Machine, OwnLine, Sim, Simulation, Stuck, now, touch, work};
use antiphon_sync::queue::{Full, Item};
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use antiphon_report::stats::{Histogram, Random};

use super::codecs::{Codec, EACH_NS, LATE_NS, SWITCH_NS};
use super::subjects::{How, Subject};

/// The settings that rows have in common.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    pub machine: &'a Machine,
    pub codec: &'static Codec,
    pub seed: u64,
    pub workers: usize,
    pub conferences: usize,
    pub legs: usize,
    /// Number of frames of each leg.
    pub frames: u64,
    /// Whether all conferences begin at the same moment.
    pub together: bool,
}

/// The figures of conferences. All times are simulated.
pub struct Figures {
    pub frames: u64,
    /// Number of frames sent too late.
    pub late: u64,
    /// Time from when a frame was due at the mixer to when it was sent.
    pub latency: Histogram,
    /// Total computing time of parts, and how much of it was before the first frame was due.
    pub worked_ns: u64,
    pub ahead_ns: u64,
    /// Time from when the first frame was due to the end.
    pub span_ns: u64,
    pub counts: Counts,
    /// A hash of all steps.
    pub trace: u64,
}

/// Time from the beginning to the first frames, so that fibers exist by then.
const LEAD_NS: u64 = 50_000_000;
/// Capacity for tasks from other pools.
const OUTSIDE: usize = 64;
/// Simulated time that no experiment reaches.
const LONG_NS: u64 = 1_000_000_000_000;
/// Least word that may be an item, and the distance between items.
const FIRST: u64 = 4_096;
const APART: u64 = 8;

/// The progress of a leg's receiver, or of a mixer.
#[derive(Clone, Copy)]
struct Fiber {
    /// The thread on which it has begun.
    home: usize,
    frame: u64,
    /// State of a receiver: whether the frame is decoded. Of a mixer: number of legs mixed.
    at: usize,
}

/// A slot by which a leg hands its frames to the mixer.
#[derive(Default)]
struct Slot {
    full: Cell<bool>,
    leg_waits: Cell<bool>,
    mixer_waits: Cell<bool>,
}

/// The mail that tells a thread which of its fibers are runnable.
struct Mail {
    ready: OwnLine<Ready<Sim>>,
    count: OwnLine<<Sim as Atomics>::U64>,
    posted: RefCell<Vec<usize>>,
}

impl Mail {
    fn new() -> Self {
        let (ready, count) = (OwnLine(Ready::NEW), OwnLine(<Sim as Atomics>::U64::ZERO));
        Self { ready, count, posted: RefCell::default() }
    }

    fn post(&self, fiber: usize) {
        self.posted.borrow_mut().push(fiber);
        // Release, as in the inbox's exchange.
        if self.count.fetch_add(1, AcqRel) == 0 {
            self.ready.tell();
        }
    }

    fn take(&self, to: &mut VecDeque<usize>) {
        self.ready.look();
        self.count.swap(0, Acquire);
        to.extend(self.posted.take());
    }
}

/// The fibers of a thread, as it schedules them.
struct Desk<'a> {
    me: usize,
    pool: usize,
    worker: Worker<'a, Sim, BoxedPolicy<Sim>>,
    ready: VecDeque<usize>,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
}

struct Bridge {
    subject: Subject,
    codec: &'static Codec,
    legs: usize,
    frames: u64,
    starts_ns: Vec<u64>,
    pools: Vec<Crew<Sim, BoxedPolicy<Sim>>>,
    /// The pool of each thread, and its worker slot there.
    seats: Vec<(usize, usize)>,
    mails: Vec<Mail>,
    slots: Vec<OwnLine<Slot>>,
    fibers: RefCell<Vec<Fiber>>,
    /// Due times of frames to be sent, and the free places in that list.
    sends: RefCell<(Vec<u64>, Vec<usize>)>,
    /// Number of fibers and frames that have not ended.
    open: Cell<usize>,
    end_ns: Cell<u64>,
    late: Cell<u64>,
    worked_ns: Cell<u64>,
    ahead_ns: Cell<u64>,
    latency: RefCell<Histogram>,
}

impl Bridge {
    fn new(setting: &Setting<'_>, subject: Subject) -> Self {
        let &Setting { codec, seed, workers, conferences, legs, frames, together, .. } = setting;
        let parts = conferences * (legs + 1);
        let pools = subject.pools(workers);
        let seats = pools.iter().enumerate();
        let seats = seats.flat_map(|(pool, &seats)| (0..seats).map(move |seat| (pool, seat)));
        let crew = |&workers: &usize| {
            let outside = parts.max(OUTSIDE).next_power_of_two();
            // Each thread keeps the fibers that it begins, so threads begin them in turn.
            Crew::new(subject.policy(parts.max(OUTSIDE)), workers, outside).in_turn()
        };
        let lot = |number: usize| Random(seed ^ number as u64).draw() % EACH_NS;
        let start = |number| LEAD_NS + if together { 0 } else { lot(number) };
        Self {
            subject,
            codec,
            legs,
            frames,
            starts_ns: (0..conferences).map(start).collect(),
            seats: seats.collect(),
            pools: pools.iter().map(crew).collect(),
            mails: (0..workers).map(|_| Mail::new()).collect(),
            slots: (0..conferences * legs).map(|_| OwnLine::default()).collect(),
            fibers: RefCell::new(vec![Fiber { home: 0, frame: 0, at: 0 }; parts]),
            sends: RefCell::default(),
            open: Cell::new(parts),
            end_ns: Cell::new(0),
            late: Cell::new(0),
            worked_ns: Cell::new(0),
            ahead_ns: Cell::new(0),
            latency: RefCell::new(Histogram::new()),
        }
    }

    /// Returns the number of receivers and mixers.
    fn parts(&self) -> usize {
        self.starts_ns.len() * (self.legs + 1)
    }

    fn pool_of(&self, conference: usize, stage: usize) -> usize {
        match self.subject.how {
            How::One => 0,
            How::Silos => conference % self.pools.len(),
            How::Stages => stage,
        }
    }

    fn work(&self, ns: u64) {
        self.worked_ns.set(self.worked_ns.get() + ns);
        if now() < LEAD_NS {
            self.ahead_ns.set(self.ahead_ns.get() + ns);
        }
        work(ns);
    }

    /// Submits all conferences from outside, before the first frame is due.
    fn open(&self) {
        for fiber in 0..self.parts() {
            let (conference, part) = (fiber / (self.legs + 1), fiber % (self.legs + 1));
            let stage = usize::from(part == self.legs);
            let pool = &self.pools[self.pool_of(conference, stage)];
            work(self.codec.spawn_ns);
            let item = item(fiber);
            let rank = self.subject.rank(stage as u64, self.starts_ns[conference]);
            pool.submit(item, Put { rank, ..Put::PLAIN }).expect("room for all");
        }
    }

    /// Runs a thread.
    fn thread(&self, me: usize) {
        let (pool, seat) = self.seats[me];
        let worker = self.pools[pool].worker(seat).expect("each has a seat of its own");
        let (ready, timers) = (VecDeque::new(), BinaryHeap::new());
        let mut desk = Desk { me, pool, worker, ready, timers };
        if me == 0 {
            self.open();
        }
        let mut turn = 0_u32;
        while self.open.get() > 0 {
            self.collect(&mut desk);
            let task = if let Some(fiber) = desk.ready.pop_front() {
                work(SWITCH_NS);
                self.go_on(fiber, &mut desk);
                turn += 1;
                match turn {
                    _ if turn.is_multiple_of(ANY_EVERY) => desk.worker.try_any_task(),
                    _ if turn.is_multiple_of(TASKS_EVERY) => desk.worker.try_next_task(),
                    _ => None,
                }
            } else if let Some(task) = desk.worker.try_next_task() {
                Some(task)
            } else {
                let next = desk.timers.peek();
                let deadline =
                    next.map(|&Reverse((ns, _))| Deadline { clock: Clock::Monotonic, ns });
                desk.worker.next_until(&self.mails[me].ready.awaited(), deadline)
            };
            if let Some(task) = task {
                self.begin(task, &mut desk);
            }
        }
    }

    /// Collects the fibers that are runnable.
    fn collect(&self, desk: &mut Desk<'_>) {
        let mail = &self.mails[desk.me];
        if !mail.ready.is_quiet() {
            mail.take(&mut desk.ready);
        }
        while desk.timers.peek().is_some_and(|&Reverse((ns, _))| ns <= now()) {
            desk.ready.extend(desk.timers.pop().map(|Reverse((_, fiber))| fiber));
        }
    }

    /// Begins a fiber, or sends a frame.
    fn begin(&self, task: Item, desk: &mut Desk<'_>) {
        let number = ((task.word() - FIRST) / APART) as usize;
        if let Some(send) = number.checked_sub(self.parts()) {
            return self.send(send);
        }
        self.fibers.borrow_mut()[number].home = desk.me;
        self.go_on(number, desk);
    }

    /// Resumes a fiber, until it waits or ends.
    fn go_on(&self, number: usize, desk: &mut Desk<'_>) {
        let (conference, part) = (number / (self.legs + 1), number % (self.legs + 1));
        let mut fiber = self.fibers.borrow()[number];
        let ended = if part == self.legs {
            self.mix(conference, &mut fiber, desk)
        } else {
            self.receive(number, conference, part, &mut fiber, desk)
        };
        self.fibers.borrow_mut()[number] = fiber;
        if ended {
            self.close();
        }
    }

    fn due_ns(&self, conference: usize, frame: u64) -> u64 {
        self.starts_ns[conference] + frame * EACH_NS
    }

    /// The work of a leg: decodes a frame, waits until it is due, and for room in its slot. Returns
    /// whether the fiber has ended.
    fn receive(
        &self,
        number: usize,
        conference: usize,
        leg: usize,
        fiber: &mut Fiber,
        desk: &mut Desk<'_>,
    ) -> bool {
        let slot = &self.slots[conference * self.legs + leg];
        while fiber.frame < self.frames {
            if fiber.at == 0 {
                self.work(self.codec.receive_ns);
                fiber.at = 1;
            }
            let due_ns = self.due_ns(conference, fiber.frame);
            if now() < due_ns {
                desk.timers.push(Reverse((due_ns, number)));
                return false;
            }
            touch(&**slot, Access::Write);
            if slot.full.replace(true) {
                slot.leg_waits.set(true);
                return false;
            }
            (fiber.frame, fiber.at) = (fiber.frame + 1, 0);
            if slot.mixer_waits.take() {
                self.wake(conference * (self.legs + 1) + self.legs, desk);
            }
        }
        true
    }

    /// The work of a mixer: takes a frame of each leg, adds them up, and sends the sum to each.
    fn mix(&self, conference: usize, fiber: &mut Fiber, desk: &mut Desk<'_>) -> bool {
        while fiber.frame < self.frames {
            while fiber.at < self.legs {
                let slot = &self.slots[conference * self.legs + fiber.at];
                touch(&**slot, Access::Write);
                if !slot.full.take() {
                    slot.mixer_waits.set(true);
                    return false;
                }
                if slot.leg_waits.take() {
                    self.wake(conference * (self.legs + 1) + fiber.at, desk);
                }
                self.work(self.codec.mix_ns);
                fiber.at += 1;
            }
            let due_ns = self.due_ns(conference, fiber.frame);
            (fiber.frame, fiber.at) = (fiber.frame + 1, 0);
            for _ in 0..self.legs {
                self.spawn(conference, due_ns, desk);
            }
        }
        true
    }

    /// Makes a waiting fiber runnable.
    fn wake(&self, number: usize, desk: &mut Desk<'_>) {
        let home = self.fibers.borrow()[number].home;
        if home == desk.me {
            desk.ready.push_back(number);
        } else {
            self.mails[home].post(number);
        }
    }

    /// Spawns a task that sends a frame.
    fn spawn(&self, conference: usize, due_ns: u64, desk: &mut Desk<'_>) {
        self.open.set(self.open.get() + 1);
        let place = {
            let (sends, free) = &mut *self.sends.borrow_mut();
            let place = free.pop().unwrap_or(sends.len());
            sends.resize(sends.len().max(place + 1), 0);
            sends[place] = due_ns;
            place
        };
        self.work(self.codec.spawn_ns);
        let (item, pool) = (item(self.parts() + place), self.pool_of(conference, 2));
        let rank = self.subject.rank(2, due_ns + LATE_NS);
        let put = Put { rank, ..Put::PLAIN };
        let pushed = if pool == desk.pool {
            desk.worker.push(item, put)
        } else {
            self.pools[pool].submit(item, put)
        };
        if let Err(Full(_)) = pushed {
            self.send(place);
        }
    }

    fn send(&self, place: usize) {
        self.work(self.codec.send_ns);
        let due_ns = {
            let (sends, free) = &mut *self.sends.borrow_mut();
            free.push(place);
            sends[place]
        };
        let latency = now() - due_ns;
        self.latency.borrow_mut().record(latency, 1);
        self.late.set(self.late.get() + u64::from(latency > LATE_NS));
        self.close();
    }

    /// Counts the end of a fiber or frame.
    fn close(&self) {
        self.open.set(self.open.get() - 1);
        if self.open.get() == 0 {
            self.end_ns.set(now());
            self.mails.iter().for_each(|mail| mail.ready.tell());
        }
    }
}

fn item(number: usize) -> Item {
    Item::new(FIRST + APART * number as u64).expect("a word for an item")
}

/// Holds all conferences, with each worker on a CPU.
///
/// # Errors
///
/// If the workers deadlock, which is a defect.
pub fn hold(setting: &Setting<'_>, subject: Subject) -> Result<Figures, Stuck> {
    let bridge = Rc::new(Bridge::new(setting, subject));
    let all = Rc::clone(&bridge);
    let outcome = Simulation::new(setting.machine.clone(), setting.seed)
        .grace_ns(LONG_NS)
        .threads(setting.workers, move |me| all.thread(me))
        .run(0)?;
    let bridge = Rc::into_inner(bridge).expect("all threads are over");
    let latency = bridge.latency.into_inner();
    Ok(Figures {
        frames: setting.frames * (setting.conferences * setting.legs) as u64,
        late: bridge.late.get(),
        latency,
        worked_ns: bridge.worked_ns.get(),
        ahead_ns: bridge.ahead_ns.get(),
        span_ns: bridge.end_ns.get() - LEAD_NS,
        trace: outcome.trace_hash,
        counts: outcome.counts,
    })
}
