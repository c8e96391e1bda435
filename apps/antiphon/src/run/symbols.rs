//! Names of call sites: `function+0x1f (module)`.
//!
//! | module | does |
//! |---|---|
//! | [`image`] | functions of one file, by address and by name |
//! | [`origin`] | whether the file at a path is the one that was mapped |
//!
//! From the symbol tables of the module's file, and, where these know no function, of its debug
//! file if the distribution's package of that is installed (found by build id). Nothing is looked
//! up before the program has ended, and nothing is read but what is asked for. By then, another
//! file may stand at a module's path: that one's functions are not named, and [`Symbols::note`]
//! says so.

mod image;
mod origin;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use antiphon_record::{BuildId, FileId, Module};
use image::Image;
use origin::Unnamed;

/// The modules that were asked for so far.
#[derive(Default)]
pub struct Symbols {
    modules: HashMap<Module, Names>,
}

/// The names of one module.
struct Names {
    image: Result<Image, Unnamed>,
    /// Looked for where the file itself knows no function.
    debug: OnceCell<Option<Image>>,
    /// Functions that were asked for already, by offset, and how far into them it is.
    known: HashMap<u64, Option<(String, u64)>>,
}

impl Symbols {
    /// The call that returns to `offset` in the file `module`.
    pub fn name(&mut self, module: Option<&Module>, offset: u64, address: u64) -> String {
        let Some(module) = module else { return format!("{address:#x}") };
        let path = origin::path(module);
        let file = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
        // The address that a call returns to may be the next function's first.
        match self.names(module).function(offset.saturating_sub(1)) {
            Some((name, into)) => format!("{name}+{:#x} ({file})", into + 1),
            None => format!("{file}+{offset:#x}"),
        }
    }

    /// The places of the functions of that name, as offsets in the file that is at `path` now.
    pub fn function(&mut self, path: &str, name: &str) -> Vec<Range<u64>> {
        let module = Module { path: path.to_owned(), file: FileId::default() };
        self.names(&module).named(name)
    }

    /// The note about modules that were asked for and have no names, and why.
    pub fn note(&self) -> Option<String> {
        let unnamed = |(module, names): (&Module, &Names)| {
            let why = names.image.as_ref().err()?;
            Some(format!("{} ({why})", origin::path(module)))
        };
        let mut unnamed: Vec<_> = self.modules.iter().filter_map(unnamed).collect();
        unnamed.sort();
        unnamed.dedup();
        let more = unnamed.len().saturating_sub(SHOWN);
        unnamed.truncate(SHOWN);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        (!unnamed.is_empty()).then(|| {
            format!(
                "Call sites in these files have no function names: {}{more}.",
                unnamed.join(", ")
            )
        })
    }

    fn names(&mut self, module: &Module) -> &mut Names {
        let names = || Names::of(origin::open(module));
        self.modules.entry(module.clone()).or_insert_with(names)
    }
}

/// Files without names that are named in a note.
const SHOWN: usize = 4;

impl Names {
    fn of(image: Result<Image, Unnamed>) -> Self {
        Self { image, debug: OnceCell::new(), known: HashMap::new() }
    }

    /// The function at `offset` of the file, and how far into it.
    fn function(&mut self, offset: u64) -> Option<(String, u64)> {
        let image = self.image.as_ref().ok()?;
        if let Some(known) = self.known.get(&offset) {
            return known.clone();
        }
        let address = image.address(offset);
        let find = |address| image.function(address).or_else(|| self.debug()?.function(address));
        let found = address.and_then(find).map(|(name, into)| (demangled(&name), into));
        self.known.insert(offset, found.clone());
        found
    }

    /// The places of the functions of that name in the file, each once.
    fn named(&self, name: &str) -> Vec<Range<u64>> {
        let Ok(image) = &self.image else { return Vec::new() };
        let is = |written: &str| written == name || demangled(written) == name;
        let all = [Some(image), self.debug()].into_iter().flatten();
        let addresses = all.flat_map(|image| image.named(is));
        // A debug file has no bytes of its own.
        let mut found: Vec<_> = addresses.filter_map(|range| image.offsets(range)).collect();
        found.sort_by_key(|range| (range.start, range.end));
        found.dedup();
        found
    }

    fn debug(&self) -> Option<&Image> {
        let open = || {
            let image = self.image.as_ref().ok()?;
            Image::open(&debug_file(&image.build)?).ok()
        };
        self.debug.get_or_init(open).as_ref()
    }
}

/// The path where distributions put the debug file of that build.
fn debug_file(build: &BuildId) -> Option<PathBuf> {
    let (first, rest) = build.bytes().split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(PathBuf::from(format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug")))
}

/// The name as its language has it, without the arguments and the hash.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    // A C function may have the name of a type in C++'s code: `a` would be `signed char`.
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
    fn names_are_demangled() {
        assert_eq!(demangled("pthread_mutex_lock"), "pthread_mutex_lock");
        assert_eq!(demangled("_ZN4absl5Mutex4LockEv"), "absl::Mutex::Lock");
        assert_eq!(demangled("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
    }

    #[test]
    fn a_debug_file_is_named_by_its_build() {
        let path = debug_file(&BuildId::new(&[0xab, 0x01, 0xff]));
        assert_eq!(path, Some(PathBuf::from("/usr/lib/debug/.build-id/ab/01ff.debug")));
        assert_eq!(debug_file(&BuildId::default()), None);
    }

    #[test]
    fn what_has_no_file_keeps_its_address() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.name(None, 0, 0x7f12), "0x7f12");
        assert_eq!(symbols.note(), None);
        let module = |path: &str| Module { path: path.to_owned(), file: FileId::default() };
        let name = symbols.name(Some(&module("/no/such/lib.so")), 0x10, 0x7f12);
        assert_eq!(name, "lib.so+0x10");
        // The kernel's words about a file are not part of its name.
        let name = symbols.name(Some(&module("/no/such/old.so (deleted)")), 0x10, 0x7f12);
        assert_eq!(name, "old.so+0x10");
        let note = symbols.note().expect("a note");
        let [first, second] = ["/no/such/lib.so (", "/no/such/old.so (deleted since"];
        assert!(note.contains(first) && note.contains(second), "{note}");
    }
}
