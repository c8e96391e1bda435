//! The levels of a machine file, and the cores that differ.

use std::ops::RangeInclusive;

use super::bound::Span;
use super::number::Reader;
use super::table::{Table, Value};
use super::wrong::Wrong;
use crate::machine::topology::{CPUS, Level, Topology};

/// The largest number of levels of a machine.
const LEVELS: usize = 16;

/// The grouping of the previous level's units by a level.
enum Groups {
    /// The number of units in each group.
    Of(u32),
    /// The CPUs of each group.
    Lists(Vec<Vec<RangeInclusive<u32>>>),
}

struct Described<'a> {
    level: Level,
    groups: Groups,
    hops: Vec<Vec<u32>>,
    inclusive: Option<bool>,
    table: Table<'a>,
}

impl Reader {
    /// Reads `[[level]]` and `[[speed]]`.
    pub(super) fn topology(&mut self, file: &mut Table<'_>) -> Result<Topology, Wrong> {
        let levels = file.required("level")?;
        let start = levels.place;
        let tables = levels.array()?;
        if tables.is_empty() || tables.len() > LEVELS {
            let what = format!("a machine has 1 to {LEVELS} levels, not {}", tables.len());
            return Err(start.wrong(what));
        }
        let mut described = Vec::new();
        for table in tables {
            described.push(self.level(table.table()?)?);
        }
        let cpus = cpus(&described)?;
        let mut below: Vec<u32> = (0..cpus).collect();
        let mut levels = Vec::new();
        let mut hops = Vec::new();
        let mut inclusive = None;
        let last = described.len() - 1;
        let mut places = Vec::new();
        for (number, mut one) in described.into_iter().enumerate() {
            let place = one.table.place;
            one.level.units = units(&one, &below)?;
            below.clone_from(&one.level.units);
            if number < last && !one.hops.is_empty() {
                return Err(place.wrong("hops are counted on the last level only"));
            }
            if levels.iter().any(|level: &Level| level.name == one.level.name) {
                return Err(place.wrong(format!("a second level named {}", one.level.name)));
            }
            hops = one.hops;
            inclusive = inclusive.or(one.inclusive);
            levels.push(one.level);
            places.push(place);
            one.table.end()?;
        }
        let topology = Topology::new(levels, hops);
        let topology = topology.map_err(|bad| places[bad.level].wrong(bad.what))?;
        let pace = self.pace(file, cpus)?;
        Ok(topology.with_inclusive(inclusive.unwrap_or(true)).with_pace(pace))
    }

    fn level<'a>(&mut self, mut table: Table<'a>) -> Result<Described<'a>, Wrong> {
        let name = table.required("name")?.text()?;
        table.name = format!("level.{name}");
        let groups = match (table.optional("of"), table.optional("groups")) {
            (Some(of), None) => Groups::Of(of.count(1, CPUS as u32)?),
            (None, Some(groups)) => {
                let lists = groups.array()?.into_iter();
                Groups::Lists(lists.map(cpu_list).collect::<Result<_, _>>()?)
            }
            _ => {
                let what = format!("level {name} has of = N, or groups = [\"0-3\", …]");
                return Err(table.place.wrong(what));
            }
        };
        let transfer_ns = self.times(table.required("transfer")?, Span::Access)?;
        let memory_ns = match table.optional("memory") {
            Some(value) => self.times(value, Span::Access)?,
            None => Vec::new(),
        };
        let interrupt_ns = match table.optional("interrupt") {
            Some(value) => self.times(value, Span::System)?,
            None => Vec::new(),
        };
        let cache_ns = table.optional("cache");
        let cache_ns = cache_ns.map(|value| self.time(value, Span::Access)).transpose()?;
        let inclusive = match cache_ns {
            Some(_) => Some(table.required("inclusive")?.truth()?),
            None => None,
        };
        let crowded_permille =
            table.optional("crowded").map(|value| self.permille(value)).transpose()?;
        let hops = match table.optional("hops") {
            Some(rows) => rows.array()?.into_iter().map(row).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        let level = Level {
            name,
            units: vec![],
            transfer_ns,
            memory_ns,
            interrupt_ns,
            cache_ns,
            crowded_permille,
        };
        Ok(Described { level, groups, hops, inclusive, table })
    }

    fn times(&mut self, value: Value<'_>, span: Span) -> Result<Vec<u64>, Wrong> {
        value.one_or_more().into_iter().map(|value| self.time(value, span)).collect()
    }

    /// `[[speed]]`: the duration of work on some CPUs, in thousandths of its duration on the
    /// others.
    fn pace(&mut self, file: &mut Table<'_>, cpus: u32) -> Result<Vec<u32>, Wrong> {
        let mut pace: Vec<Option<u32>> = vec![None; cpus as usize];
        let speeds = file.optional("speed").map_or(Ok(Vec::new()), Value::array)?;
        for speed in speeds {
            let mut speed = speed.table()?;
            let place = speed.place;
            let list = cpu_list(speed.required("cpus")?)?;
            let permille = self.permille(speed.required("work")?)?;
            for cpu in list.into_iter().flatten() {
                let Some(slot) = pace.get_mut(cpu as usize) else {
                    return Err(place.wrong(format!("no CPU {cpu}: there are {cpus}, from 0")));
                };
                if slot.replace(permille).is_some() {
                    return Err(place.wrong(format!("CPU {cpu} has two speeds")));
                }
            }
            speed.end()?;
        }
        Ok(pace.into_iter().map(|pace| pace.unwrap_or(1_000)).collect())
    }
}

/// The number of CPUs that the levels make.
fn cpus(levels: &[Described<'_>]) -> Result<u32, Wrong> {
    let listed = levels.iter().find_map(|level| match &level.groups {
        Groups::Lists(lists) => lists.iter().flatten().map(|range| *range.end() + 1).max(),
        Groups::Of(_) => None,
    });
    let product = || {
        let of = |level: &Described<'_>| match level.groups {
            Groups::Of(count) => u64::from(count),
            Groups::Lists(_) => 1,
        };
        levels.iter().fold(1, |cpus: u64, level| cpus.saturating_mul(of(level)))
    };
    let cpus = listed.map_or_else(product, u64::from);
    if cpus > CPUS as u64 {
        let what = format!("a machine has 1 to {CPUS} CPUs, not {cpus}");
        return Err(levels[0].table.place.wrong(what));
    }
    Ok(cpus as u32)
}

/// The unit of each CPU, of a level above `below`.
fn units(level: &Described<'_>, below: &[u32]) -> Result<Vec<u32>, Wrong> {
    let name = &level.level.name;
    let wrong = |what: String| Err(level.table.place.wrong(what));
    match &level.groups {
        Groups::Of(count) => {
            let inner = below.iter().max().map_or(0, |&last| last + 1);
            if !inner.is_multiple_of(*count) {
                return wrong(format!(
                    "level {name}: groups of {count} can't be made of {inner} of the level below"
                ));
            }
            Ok(below.iter().map(|&unit| unit / count).collect())
        }
        Groups::Lists(lists) => {
            let mut units = vec![None; below.len()];
            for (unit, cpu) in lists
                .iter()
                .enumerate()
                .flat_map(|(unit, list)| list.iter().cloned().flatten().map(move |cpu| (unit, cpu)))
            {
                let Some(slot) = units.get_mut(cpu as usize) else {
                    let cpus = below.len();
                    return wrong(format!("level {name} has CPU {cpu}: there are {cpus}, from 0"));
                };
                if slot.replace(unit as u32).is_some() {
                    return wrong(format!("level {name} has CPU {cpu} in two groups"));
                }
            }
            if let Some(left_out) = units.iter().position(Option::is_none) {
                return wrong(format!("level {name} leaves out CPU {left_out}"));
            }
            Ok(units.into_iter().flatten().collect())
        }
    }
}

/// Parses a list of CPUs in the kernel's format: `0-3,8`.
fn cpu_list(value: Value<'_>) -> Result<Vec<RangeInclusive<u32>>, Wrong> {
    let place = value.place;
    let text = value.text()?;
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from <= to && (to as usize) < CPUS).then_some(from..=to)
    };
    text.split(',').map(range).collect::<Option<Vec<_>>>().ok_or_else(|| {
        let most = CPUS - 1;
        place.wrong(format!("{text:?} is not a list of CPUs like \"0-3,8\", up to {most}"))
    })
}

fn row(value: Value<'_>) -> Result<Vec<u32>, Wrong> {
    value.array()?.into_iter().map(|hops| hops.count(0, LEVELS as u32)).collect()
}
