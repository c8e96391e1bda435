//! A lock in action: threads of two sockets queue up in turn while the first owner holds the lock,
//! and take it one after the other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_platform::ThreadId;
use antiphon_replay::locks::SimLock;
use antiphon_report::failure::Failure;
use antiphon_report::page::lanes::{Does, Lane, Span};
use antiphon_sim::{Machine, Sim, Simulation, now, sleeps, work};
use antiphon_sync::nap::nap;

/// The threads and their CPUs.
#[derive(Clone, Copy)]
pub struct Scene {
    /// Number of threads, one of which is the first owner.
    pub threads: usize,
    /// CPUs of a socket on which they are.
    pub cpus: usize,
    /// Time between two arrivals.
    pub apart_ns: u64,
    /// For how long the first owner stays after the last has come.
    pub stays_ns: u64,
    pub section_ns: u64,
}

/// What happened.
pub struct Played {
    pub lanes: Vec<Lane>,
    /// The socket of each owner but the first, in order.
    pub order: Vec<usize>,
    /// Number of owners that slept when the lock was released to them.
    pub asleep: usize,
    /// Number of waiters that slept at some time.
    pub slept: usize,
}

impl Played {
    /// How often the lock went to another socket.
    pub fn changes(&self) -> usize {
        self.order.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }
}

const SOCKETS: usize = 2;

struct Stage {
    came: Vec<Cell<u64>>,
    got: Vec<Cell<u64>>,
    left: Vec<Cell<u64>>,
    order: RefCell<Vec<usize>>,
    /// Which threads slept at the last release.
    slept: RefCell<Vec<bool>>,
    asleep: Cell<usize>,
    /// When each thread was seen asleep.
    naps: RefCell<Vec<Vec<Span>>>,
}

impl Stage {
    fn new(threads: usize) -> Self {
        let times = || (0..threads).map(|_| Cell::new(0)).collect();
        Self {
            came: times(),
            got: times(),
            left: times(),
            order: RefCell::default(),
            slept: RefCell::new(vec![false; threads]),
            asleep: Cell::new(0),
            naps: RefCell::new(vec![Vec::new(); threads]),
        }
    }

    fn sleeping(threads: usize) -> impl Iterator<Item = bool> {
        // The simulator counts threads from one, in the order in which they were added.
        (1..=threads as u32).map(|number| sleeps(ThreadId(number)))
    }

    fn enters(&self, nth: usize) {
        self.got[nth].set(now());
        if nth > 0 {
            self.order.borrow_mut().push(nth % SOCKETS);
            let slept = self.slept.borrow()[nth];
            self.asleep.set(self.asleep.get() + usize::from(slept));
        }
    }

    fn leaves(&self, nth: usize) {
        self.left[nth].set(now());
        *self.slept.borrow_mut() = Self::sleeping(self.came.len()).collect();
    }

    /// Watches from a CPU of its own which waiters sleep, until all threads have had the lock.
    fn watch(&self, step_ns: u64) {
        while self.left.iter().any(|left| left.get() == 0) {
            for (nth, sleeps) in Self::sleeping(self.came.len()).enumerate() {
                let waits = self.came[nth].get() > 0 && self.got[nth].get() == 0;
                if sleeps && waits {
                    self.nap(nth, now(), step_ns);
                }
            }
            work(step_ns);
        }
    }

    fn nap(&self, nth: usize, at_ns: u64, step_ns: u64) {
        let naps = &mut self.naps.borrow_mut()[nth];
        match naps.last_mut() {
            Some(last) if at_ns <= last.to_ns + step_ns / 2 => last.to_ns = at_ns + step_ns,
            _ => naps.push(Span { from_ns: at_ns, to_ns: at_ns + step_ns, does: Does::Sleeps }),
        }
    }

    fn lane(&self, nth: usize) -> Lane {
        let [came, got, left] = [&self.came, &self.got, &self.left].map(|times| times[nth].get());
        let mut spans = vec![Span { from_ns: came, to_ns: got, does: Does::Waits }];
        // Sleep lies over the wait that it is part of.
        spans.extend(self.naps.borrow()[nth].iter().copied());
        spans.push(Span { from_ns: got, to_ns: left, does: Does::Holds });
        let group = nth % SOCKETS;
        Lane { group, name: format!("thread {nth}, socket {group}"), spans }
    }
}

/// Plays the scene on a machine of two sockets.
///
/// # Errors
///
/// If a thread never gets the lock, which is a defect.
pub fn played(subject: &str, scene: Scene, seed: u64) -> Result<Played, Failure> {
    let Scene { threads, cpus, apart_ns, stays_ns, section_ns } = scene;
    let lock = SimLock::named(subject).expect("a lock");
    // The CPU behind those of the last socket's threads is the observer's.
    let machine = Machine::two_sockets().shape(SOCKETS as u32, cpus as u32 + 1).without_jitter();
    let stage = Rc::new(Stage::new(threads));
    let instance = Rc::new(lock.instance().expect("it is taken and released"));
    let mut simulation = Simulation::new(lock.on(&machine), seed);
    for nth in 0..threads {
        let (stage, instance) = (Rc::clone(&stage), Rc::clone(&instance));
        let cpu = nth % SOCKETS * (cpus + 1) + nth / SOCKETS % cpus;
        simulation = simulation.thread_on(cpu as u32, move || {
            nap::<Sim>(1 + apart_ns * nth as u64);
            stage.came[nth].set(now());
            instance.lock();
            stage.enters(nth);
            work(if nth == 0 { apart_ns * threads as u64 + stays_ns } else { section_ns });
            stage.leaves(nth);
            // SAFETY: locked above.
            unsafe { instance.unlock() }
        });
    }
    let observer = Rc::clone(&stage);
    let step_ns = (section_ns / 20).max(20);
    let cpu = SOCKETS * (cpus + 1) - 1;
    simulation = simulation.thread_on(cpu as u32, move || observer.watch(step_ns));
    let _ = simulation.run(0).map_err(Failure::measured)?;
    let slept = stage.naps.borrow().iter().filter(|naps| !naps.is_empty()).count();
    Ok(Played {
        lanes: (0..threads).map(|nth| stage.lane(nth)).collect(),
        order: stage.order.take(),
        asleep: stage.asleep.get(),
        slept,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: Scene =
        Scene { threads: 7, cpus: 4, apart_ns: 1_000, stays_ns: 10_000, section_ns: 500 };

    #[test]
    fn a_queue_is_served_in_order_and_a_sorted_one_by_socket() {
        let mcs = played("mcs", SCENE, 1).unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!(mcs.order, [1, 0, 1, 0, 1, 0]);
        assert_eq!((mcs.changes(), mcs.asleep, mcs.slept), (5, 0, 0));
        let sorted = played("shfl-spin", SCENE, 1).unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!(sorted.order.len(), 6);
        assert!(sorted.changes() < mcs.changes(), "{:?}", sorted.order);
        for lane in sorted.lanes {
            assert!(lane.spans.iter().all(|span| span.from_ns <= span.to_ns), "{}", lane.name);
        }
    }

    #[test]
    fn waiters_of_a_mutex_whose_section_is_long_sleep() {
        let scene = Scene { stays_ns: 20_000_000, section_ns: 200_000, ..SCENE };
        let futex = played("futex", scene, 1).unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!(futex.slept, 6);
        assert!(futex.asleep > 0);
    }
}
