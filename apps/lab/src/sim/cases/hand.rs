//! A simulated thread that works on the locks of a case, and the record of its work.
//!
//! Only operations that say so take simulated time. No borrow of a tally is held across one of
//! these, because other simulated threads run meanwhile.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use antiphon_platform::{Platform as _, Topology as _};
use antiphon_record::Histogram;
use antiphon_replay::locks::{Sections, Simulated};
use antiphon_sim::{Access, OwnLine, Sim, count, now, think, touch, up_since, work};
use antiphon_sync::nap::nap;
use antiphon_trace::{Event, What};

/// Maximal number of lines of the data under a lock.
pub const LINES: usize = 16;
const WORDS: usize = 64 / size_of::<u64>();
/// Number of lines of a thread's own data.
const BROUGHT: usize = 4;

/// A lock and the data under it.
struct Place<L: ?Sized> {
    lock: Box<L>,
    data: Box<OwnLine<[u64; LINES * WORDS]>>,
    written: Cell<bool>,
    readers: Cell<usize>,
    waiting: Cell<usize>,
    last: Cell<Option<Release>>,
    entry: Cell<Option<u32>>,
}

#[derive(Clone, Copy)]
struct Release {
    at_ns: u64,
    socket: u32,
    /// Whether a thread was waiting for the lock.
    awaited: bool,
}

/// The record of all threads.
#[derive(Default)]
pub struct Tally {
    /// Completed operations, including those after the limit.
    pub operations: Cell<u64>,
    /// Time of acquisitions.
    pub waits: RefCell<Histogram>,
    /// Exclusive acquisitions of a lock that had an owner before.
    pub acquisitions: Cell<u64>,
    /// Acquisitions among `acquisitions` whose last owner was on the same socket.
    pub kept: Cell<u64>,
    /// Hand-overs: acquisitions among `acquisitions` for which a thread was waiting when the lock
    /// was released.
    pub handovers: Cell<u64>,
    /// Total time in which such a lock had no owner.
    pub handover_ns: Cell<u64>,
    /// Hand-overs to a thread that slept when the lock was released, so that its wake-up is on the
    /// critical path.
    pub wakes: Cell<u64>,
    /// Owners of the first lock, in order, until the limit.
    pub admissions: RefCell<Vec<u32>>,
    /// Number of failed attempts to lock.
    pub failed: Cell<u64>,
    /// Events of each thread, if they are recorded.
    pub events: Option<RefCell<Vec<Vec<Event>>>>,
}

/// The locks of a case, with the state that all threads share.
pub struct Site<L: ?Sized> {
    places: Vec<Place<L>>,
    brought: Vec<OwnLine<[u64; BROUGHT * WORDS]>>,
    cpus: usize,
    limit_ns: u64,
    /// Number of threads that have not finished, without servers.
    at_work: Cell<usize>,
    pub tally: Tally,
}

impl<L: Sections + ?Sized> Site<L> {
    /// Makes the site of `threads` threads (without servers) at `locks`, on a machine of `cpus`
    /// CPUs, until `limit_ns`. With `records`, each event of the threads is recorded.
    pub fn new(
        locks: Vec<Box<L>>,
        threads: usize,
        cpus: usize,
        limit_ns: u64,
        records: bool,
    ) -> Self {
        let place = |lock| Place {
            lock,
            data: Box::new(OwnLine([0; LINES * WORDS])),
            written: Cell::new(false),
            readers: Cell::new(0),
            waiting: Cell::new(0),
            last: Cell::new(None),
            entry: Cell::new(None),
        };
        let places = locks.into_iter().map(place).collect();
        let brought = (0..threads).map(|_| OwnLine([0; BROUGHT * WORDS])).collect();
        let events = records.then(|| RefCell::new(vec![Vec::new(); threads]));
        let (at_work, tally) = (Cell::new(threads), Tally { events, ..Tally::default() });
        Self { places, brought, cpus, limit_ns, at_work, tally }
    }

    /// Runs other threads' sections under a lock, until all threads have finished.
    pub fn serve(&self, lock: usize) {
        self.places[lock].lock.serve();
    }

    /// Called when a thread has finished. The last one stops the servers.
    pub fn leave(&self) {
        self.at_work.set(self.at_work.get() - 1);
        if self.at_work.get() == 0 {
            self.places.iter().for_each(|place| place.lock.dismiss());
        }
    }
}

/// A thread of a case.
pub struct Hand<L: ?Sized = dyn Simulated> {
    site: Rc<Site<L>>,
    thread: u32,
}

impl<L: Sections + ?Sized> Hand<L> {
    /// Makes thread `thread` at `site`.
    pub fn new(site: Rc<Site<L>>, thread: usize) -> Self {
        Self { site, thread: thread as u32 }
    }

    /// Returns the number of CPUs of the machine.
    pub fn cpus(&self) -> usize {
        self.site.cpus
    }

    /// Returns the number of locks.
    pub fn locks(&self) -> usize {
        self.site.places.len()
    }

    /// Runs a critical section under a lock, possibly in another thread, and waits for it. This
    /// thread counts as the owner meanwhile.
    pub fn under(&self, lock: usize, section: impl Fn()) {
        let place = &self.site.places[lock];
        let since_ns = now();
        self.comes(lock, place.readers.get() > 0);
        add(&place.waiting, 1);
        place.lock.with(&mut || {
            place.waiting.set(place.waiting.get() - 1);
            self.enters(lock, since_ns, false);
            section();
            self.leaves(lock);
        });
    }

    /// The work of a critical section: writes `lines` lines under the lock, and computes. Takes
    /// simulated time.
    pub fn writes(&self, lock: usize, lines: usize, ns: u64) {
        self.touches(lock, lines, Access::Write);
        work(ns);
    }

    /// Like [`writes`](Self::writes), but only reads the lines.
    pub fn looks(&self, lock: usize, lines: usize, ns: u64) {
        self.touches(lock, lines, Access::Read);
        work(ns);
    }

    /// Returns the number of this thread.
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// Accesses the data behind a lock, which is on the same line if there is room. Takes simulated
    /// time.
    pub fn beside(&self, lock: usize, access: Access) {
        self.site.places[lock].lock.beside(access);
    }

    /// Sleeps for `ns`.
    pub fn sleeps(&self, ns: u64) {
        nap::<Sim>(ns);
    }

    /// Computes for `ns`.
    pub fn works(&self, ns: u64) {
        work(ns);
    }

    /// The thread whose entry is in the list that a lock protects, if any. Only the owner of the
    /// lock may change it.
    pub fn entry(&self, lock: usize) -> &Cell<Option<u32>> {
        &self.site.places[lock].entry
    }

    /// Accesses some of the own lines of thread `by`. Takes simulated time.
    pub fn brought(&self, by: u32, lines: Range<usize>, access: Access) {
        let words = lines.start * WORDS..lines.end * WORDS;
        touch(&self.site.brought[by as usize][words], access);
    }

    /// Computes without the locks for `ns`, and up to `more_ns` longer.
    pub fn away(&self, ns: u64, more_ns: u64) {
        work(ns);
        think(more_ns);
    }

    /// Returns a random number below `below`.
    pub fn any(&self, below: usize) -> usize {
        Sim::random() as usize % below
    }

    /// Completes an operation.
    pub fn done(&self) {
        bump(&self.site.tally.operations, 1);
        count();
    }

    fn touches(&self, lock: usize, lines: usize, access: Access) {
        touch(&self.site.places[lock].data[..lines * WORDS], access);
    }

    /// Records that the thread waits, if a writer has the lock or `kept` is true.
    fn comes(&self, lock: usize, kept: bool) {
        if kept || self.site.places[lock].written.get() {
            self.record(|| What::Waits { lock: lock as u32, site: lock as u32 });
        }
    }

    fn record(&self, what: impl FnOnce() -> What) {
        if let Some(events) = &self.site.tally.events {
            let event = Event { at_ns: now(), what: what() };
            events.borrow_mut()[self.thread as usize].push(event);
        }
    }

    fn enters(&self, lock: usize, since_ns: u64, tried: bool) {
        let (place, tally, now_ns) = (&self.site.places[lock], &self.site.tally, now());
        assert!(!place.written.replace(true), "two owners at a time");
        assert_eq!(place.readers.get(), 0, "a writer beside readers");
        tally.waits.borrow_mut().count_one(now_ns - since_ns);
        if let Some(last) = place.last.get() {
            bump(&tally.acquisitions, 1);
            bump(&tally.kept, u64::from(last.socket == Sim::socket().0));
            bump(&tally.handovers, u64::from(last.awaited));
            let slept = last.awaited && up_since() > last.at_ns;
            bump(&tally.wakes, u64::from(slept));
            bump(&tally.handover_ns, if last.awaited { now_ns - last.at_ns } else { 0 });
        }
        if lock == 0 && now_ns < self.site.limit_ns {
            tally.admissions.borrow_mut().push(self.thread);
        }
        self.record(|| takes(lock, false, tried));
    }

    fn leaves(&self, lock: usize) {
        let place = &self.site.places[lock];
        assert!(place.written.replace(false), "it was taken");
        self.record(|| What::Releases { lock: lock as u32 });
        let awaited = place.waiting.get() > 0;
        place.last.set(Some(Release { at_ns: now(), socket: Sim::socket().0, awaited }));
    }
}

/// Operations of locks that can be acquired and released.
impl Hand {
    /// Acquires a lock.
    pub fn take(&self, lock: usize) {
        let place = &self.site.places[lock];
        let since_ns = now();
        self.comes(lock, place.readers.get() > 0);
        add(&place.waiting, 1);
        place.lock.lock();
        place.waiting.set(place.waiting.get() - 1);
        self.enters(lock, since_ns, false);
    }

    /// Acquires a lock if it is free.
    pub fn tries(&self, lock: usize) -> bool {
        let since_ns = now();
        let taken = self.site.places[lock].lock.try_lock();
        if taken {
            self.enters(lock, since_ns, true);
        } else {
            bump(&self.site.tally.failed, 1);
        }
        taken
    }

    /// Releases a lock.
    pub fn give(&self, lock: usize) {
        self.leaves(lock);
        // SAFETY: the lock is taken, as `leaves` has checked; its owner is one thread.
        unsafe { self.site.places[lock].lock.unlock() };
    }

    /// Runs `section` while other readers may hold the lock too.
    pub fn reads(&self, lock: usize, section: impl Fn()) {
        let place = &self.site.places[lock];
        let since_ns = now();
        self.comes(lock, false);
        let seat = place.lock.read();
        self.site.tally.waits.borrow_mut().count_one(now() - since_ns);
        assert!(!place.written.get(), "a reader beside a writer");
        add(&place.readers, 1);
        self.record(|| takes(lock, true, false));
        section();
        self.record(|| What::Releases { lock: lock as u32 });
        place.readers.set(place.readers.get() - 1);
        // SAFETY: read-locked above, with this seat.
        unsafe { place.lock.unlock_read(seat) };
    }
}

/// A lock's number is its index in the tables of a trace, and also its site's index.
fn takes(lock: usize, shared: bool, tried: bool) -> What {
    What::Takes { lock: lock as u32, site: lock as u32, shared, tried }
}

fn add(cell: &Cell<usize>, more: usize) {
    cell.set(cell.get() + more);
}

fn bump(cell: &Cell<u64>, more: u64) {
    cell.set(cell.get() + more);
}
