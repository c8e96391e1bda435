//! Our pools, each with a policy.

use antiphon::pool::{Pool, policy::Policy};
use antiphon_linux::Linux;

use super::{Setup, Visitor, leak};
use crate::bench::pools::figures::Counted;
use crate::bench::pools::policies::{self, Ranks, Take};
use crate::bench::pools::runner::{Kind, Runner};

/// Visits the pool of a policy.
pub fn with<V: Visitor>(name: &str, setup: &Setup, visitor: V) -> Result<V::Output, String> {
    policies::with(name, setup.workers, setup.capacity, OnPool { setup, visitor })?
}

struct OnPool<'a, V> {
    setup: &'a Setup,
    visitor: V,
}

impl<V: Visitor> Take for OnPool<'_, V> {
    type Output = Result<V::Output, String>;

    fn take<Y: Policy<Linux> + 'static>(
        self,
        make: impl Fn() -> Y,
        ranks: Ranks,
    ) -> Result<V::Output, String> {
        let pool = Pool::with_policy(self.setup.workers, make()).map_err(|it| it.to_string())?;
        let ours = leak(Ours { pool, ranks });
        let counted = || {
            let trace = self.setup.trace.then(|| timeline(&ours.pool));
            Some(Counted::of(&[ours.pool.stats()], trace))
        };
        Ok(self.visitor.visit(ours, &counted))
    }
}

fn timeline<Y: Policy<Linux> + 'static>(pool: &Pool<Y>) -> String {
    let mut text = Vec::new();
    pool.recording().write_trace(&mut text).expect("memory can be written to");
    String::from_utf8(text).expect("JSON is text")
}

/// A pool, and the meaning of ranks to its policy.
struct Ours<Y: Policy<Linux> + 'static> {
    pool: Pool<Y>,
    ranks: Ranks,
}

impl<Y: Policy<Linux> + 'static> Runner for Ours<Y> {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        drop(self.pool.spawn(work));
    }

    fn spawn_as(&'static self, kind: Kind, work: impl FnOnce() + Send + 'static) {
        self.ranks.spawn(&self.pool, kind, work);
    }
}
