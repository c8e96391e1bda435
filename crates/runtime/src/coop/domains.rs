//! Assignment of threads to CPU domains: a balancer for a machine whose CPUs are scheduled one by
//! one.
//!
//! A member shares one CPU, and has as fair a share as the others there. So a member that gets less
//! than members elsewhere is in a domain with more of them. Nothing is estimated: a member counts
//! by its weight.
//!
//! - SPREAD-1: if all members have come by [`join`](Domains::join) and none has left, two domains
//!   differ by no more than the greatest weight.
//! - SPREAD-2 (moves end): each [move](Domains::better) decreases the sum of the squares of all
//!   loads, so there is a last one.
//! - SPREAD-3: when no member wants to move any longer, two domains differ by no more than the
//!   least weight in the one with the greater load.
//!
//! *Turned down:* recent CPU time as the load (a member that is kept from its CPU has used little,
//! and would look light); one scheduler for several CPUs (its least virtual time would be a cache
//! line that all CPUs write at each turn).

use alloc::vec::Vec;

/// The load of each domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    loads: Vec<u64>,
}

impl Domains {
    /// Creates `domains` domains, without members.
    ///
    /// # Panics
    ///
    /// If `domains` is 0.
    #[must_use]
    pub fn new(domains: usize) -> Self {
        Self::of(alloc::vec![0; domains])
    }

    /// Creates domains with the loads `loads`.
    ///
    /// # Panics
    ///
    /// If `loads` is empty.
    #[must_use]
    pub fn of(loads: Vec<u64>) -> Self {
        assert!(!loads.is_empty(), "one domain at least");
        Self { loads }
    }

    /// Returns the sum of the members' weights, for each domain.
    #[must_use]
    pub fn loads(&self) -> &[u64] {
        &self.loads
    }

    /// Adds a thread of weight `weight` to the domain with the least load, the first of several.
    /// Returns that domain.
    #[must_use]
    pub fn join(&mut self, weight: u64) -> usize {
        let domain = self.least();
        self.loads[domain] += weight;
        domain
    }

    /// Removes a member of weight `weight` from a domain.
    pub fn leave(&mut self, domain: usize, weight: u64) {
        let load = &mut self.loads[domain];
        *load = load.saturating_sub(weight);
    }

    /// Checks whether a member of weight `weight` would be better off in another domain, even with
    /// its own weight added there. Returns the domain that it should move to, and counts the member
    /// as moved.
    #[must_use]
    pub fn better(&mut self, domain: usize, weight: u64) -> Option<usize> {
        let to = self.least();
        // SPREAD-2: the load that the member leaves is greater than the load that it joins.
        let gains = self.loads[to].saturating_add(weight) < self.loads[domain];
        gains.then(|| {
            self.leave(domain, weight);
            self.loads[to] += weight;
            to
        })
    }

    fn least(&self) -> usize {
        let least = self.loads.iter().enumerate().min_by_key(|(_, load)| **load);
        least.map_or(0, |(domain, _)| domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of random numbers from a seed.
    fn lots(mut seed: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        }
    }

    fn apart(domains: &Domains) -> u64 {
        let (least, most) = (domains.loads().iter().min(), domains.loads().iter().max());
        most.zip(least).map_or(0, |(most, least)| most - least)
    }

    #[test]
    fn who_joins_keeps_domains_within_the_greatest_weight() {
        for seed in 0..50 {
            let mut lot = lots(seed);
            let mut domains = Domains::new(1 + lot(9) as usize);
            let mut greatest = 0;
            for _ in 0..lot(200) {
                let weight = 1 + lot(100);
                greatest = greatest.max(weight);
                let _ = domains.join(weight);
                assert!(apart(&domains) <= greatest, "SPREAD-1: {domains:?}");
            }
        }
    }

    #[test]
    fn moves_end_where_nobody_would_gain() {
        for seed in 0..50 {
            let mut lot = lots(seed);
            let count = 1 + lot(9) as usize;
            let members: Vec<_> = (0..lot(120)).map(|_| 1 + lot(4)).collect();
            let mut places: Vec<_> = members.iter().map(|_| lot(count as u64) as usize).collect();
            let mut loads = alloc::vec![0; count];
            places.iter().zip(&members).for_each(|(&place, weight)| loads[place] += weight);
            let mut domains = Domains::of(loads);
            let squares = |domains: &Domains| domains.loads().iter().map(|at| at * at).sum::<u64>();
            let mut before = squares(&domains);
            let mut moved = true;
            while moved {
                moved = false;
                for (place, &weight) in places.iter_mut().zip(&members) {
                    if let Some(to) = domains.better(*place, weight) {
                        (*place, moved) = (to, true);
                        assert!(squares(&domains) < before, "SPREAD-2: {domains:?}");
                        before = squares(&domains);
                    }
                }
            }
            let sum: u64 = members.iter().sum();
            assert_eq!(domains.loads().iter().sum::<u64>(), sum, "nobody is lost");
            for (domain, &load) in domains.loads().iter().enumerate() {
                let of = places.iter().zip(&members).filter(|(place, _)| **place == domain);
                let lightest = of.map(|(_, weight)| *weight).min().unwrap_or(0);
                let least = domains.loads().iter().min().copied().unwrap_or(0);
                assert!(load - least <= lightest, "SPREAD-3: {domains:?}");
            }
        }
    }

    #[test]
    fn who_leaves_makes_room() {
        let mut domains = Domains::new(3);
        assert_eq!([2, 2, 2].map(|weight| domains.join(weight)), [0, 1, 2]);
        domains.leave(1, 2);
        assert_eq!((domains.better(0, 2), domains.join(2)), (None, 1));
        domains.leave(2, 2);
        domains.leave(2, 9);
        assert_eq!(domains.loads(), [2, 2, 0]);
        assert_eq!(domains.better(1, 1), Some(2));
    }
}
