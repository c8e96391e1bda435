//! T1 on simulated machines: on each core, a helper whose rank is above all threads that share time
//! lends a late loop the rank below its own.

use std::cell::Cell;
use std::rc::Rc;

use antiphon_platform::{Platform, ThreadId, Urgency as _};
use antiphon_runtime::coop::boost::{Boosts, Borrower, Helper, Own, Place, Raise, Times};
use antiphon_runtime::coop::{Alone, Answer, Ask, Cooperate, Options};
use antiphon_sim::{Sim, ran_ns, set_rank, system_call, waited_ns};

/// Real-time priorities 1 to 3, encoded as in [`Urgency::rank`](antiphon_platform::Urgency::rank).
const BEHIND: u8 = 101;
const RAISED: u8 = 102;
const HELPER: u8 = 103;

/// The loops of a core, and the state of their helper.
pub struct Core {
    boosts: Boosts<Sim>,
    options: Options,
    /// Number of loops that have not ended.
    open: Cell<usize>,
}

impl Core {
    /// Makes a core for `loops` loops.
    pub fn new(loops: usize, options: Options) -> Self {
        Self { boosts: Boosts::new(loops.max(1)), options, open: Cell::new(loops) }
    }

    /// Runs the helper, until the last loop has ended.
    pub fn help(&self) {
        if self.open.get() > 0 {
            set_rank(HELPER);
            Helper::new(&self.boosts, self.options, System).run();
        }
    }

    /// Returns how often a loop was raised.
    pub fn raises(&self) -> u64 {
        self.boosts.total().raises
    }
}

/// The simulated kernel, as the helper uses it.
struct System;

impl Raise for System {
    type Before = ();

    fn raise(&mut self, thread: ThreadId, behind: bool) -> Option<((), u64)> {
        let ran_ns = self.ran_ns(thread)?;
        Sim::lend(thread, if behind { BEHIND } else { RAISED }).ok()?;
        Some(((), ran_ns))
    }

    fn lower(&mut self, thread: ThreadId, (): ()) -> Option<u64> {
        Sim::reclaim(thread);
        self.ran_ns(thread)
    }

    fn ran_ns(&mut self, thread: ThreadId) -> Option<u64> {
        system_call();
        ran_ns(thread)
    }
}

/// The CPU accounts of the calling thread.
struct Myself;

impl Own for Myself {
    fn ran_ns(&mut self) -> u64 {
        system_call();
        ran_ns(Sim::thread()).unwrap_or_default()
    }

    /// Three calls: a file is opened, read and closed.
    fn times(&mut self) -> Option<Times> {
        (0..3).for_each(|_| system_call());
        let me = Sim::thread();
        Some(Times { ran_ns: ran_ns(me)?, waited_ns: waited_ns(me)? })
    }
}

/// A loop that is boosted, and otherwise does not cooperate.
pub struct Boosted {
    core: Rc<Core>,
    /// `None` once the loop has left.
    place: Option<Place>,
    borrower: Borrower<Sim, Myself>,
}

impl Boosted {
    /// Makes the state for the calling thread's loop.
    pub fn new(core: &Rc<Core>) -> Self {
        let place = core.boosts.sit(Sim::thread()).expect("a seat for each loop");
        let borrower = Borrower::new(&core.boosts, &place, Myself);
        Self { core: core.clone(), place: Some(place), borrower }
    }
}

impl Cooperate for Boosted {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        let place = self.place.as_ref().expect("it has not left");
        let asked = self.borrower.before(&self.core.boosts, place, ask);
        let answer = Alone.poll(asked, wait);
        self.borrower.after(asked, answer)
    }

    fn tell(&mut self, release_ns: Option<u64>) {
        if let Some(place) = &self.place {
            self.borrower.tell(&self.core.boosts, place, release_ns);
        }
    }
}

impl Drop for Boosted {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.core.boosts.leave(place);
        }
        self.core.open.set(self.core.open.get() - 1);
        if self.core.open.get() == 0 {
            self.core.boosts.stop();
        }
    }
}
