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

use std::sync::Arc;

/// What a level of nesting is and costs. See [`Topology::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// What its units are called: `core`, `cluster`, `socket`.
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

/// What is wrong with a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadShape {
    /// The level that it is about.
    pub level: usize,
    /// In words.
    pub what: String,
}

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
/// Levels and hops at most: what a byte can tell apart, with room to spare.
const CLASSES: usize = 64;

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

    /// See [`Machine::nested`](crate::Machine::nested).
    pub(crate) fn nested(&self, sizes: &[(&str, u32)]) -> Self {
        let Tables { levels, hops, inclusive, cache_ns, .. } = &*self.0;
        let node = levels.iter().find(|level| !level.memory_ns.is_empty()).expect("checked");
        let machine = levels.last().expect("checked");
        let cpus = sizes.iter().map(|&(_, count)| count).product();
        let sockets = sizes.iter().position(|&(name, _)| name == "socket").expect("a socket");
        let last = sizes.len() - 1;
        let hops = if sizes[last].1 as usize == hops.len() && sockets + 1 == last {
            hops.clone()
        } else {
            Vec::new()
        };
        let mut within = 1;
        let level = |(number, &(name, count)): (usize, &(&str, u32))| {
            within *= count;
            let of = if number <= sockets { node } else { machine };
            let costs = if number < last || hops.is_empty() { 1 } else { of.transfer_ns.len() };
            Level {
                name: name.to_owned(),
                units: (0..cpus).map(|cpu| cpu / within).collect(),
                transfer_ns: of.transfer_ns[..costs].to_vec(),
                memory_ns: if number < sockets { vec![] } else { of.memory_ns[..costs].to_vec() },
                interrupt_ns: of.interrupt_ns.iter().copied().take(costs).collect(),
                cache_ns: cache_ns.filter(|_| number == sockets),
                crowded_permille: None,
            }
        };
        let levels = sizes.iter().enumerate().map(level).collect();
        let nested = Self::new(levels, hops).unwrap_or_else(|bad| panic!("{}", bad.what));
        nested.with_inclusive(*inclusive)
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

    /// What a line costs from one CPU's cache to another's.
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

    /// The nodes that a line passes from one to another, both ends with them. It goes by way of a
    /// third if the hops to that and on from there are as many as it has to go.
    pub(crate) fn route(&self, from: u32, to: u32) -> Vec<u32> {
        let nodes = 0..self.nodes();
        let hops = |from: u32, to: u32| self.hops_between_nodes(from, to);
        let between = |&stop: &u32| {
            let (there, on) = (hops(from, stop), hops(stop, to));
            there > 0 && on > 0 && there + on == hops(from, to)
        };
        let stops: Vec<u32> = nodes.filter(between).collect();
        if stops.is_empty() {
            return vec![from, to];
        }
        // All that are as good are used, by different pairs.
        let stop = stops[(from + to) as usize % stops.len()];
        let mut route = self.route(from, stop);
        route.extend(&self.route(stop, to)[1..]);
        route
    }

    /// 0 from a node to itself, and if hops are not counted, or both nodes are in one unit of which
    /// they are counted, 1 to another.
    fn hops_between_nodes(&self, from: u32, to: u32) -> u32 {
        let Tables { levels, hops, nodes, .. } = &*self.0;
        let unit = |node: u32| {
            let below = levels.len().checked_sub(2)?;
            Some(levels[below].units[nodes[node as usize] as usize] as usize)
        };
        match unit(from).zip(unit(to)) {
            _ if from == to => 0,
            Some((one, other)) if one != other && !hops.is_empty() => hops[one][other],
            _ => 1,
        }
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

    /// What a line costs from one last cache to another.
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

fn classes(levels: &[Level]) -> Vec<Class> {
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

fn class_between(levels: &[Level], hops: &[Vec<u32>], from: u32, to: u32) -> u8 {
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

/// See [`Topology::place`].
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

fn check(levels: &[Level], hops: &[Vec<u32>]) -> Result<(), BadShape> {
    let Some(last) = levels.len().checked_sub(1) else {
        return Err(BadShape { level: 0, what: "a machine has a level at least".to_owned() });
    };
    for (number, level) in levels.iter().enumerate() {
        let bad = |what: String| Err(BadShape { level: number, what });
        if let Err(what) = check_units(level, levels[0].units.len()) {
            return bad(what);
        }
        if number > 0 && !nests(&levels[number - 1].units, &level.units) {
            let (below, name) = (&levels[number - 1].name, &level.name);
            return bad(format!("a {below} lies across two units of level {name}"));
        }
    }
    check_hops(levels, hops).map_err(|what| BadShape { level: last, what })?;
    for (number, level) in levels.iter().enumerate() {
        let checked =
            check_costs(level, number == last, hops).and_then(|()| check_roles(number, levels));
        checked.map_err(|what| BadShape { level: number, what })?;
    }
    if levels.iter().map(|level| level.transfer_ns.len()).sum::<usize>() > CLASSES {
        return Err(BadShape { level: last, what: format!("more than {CLASSES} distances") });
    }
    Ok(())
}

/// Of which level there may be one, and where.
fn check_roles(number: usize, levels: &[Level]) -> Result<(), String> {
    let (level, inner) = (&levels[number], &levels[..number]);
    let name = &level.name;
    let inside = inner.iter().any(|level| !level.memory_ns.is_empty());
    if level.memory_ns.is_empty() && (inside || number + 1 == levels.len()) {
        let why = if inside { "the level inside it has" } else { "no other level has" };
        return Err(format!("level {name} has no memory, and {why}"));
    }
    if level.cache_ns.is_some() && inner.iter().any(|level| level.cache_ns.is_some()) {
        return Err("a second level with a cache: the model knows one, the last".to_owned());
    }
    if level.crowded_permille.is_some() && number > 0 {
        return Err("crowded is for hardware threads of a core, the first level".to_owned());
    }
    Ok(())
}

fn check_units(level: &Level, cpus: usize) -> Result<(), String> {
    let Level { name, units, .. } = level;
    if units.is_empty() || units.len() > CPUS {
        return Err(format!("a machine of {} CPUs: 1 to {CPUS} are possible", units.len()));
    }
    if units.len() != cpus {
        return Err(format!("level {name} has {} CPUs, the first has {cpus}", units.len()));
    }
    let mut there = vec![false; units.len()];
    for &unit in units {
        let Some(seen) = there.get_mut(unit as usize) else {
            return Err(format!("level {name} has no unit {unit}: they are counted from 0"));
        };
        *seen = true;
    }
    let count = there.iter().rposition(|&seen| seen).map_or(0, |last| last + 1);
    match there[..count].iter().position(|&seen| !seen) {
        Some(empty) => Err(format!("unit {empty} of level {name} has no CPU")),
        None => Ok(()),
    }
}

fn nests(inner: &[u32], outer: &[u32]) -> bool {
    let firsts = firsts(inner);
    inner.iter().zip(outer).all(|(&unit, &of)| outer[firsts[unit as usize] as usize] == of)
}

fn check_costs(level: &Level, last: bool, hops: &[Vec<u32>]) -> Result<(), String> {
    let Level { name, transfer_ns, memory_ns, interrupt_ns, .. } = level;
    let most = hops.iter().flatten().copied().max().unwrap_or(1).max(1) as usize;
    let wanted = if last { most } else { 1 };
    if last && level.units.iter().any(|&unit| unit > 0) {
        return Err(format!("the last level, {name}, is one unit: the machine"));
    }
    let all = [("transfer", transfer_ns), ("memory", memory_ns), ("interrupt", interrupt_ns)];
    for (what, costs) in all {
        let absent = what != "transfer" && costs.is_empty();
        if costs.len() != wanted && !absent {
            let found = costs.len();
            return Err(format!("{what} of level {name} has {found} costs, and needs {wanted}"));
        }
        if costs.contains(&0) {
            return Err(format!("{what} of level {name} takes no time"));
        }
    }
    Ok(())
}

fn check_hops(levels: &[Level], hops: &[Vec<u32>]) -> Result<(), String> {
    if hops.is_empty() {
        return Ok(());
    }
    let Some(below) = levels.len().checked_sub(2).map(|below| &levels[below]) else {
        return Err("hops are between units of the level below, and there is none".to_owned());
    };
    let count = firsts(&below.units).len();
    let name = &below.name;
    if hops.len() != count || hops.iter().any(|row| row.len() != count) {
        return Err(format!("hops want {count} rows of {count} numbers, as there are {name}s"));
    }
    for (from, row) in hops.iter().enumerate() {
        for (to, &count) in row.iter().enumerate() {
            if (count == 0) != (from == to) {
                return Err(format!("hops from {name} {from} to {name} {to} can't be {count}"));
            }
            if count != hops[to][from] {
                let back = hops[to][from];
                return Err(format!(
                    "hops from {name} {from} to {name} {to} are {count}, and back {back}"
                ));
            }
        }
    }
    Ok(())
}
