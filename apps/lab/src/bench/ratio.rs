//! The ratio of two subjects, taken in each repetition: a disturbance of the machine for a second
//! affects both.

use antiphon_report::stats::{Interval, Quartiles, quartiles};
use antiphon_report::table::{Cell as Field, Tone};
use serde::{Serialize, Serializer};

/// Ratios of paired repetitions, with their key in reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The key.
    pub key: &'static str,
    /// Quartiles of the ratios; their median is the ratio. `None` without pairs.
    pub of: Option<Quartiles>,
    /// Interval that contains the true median; `None` with fewer than six pairs.
    pub interval: Option<Interval>,
}

/// Which of two figures is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The greater figure.
    More,
    /// The smaller figure.
    Less,
    /// Neither: a table gives the ratio no colour.
    Neither,
}

impl Ratio {
    /// The ratio of paired figures, ours and the peer's. Pairs in which the peer's figure is 0 are
    /// left out.
    pub fn of(key: &'static str, pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let ratios: Vec<_> =
            pairs.filter(|&(_, theirs)| theirs > 0.0).map(|(ours, theirs)| ours / theirs).collect();
        Self { key, interval: Interval::of(ratios.clone()), of: quartiles(ratios) }
    }

    /// Returns the ratio.
    pub fn median(&self) -> Option<f64> {
        self.of.map(|of| of.median)
    }

    /// The ratio in a table; our ratios are coloured if their interval is on one side of 1.
    pub fn field(&self, ours: bool, better: Better) -> Field {
        let Some(median) = self.median() else { return Field::number("-") };
        let side = self.interval.and_then(|interval| match better {
            Better::Neither => None,
            _ if interval.low95 > 1.0 => Some(better == Better::More),
            _ if interval.high95 < 1.0 => Some(better == Better::Less),
            _ => None,
        });
        let tone = match side {
            _ if better == Better::Neither => Tone::Plain,
            _ if !ours => Tone::Faint,
            Some(true) => Tone::Good,
            Some(false) => Tone::Bad,
            None => Tone::Plain,
        };
        Field::number(format!("{median:.2}×")).tone(tone)
    }

    /// The interval in a table.
    pub fn interval_field(&self) -> Field {
        let interval = self.interval.map_or(String::new(), |interval| {
            format!("{:.2} – {:.2}", interval.low95, interval.high95)
        });
        Field::number(interval).tone(Tone::Faint)
    }
}

/// `key`, `key_p25`, `key_p75`, `key_low95` and `key_high95`; null where there is no ratio.
impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { key, of, interval } = self;
        to.collect_map([
            ((*key).to_owned(), of.map(|of| of.median)),
            (format!("{key}_p25"), of.map(|of| of.p25)),
            (format!("{key}_p75"), of.map(|of| of.p75)),
            (format!("{key}_low95"), interval.map(|one| one.low95)),
            (format!("{key}_high95"), interval.map(|one| one.high95)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_ratio_is_of_pairs_and_an_interval_needs_six() {
        let pairs = |count: u32| (1..=count).map(|at| (f64::from(at) * 3.0, f64::from(at)));
        let of = |pairs: &mut dyn Iterator<Item = (f64, f64)>| Ratio::of("ratio", pairs);
        assert_eq!(of(&mut std::iter::empty()).median(), None);
        assert_eq!(of(&mut [(1.0, 0.0)].into_iter()).median(), None);
        let five = of(&mut pairs(5));
        assert_eq!((five.median(), five.interval), (Some(3.0), None));
        let six = of(&mut pairs(6).chain([(1.0, 0.0)]));
        assert_eq!(six.interval.map(|at| at.high95), Some(3.0));
        let object = json!(six);
        assert_eq!((&object["ratio_p25"], &object["ratio_low95"]), (&json!(3.0), &json!(3.0)));
    }
}
