//! How far cores are apart, looked up and not computed: each access asks.

use crate::Machine;

/// The distances of one machine.
pub(crate) struct Distances {
    /// The cluster of each core: those that share a last-level cache.
    cluster_of: Vec<u32>,
    /// From each cluster to each other.
    between_ns: Vec<u64>,
    /// From the first core of each cluster to the farthest of its others.
    within_ns: Vec<u64>,
    pub(crate) clusters: u32,
    pub(crate) cores: u32,
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
        Self { cluster_of, between_ns, within_ns, clusters, cores }
    }

    pub(crate) fn cluster_of(&self, core: u32) -> u32 {
        self.cluster_of[core as usize]
    }

    /// What a line takes from one cluster to another.
    pub(crate) fn between_ns(&self, from: u32, to: u32) -> u64 {
        self.between_ns[(from * self.clusters + to) as usize]
    }

    /// What a line takes from one core of a cluster to another at the most.
    pub(crate) fn within_ns(&self, cluster: u32) -> u64 {
        self.within_ns[cluster as usize]
    }
}
