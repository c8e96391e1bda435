//! The functions that executable mapped files define, from their dynamic sections.
//!
//! `dlsym` answers a similar question. But it may allocate and lock, other libraries may interpose
//! it, and for a function whose address a program takes it may return the program's own stub. This
//! module reads the tables themselves; their layout is that of the System V ABI and, for the GNU
//! hash table, of the GNU linker.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::{null, with_exposed_provenance};
use core::slice;

/// An entry of a dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

/// An entry of a symbol table.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: u64,
}

const _: () = assert!(size_of::<Dynamic>() == 16 && size_of::<Symbol>() == 24);

const DT_NULL: i64 = 0;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// The section of a symbol that is defined elsewhere.
const UNDEFINED: u16 = 0;

/// A mapped file with its tables.
pub struct Image {
    base: usize,
    symbols: *const Symbol,
    strings: *const u8,
    /// Either hash table may be null, but not both.
    gnu_hash: *const u32,
    hash: *const u32,
}

impl Image {
    /// The file with load base `base` and the dynamic section at `dynamic`. `None` if a table is
    /// missing.
    ///
    /// # Safety
    ///
    /// A dynamic section must be at `dynamic`, and the file must stay mapped as long as the result
    /// is used.
    unsafe fn new(base: usize, dynamic: usize) -> Option<Self> {
        let mut image =
            Self { base, symbols: null(), strings: null(), gnu_hash: null(), hash: null() };
        let mut entry: *const Dynamic = with_exposed_provenance(dynamic);
        loop {
            // SAFETY: the section ends with `DT_NULL`, where the loop ends.
            let Dynamic { tag, value } = unsafe { &*entry };
            // The loader has relocated these values to addresses, except in files that it has not
            // loaded itself (the vDSO), where they are offsets.
            let at = if *value < base { base + value } else { *value };
            match *tag {
                DT_NULL => break,
                DT_SYMTAB => image.symbols = with_exposed_provenance(at),
                DT_STRTAB => image.strings = with_exposed_provenance(at),
                DT_HASH => image.hash = with_exposed_provenance(at),
                DT_GNU_HASH => image.gnu_hash = with_exposed_provenance(at),
                _ => {}
            }
            // SAFETY: this was not the last entry.
            entry = unsafe { entry.add(1) };
        }
        let hashed = !image.gnu_hash.is_null() || !image.hash.is_null();
        (!image.symbols.is_null() && !image.strings.is_null() && hashed).then_some(image)
    }

    /// The load base of the file, which distinguishes it from others.
    #[must_use]
    pub fn base(&self) -> usize {
        self.base
    }

    /// The address of the symbol that the file defines by that name; `None` if it defines none.
    #[must_use]
    pub fn find(&self, name: &CStr) -> Option<usize> {
        // SAFETY: the tables are those of a mapped file, as its linker made them.
        unsafe {
            if self.gnu_hash.is_null() { self.find_by_hash(name) } else { self.find_by_gnu(name) }
        }
    }

    /// # Safety
    ///
    /// `hash` is a System V hash table.
    unsafe fn find_by_hash(&self, name: &CStr) -> Option<usize> {
        // SAFETY: number of buckets, number of symbols, and then both lists. There are few symbols
        // (vDSO), so all are checked.
        let symbols = unsafe { *self.hash.add(1) };
        // SAFETY: the index is below the number of symbols.
        (1..symbols).find_map(|index| unsafe { self.defined(index, name) })
    }

    /// # Safety
    ///
    /// `gnu_hash` is a GNU hash table.
    unsafe fn find_by_gnu(&self, name: &CStr) -> Option<usize> {
        let hash = name
            .to_bytes()
            .iter()
            .fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add((*byte).into()));
        // SAFETY: the table's header; then the filter's words of 64 bits, the buckets, and the
        // hashes of the symbols from `first` on, of which the last of a bucket is odd.
        unsafe {
            let [buckets, first, filters, _] = *self.gnu_hash.cast::<[u32; 4]>();
            if buckets == 0 {
                return None;
            }
            let bucket = self.gnu_hash.add(4 + 2 * filters as usize);
            let mut index = *bucket.add((hash % buckets) as usize);
            if index < first {
                return None;
            }
            let hashes = bucket.add(buckets as usize);
            loop {
                let found = *hashes.add((index - first) as usize);
                if found | 1 == hash | 1
                    && let Some(address) = self.defined(index, name)
                {
                    return Some(address);
                }
                if found & 1 == 1 {
                    return None;
                }
                index += 1;
            }
        }
    }

    /// The address of a symbol, if it has that name and this file defines it.
    ///
    /// # Safety
    ///
    /// `index` is the index of a symbol.
    unsafe fn defined(&self, index: u32, name: &CStr) -> Option<usize> {
        // SAFETY: the caller's promise; the symbol's name is in the table of zero-terminated
        // strings.
        unsafe {
            let symbol = &*self.symbols.add(index as usize);
            let named = CStr::from_ptr(self.strings.add(symbol.name as usize).cast());
            (symbol.section != UNDEFINED && named == name).then(|| self.base + symbol.value)
        }
    }
}

/// The vDSO: the file that the kernel maps into each process, with functions that need no system
/// call. `None` if there is none.
pub(crate) fn vdso() -> Option<Image> {
    // SAFETY: takes a number, and returns 0 for an unknown one.
    let at = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    if at == 0 {
        return None;
    }
    // SAFETY: an ELF file begins there, with its headers, in memory as in the file.
    let headers = unsafe {
        let header = &*with_exposed_provenance::<libc::Elf64_Ehdr>(at);
        let first = with_exposed_provenance(at + header.e_phoff as usize);
        slice::from_raw_parts(first, header.e_phnum.into())
    };
    // SAFETY: the vDSO is mapped for good.
    unsafe { of_headers(at, headers) }
}

/// # Safety
///
/// The headers belong to a file that is mapped at `base`, and stays mapped as long as the result is
/// used.
unsafe fn of_headers(base: usize, headers: &[libc::Elf64_Phdr]) -> Option<Image> {
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
    // SAFETY: the header gives the location of the section.
    unsafe { Image::new(base, base + dynamic.p_vaddr as usize) }
}

/// Calls `each` with the files that the loader has loaded, in the order in which it searches them:
/// the program, preloaded libraries, other libraries. Uses the loader, so it must not be called on
/// a lock's path.
pub fn each_image<F: FnMut(&Image)>(mut each: F) {
    // SAFETY: `look` is called with a pointer to `each`, and only during this call.
    unsafe { libc::dl_iterate_phdr(Some(look::<F>), (&raw mut each).cast()) };
}

/// # Safety
///
/// `info` comes from the loader, and `each` points to an `F`.
unsafe extern "C" fn look<F: FnMut(&Image)>(
    info: *mut libc::dl_phdr_info,
    _: usize,
    each: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let (info, each) = unsafe { (&*info, &mut *each.cast::<F>()) };
    // SAFETY: takes a number.
    let vdso = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    let base = info.dlpi_addr as usize;
    // The vDSO is on the loader's list, but the loader does not search it.
    if info.dlpi_phdr.is_null() || (base == vdso && base != 0) {
        return 0;
    }
    // SAFETY: the loader gives the number of headers, and the file stays loaded during this call.
    let image = unsafe {
        let headers = slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        of_headers(base, headers)
    };
    if let Some(image) = image {
        each(&image);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_file_defines_and_not_what_it_refers_to() {
        let mut definers = Vec::new();
        each_image(|image| definers.extend(image.find(c"gnu_get_libc_version")));
        // SAFETY: the name is a zero-terminated string.
        let known =
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"gnu_get_libc_version".as_ptr()) } as usize;
        assert_eq!(definers, [known]);
        each_image(|image| assert_eq!(image.find(c"no function of any library"), None));
    }

    #[test]
    fn the_kernels_file_has_a_clock_if_there_is_such_a_file() {
        let Some(vdso) = vdso() else { return };
        let name = if cfg!(target_arch = "x86_64") {
            c"__vdso_clock_gettime"
        } else {
            c"__kernel_clock_gettime"
        };
        assert!(vdso.find(name).is_some_and(|at| at > vdso.base()));
        assert_eq!(vdso.find(c"clock_gettime_"), None);
    }
}
