//! A machine's topology: CPUs nested in cores, clusters, sockets, boards, and their distances.
//!
//! A level groups all CPUs into units, and each unit lies within one of the next level; the last
//! level is one unit, the machine. Two CPUs *meet* at the innermost level at which they share a
//! unit, and that level gives the cost of a line from one to the other. The last level may have
//! several distances, by the number of hops between the units below it.
//!
//! ```text
//!   level 0   cluster   {0 1} {2 3} {4 5} {6 7}     class 0: 0 and 1 meet here
//!   level 1   socket    {0 1 2 3}   {4 5 6 7}       class 1: 0 and 2
//!   level 2   machine   {0 1 2 3 4 5 6 7}           class 2: 0 and 4, one hop; class 3: two …
//! ```
//!
//! The hot path uses tables: the class of two units of the first level, and the costs of each
//! class. The tables are made once and shared by all copies of a machine.
//!
//! | module | contents |
//! |---|---|
//! | [`level`] | levels, and the distances that they define |
//! | [`check`] | checks of levels and hops |
//! | [`nested`] | the same costs in another shape |
//! | [`route`] | the nodes that a line passes on its way |

mod check;
mod level;
mod nested;
mod route;

use std::sync::Arc;

pub use check::BadShape;
use check::check;
pub use level::{Class, Level};
use level::{class_between, classes};

/// The CPUs of a machine and their distances. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology(Arc<Tables>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tables {
    levels: Vec<Level>,
    hops: Vec<Vec<u32>>,
    classes: Vec<Class>,
    /// The unit of the first level of each CPU, and the number of these units.
    leaf_of: Vec<u32>,
    leaves: usize,
    /// The class of each pair of such units.
    class_of: Vec<u8>,
    transfer_ns: Vec<u64>,
    node_of: Vec<u32>,
    /// The first CPU of each node.
    nodes: Vec<u32>,
    /// The last-level cache of each CPU, and the first CPU of each cache.
    cache_of: Vec<u32>,
    caches: Vec<u32>,
    cache_ns: Option<u64>,
    inclusive: bool,
    /// CPUs in the order in which threads fill them.
    filled: Vec<u32>,
    pace_permille: Vec<u32>,
}

/// The largest number of CPUs of a machine.
pub const CPUS: usize = 4096;

impl Topology {
    /// Creates a topology of these levels, innermost first. `hops` is empty, or has the number of
    /// hops between each pair of units of the last level but one.
    ///
    /// # Errors
    ///
    /// Returns the first error in the levels or hops.
    pub fn new(levels: Vec<Level>, hops: Vec<Vec<u32>>) -> Result<Self, BadShape> {
        check(&levels, &hops)?;
        let classes = classes(&levels);
        let cpus = levels[0].units.len();
        let leaf_of = levels[0].units.clone();
        let firsts = firsts(&leaf_of);
        let mut class_of = Vec::with_capacity(firsts.len() * firsts.len());
        for &from in &firsts {
            class_of.extend(firsts.iter().map(|&to| class_between(&levels, &hops, from, to)));
        }
        let node_level = levels.iter().position(|level| !level.memory_ns.is_empty());
        let node_of = levels[node_level.unwrap_or(levels.len() - 1)].units.clone();
        let cache = levels.iter().find(|level| level.cache_ns.is_some());
        // Without a shared cache, each CPU has its own; hardware threads of a core share it.
        let cache_of = match cache {
            Some(level) => level.units.clone(),
            None if levels[0].crowded_permille.is_some() => leaf_of.clone(),
            None => (0..cpus as u32).collect(),
        };
        let cache_ns = cache.and_then(|level| level.cache_ns);
        Ok(Self(Arc::new(Tables {
            transfer_ns: classes.iter().map(|class| class.transfer_ns).collect(),
            leaves: firsts.len(),
            nodes: self::firsts(&node_of),
            caches: self::firsts(&cache_of),
            inclusive: true,
            filled: filled(&levels[0]),
            pace_permille: vec![1_000; cpus],
            levels,
            hops,
            classes,
            leaf_of,
            class_of,
            node_of,
            cache_of,
            cache_ns,
        })))
    }

    /// The same topology, with a last-level cache that includes all lines of its CPUs' caches, or
    /// does not: then a clean line that only other CPUs hold comes from one of them.
    #[must_use]
    pub fn with_inclusive(self, inclusive: bool) -> Self {
        self.changed(|tables| tables.inclusive = inclusive)
    }

    /// The same topology, in which work on CPU `cpu` takes `pace_permille[cpu]` thousandths of its
    /// time.
    ///
    /// # Panics
    ///
    /// If `pace_permille` does not have one number for each CPU.
    #[must_use]
    pub fn with_pace(self, pace_permille: Vec<u32>) -> Self {
        assert_eq!(pace_permille.len(), self.0.leaf_of.len(), "a pace for each CPU");
        self.changed(|tables| tables.pace_permille = pace_permille)
    }

    /// The same topology, in which a line takes `ns` from any CPU to any other.
    #[must_use]
    pub fn with_transfers(self, ns: u64) -> Self {
        self.changed(|tables| {
            tables.transfer_ns.fill(ns);
            tables.classes.iter_mut().for_each(|class| class.transfer_ns = ns);
        })
    }

    /// The same topology, in which an interrupt takes `ns` from any CPU to any other.
    #[must_use]
    pub fn with_interrupts(self, ns: u64) -> Self {
        self.changed(|tables| {
            tables.classes.iter_mut().for_each(|class| class.interrupt_ns = Some(ns));
        })
    }

    fn changed(self, change: impl FnOnce(&mut Tables)) -> Self {
        let mut tables = Arc::try_unwrap(self.0).unwrap_or_else(|shared| (*shared).clone());
        change(&mut tables);
        Self(Arc::new(tables))
    }

    /// The levels, innermost first.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.0.levels
    }

    /// Hops between units of the last level but one; empty if they are not counted.
    #[must_use]
    pub fn hops(&self) -> &[Vec<u32>] {
        &self.0.hops
    }

    /// The classes of distances, nearest level first.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.0.classes
    }

    /// The number of CPUs: hardware threads, if cores have several.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.0.leaf_of.len() as u32
    }

    /// The class of the distance between two CPUs; for a CPU and itself, the nearest class.
    #[must_use]
    pub fn class(&self, from: u32, to: u32) -> usize {
        let tables = &*self.0;
        let (from, to) = (tables.leaf_of[from as usize], tables.leaf_of[to as usize]);
        usize::from(tables.class_of[from as usize * tables.leaves + to as usize])
    }

    /// The CPU of thread number `thread` when threads fill the machine: cores in order, one thread
    /// each, then the second hardware thread of each core, and then starting over.
    #[must_use]
    pub fn place(&self, thread: usize) -> u32 {
        self.0.filled[thread % self.0.filled.len()]
    }

    /// Returns whether some CPUs are further apart than others.
    #[must_use]
    pub fn tiered(&self) -> bool {
        self.0.leaves > 1
    }

    /// The cost of a line from one CPU's cache to that of another, in nanoseconds.
    #[must_use]
    pub fn transfer_ns(&self, from: u32, to: u32) -> u64 {
        self.0.transfer_ns[self.class(from, to)]
    }

    /// The number of NUMA nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.0.nodes.len() as u32
    }

    /// The NUMA node of a CPU.
    #[must_use]
    pub fn node_of(&self, cpu: u32) -> u32 {
        self.0.node_of[cpu as usize]
    }

    /// The cost of a load by `cpu` from the memory of `node`, in nanoseconds.
    #[must_use]
    pub fn memory_ns(&self, cpu: u32, node: u32) -> u64 {
        let tables = &*self.0;
        // CPUs of one node may meet at an inner level without memory.
        let class = if tables.node_of[cpu as usize] == node {
            tables.classes.iter().find(|class| class.memory_ns.is_some())
        } else {
            tables.classes.get(self.class(cpu, tables.nodes[node as usize]))
        };
        class.and_then(|class| class.memory_ns).expect("levels from the node on have memory")
    }

    /// The number of last-level caches; one for each CPU or core if none is shared.
    #[must_use]
    pub fn caches(&self) -> u32 {
        self.0.caches.len() as u32
    }

    /// The last-level cache of a CPU.
    #[must_use]
    pub fn cache_of(&self, cpu: u32) -> u32 {
        self.0.cache_of[cpu as usize]
    }

    /// The cost of a line from one last-level cache to another, in nanoseconds.
    #[must_use]
    pub fn between_caches_ns(&self, from: u32, to: u32) -> u64 {
        self.transfer_ns(self.0.caches[from as usize], self.0.caches[to as usize])
    }

    /// The cost of a load from the last-level cache, in nanoseconds; `None` if none is shared.
    #[must_use]
    pub fn cache_ns(&self) -> Option<u64> {
        self.0.cache_ns
    }

    /// Returns whether the last-level cache is inclusive; see
    /// [`with_inclusive`](Self::with_inclusive). `true` by default.
    #[must_use]
    pub fn inclusive(&self) -> bool {
        self.0.inclusive
    }

    /// The duration of work of `ns` on a CPU, in nanoseconds; `ns` itself unless a pace was set.
    #[must_use]
    pub fn work_ns(&self, cpu: u32, ns: u64) -> u64 {
        match self.0.pace_permille[cpu as usize] {
            1_000 => ns,
            pace => (u128::from(ns) * u128::from(pace) / 1_000).try_into().unwrap_or(u64::MAX),
        }
    }

    /// How much longer work takes while the other hardware thread of the core runs, in thousandths;
    /// `None` for cores with one thread.
    #[must_use]
    pub fn crowded_permille(&self) -> Option<u32> {
        self.0.levels[0].crowded_permille
    }

    /// The other hardware threads of a CPU's core; none if cores have one.
    pub fn siblings(&self, cpu: u32) -> impl Iterator<Item = u32> {
        let units = &self.0.leaf_of;
        let core = self.crowded_permille().map(|_| units[cpu as usize]);
        let others = (0..self.cpus()).filter(move |&other| other != cpu);
        others.filter(move |&other| core == Some(units[other as usize]))
    }
}

/// See [`Topology::place`](antiphon_platform::Topology::place).
fn filled(first: &Level) -> Vec<u32> {
    let mut cpus: Vec<u32> = (0..first.units.len() as u32).collect();
    if first.crowded_permille.is_some() {
        let mut taken = vec![0; first.units.len()];
        let rank = |&unit: &u32| {
            taken[unit as usize] += 1;
            taken[unit as usize]
        };
        let ranks: Vec<u32> = first.units.iter().map(rank).collect();
        cpus.sort_by_key(|&cpu| ranks[cpu as usize]);
    }
    cpus
}

/// The first CPU of each unit.
fn firsts(units: &[u32]) -> Vec<u32> {
    let count = units.iter().max().map_or(0, |&last| last as usize + 1);
    let mut firsts = vec![0; count];
    for (cpu, &unit) in units.iter().enumerate().rev() {
        firsts[unit as usize] = cpu as u32;
    }
    firsts
}
