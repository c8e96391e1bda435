//! The set of cores that have a copy of a line.

use crate::distance::Distances;

/// A set of cores, counted by cluster.
pub(crate) struct Sharers {
    cores: Vec<u64>,
    by_cluster: Vec<u32>,
    all: u32,
}

impl Sharers {
    pub(crate) fn new(distances: &Distances) -> Self {
        let words = distances.cores.div_ceil(64) as usize;
        let by_cluster = vec![0; distances.clusters as usize];
        Self { cores: vec![0; words], by_cluster, all: 0 }
    }

    pub(crate) fn holds(&self, core: u32) -> bool {
        self.cores[core as usize / 64] & (1 << (core % 64)) != 0
    }

    pub(crate) fn add(&mut self, distances: &Distances, core: u32) {
        if !self.holds(core) {
            self.cores[core as usize / 64] |= 1 << (core % 64);
            self.by_cluster[distances.cluster_of(core) as usize] += 1;
            self.all += 1;
        }
    }

    /// Removes all cores except `core`.
    pub(crate) fn leave(&mut self, distances: &Distances, core: u32) {
        if self.all > 0 {
            self.cores.fill(0);
            self.by_cluster.fill(0);
            self.all = 0;
        }
        self.add(distances, core);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// Number of cores of this cluster that have a copy.
    pub(crate) fn on(&self, cluster: u32) -> u32 {
        self.by_cluster[cluster as usize]
    }

    /// The other clusters that have a copy.
    pub(crate) fn elsewhere(&self, cluster: u32) -> impl Iterator<Item = u32> {
        let counts = self.by_cluster.iter().enumerate();
        let held = counts.filter(move |&(of, &count)| count > 0 && of != cluster as usize);
        held.map(|(of, _)| of as u32)
    }
}
