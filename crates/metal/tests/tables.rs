//! Tests of the firmware's tables: well-formed ones are read, and malformed ones never make the
//! parser panic.

mod common;

use antiphon_metal::acpi::{Affinity, PowerOff, Tables};
use antiphon_metal::memory::{FRAME, Frames, Map, Region};
use antiphon_metal::pvh::{Range, StartInfo};
use common::{BASE, Ram, machine, table};
use proptest::prelude::*;

/// A MADT with a disabled processor and one with an x2APIC id.
fn madt() -> Vec<u8> {
    let mut body = 0xfee0_0000_u32.to_le_bytes().to_vec();
    body.extend(1_u32.to_le_bytes());
    for (id, flags) in [(0, 1), (1, 1), (7, 0)] {
        body.extend([0, 8, 0, id, flags, 0, 0, 0]);
    }
    body.extend([9, 16, 0, 0, 0x2c, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    table(b"APIC", &body)
}

fn srat() -> Vec<u8> {
    let mut body = vec![0; 12];
    body.extend([0, 16, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut memory = vec![1, 40, 3, 0, 0, 0, 0, 0];
    memory.extend(0x10_0000_u64.to_le_bytes());
    memory.extend(0x20_0000_u64.to_le_bytes());
    memory.extend([0; 4]);
    memory.extend(1_u32.to_le_bytes());
    memory.extend([0; 8]);
    body.extend(memory);
    table(b"SRAT", &body)
}

#[test]
fn sound_tables_are_read() {
    let ram = machine(&[madt(), srat()]);
    let tables = Tables::find(&ram, BASE).expect("a sound root");
    assert_eq!(tables.local_apic(), Some(0xfee0_0000));
    assert_eq!(tables.processors().collect::<Vec<_>>(), [0, 1, 0x12c]);
    let range = Range { start: 0x10_0000, end: 0x30_0000 };
    let expected =
        [Affinity::Processor { apic_id: 1, domain: 3 }, Affinity::Memory { range, domain: 3 }];
    assert_eq!(tables.affinities().collect::<Vec<_>>(), expected);
    assert_eq!(tables.power_off(), None);
}

#[test]
fn a_table_whose_bytes_do_not_add_up_is_ignored() {
    let mut broken = madt();
    broken[50] ^= 1;
    let ram = machine(&[broken, srat()]);
    let tables = Tables::find(&ram, BASE).expect("a sound root");
    assert_eq!(tables.processors().count(), 0);
    assert_eq!(tables.affinities().count(), 2);
}

#[test]
fn the_way_to_switch_off_is_found() {
    let code = table(b"DSDT", b"\x10\x20_S5_\x12\x07\x04\x0a\x05\x00\x00\x00");
    let mut body = vec![0; 208];
    // The code is the first table.
    body[4..8].copy_from_slice(&(BASE as u32 + 36).to_le_bytes());
    body[28..32].copy_from_slice(&0x604_u32.to_le_bytes());
    let ram = machine(&[code, table(b"FACP", &body)]);
    let tables = Tables::find(&ram, BASE).expect("a sound root");
    let expected = PowerOff::Port { port: 0x604, value: 5 << 10 | 1 << 13 };
    assert_eq!(tables.power_off(), Some(expected));
}

/// Reads everything; returns the number of entries.
fn read_all(ram: &Ram, address: u64) -> usize {
    let Some(tables) = Tables::find(ram, address) else { return 0 };
    let counts = tables.processors().count() + tables.affinities().count();
    counts + usize::from(tables.local_apic().is_some()) + usize::from(tables.power_off().is_some())
}

/// Corrects the checksum of each table, so that the parser reads the changed bytes.
fn mend(ram: &mut Ram) {
    let length = ram.0.len();
    for at in 0..length.saturating_sub(36) {
        let signature: [u8; 4] = ram.0[at..at + 4].try_into().expect("four bytes");
        if [b"APIC", b"SRAT", b"XSDT", b"FACP", b"DSDT"].contains(&&signature) {
            let said = u32::from_le_bytes(ram.0[at + 4..at + 8].try_into().expect("four bytes"));
            let end = at.saturating_add(said as usize).min(length);
            let sum = ram.0[at..end].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
            ram.0[at + 9] = ram.0[at + 9].wrapping_sub(sum);
        }
    }
}

proptest! {
    #[test]
    fn changed_tables_are_read_without_a_failure(
        changes in prop::collection::vec((0_usize..400, any::<u8>()), 1..12),
        length in 0_usize..400,
        address in prop::sample::select(vec![BASE, 0, BASE + 1, u64::MAX - 3]),
    ) {
        let mut ram = machine(&[madt(), srat()]);
        for (at, value) in changes {
            if let Some(byte) = ram.0.get_mut(at) {
                *byte = value;
            }
        }
        mend(&mut ram);
        ram.0.truncate(length.max(40));
        // An entry has at least two bytes.
        prop_assert!(read_all(&ram, address) <= 400);
    }

    #[test]
    fn any_bytes_are_read_without_a_failure(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        address in any::<u64>(),
    ) {
        let ram = Ram(bytes);
        read_all(&ram, BASE);
        read_all(&ram, address);
        if let Some(info) = StartInfo::read(&ram, BASE) {
            info.usable(&ram).count();
            info.text(&ram);
        }
    }

    #[test]
    fn start_information_with_any_numbers_is_read_without_a_failure(
        command_line in any::<u64>(), map in any::<u64>(), entries in any::<u32>(),
        near in 0_u64..200, is_near in any::<bool>(),
    ) {
        let mut bytes = vec![0; 200];
        bytes[..4].copy_from_slice(&0x336e_c578_u32.to_le_bytes());
        bytes[4] = 1;
        bytes[24..32].copy_from_slice(&command_line.to_le_bytes());
        let map = if is_near { BASE + near } else { map };
        bytes[40..48].copy_from_slice(&map.to_le_bytes());
        bytes[48..52].copy_from_slice(&entries.to_le_bytes());
        let ram = Ram(bytes);
        if let Some(info) = StartInfo::read(&ram, BASE) {
            prop_assert!(info.usable(&ram).all(|range| range.start < range.end));
            prop_assert_eq!(info.text(&ram), "");
        }
    }

    #[test]
    fn a_map_has_what_is_usable_and_not_taken_once(
        usable in prop::collection::vec((0_u64..64, 1_u64..16), 1..6),
        taken in prop::collection::vec((0_u64..64, 1_u64..16), 0..3),
        nodes in prop::collection::vec((0_u64..64, 1_u64..32, 0_u16..4), 0..4),
    ) {
        let pages = |start: u64, length: u64| {
            Range { start: start * FRAME, end: (start + length) * FRAME }
        };
        let taken: Vec<_> = taken.iter().map(|&(start, length)| pages(start, length)).collect();
        let mut map = Map::NEW;
        // Ranges that do not overlap: each is in its own part.
        for (part, &(start, length)) in usable.iter().enumerate() {
            let range = pages(start + 100 * part as u64, length);
            map.add(range, &taken);
        }
        for &(start, length, node) in &nodes {
            map.assign(pages(start, length), node);
        }
        prop_assert_eq!(map.dropped(), 0);
        for page in 0..100 * usable.len() as u64 {
            let at = pages(page, 1);
            let is_in = |range: Range| range.common(at).length() > 0;
            let wanted = usable.iter().enumerate().any(|(part, &(start, length))| {
                is_in(pages(start + 100 * part as u64, length))
            }) && !taken.iter().any(|range| is_in(*range));
            let found: Vec<&Region> =
                map.regions().iter().filter(|region| is_in(region.range)).collect();
            prop_assert_eq!(found.len(), usize::from(wanted), "page {}", page);
            if let [region] = found[..] {
                let of = |&&(start, length, _): &&(u64, u64, u16)| is_in(pages(start, length));
                let node = nodes.iter().rev().find(of).map_or(0, |&(_, _, node)| node);
                prop_assert_eq!(region.node, node);
            }
        }
    }

    #[test]
    fn frames_are_taken_once(
        ranges in prop::collection::vec(1_u64..40, 1..5),
        takes in prop::collection::vec((1_u64..6, 0_u32..3), 1..40),
    ) {
        let mut frames = Frames::NEW;
        for (index, pages) in ranges.iter().enumerate() {
            let start = (1000 * index as u64 + 1) * FRAME;
            let added = frames.add(Range { start, end: start + pages * FRAME });
            prop_assert!(added);
        }
        let before = frames.left();
        let mut taken: Vec<Range> = Vec::new();
        for (pages, align) in takes {
            let align = FRAME << align;
            if let Some(range) = frames.take(pages * FRAME, align) {
                prop_assert_eq!(range.length(), pages * FRAME);
                prop_assert_eq!(range.start % align, 0);
                prop_assert!(taken.iter().all(|other| other.common(range).length() == 0));
                taken.push(range);
            }
        }
        let all: u64 = taken.iter().map(|range| range.length()).sum();
        prop_assert_eq!(frames.left(), before - all);
    }
}
