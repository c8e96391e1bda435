//! This machine as a machine file: the results of `sim calibrate`, if there are any. Otherwise the
//! topology from sysfs, with the costs of the most similar machine that has a file: then all costs
//! are marked as estimates.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use antiphon_linux::{Whereabouts, whereabouts};
use antiphon_sim::{CPUS, Description, Topology, known};

use crate::failure::Failure;
use crate::{folders, input};

/// The name of the machine.
pub const NAME: &str = "host";
/// Name of the measured file, in the folder of kept files.
const KEPT: &str = "host.toml";

/// The name and the text of the file that was measured on this machine, or else of one with
/// estimates.
///
/// # Errors
///
/// As [`text`].
pub fn found() -> Result<(String, String), Failure> {
    let kept = folders::all().into_iter().find_map(|folder| {
        let path = folder.join(KEPT);
        let text = input::text(&path, Description::MAX_BYTES).ok()?;
        // If several machines share a home, the file is of one of them.
        text.starts_with(&mark()).then(|| (path.display().to_string(), text))
    });
    match kept {
        Some(kept) => Ok(kept),
        None => Ok(("/sys".to_owned(), text()?)),
    }
}

/// The path for the measured file.
///
/// # Errors
///
/// If no folder for it can be created.
pub fn kept_path() -> Result<PathBuf, Failure> {
    let made = folders::all().into_iter().find(|folder| folders::make_own(folder).is_ok());
    let what = "no folder for it: set XDG_CACHE_HOME, or say --out F";
    Ok(made.ok_or_else(|| Failure::missing(what))?.join(KEPT))
}

/// A file of this machine whose numbers were measured, with the mark by which [`found`] recognises
/// it.
pub fn measured(text: &str) -> String {
    let about = "about = \"This machine";
    let text = text.replace(&format!("{about}: topology"), &format!("{about}, measured: topology"));
    format!("{}{text}", mark())
}

/// The first line of a file that was measured on this machine.
fn mark() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |model| model.trim_start_matches([' ', '\t', ':']));
    let cpus = (0..CPUS as u32).filter_map(whereabouts).count();
    format!("# Measured on: {model}, {cpus} CPUs\n")
}

/// The description in a file of this machine.
///
/// # Errors
///
/// If the file is invalid, which would be a bug.
pub fn described(text: &str) -> Result<Description, Failure> {
    Description::parse(text).map_err(|wrong| Failure::measured(format!("{NAME}: {wrong}")))
}

/// The text of the file of estimates.
///
/// # Errors
///
/// If sysfs names no CPU.
pub fn text() -> Result<String, Failure> {
    let places: Vec<_> = (0..CPUS as u32).filter_map(whereabouts).collect();
    if places.is_empty() {
        let what = "no CPU in /sys/devices/system/cpu: mount sysfs, or name another machine";
        return Err(Failure::missing(what));
    }
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Ok(of(&places, kin(&cpuinfo)))
}

/// The preset machine whose costs are the most similar to this one's.
fn kin(cpuinfo: &str) -> &'static str {
    if cpuinfo.contains("AuthenticAMD") { "milan-2s" } else { "emerald-2s" }
}

/// The CPUs of each unit of a level, ordered by the unit's number.
fn groups(places: &[Whereabouts], of: impl Fn(&Whereabouts) -> u32) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    // The simulator counts CPUs from 0, without those that are offline.
    for (cpu, place) in places.iter().enumerate() {
        groups.entry(of(place)).or_default().push(cpu);
    }
    groups.into_values().collect()
}

fn of(places: &[Whereabouts], kin: &str) -> String {
    let preset = antiphon_sim::PRESETS.iter().find(|preset| preset.name == kin);
    let costs = preset.expect("it is one of them").text;
    let rest = &costs[costs.find("[core]").expect("each machine has cores")..];
    let mut text = format!(
        "name = \"{NAME}\"\nabout = \"This machine: topology from /sys, costs as {kin}'s.\"\n"
    );
    let topology = &known(kin).expect("it is one of them").machine.topology;
    levels(&mut text, places, kin, topology);
    text.push('\n');
    for line in rest.lines() {
        let estimated = ["measured", "published", "recalled", "estimated"];
        let line = estimated.iter().fold(line.to_owned(), |line, kind| {
            line.replace(&format!(", {kind} = \""), &format!(", estimated = \"as {kin}: "))
        });
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn levels(text: &mut String, places: &[Whereabouts], kin: &str, like: &Topology) {
    let of_node = groups(places, |place| place.node);
    let of_cache = groups(places, |place| place.cache);
    let of_core = groups(places, |place| place.core);
    let near = like.classes().iter().find(|class| class.memory_ns.is_some());
    let (near, far) = (near.expect("it has memory"), like.classes().last().expect("it has one"));
    let number = |ns: u64| format!("{{ ns = {ns}, estimated = \"as {kin}\" }}");
    let cache = like.cache_ns().map_or(String::new(), |ns| {
        format!("cache = {}\ninclusive = {}\n", number(ns), like.inclusive())
    });
    let memory = |ns: Option<u64>| format!("memory = {}\n", number(ns.unwrap_or(1)));
    // Writing to a string does not fail.
    if of_core.len() < places.len() {
        let _ = write!(text, "{}", begin("core", &of_core));
        let _ = writeln!(text, "transfer = {{ ns = 10, estimated = \"7 to 10 on others\" }}");
        let _ = writeln!(text, "crowded = {{ times = 1.6, estimated = \"as milan-2s\" }}");
    }
    let clustered = of_cache.len() > of_node.len();
    if clustered {
        let ns = like.transfer_ns(0, last_of_cache(like));
        let _ = write!(text, "{}", begin("cluster", &of_cache));
        let _ = write!(text, "transfer = {}\n{cache}", number(ns));
    }
    let _ = write!(text, "{}", begin("socket", &of_node));
    let _ = write!(text, "transfer = {}\n{}", number(near.transfer_ns), memory(near.memory_ns));
    if !clustered {
        text.push_str(&cache);
    }
    if of_node.len() > 1 {
        let all = vec![(0..places.len()).collect()];
        let _ = write!(text, "{}", begin("machine", &all));
        let _ = write!(text, "transfer = {}\n{}", number(far.transfer_ns), memory(far.memory_ns));
    }
}

/// The last CPU that shares the last-level cache of the first.
fn last_of_cache(topology: &Topology) -> u32 {
    let mut cpus = (0..topology.cpus()).rev();
    cpus.find(|&cpu| topology.cache_of(cpu) == topology.cache_of(0)).unwrap_or(0)
}

fn begin(name: &str, groups: &[Vec<usize>]) -> String {
    let list = |group: &Vec<usize>| format!("{:?}", cpu_list(group));
    let groups = groups.iter().map(list).collect::<Vec<_>>().join(", ");
    format!("\n[[level]]\nname = \"{name}\"\ngroups = [{groups}]\n")
}

/// CPUs as the kernel lists them: `0-3,8`.
fn cpu_list(cpus: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, to)) if *to + 1 == cpu => *to = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let range = |&(from, to): &(usize, usize)| {
        if from == to { from.to_string() } else { format!("{from}-{to}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_sim::{Description, Kind};

    fn described(places: &[Whereabouts], kin: &str) -> Description {
        let text = of(places, kin);
        Description::parse(&text).unwrap_or_else(|wrong| panic!("{wrong} of\n{text}"))
    }

    /// Two nodes of two caches of two cores of two threads, numbered as Linux does on many
    /// machines: all first threads, then all second ones.
    fn sixteen() -> Vec<Whereabouts> {
        let place = |cpu: u32| {
            let core = cpu % 8;
            Whereabouts { core, cache: core / 2 * 2, node: core / 4 }
        };
        (0..16).map(place).collect()
    }

    #[test]
    fn a_topology_becomes_levels() {
        for kin in ["milan-2s", "emerald-2s"] {
            let described = described(&sixteen(), kin);
            let topology = &described.machine.topology;
            let names: Vec<_> = topology.levels().iter().map(|level| &*level.name).collect();
            assert_eq!(names, ["core", "cluster", "socket", "machine"]);
            assert_eq!((topology.cpus(), topology.nodes(), topology.caches()), (16, 2, 4));
            assert_eq!(topology.siblings(1).collect::<Vec<_>>(), [9]);
            let class = |to| topology.classes()[topology.class(0, to)].level;
            assert_eq!([8, 1, 9, 2, 4].map(class), [0, 1, 1, 2, 3]);
            assert_eq!(described.count(Kind::Estimated), described.numbers.len());
        }
    }

    #[test]
    fn one_cpu_is_a_machine_too() {
        let one = described(&[Whereabouts { core: 0, cache: 0, node: 0 }], "emerald-2s");
        assert_eq!((one.machine.cores(), one.machine.topology.nodes()), (1, 1));
    }

    #[test]
    fn this_machine_is_one() {
        let here = Description::parse(&text().expect("sysfs")).expect("a machine");
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").expect("sysfs");
        assert_eq!(here.machine.cores() == 1, online.trim() == "0", "{online}");
        assert_eq!(kin("vendor_id : AuthenticAMD"), "milan-2s");
    }

    #[test]
    fn a_measured_file_is_known_by_its_mark() {
        let text = measured(&text().expect("sysfs"));
        assert!(text.starts_with(&mark()) && text.contains("This machine, measured: topology"));
        assert!(super::described(&text).is_ok());
    }

    #[test]
    fn lists_are_as_the_kernel_writes_them() {
        assert_eq!(cpu_list(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(cpu_list(&[5]), "5");
    }
}
