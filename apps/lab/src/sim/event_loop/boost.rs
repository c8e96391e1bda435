//! T1 on simulated machines: a helper on each core, whose rank is above that of all that share
//! time, lends a loop the one below while it is late.

use std::cell::Cell;
use std::rc::Rc;

use antiphon_platform::{Platform, ThreadId, Urgency as _};
use antiphon_runtime::coop::boost::{Boosts, Borrower, Helper, Own, Place, Raise, Times};
use antiphon_runtime::coop::{Alone, Answer, Ask, Cooperate, Options};
use antiphon_sim::{Sim, ran_ns, set_rank, system_call, waited_ns};

/// Real-time priorities 1 to 3, as [`Urgency::rank`](antiphon_platform::Urgency::rank) has them.
const BEHIND: u8 = 101;
const RAISED: u8 = 102;
const HELPER: u8 = 103;

/// The loops of a core, and the helper's part of them.
pub struct Core {
    boosts: Boosts<Sim>,
    options: Options,
    /// Loops that have not ended.
    open: Cell<usize>,
}

impl Core {
    /// The core of `loops` loops.
    pub fn new(loops: usize, options: Options) -> Self {
        Self { boosts: Boosts::new(loops.max(1)), options, open: Cell::new(loops) }
    }

    /// The helper's work, until the last loop has ended.
    pub fn help(&self) {
        if self.open.get() > 0 {
            set_rank(HELPER);
            Helper::new(&self.boosts, self.options, System).run();
        }
    }

    /// How often a loop was raised.
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

/// The accounts of a thread, as it asks for its own.
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

/// A loop that is boosted, and otherwise runs alone.
pub struct Boosted {
    core: Rc<Core>,
    /// Gone when it leaves.
    place: Option<Place>,
    borrower: Borrower<Sim, Myself>,
}

impl Boosted {
    /// The calling thread's.
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
