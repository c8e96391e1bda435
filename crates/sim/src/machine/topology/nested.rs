//! The same costs in another shape.

use super::{Level, Tables, Topology};

impl Topology {
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
}
