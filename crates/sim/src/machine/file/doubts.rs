//! Warnings about values that are allowed in a machine file, but rarely intended.

use super::number::Number;
use super::wrong::Wrong;

/// Warns about costs of levels and hops that are less than the same cost further in.
///
/// Not errors: such machines exist. In `pe-laptop` a line goes through the second-level cache of a
/// cluster of efficient cores more slowly than over the ring from core to core; memory on the chip
/// may have a longer latency than memory beside it.
pub(super) fn doubts(numbers: &[Number]) -> Vec<Wrong> {
    let mut doubts: Vec<Wrong> = ["transfer", "memory", "interrupt"]
        .into_iter()
        .flat_map(|key| {
            let costs: Vec<_> = numbers.iter().filter(|number| is_of_level(number, key)).collect();
            costs.windows(2).filter_map(|pair| doubt(pair[0], pair[1])).collect::<Vec<_>>()
        })
        .collect();
    doubts.sort_by_key(|doubt| doubt.line);
    doubts
}

/// Returns whether the number is the value of `key` in a level, or one of several values there.
fn is_of_level(number: &Number, key: &str) -> bool {
    let name = number.name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
    let name = name.map_or(number.name.as_str(), |(name, _)| name);
    let of_level = name.strip_prefix("level.").and_then(|name| name.rsplit_once('.'));
    of_level.is_some_and(|(_, last)| last == key)
}

fn doubt(near: &Number, far: &Number) -> Option<Wrong> {
    let what = || {
        format!(
            "{} is {} ns, but the nearer {} is {} ns: this is unusual; check whether they are \
            swapped",
            far.name, far.value, near.name, near.value
        )
    };
    (far.value < near.value).then(|| Wrong { line: far.line, what: what() })
}
