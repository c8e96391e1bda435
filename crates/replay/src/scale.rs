//! Scales a recorded program to another number of threads.
//!
//! Threads of one process that begin in the same function do the same work: two or more of them are
//! *workers*, whose number may change. All other threads stay. [`Work`] says how the work is
//! distributed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::plan::{Plan, Program};
use crate::random::Random;
use crate::step::{Step, Timed};

/// How the work is distributed over another number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// All workers together do the recorded work. The work of each is cut where it held no lock and
    /// then waited, or took a lock that other workers take, too. The pieces are queued in the order
    /// of time, and each free worker takes the next.
    #[default]
    Fixed,
    /// Each worker does the work of one recorded worker, so the work grows with their number.
    /// Recorded workers are drawn at random, each once before any is drawn twice.
    PerThread,
}

/// The work of all simulated threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub(crate) plan: Arc<Plan>,
    pub(crate) actors: Vec<Actor>,
    /// The queues of pieces from which workers take, in order.
    pub(crate) pools: Vec<Vec<Vec<Step>>>,
    /// Number of signals that each token needs.
    pub(crate) tokens: Vec<u32>,
}

/// The work of one simulated thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// These steps.
    Steps(Vec<Step>),
    /// The next piece of a pool, until that is empty.
    Pool(usize),
}

/// The workers of each role, by their indices in the plan.
type Roles = Vec<Vec<usize>>;

impl Script {
    /// The script of the recording: each thread does what it did.
    #[must_use]
    pub fn recorded(plan: &Arc<Plan>) -> Self {
        let steps = |thread: &Program| Actor::Steps(bare(&thread.steps));
        Self {
            plan: Arc::clone(plan),
            actors: plan.threads.iter().map(steps).collect(),
            pools: Vec::new(),
            tokens: plan.tokens.clone(),
        }
    }

    /// A script of about `threads` threads in all: those that are not workers stay, and each role
    /// keeps at least one worker. The same as [`recorded`](Self::recorded) if no thread is a
    /// worker, or if `threads` is the largest number that existed at a time. `seed` is for the
    /// random choices of [`Work::PerThread`].
    #[must_use]
    pub fn scaled(plan: &Arc<Plan>, threads: usize, work: Work, seed: u64) -> Self {
        let roles = roles(plan);
        if roles.is_empty() || threads == plan.peak() {
            return Self::recorded(plan);
        }
        let mut script = Self::recorded(plan);
        script.actors.clear();
        let workers: HashSet<usize> = roles.iter().flatten().copied().collect();
        for (number, thread) in plan.threads.iter().enumerate() {
            if !workers.contains(&number) {
                script.actors.push(Actor::Steps(bare(&thread.steps)));
            }
        }
        let shares = shares(&roles, threads.saturating_sub(script.actors.len()));
        let mut random = Random::new(seed);
        for (role, share) in roles.iter().zip(shares) {
            match work {
                Work::Fixed => script.deals(role, share),
                Work::PerThread => script.draws(role, share, &mut random),
            }
        }
        script.forgives();
        script
    }

    /// Number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.actors.len()
    }

    /// Number of acquisitions.
    #[must_use]
    pub fn takes(&self) -> u64 {
        self.steps().filter(|step| matches!(step, Step::Lock { .. })).count() as u64
    }

    /// Number of waits for another thread, other than for a lock.
    #[must_use]
    pub fn awaits(&self) -> u64 {
        self.steps().filter(|step| matches!(step, Step::Await { .. })).count() as u64
    }

    /// Total time that threads compute or are blocked, in nanoseconds.
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        self.steps().fold(0, |sum, step| match step {
            Step::Compute { ns } | Step::Block { ns } => sum.saturating_add(*ns),
            _ => sum,
        })
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        let own = self.actors.iter().filter_map(|actor| match actor {
            Actor::Steps(steps) => Some(steps),
            Actor::Pool(_) => None,
        });
        own.chain(self.pools.iter().flatten()).flatten()
    }

    /// Distributes the work of a role in pieces.
    fn deals(&mut self, role: &[usize], workers: usize) {
        let plan = Arc::clone(&self.plan);
        let common = common(&plan, role);
        let mut pieces = Vec::new();
        for &number in role {
            let thread = &plan.threads[number];
            let cut = cut(&thread.steps, &common);
            if let Some(end) = thread.end {
                // The last piece may be done before the others.
                self.tokens[end as usize] = cut.len() as u32;
            }
            for (order, piece) in cut.into_iter().enumerate() {
                let Some(first) = piece.first() else { continue };
                pieces.push((first.at_ns, number, order, piece));
            }
        }
        pieces.sort_by_key(|&(at_ns, number, order, _)| (at_ns, number, order));
        let pieces = pieces.into_iter().map(|(_, number, _, piece)| {
            let end = plan.threads[number].end;
            let ends = |step: &Step| Some(*step) == end.map(|token| Step::Signal { token });
            let mut steps = bare(piece);
            steps.retain(|step| !ends(step));
            steps.extend(end.map(|token| Step::Signal { token }));
            steps
        });
        self.pools.push(pieces.collect());
        let pool = self.pools.len() - 1;
        self.actors.extend((0..workers).map(|_| Actor::Pool(pool)));
    }

    /// Draws a recorded worker for each worker.
    fn draws(&mut self, role: &[usize], workers: usize, random: &mut Random) {
        let mut left: Vec<usize> = Vec::new();
        for _ in 0..workers {
            if left.is_empty() {
                left.extend(role);
            }
            let drawn = left.swap_remove(random.below(left.len()));
            self.actors.push(Actor::Steps(bare(&self.plan.threads[drawn].steps)));
        }
    }

    /// Lowers the tokens so that no thread waits for a signal of a thread that is not in the
    /// script.
    fn forgives(&mut self) {
        let mut signals = vec![0u32; self.tokens.len()];
        for step in self.steps() {
            if let Step::Signal { token } = step {
                signals[*token as usize] += 1;
            }
        }
        for (needed, signals) in self.tokens.iter_mut().zip(signals) {
            *needed = (*needed).min(signals);
        }
    }
}

impl Plan {
    /// Returns whether the plan has workers, so that their number may be changed.
    #[must_use]
    pub fn scales(&self) -> bool {
        !roles(self).is_empty()
    }
}

fn bare(steps: &[Timed]) -> Vec<Step> {
    steps.iter().map(|timed| timed.step).collect()
}

/// The locks that two or more workers take. A lock that only one worker takes guards state of that
/// worker, such as a block that it compresses in steps; no other worker could continue that work.
fn common(plan: &Plan, role: &[usize]) -> HashSet<u32> {
    let mut taken_by: HashMap<u32, usize> = HashMap::new();
    let mut common = HashSet::new();
    for &number in role {
        for timed in &plan.threads[number].steps {
            if let Step::Lock { lock, .. } = timed.step
                && *taken_by.entry(lock).or_insert(number) != number
            {
                common.insert(lock);
            }
        }
    }
    common
}

/// The pieces of a thread's work: each ends where the thread holds no lock and next waits or takes
/// a common lock. So a step that waits for another thread is the first of its piece, and in the
/// order of time it comes after what it waits for.
fn cut<'a>(steps: &'a [Timed], common: &HashSet<u32>) -> Vec<&'a [Timed]> {
    let mut held = 0u32;
    let mut pieces = Vec::new();
    let mut begin = 0;
    let mut worked = false;
    for (at, timed) in steps.iter().enumerate() {
        let waits = matches!(timed.step, Step::Await { .. });
        let meets = matches!(timed.step, Step::Lock { lock, .. } if common.contains(&lock));
        if at > begin && held == 0 && (waits || (worked && meets)) {
            pieces.push(&steps[begin..at]);
            begin = at;
            worked = false;
        }
        match timed.step {
            Step::Lock { .. } => held += 1,
            Step::Unlock { .. } => {
                held = held.saturating_sub(1);
                worked = true;
            }
            _ => {}
        }
    }
    if begin < steps.len() {
        pieces.push(&steps[begin..]);
    }
    pieces
}

/// The roles of a plan that have two threads or more. A process's first thread is not a worker: no
/// thread created it, and it has no start function.
fn roles(plan: &Plan) -> Roles {
    let mut roles: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for (number, thread) in plan.threads.iter().enumerate() {
        // Its creation may be before the replayed part.
        if thread.made || thread.role.1 != 0 {
            roles.entry(thread.role).or_default().push(number);
        }
    }
    roles.into_values().filter(|role| role.len() > 1).collect()
}

/// Number of workers for each role, in proportion to the recorded ones; at least one.
fn shares(roles: &Roles, workers: usize) -> Vec<usize> {
    let recorded: usize = roles.iter().map(Vec::len).sum();
    let mut shares: Vec<usize> =
        roles.iter().map(|role| (workers * role.len() / recorded).max(1)).collect();
    let mut left = workers.saturating_sub(shares.iter().sum());
    // The largest remainder first.
    let mut order: Vec<usize> = (0..roles.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(workers * roles[at].len() % recorded));
    for &at in order.iter().cycle().take(left) {
        shares[at] += 1;
        left -= 1;
    }
    debug_assert_eq!(left, 0);
    shares
}
