//! The ratio of two subjects, taken in each repetition: what disturbs the machine for a second
//! disturbs both.

use serde_json::{Map, Value, json};

use antiphon_report::stats::{Interval, Quartiles, quartiles};
use antiphon_report::table::{Cell as Field, Tone};

/// Ratios of paired repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The median of them is the ratio.
    pub of: Quartiles,
    /// The interval in which the true median is; `None` of fewer than six.
    pub interval: Option<Interval>,
}

impl Ratio {
    /// The ratio of paired figures, ours and theirs. A pair without a figure of theirs has no
    /// ratio.
    pub fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let ratios: Vec<_> =
            pairs.filter(|&(_, theirs)| theirs > 0.0).map(|(ours, theirs)| ours / theirs).collect();
        let interval = Interval::of(ratios.clone());
        quartiles(ratios).map(|of| Self { of, interval })
    }

    /// Puts `name`, `name_p25`, `name_p75`, `name_low95` and `name_high95` into `object`; null
    /// where there is no ratio.
    pub fn put(ratio: Option<Self>, name: &str, object: &mut Map<String, Value>) {
        let interval = ratio.and_then(|ratio| ratio.interval);
        let of = |figure: fn(Quartiles) -> f64| ratio.map(|ratio| figure(ratio.of));
        object.insert(name.to_owned(), json!(of(|of| of.median)));
        object.insert(format!("{name}_p25"), json!(of(|of| of.p25)));
        object.insert(format!("{name}_p75"), json!(of(|of| of.p75)));
        object.insert(format!("{name}_low95"), json!(interval.map(|one| one.low95)));
        object.insert(format!("{name}_high95"), json!(interval.map(|one| one.high95)));
    }

    /// A ratio of which less is better, and its interval; of ours, coloured if that is on one side
    /// of 1.
    pub fn cells(ratio: Option<Self>, ours: bool) -> [Field; 2] {
        let Some(ratio) = ratio else { return ["-", ""].map(Field::number) };
        let tone = match ratio.interval {
            Some(interval) if ours && interval.high95 < 1.0 => Tone::Good,
            Some(interval) if ours && interval.low95 > 1.0 => Tone::Bad,
            _ if ours => Tone::Plain,
            _ => Tone::Faint,
        };
        let interval = ratio.interval.map_or(String::new(), |interval| {
            format!("{:.2} – {:.2}", interval.low95, interval.high95)
        });
        [
            Field::number(format!("{:.2}×", ratio.of.median)).tone(tone),
            Field::number(interval).tone(Tone::Faint),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_pairs_and_an_interval_needs_six() {
        let pairs = |count: u32| (1..=count).map(|at| (f64::from(at) * 3.0, f64::from(at)));
        assert_eq!(Ratio::of(std::iter::empty()), None);
        assert_eq!(Ratio::of([(1.0, 0.0)].into_iter()), None);
        let five = Ratio::of(pairs(5)).map(|ratio| (ratio.of.median, ratio.interval));
        assert_eq!(five, Some((3.0, None)));
        let six = Ratio::of(pairs(6).chain([(1.0, 0.0)]));
        assert_eq!(six.and_then(|ratio| ratio.interval).map(|at| at.high95), Some(3.0));
        let mut object = Map::new();
        Ratio::put(six, "ratio", &mut object);
        assert_eq!((&object["ratio_p25"], &object["ratio_low95"]), (&json!(3.0), &json!(3.0)));
    }
}
