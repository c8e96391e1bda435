//! The machine as the firmware describes it: processors, nodes and memory; and what of the
//! description can't be used, with the reason.
//!
//! - FIRMWARE-1: each processor is listed once, by an id to which an interrupt can be sent. Another
//!   one would never start, or would be started twice.
//! - FIRMWARE-2: each frame of the map is in it once, is within the memory that the processor can
//!   address, and was usable.
//! - FIRMWARE-3: what is left out is reported ([`Machine::left_out`]).

use core::fmt;

use crate::acpi::{Affinity, EVERY, Tables};
use crate::bytes::Memory;
use crate::memory::Map;
use crate::pvh::Range;

/// Largest number of processors.
pub const MOST_PROCESSORS: usize = 1024;
/// Largest number of nodes.
pub const MOST_NODES: usize = 64;
/// Largest number of reasons that are kept; further ones are only counted.
const MOST_REASONS: usize = 16;
/// Largest APIC id to which an APIC whose registers are in memory can send: 255 names all.
const LARGEST_SHORT_ID: u32 = 254;

/// What the processor can do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Whether ids have 32 bits (x2APIC), not eight.
    pub long_ids: bool,
    /// The end of the memory that can be addressed.
    pub memory_end: u64,
}

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// The id of its APIC.
    pub apic_id: u32,
    /// Its node.
    pub node: u16,
}

/// A part of the firmware's description that is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// The processor is listed before, under the same id.
    Twice(u32),
    /// The id has more bits than this machine's interrupts.
    LongId(u32),
    /// The id names all processors.
    Every,
    /// There are more processors than [`MOST_PROCESSORS`].
    Processor(u32),
    /// There are more proximity domains than [`MOST_NODES`]: this one's memory and processors count
    /// as those of the first node.
    Domain(u32),
    /// The memory is beyond what the processor can address.
    Beyond(Range),
    /// Number of ranges for which the map of memory has no place.
    Ranges(usize),
    /// Number of further parts.
    More(usize),
}

/// The machine.
#[derive(Debug)]
pub struct Machine {
    processors: [Processor; MOST_PROCESSORS],
    count: usize,
    /// The proximity domains, by node: in the order of their numbers.
    domains: [u32; MOST_NODES],
    nodes: usize,
    map: Map,
    reasons: [LeftOut; MOST_REASONS],
    reason_count: usize,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Twice(id) => write!(f, "the processor with APIC id {id} is listed twice"),
            Self::LongId(id) => write!(
                f,
                "the processor with APIC id {id} is not used: without x2APIC, ids end at \
                 {LARGEST_SHORT_ID}"
            ),
            Self::Every => f.write_str("a processor is not used: its APIC id names all processors"),
            Self::Processor(id) => write!(
                f,
                "the processor with APIC id {id} is not used: there are more than {MOST_PROCESSORS}"
            ),
            Self::Domain(domain) => write!(
                f,
                "proximity domain {domain} counts as the first: there are more than {MOST_NODES}"
            ),
            Self::Beyond(Range { start, end }) => write!(
                f,
                "memory from {start:#x} to {end:#x} is not used: the processor can't address it"
            ),
            Self::Ranges(count) => write!(
                f,
                "{count} ranges of memory are not used: the map of memory has no place for them"
            ),
            Self::More(count) => write!(f, "{count} further findings of this kind"),
        }
    }
}

impl Machine {
    /// A machine without processors and memory.
    pub const NEW: Self = Self {
        processors: [Processor { apic_id: 0, node: 0 }; MOST_PROCESSORS],
        count: 0,
        domains: [0; MOST_NODES],
        nodes: 0,
        map: Map::NEW,
        reasons: [LeftOut::Every; MOST_REASONS],
        reason_count: 0,
    };

    /// Adds the memory that the loader calls usable, without the ranges `taken`. Called before
    /// [`describe`](Self::describe).
    pub fn add_memory(
        &mut self,
        usable: impl Iterator<Item = Range>,
        taken: &[Range],
        limits: Limits,
    ) {
        for range in usable {
            let (within, beyond) = range.split(limits.memory_end);
            self.map.add(within, taken);
            if beyond.length() > 0 {
                self.leave_out(LeftOut::Beyond(beyond));
            }
        }
    }

    /// Adds the processors and nodes of the firmware's tables, if there are any, and assigns the
    /// memory to its nodes. Called once.
    pub fn describe<M: Memory>(&mut self, tables: Option<&Tables<'_, M>>, limits: Limits) {
        if let Some(tables) = tables {
            self.add_domains(tables);
            self.add_processors(tables, limits);
            for affinity in tables.affinities() {
                if let Affinity::Memory { range, domain } = affinity {
                    let node = self.node(domain);
                    self.map.assign(range, node);
                }
            }
        }
        self.nodes = self.nodes.max(1);
        if self.map.dropped() > 0 {
            self.leave_out(LeftOut::Ranges(self.map.dropped()));
        }
    }

    fn add_domains<M: Memory>(&mut self, tables: &Tables<'_, M>) {
        for affinity in tables.affinities() {
            let (Affinity::Processor { domain, .. } | Affinity::Memory { domain, .. }) = affinity;
            let Err(at) = self.domains[..self.nodes].binary_search(&domain) else { continue };
            if self.nodes == MOST_NODES {
                self.leave_out(LeftOut::Domain(domain));
                continue;
            }
            self.domains.copy_within(at..self.nodes, at + 1);
            self.domains[at] = domain;
            self.nodes += 1;
        }
    }

    fn add_processors<M: Memory>(&mut self, tables: &Tables<'_, M>, limits: Limits) {
        for apic_id in tables.processors() {
            if let Some(reason) = self.refuses(apic_id, limits) {
                self.leave_out(reason);
                continue;
            }
            let domain = tables.affinities().find_map(|affinity| match affinity {
                Affinity::Processor { apic_id: other, domain } if other == apic_id => Some(domain),
                _ => None,
            });
            let node = domain.map_or(0, |domain| self.node(domain));
            self.processors[self.count] = Processor { apic_id, node };
            self.count += 1;
        }
    }

    /// FIRMWARE-1: returns why a processor is not used.
    fn refuses(&self, apic_id: u32, limits: Limits) -> Option<LeftOut> {
        if apic_id == EVERY {
            Some(LeftOut::Every)
        } else if !limits.long_ids && apic_id > LARGEST_SHORT_ID {
            Some(LeftOut::LongId(apic_id))
        } else if self.processors().iter().any(|one| one.apic_id == apic_id) {
            Some(LeftOut::Twice(apic_id))
        } else if self.count == MOST_PROCESSORS {
            Some(LeftOut::Processor(apic_id))
        } else {
            None
        }
    }

    fn leave_out(&mut self, reason: LeftOut) {
        if let Some(place) = self.reasons.get_mut(self.reason_count) {
            *place = reason;
        }
        self.reason_count += 1;
    }

    fn node(&self, domain: u32) -> u16 {
        self.domains[..self.nodes].binary_search(&domain).unwrap_or(0) as u16
    }

    /// Returns the parts of the description that are not used, in the order in which they were
    /// found.
    pub fn left_out(&self) -> impl Iterator<Item = LeftOut> + use<'_> {
        let kept = self.reason_count.min(MOST_REASONS);
        let more = Some(self.reason_count - kept).filter(|&more| more > 0).map(LeftOut::More);
        self.reasons[..kept].iter().copied().chain(more)
    }

    /// Returns the processors.
    #[must_use]
    pub fn processors(&self) -> &[Processor] {
        &self.processors[..self.count]
    }

    /// Returns the number of nodes, at least 1 after [`describe`](Self::describe).
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the map of memory.
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.map
    }
}
