//! The policies, in our form and in the dissertation's.

use std::sync::Arc;

use antiphon_platform::Platform;
use antiphon_report::list;
use antiphon_runtime::sched::{
    Crew, Deques, Fifo, InBlocks, Lifo, LifoSlot, Neighbours, Policy, Queues, Requests, Reverse,
    Scheme, Share, Spill, Staged, Steal, Stochastic, Switch, Tickets,
};
use antiphon_sim::{Sim, Stuck};
use antiphon_sync::queue::ChaseLev;

use super::cases::Case;
use super::experiment::{Figures, Setting, carry_out};
use super::published::Published;
use super::team::{Counting, Tally};
use crate::bounded::Bounded;

/// The scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Our scheduler.
    Ours,
    /// The dissertation's scheduler, with its defects.
    Published,
}

/// A policy.
pub struct Subject {
    pub name: &'static str,
    pub form: Form,
    pub about: &'static str,
    carry_out: fn(&Setting<'_>, &'static Case) -> Result<Figures, Stuck>,
}

const HALF: Steal = Steal { share: Share::Half };

/// All subjects.
pub static SUBJECTS: [Subject; 31] = [
    ours("fifo", "first in, first out; half of any worker's", |s, c| {
        crew(s, c, |tally| scheme(Fifo, HALF, deques(c, tally)))
    }),
    ours("lifo", "last in, first out; half of any worker's", |s, c| {
        crew(s, c, |tally| scheme(Lifo, HALF, deques(c, tally)))
    }),
    ours("lifo-one", "last in, first out; one of any worker's", |s, c| {
        crew(s, c, |tally| scheme(Lifo, Steal { share: Share::One }, deques(c, tally)))
    }),
    ours("lifo-of-10", "last in, first out; half of any worker's that has ten", |s, c| {
        crew(s, c, |tally| scheme(Lifo, Steal { share: Share::HalfOfMany(10) }, deques(c, tally)))
    }),
    ours(
        "fifo-near-13",
        "first in, first out; half, of the 13 nearest if one of these has some",
        |s, c| crew(s, c, |tally| scheme(Fifo, near(13), deques(c, tally))),
    ),
    ours("fifo-near-20", "first in, first out; the same of 20", |s, c| {
        crew(s, c, |tally| scheme(Fifo, near(20), deques(c, tally)))
    }),
    ours(
        "lifo-near-13",
        "last in, first out; half, of the 13 nearest if one of these has some",
        |s, c| crew(s, c, |tally| scheme(Lifo, near(13), deques(c, tally))),
    ),
    ours("lifo-near-20", "last in, first out; the same of 20", |s, c| {
        crew(s, c, |tally| scheme(Lifo, near(20), deques(c, tally)))
    }),
    ours("fifo-tickets", "first in, first out; half, of whose ticket is drawn first", |s, c| {
        crew(s, c, |tally| tickets(scheme(Fifo, HALF, deques(c, tally)), s))
    }),
    ours("lifo-tickets", "last in, first out; the same tickets", |s, c| {
        crew(s, c, |tally| tickets(scheme(Lifo, HALF, deques(c, tally)), s))
    }),
    ours("lifo-spill-1", "last in, first out; what finds no room goes into one queue", |s, c| {
        crew(s, c, |tally| Spill::new(scheme(Lifo, HALF, deques(c, tally)), 1, SPILT))
    }),
    ours("lifo-spill-5", "last in, first out; the same of five shards", |s, c| {
        crew(s, c, |tally| Spill::new(scheme(Lifo, HALF, deques(c, tally)), 5, SPILT))
    }),
    ours("lifo-spill-locked", "last in, first out; the same of one behind a lock", |s, c| {
        crew(s, c, |tally| Spill::locked(scheme(Lifo, HALF, deques(c, tally)), SPILT))
    }),
    ours("lifo-requests", "last in, first out; one task, of the worker that was asked", |s, c| {
        crew(s, c, |tally| Requests::new(scheme(Lifo, HALF, deques(c, tally)), s.workers))
    }),
    ours("lifo-requests-sticky", "last in, first out; the same, of the same until then", |s, c| {
        crew(s, c, |tally| Requests::sticky(scheme(Lifo, HALF, deques(c, tally)), s.workers))
    }),
    ours(
        "fifo-blocks",
        "first in, first out; others find blocks of sixteen, and take half",
        |s, c| crew(s, c, |tally| scheme(Fifo, HALF, blocks(c, tally))),
    ),
    ours("lifo-blocks", "last in, first out; the same blocks", |s, c| {
        crew(s, c, |tally| scheme(Lifo, HALF, blocks(c, tally)))
    }),
    ours("blocks-near-13", "last in, first out; the same of the 13 nearest first", |s, c| {
        crew(s, c, |tally| scheme(Lifo, near(13), blocks(c, tally)))
    }),
    ours("blocks-tickets", "last in, first out; the same blocks, and tickets", |s, c| {
        crew(s, c, |tally| tickets(scheme(Lifo, HALF, blocks(c, tally)), s))
    }),
    ours(
        "stochastic-64",
        "the first in 64 of 256 cases, else the last; half of any worker's",
        |s, c| crew(s, c, |tally| scheme(Stochastic { first: 64 }, HALF, deques(c, tally))),
    ),
    ours("switch-16", "sixteen of the first, sixteen of the last; half of any worker's", |s, c| {
        crew(s, c, |tally| scheme(Switch { every: 16 }, HALF, deques(c, tally)))
    }),
    ours("reverse-8", "the last, but each eighth time the first; half of any worker's", |s, c| {
        crew(s, c, |tally| scheme(Reverse { every: 8 }, HALF, deques(c, tally)))
    }),
    ours("lifo-slot", "the first, but for what was made last; half of any worker's", |s, c| {
        crew(s, c, |_| LifoSlot::new(HALF).capacity(c.room, c.room))
    }),
    ours(
        "staged",
        "a queue for each stage: what takes long, packets, what follows them",
        |s, c| crew(s, c, |_| Staged::new(STAGES, c.room * s.workers)),
    ),
    ours("domainslib", "last in, first out; one of any worker's, and room without end", |s, c| {
        crew(s, c, |tally| {
            let queues = counting(ChaseLevs { capacity: c.room }, tally);
            scheme(Lifo, Steal { share: Share::One }, queues)
        })
    }),
    published("fifo", "with its defects", |s, c| original(s, c, false, None)),
    published("lifo", "with its defects", |s, c| original(s, c, true, None)),
    published("fifo-near-13", "with its defects", |s, c| original(s, c, false, Some(13))),
    published("fifo-near-20", "with its defects", |s, c| original(s, c, false, Some(20))),
    published("lifo-near-13", "with its defects", |s, c| original(s, c, true, Some(13))),
    published("lifo-near-20", "with its defects", |s, c| original(s, c, true, Some(20))),
];

type CarryOut = fn(&Setting<'_>, &'static Case) -> Result<Figures, Stuck>;

const fn ours(name: &'static str, about: &'static str, carry_out: CarryOut) -> Subject {
    Subject { name, form: Form::Ours, about, carry_out }
}

const fn published(name: &'static str, about: &'static str, carry_out: CarryOut) -> Subject {
    Subject { name, form: Form::Published, about, carry_out }
}

const fn near(range: usize) -> Neighbours {
    Neighbours { range, share: Share::Half }
}

/// Number of tasks that are shared at a time by policies that use blocks.
const BLOCK: usize = 16;
/// Capacity for tasks from outside, of which there are none here.
const OUTSIDE: usize = 64;
/// Number of tasks for each ticket.
const TICKET: u32 = 16;
/// Number of stages that the experiment distinguishes.
const STAGES: usize = 3;
/// Capacity of the dissertation's shared queue, in tasks.
const SPILT: usize = 1 << 15;

/// Chase and Lev's deques, which grow without a limit.
struct ChaseLevs {
    capacity: usize,
}

// SAFETY: `queue` makes a new queue each time.
unsafe impl Queues for ChaseLevs {
    type Queue<P: Platform> = ChaseLev<P>;

    fn queue<P: Platform>(&self) -> ChaseLev<P> {
        ChaseLev::new(self.capacity, 1 << 22)
    }
}

fn counting<K>(queues: K, tally: &Arc<Tally>) -> Counting<K> {
    Counting { queues, tally: Arc::clone(tally) }
}

fn deques(case: &Case, tally: &Arc<Tally>) -> Counting<Deques> {
    counting(Deques { capacity: case.room, most: case.room }, tally)
}

fn blocks(case: &Case, tally: &Arc<Tally>) -> Counting<InBlocks<BLOCK>> {
    counting(InBlocks { blocks: case.room / BLOCK }, tally)
}

/// A scheme in which a worker without room for a task runs a task itself.
fn scheme<O, S, K: Queues>(order: O, spread: S, queues: K) -> Bounded<O, S, K> {
    Bounded(Scheme::new(order, spread).queues(queues))
}

fn tickets<Y: Policy<Sim>>(policy: Y, setting: &Setting<'_>) -> Tickets<Sim, Y> {
    Tickets::new(policy, TICKET, Share::Half, setting.workers)
}

fn crew<Y: Policy<Sim> + 'static>(
    setting: &Setting<'_>,
    case: &'static Case,
    policy: impl FnOnce(&Arc<Tally>) -> Y,
) -> Result<Figures, Stuck> {
    let tally = Arc::new(Tally::default());
    let crew = Crew::new(policy(&tally), setting.workers, OUTSIDE);
    carry_out(setting, case, false, crew, &tally)
}

fn original(
    setting: &Setting<'_>,
    case: &'static Case,
    last_first: bool,
    range: Option<usize>,
) -> Result<Figures, Stuck> {
    let tally = Arc::new(Tally::default());
    let team = Published::new(last_first, range, setting.workers, case.room, &tally);
    carry_out(setting, case, true, team, &tally)
}

impl Subject {
    pub fn carry_out(&self, setting: &Setting<'_>, case: &'static Case) -> Result<Figures, Stuck> {
        (self.carry_out)(setting, case)
    }
}

/// The requested subjects.
pub struct Named {
    pub subjects: Vec<&'static Subject>,
    /// The requested names that the form does not have.
    pub left_out: Vec<&'static str>,
}

/// Returns the subjects of a list of names, or all, in one form or in both.
///
/// # Errors
///
/// One line: the unknown name and the known ones, or that the form has none of the names.
pub fn named(text: &str, form: Option<Form>) -> Result<Named, String> {
    let mut known: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
    known.sort_unstable();
    known.dedup();
    let mut names =
        if text == "all" { known.clone() } else { list::names("subject", text, &known)? };
    if names.is_empty() {
        return Err(format!("--subject takes names, or all; there are: {}", known.join(", ")));
    }
    let wanted = |subject: &&Subject| {
        form.is_none_or(|form| subject.form == form) && names.contains(&subject.name)
    };
    let subjects: Vec<_> = SUBJECTS.iter().filter(wanted).collect();
    names.retain(|name| subjects.iter().all(|subject| subject.name != *name));
    if subjects.is_empty() {
        Err(format!("{text}: in our form only; leave --form out"))
    } else {
        Ok(Named { subjects, left_out: names })
    }
}
