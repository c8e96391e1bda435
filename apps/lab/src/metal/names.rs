//! The functions at the addresses of a backtrace, from the debug information of the image.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use addr2line::Context;
use gimli::{EndianArcSlice, RunTimeEndian};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

/// The debug information of an image.
pub struct Names {
    context: Context<EndianArcSlice<RunTimeEndian>>,
    /// The functions of the symbol table by address, for those that the lines leave nameless.
    symbols: BTreeMap<u64, String>,
}

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
        let is_function = |symbol: &object::Symbol<'_, '_>| symbol.kind() == SymbolKind::Text;
        let named = |symbol: object::Symbol<'_, '_>| {
            Some((symbol.address(), symbol.name().ok().map(demangled)?))
        };
        let symbols = file.symbols().filter(is_function).filter_map(named).collect();
        Context::from_dwarf(dwarf).ok().map(|context| Self { context, symbols })
    }

    /// The functions at `address`, the innermost first, each with its place if that is known.
    pub fn at(&self, address: u64) -> Vec<(String, String)> {
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let name = name.map(|name| demangled(&name));
            let name = name.or_else(|| self.symbol(address)).unwrap_or_else(|| "?".to_owned());
            let place = frame.location.and_then(|at| Some(format!("{}:{}", at.file?, at.line?)));
            found.push((name, place.unwrap_or_default()));
        }
        found
    }
}

impl Names {
    /// The function of the symbol table that begins at `address` or before it.
    fn symbol(&self, address: u64) -> Option<String> {
        self.symbols.range(..=address).next_back().map(|(_, name)| name.clone())
    }
}

/// The name as it stands in the source, without the hash.
fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}
