//! The functions at the addresses of a backtrace, from the debug information of the image.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use addr2line::Context;
use gimli::{EndianArcSlice, RunTimeEndian};
use object::{Object as _, ObjectSection as _};

/// The debug information of an image.
pub struct Names(Context<EndianArcSlice<RunTimeEndian>>);

impl Names {
    /// Reads that of the file at `path`; `None` if it has none.
    pub fn read(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let section = |id: gimli::SectionId| {
            let data = file.section_by_name(id.name()).and_then(|section| section.data().ok());
            Ok::<_, gimli::Error>(EndianArcSlice::new(
                Arc::from(data.unwrap_or_default()),
                RunTimeEndian::Little,
            ))
        };
        let dwarf = gimli::Dwarf::load(section).ok()?;
        Context::from_dwarf(dwarf).ok().map(Self)
    }

    /// The functions at `address`, the innermost first, each with its place if that is known.
    pub fn at(&self, address: u64) -> Vec<(String, String)> {
        let Ok(mut frames) = self.0.find_frames(address).skip_all_loads() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let name = name.map_or_else(|| "?".into(), |name| demangled(&name));
            let place = frame.location.and_then(|at| Some(format!("{}:{}", at.file?, at.line?)));
            found.push((name, place.unwrap_or_default()));
        }
        found
    }
}

/// The name as it stands in the source, without the hash.
fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}
