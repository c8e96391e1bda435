//! Warnings on values that a machine file may have, but that are seldom intended.

use super::number::Number;
use super::wrong::Wrong;

/// Costs of levels and hops that are less than what the same costs nearer in.
///
/// Not errors: there are such machines. In `pe-laptop` a line goes through the second level of a
/// cluster of efficient cores more slowly than over the ring from core to core; memory on the chip
/// may be farther off, in time, than what is beside it.
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

/// Whether the number is what levels have under `key`, or one of several there.
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
