//! The objects that the loader has loaded: ours, the C library's, and the symbols that an object
//! defines.
//!
//! `dlsym` searches a whole scope, may allocate, and is replaced by this library
//! ([`crate::lookup`]). This file reads the loader's list (`link_map` in `link.h`) and the tables
//! of the objects (System V ABI, "Dynamic Linking"; `DT_GNU_HASH`) instead, without a call that
//! could lock or allocate. It reads only objects that were loaded at the start, which are never
//! unloaded, and the object of a caller, which stays loaded during the call.

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

/// The object whose code or data is at `address`, if there is one.
pub(crate) fn of(address: *const c_void) -> Option<*const Object> {
    const RTLD_DL_LINKMAP: c_int = 2;
    let mut about = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let mut object = null();
    // SAFETY: the function writes to both, which are ours; any address is allowed.
    let found =
        unsafe { antiphon_dladdr1(address, about.as_mut_ptr(), &raw mut object, RTLD_DL_LINKMAP) };
    (found != 0 && !object.is_null()).then_some(object)
}

/// The record of this library. It is marked `nodelete`, so it is never unloaded.
pub(crate) fn ours() -> Option<&'static Object> {
    static OURS: AtomicPtr<Object> = AtomicPtr::new(null_mut());
    // Relaxed: the loader created the record before it ran any code of ours.
    let mut object = OURS.load(Relaxed).cast_const();
    if object.is_null() {
        object = of(ours as *const c_void)?;
        OURS.store(object.cast_mut(), Relaxed);
    }
    // SAFETY: the loader's record of an object that is never unloaded.
    Some(unsafe { &*object })
}

/// The objects before ours in the order of loading, the nearest first: those that were preloaded
/// before us, and the program. They are never unloaded.
pub(crate) fn before_ours() -> impl Iterator<Item = &'static Object> {
    // SAFETY: null, or the record of an object that is never unloaded.
    core::iter::successors(ours(), |object| unsafe { object.previous.as_ref() }).skip(1)
}

/// All objects, the program first. To be called at load, when none can be unloaded.
pub(crate) fn all() -> impl Iterator<Item = &'static Object> {
    let first = before_ours().last().or_else(ours);
    // SAFETY: null, or the record of an object that is not unloaded during the call.
    core::iter::successors(first, |object| unsafe { object.next.as_ref() })
}

/// The next function `name` in the search order behind us. To be called at load.
pub(crate) fn next(name: &CStr) -> Option<*const c_void> {
    let ours = ours()?;
    let behind = all().skip_while(|object| !object.is(ours)).skip(1);
    behind.filter_map(|object| object.defines(name)).next()
}

/// Address ranges of the objects that may define the functions of `pthread.h`. The beginning is
/// written last.
static C_LIBRARY: [[AtomicUsize; 2]; 2] = [const { [const { AtomicUsize::new(0) }; 2] }; 2];

/// Returns whether a function is in the C library that this program is linked to.
pub(crate) fn is_c_librarys(function: *const c_void) -> bool {
    let ranges = C_LIBRARY.each_ref();
    // Acquire: pairs with the release store below.
    if ranges[0][0].load(Acquire) == 0 {
        for (object, [begin, end]) in c_library().zip(&C_LIBRARY) {
            let range = object.range();
            end.store(range.end, Relaxed);
            // Release: pairs with the acquire load above. Racing threads write the same values.
            begin.store(range.start, Release);
        }
    }
    ranges
        .iter()
        .any(|[begin, end]| (begin.load(Relaxed)..end.load(Relaxed)).contains(&function.addr()))
}

/// The objects that define the C library's functions: one from version 2.34 on, two before. To be
/// called at load.
fn c_library() -> impl Iterator<Item = &'static Object> {
    all().filter(|object| {
        let name = object.soname().to_bytes();
        matches!(name, b"libc.so.6" | b"libpthread.so.0") && !object.range().is_empty()
    })
}

/// The C library's own function `name`, whatever was preloaded behind us. To be called at load.
pub(crate) fn c_librarys(name: &CStr) -> Option<*const c_void> {
    c_library().find_map(|object| object.defines(name))
}

impl Object {
    /// An address in the object: that of its dynamic section.
    pub(crate) fn dynamic(&self) -> *const c_void {
        self.dynamic.cast()
    }

    /// The path that the object was loaded from; empty for the program.
    pub(crate) fn path(&self) -> &CStr {
        // SAFETY: the loader's string, which lives as long as the object.
        if self.path.is_null() { c"" } else { unsafe { CStr::from_ptr(self.path) } }
    }

    /// The entries of the object's dynamic section.
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        // SAFETY: null, or the section, which ends with an entry of tag 0, where the iteration
        // stops.
        let first = unsafe { self.dynamic.as_ref() };
        // SAFETY: no entry after the one of tag 0 is read.
        let all = core::iter::successors(first, |at| unsafe { from_ref(*at).add(1).as_ref() });
        all.take_while(|entry| entry.tag != DT_NULL)
    }

    fn entry(&self, tag: i64) -> Option<usize> {
        self.entries().find(|entry| entry.tag == tag).map(|entry| entry.value)
    }

    /// A table that the dynamic section refers to. The loader has stored its address there, unless
    /// the section is read-only.
    fn table<T>(&self, tag: i64) -> Option<*const T> {
        let address = self.entry(tag)?;
        let address = if address < self.base { address + self.base } else { address };
        Some(core::ptr::with_exposed_provenance(address))
    }

    /// The strings that entries of this tag refer to.
    fn texts(&self, tag: i64) -> impl Iterator<Item = &CStr> {
        let strings = self.table::<c_char>(DT_STRTAB);
        let entries = self.entries().filter(move |entry| entry.tag == tag);
        // SAFETY: an offset into the string table, whose strings all end in zero.
        entries.filter_map(move |entry| Some(unsafe { CStr::from_ptr(strings?.add(entry.value)) }))
    }

    fn soname(&self) -> &CStr {
        self.texts(DT_SONAME).next().unwrap_or(c"")
    }

    /// The names of the libraries that the object is linked to.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &CStr> {
        self.texts(DT_NEEDED)
    }

    /// The addresses of a library whose file is mapped at its base, as linkers arrange it; empty
    /// for others.
    fn range(&self) -> core::ops::Range<usize> {
        const PT_LOAD: u32 = 1;
        let header: *const [u8; 64] = core::ptr::with_exposed_provenance(self.base);
        if header.is_null() {
            return 0..0;
        }
        // SAFETY: called for the C library only, which is mapped from its first byte on.
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
            // SAFETY: the program headers follow the file's header, in the same page or segment,
            // and are 8-aligned.
            unsafe { &*core::ptr::with_exposed_provenance::<libc::Elf64_Phdr>(at) }
        });
        let ends = headers.filter(|header| header.p_type == PT_LOAD);
        let end = ends.map(|header| (header.p_vaddr + header.p_memsz) as usize).max();
        self.base..self.base + end.unwrap_or(0)
    }

    /// The function `name` that this object defines, in its default version.
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

/// The symbol table of an object.
struct Symbols {
    base: usize,
    all: *const Symbol,
    strings: *const c_char,
    /// Null if the object has no versions.
    versions: *const u16,
}

impl Symbols {
    /// The address of symbol number `at`, if it is a function `name` that this object defines, in
    /// its default version.
    ///
    /// # Safety
    ///
    /// A symbol with this number exists.
    unsafe fn defined(&self, at: usize, name: &CStr) -> Option<*const c_void> {
        const HIDDEN: u16 = 0x8000;
        const STT_NOTYPE: u8 = 0;
        const STT_FUNC: u8 = 2;
        // SAFETY: the caller promises the symbol; its name is an offset into the strings, which all
        // end in zero; each symbol has a version.
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
    /// in the order of the symbols, in which the last hash of a bucket has its lowest bit set.
    fn by_gnu_hash(&self, table: *const u32, name: &CStr) -> Option<*const c_void> {
        let step = |hash: u32, &byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(byte));
        let hash = name.to_bytes().iter().fold(5381, step);
        // SAFETY: the table has the size that its first numbers give; a bucket is 0 or the first
        // symbol of a chain, each entry of which belongs to a symbol, up to the last of the bucket.
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

    /// Looks a symbol up by `DT_HASH`, whose second number is the number of symbols.
    fn one_by_one(&self, table: *const u32, name: &CStr) -> Option<*const c_void> {
        // SAFETY: the table has a second number, and the object that many symbols.
        unsafe {
            let count = *table.add(1);
            (0..count as usize).find_map(|at| self.defined(at, name))
        }
    }
}
