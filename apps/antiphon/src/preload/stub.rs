//! Builds an empty shared library for i386: a child that is a 32-bit program can preload it and is
//! not affected.
//!
//! ```text
//!   0    ELF header        52 bytes
//!   52   program headers   3 × 32: LOAD (all of it), DYNAMIC, GNU_STACK (not executable)
//!   148  dynamic section   6 × 8: HASH SYMTAB STRTAB STRSZ SYMENT NULL
//!   196  hash table        16: one bucket, one symbol, both nothing
//!   212  symbol table      16: the null symbol
//!   228  string table      1: the empty string
//! ```
//!
//! The dynamic section is in writable memory, because the loader relocates it in place. Layouts:
//! System V ABI, Intel386 supplement.

const HEADERS: u32 = 52;
const DYNAMIC: u32 = HEADERS + 3 * 32;
const HASH: u32 = DYNAMIC + 6 * 8;
const SYMBOLS: u32 = HASH + 16;
const STRINGS: u32 = SYMBOLS + 16;
const END: u32 = STRINGS + 1;

const READ: u32 = 4;
const WRITE: u32 = 2;

/// The bytes of the library.
pub fn library() -> Vec<u8> {
    let mut bytes = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // ET_DYN, EM_386; then version, entry, program headers, no section headers, flags.
    bytes.extend([3, 0, 3, 0]);
    words(&mut bytes, &[1, 0, HEADERS, 0, 0]);
    // The sizes of this header and of a program header, three program headers, no sections.
    for half in [52_u16, 32, 3, 40, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    // Type, offset, address twice, size twice, flags, alignment.
    words(&mut bytes, &[1, 0, 0, 0, END, END, READ | WRITE, 0x1000]);
    words(&mut bytes, &[2, DYNAMIC, DYNAMIC, DYNAMIC, 48, 48, READ | WRITE, 4]);
    words(&mut bytes, &[0x6474_e551, 0, 0, 0, 0, 0, READ | WRITE, 16]);
    // DT_HASH, DT_SYMTAB, DT_STRTAB, DT_STRSZ, DT_SYMENT, DT_NULL.
    words(&mut bytes, &[4, HASH, 6, SYMBOLS, 5, STRINGS, 10, 1, 11, 16, 0, 0]);
    words(&mut bytes, &[1, 1, 0, 0]);
    words(&mut bytes, &[0, 0, 0, 0]);
    bytes.push(0);
    bytes
}

fn words(bytes: &mut Vec<u8>, words: &[u32]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object as _, ObjectSegment as _};

    #[test]
    fn it_is_a_library_of_one_segment_without_symbols() {
        let bytes = library();
        assert_eq!(bytes.len(), END as usize);
        let file = object::File::parse(&bytes[..]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(file.architecture(), object::Architecture::I386);
        assert_eq!(file.kind(), object::ObjectKind::Dynamic);
        let sizes: Vec<_> = file.segments().map(|segment| segment.size()).collect();
        assert_eq!(sizes, [u64::from(END)]);
        assert_eq!(file.exports().map(Iterator::count).ok(), Some(0));
    }
}
