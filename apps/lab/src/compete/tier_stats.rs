//! What a tier has done for a program, or against it.

use antiphon_coop::{Booster, Demotion, MemberStatus, Split};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Counts of all tiers; a count that a tier does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierStats {
    /// T1, T3: number of demotions, for each of [`Demotion::ALL`].
    pub demotions: Option<[u64; Demotion::ALL.len()]>,
    /// T1: number of times that it was raised.
    pub raises: Option<u64>,
    /// T1: CPU time while it was raised, in nanoseconds.
    pub borrowed_ns: Option<u64>,
    /// T1: the part of `borrowed_ns` that it has not given back yet, in nanoseconds.
    pub owed_ns: Option<u64>,
    /// T1: CPU time of the helper, in nanoseconds.
    pub helper_ns: Option<u64>,
    /// T1b, T2: number of callbacks that have panicked.
    pub panics: Option<u64>,
}

impl TierStats {
    /// The counts of all loops that this booster raises.
    pub fn of_booster(booster: &Booster) -> Self {
        let stats = booster.stats();
        Self {
            demotions: Some(stats.counts.demotions),
            raises: Some(stats.counts.raises),
            borrowed_ns: Some(stats.counts.borrowed_ns),
            owed_ns: Some(stats.counts.owed_ns),
            helper_ns: Some(stats.helper_ns),
            panics: None,
        }
    }

    /// The counts of a member of a domain.
    pub fn of_member(status: &MemberStatus) -> Self {
        Self { demotions: Some(status.demotions.map(u64::from)), ..Self::default() }
    }

    /// The counts of a thread for timers.
    pub fn of_split(timers: &Split) -> Self {
        Self { panics: Some(u64::from(timers.panics())), ..Self::default() }
    }

    /// Sums the counts of several programs or runs.
    pub fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        fn add<T>(to: &mut Option<T>, more: Option<T>, add: impl Fn(T, T) -> T) {
            *to = to.take().into_iter().chain(more).reduce(add);
        }
        all.cloned().fold(Self::default(), |mut sum, one| {
            add(&mut sum.demotions, one.demotions, |all, more| {
                std::array::from_fn(|why| all[why] + more[why])
            });
            add(&mut sum.raises, one.raises, |all, more| all + more);
            add(&mut sum.borrowed_ns, one.borrowed_ns, |all, more| all + more);
            add(&mut sum.owed_ns, one.owed_ns, |all, more| all + more);
            add(&mut sum.helper_ns, one.helper_ns, |all, more| all + more);
            add(&mut sum.panics, one.panics, |all, more| all + more);
            sum
        })
    }

    /// Returns the reasons and numbers of demotions in words; `None` if the tier does not demote.
    pub fn demoted(&self) -> Option<String> {
        let named = Demotion::ALL.iter().zip(self.demotions?).filter(|(_, count)| *count > 0);
        let words: Vec<_> = named.map(|(why, count)| format!("{count} {}", why.name())).collect();
        Some(if words.is_empty() { "never".to_owned() } else { words.join(", ") })
    }

    /// Returns the object for scripts.
    pub fn json(&self) -> Value {
        let demotions = self.demotions.map(|counts| {
            let named = Demotion::ALL.iter().zip(counts);
            named.map(|(why, count)| (why.name().to_owned(), json!(count))).collect::<Map<_, _>>()
        });
        json!({
            "demotions": demotions, "raises": self.raises, "borrowed_ns": self.borrowed_ns,
            "owed_ns": self.owed_ns, "helper_ns": self.helper_ns, "panics": self.panics,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_tier_has_done_stays_unknown_in_a_sum() {
        let some =
            TierStats { demotions: Some([2, 0, 1]), raises: Some(5), ..TierStats::default() };
        let sum = TierStats::sum([&some, &TierStats::default(), &some].into_iter());
        assert_eq!((sum.demotions, sum.raises, sum.panics), (Some([4, 0, 2]), Some(10), None));
        assert_eq!(sum.demoted().as_deref(), Some("4 overrun, 2 share"));
        assert_eq!(TierStats::sum([].into_iter()), TierStats::default());
    }

    #[test]
    fn who_was_not_demoted_differs_from_who_can_not_be() {
        let never = TierStats { demotions: Some([0; 3]), ..TierStats::default() };
        assert_eq!(never.demoted().as_deref(), Some("never"));
        assert_eq!(TierStats::default().demoted(), None);
        assert_eq!(TierStats::default().json()["demotions"], Value::Null);
    }
}
