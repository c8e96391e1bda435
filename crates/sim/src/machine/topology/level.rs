//! Levels of nesting, and the distances that they make.

/// A level of nesting, and its costs. See [`Topology::new`](super::Topology::new).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The name of its units: `core`, `cluster`, `socket`.
    pub name: String,
    /// For each CPU the unit that it is in, counted from 0.
    pub units: Vec<u32>,
    /// A line from the cache of another CPU that is met at this level, or its invalidation there,
    /// in nanoseconds; whatever the access does with the line is included. One number; on the last
    /// level, one for each number of hops.
    pub transfer_ns: Vec<u64>,
    /// A load from the memory of a node that is met at this level, as `transfer_ns`. The innermost
    /// level with one is that of NUMA nodes, and those further out have one too.
    pub memory_ns: Vec<u64>,
    /// How long an interrupt is on its way to a CPU that is met at this level, as `transfer_ns`;
    /// empty: as long as the machine says of all.
    pub interrupt_ns: Vec<u64>,
    /// A load that the cache answers which the unit's CPUs share. On one level at most: the last
    /// cache.
    pub cache_ns: Option<u64>,
    /// Work takes that much longer, in thousandths, on a CPU while another of the unit runs: two
    /// hardware threads on one core. On the first level only.
    pub crowded_permille: Option<u32>,
}

/// How far two CPUs are apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The level at which they meet.
    pub level: usize,
    /// Hops between their units of the level below; 1 where hops are not counted.
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
