//! Tests of the machine that the firmware describes: whatever the tables say, a processor is listed
//! once and can be reached, memory is used once, and what is left out is reported.

mod common;

use antiphon_metal::acpi::{EVERY, Tables};
use antiphon_metal::machine::{Limits, MOST_NODES, MOST_PROCESSORS, Machine, Processor};
use antiphon_metal::memory::{FRAME, RANGES};
use antiphon_metal::pvh::Range;
use common::{BASE, machine, table};
use proptest::prelude::*;

const SHORT: Limits = Limits { long_ids: false, memory_end: 1 << 40 };
const LONG: Limits = Limits { long_ids: true, ..SHORT };
const ENABLED: u32 = 1;

/// An entry of a table of processors: of type 0, or of type 9 (x2APIC).
#[derive(Clone, Copy, Debug)]
enum Listed {
    Short(u8),
    Long(u32),
}

use Listed::{Long, Short};

/// A table of processors, all of them enabled.
fn madt(listed: &[Listed]) -> Vec<u8> {
    let mut body = 0xfee0_0000_u32.to_le_bytes().to_vec();
    body.extend(1_u32.to_le_bytes());
    for listed in listed {
        match listed {
            Short(id) => body.extend([0, 8, 0, *id, 1, 0, 0, 0]),
            Long(id) => {
                body.extend([9, 16, 0, 0]);
                body.extend(id.to_le_bytes());
                body.extend(ENABLED.to_le_bytes());
                body.extend([0; 4]);
            }
        }
    }
    table(b"APIC", &body)
}

/// A table of the nodes of memory: start, length and domain of each range.
fn srat(ranges: &[(u64, u64, u32)]) -> Vec<u8> {
    let mut body = vec![0; 12];
    for (start, length, domain) in ranges {
        body.extend([1, 40]);
        body.extend(domain.to_le_bytes());
        body.extend([0; 2]);
        body.extend(start.to_le_bytes());
        body.extend(length.to_le_bytes());
        body.extend([0; 4]);
        body.extend(ENABLED.to_le_bytes());
        body.extend([0; 8]);
    }
    table(b"SRAT", &body)
}

/// The machine that these tables describe, with these ranges of memory.
fn described(tables: &[Vec<u8>], usable: &[Range], limits: Limits) -> Box<Machine> {
    let ram = machine(tables);
    let tables = Tables::find(&ram, BASE).expect("a sound root");
    let mut described = Box::new(Machine::NEW);
    described.add_memory(usable.iter().copied(), &[], limits);
    described.describe(Some(&tables), limits);
    described
}

fn ids(machine: &Machine) -> Vec<u32> {
    machine.processors().iter().map(|one| one.apic_id).collect()
}

fn reasons(machine: &Machine) -> Vec<String> {
    machine.left_out().map(|reason| reason.to_string()).collect()
}

#[test]
fn a_processor_that_is_listed_twice_is_used_once() {
    for again in [Short(1), Long(1)] {
        let machine = described(&[madt(&[Short(0), Short(1), again, Short(2)])], &[], LONG);
        assert_eq!(ids(&machine), [0, 1, 2]);
        assert_eq!(reasons(&machine), ["the processor with APIC id 1 is listed twice"]);
    }
}

#[test]
fn a_processor_that_no_interrupt_reaches_is_not_used() {
    let tables = [madt(&[Short(0), Short(255), Long(254), Long(255), Long(256), Long(EVERY)])];
    let machine = described(&tables, &[], SHORT);
    assert_eq!(ids(&machine), [0, 254]);
    let reasons = reasons(&machine);
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert!(reasons[0].contains("names all processors"), "{reasons:?}");
    for (reason, id) in reasons[1..3].iter().zip([255, 256]) {
        let expected = format!("the processor with APIC id {id} is not used: without x2APIC");
        assert!(reason.starts_with(&expected), "{reasons:?}");
    }
    // With x2APIC, two of them are reached.
    assert_eq!(ids(&described(&tables, &[], LONG)), [0, 254, 255, 256]);
}

#[test]
fn more_processors_than_there_is_room_for_are_counted() {
    let listed: Vec<_> = (0..MOST_PROCESSORS as u32 + 40).map(Long).collect();
    let machine = described(&[madt(&listed)], &[], LONG);
    assert_eq!(machine.processors().len(), MOST_PROCESSORS);
    assert_eq!(
        reasons(&machine).last().map(String::as_str),
        Some("24 further findings of this kind")
    );
}

#[test]
fn ranges_without_a_place_in_the_map_are_reported() {
    let range =
        |at: usize| Range { start: at as u64 * 4 * FRAME, end: (at as u64 * 4 + 1) * FRAME };
    let usable: Vec<_> = (0..RANGES + 3).map(range).collect();
    let machine = described(&[], &usable[..RANGES], SHORT);
    assert_eq!(reasons(&machine), [""; 0]);
    let machine = described(&[], &usable, SHORT);
    assert_eq!(machine.map().regions().len(), RANGES);
    let expected = "3 ranges of memory are not used: the map of memory has no place for them";
    assert_eq!(reasons(&machine), [expected]);
}

#[test]
fn memory_at_the_end_of_the_address_space_is_reported_and_not_used() {
    let top = u64::MAX / FRAME * FRAME;
    let low = Range { start: 1 << 20, end: 1 << 21 };
    let high = Range { start: top - 10 * FRAME, end: u64::MAX };
    // A node's range that begins within the last frame, and one that ends there.
    let nodes = [(top + 1, u64::MAX - top - 1, 1), (1 << 20, u64::MAX - (1 << 20), 2)];
    let machine = described(&[srat(&nodes)], &[low, high], SHORT);
    assert_eq!(machine.map().end(), low.end);
    assert_eq!(machine.map().size(1), low.length(), "the second of the two domains");
    let reasons = reasons(&machine);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].ends_with("is not used: the processor can't address it"), "{reasons:?}");
}

#[test]
fn more_domains_than_there_is_room_for_are_reported() {
    let nodes: Vec<_> =
        (0..MOST_NODES as u32 + 1).map(|it| (u64::from(it) << 20, 1 << 20, it)).collect();
    let all = Range { start: 0, end: (MOST_NODES as u64 + 1) << 20 };
    let machine = described(&[srat(&nodes)], &[all], SHORT);
    assert_eq!(machine.nodes(), MOST_NODES);
    assert_eq!(machine.map().size(0), 2 << 20, "its own, and that of the last domain");
    assert_eq!(reasons(&machine).len(), 1);
}

/// Addresses near both ends of the address space, and elsewhere.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![0..64 * FRAME, (0..64 * FRAME).prop_map(|below| u64::MAX - below), any::<u64>()]
}

fn listed() -> impl Strategy<Value = Listed> {
    prop_oneof![
        any::<u8>().prop_map(Short),
        (0_u32..300).prop_map(Long),
        prop_oneof![Just(EVERY), any::<u32>()].prop_map(Long),
    ]
}

proptest! {
    #[test]
    fn any_processors_are_listed_once_and_can_be_reached(
        listed in prop::collection::vec(listed(), 0..60),
        long_ids in any::<bool>(),
    ) {
        let limits = Limits { long_ids, ..SHORT };
        let machine = described(&[madt(&listed)], &[], limits);
        let mut all = ids(&machine);
        let used = all.len();
        prop_assert!(all.iter().all(|&id| id != EVERY && (long_ids || id < 255)));
        all.sort_unstable();
        all.dedup();
        prop_assert_eq!(all.len(), used, "listed twice");
        // Each of the others has a reason.
        let counted: usize = machine
            .left_out()
            .map(|reason| match reason {
                antiphon_metal::machine::LeftOut::More(count) => count,
                _ => 1,
            })
            .sum();
        prop_assert_eq!(used + counted, listed.len());
    }

    #[test]
    fn any_memory_is_used_once_and_within_its_limits(
        usable in prop::collection::vec((address(), address()), 0..6),
        taken in prop::collection::vec((address(), address()), 0..3),
        nodes in prop::collection::vec((address(), address(), 0_u32..4), 0..5),
        bits in 32_u32..64,
    ) {
        let range = |&(one, other): &(u64, u64)| {
            let (start, end) = (one.min(other), one.max(other));
            Range { start, end }
        };
        let usable: Vec<_> = usable.iter().map(range).collect();
        let taken: Vec<_> = taken.iter().map(range).collect();
        let ram = machine(&[srat(&nodes)]);
        let tables = Tables::find(&ram, BASE).expect("a sound root");
        let limits = Limits { long_ids: false, memory_end: 1 << bits };
        let mut machine = Box::new(Machine::NEW);
        machine.add_memory(usable.iter().copied(), &taken, limits);
        machine.describe(Some(&tables), limits);
        let map = machine.map();
        prop_assert_eq!(map.dropped(), 0);
        let regions = map.regions();
        for (index, region) in regions.iter().enumerate() {
            let inside = region.range;
            prop_assert!(inside.length() > 0 && inside.end <= limits.memory_end);
            prop_assert!(inside.start % FRAME == 0 && inside.end % FRAME == 0);
            prop_assert!(taken.iter().all(|range| range.common(inside).length() == 0));
            prop_assert!(usize::from(region.node) < machine.nodes());
            let others = &regions[index + 1..];
            prop_assert!(others.iter().all(|other| other.range.common(inside).length() == 0));
        }
    }
}

#[test]
fn without_tables_there_is_one_node() {
    let mut machine = Box::new(Machine::NEW);
    machine.describe::<common::Ram>(None, SHORT);
    assert_eq!((machine.nodes(), machine.processors()), (1, &[][..] as &[Processor]));
}
