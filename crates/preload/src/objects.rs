//! The objects that the loader has loaded: which is ours, which are the C library's, and what an
//! object defines itself.
//!
//! `dlsym` answers for a whole scope, may allocate, and is ours to answer ([`crate::lookup`]). What
//! is asked here is told from the loader's list (`link_map` in `link.h`) and from the tables of the
//! objects (System V ABI, "Dynamic Linking"; `DT_GNU_HASH`), without a call that could lock or
//! allocate. Only objects that were there at the start are looked at, which are never unloaded, and
//! the object of a caller, which is there while it calls.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{from_ref, null, null_mut};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicUsize};

// SAFETY: the signature of `dladdr1(3)`, which `shim.c` defines.
unsafe extern "C" {
    /// `dladdr1` in the version that every C library has (`shim.c`).
    fn antiphon_dladdr1(
        address: *const c_void,
        about: *mut libc::Dl_info,
        object: *mut *const Object,
        flags: c_int,
    ) -> c_int;
}

/// The public part of the loader's record of an object: `struct link_map`.
#[repr(C)]
pub(crate) struct Object {
    /// The offset that is added to the addresses in the file.
    base: usize,
    path: *const c_char,
    dynamic: *const Entry,
    /// The objects in the order in which they were loaded: the program, the preloaded ones, the
    /// others.
    next: *const Object,
    previous: *const Object,
}

/// `Elf64_Dyn`.
#[repr(C)]
struct Entry {
    tag: i64,
    value: usize,
}

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    _other: u8,
    section: u16,
    value: usize,
    _size: u64,
}

const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_SONAME: i64 = 14;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;

/// The object that has the code or data at `address`, if one has.
pub(crate) fn of(address: *const c_void) -> Option<*const Object> {
    const RTLD_DL_LINKMAP: c_int = 2;
    let mut about = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let mut object = null();
    // SAFETY: writes to both, which are ours; any address will do.
    let found =
        unsafe { antiphon_dladdr1(address, about.as_mut_ptr(), &raw mut object, RTLD_DL_LINKMAP) };
    (found != 0 && !object.is_null()).then_some(object)
}

/// This library. It is marked `nodelete`, so it stays.
pub(crate) fn ours() -> Option<&'static Object> {
    static OURS: AtomicPtr<Object> = AtomicPtr::new(null_mut());
    // Relaxed: the loader made it before it ran any code of ours.
    let mut object = OURS.load(Relaxed).cast_const();
    if object.is_null() {
        object = of(ours as *const c_void)?;
        OURS.store(object.cast_mut(), Relaxed);
    }
    // SAFETY: the loader's record of an object that stays.
    Some(unsafe { &*object })
}

/// The objects before ours in the order of loading, the nearest first: those that were preloaded
/// before us, and the program. They stay.
pub(crate) fn before_ours() -> impl Iterator<Item = &'static Object> {
    // SAFETY: null, or the record of an object that stays.
    core::iter::successors(ours(), |object| unsafe { object.previous.as_ref() }).skip(1)
}

/// All objects, the program first. Call it at the start, when none can be unloaded.
pub(crate) fn all() -> impl Iterator<Item = &'static Object> {
    let first = before_ours().last().or_else(ours);
    // SAFETY: null, or the record of an object that stays while this is asked.
    core::iter::successors(first, |object| unsafe { object.next.as_ref() })
}

/// The next function of that name behind us. Call it at the start.
pub(crate) fn next(name: &CStr) -> Option<*const c_void> {
    let ours = ours()?;
    let behind = all().skip_while(|object| !object.is(ours)).skip(1);
    behind.filter_map(|object| object.defines(name)).next()
}

/// Addresses of the C library: the objects that `pthread.h` may be in. An address in `begin` is
/// written last.
static C_LIBRARY: [[AtomicUsize; 2]; 2] = [const { [const { AtomicUsize::new(0) }; 2] }; 2];

/// Whether a function lies in the C library that this program is linked to.
pub(crate) fn is_c_librarys(function: *const c_void) -> bool {
    let ranges = C_LIBRARY.each_ref();
    // Acquire: pairs with the store below.
    if ranges[0][0].load(Acquire) == 0 {
        for (object, [begin, end]) in c_library().zip(&C_LIBRARY) {
            let range = object.range();
            end.store(range.end, Relaxed);
            // Release: pairs with the load above. What is written twice is the same.
            begin.store(range.start, Release);
        }
    }
    ranges
        .iter()
        .any(|[begin, end]| (begin.load(Relaxed)..end.load(Relaxed)).contains(&function.addr()))
}

/// The objects that the C library's functions are in; one from version 2.34 on, two before. Call it
/// at the start.
fn c_library() -> impl Iterator<Item = &'static Object> {
    all().filter(|object| {
        let name = object.soname().to_bytes();
        matches!(name, b"libc.so.6" | b"libpthread.so.0") && !object.range().is_empty()
    })
}

/// The C library's own function of that name, whatever was preloaded behind us. Call it at the
/// start.
pub(crate) fn c_librarys(name: &CStr) -> Option<*const c_void> {
    c_library().find_map(|object| object.defines(name))
}

impl Object {
    /// An address in it: that of its table for the loader.
    pub(crate) fn dynamic(&self) -> *const c_void {
        self.dynamic.cast()
    }

    /// The path that it was loaded from; empty for the program.
    pub(crate) fn path(&self) -> &CStr {
        // SAFETY: the loader's string, there as long as the object is.
        if self.path.is_null() { c"" } else { unsafe { CStr::from_ptr(self.path) } }
    }

    /// The entries of its dynamic section.
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        // SAFETY: null, or the section, which ends in an entry of the tag 0, where we leave it.
        let first = unsafe { self.dynamic.as_ref() };
        // SAFETY: as above.
        let all = core::iter::successors(first, |at| unsafe { from_ref(*at).add(1).as_ref() });
        all.take_while(|entry| entry.tag != DT_NULL)
    }

    fn entry(&self, tag: i64) -> Option<usize> {
        self.entries().find(|entry| entry.tag == tag).map(|entry| entry.value)
    }

    /// A table that its dynamic section names. The loader has put the address there, but not into
    /// a section that can't be written.
    fn table<T>(&self, tag: i64) -> Option<*const T> {
        let address = self.entry(tag)?;
        let address = if address < self.base { address + self.base } else { address };
        Some(core::ptr::with_exposed_provenance(address))
    }

    /// The texts that entries of that tag name.
    fn texts(&self, tag: i64) -> impl Iterator<Item = &CStr> {
        let strings = self.table::<c_char>(DT_STRTAB);
        let entries = self.entries().filter(move |entry| entry.tag == tag);
        // SAFETY: an offset into the table of strings, all of which end in zero.
        entries.filter_map(move |entry| Some(unsafe { CStr::from_ptr(strings?.add(entry.value)) }))
    }

    fn soname(&self) -> &CStr {
        self.texts(DT_SONAME).next().unwrap_or(c"")
    }

    /// The names of the libraries that it is linked to.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &CStr> {
        self.texts(DT_NEEDED)
    }

    /// The addresses of a library whose file begins at its base, as all do that a linker has made;
    /// empty for others.
    fn range(&self) -> core::ops::Range<usize> {
        const PT_LOAD: u32 = 1;
        let header: *const [u8; 64] = core::ptr::with_exposed_provenance(self.base);
        if header.is_null() {
            return 0..0;
        }
        // SAFETY: asked of the C library alone, which is mapped from its first byte on.
        let header = unsafe { &*header };
        if !header.starts_with(b"\x7fELF") {
            return 0..0;
        }
        let half = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        let (size, count) = (half(54), half(56));
        let mut offset = [0; 8];
        offset.copy_from_slice(&header[32..40]);
        let first = self.base + usize::from_ne_bytes(offset);
        let headers = (0..count).map(|nth| {
            let at = first + nth * size;
            // SAFETY: the program headers stand behind the file's header, in the same page or
            // segment, and are 8-aligned.
            unsafe { &*core::ptr::with_exposed_provenance::<libc::Elf64_Phdr>(at) }
        });
        let ends = headers.filter(|header| header.p_type == PT_LOAD);
        let end = ends.map(|header| (header.p_vaddr + header.p_memsz) as usize).max();
        self.base..self.base + end.unwrap_or(0)
    }

    /// The function of that name that this object defines itself, in its default version.
    pub(crate) fn defines(&self, name: &CStr) -> Option<*const c_void> {
        let symbols = Symbols {
            base: self.base,
            all: self.table(DT_SYMTAB)?,
            strings: self.table(DT_STRTAB)?,
            versions: self.table(DT_VERSYM).unwrap_or(null()),
        };
        match (self.table(DT_GNU_HASH), self.table(DT_HASH)) {
            (Some(table), _) => symbols.by_gnu_hash(table, name),
            (None, Some(table)) => symbols.one_by_one(table, name),
            (None, None) => None,
        }
    }

    pub(crate) fn is(&self, other: *const Object) -> bool {
        core::ptr::eq(from_ref(self), other)
    }
}

/// The symbols that an object offers and asks for.
struct Symbols {
    base: usize,
    all: *const Symbol,
    strings: *const c_char,
    /// Null: without versions.
    versions: *const u16,
}

impl Symbols {
    /// The address of symbol `at`, if it is a function of that name that is defined here, and no
    /// older version.
    ///
    /// # Safety
    ///
    /// There is a symbol of that number.
    unsafe fn defined(&self, at: usize, name: &CStr) -> Option<*const c_void> {
        const HIDDEN: u16 = 0x8000;
        const STT_NOTYPE: u8 = 0;
        const STT_FUNC: u8 = 2;
        // SAFETY: the caller's promise; its name is an offset into the strings, all of which end
        // in zero; there is a version for each symbol.
        let (symbol, its_name, version) = unsafe {
            let symbol = &*self.all.add(at);
            let name = CStr::from_ptr(self.strings.add(symbol.name as usize));
            let version = if self.versions.is_null() { 1 } else { *self.versions.add(at) };
            (symbol, name, version)
        };
        let fits = matches!(symbol.info & 15, STT_NOTYPE | STT_FUNC)
            && symbol.section != 0
            && symbol.value != 0
            && version & HIDDEN == 0
            && its_name == name;
        fits.then(|| core::ptr::with_exposed_provenance(self.base + symbol.value))
    }

    /// Looks a symbol up by `DT_GNU_HASH`: four numbers, a filter, buckets, and a chain of hashes
    /// in the order of the symbols, in which the last of a bucket has its lowest bit set.
    fn by_gnu_hash(&self, table: *const u32, name: &CStr) -> Option<*const c_void> {
        let step = |hash: u32, &byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(byte));
        let hash = name.to_bytes().iter().fold(5381, step);
        // SAFETY: what the table's own numbers say is there; a bucket is 0 or the first symbol of
        // a chain, each entry of which belongs to a symbol, up to the last of the bucket.
        unsafe {
            let [buckets, first, words] = [*table, *table.add(1), *table.add(2)];
            if buckets == 0 {
                return None;
            }
            let buckets_at = table.add(4 + 2 * words as usize);
            let chain = buckets_at.add(buckets as usize);
            let mut at = *buckets_at.add((hash % buckets) as usize);
            while at >= first && at != 0 {
                let entry = *chain.add((at - first) as usize);
                if entry | 1 == hash | 1
                    && let Some(address) = self.defined(at as usize, name)
                {
                    return Some(address);
                }
                if entry & 1 != 0 {
                    break;
                }
                at += 1;
            }
        }
        None
    }

    /// Looks a symbol up by `DT_HASH`, whose second number says how many symbols there are.
    fn one_by_one(&self, table: *const u32, name: &CStr) -> Option<*const c_void> {
        // SAFETY: the table's second number, and as many symbols.
        unsafe {
            let count = *table.add(1);
            (0..count as usize).find_map(|at| self.defined(at, name))
        }
    }
}
