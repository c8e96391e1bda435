//! Call sites in readable form: functions, files and lines.
//!
//! | module | does |
//! |---|---|
//! | [`image`] | functions of one file, by address and by name |
//! | [`source`] | lines and inlined functions of one file, from its debug information |
//! | [`separate`] | the separate file that has the debug information, if there is one |
//! | [`origin`] | whether the file at a path is the one that was mapped |
//! | [`package`] | what to install where debug information is missing |
//! | [`site`] | a call site, and how it is written |
//! | [`short`] | names that fit a row |
//!
//! Lines come from the DWARF sections of the module's file, or of its debug file. Functions come
//! from the symbol tables of both, and from the compressed table that some distributions leave in a
//! stripped file. Nothing is looked up before the program has ended, and only what is asked for is
//! read. By then, another file may be at a module's path: functions of such a file are not named,
//! and [`Symbols::notes`] says so.

mod image;
mod origin;
mod package;
mod separate;
mod short;
mod site;
mod source;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use antiphon_record::{FileId, Module};
use image::Image;
use origin::Unnamed;
pub use short::short;
pub use site::{CallSite, Frame};
use source::Source;

/// The modules that were asked for so far.
#[derive(Default)]
pub struct Symbols {
    modules: HashMap<Module, Names>,
}

/// The names of one module.
struct Names {
    path: PathBuf,
    image: Result<Image, Unnamed>,
    /// The path of its debug file, searched when the file itself lacks a name or lines.
    debug_file: OnceCell<Option<PathBuf>>,
    /// The symbol tables outside of the file: those of its debug file, or the compressed one.
    debug: OnceCell<Option<Image>>,
    source: OnceCell<Option<Source>>,
    /// Whether there was a call site without known lines.
    has_sites_without_lines: bool,
    /// The sites that were asked for so far, by offset.
    known: HashMap<u64, CallSite>,
}

impl Symbols {
    /// The call site that returns to `offset` in the file `module`, or to `address` without a file.
    pub fn site(&mut self, module: Option<&Module>, offset: u64, address: u64) -> CallSite {
        let site = self.caller(module, offset, address);
        if let Some(names) = module.map(|module| self.names(module)) {
            names.has_sites_without_lines |= site.frames.is_empty();
        }
        site
    }

    /// The same for a caller of a call site: missing lines are not noted.
    pub fn caller(&mut self, module: Option<&Module>, offset: u64, address: u64) -> CallSite {
        match module {
            Some(module) => self.names(module).site(offset),
            None => CallSite::named(format!("{address:#x}")),
        }
    }

    /// The function that begins at `offset` in the file `module`, or at `address` without a file.
    pub fn function_at(&mut self, module: Option<&Module>, offset: u64, address: u64) -> String {
        let Some(module) = module else { return format!("{address:#x}") };
        let names = self.names(module);
        match names.function(offset) {
            Some((name, 0)) => format!("{name} ({})", names.file()),
            Some((name, into)) => format!("{name}+{into:#x} ({})", names.file()),
            None => format!("{}+{offset:#x}", names.file()),
        }
    }

    /// The difference between the addresses where the process has mapped the file and those for
    /// which the file was linked, from a call that returns to `offset` of the file and to `address`
    /// in memory.
    pub fn load_bias(&mut self, module: &Module, offset: u64, address: u64) -> Option<u64> {
        let image = self.names(module).image.as_ref().ok()?;
        Some(address.wrapping_sub(image.address(offset)?))
    }

    /// The global variable at an address for which the file was linked: `name`, or `name+0x8`.
    pub fn variable(&mut self, module: &Module, address: u64) -> Option<String> {
        let names = self.names(module);
        let image = names.image.as_ref().ok()?;
        let found = image.variable(address).or_else(|| names.debug()?.variable(address));
        let (name, into) = found?;
        let name = demangled(&name);
        Some(if into == 0 { name } else { format!("{name}+{into:#x}") })
    }

    /// The ranges of the functions with that name, as offsets in the file that is at `path` now.
    pub fn function(&mut self, path: &str, name: &str) -> Vec<Range<u64>> {
        let module = Module { path: path.to_owned(), file: FileId::default() };
        self.names(&module).named(name)
    }

    /// The notes about missing names: modules without function names, and why; modules with sites
    /// without lines, and where to get those.
    pub fn notes(&self) -> Vec<String> {
        let unnamed = self.modules.values().filter_map(|names| {
            let why = names.image.as_ref().err()?;
            Some(format!("{} ({why})", names.path.display()))
        });
        let without_names = listed(unnamed.collect())
            .map(|list| format!("Call sites in these files have no function names: {list}."));
        let stripped = self.modules.values().filter_map(Names::missing);
        let without_lines = listed(stripped.collect())
            .map(|list| format!("Call sites in these files have no lines: {list}."));
        [without_names, without_lines].into_iter().flatten().collect()
    }

    fn names(&mut self, module: &Module) -> &mut Names {
        self.modules.entry(module.clone()).or_insert_with(|| Names::of(module))
    }
}

/// The first entries of a list, and how many more there are; `None` if it is empty.
fn listed(mut all: Vec<String>) -> Option<String> {
    all.sort();
    all.dedup();
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    (!all.is_empty()).then(|| format!("{}{more}", all.join(", ")))
}

/// The number of files that a note names.
const SHOWN: usize = 4;

impl Names {
    fn of(module: &Module) -> Self {
        Self {
            path: origin::path(module).into(),
            image: origin::open(module),
            debug_file: OnceCell::new(),
            debug: OnceCell::new(),
            source: OnceCell::new(),
            has_sites_without_lines: false,
            known: HashMap::new(),
        }
    }

    /// The name of the file, without its folder.
    fn file(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// The call site that returns to `offset` of the file.
    fn site(&mut self, offset: u64) -> CallSite {
        if let Some(known) = self.known.get(&offset) {
            return known.clone();
        }
        // The address that a call returns to may be the first one of the next function.
        let call = offset.saturating_sub(1);
        let function = self.function(call);
        let place = format!("{}+{offset:#x}", self.file());
        let name = match &function {
            Some((name, into)) => format!("{name}+{:#x} ({})", into + 1, self.file()),
            None => place.clone(),
        };
        let mut frames = self.frames(call);
        // The debug information of a function may lack its name.
        if let Some(outermost) = frames.last_mut()
            && outermost.function.is_empty()
        {
            outermost.function = function.map_or_else(|| place.clone(), |(name, _)| name);
        }
        let site = CallSite { name, place, frames, ..CallSite::default() };
        self.known.insert(offset, site.clone());
        site
    }

    /// The function at `offset` of the file, and the offset in it.
    fn function(&self, offset: u64) -> Option<(String, u64)> {
        let image = self.image.as_ref().ok()?;
        let address = image.address(offset)?;
        let found = image.function(address).or_else(|| self.debug()?.function(address));
        found.map(|(name, into)| (demangled(&name), into))
    }

    /// The functions at `offset` of the file, inlined ones first.
    fn frames(&self, offset: u64) -> Vec<Frame> {
        let lines = || Some(self.source()?.at(self.image.as_ref().ok()?.address(offset)?));
        let frame = |line: source::Line| Frame {
            function: line.function.as_deref().map(demangled).unwrap_or_default(),
            file: line.file,
            line: line.line,
        };
        lines().unwrap_or_default().into_iter().map(frame).collect()
    }

    /// The ranges of the functions with that name in the file, each once.
    fn named(&self, name: &str) -> Vec<Range<u64>> {
        let Ok(image) = &self.image else { return Vec::new() };
        let is = |written: &str| written == name || demangled(written) == name;
        let all = [Some(image), self.debug()].into_iter().flatten();
        let addresses = all.flat_map(|image| image.named(is));
        // A debug file contains no code: the offsets are those of the file itself.
        let mut found: Vec<_> = addresses.filter_map(|range| image.offsets(range)).collect();
        found.sort_by_key(|range| (range.start, range.end));
        found.dedup();
        found
    }

    fn debug_file(&self) -> Option<&Path> {
        let find = || separate::debug_file(&self.path, &self.image.as_ref().ok()?.build);
        self.debug_file.get_or_init(find).as_deref()
    }

    fn debug(&self) -> Option<&Image> {
        let open = || match self.debug_file() {
            Some(path) => Image::open(path).ok(),
            None => Image::of(separate::packed_symbols(&self.path)?).ok(),
        };
        self.debug.get_or_init(open).as_ref()
    }

    fn source(&self) -> Option<&Source> {
        let read = || {
            self.image.as_ref().ok()?;
            Source::read(&self.path, None).or_else(|| {
                let file = self.debug_file()?;
                Source::read(file, separate::shared_part(file).as_deref())
            })
        };
        self.source.get_or_init(read).as_ref()
    }

    /// The file and what to do, if it has call sites and no lines.
    fn missing(&self) -> Option<String> {
        let is_missing = self.has_sites_without_lines && self.source().is_none();
        if self.image.is_err() || !is_missing {
            return None;
        }
        let path = self.path.display();
        Some(match package::advice(&self.path) {
            Some(package) => format!("{path} (install {package})"),
            None => format!("{path} (compile it with -g)"),
        })
    }
}

/// The name in the notation of its language, without the arguments and the hash.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    // A C function may have a name that encodes a type in C++: `a` would be `signed char`.
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    let Ok(symbol) = cpp_demangle::Symbol::new(name) else { return name.to_owned() };
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    symbol.demangle_with_options(&options).unwrap_or_else(|_| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_in_this_program_has_its_function_and_line() {
        let image = Image::open(Path::new("/proc/self/exe")).expect("ELF");
        let is = |name: &str| name.contains("a_call_in_this_program_has_its_function_and_line");
        let found = image.named(is).into_iter().filter_map(|addresses| image.offsets(addresses));
        let path = std::fs::read_link("/proc/self/exe").expect("a path").display().to_string();
        let module = Module { path, file: FileId::default() };
        let mut symbols = Symbols::default();
        let sites = found.map(|range| symbols.site(Some(&module), range.end, 0));
        let here = |site: &CallSite| {
            let file = site.own().and_then(|own| own.file.as_deref());
            file.is_some_and(|file| file.ends_with(file!())) && site.label().contains("mod.rs:")
        };
        assert!(sites.collect::<Vec<_>>().iter().any(here));
        assert!(symbols.notes().is_empty(), "{:?}", symbols.notes());
    }

    #[test]
    fn names_are_demangled() {
        assert_eq!(demangled("pthread_mutex_lock"), "pthread_mutex_lock");
        assert_eq!(demangled("_ZN4absl5Mutex4LockEv"), "absl::Mutex::Lock");
        assert_eq!(demangled("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
    }

    #[test]
    fn what_has_no_file_keeps_its_address() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.site(None, 0, 0x7f12).name, "0x7f12");
        assert!(symbols.notes().is_empty());
        let module = |path: &str| Module { path: path.to_owned(), file: FileId::default() };
        let site = symbols.site(Some(&module("/no/such/lib.so")), 0x10, 0x7f12);
        assert_eq!((&*site.name, site.label()), ("lib.so+0x10", site.name.clone()));
        // The kernel's mark ` (deleted)` is not part of a file's name.
        let site = symbols.site(Some(&module("/no/such/old.so (deleted)")), 0x10, 0x7f12);
        assert_eq!(site.name, "old.so+0x10");
        let [note] = &symbols.notes()[..] else { panic!("{:?}", symbols.notes()) };
        let [first, second] = ["/no/such/lib.so (", "/no/such/old.so (deleted since"];
        assert!(note.contains(first) && note.contains(second), "{note}");
    }
}
