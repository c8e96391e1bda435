//! Distributions, described by quantiles.

use serde_json::{Map, Value, json};

use super::quantile;

/// A quantile: a share of the values, and the value that they are below.
pub struct Below {
    /// The name in reports.
    pub name: &'static str,
    /// The share.
    pub share: f64,
    /// The value.
    pub value: f64,
}

const SHARES: [(&str, f64); 13] = [
    ("p10", 0.1),
    ("p20", 0.2),
    ("p25", 0.25),
    ("p30", 0.3),
    ("p40", 0.4),
    ("p50", 0.5),
    ("p60", 0.6),
    ("p70", 0.7),
    ("p75", 0.75),
    ("p80", 0.8),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p999", 0.999),
];

/// The quantiles of `sorted`, the smallest share first; empty if there are no values.
#[must_use]
pub fn distribution(sorted: &[f64]) -> Vec<Below> {
    let below = |(name, share)| Some(Below { name, share, value: quantile(sorted, share)? });
    SHARES.into_iter().filter_map(below).collect()
}

impl Below {
    /// The object of all quantiles in reports.
    #[must_use]
    pub fn object(all: &[Self]) -> Value {
        all.iter().map(|one| (one.name.to_owned(), json!(one.value))).collect::<Map<_, _>>().into()
    }
}
