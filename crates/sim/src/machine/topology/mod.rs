//! A machine's shape: CPUs nested in cores, clusters, sockets, boards, and how far they are apart.
//!
//! A level groups all CPUs into units, and each unit lies within one of the next level; the last
//! level is one unit, the machine. Two CPUs *meet* at the innermost level of which they share a
//! unit, and that says what a line costs from one to the other. The last level may know several
//! distances, by the number of hops between the units below it.
//!
//! ```text
//!   level 0   cluster   {0 1} {2 3} {4 5} {6 7}     class 0: 0 and 1 meet here
//!   level 1   socket    {0 1 2 3}   {4 5 6 7}       class 1: 0 and 2
//!   level 2   machine   {0 1 2 3 4 5 6 7}           class 2: 0 and 4, one hop; class 3: two …
//! ```
//!
//! All that the hot path asks is in tables: a class by two units of the first level, costs by
//! class. The tables are made once and shared by all copies of a machine.
//!
//! | module | has |
//! |---|---|
//! | [`level`] | what a level is, and the distances that levels make |
//! | [`check`] | whether levels make a machine |
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

/// The CPUs of a machine and what lies between them. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology(Arc<Tables>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tables {
    levels: Vec<Level>,
    hops: Vec<Vec<u32>>,
    classes: Vec<Class>,
    /// The unit of the first level that each CPU is in, and how many there are.
    leaf_of: Vec<u32>,
    leaves: usize,
    /// The class of each pair of such units.
    class_of: Vec<u8>,
    transfer_ns: Vec<u64>,
    node_of: Vec<u32>,
    /// The first CPU of each node.
    nodes: Vec<u32>,
    /// Which last cache each CPU reads through, and the first CPU of each.
    cache_of: Vec<u32>,
    caches: Vec<u32>,
    cache_ns: Option<u64>,
    inclusive: bool,
    /// CPUs in the order in which threads fill them.
    filled: Vec<u32>,
    pace_permille: Vec<u32>,
}

/// CPUs of a machine at most.
pub const CPUS: usize = 4096;

impl Topology {
    /// A machine of these levels, innermost first. `hops` is empty, or tells for each pair of units
    /// of the last level but one how many hops they are apart.
    ///
    /// # Errors
    ///
    /// The first thing that does not fit.
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
        // Where none is shared, each CPU has its own; hardware threads of a core share that.
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

    /// The same, and the last cache holds all that the caches of its CPUs hold, or does not: then a
    /// clean line that only others hold comes from one of them.
    #[must_use]
    pub fn with_inclusive(self, inclusive: bool) -> Self {
        self.changed(|tables| tables.inclusive = inclusive)
    }

    /// The same, and work on CPU `cpu` takes `pace[cpu]` thousandths of its time.
    ///
    /// # Panics
    ///
    /// If that is not one number for each CPU.
    #[must_use]
    pub fn with_pace(self, pace_permille: Vec<u32>) -> Self {
        assert_eq!(pace_permille.len(), self.0.leaf_of.len(), "a pace for each CPU");
        self.changed(|tables| tables.pace_permille = pace_permille)
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

    /// The distances that there are, nearest level first.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.0.classes
    }

    /// How many CPUs it has: hardware threads, if cores have several.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.0.leaf_of.len() as u32
    }

    /// The class of the distance between two CPUs; of a CPU and itself, the nearest.
    #[must_use]
    pub fn class(&self, from: u32, to: u32) -> usize {
        let tables = &*self.0;
        let (from, to) = (tables.leaf_of[from as usize], tables.leaf_of[to as usize]);
        usize::from(tables.class_of[from as usize * tables.leaves + to as usize])
    }

    /// The CPU of the thread of that number, if threads fill the machine: cores in their order, one
    /// thread each, then the second hardware thread of each, and then all over again.
    #[must_use]
    pub fn place(&self, thread: usize) -> u32 {
        self.0.filled[thread % self.0.filled.len()]
    }

    /// Whether some CPUs are further apart than others.
    #[must_use]
    pub fn tiered(&self) -> bool {
        self.0.leaves > 1
    }

    /// Cost of a line from one CPU's cache to another's.
    #[must_use]
    pub fn transfer_ns(&self, from: u32, to: u32) -> u64 {
        self.0.transfer_ns[self.class(from, to)]
    }

    /// NUMA nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.0.nodes.len() as u32
    }

    /// The NUMA node of a CPU.
    #[must_use]
    pub fn node_of(&self, cpu: u32) -> u32 {
        self.0.node_of[cpu as usize]
    }

    /// A load by `cpu` from the memory of `node`, in nanoseconds.
    #[must_use]
    pub fn memory_ns(&self, cpu: u32, node: u32) -> u64 {
        let tables = &*self.0;
        // CPUs of a node may meet further in, where no memory is.
        let class = if tables.node_of[cpu as usize] == node {
            tables.classes.iter().find(|class| class.memory_ns.is_some())
        } else {
            tables.classes.get(self.class(cpu, tables.nodes[node as usize]))
        };
        class.and_then(|class| class.memory_ns).expect("levels from the node on have memory")
    }

    /// How many last caches there are; one for each CPU or core if none is shared.
    #[must_use]
    pub fn caches(&self) -> u32 {
        self.0.caches.len() as u32
    }

    /// The last cache that a CPU reads through.
    #[must_use]
    pub fn cache_of(&self, cpu: u32) -> u32 {
        self.0.cache_of[cpu as usize]
    }

    /// Cost of a line from one last cache to another.
    #[must_use]
    pub fn between_caches_ns(&self, from: u32, to: u32) -> u64 {
        self.transfer_ns(self.0.caches[from as usize], self.0.caches[to as usize])
    }

    /// A load that the last cache answers; `None` if none is shared.
    #[must_use]
    pub fn cache_ns(&self) -> Option<u64> {
        self.0.cache_ns
    }

    /// See [`with_inclusive`](Self::with_inclusive); `true` if nothing was said.
    #[must_use]
    pub fn inclusive(&self) -> bool {
        self.0.inclusive
    }

    /// How long work of `ns` takes on a CPU; 1000 thousandths if nothing was said.
    #[must_use]
    pub fn work_ns(&self, cpu: u32, ns: u64) -> u64 {
        match self.0.pace_permille[cpu as usize] {
            1_000 => ns,
            pace => (u128::from(ns) * u128::from(pace) / 1_000).try_into().unwrap_or(u64::MAX),
        }
    }

    /// How much longer work takes while the other hardware thread of the core runs, in thousandths;
    /// `None` on cores with one.
    #[must_use]
    pub fn crowded_permille(&self) -> Option<u32> {
        self.0.levels[0].crowded_permille
    }

    /// The other hardware threads of a CPU's core, if cores have several.
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
