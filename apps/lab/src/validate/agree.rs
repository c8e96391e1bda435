//! The rule by which measurement and prediction agree or differ.
//!
//! Only ratios are compared: a lock's work divided by that of the futex mutex, with as many threads
//! in the same case, in either world. The measured ratio is that of two runs of one repetition.
//!
//! | they | if |
//! |---|---|
//! | differ in order | the lock is ahead of the futex mutex in one world and behind in the other |
//! | differ in ratio | otherwise, if one ratio is more than 1.5 times the other |
//! | are undecided | the measured ratios of repetitions are more than a factor of 1.5 apart |
//! | agree | in all other cases |
//!
//! A lock is ahead if its ratio is above 1.15, and behind if it is below 1 / 1.15; in between it is
//! level. Two locks are in the same order in both worlds if the same one is ahead of the other;
//! pairs that are level in either world are left out.

use serde_json::{Value, json};

use antiphon_report::stats::median;

/// The lock that others are compared with: in both worlds it represents a mutex of the C library.
pub const REFERENCE: &str = "futex";
/// Ratios that are further apart than this factor differ.
pub const APART: f64 = 1.5;
/// Two locks whose work is within this factor are level.
pub const LEVEL: f64 = 1.15;

/// The rule, for people.
pub const RULE: &str = "\
The rule: a lock's work is divided by that of the futex mutex, with as many threads in the same
case; absolute times are not compared. The two worlds differ in order if the lock is ahead of the
futex mutex in one and behind it in the other; ahead is more than 1.15 times its work, behind is
less than 1/1.15. They differ in ratio if one ratio is more than 1.5 times the other. A measured
ratio is not decided if its repetitions are more than 1.5 times apart.
";

/// The verdict on a lock, in one case and with one number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// The two worlds agree.
    Agree,
    /// The two worlds differ in which of two locks is ahead.
    Order,
    /// The two worlds differ in how far a lock is ahead.
    Ratio,
    /// The measured ratios differ among themselves.
    Undecided,
    /// There is no measured ratio.
    Unmeasured,
    /// There is no predicted ratio.
    Unpredicted,
}

/// The ratio of a lock's work to that of the futex mutex, in both worlds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Measured here: the median over repetitions, the minimum and the maximum.
    pub measured: Option<[f64; 3]>,
    /// Simulated.
    pub predicted: Option<f64>,
    /// The verdict on the lock.
    pub says: Says,
}

/// Returns the side of a ratio: 1 if ahead, 0 if level, or −1 if behind.
pub fn side(ratio: f64) -> i8 {
    i8::from(ratio > LEVEL) - i8::from(ratio < 1.0 / LEVEL)
}

/// Formats a ratio for people as `1.23×`, with more decimals for a small one.
pub fn times(ratio: f64) -> String {
    let digits = if ratio < 0.1 { 4 } else { 2 };
    format!("{ratio:.digits$}×")
}

impl Compared {
    /// Compares the measured ratios of repetitions with the predicted one.
    pub fn of(ratios: Vec<f64>, predicted: Option<f64>) -> Self {
        let least = ratios.iter().copied().reduce(f64::min);
        let most = ratios.iter().copied().reduce(f64::max);
        let measured = (|| Some([median(ratios)?, least?, most?]))();
        let says = match (measured, predicted) {
            (None, _) => Says::Unmeasured,
            (_, None) => Says::Unpredicted,
            (Some([_, least, most]), _) if most > APART * least => Says::Undecided,
            (Some([measured, ..]), Some(predicted)) => {
                let apart = (predicted / measured).max(measured / predicted);
                match side(measured) * side(predicted) {
                    -1 => Says::Order,
                    _ if apart > APART => Says::Ratio,
                    _ => Says::Agree,
                }
            }
        };
        Self { measured, predicted, says }
    }

    /// Describes the comparison.
    pub fn words(&self) -> String {
        let place = |ratio: f64| match side(ratio) {
            1 => "ahead",
            0 => "level",
            _ => "behind",
        };
        let (measured, predicted) = (self.measured.unwrap_or_default(), self.predicted);
        let ([here, least, most], simulated) = (measured, predicted.unwrap_or_default());
        match self.says {
            Says::Agree if side(here) == side(simulated) => {
                format!("agree: {} in both", place(here))
            }
            Says::Agree => "agree: within the bound".to_owned(),
            Says::Order => {
                let (one, other) = (place(here), place(simulated));
                format!("differ in order: {one} here, {other} simulated")
            }
            Says::Ratio => {
                let [here, simulated] = [here, simulated].map(times);
                format!("differ in ratio: {here} here, {simulated} simulated")
            }
            Says::Undecided => {
                format!("not decided: repetitions gave {} to {}", times(least), times(most))
            }
            Says::Unmeasured => "not measured".to_owned(),
            Says::Unpredicted => "not simulated".to_owned(),
        }
    }

    /// Returns the object for scripts.
    pub fn object(&self) -> Value {
        let [median, least, most] = self.measured.map_or([None; 3], |ratios| ratios.map(Some));
        json!({
            "measured": median, "least": least, "most": most, "predicted": self.predicted,
            "says": self.says.name(), "words": self.words(),
        })
    }
}

impl Says {
    /// Returns the name for scripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Order => "differ-in-order",
            Self::Ratio => "differ-in-ratio",
            Self::Undecided => "not-decided",
            Self::Unmeasured => "not-measured",
            Self::Unpredicted => "not-simulated",
        }
    }

    /// Returns whether it is a difference.
    pub fn differs(self) -> bool {
        matches!(self, Self::Order | Self::Ratio)
    }
}

/// The ranking of the locks of one case and number of threads, by their work in both worlds.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Number of pairs of locks that are level in neither world.
    pub pairs: usize,
    /// Number of these pairs that are in the same order in both worlds.
    pub same: usize,
    /// The lock that did most work in the measurement, and the one in the simulation.
    pub first: [&'static str; 2],
    /// Whether these are the same lock, or level in either world.
    pub first_agrees: bool,
}

impl Ranking {
    /// The ranking of locks by their work, measured and predicted; `None` for fewer than two.
    pub fn of(locks: &[(&'static str, f64, f64)]) -> Option<Self> {
        let most = |of: fn(&(&'static str, f64, f64)) -> f64| {
            locks.iter().max_by(|one, other| of(one).total_cmp(&of(other)))
        };
        let (here, simulated) = (most(|lock| lock.1)?, most(|lock| lock.2)?);
        let first_agrees = side(here.1 / simulated.1) * side(here.2 / simulated.2) == 0;
        let (mut pairs, mut same) = (0, 0);
        for (at, one) in locks.iter().enumerate() {
            for other in &locks[at + 1..] {
                let product = side(one.1 / other.1) * side(one.2 / other.2);
                pairs += usize::from(product != 0);
                same += usize::from(product > 0);
            }
        }
        let first = [here.0, simulated.0];
        (locks.len() > 1).then_some(Self { pairs, same, first, first_agrees })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(ratios: &[f64], predicted: f64) -> Says {
        Compared::of(ratios.to_vec(), Some(predicted)).says
    }

    #[test]
    fn each_part_of_the_rule_decides() {
        assert_eq!(says(&[2.0], 2.9), Says::Agree);
        assert_eq!(says(&[2.0], 3.1), Says::Ratio);
        assert_eq!(says(&[2.0], 1.3), Says::Ratio);
        assert_eq!(says(&[1.2], 0.8), Says::Order);
        assert_eq!(says(&[0.8], 1.2), Says::Order, "the bound of ratios is not asked first");
        assert_eq!(says(&[1.1], 0.8), Says::Agree, "level is on neither side");
        assert_eq!(says(&[1.1], 0.7), Says::Ratio);
        assert_eq!(says(&[1.0, 2.0, 2.1], 2.0), Says::Undecided);
        assert_eq!(says(&[1.9, 2.0, 2.1], 2.0), Says::Agree);
        assert_eq!(says(&[], 2.0), Says::Unmeasured);
        assert_eq!(Compared::of(vec![1.0], None).says, Says::Unpredicted);
    }

    #[test]
    fn what_is_said_has_its_figures() {
        let words = |ratios: &[f64], predicted| Compared::of(ratios.to_vec(), predicted).words();
        assert_eq!(words(&[2.0], Some(2.9)), "agree: ahead in both");
        assert_eq!(words(&[1.0], Some(1.0)), "agree: level in both");
        assert_eq!(words(&[1.0], Some(1.3)), "agree: within the bound");
        assert_eq!(words(&[1.2], Some(0.8)), "differ in order: ahead here, behind simulated");
        assert_eq!(words(&[1.2], Some(3.0)), "differ in ratio: 1.20× here, 3.00× simulated");
        let undecided = "not decided: repetitions gave 1.00× to 2.00×";
        assert_eq!(words(&[1.0, 2.0], Some(1.0)), undecided);
        assert_eq!(words(&[], Some(1.0)), "not measured");
        assert_eq!(words(&[1.0], None), "not simulated");
        assert_eq!((times(0.0123), times(12.3)), ("0.0123×".into(), "12.30×".into()));
    }

    #[test]
    fn a_ranking_counts_pairs_that_are_apart_in_both_worlds() {
        let locks = [("a", 1.0, 1.0), ("b", 2.0, 2.0), ("c", 4.0, 0.5), ("d", 4.1, 4.0)];
        let ranking = Ranking::of(&locks).expect("four locks");
        // c and d are level in the measurement; c is out of order with a and b.
        assert_eq!((ranking.pairs, ranking.same, ranking.first), (5, 3, ["d", "d"]));
        assert!(ranking.first_agrees);
        let near = Ranking::of(&[("a", 1.0, 1.1), ("b", 2.0, 1.0)]).expect("two locks");
        assert!(near.first == ["b", "a"] && near.first_agrees, "they are level simulated");
        let far = Ranking::of(&[("a", 1.0, 2.0), ("b", 2.0, 1.0)]).expect("two locks");
        assert!(!far.first_agrees);
        assert_eq!(Ranking::of(&locks[..1]), None);
        assert_eq!(Ranking::of(&[]), None);
    }
}
