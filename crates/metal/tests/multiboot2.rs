//! The information of a multiboot2 loader: sound information is read, and malformed information
//! never makes the parser fail.

use antiphon_metal::bytes::Memory;
use antiphon_metal::multiboot2::Information;
use antiphon_metal::pvh::Range;
use proptest::prelude::*;

/// Physical memory that begins at `BASE`.
struct Ram(Vec<u8>);

const BASE: u64 = 0x2000;

impl Memory for Ram {
    fn read(&self, address: u64, length: usize) -> Option<&[u8]> {
        let from = usize::try_from(address.checked_sub(BASE)?).ok()?;
        self.0.get(from..from.checked_add(length)?)
    }
}

/// Information with these tags, and the end behind them.
fn information(tags: &[(u32, Vec<u8>)]) -> Ram {
    let mut bytes = vec![0; 8];
    for (kind, contents) in tags.iter().chain([&(0, Vec::new())]) {
        bytes.extend(kind.to_le_bytes());
        bytes.extend((8 + contents.len() as u32).to_le_bytes());
        bytes.extend(contents);
        bytes.resize(bytes.len().next_multiple_of(8), 0xcc);
    }
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ram(bytes)
}

/// A map whose entries have `length` bytes.
fn map(length: usize, entries: &[(u64, u64, u32)]) -> Vec<u8> {
    let mut bytes = (length as u32).to_le_bytes().to_vec();
    bytes.extend([0; 4]);
    for &(start, size, kind) in entries {
        let mut entry = start.to_le_bytes().to_vec();
        entry.extend(size.to_le_bytes());
        entry.extend(kind.to_le_bytes());
        entry.resize(length, 0);
        bytes.extend(entry);
    }
    bytes
}

#[test]
fn sound_information_is_read() {
    let entries = [(0, 0x9f000, 1), (0x9f000, 0x1000, 2), (1 << 20, 1 << 30, 1)];
    for length in [20, 24, 32] {
        let ram = information(&[
            (2, b"a loader\0".to_vec()),
            (1, b"program=hello one=1\0".to_vec()),
            (6, map(length, &entries)),
            (14, b"RSD PTR the old one.".to_vec()),
        ]);
        let info = Information::read(&ram, BASE).expect("sound information");
        assert_eq!(info.text(), "program=hello one=1");
        let expected = [
            Range { start: 0, end: 0x9f000 },
            Range { start: 1 << 20, end: (1 << 30) + (1 << 20) },
        ];
        let found: Vec<_> = info.usable().collect();
        assert_eq!(found, expected, "entries of {length} bytes");
        let pointer = ram.read(info.rsdp(), 20).expect("a root pointer");
        assert_eq!(pointer, b"RSD PTR the old one.");
    }
}

#[test]
fn the_newer_root_pointer_is_taken_wherever_it_is() {
    let (old, new) = ((14, vec![1; 20]), (15, vec![2; 36]));
    for tags in [[old.clone(), new.clone()], [new, old]] {
        let ram = information(&tags);
        let info = Information::read(&ram, BASE).expect("sound information");
        assert_eq!(ram.read(info.rsdp(), 36), Some(&[2; 36][..]));
    }
    let ram = information(&[]);
    let info = Information::read(&ram, BASE).expect("sound information");
    assert_eq!((info.rsdp(), info.text(), info.usable().count()), (0, "", 0));
}

#[test]
fn a_map_whose_entries_are_too_short_has_none() {
    let ram = information(&[(6, map(16, &[]))]);
    let info = Information::read(&ram, BASE).expect("sound information");
    assert_eq!(info.usable().count(), 0);
}

/// Reads all that there is to read; returns how much that was.
fn read_all(ram: &Ram, address: u64) -> usize {
    let Some(info) = Information::read(ram, address) else { return 0 };
    let ranges = info.usable().inspect(|range| assert!(range.start < range.end)).count();
    let rsdp = info.rsdp();
    assert!(rsdp == 0 || (BASE..BASE + ram.0.len() as u64).contains(&(rsdp - 1)));
    ranges + info.text().len()
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_failure(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        address in prop_oneof![Just(BASE), any::<u64>()],
    ) {
        let length = bytes.len();
        prop_assert!(read_all(&Ram(bytes), address) <= length);
    }

    #[test]
    fn changed_information_is_read_without_a_failure(
        changes in prop::collection::vec((0_usize..200, prop::sample::select(vec![
            0_u8, 1, 6, 7, 8, 14, 15, 20, 24, 0x7f, 0x80, 0xff,
        ])), 1..8),
        length in prop_oneof![Just(usize::MAX), 0_usize..200],
    ) {
        let mut ram = information(&[
            (1, b"program=hello\0".to_vec()),
            (6, map(24, &[(1 << 20, 1 << 24, 1), (1 << 32, 1 << 24, 1)])),
            (15, vec![0; 36]),
        ]);
        for (at, value) in changes {
            if let Some(byte) = ram.0.get_mut(at) {
                *byte = value;
            }
        }
        ram.0.truncate(length);
        // A range has an entry of 20 bytes at least, and a letter a byte.
        prop_assert!(read_all(&ram, BASE) <= ram.0.len());
    }
}
