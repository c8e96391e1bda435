//! Reads the parts of an ELF file that tell which loader loads it.
//!
//! Only the header, the program headers and, on request, the names of the dynamic section are read;
//! the layouts are in the System V ABI, "Object Files", "Program Loading" and "Dynamic Linking".

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The loader's view of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    /// Bits of an address: 32 or 64.
    pub bits: u32,
    /// `e_machine`: 62 is x86-64, 183 AArch64.
    pub machine: u16,
    /// The loader that the file names; `None` in a static program.
    pub interpreter: Option<String>,
}

/// `e_machine` of the programs for which this command's own library is built.
#[cfg(target_arch = "x86_64")]
pub const OUR_MACHINE: u16 = 62;
/// `e_machine` of the programs for which this command's own library is built.
#[cfg(target_arch = "aarch64")]
pub const OUR_MACHINE: u16 = 183;

/// `e_machine` of the 32-bit programs that also run on x86-64.
pub const I386: u16 = 3;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
/// The offset of the address in a 64-bit program header.
const P_VADDR: usize = 16;
/// More bytes than any program's table has: limits the memory that a damaged file costs.
const MOST_BYTES: u64 = 64 << 20;
const LITTLE: u8 = 1;

/// The offsets of the header's fields in one class of files.
struct Places {
    phoff: usize,
    phentsize: usize,
    phnum: usize,
    p_offset: usize,
    p_filesz: usize,
    word: usize,
}

const CLASS_32: Places =
    Places { phoff: 28, phentsize: 42, phnum: 44, p_offset: 4, p_filesz: 16, word: 4 };
const CLASS_64: Places =
    Places { phoff: 32, phentsize: 54, phnum: 56, p_offset: 8, p_filesz: 32, word: 8 };

/// Reads the file. `None` if it is not a little-endian ELF file.
pub fn read(path: &Path) -> Option<Elf> {
    let file = File::open(path).ok()?;
    let mut head = [0; 64];
    let length = file.read_at(&mut head, 0).ok()?;
    let head = head.get(..length)?;
    if !head.starts_with(b"\x7fELF") || *head.get(5)? != LITTLE {
        return None;
    }
    let (bits, places) = match *head.get(4)? {
        1 => (32, CLASS_32),
        2 => (64, CLASS_64),
        _ => return None,
    };
    let offset = number(head, places.phoff, places.word)?;
    let (size, count) = (number(head, places.phentsize, 2)?, number(head, places.phnum, 2)?);
    let mut headers = vec![0; usize::try_from(size * count).ok()?];
    file.read_exact_at(&mut headers, offset).ok()?;
    let interpreter = headers
        .chunks_exact(usize::try_from(size.max(1)).ok()?)
        .find(|header| number(header, 0, 4) == Some(u64::from(PT_INTERP)))
        .and_then(|header| {
            let at = number(header, places.p_offset, places.word)?;
            let length = number(header, places.p_filesz, places.word)?.min(4096);
            let mut name = vec![0; usize::try_from(length).ok()?];
            file.read_exact_at(&mut name, at).ok()?;
            name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
            String::from_utf8(name).ok()
        });
    Some(Elf { bits, machine: number(head, 18, 2)? as u16, interpreter })
}

/// The names of a 64-bit program that the loader reads: of the libraries it needs, and of the
/// functions it imports and exports; each ends in zero. Empty if there are none.
pub fn names(path: &Path) -> Vec<u8> {
    let names = || {
        let file = File::open(path).ok()?;
        let mut head = [0; 64];
        file.read_exact_at(&mut head, 0).ok()?;
        let places = CLASS_64;
        let (size, count) = (number(&head, places.phentsize, 2)?, number(&head, places.phnum, 2)?);
        let mut headers = vec![0; usize::try_from(size * count).ok()?];
        file.read_exact_at(&mut headers, number(&head, places.phoff, 8)?).ok()?;
        let headers = || headers.chunks_exact(usize::try_from(size.max(1)).unwrap_or(1));
        let is = |header: &[u8], kind: u32| number(header, 0, 4) == Some(u64::from(kind));
        let dynamic = headers().find(|header| is(header, PT_DYNAMIC))?;
        let length = number(dynamic, places.p_filesz, 8)?.min(MOST_BYTES);
        let mut entries = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut entries, number(dynamic, places.p_offset, 8)?).ok()?;
        let entry = |tag: u64| {
            let found = entries.chunks_exact(16).find(|entry| number(entry, 0, 8) == Some(tag))?;
            number(found, 8, 8)
        };
        let (address, length) = (entry(DT_STRTAB)?, entry(DT_STRSZ)?.min(MOST_BYTES));
        let offset = headers().filter(|header| is(header, PT_LOAD)).find_map(|header| {
            let begin = number(header, P_VADDR, 8)?;
            let within = address.checked_sub(begin)?;
            let whole = within < number(header, places.p_filesz, 8)?;
            whole.then_some(number(header, places.p_offset, 8)? + within)
        })?;
        let mut names = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut names, offset).ok()?;
        Some(names)
    };
    names().unwrap_or_default()
}

/// The number in `bytes` bytes at `at`, the least significant first.
fn number(from: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let field = from.get(at..at + bytes)?;
    Some(field.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_is_of_our_machine_and_has_a_loader() {
        let elf = read(Path::new("/proc/self/exe"));
        assert_eq!(elf.as_ref().map(|elf| (elf.bits, elf.machine)), Some((64, OUR_MACHINE)));
        assert!(elf.and_then(|elf| elf.interpreter).is_some_and(|name| name.contains("ld-")));
    }

    #[test]
    fn names_are_those_of_libraries_and_functions() {
        let names = names(Path::new("/proc/self/exe"));
        let has = |name: &[u8]| names.split(|&byte| byte == 0).any(|one| one == name);
        assert!(has(b"libc.so.6") && has(b"malloc") && !has(b"no_such_function"));
        assert!(super::names(Path::new("/etc/passwd")).is_empty());
    }

    #[test]
    fn a_text_is_no_program() {
        assert_eq!(read(Path::new("/etc/passwd")), None);
        assert_eq!(read(Path::new("/no/such/file")), None);
    }
}
