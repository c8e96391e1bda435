//! Last-level caches: which CPUs share one, and so their queues.

use antiphon_linux::{Whereabouts, whereabouts};

use crate::shared::{MAX_CPUS, MAX_LLCS};

/// The last-level cache of each CPU, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Llcs {
    /// By CPU; `None`: it is not online. Those beyond the end have 0.
    pub of_cpus: Vec<Option<u16>>,
    /// How many there are: 1 at least.
    pub count: u32,
}

impl Llcs {
    /// Returns those of this machine, of the CPUs that are online at present.
    #[must_use]
    pub fn of_this_machine() -> Self {
        // SAFETY: returns a number.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let cpus = u32::try_from(cpus).unwrap_or(1).min(MAX_CPUS);
        Self::of(&(0..cpus).map(whereabouts).collect::<Vec<_>>())
    }

    /// Returns one for all CPUs.
    #[must_use]
    pub fn one() -> Self {
        Self { of_cpus: Vec::new(), count: 1 }
    }

    /// Returns whether the CPUs that are online `now` have their numbers here, too.
    #[must_use]
    pub fn covers(&self, now: &Self) -> bool {
        let of = |cpu: usize| self.of_cpus.get(cpu).copied().flatten();
        let is_same = |(cpu, number): (usize, &Option<u16>)| number.is_none() || of(cpu) == *number;
        self.count == now.count && now.of_cpus.iter().enumerate().all(is_same)
    }

    /// Where each core has a cache of its own, as in a virtual machine that shows no other one,
    /// the CPUs of a node share one.
    fn of(places: &[Option<Whereabouts>]) -> Self {
        let distinct = |name: fn(&Whereabouts) -> u32| {
            let mut all: Vec<_> = places.iter().flatten().map(name).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let caches = distinct(|place| place.cache);
        let is_shared = caches.len() < distinct(|place| place.core).len();
        let name: fn(&Whereabouts) -> u32 =
            if is_shared { |place| place.cache } else { |place| place.node };
        let names = distinct(name);
        let number = |place: &Whereabouts| {
            let at = names.binary_search(&name(place)).unwrap_or(0);
            at as u16 % MAX_LLCS as u16
        };
        let of_cpus = places.iter().map(|place| place.as_ref().map(number)).collect();
        Self { of_cpus, count: (names.len() as u32).clamp(1, MAX_LLCS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(core: u32, cache: u32, node: u32) -> Option<Whereabouts> {
        Some(Whereabouts { core, cache, node })
    }

    #[test]
    fn cpus_that_share_a_cache_have_one_number() {
        let all = [place(0, 0, 0), place(1, 0, 0), None, place(3, 3, 0), place(4, 3, 0)];
        let llcs = Llcs::of(&all);
        let of_cpus = vec![Some(0), Some(0), None, Some(1), Some(1)];
        assert_eq!(llcs, Llcs { of_cpus, count: 2 });
        // The first one of a cache may go; one that was not there is not known, nor a third cache.
        let without = Llcs::of(&[None, place(1, 1, 0), None, place(3, 3, 0), place(4, 3, 0)]);
        assert!(llcs.covers(&without) && !without.covers(&llcs));
        let third = [all.as_slice(), &[place(5, 5, 0)]].concat();
        assert!(!llcs.covers(&Llcs::of(&third)));
    }

    #[test]
    fn cores_without_a_common_cache_have_that_of_their_node() {
        let all = [place(0, 0, 0), place(0, 0, 0), place(2, 2, 1), place(3, 3, 1)];
        assert_eq!(Llcs::of(&all), Llcs { of_cpus: [0, 0, 1, 1].map(Some).to_vec(), count: 2 });
        assert_eq!(Llcs::of(&[place(0, 0, 0)]).count, 1);
        assert_eq!(Llcs::of(&[]), Llcs::one());
    }

    #[test]
    fn those_beyond_the_limit_share_numbers() {
        let pairs = (0..2 * 100).map(|cpu| place(cpu, cpu / 2 * 2, 0)).collect::<Vec<_>>();
        let all = Llcs::of(&pairs);
        assert_eq!(all.count, MAX_LLCS);
        assert_eq!((all.of_cpus[126], all.of_cpus[128]), (Some(63), Some(0)));
    }
}
