//! Domains on simulated machines: a page for each core, whose members pass its token to each other;
//! and members that move to another core.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_platform::{Platform, ThreadId};
use antiphon_runtime::coop::{
    Accounts, Answer, Ask, Baton, Cooperate, Doing, Domains, Group, Options, Page, Seen, WEIGHT,
};
use antiphon_sim::{Access, OwnLine, Sim, move_to, now, ran_ns, sleeps, system_call, touch};

type Member = Baton<Sim, Rc<Page<Sim>>, System>;

/// The simulated kernel's answers about its threads; each takes a system call.
pub struct System;

impl Accounts for System {
    fn own_ns(&mut self) -> u64 {
        system_call();
        ran_ns(Sim::thread()).unwrap_or_default()
    }

    fn of(&mut self, thread: ThreadId) -> Seen {
        system_call();
        let doing = if sleeps(thread) { Doing::Sleeps } else { Doing::Runs };
        Seen { ran_ns: ran_ns(thread), doing }
    }
}

/// The domains of a machine.
pub struct Pages {
    pages: Vec<Rc<Page<Sim>>>,
    /// Number of members of each domain, on a line that all share.
    spread: OwnLine<RefCell<Domains>>,
    pub moves: Cell<u64>,
}

/// Minimal time between two moves of a member.
const REST_NS: u64 = 50_000_000;

impl Pages {
    /// Makes pages without members; `spread` gives the number of members that each core will have.
    pub fn new(spread: Domains, cores: usize, options: Options) -> Self {
        let page = |_| {
            let page = Page::NEW;
            page.header.set_options(&options);
            Rc::new(page)
        };
        let pages = (0..cores).map(page).collect();
        Self { pages, spread: OwnLine(RefCell::new(spread)), moves: Cell::new(0) }
    }

    /// Returns how often a member was given a core.
    pub fn turns(&self) -> u64 {
        self.pages.iter().map(|page| page.turns()).sum()
    }

    fn join(&self, core: usize, group: Group) -> Member {
        let joined = Baton::join(self.pages[core].clone(), System, group, WEIGHT);
        joined.unwrap_or_else(|full| panic!("core {core}: {full:?}"))
    }
}

/// A member, which is on one core at a time.
pub struct Membership {
    pages: Rc<Pages>,
    core: usize,
    group: Group,
    member: Option<Member>,
    /// Time from which it may move; `None` if it never moves.
    moves_at_ns: Option<u64>,
}

impl Membership {
    /// Makes the calling thread a member of the domain of the core that it runs on.
    pub fn new(pages: &Rc<Pages>, core: usize, group: Group, moves: bool) -> Self {
        let member = Some(pages.join(core, group));
        let pages = pages.clone();
        Self { pages, core, group, member, moves_at_ns: moves.then(|| now() + REST_NS) }
    }

    /// Moves to a core with fewer members, if it is time for that and there is such a core.
    fn settle(&mut self) {
        if self.moves_at_ns.is_none_or(|at_ns| now() < at_ns) {
            return;
        }
        self.moves_at_ns = Some(now() + REST_NS);
        // The line is fetched, and written if there is a better core.
        touch(&*self.pages.spread, Access::Read);
        let to = self.pages.spread.borrow_mut().better(self.core, u64::from(WEIGHT));
        let Some(to) = to else { return };
        touch(&*self.pages.spread, Access::Write);
        self.pages.moves.set(self.pages.moves.get() + 1);
        self.member = None;
        move_to(to as u32);
        self.core = to;
        self.member = Some(self.pages.join(to, self.group));
    }
}

impl Cooperate for Membership {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        self.settle();
        let member = self.member.as_mut().expect("it is a member somewhere");
        member.poll(ask, wait)
    }
}
