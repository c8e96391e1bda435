//! Runners of chains: a pool of a policy, a peer, or two pools of a policy.
//!
//! | subject | what runs where |
//! |---|---|
//! | `POLICY` | everything in one pool |
//! | `POLICY+stages` | long chains in a pool of their own, with a quarter of the workers |
//!
//! Each of the two pools has at least one worker; together they have all workers, or two.

use std::sync::LazyLock;

use antiphon::pool::{Pool, policy::Policy};
use antiphon_linux::Linux;

use super::work::LONG_STAGE;
use crate::bench::mix::hosts::POLICIES;
use crate::bench::pools::figures::Counted;
use crate::bench::pools::policies::{self, Ranks, Take};
use crate::bench::pools::runner::{Kind, Runner};
use crate::bench::pools::subjects::{self, Setup, Visitor, leak};

const STAGES: &str = "+stages";
/// One worker in `OF` is in the pool of long chains.
const OF: usize = 4;

/// Returns the names of all our runners; in two pools, for the same policies as in `bench mix`.
pub fn names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let composed = POLICIES.into_iter().map(|name| &*format!("{name}{STAGES}").leak());
        policies::names().iter().copied().chain(composed).collect()
    });
    &NAMES
}

/// Visits the subject `name`.
///
/// # Errors
///
/// If no such subject exists, or it can't start its threads.
pub fn with<V: Visitor>(name: &str, setup: &Setup, visitor: V) -> Result<V::Output, String> {
    match name.strip_suffix(STAGES) {
        None => subjects::with(name, setup, visitor),
        Some(policy) => {
            policies::with(policy, setup.workers, setup.capacity, Two { setup, visitor })?
        }
    }
}

/// Returns the numbers of workers of the two pools; the second pool runs long chains.
fn threads(workers: usize) -> [usize; 2] {
    let long = (workers / OF).max(1);
    [workers.saturating_sub(long).max(1), long]
}

struct Two<'a, V> {
    setup: &'a Setup,
    visitor: V,
}

impl<V: Visitor> Take for Two<'_, V> {
    type Output = Result<V::Output, String>;

    fn take<Y: Policy<Linux> + 'static>(
        self,
        make: impl Fn() -> Y,
        ranks: Ranks,
    ) -> Result<V::Output, String> {
        let start = |threads| Pool::with_policy(threads, make()).map_err(|it| it.to_string());
        let [most, long] = threads(self.setup.workers);
        let pools = leak(Composed { pools: [start(most)?, start(long)?], ranks });
        let counted = || Some(Counted::of(&pools.pools.each_ref().map(Pool::stats), None));
        Ok(self.visitor.visit(pools, &counted))
    }
}

struct Composed<Y: Policy<Linux> + 'static> {
    pools: [Pool<Y>; 2],
    ranks: Ranks,
}

impl<Y: Policy<Linux> + 'static> Runner for Composed<Y> {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        drop(self.pools[0].spawn(work));
    }

    fn spawn_as(&'static self, kind: Kind, work: impl FnOnce() + Send + 'static) {
        self.ranks.spawn(&self.pools[usize::from(kind.stage == LONG_STAGE)], kind, work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pool_has_a_worker_and_both_as_many_as_there_are() {
        for (workers, shared) in [(1, [1, 1]), (2, [1, 1]), (3, [2, 1]), (8, [6, 2]), (9, [7, 2])] {
            assert_eq!(threads(workers), shared, "{workers} workers");
        }
    }
}
