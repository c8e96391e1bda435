//! The cost of transferring a line from its present place.

use crate::Machine;
use crate::distance::Distances;
use crate::line::{Kind, Source};
use crate::links::Links;
use crate::random::Random;

/// The inputs of a cost, besides the line.
pub(crate) struct Costs<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) distances: &'a Distances,
    pub(crate) links: &'a mut Links,
    pub(crate) random: &'a mut Random,
    pub(crate) now_ns: u64,
}

/// The cost of an access that hits.
pub(crate) const fn hit_ns(machine: &Machine, kind: Kind) -> u64 {
    match kind {
        Kind::ReadModifyWrite => machine.rmw_ns,
        Kind::Load | Kind::Store => machine.hit_ns,
    }
}

impl Costs<'_> {
    /// The cost of a read of a line that the cluster's cache has, or otherwise another of its
    /// cores.
    pub(crate) fn near_ns(&self, cluster: u32) -> u64 {
        match self.machine.topology.cache_ns() {
            Some(cache_ns) if self.machine.topology.inclusive() => cache_ns,
            _ => self.distances.within_ns(cluster),
        }
    }

    /// The time at which a line leaves one core for another, the duration, and the kind of the
    /// transfer.
    pub(crate) fn between_cores(
        &mut self,
        from: u32,
        to: u32,
        home: Option<u32>,
    ) -> (u64, u64, Source) {
        let (one, other) = (self.distances.cluster_of(from), self.distances.cluster_of(to));
        if one == other {
            let cost_ns = self.machine.transfer_ns(from, to);
            return (self.now_ns, cost_ns, Source::Local);
        }
        self.between(one, other, home, self.now_ns)
    }

    pub(crate) fn between(
        &mut self,
        from: u32,
        to: u32,
        home: Option<u32>,
        begin_ns: u64,
    ) -> (u64, u64, Source) {
        let cost_ns = self.way_ns(from, to, home);
        let [from, to] = [from, to].map(|cluster| self.distances.node_of_cluster(cluster));
        match self.links.pass(from, to, begin_ns, cost_ns) {
            Some(begin_ns) => (begin_ns, cost_ns, Source::Remote),
            None => (begin_ns, cost_ns, Source::Local),
        }
    }

    /// The cost of a line from one cluster to another, through its home if it has one.
    pub(crate) fn way_ns(&self, from: u32, to: u32, home: Option<u32>) -> u64 {
        let detour_ns = home.map_or(0, |home| {
            let [from, to] = [from, to].map(|cluster| self.distances.node_of_cluster(cluster));
            self.distances.detour_ns(from, to, home)
        });
        self.distances.between_ns(from, to) + detour_ns
    }

    /// The time at which a line leaves memory for a core, and the duration.
    pub(crate) fn memory_way(&mut self, core: u32, home: Option<u32>, begin_ns: u64) -> (u64, u64) {
        let node = self.machine.socket_of(core);
        let home = home.unwrap_or(node);
        let cost_ns = self.distances.memory_ns(node, home);
        let begin_ns = self.links.pass(home, node, begin_ns, cost_ns).unwrap_or(begin_ns);
        (begin_ns, cost_ns)
    }
}
