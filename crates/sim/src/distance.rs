//! The distances of cores, in tables, because each access needs them.

use crate::Machine;

/// The distances of one machine.
pub(crate) struct Distances {
    /// The cluster of each core: those that share a last-level cache.
    cluster_of: Vec<u32>,
    /// The cost of a line from each cluster to each other one.
    between_ns: Vec<u64>,
    /// The cost of a line from the first core of each cluster to the farthest of its others.
    within_ns: Vec<u64>,
    node_of_cluster: Vec<u32>,
    /// The cost of a load on each node from the memory of each node.
    memory_ns: Vec<u64>,
    pub(crate) clusters: u32,
    pub(crate) cores: u32,
    nodes: u32,
}

impl Distances {
    pub(crate) fn new(machine: &Machine) -> Self {
        let Machine { topology, .. } = machine;
        let (cores, clusters) = (topology.cpus(), topology.caches());
        let cluster_of: Vec<u32> = (0..cores).map(|core| topology.cache_of(core)).collect();
        let pairs = (0..clusters).flat_map(|from| (0..clusters).map(move |to| (from, to)));
        let between_ns = pairs.map(|(from, to)| topology.between_caches_ns(from, to)).collect();
        let within = |cluster| {
            let mut cores = (0..cores).filter(|&core| topology.cache_of(core) == cluster);
            let first = cores.next().expect("a cache has a core");
            let farthest = cores.map(|core| topology.transfer_ns(first, core)).max();
            farthest.unwrap_or(machine.hit_ns)
        };
        let within_ns = (0..clusters).map(within).collect();
        let (nodes, mut node_of_cluster) = (topology.nodes(), vec![0; clusters as usize]);
        let mut memory_ns = vec![0; (nodes * nodes) as usize];
        for core in 0..cores {
            let on = topology.node_of(core);
            node_of_cluster[topology.cache_of(core) as usize] = on;
            for of in 0..nodes {
                memory_ns[(on * nodes + of) as usize] = topology.memory_ns(core, of);
            }
        }
        Self {
            cluster_of,
            between_ns,
            within_ns,
            node_of_cluster,
            memory_ns,
            clusters,
            cores,
            nodes,
        }
    }

    pub(crate) fn cluster_of(&self, core: u32) -> u32 {
        self.cluster_of[core as usize]
    }

    pub(crate) fn node_of_cluster(&self, cluster: u32) -> u32 {
        self.node_of_cluster[cluster as usize]
    }

    /// The cost of a load on one node from the memory of another or the same node.
    pub(crate) fn memory_ns(&self, on: u32, of: u32) -> u64 {
        self.memory_ns[(on * self.nodes + of) as usize]
    }

    /// The extra time of a line from one node to another if it is requested at its home. The time
    /// of a round trip is the difference between far and near memory.
    pub(crate) fn detour_ns(&self, from: u32, to: u32, home: u32) -> u64 {
        let there_and_back_ns =
            |one, other| self.memory_ns(one, other).saturating_sub(self.memory_ns(one, one));
        let by_home_ns = there_and_back_ns(to, home) + there_and_back_ns(home, from);
        by_home_ns.saturating_sub(there_and_back_ns(to, from)) / 2
    }

    /// The cost of a line from one cluster to another.
    pub(crate) fn between_ns(&self, from: u32, to: u32) -> u64 {
        self.between_ns[(from * self.clusters + to) as usize]
    }

    /// The largest cost of a line from one core of a cluster to another.
    pub(crate) fn within_ns(&self, cluster: u32) -> u64 {
        self.within_ns[cluster as usize]
    }
}
