//! Source lines: the functions at an address, inlined ones too, with their files and lines.
//!
//! They come from the DWARF sections of an ELF file, from those that a split build leaves in other
//! files (`.dwo`, `.dwp`), and from those that several debug files share (`.gnu_debugaltlink`). The
//! sections are read, not mapped: a mapped file that is truncated kills its reader.

use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{Context, LookupContinuation as _, LookupResult, SplitDwarfLoad};
use gimli::{DwarfPackage, EndianArcSlice, Reader as _, RunTimeEndian};
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ReadCache};

/// A function at an address, according to the debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The function's name in the form of the symbol table.
    pub function: Option<String>,
    /// The path of its source file.
    pub file: Option<String>,
    /// The line in that file, from 1.
    pub line: Option<u32>,
}

/// The bytes of a section.
type Section = EndianArcSlice<RunTimeEndian>;

/// The debug information of a file.
pub struct Source {
    context: Context<Section>,
    /// The file in which a split build has packed its parts.
    package: Option<DwarfPackage<Section>>,
}

impl Source {
    /// Reads the debug information of the ELF file at `path`; `shared` is the file with the parts
    /// that it shares with others. `None` if no debug information can be read.
    pub fn read(path: &Path, shared: Option<&Path>) -> Option<Self> {
        let sections = Sections::open(path)?;
        if !sections.has_debug_info() {
            return None;
        }
        let mut dwarf = gimli::Dwarf::load(|id| sections.load(id.name())).ok()?;
        if let Some(shared) = shared.and_then(Sections::open) {
            dwarf.load_sup(|id| shared.load(id.name())).ok()?;
        }
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let context = Context::from_dwarf(dwarf).ok()?;
        Some(Self { context, package: package(path) })
    }

    /// The functions at `address` of the file, the innermost first: each is inlined into the next.
    /// Empty if none is known.
    pub fn at(&self, address: u64) -> Vec<Line> {
        let mut lookup = self.context.find_frames(address);
        let found = loop {
            match lookup {
                LookupResult::Output(found) => break found,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.split(&load));
                }
            }
        };
        let Ok(mut frames) = found else { return Vec::new() };
        let mut lines = Vec::new();
        // A frame that can't be read ends the list: the frames before it are right.
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|function| Some(function.raw_name().ok()?.into()));
            let (file, line) = frame.location.map_or((None, None), |at| (at.file, at.line));
            lines.push(Line { function: name, file: file.map(str::to_owned), line });
        }
        lines
    }

    /// The part of a split build that `load` requests.
    fn split(&self, load: &SplitDwarfLoad<Section>) -> Option<Arc<gimli::Dwarf<Section>>> {
        if let Some(package) = &self.package
            && let Ok(Some(unit)) = package.find_cu(load.dwo_id, &load.parent)
        {
            return Some(Arc::new(unit));
        }
        let mut path = PathBuf::new();
        for part in [load.comp_dir.as_ref(), Some(load.path.as_ref()?)].into_iter().flatten() {
            path.push(std::ffi::OsStr::from_bytes(&part.to_slice().ok()?));
        }
        let sections = Sections::open(&path)?;
        let load_part = |id: gimli::SectionId| sections.load(id.dwo_name().unwrap_or_default());
        let mut dwarf = gimli::Dwarf::load(load_part).ok()?;
        let header = dwarf.units().next().ok()??;
        // Another build may have left its file at this path.
        if dwarf.unit(header).ok()?.dwo_id != Some(load.dwo_id) {
            return None;
        }
        dwarf.make_dwo(&load.parent);
        Some(Arc::new(dwarf))
    }
}

/// The package of a split build: the file `file.dwp` beside `file`.
fn package(path: &Path) -> Option<DwarfPackage<Section>> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".dwp");
    let sections = Sections::open(Path::new(&beside))?;
    let load = |id: gimli::SectionId| sections.load(id.dwo_name().unwrap_or_default());
    DwarfPackage::load(load, Section::new(Arc::new([]), sections.endian)).ok()
}

/// The sections of an ELF file.
struct Sections {
    file: File,
    endian: RunTimeEndian,
}

impl Sections {
    fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let little = {
            let cache = ReadCache::new(&file);
            ElfFile64::<Endianness, _>::parse(&cache).ok()?.is_little_endian()
        };
        let endian = if little { RunTimeEndian::Little } else { RunTimeEndian::Big };
        Some(Self { file, endian })
    }

    fn has_debug_info(&self) -> bool {
        let cache = ReadCache::new(&self.file);
        let parsed = ElfFile64::<Endianness, _>::parse(&cache);
        // A file made by `objcopy --only-keep-debug` has the sections; in the file that was
        // stripped of them they are gone.
        parsed.is_ok_and(|elf| {
            elf.section_by_name(".debug_info").is_some_and(|section| section.size() > 0)
        })
    }

    /// The bytes of the section with that name; empty if there is no such section.
    fn load(&self, name: &str) -> Result<Section, gimli::Error> {
        // One cache per section: its copy is freed when the section is loaded.
        let cache = ReadCache::new(&self.file);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).ok();
        let section = elf.as_ref().and_then(|elf| elf.section_by_name(name));
        let bytes = section.and_then(|section| section.uncompressed_data().ok());
        Ok(Section::new(bytes.unwrap_or_default().into(), self.endian))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_debug_information_has_no_lines() {
        for path in ["/etc/passwd", "/dev/null", "/no/such/file"] {
            assert!(Source::read(Path::new(path), None).is_none(), "{path}");
        }
    }

    #[test]
    fn a_function_of_this_program_has_its_file_and_line() {
        let source = Source::read(Path::new("/proc/self/exe"), None).expect("debug information");
        let image = super::super::image::Image::open(Path::new("/proc/self/exe")).expect("ELF");
        let is = |name: &str| name.contains("has_its_file_and_line");
        let lines = image.named(is).iter().flat_map(|at| source.at(at.start)).collect::<Vec<_>>();
        let here = |line: &Line| line.file.as_deref().is_some_and(|file| file.ends_with(file!()));
        assert!(lines.iter().any(|line| here(line) && line.line.is_some()), "{lines:?}");
    }
}
