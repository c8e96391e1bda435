//! Levels of nesting, and the distances that they define.

/// A level of nesting, and its costs. See [`Topology::new`](super::Topology::new).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The name of its units: `core`, `cluster`, `socket`.
    pub name: String,
    /// For each CPU its unit, counted from 0.
    pub units: Vec<u32>,
    /// The cost of a line from the cache of another CPU that is met at this level, or of its
    /// invalidation there, in nanoseconds, including the access itself. One number; on the last
    /// level, one for each number of hops.
    pub transfer_ns: Vec<u64>,
    /// The cost of a load from the memory of a node that is met at this level, in the form of
    /// `transfer_ns`. The innermost level with such a cost is that of NUMA nodes, and all outer
    /// levels have one.
    pub memory_ns: Vec<u64>,
    /// The delivery time of an interrupt to a CPU that is met at this level, in the form of
    /// `transfer_ns`; if empty, the machine's general time.
    pub interrupt_ns: Vec<u64>,
    /// The cost of a load from the cache that the unit's CPUs share. On at most one level: the
    /// last-level cache.
    pub cache_ns: Option<u64>,
    /// How much longer work takes on a CPU while another CPU of the unit runs, in thousandths, as
    /// for two hardware threads of a core. On the first level only.
    pub crowded_permille: Option<u32>,
}

/// A class of distances between two CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The level at which they meet.
    pub level: usize,
    /// Hops between their units of the next inner level; 1 where hops are not counted.
    pub hops: u32,
    /// [`Level::transfer_ns`].
    pub transfer_ns: u64,
    /// [`Level::memory_ns`].
    pub memory_ns: Option<u64>,
    /// [`Level::interrupt_ns`].
    pub interrupt_ns: Option<u64>,
}

pub(super) fn classes(levels: &[Level]) -> Vec<Class> {
    let of = |(level, described): (usize, &Level)| {
        let (memory_ns, interrupt_ns) =
            (described.memory_ns.clone(), described.interrupt_ns.clone());
        let costs = described.transfer_ns.clone().into_iter().enumerate();
        costs.map(move |(hop, transfer_ns)| Class {
            level,
            hops: hop as u32 + 1,
            transfer_ns,
            memory_ns: memory_ns.get(hop).copied(),
            interrupt_ns: interrupt_ns.get(hop).copied(),
        })
    };
    levels.iter().enumerate().flat_map(of).collect()
}

pub(super) fn class_between(levels: &[Level], hops: &[Vec<u32>], from: u32, to: u32) -> u8 {
    let unit = |level: usize, cpu: u32| levels[level].units[cpu as usize];
    let meet = (0..levels.len()).find(|&level| unit(level, from) == unit(level, to));
    let meet = meet.expect("all CPUs are on one machine");
    let before: usize = levels[..meet].iter().map(|level| level.transfer_ns.len()).sum();
    let further = match meet.checked_sub(1) {
        Some(below) if meet + 1 == levels.len() && !hops.is_empty() => {
            hops[unit(below, from) as usize][unit(below, to) as usize] - 1
        }
        _ => 0,
    };
    (before + further as usize) as u8
}
