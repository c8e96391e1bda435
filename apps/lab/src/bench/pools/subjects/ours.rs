//! Our pools, each with a policy.
//!
//! | subject | what runs where |
//! |---|---|
//! | `POLICY` | everything in one pool |
//! | `POLICY+stages` | long chains in a pool of their own, with a quarter of the workers |
//!
//! Each of the two pools has at least one worker; together they have all workers, or two.

use antiphon::pool::{Pool, policy::Policy};
use antiphon_linux::Linux;

use super::{Setup, Visitor, leak};
use crate::bench::pools::figures::Counted;
use crate::bench::pools::policies::{self, Ranks, Take};
use crate::bench::pools::runner::{Kind, LONG_STAGE, Runner};

/// The end of the names of subjects with a second pool.
pub const STAGES: &str = "+stages";
/// One worker in `OF` is in the pool of long chains.
const OF: usize = 4;

/// Visits the pool of a policy, or two of them.
pub fn with<V: Visitor>(name: &str, setup: &Setup, visitor: V) -> Result<V::Output, String> {
    let (policy, workers) = match name.strip_suffix(STAGES) {
        Some(policy) => (policy, threads(setup.workers).to_vec()),
        None => (name, vec![setup.workers]),
    };
    policies::with(policy, setup.workers, setup.capacity, OnPools { setup, workers, visitor })?
}

/// Returns the numbers of workers of the two pools; the second pool runs long chains.
fn threads(workers: usize) -> [usize; 2] {
    let long = (workers / OF).max(1);
    [workers.saturating_sub(long).max(1), long]
}

struct OnPools<'a, V> {
    setup: &'a Setup,
    /// Number of workers of each pool.
    workers: Vec<usize>,
    visitor: V,
}

impl<V: Visitor> Take for OnPools<'_, V> {
    type Output = Result<V::Output, String>;

    fn take<Y: Policy<Linux> + 'static>(
        self,
        make: impl Fn() -> Y,
        ranks: Ranks,
    ) -> Result<V::Output, String> {
        let start = |&threads| Pool::with_policy(threads, make()).map_err(|it| it.to_string());
        let pools = self.workers.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let ours = leak(Ours { pools, ranks });
        let counted = || {
            let trace = self.setup.trace.then(|| timeline(&ours.pools[0]));
            Some(Counted::of(&ours.pools.iter().map(Pool::stats).collect::<Vec<_>>(), trace))
        };
        Ok(self.visitor.visit(ours, &counted))
    }
}

fn timeline<Y: Policy<Linux> + 'static>(pool: &Pool<Y>) -> String {
    let mut text = Vec::new();
    pool.recording().write_trace(&mut text).expect("memory can be written to");
    String::from_utf8(text).expect("JSON is text")
}

/// Pools, and the meaning of ranks to their policy.
struct Ours<Y: Policy<Linux> + 'static> {
    pools: Vec<Pool<Y>>,
    ranks: Ranks,
}

impl<Y: Policy<Linux> + 'static> Runner for Ours<Y> {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        drop(self.pools[0].spawn(work));
    }

    fn spawn_as(&'static self, kind: Kind, work: impl FnOnce() + Send + 'static) {
        let pool = usize::from(self.pools.len() > 1 && kind.stage == LONG_STAGE);
        self.ranks.spawn(&self.pools[pool], kind, work);
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
