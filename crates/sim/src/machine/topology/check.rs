//! Checks of levels and hops.

use super::{CPUS, Level, firsts};

/// The largest number of levels and hops: they fit in a byte, with room to spare.
const CLASSES: usize = 64;

/// An error in a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadShape {
    /// The level with the error.
    pub level: usize,
    /// The error, in words.
    pub what: String,
}

pub(super) fn check(levels: &[Level], hops: &[Vec<u32>]) -> Result<(), BadShape> {
    let Some(last) = levels.len().checked_sub(1) else {
        return Err(BadShape { level: 0, what: "a machine needs at least one level".to_owned() });
    };
    for (number, level) in levels.iter().enumerate() {
        let bad = |what: String| Err(BadShape { level: number, what });
        if let Err(what) = check_units(level, levels[0].units.len()) {
            return bad(what);
        }
        if number > 0 && !nests(&levels[number - 1].units, &level.units) {
            let (below, name) = (&levels[number - 1].name, &level.name);
            return bad(format!("a {below} lies across two units of level {name}"));
        }
    }
    check_hops(levels, hops).map_err(|what| BadShape { level: last, what })?;
    for (number, level) in levels.iter().enumerate() {
        let checked =
            check_costs(level, number == last, hops).and_then(|()| check_roles(number, levels));
        checked.map_err(|what| BadShape { level: number, what })?;
    }
    if levels.iter().map(|level| level.transfer_ns.len()).sum::<usize>() > CLASSES {
        return Err(BadShape { level: last, what: format!("more than {CLASSES} distances") });
    }
    Ok(())
}

/// Checks the levels of which there may be only one, and their positions.
fn check_roles(number: usize, levels: &[Level]) -> Result<(), String> {
    let (level, inner) = (&levels[number], &levels[..number]);
    let name = &level.name;
    let inside = inner.iter().any(|level| !level.memory_ns.is_empty());
    if level.memory_ns.is_empty() && (inside || number + 1 == levels.len()) {
        let why = if inside { "the level inside it has" } else { "no other level has" };
        return Err(format!("level {name} has no memory, and {why}"));
    }
    if level.cache_ns.is_some() && inner.iter().any(|level| level.cache_ns.is_some()) {
        return Err("a second level with a cache: the model knows one, the last".to_owned());
    }
    if level.crowded_permille.is_some() && number > 0 {
        return Err("crowded is for hardware threads of a core, the first level".to_owned());
    }
    Ok(())
}

fn check_units(level: &Level, cpus: usize) -> Result<(), String> {
    let Level { name, units, .. } = level;
    if units.is_empty() || units.len() > CPUS {
        return Err(format!("a machine has 1 to {CPUS} CPUs, not {}", units.len()));
    }
    if units.len() != cpus {
        return Err(format!("level {name} groups {} CPUs, and the first {cpus}", units.len()));
    }
    let mut there = vec![false; units.len()];
    for &unit in units {
        let Some(seen) = there.get_mut(unit as usize) else {
            return Err(format!("level {name} has no unit {unit}: they are counted from 0"));
        };
        *seen = true;
    }
    let count = there.iter().rposition(|&seen| seen).map_or(0, |last| last + 1);
    match there[..count].iter().position(|&seen| !seen) {
        Some(empty) => Err(format!("unit {empty} of level {name} has no CPU")),
        None => Ok(()),
    }
}

fn nests(inner: &[u32], outer: &[u32]) -> bool {
    let firsts = firsts(inner);
    inner.iter().zip(outer).all(|(&unit, &of)| outer[firsts[unit as usize] as usize] == of)
}

fn check_costs(level: &Level, last: bool, hops: &[Vec<u32>]) -> Result<(), String> {
    let Level { name, transfer_ns, memory_ns, interrupt_ns, .. } = level;
    let most = hops.iter().flatten().copied().max().unwrap_or(1).max(1) as usize;
    let wanted = if last { most } else { 1 };
    if last && level.units.iter().any(|&unit| unit > 0) {
        return Err(format!("the last level, {name}, is one unit: the machine"));
    }
    let all = [("transfer", transfer_ns), ("memory", memory_ns), ("interrupt", interrupt_ns)];
    for (what, costs) in all {
        let absent = what != "transfer" && costs.is_empty();
        if costs.len() != wanted && !absent {
            let found = costs.len();
            return Err(format!("{what} of level {name} lists {found}, and needs {wanted}"));
        }
        if costs.contains(&0) {
            return Err(format!("{what} of level {name} is 0: it must be more than 0"));
        }
    }
    Ok(())
}

fn check_hops(levels: &[Level], hops: &[Vec<u32>]) -> Result<(), String> {
    if hops.is_empty() {
        return Ok(());
    }
    let Some(below) = levels.len().checked_sub(2).map(|below| &levels[below]) else {
        return Err("hops are between units of the level below, and there is none".to_owned());
    };
    let count = firsts(&below.units).len();
    let name = &below.name;
    if hops.len() != count || hops.iter().any(|row| row.len() != count) {
        return Err(format!("hops need {count} rows of {count} numbers, one for each {name}"));
    }
    for (from, row) in hops.iter().enumerate() {
        for (to, &count) in row.iter().enumerate() {
            if (count == 0) != (from == to) {
                return Err(format!("hops from {name} {from} to {name} {to} can't be {count}"));
            }
            if count != hops[to][from] {
                let back = hops[to][from];
                return Err(format!(
                    "hops from {name} {from} to {name} {to} are {count}, and back {back}"
                ));
            }
        }
    }
    Ok(())
}
