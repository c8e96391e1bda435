//! A kernel that schedules a core by [`Scheduler`]: it does what a scheduler loaded into the kernel
//! (tier T0) does, without its overhead.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use antiphon_platform::Platform;
use antiphon_runtime::coop::{
    Answer, Ask, Cooperate, Group, Member, Members, Options, Pick, Scheduler, Table as _, WEIGHT,
};
use antiphon_sim::{Schedule, Sim, Stop, Turn, give};

/// The scheduler of a core, and the threads that are its members.
pub struct Kernel {
    scheduler: Scheduler<Members>,
    /// Place of each thread that has begun.
    places: BTreeMap<usize, usize>,
    /// Thread in each place.
    threads: Vec<usize>,
    /// Threads that share one group's part of the core.
    grouped: Vec<usize>,
}

/// A kernel that its threads and the machine share.
#[derive(Clone)]
pub struct Shared(Rc<RefCell<Kernel>>);

impl Shared {
    /// Makes the kernel of a core on which the threads `grouped` share one part, and every other
    /// thread has its own.
    pub fn new(grouped: Vec<usize>, options: Options) -> Self {
        let scheduler = Scheduler::new(Members::new(), options);
        let (places, threads) = (BTreeMap::new(), Vec::new());
        Self(Rc::new(RefCell::new(Kernel { scheduler, places, threads, grouped })))
    }

    /// Returns how often a thread was given the core.
    pub fn turns(&self) -> u64 {
        self.0.borrow().scheduler.table().head().turns
    }
}

impl Kernel {
    fn arrive(&mut self, thread: usize) {
        if let Some(&place) = self.places.get(&thread) {
            return self.scheduler.wake(place);
        }
        let grouped = self.grouped.contains(&thread);
        let group = if grouped { Group::Number(0) } else { Group::Own };
        let place = self.scheduler.join(Member::new(group, WEIGHT)).expect("there is always room");
        self.threads.resize(self.threads.len().max(place + 1), thread);
        self.threads[place] = thread;
        self.places.insert(thread, place);
    }

    fn stop(&mut self, thread: usize, why: Stop, ran_ns: u64, now_ns: u64) {
        let Some(&place) = self.places.get(&thread) else { return };
        match why {
            Stop::Over => {
                // A thread that is stopped before its turn is over is not to blame for it.
                self.scheduler.expire(now_ns, ran_ns);
                self.scheduler.preempt(place, ran_ns);
            }
            Stop::Sleeps => self.scheduler.block(place, ran_ns),
            Stop::Ended => {
                self.scheduler.leave(place, ran_ns);
                self.places.remove(&thread);
            }
        }
    }
}

impl Schedule for Shared {
    fn arrives(&mut self, thread: usize, _: u64) {
        self.0.borrow_mut().arrive(thread);
    }

    fn stops(&mut self, thread: usize, why: Stop, ran_ns: u64, now_ns: u64) {
        self.0.borrow_mut().stop(thread, why, ran_ns, now_ns);
    }

    fn picks(&mut self, now_ns: u64) -> Turn {
        let kernel = &mut *self.0.borrow_mut();
        match kernel.scheduler.pick(now_ns) {
            Pick::Run { id, until_ns, .. } => {
                Turn { thread: Some(kernel.threads[id]), until_ns: Some(until_ns) }
            }
            Pick::Idle { until_ns } => Turn { thread: None, until_ns },
        }
    }
}

/// A thread of such a core gives it away by a system call, in which it also sleeps.
impl Cooperate for Shared {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        let thread = Sim::thread().0 as usize - 1;
        give(|ran_ns, _| {
            let kernel = &mut *self.0.borrow_mut();
            if let Some(&place) = kernel.places.get(&thread) {
                kernel.scheduler.poll(place, ran_ns, ask.release_ns, ask.importance);
            }
        });
        wait(Some(0));
        let kernel = self.0.borrow();
        kernel.places.get(&thread).map_or_else(Answer::default, |&at| kernel.scheduler.answer(at))
    }
}
