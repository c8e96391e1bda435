//! The policies, in our form and in the dissertation's.

use std::sync::Arc;

use antiphon_runtime::sched::{Crew, Fifo, Lifo, Neighbours, Order, Share, Spread, Steal};
use antiphon_sim::{Sim, Stuck};
use antiphon_sync::queue::{Blocks, ChaseLev, Deque, WorkQueue};

use super::cases::Case;
use super::experiment::{Figures, Setting, carry_out};
use super::published::Published;
use super::team::{Tallied, Tally};
use crate::list;

/// Whose scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Our crew.
    Ours,
    /// The dissertation's, with its defects.
    Published,
}

impl Form {
    /// As reports have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Published => "published",
        }
    }
}

/// A policy.
pub struct Subject {
    pub name: &'static str,
    pub form: Form,
    pub about: &'static str,
    carry_out: fn(&Setting<'_>, &'static Case) -> Result<Figures, Stuck>,
}

const HALF: Share = Share::Half;

/// All of them.
pub static SUBJECTS: [Subject; 14] = [
    ours("fifo", "first in, first out; half of anybody's", |s, c| {
        crew(s, c, Fifo, Steal { share: HALF })
    }),
    ours("lifo", "last in, first out; half of anybody's", |s, c| {
        crew(s, c, Lifo, Steal { share: HALF })
    }),
    ours(
        "fifo-near-13",
        "first in, first out; half, of the 13 nearest if one of these has some",
        |s, c| crew(s, c, Fifo, near(13)),
    ),
    ours("fifo-near-20", "first in, first out; the same of 20", |s, c| crew(s, c, Fifo, near(20))),
    ours(
        "lifo-near-13",
        "last in, first out; half, of the 13 nearest if one of these has some",
        |s, c| crew(s, c, Lifo, near(13)),
    ),
    ours("lifo-near-20", "last in, first out; the same of 20", |s, c| crew(s, c, Lifo, near(20))),
    ours(
        "fifo-blocks",
        "first in, first out; others find blocks of sixteen, and take half",
        |s, c| blocks(s, c, Fifo),
    ),
    ours("lifo-blocks", "last in, first out; the same blocks", |s, c| blocks(s, c, Lifo)),
    ours("domainslib", "last in, first out; one of anybody's, and room without end", |s, c| {
        let room = c.room;
        let queue = move || ChaseLev::<Sim>::new(room, 1 << 22);
        crew_of(s, c, Lifo, Steal { share: Share::One }, queue)
    }),
    published("fifo", "with its defects", |s, c| original(s, c, false, None)),
    published("lifo", "with its defects", |s, c| original(s, c, true, None)),
    published("fifo-near-13", "with its defects", |s, c| original(s, c, false, Some(13))),
    published("fifo-near-20", "with its defects", |s, c| original(s, c, false, Some(20))),
    published("lifo-near-13", "with its defects", |s, c| original(s, c, true, Some(13))),
];

type CarryOut = fn(&Setting<'_>, &'static Case) -> Result<Figures, Stuck>;

const fn ours(name: &'static str, about: &'static str, carry_out: CarryOut) -> Subject {
    Subject { name, form: Form::Ours, about, carry_out }
}

const fn published(name: &'static str, about: &'static str, carry_out: CarryOut) -> Subject {
    Subject { name, form: Form::Published, about, carry_out }
}

const fn near(range: usize) -> Neighbours {
    Neighbours { range, share: HALF }
}

/// How many tasks go to others at a time, where they do in blocks.
const BLOCK: usize = 16;
/// Tasks come from outside nowhere here.
const OUTSIDE: usize = 64;

fn crew<O, S>(
    setting: &Setting<'_>,
    case: &'static Case,
    order: O,
    spread: S,
) -> Result<Figures, Stuck>
where
    O: Order + 'static,
    S: Spread + 'static,
{
    let room = case.room;
    crew_of(setting, case, order, spread, move || Deque::<Sim>::new(room, room))
}

fn blocks<O: Order + 'static>(
    setting: &Setting<'_>,
    case: &'static Case,
    order: O,
) -> Result<Figures, Stuck> {
    let room = case.room / BLOCK;
    crew_of(setting, case, order, Steal { share: HALF }, move || Blocks::<Sim, BLOCK>::new(room))
}

fn crew_of<O, S, Q>(
    setting: &Setting<'_>,
    case: &'static Case,
    order: O,
    spread: S,
    queue: impl Fn() -> Q + Send + Sync + 'static,
) -> Result<Figures, Stuck>
where
    O: Order + 'static,
    S: Spread + 'static,
    Q: WorkQueue + Send + Sync + 'static,
{
    let tally = Arc::new(Tally::default());
    let policy = Tallied { order, spread, queue: Box::new(queue), tally: Arc::clone(&tally) };
    let crew = Crew::new(policy, setting.workers, OUTSIDE);
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

/// The subjects of a list of names, or all, in a form or in both.
///
/// # Errors
///
/// One line: the unknown name and the known ones, or that there is none in that form.
pub fn named(text: &str, form: Option<Form>) -> Result<Vec<&'static Subject>, String> {
    let wanted = |subject: &&Subject| form.is_none_or(|form| subject.form == form);
    if text == "all" {
        return Ok(SUBJECTS.iter().filter(wanted).collect());
    }
    let mut known: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
    known.sort_unstable();
    known.dedup();
    let names = list::names("subject", text, &known)?;
    let subjects = SUBJECTS.iter().filter(wanted);
    let subjects: Vec<_> = subjects.filter(|subject| names.contains(&subject.name)).collect();
    if names.is_empty() {
        Err(format!("--subject takes names, or all; there are: {}", known.join(", ")))
    } else if subjects.is_empty() {
        Err(format!("{text}: in our form only; leave --form out"))
    } else {
        Ok(subjects)
    }
}
