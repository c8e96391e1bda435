//! Runners of conferences: policies, in one pool or in several.

use antiphon_runtime::sched::{
    BoxedPolicy, Deadlines, Deques, Fifo, InBlocks, Lifo, LifoSlot, Order, Queues, Ranked, Reverse,
    Scheme, Share, Staged, Steal, Stochastic, Switch,
};
use antiphon_sim::Sim;

use crate::bounded::Bounded;

/// What a task's rank means to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// The policy ignores ranks.
    None,
    /// The rank is a stage.
    Stages,
    /// The rank is the time by which the task should be done.
    Deadlines,
}

/// How pools share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Everything is in one pool.
    One,
    /// Each conference is in one of ten pools.
    Silos,
    /// Receivers, mixers and senders have a pool each.
    Stages,
}

/// A policy, in one pool or in several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    pub name: &'static str,
    policy: usize,
    pub how: How,
}

type Make = fn(&Room) -> BoxedPolicy<Sim>;

/// Capacities of a pool, in tasks.
struct Room {
    /// Capacity of a worker's queue.
    own: usize,
    /// Capacity of all workers' queues together.
    all: usize,
}

const HALF: Steal = Steal { share: Share::Half };
/// Number of tasks that are shared at a time by policies that use blocks.
const BLOCK: usize = 16;
/// Due time of a task that names none.
const USUAL_NS: u64 = 1_000_000;

/// The policies: name, meaning of ranks, and constructor.
static POLICIES: [(&str, Ranks, Make); 9] = [
    ("fifo", Ranks::None, |room| deques(Fifo, room)),
    ("lifo", Ranks::None, |room| deques(Lifo, room)),
    ("lifo-slot", Ranks::None, |room| {
        BoxedPolicy::new(LifoSlot::new(HALF).capacity(room.own, room.own))
    }),
    ("stochastic-64", Ranks::None, |room| deques(Stochastic { first: 64 }, room)),
    ("switch-16", Ranks::None, |room| deques(Switch { every: 16 }, room)),
    ("reverse-8", Ranks::None, |room| deques(Reverse { every: 8 }, room)),
    ("lifo-blocks", Ranks::None, |room| {
        scheme(Lifo, InBlocks::<BLOCK> { blocks: room.own / BLOCK })
    }),
    ("staged", Ranks::Stages, |room| BoxedPolicy::new(Staged::new(3, room.all))),
    ("edf", Ranks::Deadlines, |room| {
        BoxedPolicy::new(Ranked::new(Deadlines { usual_ns: USUAL_NS }, 1, room.all))
    }),
];

fn scheme<O: Order + 'static, K: Queues + 'static>(order: O, queues: K) -> BoxedPolicy<Sim>
where
    O::State: 'static,
{
    BoxedPolicy::new(Bounded(Scheme::new(order, HALF).queues(queues)))
}

fn deques<O: Order + 'static>(order: O, room: &Room) -> BoxedPolicy<Sim>
where
    O::State: 'static,
{
    scheme(order, Deques { capacity: room.own, most: room.own })
}

/// Number of pools of a subject with silos.
const SILOS: usize = 10;
/// Shares of the workers, in tenths, for receivers, mixers and senders.
const SHARES: [usize; 3] = [5, 2, 3];
/// Capacity of a worker's queue, in tasks.
const OWN: usize = 1024;

impl Subject {
    /// Returns all subjects.
    pub fn all() -> Vec<Self> {
        let of = |how, tail: &'static str| {
            let all = POLICIES.iter().enumerate();
            all.map(move |(policy, (name, ..))| {
                let name = if tail.is_empty() { name } else { &*format!("{name}{tail}").leak() };
                Self { name, policy, how }
            })
        };
        of(How::One, "").chain(of(How::Silos, "+silos")).chain(of(How::Stages, "+stages")).collect()
    }

    /// Returns the number of workers of each of its pools.
    pub fn pools(self, workers: usize) -> Vec<usize> {
        match self.how {
            How::One => vec![workers],
            // Distributed as evenly as possible.
            How::Silos => {
                let pools = SILOS.min(workers);
                (0..pools).map(|pool| (workers + pool) / pools).collect()
            }
            How::Stages => {
                let [_, mixers, senders] = SHARES.map(|share| (workers * share / 10).max(1));
                vec![workers - mixers - senders, mixers, senders]
            }
        }
    }

    /// Makes a new policy, for a pool that has room for `parts` parts.
    pub fn policy(self, parts: usize) -> BoxedPolicy<Sim> {
        POLICIES[self.policy].2(&Room { own: OWN, all: parts.next_power_of_two() })
    }

    /// Returns the rank of a task of this stage that is due at `due_ns`.
    pub fn rank(self, stage: u64, due_ns: u64) -> Option<u64> {
        match POLICIES[self.policy].1 {
            Ranks::None => None,
            Ranks::Stages => Some(stage),
            Ranks::Deadlines => Some(due_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pool_has_a_worker_and_each_worker_a_pool() {
        for subject in Subject::all() {
            for workers in [3, 5, 10, 19, 20, 100, 128] {
                let pools = subject.pools(workers);
                assert_eq!(pools.iter().sum::<usize>(), workers, "{}", subject.name);
                assert!(!pools.contains(&0), "{} {pools:?}", subject.name);
            }
        }
        let staged = Subject::all().into_iter().find(|subject| subject.name == "fifo+stages");
        assert_eq!(staged.map(|it| it.pools(100)), Some(vec![50, 20, 30]));
    }
}
