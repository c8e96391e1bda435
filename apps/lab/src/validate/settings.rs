//! The settings that are compared: numbers of threads, their CPUs, and their work.

use std::iter::successors;

use antiphon_sim::Topology;

use super::workload::{CASES, Case, EMPTY};

/// A number of threads on certain CPUs.
#[derive(Clone)]
pub struct Setting {
    /// The work of the threads.
    pub case: Case,
    /// CPU of each thread.
    pub places: Vec<usize>,
    /// Whether several threads share a CPU.
    pub crowded: bool,
}

/// Lengths and numbers of runs.
#[derive(Clone, Copy)]
pub struct Extent {
    /// Maximal number of runs of each setting and lock on this machine.
    pub repetitions: usize,
    /// Length of a measured run, in nanoseconds.
    pub native_ns: f64,
    /// Length of a measured run in which threads share CPUs, in nanoseconds.
    pub crowded_ns: f64,
    /// Length of a simulated run, in nanoseconds of simulated time.
    pub simulated_ns: u64,
    /// Length of a simulated run in which threads share CPUs, in nanoseconds.
    pub crowded_simulated_ns: u64,
    /// Maximal number of simulations of each setting and lock.
    pub seeds: u64,
}

/// Warm-up if threads share CPUs, in either world; it does not count, because threads don't share
/// CPUs until all have run.
pub const CROWDED_WARM_UP_NS: u64 = 30_000_000;

/// The extent of a quick run.
pub const QUICK: Extent = Extent {
    repetitions: 1,
    native_ns: 3e7,
    crowded_ns: 1e8,
    simulated_ns: 500_000,
    crowded_simulated_ns: 20_000_000,
    seeds: 1,
};
/// The extent for figures that are published.
pub const FULL: Extent = Extent {
    repetitions: 5,
    native_ns: 6e7,
    crowded_ns: 3e8,
    simulated_ns: 2_000_000,
    crowded_simulated_ns: 100_000_000,
    seeds: 3,
};

/// The CPUs of the first thread, the second thread, and so on.
pub struct Order {
    /// Cores in order, socket by socket; second hardware threads last.
    pub places: Vec<usize>,
    /// Number of CPUs at the beginning that are on one socket.
    pub socket: usize,
}

impl Order {
    /// Orders those CPUs of `usable` that the machine has.
    pub fn of(topology: &Topology, usable: &[usize]) -> Self {
        let all = (0..topology.cpus() as usize).map(|thread| topology.place(thread) as usize);
        let places: Vec<_> = all.filter(|place| usable.contains(place)).collect();
        let node = |place: usize| topology.node_of(place as u32);
        let first = places.first().copied().map(node);
        let socket = places.iter().take_while(|&&place| Some(node(place)) == first).count();
        Self { places, socket }
    }

    /// Returns thread counts: 1, 2, 4, … a socket, twice, four times, … a socket, all CPUs, and two
    /// and four times as many threads as CPUs.
    fn counts(&self) -> Vec<usize> {
        let cpus = self.places.len();
        let doubled = |from: usize, to: usize| {
            successors(Some(from), |count| Some(2 * count)).take_while(move |&count| count < to)
        };
        let up_to_all = doubled(1, self.socket).chain(doubled(self.socket.max(1), cpus));
        up_to_all.chain([cpus, 2 * cpus, 4 * cpus]).collect()
    }

    /// Returns all settings, the fewest threads first. Empty critical sections are measured with
    /// one thread and two only: with more, caches alone decide which thread is next.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for count in self.counts() {
            let places: Vec<_> = self.places.iter().copied().cycle().take(count).collect();
            let crowded = count > self.places.len();
            for case in CASES.into_iter().filter(|&case| count <= 2 || case != EMPTY) {
                settings.push(Setting { case, places: places.clone(), crowded });
            }
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_sim::Machine;

    fn counts(places: usize, socket: usize) -> Vec<usize> {
        Order { places: (0..places).collect(), socket }.counts()
    }

    #[test]
    fn thread_counts_double_up_to_a_socket_then_by_sockets_and_go_beyond_the_cpus() {
        assert_eq!(counts(192, 24), [1, 2, 4, 8, 16, 24, 48, 96, 192, 384, 768]);
        assert_eq!(counts(2, 2), [1, 2, 4, 8]);
        assert_eq!(counts(1, 1), [1, 2, 4]);
        assert_eq!(counts(12, 12), [1, 2, 4, 8, 12, 24, 48]);
        assert_eq!(counts(3, 1), [1, 2, 3, 6, 12]);
    }

    #[test]
    fn a_socket_is_full_before_the_next_is_entered() {
        let topology = Machine::eight_sockets().topology;
        let usable: Vec<_> = (0..topology.cpus() as usize).collect();
        let order = Order::of(&topology, &usable);
        assert_eq!((order.places.len(), order.socket), (192, 24));
        let odd: Vec<_> = usable.into_iter().filter(|place| place % 2 == 1).collect();
        let order = Order::of(&topology, &odd);
        assert_eq!((order.places.len(), order.socket), (96, 12));
        assert!(order.places.iter().all(|place| place % 2 == 1), "only what may be used");
        assert!(Order::of(&topology, &[4095]).places.is_empty());
    }

    #[test]
    fn threads_share_cpus_only_where_they_outnumber_them() {
        let order = Order { places: vec![0, 1, 2], socket: 3 };
        for Setting { places, crowded, case } in order.settings() {
            let mut each = places.clone();
            each.sort_unstable();
            each.dedup();
            assert_eq!(crowded, each.len() < places.len(), "{places:?}");
            assert!(case != EMPTY || places.len() <= 2);
        }
    }
}
