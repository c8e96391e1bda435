//! The symbol tables of one ELF file: the function or variable at an address, and the addresses of
//! the functions with a given name.
//!
//! A big program has some hundred thousand symbols, and a report asks for a few. So each symbol
//! table is read in one piece, and only the place of a symbol's name is kept; the name is read from
//! the string table when a call site is in that function. The first call sites are found by a
//! linear search: sorting the functions would take longer. The file is read, not mapped: a mapped
//! file that is truncated kills its reader.
//!
//! Only 64-bit files are supported: the library is in no other process.

use std::cell::{Cell, OnceCell};
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use antiphon_record::BuildId;
use object::elf::{self, FileHeader64, SectionType, SymbolType};
use object::read::elf::{
    FileHeader as _, ProgramHeader as _, SectionHeader as _, SectionTable, Sym as _,
};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, SectionIndex};

/// An open ELF file.
pub struct Image {
    file: File,
    /// The file's build id; none if the file has none.
    pub build: BuildId,
    segments: Vec<Segment>,
    functions: OnceCell<Table>,
    variables: OnceCell<Table>,
}

/// A segment of the file that is loaded.
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

/// The functions of a file, or its global variables.
#[derive(Default)]
struct Table {
    /// The symbols in the order of the symbol tables, the larger table first.
    list: Vec<Symbol>,
    /// The number of searches by address so far.
    looked: Cell<u32>,
    /// Indices into the list, sorted by address. Built after many searches.
    sorted: OnceCell<Vec<u32>>,
    /// The ranges of the file with the string tables.
    strings: Vec<Range<u64>>,
}

struct Symbol {
    address: u64,
    size: u64,
    /// The offset in the file where the name begins, and the index of its string table.
    name: u64,
    strings: usize,
}

/// The number of searches that read the whole list. Sorting a list takes as long as some twenty of
/// them.
const ONE_BY_ONE: u32 = 16;

/// Longer names are cut off.
const LONGEST_NAME: usize = 1 << 16;

impl Image {
    /// Opens the file at `path`. Its symbols are read when they are asked for.
    ///
    /// # Errors
    ///
    /// If it can't be read, or is not a 64-bit ELF file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(File::open(path)?)
    }

    /// Takes a file that is open. Its symbols are read when they are asked for.
    ///
    /// # Errors
    ///
    /// If it can't be read, or is not a 64-bit ELF file.
    pub fn of(file: File) -> io::Result<Self> {
        let (build, segments) = parse_segments(&file).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, "it is not a 64-bit ELF file")
        })?;
        Ok(Self { file, build, segments, functions: OnceCell::new(), variables: OnceCell::new() })
    }

    /// The metadata of the open file.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// The address for which the byte at `offset` of the file was linked.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let inside = |s: &&Segment| (s.offset..s.offset + s.bytes).contains(&offset);
        let segment = self.segments.iter().find(inside)?;
        Some(segment.address + (offset - segment.offset))
    }

    /// The range of the file with the bytes that were linked for these addresses.
    pub fn offsets(&self, addresses: Range<u64>) -> Option<Range<u64>> {
        let Range { start, end } = addresses;
        let inside = |s: &&Segment| (s.address..s.address + s.bytes).contains(&start);
        let segment = self.segments.iter().find(inside)?;
        let begin = segment.offset + (start - segment.address);
        Some(begin..begin + (end - start))
    }

    /// The mangled name of the function that contains `address`, and the offset of `address` in it.
    /// A stripped file has only the functions that it exports, so an address behind the end of a
    /// function is in none.
    pub fn function(&self, address: u64) -> Option<(String, u64)> {
        let functions = self.functions();
        let function = functions.at(address)?;
        Some((self.name(functions, function)?, address - function.address))
    }

    /// The mangled name of the global variable that contains `address`, and the offset of `address`
    /// in it.
    pub fn variable(&self, address: u64) -> Option<(String, u64)> {
        let read = || Table::read(&self.file, is_variable).unwrap_or_default();
        let variables = self.variables.get_or_init(read);
        let variable = variables.at(address)?;
        Some((self.name(variables, variable)?, address - variable.address))
    }

    /// The addresses of the functions whose mangled name satisfies `is`.
    pub fn named(&self, is: impl Fn(&str) -> bool) -> Vec<Range<u64>> {
        let functions = self.functions();
        let texts: Vec<_> = functions.strings.iter().map(|range| self.read(range)).collect();
        let found = functions.list.iter().filter(|function| {
            let begin = (function.name - functions.strings[function.strings].start) as usize;
            let rest = texts[function.strings].get(begin..).unwrap_or_default();
            until_zero(rest).is_some_and(&is)
        });
        found.map(|found| found.address..found.address.saturating_add(found.size.max(1))).collect()
    }

    fn functions(&self) -> &Table {
        self.functions.get_or_init(|| Table::read(&self.file, is_function).unwrap_or_default())
    }

    fn name(&self, table: &Table, symbol: &Symbol) -> Option<String> {
        let end = table.strings[symbol.strings].end;
        let mut bytes = Vec::new();
        let mut length = 128;
        while length <= LONGEST_NAME {
            bytes = self.read(&(symbol.name..end.min(symbol.name + length as u64)));
            if bytes.contains(&0) || bytes.len() < length {
                break;
            }
            length *= 8;
        }
        until_zero(&bytes).map(str::to_owned)
    }

    /// The bytes in a range of the file; empty if the file is shorter.
    fn read(&self, range: &Range<u64>) -> Vec<u8> {
        let length = self.file.metadata().map_or(0, |about| about.len());
        if range.end > length || range.start > range.end {
            return Vec::new();
        }
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.file.read_exact_at(&mut bytes, range.start).map_or_else(|_| Vec::new(), |()| bytes)
    }
}

fn is_function(kind: SymbolType) -> bool {
    matches!(kind, elf::STT_FUNC | elf::STT_GNU_IFUNC)
}

fn is_variable(kind: SymbolType) -> bool {
    kind == elf::STT_OBJECT
}

/// The text before the first zero byte.
fn until_zero(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).ok().filter(|text| !text.is_empty())
}

fn parse_segments(file: &File) -> object::Result<(BuildId, Vec<Segment>)> {
    let data = &ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let mut build = BuildId::default();
    let mut segments = Vec::new();
    for segment in header.program_headers(endian, data)? {
        let (offset, bytes) = segment.file_range(endian);
        match segment.p_type(endian) {
            elf::PT_LOAD => {
                segments.push(Segment { offset, bytes, address: segment.p_vaddr(endian) });
            }
            elf::PT_NOTE if build.is_none() => {
                let notes = segment.data(endian, data).unwrap_or_default();
                build = BuildId::in_notes(notes).unwrap_or_default();
            }
            _ => {}
        }
    }
    Ok((build, segments))
}

impl Table {
    /// The symbols of these types.
    fn read(file: &File, is: fn(SymbolType) -> bool) -> object::Result<Self> {
        let data = &ReadCache::new(file);
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let mut all = Self::default();
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            // A table that can't be read counts as empty.
            let _ = all.add(kind, is, endian, &sections, data);
        }
        Ok(all)
    }

    fn add<'data, R: ReadRef<'data>>(
        &mut self,
        kind: SectionType,
        is: fn(SymbolType) -> bool,
        endian: Endianness,
        sections: &SectionTable<'data, FileHeader64<Endianness>, R>,
        data: R,
    ) -> object::Result<()> {
        let symbols = sections.symbols(endian, data, kind)?;
        let index = symbols.string_section();
        if index == SectionIndex(0) {
            return Ok(());
        }
        let Some((begin, bytes)) = sections.section(index)?.file_range(endian) else {
            return Ok(());
        };
        let strings = self.strings.len();
        self.strings.push(begin..begin.saturating_add(bytes));
        let found = symbols
            .iter()
            .filter(|symbol| is(symbol.st_type()) && !symbol.is_undefined(endian))
            .filter(|symbol| u64::from(symbol.st_name(endian)) < bytes)
            .map(|symbol| Symbol {
                address: symbol.st_value(endian),
                size: symbol.st_size(endian),
                name: begin + u64::from(symbol.st_name(endian)),
                strings,
            });
        self.list.extend(found);
        Ok(())
    }

    /// The symbol that contains `address`: the first of those that begin nearest before it.
    fn at(&self, address: u64) -> Option<&Symbol> {
        self.looked.set(self.looked.get().saturating_add(1));
        if self.looked.get() <= ONE_BY_ONE {
            return first_of_nearest(self.list.iter(), address);
        }
        let sorted = self.sorted.get_or_init(|| {
            // No file has more symbols than fit in a `u32`: each takes 24 bytes of four gigabytes.
            let mut sorted: Vec<u32> = (0..self.list.len() as u32).collect();
            // A stable sort: of several names of one address the first stays the first.
            sorted.sort_by_key(|&at| self.list[at as usize].address);
            sorted
        });
        let address_of = |at: u32| self.list[at as usize].address;
        let after = sorted.partition_point(|&at| address_of(at) <= address);
        let nearest = address_of(*sorted[..after].last()?);
        let first = sorted[..after].partition_point(|&at| address_of(at) < nearest);
        first_of_nearest(sorted[first..after].iter().map(|&at| &self.list[at as usize]), address)
    }
}

/// The first symbol that contains `address`, among those that begin nearest before it.
fn first_of_nearest<'a>(
    symbols: impl Iterator<Item = &'a Symbol>,
    address: u64,
) -> Option<&'a Symbol> {
    let (mut nearest, mut found) = (0, None);
    for symbol in symbols.filter(|symbol| symbol.address <= address) {
        if symbol.address > nearest {
            (nearest, found) = (symbol.address, None);
        }
        let covers = address - symbol.address < symbol.size.max(1);
        if symbol.address == nearest && found.is_none() && covers {
            found = Some(symbol);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_finds_the_function_that_it_is_in_and_no_other() {
        let function = |address, size, name| Symbol { address, size, name, strings: 0 };
        let functions = Table {
            list: vec![
                function(u64::MAX - 1, 0x20, 4),
                function(0x1000, 0x20, 1),
                function(0x1040, 0, 3),
                function(0x1000, 0x20, 2),
                function(0xf00, 0x200, 5),
            ],
            strings: std::iter::once(0..9).collect(),
            ..Table::default()
        };
        let at = |address| functions.at(address).map(|function| function.name);
        // First by the linear search, and then by the sorted list.
        for _ in 0..=ONE_BY_ONE {
            assert_eq!([0xeff, 0xfff, 0x1000, 0x101f].map(at), [None, Some(5), Some(1), Some(1)]);
            assert_eq!([0x1020, 0x1040, 0x1041, u64::MAX].map(at), [None, Some(3), None, Some(4)]);
        }
        assert!(functions.sorted.get().is_some());
    }

    /// The test program itself, and one of its functions.
    fn own() -> (Image, Range<u64>) {
        let image = Image::open(Path::new("/proc/self/exe")).expect("an ELF file");
        let is = |name: &str| name.contains("symbols5image5tests3own");
        let found = image.named(is);
        assert!(!found.is_empty());
        (image, found[0].clone())
    }

    #[test]
    fn a_function_is_found_by_name_and_by_address() {
        let (image, addresses) = own();
        let offsets = image.offsets(addresses.clone()).expect("it is loaded");
        assert_eq!(image.address(offsets.start), Some(addresses.start));
        let (name, into) = image.function(addresses.start).expect("a function");
        assert!(name.contains("image") && into == 0, "{name}+{into}");
        assert!(image.function(0).is_none() && image.address(u64::MAX).is_none());
    }

    /// Bytes that this thread has read so far.
    fn read_so_far() -> Option<u64> {
        let counts = std::fs::read_to_string("/proc/thread-self/io").ok()?;
        counts.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok())
    }

    #[test]
    fn one_name_is_read_and_not_those_of_all_functions() {
        let (other, addresses) = own();
        let tables = 24 * (other.functions().list.len() as u64) * 4;
        let image = Image::open(Path::new("/proc/self/exe")).expect("an ELF file");
        let Some(before) = read_so_far() else {
            return eprintln!("skipped: the kernel does not count what is read");
        };
        assert!(image.function(addresses.start).is_some());
        let read = read_so_far().unwrap_or(u64::MAX) - before;
        // A symbol takes 24 bytes, and not only functions have one; a name takes a hundred.
        assert!(read < tables + (1 << 16), "{read} bytes for {tables} of symbols");
    }

    #[test]
    fn what_is_no_program_has_no_functions() {
        for path in ["/etc/passwd", "/dev/null", "/proc/self/maps"] {
            assert!(Image::open(Path::new(path)).is_err(), "{path}");
        }
    }
}
