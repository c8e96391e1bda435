//! Reads the parts of an ELF file that tell which loader loads it.
//!
//! Only the header, the program headers and, on request, the names of the dynamic section are read.

use std::fs::File;
use std::path::Path;

use object::LittleEndian;
use object::elf::{self, DynamicTag, FileHeader32, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader, ProgramHeader as _};
use object::read::{ReadCache, ReadRef as _};

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
pub const OUR_MACHINE: u16 =
    if cfg!(target_arch = "x86_64") { elf::EM_X86_64.0 } else { elf::EM_AARCH64.0 };
/// `e_machine` of the 32-bit programs that also run on x86-64.
pub const I386: u16 = elf::EM_386.0;

/// Reads the file. `None` if it is not a little-endian ELF file.
pub fn read(path: &Path) -> Option<Elf> {
    let file = ReadCache::new(File::open(path).ok()?);
    let of_64 = parse::<FileHeader64<LittleEndian>>(&file, 64);
    of_64.or_else(|| parse::<FileHeader32<LittleEndian>>(&file, 32))
}

fn parse<H: FileHeader<Endian = LittleEndian>>(file: &ReadCache<File>, bits: u32) -> Option<Elf> {
    let header = H::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?;
    let name = segments.iter().find_map(|segment| segment.interpreter(endian, file).ok()?);
    let interpreter = name.and_then(|name| String::from_utf8(name.to_vec()).ok());
    Some(Elf { bits, machine: header.e_machine(endian).0, interpreter })
}

/// The names of a 64-bit program that the loader reads: of the libraries it needs, and of the
/// functions it imports and exports; each ends in zero. Empty if there are none.
pub fn names(path: &Path) -> Vec<u8> {
    let names = || {
        let file = &ReadCache::new(File::open(path).ok()?);
        let header = FileHeader64::<LittleEndian>::parse(file).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, file).ok()?;
        let entries = segments.iter().find_map(|segment| segment.dynamic(endian, file).ok()?)?;
        let value = |tag: DynamicTag| {
            entries.iter().find(|entry| entry.d_tag(endian) == tag).map(|entry| entry.d_val(endian))
        };
        let (address, length) = (value(elf::DT_STRTAB)?, value(elf::DT_STRSZ)?);
        let mut loaded = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
        let offset = loaded.find_map(|segment| {
            let within = address.checked_sub(segment.p_vaddr(endian))?;
            let is_there = within < segment.p_filesz(endian);
            is_there.then_some(segment.p_offset(endian) + within)
        })?;
        file.read_bytes_at(offset, length).ok().map(<[u8]>::to_vec)
    };
    names().unwrap_or_default()
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
