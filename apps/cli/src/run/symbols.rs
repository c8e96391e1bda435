//! Names of call sites: `function+0x1f (module)`.
//!
//! From the symbol tables of the module's file, and of its debug file if the distribution's package
//! of that is installed (found by build id). A stripped module has only the functions that it
//! exports, so a name further away than the symbol is long is none. Nothing is looked up before the
//! program has ended.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::read::ReadCache;
use object::{Object, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

/// The modules that were asked for so far.
#[derive(Default)]
pub struct Symbols {
    modules: HashMap<String, Module>,
}

/// Functions of one file, by address, and where the file's parts are mapped.
#[derive(Default)]
struct Module {
    functions: Vec<Function>,
    segments: Vec<Segment>,
}

struct Function {
    address: u64,
    size: u64,
    name: String,
}

struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

impl Symbols {
    /// The call that returns to `offset` in the file `module`.
    pub fn name(&mut self, module: Option<&str>, offset: u64, address: u64) -> String {
        let Some(path) = module else { return format!("{address:#x}") };
        let module = self.module(path);
        let file = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
        // The address that a call returns to may be the next function's first.
        match module.function(offset.saturating_sub(1)) {
            Some((name, into)) => format!("{name}+{:#x} ({file})", into + 1),
            None => format!("{file}+{offset:#x}"),
        }
    }

    /// Where the functions of that name are, as offsets in the file `module`.
    pub fn function(&mut self, module: &str, name: &str) -> Vec<Range<u64>> {
        self.module(module).named(name)
    }

    fn module(&mut self, path: &str) -> &Module {
        self.modules
            .entry(path.to_owned())
            .or_insert_with(|| Module::read(Path::new(path)).unwrap_or_default())
    }
}

impl Module {
    fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&cache).ok()?;
        let segments = file
            .segments()
            .map(|segment| {
                let (offset, bytes) = segment.file_range();
                Segment { offset, bytes, address: segment.address() }
            })
            .collect();
        let debug = file.build_id().ok().flatten().and_then(debug_file);
        let mut functions = functions(&file);
        functions.extend(debug.and_then(|path| functions_of(&path)).unwrap_or_default());
        functions.sort_by_key(|function| function.address);
        Some(Self { functions, segments })
    }

    /// Where the functions of that name are in the file, each once.
    fn named(&self, name: &str) -> Vec<Range<u64>> {
        let is = |function: &&Function| function.name == name || demangled(&function.name) == name;
        let mut found: Vec<_> = self
            .functions
            .iter()
            .filter(is)
            .filter_map(|function| {
                let address = function.address;
                let inside = |s: &&Segment| (s.address..s.address + s.bytes).contains(&address);
                let segment = self.segments.iter().find(inside)?;
                let begin = segment.offset + (address - segment.address);
                Some(begin..begin + function.size.max(1))
            })
            .collect();
        found.dedup();
        found
    }

    /// The function at `offset` of the file, and how far into it.
    fn function(&self, offset: u64) -> Option<(String, u64)> {
        let inside = |s: &&Segment| (s.offset..s.offset + s.bytes).contains(&offset);
        let segment = self.segments.iter().find(inside)?;
        let address = segment.address + (offset - segment.offset);
        let after = self.functions.partition_point(|function| function.address <= address);
        let nearest = self.functions[..after].last()?;
        // Of several names of one address, the first.
        let first = self.functions.partition_point(|f| f.address < nearest.address);
        let covers = |f: &&Function| address < f.address + f.size.max(1);
        let function = self.functions[first..after].iter().find(covers)?;
        Some((demangled(&function.name), address - function.address))
    }
}

fn functions<'a>(file: &impl Object<'a>) -> Vec<Function> {
    file.symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            let name = symbol.name().ok()?.to_owned();
            Some(Function { address: symbol.address(), size: symbol.size(), name })
        })
        .collect()
}

fn functions_of(path: &Path) -> Option<Vec<Function>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    object::File::parse(&cache).ok().map(|file| functions(&file))
}

/// Where distributions put the debug file of that build.
fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
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
    fn an_address_finds_the_function_that_it_is_in_and_no_other() {
        let function =
            |address, size, name: &str| Function { address, size, name: name.to_owned() };
        let module = Module {
            functions: vec![
                function(0x1000, 0x20, "a"),
                function(0x1000, 0x20, "alias"),
                function(0x1040, 0, "b"),
            ],
            segments: vec![Segment { offset: 0x400, bytes: 0x100, address: 0x1000 }],
        };
        assert_eq!(module.function(0x41f), Some(("a".to_owned(), 0x1f)));
        assert_eq!(module.function(0x420), None);
        assert_eq!(module.function(0x440), Some(("b".to_owned(), 0)));
        assert_eq!(module.function(0x500), None);
        let named = |name: &str| {
            module.named(name).iter().map(|found| (found.start, found.end)).collect::<Vec<_>>()
        };
        assert_eq!(named("alias"), [(0x400, 0x420)]);
        assert_eq!(named("b"), [(0x440, 0x441)]);
        assert_eq!(named("c"), []);
    }

    #[test]
    fn a_debug_file_is_named_by_its_build() {
        let path = debug_file(&[0xab, 0x01, 0xff]);
        assert_eq!(path, Some(PathBuf::from("/usr/lib/debug/.build-id/ab/01ff.debug")));
        assert_eq!(debug_file(&[]), None);
    }

    #[test]
    fn what_has_no_file_keeps_its_address() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.name(None, 0, 0x7f12), "0x7f12");
        assert_eq!(symbols.name(Some("/no/such/lib.so"), 0x10, 0x7f12), "lib.so+0x10");
    }
}
