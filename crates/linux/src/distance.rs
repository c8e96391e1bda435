//! Distances between CPUs: by last-level cache, by NUMA node, and by the firmware's distances of
//! nodes.
//!
//! | the two CPUs | distance |
//! |---|---|
//! | share their last-level cache | 0 |
//! | are on one node | 10, as of a node to itself |
//! | are on two nodes | the kernel's value, in its unit: more than 10; 20 if there is none |
//!
//! All values come from sysfs, are read at their first use, and kept. If they can't be read, there
//! is one cache and one node.

use core::ffi::CStr;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU32};

use antiphon_platform::CpuId;

use crate::{sys, topology};

/// CPUs and nodes beyond these limits all count as neighbours.
const CPUS: usize = 4096;
const NODES: usize = 64;
/// The distance of a node to itself.
const SAME_NODE: u32 = 10;
/// The distance of two nodes for which sysfs has none.
const OTHER_NODE: u8 = 20;

/// The [`Place`] of each CPU; 0 means not asked yet.
static PLACES: [AtomicU32; CPUS] = [const { AtomicU32::new(0) }; CPUS];
/// Distances of nodes; 0 means not asked yet.
static APART: [[AtomicU8; NODES]; NODES] = [const { [const { AtomicU8::new(0) }; NODES] }; NODES];
/// 0 means not asked yet, 1 no, 2 yes.
static TIERED: AtomicU8 = AtomicU8::new(0);

/// The place of a CPU: the first CPU that shares its last-level cache, and its node.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    cache: u16,
    node: u8,
}

impl Place {
    const KNOWN: u32 = 1 << 31;

    fn bits(self) -> u32 {
        Self::KNOWN | u32::from(self.node) << 16 | u32::from(self.cache)
    }

    fn of(cpu: CpuId) -> Self {
        let Some(slot) = PLACES.get(cpu.0 as usize) else { return Self { cache: 0, node: 0 } };
        // Relaxed, as for all these statics: all threads find the same values.
        match slot.load(Relaxed) {
            0 => {
                let place = Self::ask(cpu.0);
                slot.store(place.bits(), Relaxed);
                place
            }
            bits => Self { cache: bits as u16, node: (bits >> 16) as u8 },
        }
    }

    #[cold]
    #[inline(never)]
    fn ask(cpu: u32) -> Self {
        let mut buffer = [0; 256];
        let cache = last_cache(cpu, &mut buffer).and_then(first).unwrap_or(0);
        let node = (0..NODES as u32).find(|node| {
            let list = read(&mut buffer, format_args!("node/node{node}/cpulist"));
            list.is_some_and(|list| contains(list, cpu))
        });
        Self { cache: cache as u16, node: node.unwrap_or(0) as u8 }
    }
}

/// See the table above.
pub(crate) fn between(one: CpuId, other: CpuId) -> u32 {
    if one == other {
        return 0;
    }
    let (one, other) = (Place::of(one), Place::of(other));
    if one == other {
        0
    } else if one.node == other.node {
        SAME_NODE
    } else {
        apart(one.node, other.node)
    }
}

/// The core, last-level cache and NUMA node of a CPU. Core and cache are named by the first CPU
/// that shares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// The first hardware thread of the CPU's core.
    pub core: u32,
    /// The first CPU that shares the CPU's last-level cache.
    pub cache: u32,
    /// The NUMA node of the CPU.
    pub node: u32,
}

/// The place of CPU `cpu`, from the present content of sysfs; `None` if the CPU is not online, or
/// there is no sysfs. If sysfs does not describe its cache, core or node, cache and core are the
/// CPU's alone, and the node is 0. Opens and reads a few files.
#[must_use]
pub fn whereabouts(cpu: u32) -> Option<Whereabouts> {
    let mut buffer = [0; 256];
    let online = read(&mut buffer, format_args!("cpu/online"))?;
    if !contains(online, cpu) {
        return None;
    }
    let core = read(&mut buffer, format_args!("cpu/cpu{cpu}/topology/thread_siblings_list"));
    let core = core.and_then(first).unwrap_or(cpu);
    let cache = last_cache(cpu, &mut buffer).and_then(first).unwrap_or(cpu);
    let node = (0..NODES as u32).find(|node| {
        let list = read(&mut buffer, format_args!("node/node{node}/cpulist"));
        list.is_some_and(|list| contains(list, cpu))
    });
    Some(Whereabouts { core, cache, node: node.unwrap_or(0) })
}

/// Returns whether there are several nodes, or several last-level caches.
pub(crate) fn tiered() -> bool {
    match TIERED.load(Relaxed) {
        0 => {
            let tiered = topology::numa() || has_caches();
            TIERED.store(1 + u8::from(tiered), Relaxed);
            tiered
        }
        answer => answer == 2,
    }
}

/// Returns whether some CPU does not share the last-level cache of the first CPU.
#[cold]
#[inline(never)]
fn has_caches() -> bool {
    let (mut shared, mut online) = ([0; 256], [0; 256]);
    let online = read(&mut online, format_args!("cpu/online"));
    let cpu = online.and_then(first).unwrap_or(0);
    let shared = last_cache(cpu, &mut shared);
    shared.is_some() && online.is_some() && shared != online
}

fn apart(one: u8, other: u8) -> u32 {
    let slot = &APART[usize::from(one) % NODES][usize::from(other) % NODES];
    let known = slot.load(Relaxed);
    if known != 0 {
        return known.into();
    }
    let told = ask_apart(one, other).filter(|&told| u32::from(told) > SAME_NODE);
    let apart = told.unwrap_or(OTHER_NODE);
    slot.store(apart, Relaxed);
    apart.into()
}

/// The file lists the distances in the order of the nodes that are online.
#[cold]
#[inline(never)]
fn ask_apart(one: u8, other: u8) -> Option<u8> {
    let mut buffer = [0; 256];
    let online = read(&mut buffer, format_args!("node/online"))?;
    let nth = (0..other).filter(|&node| contains(online, node.into())).count();
    let row = read(&mut buffer, format_args!("node/node{one}/distance"))?;
    numbers(row).nth(nth)?.try_into().ok()
}

/// The kernel's list of the CPUs that share the last-level cache of a CPU.
fn last_cache(cpu: u32, buffer: &mut [u8; 256]) -> Option<&[u8]> {
    // Finds the file first and then reads it again: one pass would borrow the buffer twice.
    let index = (0..5).rev().find(|index| {
        read(buffer, format_args!("cpu/cpu{cpu}/cache/index{index}/shared_cpu_list")).is_some()
    })?;
    read(buffer, format_args!("cpu/cpu{cpu}/cache/index{index}/shared_cpu_list"))
}

/// Reads a file below `/sys/devices/system`. Returns `None` if there is no such file, or it is
/// longer than the buffer.
fn read<'a>(buffer: &'a mut [u8; 256], name: fmt::Arguments<'_>) -> Option<&'a [u8]> {
    let mut path = Path { bytes: [0; 96], length: 0 };
    path.write_fmt(format_args!("/sys/devices/system/{name}\0")).ok()?;
    let path = CStr::from_bytes_until_nul(&path.bytes).ok()?;
    let room = buffer.len();
    sys::read_file(path, buffer).filter(|read| read.len() < room)
}

/// A path that is built without allocating.
struct Path {
    bytes: [u8; 96],
    length: usize,
}

impl Write for Path {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.length + part.len();
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(part.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// The decimal numbers in `text`.
fn numbers(text: &[u8]) -> impl Iterator<Item = u32> {
    let parts = text.split(|byte| !byte.is_ascii_digit()).filter(|part| !part.is_empty());
    parts.map(|digits| {
        digits.iter().fold(0, |number: u32, digit| {
            number.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
        })
    })
}

/// The first number of a list.
fn first(list: &[u8]) -> Option<u32> {
    numbers(list).next()
}

/// Returns whether a list such as `0-3,8` contains `number`.
fn contains(list: &[u8], number: u32) -> bool {
    list.split(|&byte| byte == b',').any(|range| {
        let mut ends = numbers(range);
        let Some(from) = ends.next() else { return false };
        (from..=ends.next().unwrap_or(from)).contains(&number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lists_and_rows() {
        assert!(contains(b"0-3,8\n", 2) && contains(b"0-3,8\n", 8) && !contains(b"0-3,8\n", 4));
        assert!(!contains(b"\n", 0));
        assert_eq!(first(b"24-47,120\n"), Some(24));
        assert_eq!(numbers(b"10 21 31\n").nth(2), Some(31));
    }

    #[test]
    fn a_cpu_that_runs_us_is_somewhere() {
        let here = topology::cpu();
        let place = whereabouts(here.0).expect("online");
        assert!(place.core <= here.0 && place.cache <= here.0, "{place:?}");
        assert_eq!(whereabouts(1 << 20), None);
    }

    #[test]
    fn a_cpu_is_at_no_distance_from_itself() {
        let here = topology::cpu();
        assert_eq!(between(here, here), 0);
        assert!(between(here, CpuId(0)) <= 255);
    }
}
